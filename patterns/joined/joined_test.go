package joined_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/encryptiontest"
	"allium/event"
	"allium/mongoerr"
	"allium/mongotest"
	"allium/patterns/joined"
)

// connect opens a client of a deployment that is in memory.
func connect(t *testing.T, d *mongotest.Deployment, o allium.ClientOptions) *allium.Client {
	t.Helper()
	o.Dialer = d
	c, err := allium.Open(d.URI(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// counting returns a monitor that counts finds.
func counting(n *atomic.Int64) *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
		if e.CommandName == "find" {
			n.Add(1)
		}
	}}
}

// slow makes every find take a tenth of a second of the bubble's time.
func slow(t *testing.T, c *allium.Client) {
	t.Helper()
	if _, err := c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: "alwaysOn"}, {Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true},
			{Key: "blockTimeMS", Value: 100}}}}); err != nil {
		t.Fatal(err)
	}
}

// ids are _ids of all types, many of which are equal to each other for some server or collation.
func ids(r *rand.Rand) any {
	small := int64(r.IntN(5))
	switch r.IntN(14) {
	case 0:
		return int32(small)
	case 1:
		return small
	case 2:
		return float64(small)
	case 3:
		return float64(small) + 0.5
	case 4:
		d, _ := bson.ParseDecimal128(fmt.Sprint(small))
		return d
	case 5:
		return string(rune('a' + small))
	case 6:
		return string(rune('A' + small))
	case 7:
		return bson.ObjectID{11: byte(small)}
	case 8:
		return bson.Binary{Subtype: byte(small % 2), Data: []byte{byte(small)}}
	case 9:
		return time.UnixMilli(small)
	case 10:
		return small%2 == 0
	case 11:
		return bson.D{{Key: "n", Value: small}}
	case 12:
		return bson.Regex{Pattern: "^[a-c]"}
	}
	return bson.Null{}
}

// TestSameAsFindOne reads random _ids of all types from collections with and without a collation,
// many at a time: what Find returns is what FindOne returns, and fewer finds are made.
func TestSameAsFindOne(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 36))
			var finds atomic.Int64
			d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
			c := connect(t, d, allium.ClientOptions{CommandMonitor: counting(&finds)})
			db := c.Database("app")
			if seed%2 == 1 {
				if err := db.CreateCollection(t.Context(), "docs", allium.CreateCollectionOptions{
					Collation: &allium.Collation{Locale: "en", Strength: 2}}); err != nil {
					t.Fatal(err)
				}
			}
			coll := allium.CollectionOf[bson.D](db, "docs")
			for n := range 60 {
				// Duplicates, and what may not be an _id, are refused.
				_, _ = coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: ids(r)}, {Key: "n", Value: n}})
			}
			slow(t, c)
			const calls = 300
			reader := joined.New(coll, joined.Options{Finds: 1 + r.IntN(3), MaxIDs: 1 + r.IntN(60)})
			before := finds.Load()
			var wg sync.WaitGroup
			for range calls {
				id, pause := ids(r), time.Duration(r.IntN(1000))*time.Millisecond
				wg.Go(func() {
					time.Sleep(pause)
					got, err := reader.Find(t.Context(), id)
					want, wantErr := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}})
					if !reflect.DeepEqual(got, want) || !errors.Is(err, wantErr) {
						t.Errorf("%T %v: %v, %v; FindOne returns %v, %v", id, id, got, err, want, wantErr)
					}
				})
			}
			wg.Wait()
			if n := finds.Load() - before - calls; n > calls*3/4 {
				t.Errorf("%d finds for %d calls", n, calls)
			}
		})
	}
}

