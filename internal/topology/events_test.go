package topology

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/fakeserver"
	"allium/internal/logging"
	"allium/mongoerr"
)

// witness is a listener, and a handler of log messages, that takes its time and writes down what it
// is told.
type witness struct {
	inside  atomic.Int64
	overlap atomic.Int64
	dawdle  func()

	mu     sync.Mutex
	events []any
}

func (w *witness) take(e any) {
	if w.inside.Add(1) > 1 {
		w.overlap.Add(1)
	}
	w.dawdle()
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	w.inside.Add(-1)
}

func (w *witness) monitor() *event.ServerMonitor {
	return &event.ServerMonitor{
		TopologyOpening:            func(e *event.TopologyOpening) { w.take(e) },
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) { w.take(e) },
		TopologyClosed:             func(e *event.TopologyClosed) { w.take(e) },
		ServerOpening:              func(e *event.ServerOpening) { w.take(e) },
		ServerDescriptionChanged:   func(e *event.ServerDescriptionChanged) { w.take(e) },
		ServerClosed:               func(e *event.ServerClosed) { w.take(e) },
		ServerHeartbeatStarted:     func(e *event.ServerHeartbeatStarted) { w.take(e) },
		ServerHeartbeatSucceeded:   func(e *event.ServerHeartbeatSucceeded) { w.take(e) },
		ServerHeartbeatFailed:      func(e *event.ServerHeartbeatFailed) { w.take(e) },
	}
}

func (w *witness) Enabled(context.Context, slog.Level) bool { return true }
func (w *witness) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *witness) WithGroup(string) slog.Handler            { return w }
func (w *witness) Handle(_ context.Context, r slog.Record) error {
	of := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "component" {
			of = a.Value.String()
		}
		return true
	})
	if of == logging.Topology.String() {
		w.take(r.Message)
	}
	return nil
}

// check holds the events against each other: each tells of a change from what the one before has
// left behind.
func (w *witness) check(t *testing.T) {
	if n := w.overlap.Load(); n > 0 {
		t.Errorf("%d events while another one was delivered", n)
	}
	servers := map[string]*event.ServerDescription{}
	beating := map[int64]bool{}
	last := &event.TopologyDescription{}
	messages := 0
	var firstEvent, lastEvent any
	for _, e := range w.events {
		if _, ok := e.(string); ok {
			messages++
			continue
		}
		if firstEvent == nil {
			firstEvent = e
		}
		lastEvent = e
		switch e := e.(type) {
		case *event.ServerOpening:
			if servers[e.Addr] != nil {
				t.Fatalf("%s opens twice", e.Addr)
			}
			servers[e.Addr] = &event.ServerDescription{Addr: e.Addr}
		case *event.ServerDescriptionChanged:
			if was := servers[e.Addr]; was == nil || !was.Equal(e.PreviousDescription) {
				t.Fatalf("%s changes from %v, and was %v", e.Addr, e.PreviousDescription, was)
			}
			servers[e.Addr] = e.NewDescription
		case *event.ServerClosed:
			if servers[e.Addr] == nil {
				t.Fatalf("%s closes, and was not open", e.Addr)
			}
			delete(servers, e.Addr)
		case *event.TopologyDescriptionChanged:
			if !last.Equal(e.PreviousDescription) {
				t.Fatalf("the topology changes from %v, and was %v", e.PreviousDescription, last)
			}
			last = e.NewDescription
			for _, d := range last.Servers {
				if was := servers[d.Addr]; len(servers) > 0 && (was == nil || !was.Equal(d)) {
					t.Fatalf("the topology has %v, which was told as %v", d, was)
				}
			}
		case *event.ServerHeartbeatStarted:
			if beating[e.DriverConnectionID] {
				t.Fatalf("connection %d: a check starts before the last one's end", e.DriverConnectionID)
			}
			beating[e.DriverConnectionID] = true
		case *event.ServerHeartbeatSucceeded:
			w.ends(t, beating, e.DriverConnectionID)
		case *event.ServerHeartbeatFailed:
			w.ends(t, beating, e.DriverConnectionID)
		}
	}
	if _, ok := firstEvent.(*event.TopologyOpening); !ok {
		t.Errorf("the first event is %T", firstEvent)
	}
	if _, ok := lastEvent.(*event.TopologyClosed); !ok {
		t.Errorf("the last event is %T", lastEvent)
	}
	for id, open := range beating {
		if open {
			t.Errorf("connection %d: a check has no end", id)
		}
	}
	if len(servers) > 0 {
		t.Errorf("%d servers stay open", len(servers))
	}
	if messages < 20 || len(w.events)-messages < 20 {
		t.Errorf("only %d messages and %d events", messages, len(w.events)-messages)
	}
}

func (w *witness) ends(t *testing.T, beating map[int64]bool, id int64) {
	if !beating[id] {
		t.Fatalf("connection %d: the end of a check that has not begun", id)
	}
	beating[id] = false
}

