package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
	"allium/stats"
)

// statsRig is a client with an in-memory network in a bubble.
func statsRig(t *testing.T, o allium.ClientOptions) (*mongotest.Deployment, *allium.Client) {
	t.Helper()
	d := testdeploy.Mock(t, "an in-memory network", mongotest.ReplicaSet(1), mongotest.InMemory())
	o.Dialer = d
	client := rig.Open(t, d.URI(), o)
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d, client
}

// checkStats holds what is true of all figures.
func checkStats(t *testing.T, s stats.Client) {
	t.Helper()
	for _, p := range s.Pools {
		if p.Open != p.InUse+p.Idle+p.Connecting+p.Draining || p.MaxOpen > 0 && p.Open > p.MaxOpen {
			t.Errorf("the numbers of connections disagree: %+v", p)
		}
		if p.Created-p.Closed.Total() != int64(p.Open) {
			t.Errorf("%d made, %d closed and %d open", p.Created, p.Closed.Total(), p.Open)
		}
	}
	if len(s.OldestOperations) > s.Operations || len(s.OldestCursors) > stats.Listed || len(s.RecentEvents) > stats.Listed || len(s.RecentSlowOperations) > stats.Listed {
		t.Errorf("the lists are too long: %+v", s)
	}
}

// Two operations hold all connections, and a third one waits for one: all are seen, with how long
// they have been under way, and what is left afterwards.
func TestStatsOfOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := statsRig(t, allium.ClientOptions{MaxPoolSize: new(2), MinPoolSize: new(1)})
		coll := client.Database("app").Collection("users")
		idle := client.Stats()
		checkStats(t, idle)
		if p := idle.Pools[0]; len(idle.Pools) != 1 || p.State != "ready" || p.Idle != 1 || p.MaxOpen != 2 || p.MinOpen != 1 || p.Waiting != 0 || p.WaitTimeouts != 0 {
			t.Errorf("idle: %+v", p)
		}
		if idle.Operations != 0 || idle.Sessions != (stats.Sessions{Pooled: 1}) || idle.Cursors != 0 {
			t.Errorf("idle: %+v", idle)
		}

		d.FailCommand(mongotest.Fail{Commands: []string{"find", "count"}, Times: 3, Block: 5 * time.Second})
		var done sync.WaitGroup
		done.Go(func() { coll.FindOne(t.Context(), bson.D{}) })
		time.Sleep(time.Second)
		done.Go(func() { coll.Count(t.Context(), bson.D{}) })
		time.Sleep(time.Second)
		done.Go(func() { client.Database("app").RunCommand(t.Context(), bson.D{{Key: "dbStats", Value: 1}}) })
		time.Sleep(time.Second)
		busy := client.Stats()
		checkStats(t, busy)
		if p := busy.Pools[0]; p.InUse != 2 || p.Waiting != 1 || p.WaitCount < 2 || busy.Sessions.InUse != 2 {
			t.Errorf("busy: %+v, %+v", p, busy.Sessions)
		}
		var seen []string
		for _, o := range busy.OldestOperations {
			seen = append(seen, fmt.Sprint(o.Command, " ", o.Namespace, " ", o.Phase, " ", time.Since(o.Started), " ", o.Addr == d.Primary().Addr()))
		}
		want := []string{"find app.users command 3s true", "count app.users command 2s true", "dbStats app checkout 1s true"}
		if !slices.Equal(seen, want) || busy.Operations != 3 {
			t.Errorf("in flight: %q, want %q", seen, want)
		}
		done.Wait()

		after := client.Stats()
		checkStats(t, after)
		if p := after.Pools[0]; p.WaitDuration < 3*time.Second || p.WaitDuration > 4*time.Second || p.InUse != 0 || p.Idle != 2 || after.Operations != 0 {
			t.Errorf("after: %+v", p)
		}
		// The one that waited took three seconds, all of them in the queue.
		slow := after.RecentSlowOperations
		if len(slow) != 3 || after.SlowOperations != 3 || after.SlowThreshold != 100*time.Millisecond {
			t.Fatalf("slow: %d of %d: %+v", len(slow), after.SlowOperations, slow)
		}
		waited := slow[slices.IndexFunc(slow, func(o stats.SlowOperation) bool { return o.Command == "dbStats" })]
		if waited.Checkout != waited.Duration || waited.Checkout != 3*time.Second || waited.Attempts != 1 {
			t.Errorf("the one that waited: %+v", waited)
		}

		d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 2, Block: 5 * time.Second})
		for range 2 {
			done.Go(func() { coll.FindOne(t.Context(), bson.D{}) })
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := client.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want no connection in time", err)
		}
		late := client.Stats()
		if p := late.Pools[0]; p.WaitTimeouts != 1 || late.RecentSlowOperations[0].Failure != "timeout: connection checkout" || late.RecentSlowOperations[0].Checkout != time.Second {
			t.Errorf("a checkout that timed out: %+v, %+v", p, late.RecentSlowOperations[0])
		}
		done.Wait()
	})
}

