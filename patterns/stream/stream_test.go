package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/mongoerr"
	"allium/mongotest"
	"allium/patterns/lease"
	"allium/patterns/stream"
)

// doc is what the tests write: the nth write of a key.
type doc struct {
	ID string `bson:"_id"`
	N  int    `bson:"n"`
}

// bench is a replica set in memory, with a client for those who write.
type bench struct {
	*testing.T
	d      *mongotest.Deployment
	client *allium.Client
	docs   *allium.Collection[doc]
}

func setUp(t *testing.T, members int) *bench {
	d := mongotest.Start(t, mongotest.ReplicaSet(members), mongotest.InMemory())
	b := &bench{T: t, d: d}
	b.client = b.open()
	b.docs = allium.CollectionOf[doc](b.client.Database("app"), "docs")
	if err := b.docs.Database().CreateCollection(t.Context(), "docs"); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) open() *allium.Client {
	b.Helper()
	c, err := allium.Open(b.d.URI(), allium.ClientOptions{Dialer: b.d})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func (b *bench) coll(name string) *allium.UntypedCollection {
	return b.client.Database("app").Collection(name)
}

// write writes n for a key.
func (b *bench) write(key string, n int) {
	b.Helper()
	_, err := b.docs.UpdateOne(b.Context(), bson.M{"_id": key}, bson.M{"$set": bson.M{"n": n}}, allium.UpdateOptions{Upsert: true})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) options(handle func(ctx context.Context, ev allium.ChangeEvent[doc]) error) stream.Options[doc] {
	return stream.Options[doc]{Name: "test", Store: b.coll("consumers"), Handle: handle}
}

// a run is a consumer at work.
type running struct {
	stop context.CancelFunc
	done chan error
}

func (b *bench) start(o stream.Options[doc]) *running {
	ctx, stop := context.WithCancel(b.Context())
	r := &running{stop: stop, done: make(chan error, 1)}
	go func() { r.done <- stream.Run(ctx, b.docs, o) }()
	b.Cleanup(stop)
	return r
}

func (r *running) end() error {
	r.stop()
	return <-r.done
}

// what returns what an event tells of the writes to a key.
func what(ev allium.ChangeEvent[doc]) (key string, n int) {
	key, _ = ev.DocumentKey.Lookup("_id").StringValue()
	if ev.FullDocument != nil {
		return key, ev.FullDocument.N
	}
	if ev.UpdateDescription != nil {
		v, _ := ev.UpdateDescription.UpdatedFields.Lookup("n").AsInt64()
		n = int(v)
	}
	return key, n
}

// TestEveryEvent lets copies of a program die and be replaced, while members of the deployment
// die, hang, step down and lose replies. Each acknowledged write is handled, those of a key in
// order, and none by a holder that another one has followed.
func TestEveryEvent(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			b := setUp(t, 3)
			var mu sync.Mutex
			handled := map[string]int{} // the highest of each key
			var newest int64
			calls := 0
			handle := func(ctx context.Context, ev allium.ChangeEvent[doc]) error {
				mu.Lock()
				defer mu.Unlock()
				calls++
				if token := stream.Token(ctx); token < newest {
					t.Errorf("seed %d: holder %d handles after holder %d", seed, token, newest)
				} else {
					newest = token
				}
				key, n := what(ev)
				if ev.OperationType == allium.ChangeInvalidate || key == "" {
					return nil
				}
				if n > handled[key]+1 {
					t.Errorf("seed %d: %s %d is handled, and the last one was %d", seed, key, n, handled[key])
				}
				if rand.IntN(20) == 0 {
					return errors.New("not now")
				}
				handled[key] = max(handled[key], n)
				return nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			for range 3 { // copies, each of which is restarted now and then, gracefully or not
				wg.Go(func() {
					for ctx.Err() == nil {
						c := b.open()
						one, stop := context.WithTimeout(ctx, time.Duration(5+rand.IntN(60))*time.Second)
						o := stream.Options[doc]{Name: "test", Store: c.Database("app").Collection("consumers"), Handle: handle, Parallel: 1 + rand.IntN(3),
							Attempts: -1, Lease: lease.Options{TTL: 4 * time.Second}}
						if rand.IntN(2) == 0 {
							dies := time.AfterFunc(3*time.Second, func() { c.Close(context.Background()) })
							defer dies.Stop()
						}
						err := stream.Run(one, allium.CollectionOf[doc](c.Database("app"), "docs"), o)
						if one.Err() == nil && !errors.Is(err, mongoerr.ErrClientClosed) {
							t.Errorf("seed %d: Run ends: %v", seed, err)
						}
						stop()
						c.Close(context.Background())
					}
				})
			}
			for range 60 { // until the first position is stored
				time.Sleep(time.Second)
				if _, err := b.coll("consumers").FindOne(ctx, bson.M{"position": bson.M{"$exists": true}}); err == nil {
					break
				}
			}
			faults := make(chan struct{})
			go func() {
				defer close(faults)
				for range 12 {
					time.Sleep(time.Duration(500+r.IntN(5000)) * time.Millisecond)
					switch n := b.d.Node(r.IntN(3)); r.IntN(4) {
					case 0:
						b.d.StepDown()
					case 1:
						n.Kill()
						time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
						if err := n.Restart(); err != nil {
							t.Error(err)
						}
					case 2:
						n.SetNetFaults(mongotest.NetFaults{DropAfter: 1, Times: 3})
					case 3:
						n.Hang()
						time.Sleep(time.Duration(r.IntN(6000)) * time.Millisecond)
						n.Resume()
					}
				}
			}()
			written := map[string]int{}
			for i := 0; i < 200; i++ {
				key := fmt.Sprint("k", i%5)
				for { // until it is certain, so that writes of a key have an order
					_, err := b.docs.UpdateOne(ctx, bson.M{"_id": key}, bson.M{"$set": bson.M{"n": written[key] + 1}}, allium.UpdateOptions{Upsert: true, Timeout: new(time.Minute)})
					if err == nil {
						break
					}
				}
				written[key]++
				time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
			}
			<-faults
			for i := 0; ; i++ {
				mu.Lock()
				all := fmt.Sprint(handled) == fmt.Sprint(written)
				mu.Unlock()
				if all {
					break
				}
				if i == 300 {
					t.Errorf("seed %d: %v was handled, want %v", seed, handled, written)
					break
				}
				time.Sleep(time.Second)
			}
			cancel()
			wg.Wait()
			t.Logf("seed %d: %d calls, %d holders", seed, calls, newest)
		})
	}
}

