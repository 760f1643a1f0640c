package topology

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/flight"
	"allium/internal/hello"
	"allium/internal/logging"
	"allium/internal/pool"
	"allium/mongoerr"
)

// Defaults and limits of the specifications.
const (
	DefaultHeartbeatInterval = 10 * time.Second
	DefaultLocalThreshold    = 15 * time.Millisecond
	DefaultSelectionTimeout  = 30 * time.Second
	MinHeartbeatInterval     = 500 * time.Millisecond // also between two checks of one server
)

// MonitoringMode says which protocol servers are monitored with (serverMonitoringMode).
type MonitoringMode uint8

// The monitoring modes.
const (
	MonitorAuto   MonitoringMode = iota // MonitorPoll on a Function-as-a-Service platform, else MonitorStream
	MonitorStream                       // servers push their changes, if they can (from MongoDB 4.4 on)
	MonitorPoll                         // servers are asked every heartbeat interval
)

// Config is what a topology needs to know. It must not be changed once it is in use.
type Config struct {
	// Seeds are the addresses that the user named, or that DNS named for a mongodb+srv connection
	// string.
	Seeds []string
	// Direct connects to the one seed, whatever it is (directConnection=true).
	Direct bool
	// LoadBalanced says that the one seed is a load balancer.
	LoadBalanced bool
	// SetName is the name that the replica set must have; empty: any.
	SetName string

	HeartbeatInterval time.Duration // zero: DefaultHeartbeatInterval
	Monitoring        MonitoringMode
	// LocalThreshold is the size of the latency window. Zero means that only the nearest server is
	// used.
	LocalThreshold time.Duration
	// SelectionTimeout bounds the wait for a suitable server. Zero: DefaultSelectionTimeout;
	// negative: no bound.
	SelectionTimeout time.Duration
	// Selector narrows down the suitable servers of every operation. It may be nil.
	Selector Selector

	// Pool is what the pools of all servers have in common, with the configuration of all
	// connections; its fields that are functions are the topology's.
	Pool pool.Config

	// SRV makes the topology look for mongoses that were added to or removed from DNS. It may be
	// nil.
	SRV *SRV

	Monitor *event.ServerMonitor // may be nil
	Log     *logging.Logger      // may be nil

	// unmonitored is for tests that play the monitors.
	unmonitored bool
}

// Topology knows the servers of a deployment. It is safe for concurrent use.
type Topology struct {
	cfg       Config
	id        bson.ObjectID
	machine   machine
	streaming bool

	snapshot atomic.Pointer[snapshot]
	lastConn atomic.Int64 // the number of the last monitoring connection

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup // monitors, and servers that are being closed

	mu         sync.Mutex
	phase      phase
	servers    map[string]*Server
	discovered allowance
	strangers  []*event.ServerDescription // see snapshot; the slice is replaced, never changed
	recent     recent
	events     flight.Deliveries
	dropped    atomic.Int64   // events, also of pools
	told       sync.WaitGroup // pools of servers that were removed, whose last events are delivered
	closing    sync.Once
	done       chan struct{} // closed when finish has ended
}

type phase uint8

const (
	created phase = iota
	connected
	closed
)

// snapshot is what is known at one moment. It is immutable.
type snapshot struct {
	desc    *event.TopologyDescription
	servers []*Server // in the order of desc.Servers
	// at has the positions of addresses in both lists. Snapshots of the same servers share it.
	at map[string]int
	// primary are the servers within the latency window for writes, and for reads from the primary.
	primary     []*Server
	primaryDesc []*event.ServerDescription // theirs
	closed      bool
	// strangers are servers that were named and turned out not to belong to the deployment.
	strangers []*event.ServerDescription
	// changed is closed when there is a newer snapshot.
	changed chan struct{}
}

