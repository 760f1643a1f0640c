package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/internal/wire"
	"allium/mongoerr"
	"allium/mongotest"
)

// wireTap remembers the messages that a client writes: the commands' names, with a + where more
// than one reply is allowed, and a - where none is expected.
type wireTap struct {
	dialer allium.Dialer
	mu     sync.Mutex
	sent   []string
}

func (w *wireTap) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := w.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &tappedConn{Conn: c, tap: w}, nil
}

type tappedConn struct {
	net.Conn
	tap *wireTap
}

func (c *tappedConn) Write(b []byte) (int, error) {
	if m, err := wire.ParseMsg(b); err == nil {
		for name := range m.Body.All() {
			name = strings.Clone(name)
			if m.Flags&wire.ExhaustAllowed != 0 {
				name += "+"
			}
			if m.Flags&wire.MoreToCome != 0 {
				name += "-"
			}
			c.tap.mu.Lock()
			c.tap.sent = append(c.tap.sent, name)
			c.tap.mu.Unlock()
			break
		}
	}
	return c.Conn.Write(b)
}

// of returns what was sent of some commands.
func (w *wireTap) of(names ...string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for _, name := range w.sent {
		if slices.Contains(names, strings.TrimRight(name, "+-")) {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// exhaustRig is a client with a collection of documents, and what can be seen of it from outside.
type exhaustRig struct {
	d    *mongotest.Deployment
	coll *allium.UntypedCollection
	tap  *wireTap
	rec  *rig.Recorder

	out       atomic.Int64 // connections that are checked out
	mu        sync.Mutex
	succeeded []string // the commands that did
	closed    []string
}

const (
	exhaustDocs = 50
	exhaustSize = 50 << 10 // of a document: the server cannot send them all ahead
)

func startExhaust(t *testing.T, o ...mongotest.Option) *exhaustRig {
	t.Helper()
	r := &exhaustRig{d: testdeploy.Mock(t, "an in-memory network", append(o, mongotest.InMemory())...), rec: &rig.Recorder{}}
	r.tap = &wireTap{dialer: r.d}
	monitor := r.rec.Monitor()
	monitor.Succeeded = func(_ context.Context, e *event.CommandSucceeded) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.succeeded = append(r.succeeded, e.CommandName)
	}
	client := rig.Open(t, r.d.URI(), allium.ClientOptions{Dialer: r.tap, CommandMonitor: monitor, PoolMonitor: &event.PoolMonitor{
		ConnectionCheckedOut: func(*event.ConnectionCheckedOut) { r.out.Add(1) },
		ConnectionCheckedIn:  func(*event.ConnectionCheckedIn) { r.out.Add(-1) },
		ConnectionClosed: func(e *event.ConnectionClosed) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.closed = append(r.closed, e.Reason)
		},
	}})
	r.coll = client.Database("d").Collection("c")
	var docs []bson.D
	for i := range exhaustDocs {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "text", Value: strings.Repeat("x", exhaustSize)}})
	}
	if _, err := r.coll.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *exhaustRig) find(t *testing.T, ctx context.Context, batch int32) *allium.Cursor[bson.D] {
	t.Helper()
	cur, err := r.coll.Find(ctx, bson.D{}, allium.FindOptions{Exhaust: true, BatchSize: rig.BatchSize(batch), Sort: bson.D{{Key: "_id", Value: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return cur
}

// read moves the cursor over documents from first on, which must come in order, and returns how
// many there were.
func (r *exhaustRig) read(t *testing.T, ctx context.Context, cur *allium.Cursor[bson.D], first, most int) (n int) {
	t.Helper()
	for n < most && cur.Next(ctx) {
		if id := fmt.Sprint(cur.Current()[0].Value); id != fmt.Sprint(first+n) {
			t.Fatalf("document %s, want %d", id, first+n)
		}
		n++
	}
	return n
}

// check checks what was sent to read and to kill the cursor, and that all connections are back, why
// some were closed, and that the rest works.
func (r *exhaustRig) check(t *testing.T, wire string, closed ...string) {
	t.Helper()
	if got := r.tap.of("getMore", "killCursors"); got != wire {
		t.Errorf("sent %q, want %q", got, wire)
	}
	if n := r.out.Load(); n != 0 {
		t.Errorf("%d connections are checked out", n)
	}
	told := func() []string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.closed)
	}
	for len(told()) < len(closed) { // on a goroutine of the pool's
		time.Sleep(time.Millisecond)
	}
	if got := told(); !slices.Equal(got, closed) {
		t.Errorf("connections were closed for %q, want %q", got, closed)
	}
	if n, err := r.coll.CountDocuments(t.Context(), bson.D{}); err != nil || n != exhaustDocs {
		t.Errorf("afterwards: %d documents, %v", n, err)
	}
}

// gone checks that the server has forgotten a cursor.
func (r *exhaustRig) gone(t *testing.T, id int64) {
	t.Helper()
	_, err := r.coll.Database().RunCommand(t.Context(), bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}})
	if e, ok := errors.AsType[*mongoerr.ServerError](err); !ok || e.Code != 43 {
		t.Errorf("getMore on a cursor that was closed: %v", err)
	}
}