// Cursors and sessions are counted while they are open.
func TestStatsOfCursorsAndSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := statsRig(t, allium.ClientOptions{})
		coll := client.Database("app").Collection("users")
		if _, err := coll.InsertMany(t.Context(), []bson.D{{}, {}, {}, {}}); err != nil {
			t.Fatal(err)
		}
		cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
		if err != nil {
			t.Fatal(err)
		}
		opened := time.Now()
		session, err := client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := coll.FindOne(allium.WithSession(t.Context(), session), bson.D{}); err != nil {
			t.Fatal(err)
		}
		s := client.Stats()
		checkStats(t, s)
		want := []stats.Cursor{{ID: cur.ID(), Namespace: "app.users", Addr: d.Primary().Addr(), Opened: opened}}
		if s.Cursors != 1 || !slices.Equal(s.OldestCursors, want) || s.Sessions.InUse != 2 {
			t.Errorf("%d cursors %+v, want %+v; sessions %+v", s.Cursors, s.OldestCursors, want, s.Sessions)
		}
		cur.Close(t.Context())
		session.End(t.Context())
		if s := client.Stats(); s.Cursors != 0 || len(s.OldestCursors) != 0 || s.Sessions.InUse != 0 || s.Sessions.Pooled < 2 {
			t.Errorf("closed: %d cursors, sessions %+v", s.Cursors, s.Sessions)
		}
	})
}

// What a pool has lost is counted by reason, and the events say what happened to the deployment.
func TestStatsAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := statsRig(t, allium.ClientOptions{MaxIdleTime: new(time.Minute)})
		time.Sleep(2*time.Minute + 3*time.Second) // and no heartbeat comes at the same instant
		if p := client.Stats().Pools[0]; p.Closed != (stats.Closed{Idle: 1}) || p.Open != 0 {
			t.Errorf("after a minute without work: %+v", p)
		}
		// The check that follows the error takes a while, so that one sees what is between the two.
		d.Node(0).SetNetFaults(mongotest.NetFaults{Latency: 10 * time.Millisecond})
		d.FailCommand(mongotest.Fail{Commands: []string{"ping"}, Times: 1, CloseConnection: true})
		if err := client.Ping(t.Context()); err == nil {
			t.Fatal("no error")
		}
		s := client.Stats()
		checkStats(t, s)
		if p := s.Pools[0]; p.Closed.Error != 1 || p.Generation != 1 || p.State != "paused" || p.PausedBy == "" {
			t.Errorf("after a network error: %+v", p)
		}
		if err := client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.Node(0).SetNetFaults(mongotest.NetFaults{})
		synctest.Wait() // until what goes on beside the operation has been noted
		var texts []string
		for _, e := range slices.Backward(client.Stats().RecentEvents) {
			texts = append(texts, e.Text)
		}
		all := strings.Join(texts, "; ")
		at := 0
		for _, want := range []string{"monitoring begins", "joins", "Unknown -> RSPrimary", "ReplicaSetNoPrimary -> ReplicaSetWithPrimary",
			"RSPrimary -> Unknown", "pool cleared", "Unknown -> RSPrimary"} {
			i := strings.Index(all[at:], want)
			if i < 0 {
				t.Errorf("no %q in its place: %s", want, all)
				break
			}
			at += i + 1
		}
		for range 3 * stats.Listed { // however much happens, no more is kept
			d.FailCommand(mongotest.Fail{Commands: []string{"ping"}, Times: 1, CloseConnection: true})
			client.Ping(t.Context())
			client.Ping(t.Context())
		}
		s = client.Stats()
		checkStats(t, s)
		if len(s.RecentEvents) != stats.Listed || s.RecentEvents[0].Time.Before(s.RecentEvents[1].Time) {
			t.Errorf("%d events are kept", len(s.RecentEvents))
		}
		client.Close(t.Context())
		if s := client.Stats(); s.RecentEvents[0].Text != "monitoring ends" || s.Operations != 0 {
			t.Errorf("after the end: %+v", s)
		}
	})
}

