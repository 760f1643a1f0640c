package topology

import (
	"slices"
	"sync"
	"time"

	"allium/event"
	"allium/internal/failure"
	"allium/stats"
)

// recent keeps the last events of a topology and its pools, however many there are. The zero value
// is ready. Its lock is a leaf.
type recent struct {
	mu   sync.Mutex
	ring []stats.Event // the oldest at next once it is full
	next int
}

func (r *recent) add(addr, text string, err error) {
	e := stats.Event{Time: time.Now(), Addr: addr, Text: text, Cause: failure.Outline(err)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < stats.Listed {
		r.ring = append(r.ring, e)
		return
	}
	r.ring[r.next] = e
	r.next = (r.next + 1) % stats.Listed
}

// list returns the events, the latest first.
func (r *recent) list() []stats.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Concat(r.ring[r.next:], r.ring[:r.next])
	slices.Reverse(out)
	return out
}

// change describes what is new about a server; false if no user would look for it.
func change(old, now *event.ServerDescription) (string, bool) {
	switch {
	case old.Kind != now.Kind:
		return old.Kind.String() + " -> " + now.Kind.String(), true
	case old.Equal(now):
		return "", false
	case now.LastError != nil:
		return "still " + now.Kind.String(), true
	}
	return "describes itself anew", true
}

// Stats returns the pools in the order of the servers, and the last events.
func (t *Topology) Stats() (pools []stats.Pool, recent []stats.Event, dropped int64) {
	servers := t.snapshot.Load().servers
	pools = make([]stats.Pool, len(servers))
	for i, s := range servers {
		pools[i] = s.pool.Stats()
	}
	return pools, t.recent.list(), t.dropped.Load()
}