// TestCollation: with a collation a document answers for strings that are not its _id.
func TestCollation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()), allium.ClientOptions{})
		db := c.Database("app")
		if err := db.CreateCollection(t.Context(), "docs", allium.CreateCollectionOptions{
			Collation: &allium.Collation{Locale: "en", Strength: 2}}); err != nil {
			t.Fatal(err)
		}
		coll := allium.CollectionOf[bson.D](db, "docs")
		doc := bson.D{{Key: "_id", Value: "ada"}}
		if _, err := coll.InsertOne(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
		slow(t, c)
		reader := joined.New(coll, joined.Options{Finds: 1})
		var wg sync.WaitGroup
		for _, id := range []string{"nobody", "ada", "Ada", "ADA"} { // all but the first in one find
			wg.Go(func() {
				got, err := reader.Find(t.Context(), id)
				if id != "nobody" && !reflect.DeepEqual(got, doc) || (err != nil) != (id == "nobody") {
					t.Errorf("%s: %v, %v", id, got, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// TestOneBatch: a joined find asks for MaxIDs documents at most, and has them in one reply.
func TestOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var commands []string
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()), allium.ClientOptions{
			CommandMonitor: &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
				if e.CommandName != "find" && e.CommandName != "getMore" {
					return
				}
				n := 0
				ids, _ := e.Command.Lookup("filter", "_id", "$in").Array()
				for range ids.All() {
					n++
				}
				commands = append(commands, fmt.Sprint(e.CommandName, " ", n))
			}}})
		coll := allium.CollectionOf[bson.D](c.Database("app"), "docs")
		docs := make([]bson.D, 300)
		for id := range docs {
			docs[id] = bson.D{{Key: "_id", Value: id}}
		}
		if _, err := coll.InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		slow(t, c)
		reader := joined.New(coll, joined.Options{Finds: 1, MaxIDs: 200})
		var wg sync.WaitGroup
		for id := range docs {
			wg.Go(func() {
				if _, err := reader.Find(t.Context(), id); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if want := []string{"find 0", "find 200", "find 99"}; !slices.Equal(commands, want) {
			t.Errorf("commands %q, want %q", commands, want)
		}
	})
}

// TestTurnAtTheEnd: a call whose context ends in the moment in which its turn comes passes the turn
// on.
func TestTurnAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := func() {}
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()), allium.ClientOptions{
			CommandMonitor: &event.CommandMonitor{Succeeded: func(context.Context, *event.CommandSucceeded) { end() }}})
		slow(t, c)
		reader := joined.New(allium.CollectionOf[bson.D](c.Database("app"), "docs"), joined.Options{Finds: 1})
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			end = cancel // just before the first call leaves
			var wg sync.WaitGroup
			wg.Go(func() { reader.Find(t.Context(), 1) })
			synctest.Wait()
			wg.Go(func() { reader.Find(ctx, 2) })
			wg.Wait()
		}
	})
}

// TestFresh: who reads after a write was acknowledged reads it, or what is newer.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()), allium.ClientOptions{})
		type counter struct {
			ID int `bson:"_id"`
			N  int64
		}
		coll := allium.CollectionOf[counter](c.Database("app"), "counters")
		const counters = 20
		var acknowledged [counters]atomic.Int64
		for id := range counters {
			if _, err := coll.InsertOne(t.Context(), counter{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		slow(t, c)
		reader := joined.New(coll, joined.Options{Finds: 1})
		var wg sync.WaitGroup
		for id := range counters {
			wg.Go(func() {
				for n := range int64(100) {
					time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
					if _, err := coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: id}},
						bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n + 1}}}}); err != nil {
						t.Error(err)
						return
					}
					acknowledged[id].Store(n + 1)
				}
			})
			wg.Go(func() {
				for range 15 {
					least := acknowledged[id].Load()
					doc, err := reader.Find(t.Context(), id)
					if err != nil || doc.N < least || doc.ID != id {
						t.Errorf("%+v, %v: %d was acknowledged before", doc, err, least)
					}
				}
			})
		}
		wg.Wait()
	})
}