// TestFirstPosition: what happens after the first start of a consumer is handled, though it ended
// before it saw an event.
func TestFirstPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		var seen []int
		o := b.options(func(_ context.Context, ev allium.ChangeEvent[doc]) error {
			_, n := what(ev)
			seen = append(seen, n)
			return nil
		})
		first := b.start(o)
		time.Sleep(time.Second)
		if err := first.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run ends with %v", err)
		}
		b.write("a", 1)
		second := b.start(o)
		time.Sleep(3 * time.Second)
		b.write("a", 2)
		time.Sleep(3 * time.Second)
		second.end()
		third := b.start(o)
		time.Sleep(3 * time.Second)
		third.end()
		if !slices.Equal(seen, []int{1, 2}) {
			t.Errorf("%v was handled, want 1 and 2", seen)
		}
	})
}

// TestIdle: the position moves while nothing happens, so that it does not become too old.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		run := b.start(b.options(func(context.Context, allium.ChangeEvent[doc]) error { return nil }))
		position := func() string {
			d, err := b.coll("consumers").FindOne(t.Context(), bson.M{"_id": "test.position"})
			if err != nil {
				t.Fatal(err)
			}
			v, _ := d.Get("position")
			return fmt.Sprint(v)
		}
		time.Sleep(time.Second)
		before := position()
		if _, err := b.coll("others").InsertOne(t.Context(), bson.M{"x": 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if position() == before {
			t.Error("the position has not moved")
		}
		run.end()
	})
}

