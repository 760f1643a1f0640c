package allium_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/event"
	"allium/gridfs"
	"allium/internal/testdeploy"
	"allium/mongotest"
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

// codedHandler is a log handler that runs code.
type codedHandler struct{ code func() }

func (codedHandler) Enabled(context.Context, slog.Level) bool        { return true }
func (h codedHandler) WithAttrs([]slog.Attr) slog.Handler            { return h }
func (h codedHandler) WithGroup(string) slog.Handler                 { return h }
func (h codedHandler) Handle(_ context.Context, r slog.Record) error { h.code(); return nil }

// only has one component log, so that a codedHandler runs for its messages alone.
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
			return second(c.InsertOne(ctx, coded{encode: code}))
		}},
		{name: "decoder of FindOne", calls: true, run: decoded(func(ctx context.Context, c collection) error { return second(c.FindOne(ctx, bson.D{})) })},
		{name: "decoder of FindOneAndDelete", calls: true, run: decoded(func(ctx context.Context, c collection) error {
			return second(c.FindOneAndDelete(ctx, bson.D{}))
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
				return second(allium.CollectionOf[map[codedKey]int](c.Database(), "texts").InsertOne(ctx, map[codedKey]int{{"a"}: 1}))
			})
		}},
		{name: "UnmarshalText", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			return textual(code, func() error {
				return second(allium.CollectionOf[map[codedKey]any](c.Database(), "c").FindOne(ctx, bson.D{}))
			})
		}},
		{name: "UnmarshalBSONValue", calls: true, run: decoded(func(ctx context.Context, c collection) error {
			return second(allium.CollectionOf[struct{ X codedField }](c.Database(), "c").FindOne(ctx, bson.D{}))
		})},
		{name: "reader of an upload", calls: true, run: func(ctx context.Context, c collection, code func()) error {
			return second(gridfs.NewBucket(c.Database()).UploadFromStream(ctx, "f", &codedIO{code: code, left: 1 << 20}))
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
			return second(c.InsertOne(codedContext{ctx, code}, coded{}))
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
			return second(c.InsertOne(allium.WithSession(ctx, s), coded{}))
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
			return c.Database().Client().Transact(ctx, func(ctx context.Context) error { return second(c.InsertOne(ctx, coded{})) })
		}},
		{name: "CommandFailed", calls: true, set: func(o options, code func()) {
			o.CommandMonitor = &event.CommandMonitor{Failed: func(context.Context, *event.CommandFailed) { code() }}
		}, run: func(ctx context.Context, c collection, _ func()) error {
			_, _ = c.Database().RunCommand(ctx, bson.D{{Key: "unknown", Value: 1}})
			return nil
		}},
		{name: "log handler", set: func(o options, code func()) {
			o.Logger = slog.New(codedHandler{code})
			o.LogLevels = only(allium.LogCommand)
		}},
		{name: "log handler of checkouts", set: func(o options, code func()) {
			o.Logger = slog.New(codedHandler{code})
			o.LogLevels = only(allium.LogConnection)
		}},
		{name: "log handler of server selection", set: func(o options, code func()) {
			o.Logger = slog.New(codedHandler{code})
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
			return second(c.InsertOne(ctx, coded{}))
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
		if err := second(plain.InsertOne(context.Background(), bson.D{})); err != nil {
			panic(err)
		}
	},
}

// ending runs f on a goroutine of its own, and says how that ended.
func ending(f func() error) (how string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				how = "panic"
			}
		}()
		how = "Goexit"
		err = f()
		how = "call"
	}()
	<-done
	return how, err
}

// Whatever code of the program's does, it takes nothing with it: no connection, session, cursor,
// transaction, lock or slot. On the caller's goroutine it goes on to the caller.
func TestCodeOfTheProgram(t *testing.T) {
	for _, kind := range []struct {
		name string
		kind mongotest.Option
	}{{"replica set", mongotest.ReplicaSet(1)}, {"sharded", mongotest.Sharded(1, 1)}} {
		for _, p := range codePlaces {
			for mode, do := range codeModes {
				if mode == "call" && !p.calls {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", kind.name, p.name, mode), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testCode(t, kind.kind, p, mode, do) })
				})
			}
		}
	}
}