// New returns a topology that does nothing until Connect is called.
func New(cfg *Config) (*Topology, error) {
	t := &Topology{cfg: *cfg, id: bson.NewObjectID(), servers: map[string]*Server{}, done: make(chan struct{})}
	c := &t.cfg
	if c.HeartbeatInterval == 0 {
		c.HeartbeatInterval = DefaultHeartbeatInterval
	}
	if c.SelectionTimeout == 0 {
		c.SelectionTimeout = DefaultSelectionTimeout
	}
	seeds := make([]string, len(c.Seeds))
	for i, addr := range c.Seeds {
		seeds[i] = hello.Addr(addr)
	}
	switch {
	case len(seeds) == 0:
		return nil, errors.New("there is no server to connect to")
	case c.Direct && len(seeds) > 1:
		return nil, errors.New("a direct connection cannot have more than one server")
	case c.LoadBalanced && len(seeds) > 1:
		return nil, errors.New("a load-balanced deployment cannot have more than one address")
	case c.LoadBalanced && (c.Direct || c.SetName != ""):
		return nil, errors.New("a load-balanced deployment cannot have a direct connection or a replica set name")
	case c.HeartbeatInterval < MinHeartbeatInterval:
		return nil, errors.New("the heartbeat interval must be at least 500 ms")
	}
	kind := event.UnknownTopology
	switch {
	case c.LoadBalanced:
		kind = event.LoadBalanced
	case c.Direct:
		kind = event.Single
	case c.SetName != "":
		kind = event.ReplicaSetNoPrimary
	}
	first := initial(kind, c.SetName, seeds)
	t.machine.seeds = len(first.Servers) // a seed that is named twice is one
	t.streaming = c.Monitoring == MonitorStream || c.Monitoring == MonitorAuto && conn.FaaS() == ""
	t.events.Dropped = &t.dropped
	t.life, t.end = context.WithCancel(context.Background())
	t.snapshot.Store(&snapshot{desc: first, changed: make(chan struct{})})
	return t, nil
}

// Description returns what is known now.
func (t *Topology) Description() *event.TopologyDescription { return t.snapshot.Load().desc }

// Server returns the server at an address, nil if it is not part of the topology.
func (t *Topology) Server(addr string) *Server {
	snap := t.snapshot.Load()
	if i, ok := snap.at[addr]; ok {
		return snap.servers[i]
	}
	return nil
}

// Connect begins to monitor the servers. It returns at once, and does nothing when called again.
func (t *Topology) Connect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != created || t.life.Err() != nil {
		return
	}
	t.phase = connected
	first := t.snapshot.Load().desc
	t.topologyOpening()
	t.topologyChanged(&event.TopologyDescription{}, first)
	for _, d := range first.Servers {
		t.serverOpening(d.Addr)
		t.servers[d.Addr] = newServer(t, d)
	}
	t.publish(first)
	if t.cfg.LoadBalanced {
		t.apply(&event.ServerDescription{Addr: first.Servers[0].Addr, Kind: event.LoadBalancer, LastUpdate: time.Now()})
		return
	}
	for _, s := range t.servers {
		s.pool.DialAhead()
		s.startMonitor(0)
	}
	if t.cfg.SRV != nil {
		flight.Go(&t.work, t.pollSRV, nil)
	}
}

// Close ends the monitoring, closes the pools and waits for all goroutines of the topology, and
// for the listener to have heard the last event. When ctx ends before, it returns the context's
// error, and the rest happens in the background. Connections in use are closed when they are
// returned.
//
// Neither the lock nor a listener is waited for here: the end of the topology's life makes all that
// wait for the lock give up.
func (t *Topology) Close(ctx context.Context) error {
	t.closing.Do(func() {
		t.end()
		flight.Go(nil, t.finish, nil)
	})
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		select {
		case <-t.done:
			return nil
		default:
			return ctx.Err()
		}
	}
}