// TestPoison parks what cannot be handled, and goes on behind it.
func TestPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		calls := map[int]int{}
		var handled []int
		o := b.options(func(_ context.Context, ev allium.ChangeEvent[doc]) error {
			_, n := what(ev)
			calls[n]++
			switch n {
			case 1:
				return errors.New("never")
			case 2:
				return stream.Refuse(errors.New("at once"))
			case 3:
				panic("boom")
			case 4:
				runtime.Goexit()
			case 5:
				if calls[n] < 3 {
					return errors.New("later")
				}
			}
			handled = append(handled, n)
			return nil
		})
		o.Attempts = 4
		o.Park = b.coll("parked")
		run := b.start(o)
		time.Sleep(time.Second)
		for n := range 7 {
			b.write("k", n)
		}
		if _, err := b.coll("docs").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "odd"}, {Key: "n", Value: "text"}}); err != nil {
			t.Fatal(err)
		}
		b.write("k", 7)
		time.Sleep(time.Minute)
		synctest.Wait() // also for the race detector, which does not know that time has stood still
		if want := []int{0, 5, 6, 7}; !slices.Equal(handled, want) || fmt.Sprint(calls) != "map[0:1 1:4 2:1 3:4 4:4 5:3 6:1 7:1]" {
			t.Errorf("%v was handled, want %v; calls: %v", handled, want, calls)
		}
		parked, err := allium.As[stream.Parked](o.Park).All(t.Context(), bson.D{}, allium.FindOptions{Sort: bson.D{{Key: "_id.event._data", Value: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range parked {
			reason, _, _ := strings.Cut(p.Reason, "\n")
			key, _ := p.Event.Lookup("documentKey", "_id").StringValue()
			got = append(got, fmt.Sprintf("%s %d %s", key, p.Attempts, reason))
			if p.ID.Name != "test" || !bson.Equal(p.ID.Event, bson.Raw(p.Event.Lookup("_id").Value)) {
				t.Errorf("parked as %v", p.ID)
			}
		}
		want := []string{"k 4 never", "k 1 event is refused: at once", "k 4 panic: boom", "k 4 runtime.Goexit was called"}
		if len(got) != 5 || !slices.Equal(got[:4], want) || !strings.HasPrefix(got[4], "odd 0 ") || !strings.Contains(got[4], "decode event") {
			t.Errorf("parked: %q", got)
		}
		run.end()

		// Without a place for it, such an event ends Run, and is met again.
		o.Park = nil
		b.write("k", 2)
		for range 2 {
			calls[2] = 0
			again := b.start(o)
			if err := <-again.done; !errors.Is(err, stream.ErrRefused) || calls[2] != 1 {
				t.Errorf("%v after %d calls", err, calls[2])
			}
		}
	})
}

// TestLargeEvent parks an event that a document cannot hold with more around it.
func TestLargeEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		o := b.options(func(context.Context, allium.ChangeEvent[doc]) error { return stream.Refuse(errors.New("no")) })
		o.Park = b.coll("parked")
		run := b.start(o)
		time.Sleep(time.Second)
		if _, err := b.coll("docs").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "large"}, {Key: "text", Value: strings.Repeat("x", 16<<20-450)}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		p, err := allium.As[stream.Parked](o.Park).FindOne(t.Context(), bson.D{})
		if id, _ := p.Event.Lookup("documentKey", "_id").StringValue(); err != nil || !p.Cut || id != "large" {
			t.Errorf("%v, cut %v, of %q", err, p.Cut, id)
		}
		run.end()
	})
}