// The figures are asked for while operations run.
func TestStatsWhileBusy(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.Any)
	client := rig.Open(t, d.URI(), allium.ClientOptions{MaxPoolSize: new(4), SlowOperation: -1})
	coll := client.Database("app").Collection("users")
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for i := range 50 {
				if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "i", Value: i}}); err != nil {
					t.Error(err)
				}
				cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
				if err != nil {
					t.Error(err)
					return
				}
				cur.Next(t.Context())
				cur.Close(t.Context())
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	for {
		s := client.Stats()
		checkStats(t, s)
		select {
		case <-done:
			if s = client.Stats(); s.Operations != 0 || s.Cursors != 0 || s.Sessions.InUse != 0 || s.Pools[0].InUse != 0 || s.SlowOperations != 0 {
				t.Errorf("something is left: %+v", s)
			}
			return
		default:
		}
	}
}

// slowLog collects log messages.
type slowLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *slowLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines returns the messages about slow operations.
func (l *slowLog) lines() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "Slow operation") {
			out = append(out, line)
		}
	}
	return out
}

// planted is a value that must not be seen anywhere; it stands in each place that can have one.
const planted = "planted-1234567"

// plantedOperations put it into filters, updates, documents, options and pipelines.
func plantedOperations(ctx context.Context, client *allium.Client) map[string]func() error {
	coll := client.Database("app").Collection("users")
	e := func(k string, v any) bson.E { return bson.E{Key: k, Value: v} }
	filter := bson.D{e("_id", planted), e("name", bson.D{e("$in", bson.A{planted, "x"})}), e("sub", bson.D{e(planted, planted)}),
		e("$or", bson.A{bson.D{e("a", bson.D{e("$gt", planted)})}, bson.D{e("a", bson.D{e("$gt", "y")})}, bson.D{e("tags", bson.D{e("$elemMatch", bson.D{e("k", planted)})})}}),
		e("text", bson.D{e("$not", bson.D{e("$regex", planted), e("$options", "i")})}), e("$expr", bson.D{e("$eq", bson.A{"$a", planted})}), e("$comment", planted)}
	one := func(_ any, err error) error {
		if errors.Is(err, mongoerr.ErrNoDocuments) {
			return nil
		}
		return err
	}
	return map[string]func() error{
		"find": func() error {
			_, err := coll.FindOne(ctx, filter, allium.FindOneOptions{Comment: planted, Sort: bson.D{e("a", 1)}})
			return one(nil, err)
		},
		"aggregate": func() error {
			_, err := coll.Aggregate(ctx, bson.A{bson.D{e("$match", filter)}, bson.D{e("$set", bson.D{e("x", planted)})}, bson.D{e("$limit", 1)}})
			return err
		},
		"insert": func() error { _, err := coll.InsertOne(ctx, bson.D{e("secret", planted)}); return err },
		"update": func() error {
			_, err := coll.UpdateMany(ctx, filter, bson.D{e("$set", bson.D{e("x", planted)})}, allium.UpdateOptions{Comment: planted})
			return err
		},
		"delete":   func() error { _, err := coll.DeleteOne(ctx, filter); return err },
		"distinct": func() error { _, err := allium.Distinct[string](ctx, coll, "name", filter); return err },
		"count":    func() error { _, err := coll.Count(ctx, filter); return err },
		"findAndModify": func() error {
			_, err := coll.FindOneAndUpdate(ctx, filter, bson.D{e("$set", bson.D{e("x", planted)})})
			return one(nil, err)
		},
		"bulkWrite": func() error {
			_, err := client.BulkWrite(ctx, []allium.WriteModel{client.Database("app").Collection("users").UpdateOneModel(filter, bson.D{e("$set", bson.D{e("x", planted)})})})
			return err
		},
		"saslStart": func() error { // fails, and its body is a secret
			client.Database("admin").RunCommand(ctx, bson.D{e("saslStart", 1), e("payload", planted), e("filter", bson.D{e(planted, 1)})})
			return nil
		},
		"renamed": func() error { // an error that quotes a value
			if err := one(coll.InsertOne(ctx, bson.D{e("_id", planted+"d")})); err != nil {
				return err
			}
			_, err := coll.FindOneAndUpdate(ctx, bson.D{e("_id", "other")}, bson.D{e("$set", bson.D{e("_id", planted+"d")})}, allium.FindOneAndUpdateOptions{Upsert: true})
			if err == nil {
				return errors.New("no error for a value that cannot be")
			}
			return nil
		},
	}
}