func testCode(t *testing.T, kind mongotest.Option, p codePlace, mode string, do func(*allium.Collection[coded])) {
	var coll *allium.Collection[coded]
	var armed, ran atomic.Bool
	code := func() {
		if armed.CompareAndSwap(true, false) {
			ran.Store(true) // once: what the driver does to clean up is told, too
			do(coll)
		}
	}
	opts := allium.ClientOptions{MaxPoolSize: new(2)}
	if p.set != nil {
		p.set(&opts, code)
	}
	var spans, commands openEnds
	if opts.Tracing == nil {
		opts.Tracing = &allium.Tracing{Tracer: &spans, Enabled: new(true)}
	}
	if opts.CommandMonitor == nil {
		opts.CommandMonitor = &event.CommandMonitor{
			Started:   func(context.Context, *event.CommandStarted) { commands.open.Add(1) },
			Succeeded: func(context.Context, *event.CommandSucceeded) { commands.open.Add(-1) },
			Failed:    func(context.Context, *event.CommandFailed) { commands.open.Add(-1) },
		}
	}
	_, client, _ := bubble(t, opts, kind)
	coll = allium.CollectionOf[coded](client.Database("d"), "c")
	if _, err := coll.InsertMany(t.Context(), make([]coded, 7)); err != nil {
		t.Fatal(err)
	}
	if _, err := allium.CollectionOf[bson.D](client.Database("d"), "other").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	run := p.run
	if run == nil {
		run = func(ctx context.Context, c *allium.Collection[coded], _ func()) error {
			return second(c.InsertOne(ctx, coded{}))
		}
	}
	for range 3 { // more often than there are connections
		ran.Store(false)
		armed.Store(true)
		how, err := ending(func() error { return run(t.Context(), coll, code) })
		armed.Store(false)
		want := mode
		if p.own {
			want = "call"
		}
		if !ran.Load() || how != want || how == "call" && err != nil {
			t.Fatalf("the code ran: %v; the operation ended by %s, %v; want %s", ran.Load(), how, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := coll.CountDocuments(ctx, bson.D{}); err != nil {
		t.Error(err)
	}
	synctest.Wait()
	s := client.Stats()
	for _, pool := range s.Pools {
		if pool.InUse != 0 || pool.Connecting != 0 || pool.Draining != 0 {
			t.Errorf("left in the pool: %+v", pool)
		}
	}
	if spans.open.Load() != 0 || commands.open.Load() != 0 {
		t.Errorf("%d spans and %d commands have no end", spans.open.Load(), commands.open.Load())
	}
	if s.Sessions.InUse != 0 || s.Operations != 0 || s.Cursors != 0 {
		t.Errorf("left: sessions %+v, operations in flight %d, cursors %d", s.Sessions, s.Operations, s.Cursors)
	}
}

// Code that runs on the driver's own goroutines ends neither the process nor what it is a part of:
// the operation gets its error, and the next one works.
func TestCodeOnTheDriversGoroutines(t *testing.T) {
	type options = *allium.ClientOptions
	calls := []string{ // the listeners of a topology run beside it
		"ServerHeartbeatStarted", "ServerHeartbeatSucceeded", "ServerDescriptionChanged", "TopologyDescriptionChanged", "log handler of discovery",
	}
	for name, set := range map[string]func(o options, code func()){
		"dialer": func(o options, code func()) { o.Dialer = codedDialer{o.Dialer, code} },
		"PoolCreated": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{PoolCreated: func(*event.PoolCreated) { code() }}
		},
		"PoolReady": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{PoolReady: func(*event.PoolReady) { code() }}
		},
		"ConnectionCreated": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{ConnectionCreated: func(*event.ConnectionCreated) { code() }}
		},
		"ConnectionReady": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{ConnectionReady: func(*event.ConnectionReady) { code() }}
		},
		"ServerHeartbeatStarted": func(o options, code func()) {
			o.ServerMonitor = &event.ServerMonitor{ServerHeartbeatStarted: func(*event.ServerHeartbeatStarted) { code() }}
		},
		"ServerHeartbeatSucceeded": func(o options, code func()) {
			o.ServerMonitor = &event.ServerMonitor{ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) { code() }}
		},
		"ServerDescriptionChanged": func(o options, code func()) {
			o.ServerMonitor = &event.ServerMonitor{ServerDescriptionChanged: func(*event.ServerDescriptionChanged) { code() }}
		},
		"TopologyDescriptionChanged": func(o options, code func()) {
			o.ServerMonitor = &event.ServerMonitor{TopologyDescriptionChanged: func(*event.TopologyDescriptionChanged) { code() }}
		},
		"log handler of discovery": func(o options, code func()) {
			o.Logger = slog.New(codedHandler{code})
			o.LogLevels = only(allium.LogTopology)
		},
		"log handler of everything": func(o options, code func()) {
			o.Logger = slog.New(codedHandler{code})
			o.LogLevels = map[allium.LogComponent]slog.Level{allium.LogTopology: slog.LevelDebug, allium.LogConnection: slog.LevelDebug}
		},
	} {
		for mode, do := range codeModes {
			if mode == "call" && !slices.Contains(calls, name) {
				continue
			}
			t.Run(name+"/"+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, _, _ := bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
					opts := allium.ClientOptions{Dialer: d, MaxPoolSize: new(1)}
					code := &ownCode{do: do}
					set(&opts, code.run)
					left := testOwn(t, d.URI(), opts, code)
					if mode == "call" && code.returned.Load() != 2-left {
						t.Errorf("the code has used the client %d times, want %d", code.returned.Load(), 2-left)
					}
					if left == 2 && name != "PoolCreated" && name != "PoolReady" && name != "ConnectionCreated" && name != "ConnectionReady" {
						t.Errorf("the code has not run")
					}
				})
			})
		}
	}
}