// The events of a topology and its log messages come one at a time and in order, whichever
// goroutines they come from: monitors of several servers, polled and streamed, operations that
// fail, connections whose handshake knows better, and slow listeners.
func TestEventsOneAtATime(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 0))
				var mu sync.Mutex
				pause := func() time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return time.Duration(r.IntN(40)) * time.Millisecond
				}
				w := &witness{dawdle: func() { time.Sleep(pause()) }}
				if seed < 6 { // lets others run, which would be told meanwhile
					w.dawdle = func() {
						for range pause() / time.Millisecond {
							runtime.Gosched()
						}
					}
				}
				network := &fakeserver.Network{}
				hosts := []string{"a:1", "b:1", "c:1", "d:1", "e:1"}
				nodes := make([]*node, len(hosts))
				for i, addr := range hosts {
					kind := event.RSSecondary
					if i == 0 {
						kind = event.RSPrimary
					}
					nodes[i] = newNode(network, addr, member(kind, addr, hosts...))
					nodes[i].old = i == 3
				}
				log, _ := logging.New(logging.Options{Handler: w}, func(string) string { return "" })
				topo := connect(t, network, Config{HeartbeatInterval: 500 * time.Millisecond, Monitor: w.monitor(), Log: log}, hosts[:2]...)
				mustSelect(t, topo, write())
				var failing sync.WaitGroup
				for range 40 {
					mu.Lock()
					n, step, wait := r.IntN(len(nodes)), r.IntN(4), time.Duration(r.IntN(200))*time.Millisecond
					mu.Unlock()
					switch s := topo.Server(hosts[n]); {
					case step == 0:
						left := slices.Delete(slices.Clone(hosts), 1+n%4, 2+n%4)
						nodes[0].say(member(event.RSPrimary, hosts[0], left...))
					case step == 1:
						nodes[0].say(member(event.RSPrimary, hosts[0], hosts...))
					case step == 2 && s != nil:
						failing.Go(func() {
							s.handleError(&mongoerr.ConnectionError{Addr: s.addr, Wrapped: errors.New("broken")}, nil, func() bool { return false })
						})
					case s != nil:
						failing.Go(func() { ping(t.Context(), s) })
					}
					time.Sleep(wait)
				}
				failing.Wait()
				if err := topo.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.check(t)
			})
		})
	}
}

// A listener may wait for what the monitors find out: for a server, when it is told that the last
// one is gone. They go on meanwhile.
func TestListenerSelects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		var topo *Topology
		var selected []error
		topo = connect(t, network, Config{Monitoring: MonitorPoll, Monitor: &event.ServerMonitor{
			ServerDescriptionChanged: func(e *event.ServerDescriptionChanged) {
				if e.NewDescription.LastError != nil {
					_, _, err := topo.Select(context.Background(), write())
					selected = append(selected, err)
				}
			},
		}}, "a:1")
		s := mustSelect(t, topo, write())
		n.say(func(b []byte) []byte { return b })
		s.handleError(&mongoerr.ConnectionError{Addr: s.addr, Wrapped: errors.New("broken")}, nil, func() bool { return false })
		time.Sleep(3 * MinHeartbeatInterval)
		synctest.Wait()
		if len(selected) != 1 || selected[0] != nil {
			t.Errorf("the listener's selections: %v", selected)
		}
	})
}

// Each topology has an id of its own, which all of its events have, and begins with nothing known
// (specification: SDAM Logging and Monitoring, "Topology IDs").
func TestTopologyIDsDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[bson.ObjectID]bool{}
		for range 3 {
			network := &fakeserver.Network{}
			newNode(network, "a:1", nil)
			var ids []bson.ObjectID
			var first *event.TopologyDescriptionChanged
			servers := map[string]event.ServerKind{}
			topo := connect(t, network, Config{Monitor: &event.ServerMonitor{
				TopologyOpening: func(e *event.TopologyOpening) { ids = append(ids, e.TopologyID) },
				TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) {
					if ids = append(ids, e.TopologyID); first == nil {
						first = e
					}
				},
				TopologyClosed: func(e *event.TopologyClosed) { ids = append(ids, e.TopologyID) },
				ServerOpening:  func(e *event.ServerOpening) { ids = append(ids, e.TopologyID) },
				ServerDescriptionChanged: func(e *event.ServerDescriptionChanged) {
					if _, ok := servers[e.Addr]; !ok {
						servers[e.Addr] = e.PreviousDescription.Kind
					}
					ids = append(ids, e.TopologyID)
				},
				ServerClosed:             func(e *event.ServerClosed) { ids = append(ids, e.TopologyID) },
				ServerHeartbeatStarted:   func(e *event.ServerHeartbeatStarted) { ids = append(ids, e.TopologyID) },
				ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceeded) { ids = append(ids, e.TopologyID) },
			}}, "a:1")
			mustSelect(t, topo, write())
			if err := topo.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				if id != topo.id || id.IsZero() {
					t.Errorf("an event of %v has the id %v", topo.id, id)
				}
			}
			if seen[topo.id] || len(ids) < 8 {
				t.Errorf("id %v is not the first one's alone, or there are %d events only", topo.id, len(ids))
			}
			seen[topo.id] = true
			if d := first.PreviousDescription; d == nil || d.Kind != event.UnknownTopology || len(d.Servers) != 0 {
				t.Errorf("the first description comes after %v", d)
			}
			if kind, ok := servers["a:1"]; !ok || kind != event.UnknownServer {
				t.Errorf("the server begins as %v, %v", kind, ok)
			}
		}
	})
}