// TestEndingContexts: calls whose contexts end at random, those on which a joined find runs among
// them, end with what FindOne says then; all others are answered, and no place is lost.
func TestEndingContexts(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 37))
			var finds atomic.Int64
			c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()),
				allium.ClientOptions{CommandMonitor: counting(&finds)})
			coll := allium.CollectionOf[bson.D](c.Database("app"), "docs")
			for id := range 50 {
				if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}}); err != nil {
					t.Fatal(err)
				}
			}
			slow(t, c)
			places := 1 + r.IntN(2)
			reader := joined.New(coll, joined.Options{Finds: places, MaxIDs: 20})
			var wg sync.WaitGroup
			for range 200 {
				id, pause, limit := r.IntN(50), r.IntN(1000), r.IntN(400)
				wg.Go(func() {
					time.Sleep(time.Duration(pause) * time.Millisecond)
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					switch limit % 3 {
					case 0:
						ctx, cancel = context.WithTimeout(ctx, time.Duration(limit)*time.Millisecond)
					case 1:
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(time.Duration(limit)*time.Millisecond, cancel)
					}
					defer cancel()
					begun := time.Now()
					doc, err := reader.Find(ctx, id)
					switch {
					case err == nil:
						if !reflect.DeepEqual(doc, bson.D{{Key: "_id", Value: int32(id)}}) {
							t.Errorf("%d: %v", id, doc)
						}
					case limit%3 == 2 || ctx.Err() == nil:
						t.Errorf("the context has not ended: %v", err)
					case !errors.Is(err, ctx.Err()) || time.Since(begun) > time.Duration(limit+5)*time.Millisecond:
						t.Errorf("after %v of %d ms: %v", time.Since(begun), limit, err)
					}
				})
			}
			wg.Wait()
			for range places { // as many begin at once as before
				finds.Store(0)
				wg.Go(func() { reader.Find(t.Context(), 1) })
			}
			synctest.Wait()
			if n := finds.Load(); n != 1 && places == 1 || n == 0 {
				t.Errorf("%d finds begin at once", n)
			}
			wg.Wait()
		})
	}
}

// fragile is a document whose method panics, fails or ends the goroutine for some.
type fragile struct {
	ID int
}

var errFragile = errors.New("fragile")

func (f *fragile) UnmarshalBSON(b []byte) error {
	id, _ := bson.Raw(b).Lookup("_id").AsInt64()
	switch f.ID = int(id); id {
	case 7:
		panic(errFragile)
	case 8:
		runtime.Goexit()
	case 9:
		return errFragile
	}
	return nil
}

// TestProgramsCode: the panic, the end or the error of the program's code for a document is its
// caller's, whoever else was joined.
func TestProgramsCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var finds, trouble atomic.Int64
		goexit := false
		monitor := counting(&finds)
		monitor.Succeeded = func(_ context.Context, e *event.CommandSucceeded) {
			if e.CommandName != "find" {
				return
			}
			switch {
			case trouble.Add(-1) != 0:
			case goexit:
				runtime.Goexit()
			default:
				panic(errFragile)
			}
		}
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()),
			allium.ClientOptions{CommandMonitor: monitor})
		coll := allium.CollectionOf[fragile](c.Database("app"), "docs")
		raw := allium.As[bson.D](coll)
		for id := range 20 {
			if _, err := raw.InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}}); err != nil {
				t.Fatal(err)
			}
		}
		slow(t, c)
		reader := joined.New(coll, joined.Options{Finds: 1})
		// call calls Find on a goroutine of its own, and says how that ended.
		call := func(id int, end chan<- string) {
			go func() {
				how := "goexit"
				defer func() {
					if v := recover(); v != nil {
						how = "panic"
					}
					end <- how
				}()
				doc, err := reader.Find(t.Context(), id)
				switch odd, ok := errors.AsType[*mongoerr.DecodeError](err); {
				case ok && errors.Is(err, errFragile) && odd.Command == "find" && odd.Namespace == "app.docs":
					how = "decode"
				case err != nil:
					how = err.Error()
				case doc.ID != id:
					how = fmt.Sprintf("document %d", doc.ID)
				default:
					how = "ok"
				}
			}()
		}
		for round := range 3 {
			ends := map[int]chan string{}
			for id := range 20 {
				ends[id] = make(chan string, 1)
				call(id, ends[id])
				synctest.Wait() // the first finds alone, the second leads the others
			}
			for id, end := range ends {
				want := map[int]string{7: "panic", 8: "goexit", 9: "decode"}[id]
				if want == "" {
					want = "ok"
				}
				if got := <-end; got != want {
					t.Errorf("round %d, %d: %s, want %s", round, id, got, want)
				}
			}
		}
		if n := finds.Load(); n != 6 {
			t.Errorf("%d finds in three rounds", n)
		}

		// A listener meets who runs the joined find; the others read alone.
		for _, name := range []string{"panic", "goexit"} {
			goexit = name == "goexit"
			trouble.Store(2) // the second find
			ends := map[int]chan string{}
			for id := range 5 {
				ends[id] = make(chan string, 1)
				call(id, ends[id])
				synctest.Wait()
			}
			for id, end := range ends {
				want := "ok"
				if id == 1 {
					want = name
				}
				if got := <-end; got != want {
					t.Errorf("%s of a listener, %d: %s, want %s", name, id, got, want)
				}
			}
		}
	})
}

