package wire

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// logRecorder is a slog.Handler that keeps the fields of messages.
type logRecorder struct {
	mu       sync.Mutex
	messages []map[string]slog.Value
}

func (l *logRecorder) Enabled(context.Context, slog.Level) bool { return true }
func (l *logRecorder) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logRecorder) WithGroup(string) slog.Handler            { return l }
func (l *logRecorder) Handle(_ context.Context, r slog.Record) error {
	m := map[string]slog.Value{"message": slog.StringValue(r.Message), "level": slog.AnyValue(r.Level)}
	r.Attrs(func(a slog.Attr) bool { m[a.Key] = a.Value; return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages = append(l.messages, m)
	return nil
}

// last returns the last message of a text about a command.
func (l *logRecorder) last(t *testing.T, message, command string) map[string]slog.Value {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.messages) - 1; i >= 0; i-- {
		if m := l.messages[i]; m["message"].String() == message && m["commandName"].String() == command {
			return m
		}
	}
	t.Fatalf("no message %q of %s in %v", message, command, l.messages)
	return nil
}

// logged opens a client that logs commands.
func logged(t *testing.T, d *testdeploy.Deployment, o allium.ClientOptions) (*allium.Client, *logRecorder) {
	t.Helper()
	l := &logRecorder{}
	o.Logger = slog.New(l)
	o.LogLevels = map[allium.LogComponent]slog.Level{allium.LogCommand: slog.LevelDebug}
	client, err := allium.Open(d.URI(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client, l
}

const ellipsis = "..."

// The prose tests of the specification Command Logging and Monitoring.
func TestProseCommandLogging(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.Any)
	ctx := t.Context()

	t.Run("1: default truncation limit", func(t *testing.T) {
		client, log := logged(t, d, allium.ClientOptions{})
		coll := client.Database("logging").Collection("c")
		docs := make([]bson.D, 100)
		for i := range docs {
			docs[i] = bson.D{{Key: "x", Value: "y"}}
		}
		if _, err := coll.InsertMany(ctx, docs); err != nil {
			t.Fatal(err)
		}
		if got := log.last(t, "Command started", "insert")["command"].String(); len(got) != 1000+len(ellipsis) || !strings.HasSuffix(got, ellipsis) {
			t.Errorf("command has %d bytes: %s", len(got), got)
		}
		if got := log.last(t, "Command succeeded", "insert")["reply"].String(); len(got) > 1000+len(ellipsis) {
			t.Errorf("reply has %d bytes: %s", len(got), got)
		}
		cur, err := coll.Find(ctx, bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cur.All(ctx); err != nil {
			t.Fatal(err)
		}
		if got := log.last(t, "Command succeeded", "find")["reply"].String(); len(got) != 1000+len(ellipsis) {
			t.Errorf("reply has %d bytes: %s", len(got), got)
		}
	})
	t.Run("2: explicitly configured truncation limit", func(t *testing.T) {
		client, log := logged(t, d, allium.ClientOptions{MaxLogDocumentLength: 5})
		db := client.Database("admin")
		if _, err := db.RunCommand(ctx, bson.D{{Key: d.Hello(), Value: true}}); err != nil {
			t.Fatal(err)
		}
		for message, field := range map[string]string{"Command started": "command", "Command succeeded": "reply"} {
			if got := log.last(t, message, d.Hello())[field].String(); len(got) != 5+len(ellipsis) || !strings.HasSuffix(got, ellipsis) {
				t.Errorf("%s: %s is %q", message, field, got)
			}
		}
		if _, err := db.RunCommand(ctx, bson.D{{Key: "notARealCommand", Value: true}}); err == nil {
			t.Fatal("no error")
		}
		if got := log.last(t, "Command failed", "notARealCommand")["reply"].String(); len(got) != 5+len(ellipsis) || !strings.HasSuffix(got, ellipsis) {
			t.Errorf("the server's reply is %q", got)
		}
	})
	t.Run("3: multi-byte codepoints", func(t *testing.T) {
		// Whatever the limit, what is left is valid and not longer than it.
		for limit := 1; limit < 60; limit++ {
			client, log := logged(t, d, allium.ClientOptions{MaxLogDocumentLength: limit})
			if _, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}, {Key: "comment", Value: strings.Repeat("界é😀", 9)}}); err != nil {
				t.Fatal(err)
			}
			got := log.last(t, "Command started", "ping")["command"].String()
			if !utf8.ValidString(got) || len(got) > limit+len(ellipsis) || len(got) < limit-utf8.UTFMax+len(ellipsis) {
				t.Errorf("limit %d: %q has %d bytes", limit, got, len(got))
			}
			client.Close(ctx)
		}
	})
}