// TestLost asks the program what to do when the server has forgotten the position.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		var seen []int
		begun := 0
		o := b.options(func(_ context.Context, ev allium.ChangeEvent[doc]) error {
			_, n := what(ev)
			seen = append(seen, n)
			return nil
		})
		o.Begin = func(ctx context.Context) error {
			if begun++; stream.Token(ctx) == 0 {
				t.Error("Begin has no token")
			}
			return nil
		}
		first := b.start(o)
		time.Sleep(time.Second)
		b.write("a", 1)
		time.Sleep(3 * time.Second)
		first.end()
		b.write("a", 2) // this one is lost
		b.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
			if c.Name == "aggregate" && !c.Body.Lookup("pipeline", "0", "$changeStream", "startAfter").IsZero() {
				return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 286}, {Key: "codeName", Value: "ChangeStreamHistoryLost"}, {Key: "errmsg", Value: "gone"}})
			}
			return nil, nil
		})
		if err := <-b.start(o).done; !mongoerr.HasCode(err, 286) {
			t.Errorf("without Lost: %v", err)
		}
		o.Lost = func(_ context.Context, err error) error { return fmt.Errorf("not without me: %w", err) }
		if err := <-b.start(o).done; !mongoerr.HasCode(err, 286) || !strings.Contains(err.Error(), "not without me") {
			t.Errorf("Lost fails: %v", err)
		}
		o.Lost = func(context.Context, error) error { return nil }
		run := b.start(o)
		time.Sleep(time.Second)
		b.write("a", 3)
		time.Sleep(3 * time.Second)
		run.end()
		if !slices.Equal(seen, []int{1, 3}) || begun != 2 {
			t.Errorf("%v was handled, %d beginnings", seen, begun)
		}
		// Begin fails: it is called again with the next start.
		b.d.OnCommand(nil)
		o.Name = "other"
		o.Begin = func(context.Context) error { begun++; return errors.New("not yet") }
		for range 2 {
			if err := <-b.start(o).done; err == nil || !strings.Contains(err.Error(), "not yet") {
				t.Errorf("Begin fails: %v", err)
			}
		}
		if begun != 4 {
			t.Errorf("%d beginnings, want 4", begun)
		}
	})
}

// TestDrop goes on with a collection that was dropped and made again, and handles the drop alone.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		var mu sync.Mutex
		var seen []string
		o := b.options(func(_ context.Context, ev allium.ChangeEvent[doc]) error {
			if ev.OperationType == allium.ChangeInsert {
				time.Sleep(time.Duration(ev.FullDocument.N) * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, string(ev.OperationType))
			return nil
		})
		o.Parallel = 4
		run := b.start(o)
		time.Sleep(time.Second)
		b.write("a", 3)
		b.write("b", 1)
		b.write("c", 2)
		if err := b.docs.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.write("d", 1)
		time.Sleep(10 * time.Second)
		run.end()
		if want := []string{"insert", "insert", "insert", "drop", "insert"}; !slices.Equal(seen, want) {
			t.Errorf("%v, want %v", seen, want)
		}
	})
}

// TestParallel handles events of different keys at once, and those of one key one after the other.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		var mu sync.Mutex
		most, now := 0, 0
		busy := map[string]bool{}
		last := map[string]int{}
		var progress []stream.Progress
		o := b.options(func(_ context.Context, ev allium.ChangeEvent[doc]) error {
			key, n := what(ev)
			key = key[:1]
			mu.Lock()
			if busy[key] || n <= last[key] {
				t.Errorf("%s %d is handled beside or behind %d", key, n, last[key])
			}
			busy[key], last[key] = true, n
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy[key] = false
			now--
			mu.Unlock()
			return nil
		})
		o.Parallel = 8
		o.Key = func(ev allium.ChangeEvent[doc]) string { key, _ := what(ev); return key[:1] } // of several documents
		o.Observe = func(p stream.Progress) { progress = append(progress, p) }
		run := b.start(o)
		time.Sleep(time.Second)
		n := 0
		for i := range 60 {
			n++
			b.write(fmt.Sprintf("%c%d", 'a'+i%6, i%4), n)
		}
		time.Sleep(2 * time.Minute)
		run.end()
		if most < 2 || most > 6 {
			t.Errorf("%d events were handled at once, of 6 keys", most)
		}
		var lag time.Duration
		for _, p := range progress {
			lag = max(lag, p.Lag)
		}
		end := progress[len(progress)-1]
		if lag < 5*time.Second || end.Lag != 0 || end.Pending != 0 || end.Handled != 60 || end.Parked != 0 || end.Token != 1 {
			t.Errorf("lag %v, at the end %+v", lag, end)
		}
	})
}