// ownCode is code that does what it is told as often as left says.
type ownCode struct {
	do       func(*allium.Collection[coded])
	coll     atomic.Pointer[allium.Collection[coded]]
	left     atomic.Int32
	returned atomic.Int32 // how often it came to its end
}

func (c *ownCode) run() {
	if c.left.Load() > 0 {
		c.left.Add(-1)
		c.do(c.coll.Load())
		c.returned.Add(1)
	}
}

// testOwn runs operations while code on the driver's goroutines fails twice, and then one that must
// succeed. It returns how often the code might still have failed.
func testOwn(t *testing.T, uri string, opts allium.ClientOptions, code *ownCode) int32 {
	t.Helper()
	client, err := allium.Open(uri, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	code.coll.Store(allium.CollectionOf[coded](client.Database("d"), "c"))
	code.left.Store(2)
	coll := client.Database("d").Collection("c")
	for range 4 {
		_, err := ending(func() error { return second(coll.InsertOne(t.Context(), bson.D{})) })
		if err != nil && !strings.Contains(err.Error(), "the program's") && !strings.Contains(err.Error(), "Goexit") {
			t.Errorf("the error is not that of the code: %v", err)
		}
		time.Sleep(15 * time.Second)
	}
	rest := code.left.Swap(0)
	if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
		t.Error(err)
	}
	if s := client.Stats(); s.Pools[0].InUse != 0 || s.Pools[0].Connecting != 0 || s.Sessions.InUse != 0 {
		t.Errorf("left: %+v, sessions %+v", s.Pools[0], s.Sessions)
	}
	return rest
}

// What a connection asks for while it is made is called on the driver's goroutines, too.
func TestCallbacksOfConnecting(t *testing.T) {
	overTLS := func(set func(cfg *tls.Config, code func())) func(t *testing.T, code func()) (string, allium.ClientOptions) {
		return func(t *testing.T, code func()) (string, allium.ClientOptions) {
			d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), mongotest.TLS(), mongotest.ReplicaSet(1))
			cfg := d.TLSConfig().Clone()
			set(cfg, code)
			return d.URI(), allium.ClientOptions{Dialer: d, TLS: cfg}
		}
	}
	for name, start := range map[string]func(t *testing.T, code func()) (string, allium.ClientOptions){
		"VerifyConnection": overTLS(func(cfg *tls.Config, code func()) {
			cfg.VerifyConnection = func(tls.ConnectionState) error { code(); return nil }
		}),
		"VerifyPeerCertificate": overTLS(func(cfg *tls.Config, code func()) {
			cfg.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { code(); return nil }
		}),
		"GetClientCertificate": overTLS(func(cfg *tls.Config, code func()) {
			certificates := cfg.Certificates
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				code()
				if len(certificates) == 0 {
					return &tls.Certificate{}, nil
				}
				return &certificates[0], nil
			}
		}),
		"AWS credentials callback": func(t *testing.T, code func()) (string, allium.ClientOptions) {
			d := testdeploy.Mock(t, "an in-memory network", mongotest.Auth("root", "root"), mongotest.InMemory())
			key := mongotest.AWSKey{ID: "AKIAPERMANENT", Secret: "wJalrXUtnFEMI/K7MDENG"}
			if err := d.AddUser(mongotest.User{Name: "arn:aws:iam::1:user/1", DB: "$external", Roles: []string{"root"}, AWS: key}); err != nil {
				t.Fatal(err)
			}
			return "mongodb://" + d.Hosts()[0] + "/?authMechanism=MONGODB-AWS", allium.ClientOptions{Dialer: d,
				AWSCredentials: func(context.Context) (auth.AWSCredentials, error) {
					code()
					return auth.AWSCredentials{AccessKeyID: key.ID, SecretAccessKey: auth.Secret(key.Secret)}, nil
				}}
		},
		"OIDC callback as a connection is authenticated again": func(t *testing.T, code func()) (string, allium.ClientOptions) {
			w := startOIDC(t)
			w.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Code: 391})
			var calls atomic.Int32
			return w.uri(""), allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{Callback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
				if calls.Add(1) > 1 {
					code()
				}
				return access(tokenOf1), nil
			}}}
		},
		"OIDC callback": func(t *testing.T, code func()) (string, allium.ClientOptions) {
			w := startOIDC(t)
			good := w.returning(t, access(tokenOf1))
			return w.uri(""), allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{Callback: func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
				code()
				return good(ctx, p)
			}}}
		},
	} {
		for _, mode := range []string{"panic", "Goexit"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					code := &ownCode{do: codeModes[mode]}
					uri, opts := start(t, code.run)
					opts.MaxPoolSize = new(1)
					if testOwn(t, uri, opts, code) == 2 {
						t.Error("the code has not run")
					}
				})
			})
		}
	}
}

