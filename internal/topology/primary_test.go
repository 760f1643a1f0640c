package topology

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/conn"
)

// modelMember is a member of a replica set that is known to itself better than to others.
type modelMember struct {
	addr    string
	up      bool
	primary bool // takes itself for the primary
	term    int  // of its election, while it does
	config  modelConfig
	process byte
	counter int64
	queue   []*event.ServerDescription // what it has told the client, which comes in order
}

// modelConfig is a configuration of the set.
type modelConfig struct {
	version int
	hosts   []string
}

// modelSet is a replica set whose members hear of elections and of new configurations late.
type modelSet struct {
	r       *rand.Rand
	wire    int32
	members []*modelMember
	term    int
	newest  modelConfig
	elected *modelMember // in the newest term; nil once it is down
}

// changed counts a change of what a member says of itself, and tells the client.
func (s *modelSet) changed(m *modelMember) {
	m.counter++
	s.tell(m)
}

// tell has a member say what it knows. One that is down says that.
func (s *modelSet) tell(m *modelMember) {
	if !m.up {
		m.queue = append(m.queue, &event.ServerDescription{Addr: m.addr, LastError: errors.New("refused")})
		return
	}
	d := &event.ServerDescription{Addr: m.addr, MaxWireVersion: s.wire, Me: m.addr,
		TopologyVersion: &event.TopologyVersion{ProcessID: bson.ObjectID{m.process}, Counter: m.counter}}
	switch {
	case !slices.Contains(m.config.hosts, m.addr):
		d.Kind = event.RSGhost
	case m.primary:
		d.Kind = event.RSPrimary
		id := bson.ObjectID{0x7f, 0xff, 0xff, 0xff}
		binary.BigEndian.PutUint64(id[4:], uint64(m.term))
		d.ElectionID = &id
	default:
		d.Kind = event.RSSecondary
	}
	if d.Kind != event.RSGhost {
		d.SetName, d.Hosts = "rs", m.config.hosts
		d.SetVersion = new(int64(m.config.version))
	}
	m.queue = append(m.queue, d)
}

// hear has a member learn who was elected and what the configuration is.
func (s *modelSet) hear(m *modelMember) {
	if !m.up {
		return
	}
	before := *m
	m.primary = m == s.elected
	m.config = s.newest
	if before.primary != m.primary || before.config.version != m.config.version {
		s.changed(m)
	}
}

// elect makes a member the primary of a new term. It has the newest configuration, which a majority
// has, and of which it is a member.
func (s *modelSet) elect(m *modelMember) {
	if !m.up || !slices.Contains(s.newest.hosts, m.addr) {
		return
	}
	s.term++
	s.elected = m
	m.primary, m.term, m.config = true, s.term, s.newest
	s.changed(m)
}

// step is one move.
func (s *modelSet) step() {
	m := s.members[s.r.IntN(len(s.members))]
	switch s.r.IntN(8) {
	case 0, 1:
		s.elect(m)
	case 2, 3:
		s.hear(m)
	case 4: // its connection breaks with it, and what was on the way is lost
		if m.up {
			m.up, m.primary, m.queue = false, false, nil
			if s.elected == m {
				s.elected = nil
			}
			s.tell(m)
		}
	case 5:
		if !m.up {
			m.up, m.process, m.counter = true, m.process+1, 0
			s.tell(m)
		}
	case 6: // the primary adds or removes another member
		if s.elected == nil || m == s.elected {
			return
		}
		hosts := slices.DeleteFunc(slices.Clone(s.newest.hosts), func(a string) bool { return a == m.addr })
		if len(hosts) == len(s.newest.hosts) {
			hosts = append(hosts, m.addr)
		} else if len(hosts) < 2 {
			return
		}
		s.newest = modelConfig{s.newest.version + 1, hosts}
		s.hear(s.elected)
	case 7:
		s.tell(m)
	}
}

