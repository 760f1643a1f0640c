package cursor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/conn"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/fakeserver"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/mongoerr"
)

// rig has a server in memory with one cursor, whose getMores are answered as a test says.
type rig struct {
	x        *exec.Executor
	registry *Registry
	getMore  func(r *fakeserver.Request, n int) // n counts from 1
	found    func()                             // called when the find was answered
	answer   func(r *fakeserver.Request) bool   // answers a command in place of the server; may be nil

	mu       sync.Mutex // of what follows
	commands []string
	bodies   []bson.Raw
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{found: func() {}}
	network := &fakeserver.Network{}
	getMores := 0
	network.Add("a:1", &fakeserver.Server{Handle: func(req *fakeserver.Request) {
		if req.IsHello() {
			req.Reply(fakeserver.Hello())
			return
		}
		r.mu.Lock()
		r.commands = append(r.commands, req.Command)
		r.bodies = append(r.bodies, append(bson.Raw(nil), req.Body...))
		r.mu.Unlock()
		if r.answer != nil && r.answer(req) {
			return
		}
		switch req.Command {
		case "find":
			req.Reply(batch(7, "firstBatch"))
			r.found()
		case "getMore":
			getMores++
			r.getMore(req, getMores)
		default:
			req.Reply(fakeserver.OK())
		}
	}})
	topo, err := topology.New(&topology.Config{Seeds: []string{"a:1"}, LocalThreshold: topology.DefaultLocalThreshold, SelectionTimeout: time.Second,
		Pool: pool.Config{Conn: &conn.Config{Dialer: network, ConnectTimeout: time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	topo.Connect()
	r.x = exec.New(exec.Config{Topology: topo, Sessions: &session.Pool{}, SelectionTimeout: time.Second})
	r.registry = NewRegistry(r.x)
	t.Cleanup(func() {
		r.registry.Close(context.Background())
		topo.Close(context.Background())
		network.Wait()
	})
	return r
}

// batch is a reply with one document for each x.
func batch(id int64, name string, xs ...int32) bson.Raw {
	return fakeserver.Doc(func(dst []byte) []byte {
		cursor, dst := bson.BeginDocumentElement(dst, "cursor")
		dst = bson.AppendInt64(dst, "id", id)
		dst = bson.AppendString(dst, "ns", "db.coll")
		list, dst := bson.BeginArrayElement(dst, name)
		for i, x := range xs {
			dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), fakeserver.Doc(func(dst []byte) []byte { return bson.AppendInt32(dst, "x", x) })...)
		}
		dst = bson.EndDocument(bson.EndDocument(dst, list), cursor)
		return bson.AppendDouble(dst, "ok", 1)
	})
}

func failed(code int32) bson.Raw {
	return fakeserver.Doc(func(dst []byte) []byte { return bson.AppendInt32(bson.AppendDouble(dst, "ok", 0), "code", code) })
}

// open opens a cursor.
func (r *rig) open(t *testing.T, reading Reading, timeout *time.Duration) *Cursor {
	t.Helper()
	op := exec.NewOp(&command.Find{Collection: "coll", Filter: bson.D{}})
	op.DB = "db"
	op.Limit = exec.NewLimit(timeout, "the timeout of the test")
	c := new(Cursor)
	if err := c.Prepare(&op, reading); err != nil {
		t.Fatal(err)
	}
	res, err := r.x.Run(t.Context(), &op)
	if err == nil {
		err = c.Open(t.Context(), r.registry, &op, res)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// count returns how many commands of a name the server got.
func (r *rig) count(name string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.commands {
		if c == name {
			n++
		}
	}
	return n
}

// A tailable cursor whose time is up goes on with the next call if no document can have been lost,
// and ends otherwise. Other cursors keep the error until they are closed.
func TestTailableAfterTimeout(t *testing.T) {
	const late, next = 100 * time.Millisecond, 50 * time.Millisecond
	for _, tc := range []struct {
		name    string
		getMore func(req *fakeserver.Request, n int)
		deaf    bool // the server does not read the getMore
		ended   bool // the context has ended before the call
		timeout *time.Duration
		goesOn  bool // with the document 1
		sent    int  // getMores, in the end
	}{
		{name: "the reply is late", goesOn: true, sent: 1, getMore: func(req *fakeserver.Request, n int) {
			time.Sleep(late)
			req.Reply(batch(7, "nextBatch", int32(n)))
		}},
		{name: "nothing was sent", ended: true, goesOn: true, sent: 1, getMore: func(req *fakeserver.Request, n int) {
			req.Reply(batch(7, "nextBatch", int32(n)))
		}},
		{name: "the request may have arrived in part", deaf: true},
		{name: "the connection breaks", sent: 1, getMore: func(req *fakeserver.Request, n int) {
			req.Conn.Close()
		}},
		{name: "the server's time was up", timeout: new(time.Second), sent: 1, getMore: func(req *fakeserver.Request, n int) {
			req.Reply(failed(50))
		}},
		{name: "the late reply is lost", sent: 1, getMore: func(req *fakeserver.Request, n int) {
			time.Sleep(late)
			req.Conn.Close()
		}},
	} {
		for _, kind := range []Type{Tailable, TailableAwait, NonTailable} {
			t.Run(tc.name+"/"+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					r.getMore = tc.getMore
					hear := make(chan struct{})
					if tc.deaf {
						r.found = func() { <-hear }
					}
					reading := Reading{Type: kind}
					if tc.timeout != nil {
						reading.TimeoutMode = PerIteration
					}
					c := r.open(t, reading, tc.timeout)
					defer c.Close(context.Background())
					ctx, cancel := context.WithTimeout(t.Context(), next)
					if tc.ended {
						cancel()
					}
					if c.Advance(ctx, true) || c.Err() == nil {
						t.Fatalf("document %v, error %v", c.Raw(), c.Err())
					}
					cancel()
					first := c.Err()
					close(hear)
					time.Sleep(next)
					goesOn := tc.goesOn && kind != NonTailable
					if got := c.Advance(t.Context(), true); got != goesOn {
						t.Fatalf("the next call has a document: %v; errors %v, then %v", got, first, c.Err())
					}
					if x, _ := c.Raw().Lookup("x").Int32(); goesOn && (x != 1 || c.Err() != nil || c.ID() != 7) {
						t.Errorf("document %v, error %v, id %d", c.Raw(), c.Err(), c.ID())
					}
					if !goesOn && c.Err() == nil {
						t.Error("the end looks like that of the documents")
					}
					if !goesOn && kind != NonTailable && c.ID() != 0 {
						t.Errorf("id %d", c.ID())
					}
					if n := r.count("getMore"); n != tc.sent && kind != NonTailable {
						t.Errorf("%d getMores", n)
					}
					if _, ok := errors.AsType[*mongoerr.TimeoutError](first); !ok && tc.name != "the connection breaks" {
						t.Errorf("error %T: %[1]v", first)
					}
				})
			})
		}
	}
}

// A cursor that is read up to its limit is at its end, also if the server has more.
func TestEndAtLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.getMore = func(req *fakeserver.Request, _ int) { req.Reply(batch(7, "nextBatch", 1, 2)) }
		c := r.open(t, Reading{Limit: 2}, nil)
		n := 0
		for c.Advance(t.Context(), true) {
			n++
		}
		for range 2 {
			if c.Advance(t.Context(), true) || c.err != nil {
				t.Errorf("behind the end: %v", c.err)
			}
		}
		if n != 2 || r.count("killCursors") != 1 {
			t.Errorf("%d documents, %d times killCursors", n, r.count("killCursors"))
		}
	})
}