// Nothing secret is logged, whatever comes of the command, and the rest is complete.
func TestCommandLogRedaction(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.Any)
	client, log := logged(t, d, allium.ClientOptions{})
	db, ctx := client.Database("admin"), t.Context()
	if _, err := db.RunCommand(ctx, bson.D{{Key: "createUser", Value: "ada"}, {Key: "pwd", Value: "pencil"}, {Key: "roles", Value: bson.A{}}}); err != nil {
		t.Fatal(err)
	}
	if m := log.last(t, "Command started", "createUser"); m["command"].String() != "{}" {
		t.Errorf("command is %v", m["command"])
	}
	if m := log.last(t, "Command succeeded", "createUser"); m["reply"].String() != "{}" {
		t.Errorf("reply is %v", m["reply"])
	}
	if _, err := db.RunCommand(ctx, bson.D{{Key: "createUser", Value: "ada"}, {Key: "pwd", Value: "pencil"}, {Key: "roles", Value: bson.A{}}}); err == nil {
		t.Fatal("a user can be created twice")
	}
	m := log.last(t, "Command failed", "createUser")
	if got := m["failure"].String(); !strings.Contains(got, "REDACTED") || strings.Contains(got, "ada") || !strings.Contains(got, "51003") {
		t.Errorf("failure is %q", got)
	}
	if _, there := m["reply"]; there {
		t.Errorf("the reply is there: %v", m["reply"])
	}
	for _, m := range log.messages {
		for key, v := range m {
			if strings.Contains(v.String(), "pencil") {
				t.Errorf("%s holds the password: %v", key, v)
			}
		}
	}
	started, failed := log.last(t, "Command started", "createUser"), m
	for _, field := range []string{"databaseName", "requestId", "operationId", "driverConnectionId", "serverConnectionId", "serverHost", "serverPort"} {
		if _, there := started[field]; !there || started[field].String() == "" || started[field].String() != failed[field].String() {
			t.Errorf("%s is %v, then %v", field, started[field], failed[field])
		}
	}
	if _, there := started["serviceId"]; there {
		t.Error("there is a service without a load balancer")
	}
	if started["level"].String() != "DEBUG" || started["component"].String() != "command" {
		t.Errorf("level %v, component %v", started["level"], started["component"])
	}
}

// Behind a load balancer events and messages name the service that a command went to.
func TestCommandsNameTheirService(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.LoadBalanced(1))
	var events []event.CommandInfo
	client, log := logged(t, d, allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
		Started:   func(_ context.Context, e *event.CommandStarted) { events = append(events, e.CommandInfo) },
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) { events = append(events, e.CommandInfo) },
		Failed:    func(_ context.Context, e *event.CommandFailed) { events = append(events, e.CommandInfo) },
	}})
	db, ctx := client.Database("admin"), t.Context()
	if err := client.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := db.RunCommand(ctx, bson.D{{Key: "notARealCommand", Value: 1}}); err == nil {
		t.Fatal("no error")
	}
	if len(events) != 4 {
		t.Fatalf("events %v", events)
	}
	for _, e := range events {
		if e.ServiceID == nil {
			t.Errorf("%s: the event names no service", e.CommandName)
			continue
		}
		for _, message := range []string{"Command started", map[string]string{"ping": "Command succeeded"}[e.CommandName], map[string]string{"notARealCommand": "Command failed"}[e.CommandName]} {
			if message == "" {
				continue
			}
			if got := log.last(t, message, e.CommandName)["serviceId"]; got.String() != e.ServiceID.Hex() {
				t.Errorf("%s of %s: service %v, want %s", message, e.CommandName, got, e.ServiceID.Hex())
			}
		}
	}
}