const plantedShape = `{_id: ?, name: {$in: ?}, sub: ?, $or: [{a: {$gt: ?}}, {tags: {$elemMatch: {k: ?}}}], text: {$not: {$regex: ?, $options: ?}}, $expr: ?, $comment: ?}`

// Every kind of operation, made slow, is logged with what it is about and without any value.
func TestSlowOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slowLog{}
		d, client := statsRig(t, allium.ClientOptions{
			SlowOperation: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil)), RetryWrites: new(false),
			LogLevels: map[allium.LogComponent]slog.Level{allium.LogCommand: slog.LevelWarn},
		})
		if n := len(log.lines()); n != 0 {
			t.Errorf("%d messages about a ping", n)
		}
		shapes := map[string]string{"find": plantedShape, "aggregate": "[{$match: " + plantedShape + "}, $set, $limit]", "insert": "", "update": plantedShape,
			"delete": plantedShape, "distinct": plantedShape, "count": plantedShape, "findAndModify": plantedShape, "bulkWrite": plantedShape, "saslStart": ""}
		for name, do := range plantedOperations(t.Context(), client) {
			d.FailCommand(mongotest.Fail{Commands: []string{name, "insert", "findAndModify"}, Times: 3, Block: 80 * time.Millisecond})
			before := len(log.lines())
			if err := do(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			d.ClearFailures()
			lines := log.lines()[before:]
			if len(lines) == 0 {
				t.Errorf("%s is not logged", name)
				continue
			}
			shape, ok := shapes[name]
			if !ok {
				continue
			}
			s := client.Stats().RecentSlowOperations[0]
			if s.Shape != shape || s.Command != name || s.Duration < 80*time.Millisecond || s.Attempts != 1 {
				t.Errorf("%s: %+v, want the shape %s", name, s, shape)
			}
			host, _, _ := strings.Cut(d.Primary().Addr(), ":")
			for _, want := range []string{"level=WARN", "commandName=" + name, "durationMS=80", "serverHost=" + host, "component=command", "attempts=1"} {
				if !strings.Contains(lines[0], want) {
					t.Errorf("%s: no %s in %s", name, want, lines[0])
				}
			}
			if name != "bulkWrite" && name != "saslStart" && !strings.Contains(lines[0], "namespace=app.users") {
				t.Errorf("%s: no namespace: %s", name, lines[0])
			}
		}
		if text := fmt.Sprintf("%+v", client.Stats()); strings.Contains(text, "planted") {
			t.Errorf("a value is shown: %s", text)
		}
		if strings.Contains(log.text.String(), "planted") {
			t.Errorf("a value is logged: %s", log.text.String())
		}
	})
}