// finish is the part of Close that takes time.
func (t *Topology) finish() {
	defer close(t.done)
	t.mu.Lock()
	wasConnected := t.phase == connected
	t.phase = closed
	last := t.snapshot.Load()
	gone := &event.TopologyDescription{}
	t.snapshot.Store(&snapshot{desc: gone, closed: true, changed: make(chan struct{})})
	close(last.changed)
	t.mu.Unlock()

	var pools sync.WaitGroup
	for _, s := range t.servers { // nobody adds or removes servers any more
		flight.Go(&pools, func() {
			defer s.pool.Interrupt()
			s.pool.Close()
		}, nil)
	}
	pools.Wait()
	t.work.Wait()
	if !wasConnected {
		return
	}
	t.tellClosed(last.desc, gone)
	t.events.Wait()
	for _, s := range t.servers {
		s.pool.Told()
	}
	t.told.Wait()
}

// tellClosed queues the last events.
func (t *Topology) tellClosed(last, gone *event.TopologyDescription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range last.Servers {
		t.serverClosed(d.Addr)
	}
	t.topologyChanged(last, gone)
	t.topologyClosed()
}

// update feeds the outcome of a check, or what else was learned of a server, to the state machine,
// unless it is overtaken. If it counts, after is called with the server under the lock. It reports
// whether it did.
func (t *Topology) update(sd *event.ServerDescription, overtaken func() bool, after func(*Server)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.servers[sd.Addr]
	if overtaken() || !t.apply(sd) {
		return false
	}
	after(s)
	return true
}

// apply is update with the lock held. It reports whether the outcome counted.
func (t *Topology) apply(sd *event.ServerDescription) bool {
	if t.phase != connected || t.life.Err() != nil {
		return false
	}
	sd.HeartbeatInterval = t.cfg.HeartbeatInterval
	old := t.snapshot.Load().desc
	next, recheck := t.machine.next(old, sd)
	if next == old {
		return false
	}
	t.remember(next, sd)
	t.change(old, next, sd)
	for _, addr := range recheck {
		if s := t.servers[addr]; s != nil { // the new primary may have left it out of the set
			s.requestCheck()
		}
	}
	return true
}

// maxStrangers is how many servers that do not belong to the deployment are remembered.
const maxStrangers = 4

// remember keeps the hello for which a server was removed from the topology, so that an error can
// mention it. The lock is held.
func (t *Topology) remember(next *event.TopologyDescription, sd *event.ServerDescription) {
	i := slices.IndexFunc(t.strangers, func(s *event.ServerDescription) bool { return s.Addr == sd.Addr })
	if i >= 0 {
		t.strangers = slices.Concat(t.strangers[:i:i], t.strangers[i+1:])
	}
	if next.Server(sd.Addr) != nil || sd.Kind == event.UnknownServer {
		return
	}
	t.strangers = append(t.strangers[max(0, len(t.strangers)-maxStrangers+1):len(t.strangers):len(t.strangers)], sd)
}

// change makes next the current description: it opens and closes servers, makes a checked server's
// pool ready, and publishes the events. sd is the outcome that led to it, nil if it was not a
// check. The lock is held.
//
// The description is there before anybody is told of it: a listener that looks at the topology, or
// begins an operation, finds what it was told.
func (t *Topology) change(old, next *event.TopologyDescription, sd *event.ServerDescription) {
	if sameServers(old, next) {
		t.changeKnown(old, next, sd)
		return
	}
	var removed []*Server
	before, after := byAddr(old), byAddr(next)
	for _, d := range next.Servers {
		if before[d.Addr] == nil {
			t.servers[d.Addr] = newServer(t, d)
		}
	}
	for _, d := range old.Servers {
		if after[d.Addr] == nil {
			removed = append(removed, t.servers[d.Addr])
			delete(t.servers, d.Addr)
		}
	}
	checked := sd
	if sd != nil {
		if now := after[sd.Addr]; now != nil {
			checked = now
			t.servers[sd.Addr].admit(next, now)
		}
	}
	t.publish(next)

	if checked != nil {
		t.serverChanged(before[checked.Addr], checked)
	}
	for _, d := range next.Servers {
		switch was := before[d.Addr]; {
		case was == nil:
			t.serverOpening(d.Addr)
			t.servers[d.Addr].startMonitor(t.discovered.take(maxDiscovered))
		case was != d && (sd == nil || d.Addr != sd.Addr):
			t.serverChanged(was, d)
		}
	}
	for _, s := range removed {
		s.stopMonitor()
		flight.Go(&t.work, func() {
			s.pool.Close()
			flight.Go(&t.told, s.pool.Told, nil)
		}, nil)
		t.serverClosed(s.addr)
	}
	t.topologyChanged(old, next)
	if len(next.Servers) == 0 && len(old.Servers) > 0 {
		t.warn("No server is left: those that were found do not belong to the deployment that is asked for",
			slog.String("previousDescription", old.String()))
	}
	if len(next.Servers) >= maxMembers && len(old.Servers) < maxMembers && next.Kind == event.ReplicaSetNoPrimary {
		t.warn("The servers name more members than a replica set can have; those beyond the limit are ignored",
			slog.Int("limit", maxMembers))
	}
}