// TestTakeover: a copy goes on where a dead one was, and a holder that was suspended stores
// nothing any more.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		var mu sync.Mutex
		seen := map[int][]int64{}
		o := b.options(func(ctx context.Context, ev allium.ChangeEvent[doc]) error {
			_, n := what(ev)
			mu.Lock()
			defer mu.Unlock()
			seen[n] = append(seen[n], stream.Token(ctx))
			return nil
		})
		other := b.open()
		dying := o
		dying.Store = other.Database("app").Collection("consumers")
		go stream.Run(t.Context(), allium.CollectionOf[doc](other.Database("app"), "docs"), dying)
		time.Sleep(time.Second)
		b.write("a", 1)
		time.Sleep(3 * time.Second)
		run := b.start(o)
		time.Sleep(time.Minute) // it waits
		b.write("a", 2)
		time.Sleep(3 * time.Second)
		other.Close(t.Context())
		b.write("a", 3)
		time.Sleep(20 * time.Second)
		mu.Lock()
		if fmt.Sprint(seen) != "map[1:[1] 2:[1] 3:[2]]" {
			t.Errorf("handled by %v", seen)
		}
		mu.Unlock()
		run.end()
		if err := stream.StoreAs(t.Context(), b.coll("consumers"), "test", 1); !errors.Is(err, lease.ErrLost) {
			t.Errorf("the first holder stores a position: %v", err)
		}
		if err := stream.StoreAs(t.Context(), b.coll("consumers"), "test", 2); err != nil {
			t.Errorf("the second holder stores a position: %v", err)
		}
	})
}

// TestRelay sends what was in an outbox before, and then what comes, once, in the order of the
// commits; what cannot be sent is parked and stays.
func TestRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		for n := range 3 {
			b.write(fmt.Sprint("old", n), n)
		}
		odd := func(id string) {
			if _, err := b.coll("docs").InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "n", Value: "text"}}); err != nil {
				t.Fatal(err)
			}
		}
		odd("oddold")
		var sent []string
		fails := 2
		send := func(ctx context.Context, d doc) error {
			if d.N == 1 && fails > 0 {
				fails--
				return errors.New("not now")
			}
			if d.ID == "bad" {
				return errors.New("never")
			}
			sent = append(sent, d.ID)
			return nil
		}
		o := stream.Options[doc]{Name: "relay", Store: b.coll("consumers"), Park: b.coll("parked"), Attempts: 3}
		start := func() *running {
			ctx, stop := context.WithCancel(t.Context())
			r := &running{stop, make(chan error, 1)}
			go func() { r.done <- stream.Relay(ctx, b.docs, send, o) }()
			return r
		}
		run := start()
		time.Sleep(10 * time.Second)
		for _, id := range []string{"b", "bad", "a"} {
			b.write(id, 5)
		}
		odd("oddnew")
		time.Sleep(10 * time.Second)
		run.end()
		b.write("c", 5)
		run = start()
		time.Sleep(10 * time.Second)
		run.end()
		if want := []string{"old0", "old1", "old2", "b", "a", "c"}; !slices.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
		left, err := allium.Distinct[string](t.Context(), b.docs, "_id", bson.D{})
		if err != nil || !slices.Equal(left, []string{"bad", "oddnew", "oddold"}) {
			t.Errorf("%v is left, %v", left, err)
		}
		if n, err := b.coll("parked").CountDocuments(t.Context(), bson.D{}); n != 3 || err != nil {
			t.Errorf("%d are parked, %v", n, err)
		}
		if err := stream.Relay(t.Context(), b.docs, send, stream.Options[doc]{Name: "x", Store: b.coll("c"), Begin: func(context.Context) error { return nil }}); err == nil {
			t.Error("Relay takes Begin")
		}
		if err := stream.Relay(t.Context(), b.docs, nil, o); err == nil {
			t.Error("Relay takes no send")
		}
	})
}

