package faults

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/owncode"
	"allium/internal/testdeploy"
	"allium/mongotest"
	"allium/tracing"
)

// messages are what the log says of each event. ServerDescriptionChanged has none.
var messages = map[string]string{
	"Command started": "Started", "Command succeeded": "Succeeded", "Command failed": "Failed",
	"Connection pool created": "PoolCreated", "Connection pool ready": "PoolReady", "Connection pool cleared": "PoolCleared",
	"Connection pool closed": "PoolClosed", "Connection created": "ConnectionCreated", "Connection ready": "ConnectionReady",
	"Connection closed": "ConnectionClosed", "Connection checkout started": "ConnectionCheckOutStarted",
	"Connection checkout failed": "ConnectionCheckOutFailed", "Connection checked out": "ConnectionCheckedOut",
	"Connection checked in": "ConnectionCheckedIn", "Starting topology monitoring": "TopologyOpening",
	"Topology description changed": "TopologyDescriptionChanged", "Stopped topology monitoring": "TopologyClosed",
	"Starting server monitoring": "ServerOpening", "Stopped server monitoring": "ServerClosed",
	"Server heartbeat started": "ServerHeartbeatStarted", "Server heartbeat succeeded": "ServerHeartbeatSucceeded",
	"Server heartbeat failed": "ServerHeartbeatFailed",
}

// watcher is everybody who can be told something: the listeners, the log and the tracer. It counts
// what each has heard, and then runs the code of one of them for one event.
type watcher struct {
	who, what string
	code      func()

	mu    sync.Mutex
	heard map[string]map[string]int // by who and what
}

func (w *watcher) hear(who, what string) {
	w.mu.Lock()
	if w.heard[who] == nil {
		w.heard[who] = map[string]int{}
	}
	w.heard[who][what]++
	w.mu.Unlock()
	if w.code != nil && strings.Contains(w.who, who) && what == w.what {
		w.code()
	}
}

// listen fills in the functions of a monitor.
func (w *watcher) listen(monitor any) {
	v := reflect.ValueOf(monitor).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
			w.hear("listener", name)
			return nil
		}))
	}
}

func (w *watcher) Enabled(context.Context, slog.Level) bool { return true }
func (w *watcher) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *watcher) WithGroup(string) slog.Handler            { return w }
func (w *watcher) Handle(_ context.Context, r slog.Record) error {
	if name := messages[r.Message]; name != "" {
		w.hear("log", name)
	}
	return nil
}

func (w *watcher) Start(ctx context.Context, b tracing.Begin) (context.Context, tracing.Span) {
	ofCommand := slices.ContainsFunc(b.Attributes, func(a tracing.Attribute) bool { return a.Key == "db.command.name" })
	if ofCommand {
		w.hear("tracer", "Started")
	}
	return ctx, &watchedSpan{w: w, ofCommand: ofCommand, end: "Succeeded"}
}

type watchedSpan struct {
	w         *watcher
	ofCommand bool
	end       string
}

func (s *watchedSpan) SetAttributes(...tracing.Attribute)         {}
func (s *watchedSpan) RecordError(error)                          { s.end = "Failed" }
func (s *watchedSpan) Within(ctx context.Context) context.Context { return ctx }
func (s *watchedSpan) End() {
	if s.ofCommand {
		s.w.hear("tracer", s.end)
	}
}

// run has everything happen that there are events for.
func (w *watcher) run(t *testing.T) {
	d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), mongotest.ReplicaSet(1))
	dialer := &rig.FaultyDialer{Dialer: d}
	opts := allium.ClientOptions{Dialer: dialer, MaxIdleTime: new(time.Minute), ServerSelectionTimeout: new(time.Second),
		CommandMonitor: &event.CommandMonitor{}, PoolMonitor: &event.PoolMonitor{}, ServerMonitor: &event.ServerMonitor{},
		Logger: slog.New(w), Tracing: &allium.Tracing{Tracer: w, Enabled: new(true)},
		LogLevels: map[allium.LogComponent]slog.Level{allium.LogCommand: slog.LevelDebug, allium.LogConnection: slog.LevelDebug, allium.LogTopology: slog.LevelDebug},
	}
	w.listen(opts.CommandMonitor)
	w.listen(opts.PoolMonitor)
	w.listen(opts.ServerMonitor)
	client, err := allium.Open(d.URI(), opts)
	if err != nil {
		t.Fatal(err)
	}
	coll := client.Database("d").Collection("c")
	insert := func() error { return rig.ErrorOf(coll.InsertOne(t.Context(), bson.D{})) }
	for range 3 {
		owncode.Ending(insert)
	}
	owncode.Ending(func() error {
		return rig.ErrorOf(client.Database("d").RunCommand(t.Context(), bson.D{{Key: "unknown", Value: 1}}))
	})
	d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, CloseConnection: true})
	for range 2 { // the connection breaks; then it has been idle for too long
		dialer.Down.Store(true)
		owncode.Ending(insert)
		time.Sleep(time.Minute)
		dialer.Down.Store(false)
		time.Sleep(time.Minute)
		owncode.Ending(insert)
		time.Sleep(2 * time.Minute)
	}
	client.Close(context.Background())
	synctest.Wait()
}

// Each of those who want to know of an event hears of it, whatever another does who is told before
// or after: the listener, the log and the tracer, of each event.
func TestEveryObserverIsTold(t *testing.T) {
	test := func(name, who, what string, code func()) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &watcher{who: who, what: what, code: code, heard: map[string]map[string]int{}}
				w.run(t)
				for _, name := range messages {
					heard, logged, traced := w.heard["listener"][name], w.heard["log"][name], w.heard["tracer"][name]
					if heard != logged {
						t.Errorf("%s: the listener has heard %d, the log %d", name, heard, logged)
					}
					if heard == 0 && (what == "" || what == name) {
						t.Errorf("%s has not happened", name)
					}
					ofCommand := name == "Started" || name == "Succeeded" || name == "Failed"
					failedAsStarted := strings.Contains(who, "tracer") && what == "Started" // there is no span then
					if ofCommand && heard != traced && !failedAsStarted {
						t.Errorf("%s: the listener has heard %d, the tracer %d", name, heard, traced)
					}
				}
				for who, c := range w.heard {
					if s, e := c["Started"], c["Succeeded"]+c["Failed"]; s != e && (who != "tracer" || !strings.Contains(w.who, who) || what != "Started") {
						t.Errorf("%s has heard of the beginning of %d commands, and of the end of %d", who, s, e)
					}
				}
			})
		})
	}
	test("nobody fails", "", "", nil)
	for _, what := range slices.Sorted(maps.Values(messages)) {
		for mode, code := range codeModes {
			if mode == "call" {
				continue
			}
			for _, who := range []string{"listener", "log", "tracer", "listener and log", "tracer, listener and log"} {
				if !strings.Contains(who, "tracer") || what == "Started" || what == "Succeeded" || what == "Failed" {
					test(what+"/"+who+"/"+mode, who, what, func() { code(nil) })
				}
			}
		}
	}
}