// codedResolver names one mongos, and runs code.
type codedResolver struct {
	srv, txt func()
	port     uint16
}

func (r *codedResolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	r.srv()
	return "", []*net.SRV{{Target: "localhost.test.example.", Port: r.port}}, nil
}

func (r *codedResolver) LookupTXT(_ context.Context, name string) ([]string, error) {
	r.txt()
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// A resolver is asked for servers on the goroutine of Open's caller, beside that for options, and
// for further servers on one of the topology's.
func TestCodeOfResolvers(t *testing.T) {
	for _, mode := range []string{"panic", "Goexit"} {
		fails, works := func() { codeModes[mode](nil) }, func() {}
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), mongotest.Sharded(1, 1))
				_, port, err := net.SplitHostPort(d.Hosts()[0])
				if err != nil {
					t.Fatal(err)
				}
				number, err := strconv.ParseUint(port, 10, 16)
				if err != nil {
					t.Fatal(err)
				}
				try := func(r *codedResolver) (*allium.Client, error) {
					r.port = uint16(number)
					return allium.Open("mongodb+srv://test.example/?tls=false", allium.ClientOptions{Dialer: seedDialer{d}, Resolver: r})
				}
				if how, _ := ending(func() error { return second(try(&codedResolver{srv: fails, txt: works})) }); how != mode {
					t.Errorf("the records of servers: Open ended by %s, want %s", how, mode)
				}
				if how, err := ending(func() error { return second(try(&codedResolver{srv: works, txt: fails})) }); how != "call" || err == nil {
					t.Errorf("the record of options: Open ended by %s, %v", how, err)
				}
				var asked atomic.Int32
				client, err := try(&codedResolver{txt: works, srv: func() {
					if n := asked.Add(1); n > 1 && n < 4 {
						fails()
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				time.Sleep(5 * time.Minute)
				if n := asked.Load(); n < 4 {
					t.Errorf("the resolver was asked %d times", n)
				}
				if err := client.Ping(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Listeners for pools may fail when a command's error clears the pool of its server. Listeners for
// commands hear how each one ends all the same.
func TestCommandsEndForListeners(t *testing.T) {
	type options = *allium.ClientOptions
	for name, set := range map[string]func(o options, code func()){
		"PoolCleared": func(o options, code func()) {
			o.PoolMonitor = &event.PoolMonitor{PoolCleared: func(*event.PoolCleared) { code() }}
		},
		"log handler of pools": func(o options, code func()) {
			o.Logger, o.LogLevels = slog.New(codedHandler{code}), only(allium.LogConnection)
		},
	} {
		for fault, f := range map[string]mongotest.Fail{
			"connection breaks": {Commands: []string{"insert"}, Times: 1, CloseConnection: true},
			"change of state":   {Commands: []string{"insert"}, Times: 1, Code: 11600},
		} {
			for mode, do := range codeModes {
				if mode == "call" {
					continue
				}
				t.Run(name+"/"+fault+"/"+mode, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var armed, ran atomic.Bool
						var started, ended atomic.Int32
						opts := allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
							Started:   func(context.Context, *event.CommandStarted) { started.Add(1) },
							Succeeded: func(context.Context, *event.CommandSucceeded) { ended.Add(1) },
							Failed:    func(context.Context, *event.CommandFailed) { ended.Add(1) },
						}}
						set(&opts, func() {
							if armed.CompareAndSwap(true, false) {
								ran.Store(true)
								do(nil)
							}
						})
						d, client, _ := bubble(t, opts, mongotest.ReplicaSet(1))
						coll := allium.CollectionOf[coded](client.Database("d"), "c")
						if _, err := coll.InsertOne(t.Context(), coded{}); err != nil {
							t.Fatal(err)
						}
						d.FailCommand(f)
						armed.Store(true)
						how, _ := ending(func() error { return second(coll.InsertOne(t.Context(), coded{})) })
						if !ran.Load() {
							t.Fatalf("the code ran: %v; the operation ended by %s", ran.Load(), how)
						}
						if s, e := started.Load(), ended.Load(); s != e {
							t.Errorf("%d commands have started, %d have ended", s, e)
						}
						if _, err := coll.InsertOne(t.Context(), coded{}); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}
