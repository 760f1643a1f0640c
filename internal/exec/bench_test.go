package exec

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/command"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/internal/wire"
)

// cannedConn is a connection to a server that takes no time: each write is a whole command, whose
// answer is there at once. Nothing of it runs elsewhere or is allocated, so that a benchmark
// measures the executor, and what is below it down to the system call.
type cannedConn struct {
	replies map[string][]byte // messages by the name of the command
	other   []byte            // to all other commands
	buf     []byte
	pending []byte
}

func (c *cannedConn) Write(msg []byte) (int, error) {
	const name = wire.HeaderLen + 4 + 1 + 4 + 1 // behind the flags, the section's kind, the document's length and the element's type
	reply, ok := c.replies[string(msg[name:name+bytes.IndexByte(msg[name:], 0)])]
	if !ok {
		reply = c.other
	}
	c.buf = append(c.buf[:0], reply...)
	binary.LittleEndian.PutUint32(c.buf[8:], binary.LittleEndian.Uint32(msg[4:])) // responseTo
	c.pending = c.buf
	return len(msg), nil
}

func (c *cannedConn) Read(p []byte) (int, error) {
	if len(c.pending) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

func (c *cannedConn) Close() error                     { return nil }
func (c *cannedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *cannedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *cannedConn) SetDeadline(time.Time) error      { return nil }
func (c *cannedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *cannedConn) SetWriteDeadline(time.Time) error { return nil }

// cannedServer is the primary of a replica set at a:1.
type cannedServer struct{}

func (cannedServer) DialContext(context.Context, string, string) (net.Conn, error) {
	message := func(doc bson.Raw) []byte { return wire.FinishMessage(append(wire.AppendMsg(nil, 1, 0, 0), doc...), 0) }
	times := func(dst []byte) []byte {
		now := bson.Timestamp{T: 1, I: 1}
		at, dst := bson.BeginDocumentElement(dst, "$clusterTime")
		dst = bson.EndDocument(bson.AppendTimestamp(dst, "clusterTime", now), at)
		return bson.AppendDouble(bson.AppendTimestamp(dst, "operationTime", now), "ok", 1)
	}
	hello := message(fakeserver.Hello(func(dst []byte) []byte {
		dst = bson.AppendString(dst, "setName", "rs")
		dst = bson.AppendString(dst, "me", "a:1")
		at, dst := bson.BeginArrayElement(dst, "hosts")
		dst = bson.EndDocument(bson.AppendString(dst, "0", "a:1"), at)
		return bson.AppendInt32(dst, "logicalSessionTimeoutMinutes", 30)
	}))
	found := message(fakeserver.Doc(func(dst []byte) []byte {
		at, dst := bson.BeginDocumentElement(dst, "cursor")
		batch, dst := bson.BeginArrayElement(dst, "firstBatch")
		doc, dst := bson.BeginDocumentElement(dst, "0")
		dst = bson.EndDocument(bson.AppendInt32(dst, "_id", 1), doc)
		dst = bson.EndDocument(dst, batch)
		dst = bson.AppendString(bson.AppendInt64(dst, "id", 0), "ns", "db.coll")
		return bson.EndDocument(dst, at)
	}, times))
	done := message(fakeserver.Doc(func(dst []byte) []byte { return bson.AppendInt32(dst, "n", 1) }, times))
	return &cannedConn{replies: map[string][]byte{"hello": hello, "isMaster": hello, "find": found}, other: done}, nil
}

// newBenchExecutor returns an executor on a cannedServer.
func newBenchExecutor(b *testing.B, cfg Config) *Executor {
	b.Helper()
	topo, err := topology.New(&topology.Config{Seeds: []string{"a:1"}, SetName: "rs", Monitoring: topology.MonitorPoll, HeartbeatInterval: time.Hour,
		LocalThreshold: topology.DefaultLocalThreshold, SelectionTimeout: 30 * time.Second,
		Pool: pool.Config{MaxPoolSize: 100, Conn: &conn.Config{Dialer: cannedServer{}, ConnectTimeout: 10 * time.Second}}})
	if err != nil {
		b.Fatal(err)
	}
	topo.Connect()
	b.Cleanup(func() { topo.Close(context.Background()) })
	cfg.Topology, cfg.Sessions, cfg.SelectionTimeout = topo, &session.Pool{}, 30*time.Second
	cfg.RetryReads, cfg.RetryWrites, cfg.MaxAdaptiveRetries = true, true, DefaultMaxAdaptiveRetries
	return New(cfg)
}

// BenchmarkRun is what an operation costs from exec.Run down to a network that takes no time:
// selection, checkout, session, message, reply, and what the options in question add.
// idle is a Cipher that leaves everything as it is.
type idle struct{}

func (idle) Encrypt(_ context.Context, _ string, cmd bson.Raw) (bson.Raw, error) { return cmd, nil }
func (idle) Decrypt(_ context.Context, reply bson.Raw) (bson.Raw, error)         { return reply, nil }

func BenchmarkRun(b *testing.B) {
	at, filter := bson.BeginDocument(nil)
	filter = bson.EndDocument(bson.AppendInt32(filter, "_id", 1), at)
	find := func(b *testing.B, ctx context.Context, x *Executor, s *session.Session, timeout *time.Duration) {
		op := Op{Command: &command.Find{Collection: "coll", Filter: bson.Raw(filter), Limit: 1, SingleBatch: true}, DB: "db", Kind: Read, Retryable: true,
			TakesConcern: true, Session: s, Limit: NewLimit(timeout, "the timeout of the benchmark")}
		res, err := x.Run(ctx, &op)
		if err != nil {
			b.Fatal(err)
		}
		res.Release()
	}
	loop := func(cfg Config, do func(b *testing.B, x *Executor)) func(b *testing.B) {
		return func(b *testing.B) {
			x := newBenchExecutor(b, cfg)
			do(b, x) // connects
			b.ReportAllocs()
			for b.Loop() {
				do(b, x)
			}
		}
	}
	b.Run("find", loop(Config{}, func(b *testing.B, x *Executor) { find(b, b.Context(), x, nil, nil) }))
	b.Run("find with a timeout", loop(Config{}, func(b *testing.B, x *Executor) { find(b, b.Context(), x, nil, new(time.Hour)) }))
	b.Run("find with a deadline", loop(Config{}, func(b *testing.B, x *Executor) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
		defer cancel()
		find(b, ctx, x, nil, nil)
	}))
	monitor := &event.CommandMonitor{Started: func(context.Context, *event.CommandStarted) {}, Succeeded: func(context.Context, *event.CommandSucceeded) {}}
	b.Run("find with a listener", loop(Config{Monitor: monitor}, func(b *testing.B, x *Executor) { find(b, b.Context(), x, nil, nil) }))
	b.Run("find with a cipher that has nothing to do", loop(Config{Cipher: idle{}}, func(b *testing.B, x *Executor) { find(b, b.Context(), x, nil, nil) }))
	b.Run("find in a session", func(b *testing.B) {
		x := newBenchExecutor(b, Config{})
		s, err := session.New(x.Sessions, x.SessionTimeout, session.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.End()
		b.ReportAllocs()
		for b.Loop() {
			find(b, b.Context(), x, s, nil)
		}
	})
	b.Run("findAndModify", loop(Config{}, func(b *testing.B, x *Executor) {
		op := Op{Command: &command.FindAndModify{Collection: "coll", Filter: bson.Raw(filter), Remove: true}, DB: "db", Kind: Write, Retryable: true}
		res, err := x.Run(b.Context(), &op)
		if err != nil {
			b.Fatal(err)
		}
		res.Release()
	}))
	b.Run("transaction", loop(Config{}, func(b *testing.B, x *Executor) {
		s, err := session.New(x.Sessions, x.SessionTimeout, session.Options{})
		if err == nil {
			err = s.StartTransaction(session.TransactionOptions{})
		}
		if err != nil {
			b.Fatal(err)
		}
		find(b, b.Context(), x, s, nil)
		if err := x.Commit(b.Context(), s, Limit{}); err != nil {
			b.Fatal(err)
		}
		s.End()
	}))
	b.Run("find in parallel", func(b *testing.B) {
		x := newBenchExecutor(b, Config{})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				find(b, b.Context(), x, nil, nil)
			}
		})
	})
}