// A cursor that its server has forgotten by now is forgotten, too.
func TestOrphansExpire(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	now := time.Now()
	left := kill(ended, []orphan{{since: now.Add(-orphanLife - time.Second)}, {since: now}})
	if len(left) != 1 || left[0].since != now {
		t.Errorf("%d are left", len(left))
	}
}

// What a batch still has is read after the cursor's time is up: only a getMore needs time
// (specification: Client Side Operations Timeout, "Non-tailable Cursors").
func TestBatchOutlivesTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.getMore = func(req *fakeserver.Request, _ int) { req.Reply(batch(7, "nextBatch", 1, 2, 3)) }
		c := r.open(t, Reading{}, new(time.Second))
		ctx := t.Context()
		if !c.Advance(ctx, true) {
			t.Fatal(c.Err())
		}
		time.Sleep(time.Minute)
		for range 2 {
			if !c.Advance(ctx, true) {
				t.Fatalf("a document of the batch is not read: %v", c.Err())
			}
		}
		if c.Advance(ctx, true) || !failure.OutOfTime(c.Err()) {
			t.Errorf("error %v, want a timeout", c.Err())
		}
		if n := r.count("getMore"); n != 1 {
			t.Errorf("%d getMores were sent", n)
		}
		c.Close(ctx)
	})
}