func TestExhaustCursor(t *testing.T) {
	asked := strings.TrimSpace(strings.Repeat("getMore ", 5))
	for name, tc := range map[string]struct {
		topology []mongotest.Option
		wire     string
	}{
		"standalone":         {[]mongotest.Option{mongotest.Standalone()}, "getMore+"},
		"4.2":                {[]mongotest.Option{mongotest.ReplicaSet(1), mongotest.Version("4.2")}, "getMore+"},
		"replica set":        {[]mongotest.Option{mongotest.ReplicaSet(1)}, "getMore+"},
		"sharded":            {[]mongotest.Option{mongotest.Sharded(1, 1)}, "getMore+"},
		"sharded before 7.1": {[]mongotest.Option{mongotest.Sharded(1, 1), mongotest.Version("7.0")}, asked},
		"load balanced":      {[]mongotest.Option{mongotest.LoadBalanced(1)}, "getMore+"},
	} {
		t.Run(name, func(t *testing.T) {
			r := startExhaust(t, tc.topology...)
			cur := r.find(t, t.Context(), 9)
			defer cur.Close(t.Context())
			if n := r.read(t, t.Context(), cur, 0, 20); n != 20 {
				t.Fatalf("%d documents, %v", n, cur.Err())
			}
			if n := r.out.Load(); n != 1 && tc.wire == "getMore+" {
				t.Errorf("%d connections are checked out, want the cursor's", n)
			}
			if _, err := r.coll.FindOne(t.Context(), bson.D{}); err != nil {
				t.Errorf("another operation meanwhile: %v", err)
			}
			if n := r.read(t, t.Context(), cur, 20, 100); n != 30 || cur.Err() != nil {
				t.Errorf("%d documents, %v", n, cur.Err())
			}
			r.check(t, tc.wire)
			more := r.rec.Of("getMore") // one for each batch, however it came
			if len(more) != 5 {
				t.Errorf("%d events of getMores, want 5", len(more))
			}
			for _, m := range more {
				if m.Field("batchSize") != "9" || m.Field("collection") != `"c"` || m.Body.Lookup("getMore").IsZero() {
					t.Errorf("getMore is %v", m.Body)
				}
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if n := len(slices.DeleteFunc(slices.Clone(r.succeeded), func(s string) bool { return s != "getMore" })); n != 5 {
				t.Errorf("%d getMores succeeded, want 5", n)
			}
		})
	}
}

func TestExhaustCursorLeftEarly(t *testing.T) {
	for name, tc := range map[string]struct {
		topology mongotest.Option
		wire     string
	}{
		"replica set":   {mongotest.ReplicaSet(1), "getMore+ killCursors"},
		"load balanced": {mongotest.LoadBalanced(1), "getMore+"}, // the connection is the cursor's only one
	} {
		t.Run(name, func(t *testing.T) {
			r := startExhaust(t, tc.topology)
			cur := r.find(t, t.Context(), 2)
			if n := r.read(t, t.Context(), cur, 0, 5); n != 5 {
				t.Fatalf("%d documents, %v", n, cur.Err())
			}
			id := cur.ID()
			if err := cur.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.check(t, tc.wire, event.ClosedError)
			if name == "replica set" {
				r.gone(t, id)
			}
		})
	}
	t.Run("before a getMore", func(t *testing.T) {
		r := startExhaust(t, mongotest.ReplicaSet(1))
		cur := r.find(t, t.Context(), 2)
		id := cur.ID()
		cur.Close(t.Context())
		r.check(t, "killCursors")
		r.gone(t, id)
	})
	t.Run("by the client", func(t *testing.T) {
		r := startExhaust(t, mongotest.ReplicaSet(1))
		cur := r.find(t, t.Context(), 2)
		r.read(t, t.Context(), cur, 0, 5)
		if err := r.coll.Database().Client().Close(context.Background()); err != nil {
			t.Error(err)
		}
		for cur.Next(t.Context()) {
		}
		if !errors.Is(cur.Err(), mongoerr.ErrClientClosed) {
			t.Errorf("error %v", cur.Err())
		}
		cur.Close(t.Context())
		if n := r.out.Load(); n != 0 {
			t.Errorf("%d connections are checked out", n)
		}
	})
}

func TestExhaustCursorFails(t *testing.T) {
	// fail reads until the third batch that is streamed fails.
	fail := func(t *testing.T, r *exhaustRig, f mongotest.Fail) *allium.Cursor[bson.D] {
		f.Commands, f.Skip = []string{"getMore"}, 2
		r.d.FailCommand(f)
		cur := r.find(t, t.Context(), 2)
		if n := r.read(t, t.Context(), cur, 0, 100); n != 6 || cur.Err() == nil {
			t.Errorf("%d documents, %v", n, cur.Err())
		}
		r.d.ClearFailures()
		if n := r.out.Load(); n != 0 {
			t.Errorf("%d connections are checked out", n)
		}
		return cur
	}
	t.Run("server error", func(t *testing.T) {
		r := startExhaust(t, mongotest.ReplicaSet(1))
		cur := fail(t, r, mongotest.Fail{Code: 96})
		id := cur.ID()
		cur.Close(t.Context())
		r.check(t, "getMore+ killCursors") // the error ended the stream: the connection is as good as before
		r.gone(t, id)
	})
	t.Run("connection", func(t *testing.T) {
		r := startExhaust(t, mongotest.ReplicaSet(1))
		cur := fail(t, r, mongotest.Fail{CloseConnection: true})
		if _, ok := errors.AsType[*mongoerr.ConnectionError](cur.Err()); !ok {
			t.Errorf("error %v", cur.Err())
		}
		r.check(t, "getMore+", event.ClosedError) // not tried again
		r.gone(t, cur.ID())                       // the server does not stream to nobody
		cur.Close(t.Context())
	})
}

// A context that ends while the server streams leaves nothing that could be waited for: the
// connection is closed.
func TestExhaustCursorCancelled(t *testing.T) {
	for _, nth := range []int32{1, 3} {
		t.Run(fmt.Sprint("getMore ", nth), func(t *testing.T) {
			r := startExhaust(t, mongotest.ReplicaSet(1))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var seen atomic.Int32
			release := make(chan struct{})
			r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if c.Name == "getMore" && seen.Add(1) == nth {
					cancel()
					<-release
				}
				return nil, nil
			})
			cur := r.find(t, ctx, 2)
			n := 0
			for n < exhaustDocs && cur.Next(ctx) {
				n++
			}
			// What the server had sent before may still have been read, or not.
			if !errors.Is(cur.Err(), context.Canceled) || n > int(nth)*2 || n%2 != 0 {
				t.Errorf("%d documents, %v", n, cur.Err())
			}
			close(release)
			r.d.OnCommand(nil)
			id := cur.ID()
			cur.Close(ctx)
			r.check(t, "getMore+ killCursors", event.ClosedError)
			r.gone(t, id)
		})
	}
}