// TestMisuse refuses options that cannot be meant, before anything is sent.
func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, 1)
		good := b.options(func(context.Context, allium.ChangeEvent[doc]) error { return nil })
		for name, change := range map[string]func(o *stream.Options[doc]){
			"Name":   func(o *stream.Options[doc]) { o.Name = "" },
			"Store":  func(o *stream.Options[doc]) { o.Store = nil },
			"Handle": func(o *stream.Options[doc]) { o.Handle = nil },
			"Watch":  func(o *stream.Options[doc]) { o.Watch.ResumeAfter = bson.Raw{5, 0, 0, 0, 0} },
			"number": func(o *stream.Options[doc]) { o.Parallel = -1 },
		} {
			o := good
			change(&o)
			if err := stream.Run(t.Context(), b.docs, o); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		o := good
		o.Pipeline = bson.A{bson.D{{Key: "$nonsense", Value: 1}}}
		if err := stream.Run(t.Context(), b.docs, o); !mongoerr.HasCode(err, 40324) {
			t.Errorf("a stage that is none: %v", err)
		}
	})
}

// TestListenersThatLeave: a listener of the program panics, or ends the goroutine, at each command
// of a consumer in turn, and at the first of the goroutines that read and store. Wherever that is,
// nothing goes on behind it, and another copy takes over.
func TestListenersThatLeave(t *testing.T) {
	own := errors.New("a listener's own")
	goroutines := []string{").read(", ").keep("}
	for _, exits := range []bool{false, true} {
		for at := range 12 + len(goroutines) {
			synctest.Test(t, func(t *testing.T) {
				b := setUp(t, 1)
				var commands atomic.Int64
				var once atomic.Bool
				client, err := allium.Open(b.d.URI(), allium.ClientOptions{Dialer: b.d,
					CommandMonitor: &event.CommandMonitor{Started: func(context.Context, *event.CommandStarted) {
						hit := commands.Add(1) == int64(at+1)
						if at >= 12 {
							hit = strings.Contains(string(debug.Stack()), goroutines[at-12]) && once.CompareAndSwap(false, true)
						}
						if hit {
							if exits {
								runtime.Goexit()
							}
							panic(own)
						}
					}}})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(t.Context())
				ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
				defer stop()
				o := b.options(func(context.Context, allium.ChangeEvent[doc]) error { return nil })
				o.Store = client.Database("app").Collection("consumers")
				left := make(chan error, 1)
				go func() {
					err := errors.New("the goroutine of Run's caller ended")
					defer func() {
						if v := recover(); v != nil {
							err, _ = v.(error)
						}
						left <- err
					}()
					err = stream.Run(ctx, allium.CollectionOf[doc](client.Database("app"), "docs"), o)
				}()
				for n := range 3 {
					time.Sleep(time.Second)
					b.write("a", n)
				}
				// A program finds its own error in that of Run, by errors.Is.
				if err := <-left; !exits && !errors.Is(err, own) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("command %d: %v", at, err)
				}
				synctest.Wait()
				if at >= 12 && !once.Load() {
					t.Errorf("no command came from %s", goroutines[at-12])
				}
				handled := make(chan int, 10)
				o = b.options(func(_ context.Context, ev allium.ChangeEvent[doc]) error {
					_, n := what(ev)
					handled <- n
					return nil
				})
				second := b.start(o)
				time.Sleep(time.Minute) // the lease that nobody gave back ends
				b.write("a", 9)
				for n := range handled {
					if n == 9 {
						break
					}
				}
				if err := second.end(); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
	}
}