// However late the members of a set and the client hear of elections, restarts and new
// configurations, a client that has once seen a primary never goes back to one of an earlier
// election, and when all is quiet it finds the right one: no electionId, setVersion or
// topologyVersion that it remembers stands in its way.
func TestTheNewestPrimaryIsFound(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 19))
		s := &modelSet{r: r, wire: []int32{9, 13, 17, 25}[r.IntN(4)]}
		var addrs []string
		for i := range 3 + r.IntN(3) {
			addrs = append(addrs, fmt.Sprintf("m%d:1", i))
		}
		s.newest = modelConfig{1, addrs}
		for _, a := range addrs {
			s.members = append(s.members, &modelMember{addr: a, up: true, config: s.newest})
		}
		m := machine{seeds: len(addrs)}
		td := initial(event.ReplicaSetNoPrimary, "rs", addrs)
		var newest *bson.ObjectID // of the primaries that the client believed in
		deliver := func(from *modelMember) {
			if len(from.queue) == 0 {
				return
			}
			sd := from.queue[0]
			from.queue = from.queue[1:]
			td, _ = m.next(td, sd)
			if err := invariants(td); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if p := td.Primary(); p != nil {
				if compareID(p.ElectionID, newest) < 0 {
					t.Fatalf("seed %d: back to the primary of an earlier election, %v", seed, p)
				}
				newest = p.ElectionID
			}
		}
		for range 60 {
			s.step()
			for range r.IntN(3) {
				deliver(s.members[r.IntN(len(s.members))])
			}
		}
		for _, m := range s.members {
			if !m.up {
				m.up, m.process, m.counter = true, m.process+1, 0
			}
		}
		if s.elected == nil {
			for _, m := range s.members {
				if s.elect(m); s.elected != nil {
					break
				}
			}
		}
		for _, m := range s.members {
			s.hear(m)
		}
		// Members that were left out by a stale primary are found again by the next hello of
		// another one, and then have to say something themselves.
		for range 4 {
			for _, i := range r.Perm(len(s.members)) {
				s.tell(s.members[i])
				for len(s.members[i].queue) > 0 {
					deliver(s.members[i])
				}
			}
		}
		if p := td.Primary(); p == nil || p.Addr != s.elected.addr {
			t.Fatalf("seed %d: the primary is %s, elected in term %d with version %d; the client has %v, remembers %s",
				seed, s.elected.addr, s.elected.term, s.newest.version, td, tuple(td.MaxElectionID, td.MaxSetVersion))
		}
		if len(td.Servers) != len(s.newest.hosts) {
			t.Fatalf("seed %d: the client has %v, the set %v", seed, td, s.newest.hosts)
		}
	}
}

// waiting is a selection that waits.
type waiting struct {
	sel  *Selection
	done chan struct{}
	addr string
	err  error
}

// As soon as a suitable server is known, no selection waits any more, whenever it began; and none
// ends with a server that does not suit, or before its time with none.
func TestSelectionsWakeUp(t *testing.T) {
	kinds := []event.ServerKind{event.RSPrimary, event.RSSecondary, event.RSSecondary, event.UnknownServer}
	modes := []*consistency.ReadPreference{nil, {Mode: consistency.Secondary}, {Mode: consistency.Nearest}, {Mode: consistency.PrimaryPreferred}}
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 23))
			addrs := []string{"a:1", "b:1", "c:1"}
			cfg := Config{unmonitored: true, Seeds: addrs, SetName: "rs", LocalThreshold: DefaultLocalThreshold}
			cfg.Pool.Conn = &conn.Config{Dialer: blockedDialer{}}
			topo, err := New(&cfg)
			if err != nil {
				t.Fatal(err)
			}
			topo.Connect()
			defer topo.Close(t.Context())
			var all []*waiting
			term := byte(0)
			say := func() {
				d := &event.ServerDescription{Addr: addrs[r.IntN(3)], Kind: kinds[r.IntN(len(kinds))], MaxWireVersion: 21}
				switch d.Kind {
				case event.UnknownServer:
					d.LastError = errors.New("gone")
				case event.RSPrimary:
					term++
					d.ElectionID, d.SetVersion = &bson.ObjectID{term}, new(int64(1))
					fallthrough
				default:
					d.SetName, d.Hosts = "rs", addrs
				}
				topo.update(d, func() bool { return false }, func(*Server) {})
			}
			begin := func() {
				w := &waiting{sel: &Selection{ReadPreference: modes[r.IntN(len(modes))]}, done: make(chan struct{})}
				switch r.IntN(4) {
				case 0:
					w.sel.Write = true
				case 1:
					w.sel.Addr = addrs[r.IntN(3)]
				case 2:
					w.sel.Deprioritized = addrs[:r.IntN(3)]
				}
				limit := time.Duration(1+r.IntN(5)) * time.Second
				all = append(all, w)
				go func() {
					defer close(w.done)
					ctx, cancel := context.WithTimeout(context.Background(), limit)
					defer cancel()
					s, d, err := topo.Select(ctx, w.sel)
					if w.err = err; err == nil {
						w.addr = s.addr
						if w.sel.Addr != "" && s.addr != w.sel.Addr || w.sel.Write && w.sel.Addr == "" && d.Kind != event.RSPrimary {
							t.Errorf("seed %d: %v was selected for %v", seed, d, w.sel)
						}
					}
				}()
			}
			for range 60 {
				// All of it at one instant: the goroutines run in any order.
				for range r.IntN(4) {
					begin()
				}
				for range r.IntN(3) {
					say()
				}
				for range r.IntN(3) {
					begin()
				}
				synctest.Wait()
				snap := topo.snapshot.Load()
				for _, w := range all {
					select {
					case <-w.done:
						continue
					default:
					}
					if s, _, _ := topo.pick(snap, w.sel); s != nil {
						t.Errorf("seed %d: a selection for %v waits though there is %s", seed, w.sel, s.addr)
					}
				}
				time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
			}
			time.Sleep(time.Minute)
			for _, w := range all {
				<-w.done
			}
		})
	}
}