// TestErrors: what a server says of a joined find is the error of each call; the next find is not
// concerned.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var finds atomic.Int64
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		c := connect(t, d, allium.ClientOptions{CommandMonitor: counting(&finds)})
		reader := joined.New(allium.CollectionOf[bson.D](c.Database("app"), "docs"), joined.Options{Finds: 1})
		if _, err := c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "configureFailPoint", Value: "failCommand"},
			{Key: "mode", Value: bson.D{{Key: "times", Value: 2}}}, {Key: "data", Value: bson.D{
				{Key: "failCommands", Value: bson.A{"find"}}, {Key: "blockConnection", Value: true},
				{Key: "blockTimeMS", Value: 100}, {Key: "errorCode", Value: 13}}}}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for id := range 10 {
			wg.Go(func() {
				if _, err := reader.Find(t.Context(), id); !mongoerr.HasCode(err, 13) {
					t.Errorf("%d: %v", id, err)
				}
			})
		}
		wg.Wait()
		if n := finds.Load(); n != 2 {
			t.Errorf("%d finds", n)
		}
		if _, err := reader.Find(t.Context(), 1); !errors.Is(err, mongoerr.ErrNoDocuments) {
			t.Errorf("after the errors: %v", err)
		}
		if _, err := reader.Find(t.Context(), make(chan int)); err == nil {
			t.Error("a channel as _id")
		}
	})
}

// TestOwnDocuments: callers that ask for the same document can change theirs.
func TestOwnDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()), allium.ClientOptions{})
		coll := allium.CollectionOf[bson.Raw](c.Database("app"), "docs")
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "text", Value: "unchanged"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := coll.InsertOne(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
		slow(t, c)
		reader := joined.New(coll, joined.Options{Finds: 1})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				got, err := reader.Find(t.Context(), 1)
				if err != nil || !reflect.DeepEqual(got, bson.Raw(doc)) {
					t.Errorf("%v, %v", got, err)
				}
				clear(got)
			})
		}
		wg.Wait()
	})
}