// changeKnown is change where the servers are those that were known, which is what nearly every
// check leads to.
func (t *Topology) changeKnown(old, next *event.TopologyDescription, sd *event.ServerDescription) {
	at := -1
	if sd != nil {
		at = slices.IndexFunc(next.Servers, func(d *event.ServerDescription) bool { return d.Addr == sd.Addr })
	}
	if at >= 0 {
		t.servers[sd.Addr].admit(next, next.Servers[at])
	}
	t.publish(next)

	if at >= 0 {
		t.serverChanged(old.Servers[at], next.Servers[at])
	}
	for i, d := range next.Servers {
		if i != at && d != old.Servers[i] {
			t.serverChanged(old.Servers[i], d)
		}
	}
	t.topologyChanged(old, next)
}

// sameServers reports whether two descriptions are of the same servers in the same order.
func sameServers(a, b *event.TopologyDescription) bool {
	return slices.EqualFunc(a.Servers, b.Servers, func(x, y *event.ServerDescription) bool {
		return x == y || x.Addr == y.Addr
	})
}

// byAddr returns the servers of a description by their addresses.
func byAddr(t *event.TopologyDescription) map[string]*event.ServerDescription {
	servers := make(map[string]*event.ServerDescription, len(t.Servers))
	for _, d := range t.Servers {
		servers[d.Addr] = d
	}
	return servers
}

// publish makes a description visible and wakes those who wait for one. The lock is held.
func (t *Topology) publish(desc *event.TopologyDescription) {
	snap := &snapshot{desc: desc, strangers: t.strangers, changed: make(chan struct{})}
	before := t.snapshot.Load()
	if len(before.servers) == len(desc.Servers) && sameServers(before.desc, desc) {
		snap.servers, snap.at = before.servers, before.at
		for i, d := range desc.Servers {
			if d != before.desc.Servers[i] {
				snap.servers[i].desc.Store(d)
			}
		}
	} else {
		snap.servers = make([]*Server, len(desc.Servers))
		snap.at = make(map[string]int, len(desc.Servers))
		for i, d := range desc.Servers {
			snap.at[d.Addr] = i
			snap.servers[i] = t.servers[d.Addr]
			snap.servers[i].desc.Store(d)
		}
	}
	snap.primaryDesc = inWindow(appendSuitable(make([]*event.ServerDescription, 0, len(before.primary)), desc,
		&Selection{Write: true}), t.cfg.LocalThreshold)
	snap.primary = snap.appendServers(make([]*Server, 0, len(snap.primaryDesc)), snap.primaryDesc)
	last := t.snapshot.Swap(snap)
	close(last.changed)
}

// appendServers appends the servers that descriptions of the snapshot belong to. The descriptions
// are in the snapshot's order.
func (s *snapshot) appendServers(dst []*Server, of []*event.ServerDescription) []*Server {
	i := 0
	for _, d := range of {
		for s.desc.Servers[i] != d {
			i++
		}
		dst = append(dst, s.servers[i])
	}
	return dst
}

// errUnsuitable is what a SelectionError wraps when no server reported an error.
var errUnsuitable = errors.New("no server is suitable")

var errClientClosed = mongoerr.ErrClientClosed
