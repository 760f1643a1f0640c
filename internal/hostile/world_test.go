package hostile

import (
	"bytes"
	"context"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"allium"
	"allium/bson"
	"allium/internal/fakeserver"
	"allium/internal/wire"
)

func TestMain(m *testing.M) {
	// All allocations would be counted with a rate of 1, and take half of the time. The bounds are
	// of megabytes, and thousands of samples tell those.
	runtime.MemProfileRate = 8 << 10
	goleak.VerifyTestMain(m)
}

// world is a network in which every address is the same hostile server.
type world struct {
	serve func(*peer) // one connection, from its first byte; it is closed when serve returns
	hangs bool        // dialing takes for ever, whatever the context says
	ended chan struct{}

	dials, sent atomic.Int64
	over        atomic.Bool // what was counted is over the bound: no more is sent, so that the test ends
	maxDials    int64
	maxSent     int64

	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

// DialContext makes world a Dialer.
func (w *world) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	if w.dials.Add(1) > w.maxDials {
		w.over.Store(true)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if w.hangs {
		<-w.ended
		return nil, net.ErrClosed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.ended: // stop waits for those that there are
		return nil, net.ErrClosed
	default:
	}
	client, server := net.Pipe()
	w.conns = append(w.conns, server)
	w.wg.Go(func() {
		defer server.Close()
		w.serve(&peer{Conn: server, world: w, addr: addr})
	})
	return client, nil
}

func (w *world) stop() {
	w.mu.Lock()
	select {
	case <-w.ended:
	default:
		close(w.ended)
	}
	for _, c := range w.conns {
		c.Close()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// peer is the server's end of a connection.
type peer struct {
	net.Conn
	world *world
	addr  string
	last  int32 // the id of the last message that was sent
}

// next returns the next command, ok == false at the end of the connection.
func (p *peer) next() (name string, id int32, m wire.Msg, ok bool) {
	name, id, m, err := fakeserver.Read(p)
	if err != nil {
		return "", 0, m, false
	}
	if name == "isMaster" {
		name = "hello"
	}
	return name, id, m, true
}

// send sends the bytes of a message. It reports whether more may be sent.
func (p *peer) send(msg []byte) bool {
	if p.world.sent.Add(1) > p.world.maxSent {
		p.world.over.Store(true)
		return false
	}
	_, err := p.Write(msg)
	return err == nil
}

// reply sends a whole message with a body.
func (p *peer) reply(to int32, flags wire.Flags, body bson.Raw) bool {
	p.last = wire.NextRequestID()
	return p.send(fakeserver.Reply(p.last, to, flags, body))
}

// ever answers hellos, and everything else with answer; where answer is nil, nothing else is
// answered.
func ever(hello func(p *peer) bson.Raw, answer func(p *peer, name string, id int32) bool) func(*peer) {
	return func(p *peer) {
		for {
			name, id, _, ok := p.next()
			switch {
			case !ok:
				return
			case name == "hello":
				ok = p.reply(id, 0, hello(p))
			case answer != nil:
				ok = answer(p, name, id)
			}
			if !ok {
				return
			}
		}
	}
}

// doc returns a document.
func doc(elements ...bson.E) bson.Raw {
	raw, err := bson.Marshal(bson.D(elements))
	if err != nil {
		panic(err)
	}
	return raw
}

func e(key string, v any) bson.E { return bson.E{Key: key, Value: v} }

// standalone is the hello of a harmless server.
func standalone(more ...bson.E) bson.Raw {
	return doc(append([]bson.E{e("isWritablePrimary", true), e("helloOk", true), e("maxBsonObjectSize", 16<<20), e("maxMessageSizeBytes", 48_000_000),
		e("maxWriteBatchSize", 100_000), e("minWireVersion", 0), e("maxWireVersion", 25), e("ok", 1.0)}, more...)...)
}

// version returns a topologyVersion, which makes the client ask for a stream of hellos.
func version(counter int64) bson.E {
	return e("topologyVersion", bson.D{e("processId", bson.ObjectID{1}), e("counter", counter)})
}

// bounds are what a server can make a client do within half a minute. What the server needs itself
// is not counted.
type bounds struct {
	dials, sent int64
	goroutines  int
	allocated   uint64 // bytes in all
	live        uint64 // bytes that are still in use at the end
}

// usual has room for two connections for each operation, and for a check every half second. What
// is allocated is several times as much under the race detector, which empties pools. A connection
// takes up to 16.1 MiB on the word of a header, and six may read at once: those of three
// operations, of two monitors, and one that is opened in the background. The most that was seen is
// 67 goroutines, 134 MB, and 17 MB in use.
var usual = bounds{dials: 2*operations + 100, sent: 2000, goroutines: 100, allocated: 256 << 20, live: 6 * (16<<20 + 64<<10)}

const (
	span     = 30 * time.Second // of an attack
	opTime   = 2 * time.Second
	closing  = time.Second
	interval = 500 * time.Millisecond
	grace    = 100 * time.Millisecond // for a server that is told to forget a cursor

	operations = 3 * int64(span/interval)
)

// attack serves a client that runs operations with serve, and compares what it does with the
// bounds. With a nil serve a dial never succeeds.
func attack(t *testing.T, options string, b bounds, serve func(*peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { assault(t, options, b, serve) })
}

// assault is the part of attack that runs in its bubble.
func assault(t *testing.T, options string, b bounds, serve func(*peer)) {
	t.Helper()
	w := &world{serve: serve, hangs: serve == nil, ended: make(chan struct{}), maxDials: b.dials, maxSent: b.sent}
	defer w.stop()
	before, liveBefore := memory()
	idle := goroutines()
	client, err := allium.Open("mongodb://"+options, allium.ClientOptions{Dialer: w})
	if err != nil {
		t.Fatal(err)
	}
	peak := 0
	var ops sync.WaitGroup
	for range int(span / interval) {
		ops.Go(func() { operate(t, client) })
		time.Sleep(interval)
		peak = max(peak, goroutines()-idle)
	}
	_, live := memory()
	// The last operations are still under way.
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	start := time.Now()
	client.Close(ctx)
	if took := time.Since(start); took > closing {
		t.Errorf("Close with a context of %v took %v", closing, took)
	}
	ops.Wait()
	w.stop()
	synctest.Wait()
	if w.over.Load() {
		t.Errorf("%d connections and %d messages, want at most %d and %d", w.dials.Load(), w.sent.Load(), b.dials, b.sent)
	}
	if peak > b.goroutines {
		t.Errorf("%d goroutines, want at most %d", peak, b.goroutines)
	}
	total, _ := memory()
	total, live = total-before, max(live, liveBefore)-liveBefore
	if total > b.allocated || live > b.live {
		t.Errorf("%d bytes were allocated, %d are in use, want at most %d and %d", total, live, b.allocated, b.live)
	}
	t.Logf("%d connections, %d messages, %d goroutines, %d KB, %d KB in use", w.dials.Load(), w.sent.Load(), peak, total>>10, live>>10)
}

// operate runs operations of several kinds, none of which may outlast its context.
func operate(t *testing.T, client *allium.Client) {
	coll := client.Database("db").Collection("c")
	for name, op := range map[string]func(context.Context) error{
		"ping":   func(ctx context.Context) error { return client.Ping(ctx) },
		"insert": func(ctx context.Context) error { _, err := coll.InsertOne(ctx, bson.D{e("x", 1)}); return err },
		"find": func(ctx context.Context) error {
			cur, err := coll.Find(ctx, bson.D{})
			if err != nil {
				return err
			}
			for _, err := range cur.Seq(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), opTime)
		start := time.Now()
		_ = op(ctx)
		if took := time.Since(start); took > opTime+grace {
			t.Errorf("%s with a context of %v took %v", name, opTime, took)
		}
		cancel()
	}
}

// others are the functions of the attacker, of a proxy and of the servers behind it. What has none
// of them on its stack is the client's.
var others = []string{"allium/mongotest", "allium/internal/fakeserver", "allium/internal/hostile.(*world)", "allium/internal/hostile.(*peer)", "allium/internal/hostile.through", "allium/internal/hostile.goroutines", "allium/internal/hostile.memory"}

func ofOthers(stack string) bool {
	return slices.ContainsFunc(others, func(name string) bool { return strings.Contains(stack, name) })
}

// memory returns how many bytes the client has allocated so far, and how many of them are in use,
// as of now.
func memory() (total, live uint64) {
	runtime.GC() // what a profile shows of memory that was freed is a cycle old
	runtime.GC()
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, true); !ok; {
		records = make([]runtime.MemProfileRecord, n+100)
		if n, ok = runtime.MemProfile(records, true); ok {
			records = records[:n]
		}
	}
	for i := range records {
		r := &records[i]
		if !clients(r.Stack()) {
			continue
		}
		share := sampled(r.AllocBytes, r.AllocObjects)
		total += uint64(float64(r.AllocBytes) / share)
		live += uint64(float64(r.InUseBytes()) / share)
	}
	return total, live
}

// sampled returns the share of a stack's allocations that the profile holds: what is larger than
// the rate is hardly ever missed, what is smaller nearly always.
func sampled(size, objects int64) float64 {
	if objects == 0 {
		return 1
	}
	return -math.Expm1(-float64(size) / float64(objects) / float64(runtime.MemProfileRate))
}

// clients reports whether a stack is the client's: the driver is on it, and no attacker.
func clients(stack []uintptr) bool {
	driver := false
	for frames := runtime.CallersFrames(stack); ; {
		f, more := frames.Next()
		if ofOthers(f.Function) {
			return false
		}
		driver = driver || strings.HasPrefix(f.Function, "allium.") || strings.HasPrefix(f.Function, "allium/")
		if !more {
			return driver
		}
	}
}

// stacks is where goroutines writes; one attack runs at a time.
var stacks = make([]byte, 4<<20)

// goroutines returns how many goroutines of the bubble are the client's, or wait for it.
func goroutines() (n int) {
	for stack := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
		head, _, _ := bytes.Cut(stack, []byte("\n"))
		if bytes.Contains(head, []byte("synctest bubble")) && !ofOthers(string(stack)) {
			n++
		}
	}
	return n
}

// What memory says is near to what was allocated, whatever the sizes.
func TestMemoryIsEstimated(t *testing.T) {
	for _, size := range []int{16, 200, 5000, 100_000} {
		before, _ := memory()
		const want = 64 << 20
		kept := make([][]byte, 0, want/size)
		for range want / size {
			kept = append(kept, make([]byte, size))
		}
		total, live := memory()
		runtime.KeepAlive(kept)
		total -= before
		// The slice itself is some of it, and sizes are rounded up.
		if least := uint64(want) * 9 / 10; total < least || total > 3*want || live < least {
			t.Errorf("%d bytes of allocations of %d bytes: %d, %d of them in use", want, size, total, live)
		}
	}
}
