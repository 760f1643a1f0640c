package faults

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/gridfs"
	"allium/internal/drivertest/rig"
	"allium/internal/owncode"
	"allium/tracing"
)

// A codePlace is one where the driver runs code of the program's.
type codePlace struct {
	name string
	// own says that it runs on a goroutine of the driver's, and not of the caller's.
	own bool
	// calls says that the code may use the client.
	calls bool
	// set puts the code into the client's options; nil if it comes with the operation.
	set func(o *allium.ClientOptions, code func())
	// run is the operation in which the code runs, armed from the start; nil is an insert.
	run func(ctx context.Context, coll *allium.Collection[coded], code func()) error
}

// coded is a document that runs code as it is encoded and decoded.
type coded struct {
	encode func()
}

func (c coded) MarshalBSON() ([]byte, error) {
	if c.encode != nil {
		c.encode()
	}
	return bson.Marshal(bson.D{{Key: "x", Value: 1}})
}

// decoding is the code that decoding a coded runs; tests that use it are not parallel.
var decoding func()

func (c *coded) UnmarshalBSON([]byte) error {
	if decoding != nil {
		decoding()
	}
	return nil
}

// A codedKey is the key of a map that runs code as it becomes text and is read again.
type codedKey struct{ text string }

// texting is the code of all codedKeys; tests that use it are not parallel.
var texting func()

func (k codedKey) MarshalText() ([]byte, error) {
	if texting != nil {
		texting()
	}
	return []byte(k.text), nil
}

func (k *codedKey) UnmarshalText(text []byte) error {
	if texting != nil {
		texting()
	}
	k.text = string(text)
	return nil
}

// codedField is a field that runs code as it is read.
type codedField struct{}

func (*codedField) UnmarshalBSONValue(byte, []byte) error {
	if decoding != nil {
		decoding()
	}
	return nil
}

// codedIO is where an upload comes from and a download goes.
type codedIO struct {
	code func()
	left int // bytes to read
}

func (c *codedIO) Read(p []byte) (int, error) {
	c.code()
	n := min(len(p), c.left)
	c.left -= n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *codedIO) Write(p []byte) (int, error) {
	c.code()
	return len(p), nil
}

// codedContext is a context of the program's own.
type codedContext struct {
	context.Context
	code func()
}

func (c codedContext) Value(key any) any {
	c.code()
	return c.Context.Value(key)
}

// only has one component log, so that an owncode.Handler runs for its messages alone.
func only(c allium.LogComponent) map[allium.LogComponent]slog.Level {
	levels := map[allium.LogComponent]slog.Level{}
	for _, other := range []allium.LogComponent{allium.LogCommand, allium.LogTopology, allium.LogServerSelection, allium.LogConnection} {
		levels[other] = slog.LevelError
	}
	levels[c] = slog.LevelDebug
	return levels
}

// codedTracer is a tracer whose spans run code.
type codedTracer struct{ code func() }

func (t codedTracer) Start(ctx context.Context, _ tracing.Begin) (context.Context, tracing.Span) {
	t.code()
	return ctx, codedSpan(t)
}

type codedSpan struct{ code func() }

func (s codedSpan) SetAttributes(...tracing.Attribute)         {}
func (s codedSpan) RecordError(error)                          {}
func (s codedSpan) End()                                       { s.code() }
func (s codedSpan) Within(ctx context.Context) context.Context { return ctx }

// openEnds counts what has begun and not ended. It is a tracer, too.
type openEnds struct{ open atomic.Int64 }

func (o *openEnds) Start(ctx context.Context, _ tracing.Begin) (context.Context, tracing.Span) {
	o.open.Add(1)
	return ctx, codedSpan{func() { o.open.Add(-1) }}
}

// codedDialer is a dialer that runs code.
type codedDialer struct {
	allium.Dialer
	code func()
}

func (d codedDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d.code()
	return d.Dialer.DialContext(ctx, network, address)
}

