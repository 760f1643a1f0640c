package topology

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium/consistency"
	"allium/event"
	"allium/internal/fakeserver"
	"allium/internal/logging"
	"allium/internal/pool"
)

// logRecorder is a slog.Handler that keeps the messages.
type logRecorder struct {
	mu       sync.Mutex
	messages []map[string]any
}

func (l *logRecorder) Enabled(context.Context, slog.Level) bool { return true }
func (l *logRecorder) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logRecorder) WithGroup(string) slog.Handler            { return l }
func (l *logRecorder) Handle(_ context.Context, r slog.Record) error {
	m := map[string]any{"message": r.Message, "level": r.Level}
	r.Attrs(func(a slog.Attr) bool { m[a.Key] = a.Value.Any(); return true })
	l.mu.Lock()
	l.messages = append(l.messages, m)
	l.mu.Unlock()
	return nil
}

// The messages that the specifications name, with their fields.
func TestLogMessages(t *testing.T) {
	server := "serverHost serverPort "
	conn := server + "driverConnectionId "
	beat := "topologyId " + conn + "awaited "
	selection := "selector operation operationId topologyDescription "
	fields := map[string]string{
		"topology Starting topology monitoring":                           "topologyId",
		"topology Starting server monitoring":                             "topologyId " + server,
		"topology Topology description changed":                           "topologyId previousDescription newDescription",
		"topology Server heartbeat started":                               beat,
		"topology Server heartbeat succeeded":                             beat + "durationMS reply",
		"topology Server heartbeat failed":                                beat + "durationMS failure",
		"topology Stopped server monitoring":                              "topologyId " + server,
		"topology Stopped topology monitoring":                            "topologyId",
		"connection Connection pool created":                              server + "maxPoolSize minPoolSize maxConnecting maxIdleTimeMS waitQueueTimeoutMS",
		"connection Connection pool ready":                                server,
		"connection Connection pool cleared":                              server,
		"connection Connection pool closed":                               server,
		"connection Connection created":                                   conn,
		"connection Connection ready":                                     conn + "durationMS",
		"connection Connection closed":                                    conn + "reason",
		"connection Connection checkout started":                          server,
		"connection Connection checked out":                               conn + "durationMS",
		"connection Connection checked in":                                conn,
		"connection Connection checkout failed":                           server + "reason durationMS error",
		"serverSelection Server selection started":                        selection,
		"serverSelection Server selection succeeded":                      selection + server,
		"serverSelection Server selection failed":                         selection + "failure",
		"serverSelection Waiting for suitable server to become available": selection + "remainingTimeMS",
	}
	synctest.Test(t, func(t *testing.T) {
		recorder := &logRecorder{}
		log, _ := logging.New(logging.Options{Handler: recorder}, func(string) string { return "" })
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		topo := connect(t, network, Config{Log: log, SelectionTimeout: time.Second, Pool: pool.Config{
			Log: log, MaxPoolSize: 7, MinPoolSize: 1, MaxConnecting: 3, MaxIdleTime: time.Hour, WaitQueueTimeout: time.Minute,
		}}, "a:1")
		sel := &Selection{Write: true, Operation: "insert", OperationID: 5}
		s := mustSelect(t, topo, sel)
		if err := ping(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		n.SetDown(true)
		synctest.Wait()
		s.CheckOut(t.Context())
		topo.Select(t.Context(), sel)
		if err := topo.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		for _, m := range recorder.messages {
			name := m["component"].(string) + " " + m["message"].(string)
			want, ok := fields[name]
			if !ok {
				t.Errorf("unknown message %q", name)
				continue
			}
			level := slog.LevelDebug
			if strings.HasPrefix(m["message"].(string), "Waiting") {
				level = slog.LevelInfo
			}
			if m["level"] != level {
				t.Errorf("%q has level %v", name, m["level"])
			}
			if host, has := m["serverHost"]; has && (host != "a" || m["serverPort"] != int64(1)) {
				t.Errorf("%q is of %v, port %v", name, host, m["serverPort"])
			}
			expected := strings.Fields(want + " component message level")
			var got []string
			for key := range m {
				got = append(got, key)
				optional := key == "error" && name == "connection Connection closed"
				if !slices.Contains(expected, key) && !optional {
					t.Errorf("%q has the field %s", name, key)
				}
			}
			for _, key := range expected {
				if !slices.Contains(got, key) {
					t.Errorf("%q lacks the field %s", name, key)
				}
			}
		}
		for name := range fields {
			if !slices.ContainsFunc(recorder.messages, func(m map[string]any) bool {
				return m["component"].(string)+" "+m["message"].(string) == name
			}) {
				t.Errorf("no message %q", name)
			}
		}
	})
}

// Without a listener nothing is computed; with one that has no function for an event neither.
func TestEmptyListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, "a:1", nil)
		topo := connect(t, network, Config{Monitor: &event.ServerMonitor{}, Pool: pool.Config{Monitor: &event.PoolMonitor{}}}, "a:1")
		if err := ping(t.Context(), mustSelect(t, topo, write())); err != nil {
			t.Error(err)
		}
	})
}

// A message about a selection says all that the operation asks for, and that the program has a
// selector of its own; its failure does not repeat the topology, which the message has already
// (specification: Server Selection, "Common Fields").
func TestSelectorIsLogged(t *testing.T) {
	rp := &consistency.ReadPreference{Mode: consistency.Secondary, TagSets: []event.TagSet{{"dc": "east"}}, MaxStaleness: 100 * time.Second, Hedge: new(true)}
	for _, own := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			recorder := &logRecorder{}
			log, _ := logging.New(logging.Options{Handler: recorder}, func(string) string { return "" })
			network := &fakeserver.Network{}
			newNode(network, "a:1", member(event.RSPrimary, "a:1", "a:1"))
			cfg := Config{Log: log, SelectionTimeout: time.Second}
			if own {
				cfg.Selector = func(list []*event.ServerDescription) []*event.ServerDescription { return list }
			}
			topo := connect(t, network, cfg, "a:1")
			if _, _, err := topo.Select(t.Context(), &Selection{ReadPreference: rp, Operation: "find"}); err == nil {
				t.Fatal("a secondary was found")
			}
			n := 0
			for _, m := range recorder.messages {
				selector, ok := m["selector"].(string)
				if !ok {
					continue
				}
				n++
				for _, part := range []string{"secondary", "dc", "east", "100", "hedge"} {
					if !strings.Contains(strings.ToLower(selector), part) {
						t.Errorf("selector %q lacks %s", selector, part)
					}
				}
				if strings.Contains(selector, "custom") != own {
					t.Errorf("selector %q", selector)
				}
				if failure, ok := m["failure"].(string); ok && strings.Contains(failure, "a:1") {
					t.Errorf("failure %q repeats the topology", failure)
				}
			}
			if n != 3 {
				t.Errorf("%d messages about the selection", n)
			}
		})
	}
}