// TestOptionsAreCopied: what a program does with its options afterwards changes nothing.
func TestOptionsAreCopied(t *testing.T) {
	c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()), allium.ClientOptions{})
	coll := allium.CollectionOf[bson.D](c.Database("app"), "docs")
	id := [16]byte{36}
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: bson.Binary{Subtype: 4, Data: id[:]}}}); err != nil {
		t.Fatal(err)
	}
	codec := bson.CodecFor(func(dst []byte, v [16]byte) (bson.Type, []byte, error) {
		return bson.TypeBinary, bson.AppendBinaryValue(dst, 4, v[:]), nil
	}, nil)
	codecs, err := bson.NewCodecs(codec)
	if err != nil {
		t.Fatal(err)
	}
	o := joined.Options{BSON: &bson.Options{Codecs: codecs}}
	reader := joined.New(coll, o)
	*o.BSON = bson.Options{}
	if _, err := reader.Find(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// TestCollectionsOptions: documents of a joined find are decoded with the options of the
// collection.
func TestCollectionsOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type word string
		codecs, err := bson.NewCodecs(bson.CodecFor(nil, func(v bson.RawValue) (word, error) {
			text, _ := v.StringValue()
			return word("decoded " + text), nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()), allium.ClientOptions{})
		type doc struct {
			ID   int `bson:"_id"`
			Word word
		}
		coll := allium.CollectionOf[doc](c.Database("app"), "docs", allium.CollectionOptions{BSON: &bson.Options{Codecs: codecs}})
		for id := range 5 {
			if _, err := allium.As[bson.D](coll).InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "word", Value: "x"}}); err != nil {
				t.Fatal(err)
			}
		}
		slow(t, c)
		reader := joined.New(coll, joined.Options{Finds: 1})
		var wg sync.WaitGroup
		for id := range 5 {
			wg.Go(func() {
				if got, err := reader.Find(t.Context(), id); err != nil || got != (doc{id, "decoded x"}) {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		wg.Wait()
	})
}

// TestInTransaction: in a transaction Find reads what the transaction has written.
func TestInTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()), allium.ClientOptions{})
		coll := allium.CollectionOf[bson.D](c.Database("app"), "docs")
		if err := c.Database("app").CreateCollection(t.Context(), "docs"); err != nil {
			t.Fatal(err)
		}
		slow(t, c)
		reader := joined.New(coll, joined.Options{Finds: 1})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { reader.Find(t.Context(), 1) })
		}
		synctest.Wait()
		if err := c.Transact(t.Context(), func(ctx context.Context) error {
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 2}}); err != nil {
				return err
			}
			_, err := reader.Find(ctx, 2)
			return err
		}); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// BenchmarkFind compares Find with FindOne: callers, with a pool of four connections.
func BenchmarkFind(b *testing.B) {
	c, err := allium.Open(mongotest.Start(b, mongotest.ReplicaSet(1)).URI(), allium.ClientOptions{MaxPoolSize: new(4)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(context.Background()) })
	coll := allium.CollectionOf[bson.D](c.Database("app"), "docs")
	for id := range 1000 {
		if _, err := coll.InsertOne(b.Context(), bson.D{{Key: "_id", Value: id}, {Key: "name", Value: "Ada"}}); err != nil {
			b.Fatal(err)
		}
	}
	one := func(ctx context.Context, id any) (bson.D, error) {
		return coll.FindOne(ctx, bson.D{{Key: "_id", Value: id}})
	}
	for _, callers := range []int{1, 8, 64} {
		for name, find := range map[string]func(context.Context, any) (bson.D, error){
			"FindOne": one, "joined": joined.New(coll).Find} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, name), func(b *testing.B) {
				var n atomic.Int64
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for n.Add(1) <= int64(b.N) {
							if _, err := find(b.Context(), rand.IntN(1000)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// TestUnreadable: one document that cannot be decrypted is the error of those who asked for it, and
// of nobody whose call was joined with theirs.
func TestUnreadable(t *testing.T) {
	d := encryptiontest.Start(t)
	client, err := d.Client(encryption.AutoOptions{BypassQueryAnalysis: true})
	if err != nil {
		t.Fatal(err)
	}
	key, err := d.Keys.CreateDataKey(t.Context(), encryptiontest.Provider)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := d.Keys.Encrypt(t.Context(), "x", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &key})
	if err != nil {
		t.Fatal(err)
	}
	coll := allium.CollectionOf[bson.D](client.Database("d"), "c")
	for i := range 8 {
		doc := bson.D{{Key: "_id", Value: i}}
		if i%4 == 1 {
			doc = append(doc, bson.E{Key: "secret", Value: secret})
		}
		if _, err := coll.InsertOne(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Keys.DeleteKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	slow(t, d.Plain)
	users := joined.New(coll, joined.Options{Finds: 1})
	var wg sync.WaitGroup
	for range 3 {
		for i := range 8 {
			wg.Go(func() {
				doc, err := users.Find(t.Context(), i)
				if i%4 == 1 && !errors.Is(err, encryption.ErrKeyNotFound) || i%4 != 1 && (err != nil || doc[0].Value != int32(i)) {
					t.Errorf("%d: %v, %v", i, doc, err)
				}
			})
		}
	}
	wg.Wait()
}