// In a transaction the server must be asked for each batch, and the options that streaming excludes
// are refused.
func TestExhaustCursorRules(t *testing.T) {
	r := startExhaust(t, mongotest.ReplicaSet(1))
	err := r.coll.Database().Client().Transact(t.Context(), func(ctx context.Context) error {
		cur := r.find(t, ctx, 20)
		if n := r.read(t, ctx, cur, 0, 100); n != exhaustDocs {
			t.Errorf("%d documents, %v", n, cur.Err())
		}
		return cur.Close(ctx)
	})
	if err != nil {
		t.Error(err)
	}
	r.check(t, "getMore getMore")
	for name, o := range map[string]allium.FindOptions{
		"limit":          {Exhaust: true, Limit: 1},
		"tailable":       {Exhaust: true, CursorType: allium.CursorTailable},
		"tailable await": {Exhaust: true, CursorType: allium.CursorTailableAwait},
	} {
		if _, err := r.coll.Find(t.Context(), bson.D{}, o); err == nil || !strings.Contains(err.Error(), "Exhaust") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message says by its flags whether replies are expected: none of a write that is not to be
// acknowledged, and one, but for streams, of anything else (specification: OP_MSG, "moreToCome").
func TestFlagsOfMessages(t *testing.T) {
	r := startExhaust(t)
	ctx, none := t.Context(), r.coll.With(allium.CollectionOptions{WriteConcern: consistency.Unacknowledged()})
	if _, err := none.InsertOne(ctx, bson.D{{Key: "x", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.coll.UpdateOne(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 2}}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.tap.of("insert", "update"); !strings.HasSuffix(got, "insert- update") {
		t.Errorf("sent %q, want an insert with moreToCome and an update without", got)
	}
}
