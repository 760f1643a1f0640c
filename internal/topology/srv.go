package topology

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"allium/event"
	"allium/internal/flight"
	"allium/internal/hello"
)

// minRescanInterval is the shortest time between two DNS queries, unless the last answer was
// useless.
const minRescanInterval = time.Minute

// SRV makes a topology look for mongoses in DNS (specification: Polling SRV Records for mongos
// Discovery), as long as it is sharded or not known yet.
type SRV struct {
	// Lookup returns the addresses that DNS names now, those that are valid only, and for how long
	// the records say that this holds, 0 if that is not known. The error, which may come beside
	// addresses, is logged.
	Lookup func(context.Context) (hosts []string, ttl time.Duration, err error)
	// TTL is for how long the records from which the seeds come hold.
	TTL time.Duration
	// MaxHosts is the greatest number of mongoses to use (srvMaxHosts). Zero: no bound.
	MaxHosts int
}

var errNoHosts = errors.New("the SRV records name no valid host")

// pollSRV asks DNS again and again, until the topology turns out not to be a sharded one.
func (t *Topology) pollSRV() {
	interval := max(t.cfg.SRV.TTL, minRescanInterval)
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-t.life.Done():
			return
		case <-timer.C:
		}
		if kind := t.Description().Kind; kind != event.Sharded && kind != event.UnknownTopology {
			return
		}
		var hosts []string
		var ttl time.Duration
		err := flight.Apart(func() (err error) { // the resolver may be the program's
			hosts, ttl, err = t.cfg.SRV.Lookup(t.life)
			return err
		})
		if t.life.Err() != nil {
			return
		}
		switch {
		case len(hosts) == 0:
			t.warn("SRV polling found no servers", slog.String("failure", cmp.Or(err, errNoHosts).Error()))
			interval = t.cfg.HeartbeatInterval
		case err != nil:
			t.warn("SRV polling left out records", slog.String("failure", err.Error()))
			fallthrough
		default:
			t.setHosts(hosts)
			interval = max(ttl, minRescanInterval)
		}
		timer.Reset(interval)
	}
}

// setHosts makes the topology consist of the servers that DNS names. Those that it knows already
// are left alone.
func (t *Topology) setHosts(hosts []string) {
	valid := make([]string, len(hosts))
	for i, h := range hosts {
		valid[i] = hello.Addr(h)
	}
	rand.Shuffle(len(valid), func(i, j int) { valid[i], valid[j] = valid[j], valid[i] })
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.snapshot.Load().desc
	if t.phase != connected || old.Kind != event.Sharded && old.Kind != event.UnknownTopology {
		return
	}
	next := withHosts(old, valid, t.cfg.SRV.MaxHosts)
	if !slices.Equal(next.Servers, old.Servers) {
		t.change(old, next, nil)
	}
}