// Where the messages go: nowhere by default, to the logger unless its level says otherwise, and to
// slog's default if there is a threshold and no logger.
func TestSlowOperationLog(t *testing.T) {
	byDefault := &slowLog{}
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(byDefault, nil)))
	defer slog.SetDefault(old)
	own := &slowLog{}
	logger := slog.New(slog.NewTextHandler(own, nil))
	for name, test := range map[string]struct {
		o                allium.ClientOptions
		byDefault, owned int
		listed           int64
	}{
		"nothing set":       {o: allium.ClientOptions{}, listed: 1},
		"a logger":          {o: allium.ClientOptions{Logger: logger}, listed: 1},
		"a threshold":       {o: allium.ClientOptions{SlowOperation: time.Second}, byDefault: 1, listed: 1},
		"both":              {o: allium.ClientOptions{SlowOperation: time.Second, Logger: logger}, owned: 1, listed: 1},
		"a level above":     {o: allium.ClientOptions{SlowOperation: time.Second, Logger: logger, LogLevels: map[allium.LogComponent]slog.Level{allium.LogCommand: slog.LevelError}}, listed: 1},
		"a level, no log":   {o: allium.ClientOptions{SlowOperation: time.Second, LogLevels: map[allium.LogComponent]slog.Level{allium.LogCommand: slog.LevelError}}, listed: 1},
		"a great threshold": {o: allium.ClientOptions{SlowOperation: time.Minute, Logger: logger}},
		"none":              {o: allium.ClientOptions{SlowOperation: -1, Logger: logger}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, client := statsRig(t, test.o)
			n, m := len(byDefault.lines()), len(own.lines())
			d.FailCommand(mongotest.Fail{Commands: []string{"ping"}, Times: 1, Block: 2 * time.Second})
			if err := client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := [2]int{len(byDefault.lines()) - n, len(own.lines()) - m}, [2]int{test.byDefault, test.owned}; got != want {
				t.Errorf("%s: messages by default and to the logger: %v, want %v", name, got, want)
			}
			if s := client.Stats(); s.SlowOperations != test.listed || int64(len(s.RecentSlowOperations)) != test.listed {
				t.Errorf("%s: %d listed, want %d", name, s.SlowOperations, test.listed)
			}
		})
	}
}

// A retry after overload tells how long it waited for it, and how many attempts there were.
func TestSlowOperationPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := statsRig(t, allium.ClientOptions{})
		stream, err := client.Watch(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		stream.TryNext(t.Context()) // waits for a second at the server
		stream.Close(t.Context())
		if n := client.Stats().SlowOperations; n != 0 {
			t.Errorf("%d operations are slow after a change stream has waited for news", n)
		}
		d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 2, Code: 462, Block: 60 * time.Millisecond,
			Labels: []string{mongoerr.LabelSystemOverloaded, mongoerr.LabelRetryable}})
		if _, err := client.Database("app").Collection("users").FindOne(t.Context(), bson.D{}); !errors.Is(err, mongoerr.ErrNoDocuments) {
			t.Fatal(err)
		}
		s := client.Stats()
		if op := s.RecentSlowOperations[0]; op.Attempts != 3 || op.Duration != 120*time.Millisecond+op.Backoff || op.Failure != "" {
			t.Errorf("%+v", op)
		}
		d.Primary().RefuseConnections()
		d.Primary().CloseConnections()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		client.Ping(ctx) // finds out
		if err := client.Ping(ctx); err == nil {
			t.Fatal("no error")
		}
		op := client.Stats().RecentSlowOperations[0]
		if op.Selection < 4*time.Second || op.Failure != "timeout: server selection" || op.Command != "ping" {
			t.Errorf("no server: %+v", op)
		}
		if err := d.Primary().AcceptConnections(); err != nil {
			t.Fatal(err)
		}
	})
}