var codePlaces = func() []codePlace {
	type options = *allium.ClientOptions
	type collection = *allium.Collection[coded]
	pool := func(set func(m *event.PoolMonitor, code func())) func(options, func()) {
		return func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{}
			set(o.PoolMonitor, code)
		}
	}
	find := func(ctx context.Context, c collection, _ func()) error {
		cur, err := c.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
		if err == nil {
			err = cur.Close(ctx)
		}
		return err
	}
	started := func(command string) func(options, func()) {
		return func(o options, code func()) {
			o.CommandMonitor = &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
				if e.CommandName == command {
					code()
				}
			}}
		}
	}
	decoded := func(run func(ctx context.Context, c collection) error) func(context.Context, collection, func()) error {
		return func(ctx context.Context, c collection, code func()) error {
			decoding = code
			defer func() { decoding = nil }()
			return run(ctx, c)
		}
	}
	return []codePlace{
		{name: "encoder", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			return rig.ErrorOf(c.InsertOne(ctx, coded{encode: code}))
		}},
		{name: "decoder of FindOne", calls: true, run: decoded(func(ctx context.Context, c collection) error { return rig.ErrorOf(c.FindOne(ctx, bson.D{})) })},
		{name: "decoder of FindOneAndDelete", calls: true, run: decoded(func(ctx context.Context, c collection) error {
			return rig.ErrorOf(c.FindOneAndDelete(ctx, bson.D{}))
		})},
		{name: "decoder of All", calls: true, run: decoded(func(ctx context.Context, c collection) error {
			cur, err := c.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
			if err == nil {
				_, err = cur.All(ctx)
			}
			return err
		})},
		{name: "MarshalText", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			return textual(code, func() error {
				return rig.ErrorOf(allium.CollectionOf[map[codedKey]int](c.Database(), "texts").InsertOne(ctx, map[codedKey]int{{"a"}: 1}))
			})
		}},
		{name: "UnmarshalText", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			return textual(code, func() error {
				return rig.ErrorOf(allium.CollectionOf[map[codedKey]any](c.Database(), "c").FindOne(ctx, bson.D{}))
			})
		}},
		{name: "UnmarshalBSONValue", calls: true, run: decoded(func(ctx context.Context, c collection) error {
			return rig.ErrorOf(allium.CollectionOf[struct{ X codedField }](c.Database(), "c").FindOne(ctx, bson.D{}))
		})},
		{name: "reader of an upload", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			return rig.ErrorOf(gridfs.NewBucket(c.Database()).UploadFromStream(ctx, "f", &codedIO{code: code, left: 1 << 20}))
		}},
		{name: "writer of a download", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			b := gridfs.NewBucket(c.Database())
			id, err := b.UploadFromStream(ctx, "f", &codedIO{code: func() {}, left: 1 << 20})
			if err == nil {
				_, err = b.DownloadToStream(ctx, id, &codedIO{code: code})
			}
			return err
		}},
		{name: "function of fs.WalkDir", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			b := gridfs.NewBucket(c.Database())
			if _, err := b.UploadFromStream(ctx, "f", &codedIO{code: func() {}, left: 1 << 20}); err != nil {
				return err
			}
			return fs.WalkDir(b.FS(ctx), ".", func(string, fs.DirEntry, error) error { code(); return nil })
		}},
		{name: "body of a Seq loop", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			cur, err := c.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
			if err == nil {
				for _, err = range cur.Seq(ctx) {
					code()
				}
			}
			return err
		}},
		{name: "body of a change stream's loop", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			s, err := c.Watch(ctx, []bson.D{})
			if err == nil {
				if _, err = c.InsertOne(ctx, coded{}); err == nil {
					for _, err = range s.Seq(ctx) {
						code()
						break
					}
				}
			}
			return err
		}},
		{name: "function of Transact", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			return c.Database().Client().Transact(ctx, func(ctx context.Context) error {
				_, err := c.InsertOne(ctx, coded{})
				code()
				return err
			})
		}},
		{name: "values of a context", run: func(ctx context.Context, c collection, code func()) error {
			return rig.ErrorOf(c.InsertOne(codedContext{ctx, code}, coded{}))
		}},
		{name: "CommandStarted", calls: true, set: func(o options, code func()) {
			o.CommandMonitor = &event.CommandMonitor{Started: func(context.Context, *event.CommandStarted) { code() }}
		}},
		{name: "CommandSucceeded", calls: true, set: func(o options, code func()) {
			o.CommandMonitor = &event.CommandMonitor{Succeeded: func(context.Context, *event.CommandSucceeded) { code() }}
		}},
		{name: "CommandSucceeded of a find with more to come", calls: true, set: func(o options, code func()) {
			o.CommandMonitor = &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
				if e.CommandName == "find" {
					code()
				}
			}}
		}, run: find},
		{name: "CommandStarted of killCursors", calls: true, set: started("killCursors"), run: find},
		{name: "CommandSucceeded of killCursors", calls: true, set: func(o options, code func()) {
			o.CommandMonitor = &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
				if e.CommandName == "killCursors" {
					code()
				}
			}}
		}, run: find},
		{name: "CommandStarted of killCursors of a stream", calls: true, set: started("killCursors"), run: func(ctx context.Context, c collection, _ func()) error {
			s, err := c.Watch(ctx, nil)
			if err == nil {
				err = s.Close(ctx)
			}
			return err
		}},
		{name: "CommandStarted of the abort by End", set: started("abortTransaction"), run: func(ctx context.Context, c collection, _ func()) error {
			s, err := c.Database().Client().StartSession()
			if err != nil {
				return err
			}
			defer s.End(ctx)
			if err := s.StartTransaction(); err != nil {
				return err
			}
			return rig.ErrorOf(c.InsertOne(allium.WithSession(ctx, s), coded{}))
		}},
		{name: "CommandStarted of getMore", calls: true, set: started("getMore"), run: func(ctx context.Context, c collection, _ func()) error {
			cur, err := c.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
			if err != nil {
				return err
			}
			defer cur.Close(ctx)
			for cur.Next(ctx) {
			}
			return cur.Err()
		}},
		{name: "CommandSucceeded in a transaction", set: func(o options, code func()) {
			o.CommandMonitor = &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
				if e.CommandName == "insert" {
					code()
				}
			}}
		}, run: func(ctx context.Context, c collection, _ func()) error {
			return c.Database().Client().Transact(ctx, func(ctx context.Context) error { return rig.ErrorOf(c.InsertOne(ctx, coded{})) })
		}},
		{name: "CommandFailed", calls: true, set: func(o options, code func()) {
			o.CommandMonitor = &event.CommandMonitor{Failed: func(context.Context, *event.CommandFailed) { code() }}
		}, run: func(ctx context.Context, c collection, _ func()) error {
			_, _ = c.Database().RunCommand(ctx, bson.D{{Key: "unknown", Value: 1}})
			return nil
		}},
		{name: "log handler", set: func(o options, code func()) {
			o.Logger = slog.New(owncode.Handler{Code: code})
			o.LogLevels = only(allium.LogCommand)
		}},
		{name: "log handler of checkouts", set: func(o options, code func()) {
			o.Logger = slog.New(owncode.Handler{Code: code})
			o.LogLevels = only(allium.LogConnection)
		}},
		{name: "log handler of server selection", set: func(o options, code func()) {
			o.Logger = slog.New(owncode.Handler{Code: code})
			o.LogLevels = only(allium.LogServerSelection)
		}},
		{name: "tracer", set: func(o options, code func()) {
			o.Tracing = &allium.Tracing{Tracer: codedTracer{code}, Enabled: new(true)}
		}},
		{name: "server selector", calls: false, set: func(o options, code func()) {
			o.ServerSelector = func(list []*event.ServerDescription) []*event.ServerDescription { code(); return list }
		}},
		{name: "ConnectionCheckOutStarted", set: pool(func(m *event.PoolMonitor, code func()) {
			m.ConnectionCheckOutStarted = func(*event.ConnectionCheckOutStarted) { code() }
		})},
		{name: "ConnectionCheckedOut", set: pool(func(m *event.PoolMonitor, code func()) {
			m.ConnectionCheckedOut = func(*event.ConnectionCheckedOut) { code() }
		})},
		{name: "ConnectionCheckedIn", set: pool(func(m *event.PoolMonitor, code func()) {
			m.ConnectionCheckedIn = func(*event.ConnectionCheckedIn) { code() }
		})},
		{name: "ConnectionClosed", set: func(o options, code func()) {
			o.MaxIdleTime = new(time.Minute)
			o.PoolMonitor = &event.PoolMonitor{ConnectionClosed: func(*event.ConnectionClosed) { code() }}
		}, own: true, run: func(ctx context.Context, c collection, _ func()) error {
			time.Sleep(2 * time.Minute)
			return rig.ErrorOf(c.InsertOne(ctx, coded{}))
		}},
	}
}()

// textual runs f while codedKeys run code.
func textual(code func(), f func() error) error {
	texting = code
	defer func() { texting = nil }()
	return f()
}

// codeModes are what code of the program's may do besides returning.
var codeModes = map[string]func(coll *allium.Collection[coded]){
	"panic":  func(*allium.Collection[coded]) { panic("the program's") },
	"Goexit": func(*allium.Collection[coded]) { runtime.Goexit() },
	"call": func(coll *allium.Collection[coded]) {
		plain := allium.CollectionOf[bson.D](coll.Database(), "other")
		if err := rig.ErrorOf(plain.InsertOne(context.Background(), bson.D{})); err != nil {
			panic(err)
		}
	},
}