// A command that holds one with credentials is as secret as that one, in the log and in events.
func TestCommandLogRedactsInside(t *testing.T) {
	const secret = "pencil"
	user := bson.D{{Key: "createUser", Value: "ada"}, {Key: "pwd", Value: secret}, {Key: "roles", Value: bson.A{}}}
	for name, cmd := range map[string]bson.D{
		"explain":       {{Key: "explain", Value: user}},
		"explain twice": {{Key: "explain", Value: bson.D{{Key: "explain", Value: user}}}},
		"updateUser":    {{Key: "explain", Value: bson.D{{Key: "updateUser", Value: "ada"}, {Key: "pwd", Value: secret}}}},
		"saslStart":     {{Key: "explain", Value: bson.D{{Key: "saslStart", Value: 1}, {Key: "payload", Value: secret}}}},
		"hello":         {{Key: "explain", Value: bson.D{{Key: "hello", Value: 1}, {Key: "speculativeAuthenticate", Value: bson.D{{Key: "payload", Value: secret}}}}}},
		"applyOps":      {{Key: "applyOps", Value: bson.A{bson.D{{Key: "op", Value: "c"}, {Key: "ns", Value: "admin.$cmd"}, {Key: "o", Value: user}}}}},
		"unknown":       {{Key: "changeUserPassword", Value: "ada"}, {Key: "pwd", Value: secret}},
	} {
		fake := rig.StartFake(t, func(r *fakeserver.Request) {
			reply := bson.D{{Key: "ok", Value: 1}, {Key: "command", Value: secret}}
			if strings.HasPrefix(name, "explain") {
				reply = bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 2}, {Key: "errmsg", Value: "bad command " + secret}}
			}
			doc, err := bson.Marshal(reply)
			if err != nil {
				t.Error(err)
			}
			r.Reply(doc)
		})
		l := &logRecorder{}
		var seen []string
		client, err := allium.Open(fake, allium.ClientOptions{Logger: slog.New(l), LogLevels: map[allium.LogComponent]slog.Level{allium.LogCommand: slog.LevelDebug},
			CommandMonitor: &event.CommandMonitor{
				Started:   func(_ context.Context, e *event.CommandStarted) { seen = append(seen, e.Command.String()) },
				Succeeded: func(_ context.Context, e *event.CommandSucceeded) { seen = append(seen, e.Reply.String()) },
				Failed:    func(_ context.Context, e *event.CommandFailed) { seen = append(seen, e.Failure.Error()) },
			}})
		if err != nil {
			t.Fatal(err)
		}
		client.Database("admin").RunCommand(t.Context(), cmd)
		client.Close(t.Context())
		l.mu.Lock()
		for _, m := range l.messages {
			seen = append(seen, fmt.Sprint(m))
		}
		l.mu.Unlock()
		if all := strings.Join(seen, "\n"); len(seen) < 4 || strings.Contains(all, secret) {
			t.Errorf("%s: the password is shown, or nothing is:\n%s", name, all)
		}
	}
}

// A logger that does not want commands costs nothing.
func TestCommandLogCost(t *testing.T) {
	norace.Skip(t, "the race detector allocates")
	fake := rig.StartFake(t, func(r *fakeserver.Request) { r.Reply(fakeserver.OK()) })
	uri := fake
	allocs := func(o allium.ClientOptions) float64 {
		client, err := allium.Open(uri, o)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		ping := func() {
			if err := client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ping()
		return testing.AllocsPerRun(200, ping)
	}
	silent := slog.New(slog.NewTextHandler(nil, &slog.HandlerOptions{Level: slog.LevelError}))
	without := allocs(allium.ClientOptions{})
	if with := allocs(allium.ClientOptions{Logger: silent}); with > without+0.5 {
		t.Errorf("a ping allocates %v times with a logger that takes errors only, %v times without", with, without)
	}
}

// The events of a command have one request id, which no other command has, and a duration that is
// the command's alone, whatever listeners do (specification: Command Logging and Monitoring).
func TestRequestIDsAndDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends, durations := map[int64]int64{}, map[string][]time.Duration{}
		end := func(i event.CommandInfo, d time.Duration) {
			ends[i.RequestID]--
			durations[i.CommandName] = append(durations[i.CommandName], d)
		}
		d, client, _ := rig.Bubble(t, allium.ClientOptions{RetryReads: new(false), CommandMonitor: &event.CommandMonitor{
			Started: func(_ context.Context, e *event.CommandStarted) {
				time.Sleep(time.Hour) // a slow listener
				if ends[e.RequestID]++; ends[e.RequestID] != 1 {
					t.Errorf("%s has the request id %d, as one before", e.CommandName, e.RequestID)
				}
			},
			Succeeded: func(_ context.Context, e *event.CommandSucceeded) { end(e.CommandInfo, e.Duration) },
			Failed:    func(_ context.Context, e *event.CommandFailed) { end(e.CommandInfo, e.Duration) },
		}}, mongotest.ReplicaSet(1))
		coll := client.Database("d").Collection("c")
		d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Block: time.Second})
		if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		d.FailCommand(mongotest.Fail{Commands: []string{"count"}, Times: 1, Block: 2 * time.Second, Code: 8})
		if _, err := coll.EstimatedDocumentCount(t.Context()); err == nil {
			t.Error("no error")
		}
		d.FailCommand(mongotest.Fail{Commands: []string{"distinct"}, Times: 1, Block: 3 * time.Second, CloseConnection: true})
		if _, err := allium.Distinct[int](t.Context(), coll, "x", bson.D{}); err == nil {
			t.Error("no error")
		}
		for name, want := range map[string]time.Duration{"insert": time.Second, "count": 2 * time.Second, "distinct": 3 * time.Second} {
			if got := durations[name]; len(got) != 1 || got[0] != want {
				t.Errorf("%s took %v, want %v", name, got, want)
			}
		}
		for id, n := range ends {
			if n != 0 {
				t.Errorf("request %d has begun and not ended once each", id)
			}
		}
	})
}