// Behind a load balancer a cursor has its connection until the server has no more documents, or it
// is closed, however many batches it has had (specification: Load Balancer Support, "Connection
// Pinning", "Cursors").
func TestCursorsPinUntilTheyEnd(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		for name, read := range map[string]int{"to the end": n + 1, "closed": n} {
			t.Run(fmt.Sprintf("%d/%s", n, name), func(t *testing.T) {
				r := rig.New(t, "load-balanced")
				docs := make([]bson.D, 2*n)
				for i := range docs {
					docs[i] = bson.D{{Key: "i", Value: i}}
				}
				coll := r.Client.Database("cursors").Collection("pinned")
				if _, err := coll.InsertMany(t.Context(), docs); err != nil {
					t.Fatal(err)
				}
				pinned := func() int { return r.Client.Stats().Pools[0].InUseByCursors }
				cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
				if err != nil {
					t.Fatal(err)
				}
				for i := range min(2*read, len(docs)) {
					if !cur.Next(t.Context()) {
						t.Fatal(cur.Err())
					}
					if got := pinned(); got != 1 {
						t.Fatalf("document %d of %d: %d connections are pinned", i+1, len(docs), got)
					}
				}
				if name == "closed" {
					err = cur.Close(t.Context())
				} else if cur.Next(t.Context()) {
					t.Error("one more document")
				}
				if got := pinned(); err != nil || cur.Err() != nil || got != 0 {
					t.Errorf("at the end %d connections are pinned: %v, %v", got, err, cur.Err())
				}
			})
		}
	}
}

// TestWarningsOfSettings: what is ignored in a connection string is a warning for the client's
// logger; if the program says nothing about logging, for slog's default one (specification:
// Connection String, "Warnings").
func TestWarningsOfSettings(t *testing.T) {
	byDefault, own := &slowLog{}, &slowLog{}
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(byDefault, nil)))
	defer slog.SetDefault(old)
	logger := slog.New(slog.NewTextHandler(own, nil))
	level := func(l slog.Level) map[allium.LogComponent]slog.Level {
		return map[allium.LogComponent]slog.Level{allium.LogConnection: l}
	}
	for name, tc := range map[string]struct {
		o              allium.ClientOptions
		byDefault, own bool
	}{
		"nothing said":            {byDefault: true},
		"a logger":                {o: allium.ClientOptions{Logger: logger}, own: true},
		"a logger with the level": {o: allium.ClientOptions{Logger: logger, LogLevels: level(slog.LevelWarn)}, own: true},
		"a logger with less":      {o: allium.ClientOptions{Logger: logger, LogLevels: level(slog.LevelError)}},
		"only a level above":      {o: allium.ClientOptions{LogLevels: level(slog.LevelError)}},
	} {
		byDefault.text.Reset()
		own.text.Reset()
		client, err := allium.Open("mongodb://host.invalid/?retryWritess=true", tc.o)
		if err != nil {
			t.Fatal(err)
		}
		client.Close(t.Context())
		has := func(l *slowLog) bool { return strings.Contains(l.text.String(), "retrywritess") }
		if has(byDefault) != tc.byDefault || has(own) != tc.own {
			t.Errorf("%s: by default %q, own %q", name, &byDefault.text, &own.text)
		}
	}
}
