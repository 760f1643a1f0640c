package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// startCursors returns a collection of n documents, and what its client sends.
func startCursors(t *testing.T, n int, o allium.ClientOptions, topology ...testdeploy.Kind) (*testdeploy.Deployment, *allium.UntypedCollection, *rig.Recorder) {
	t.Helper()
	rec := &rig.Recorder{}
	o.CommandMonitor = rec.Monitor()
	kind := testdeploy.ReplicaSet(1)
	if len(topology) > 0 {
		kind = topology[0]
	}
	d := testdeploy.Start(t, kind)
	coll := rig.Open(t, d.URI(), o).Database("d").Collection("c")
	var docs []bson.D
	for i := range n {
		docs = append(docs, bson.D{{Key: "_id", Value: i}})
	}
	if _, err := coll.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	rec.Reset()
	return d, coll, rec
}

// TestLimitAndBatchSize follows the specification "find, getMore and killCursors commands" through
// what is sent.
func TestLimitAndBatchSize(t *testing.T) {
	_, coll, rec := startCursors(t, 10, allium.ClientOptions{})
	for _, tc := range []struct {
		limit     int64
		batch     int32
		documents int
		want      string // limit/batchSize/singleBatch of find, the batchSizes of getMores, k for killCursors
	}{
		{0, 0, 10, "-/-/-"},
		{0, 4, 10, "-/4/- 4 4"},
		{0, 1, 10, "-/1/- 1 1 1 1 1 1 1 1 1 1"},
		{4, 0, 4, "4/-/-"},
		{4, 3, 4, "4/3/- 1 k"},
		{4, 4, 4, "4/5/-"},
		{4, 9, 4, "4/9/-"},
		{20, 6, 10, "20/6/- 6"},
		{-4, 0, 4, "4/4/true"},
		{-4, 2, 4, "4/4/true"},
		{4, -2, 4, "4/4/true"},
		{0, -3, 3, "-/3/true"},
		{1, 0, 1, "1/-/-"},
	} {
		t.Run(fmt.Sprintf("limit %d, batch size %d", tc.limit, tc.batch), func(t *testing.T) {
			rec.Reset()
			o := allium.FindOptions{Limit: tc.limit}
			if tc.batch != 0 {
				o.BatchSize = &tc.batch
			}
			cur, err := coll.Find(t.Context(), bson.D{}, o)
			if err != nil {
				t.Fatal(err)
			}
			all, err := cur.All(t.Context())
			if err != nil || len(all) != tc.documents {
				t.Errorf("%d documents, %v, want %d", len(all), err, tc.documents)
			}
			var got []string
			for _, c := range rec.Sent {
				switch c.Name {
				case "find":
					got = append(got, c.Field("limit")+"/"+c.Field("batchSize")+"/"+c.Field("singleBatch"))
				case "getMore":
					got = append(got, c.Field("batchSize"))
				case "killCursors":
					got = append(got, "k")
				}
			}
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("sent %s, want %s", s, tc.want)
			}
		})
	}
}

func TestTailableCursors(t *testing.T) {
	_, coll, rec := startCursors(t, 0+1, allium.ClientOptions{})
	ctx, db := t.Context(), coll.Database()
	if err := db.CreateCollection(ctx, "capped", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	capped := db.Collection("capped")
	add := func(ids ...int) {
		t.Helper()
		for _, id := range ids {
			if _, err := capped.InsertOne(ctx, bson.D{{Key: "_id", Value: id}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(cur *allium.Cursor[bson.D], n int) (ids []string) {
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for len(ids) < n && cur.Err() == nil { // a mongos may answer with an empty batch although there are documents
			if cur.TryNext(short) {
				ids = append(ids, fmt.Sprint(cur.Current()[0].Value))
			}
		}
		if cur.TryNext(short) {
			ids = append(ids, "and more")
		}
		return ids
	}
	add(1, 2, 3)
	t.Run("tailable", func(t *testing.T) {
		cur, err := capped.Find(ctx, bson.D{}, allium.FindOptions{CursorType: allium.CursorTailable, BatchSize: new(int32(2))})
		if err != nil {
			t.Fatal(err)
		}
		if got := read(cur, 3); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Errorf("read %v", got)
		}
		if cur.Next(ctx) || cur.Err() != nil || cur.ID() == 0 {
			t.Errorf("at its end, the cursor has the id %d and the error %v", cur.ID(), cur.Err())
		}
		add(4)
		if !cur.Next(ctx) || fmt.Sprint(cur.Current()[0].Value) != "4" {
			t.Errorf("Next does not find what was inserted: %v", cur.Err())
		}
		rec.Reset()
		if err := cur.Close(ctx); err != nil || len(rec.Of("killCursors")) != 1 {
			t.Errorf("close: %v, %d killCursors", err, len(rec.Of("killCursors")))
		}
	})
	t.Run("await", func(t *testing.T) {
		rec.Reset()
		cur, err := capped.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 3}}}}, allium.FindOptions{CursorType: allium.CursorTailableAwait, MaxAwaitTime: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer cur.Close(ctx)
		if got := read(cur, 1); !slices.Equal(got, []string{"4"}) {
			t.Errorf("read %v", got)
		}
		find := rec.Of("find")[0]
		if find.Field("tailable") != "true" || find.Field("awaitData") != "true" {
			t.Errorf("find is %v", find.Body)
		}
		if more := rec.Of("getMore"); len(more) == 0 || more[0].Field("maxTimeMS") != "1" {
			t.Errorf("getMores are %v", more)
		}
		found := make(chan bool)
		go func() { found <- cur.Next(ctx) }() // waits until there is something
		add(5)
		if !<-found || fmt.Sprint(cur.Current()[0].Value) != "5" {
			t.Errorf("Next does not find what was inserted: %v", cur.Err())
		}
		short, cancel := context.WithCancel(ctx)
		cancel()
		if cur.Next(short) || !errors.Is(cur.Err(), context.Canceled) {
			t.Errorf("Next with a context that has ended: %v", cur.Err())
		}
	})
	t.Run("empty collection", func(t *testing.T) {
		if err := db.CreateCollection(ctx, "empty", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}); err != nil {
			t.Fatal(err)
		}
		cur, err := db.Collection("empty").Find(ctx, bson.D{}, allium.FindOptions{CursorType: allium.CursorTailable})
		if err != nil {
			t.Fatal(err)
		}
		if cur.Next(ctx) || cur.Err() != nil {
			t.Error(cur.Err())
		}
		cur.Close(ctx)
	})
}

// TestCursorTimeoutOptions checks which options exclude each other.
func TestCursorTimeoutOptions(t *testing.T) {
	_, coll, rec := startCursors(t, 1, allium.ClientOptions{})
	ctx, db, second := t.Context(), coll.Database(), new(time.Second)
	find := func(o allium.FindOptions) error { _, err := coll.Find(ctx, bson.D{}, o); return err }
	for name, err := range map[string]error{
		"mode without a timeout":             find(allium.FindOptions{TimeoutMode: allium.TimeoutOverLifetime}),
		"iteration without a timeout":        find(allium.FindOptions{TimeoutMode: allium.TimeoutPerIteration}),
		"lifetime of a tailable":             find(allium.FindOptions{CursorType: allium.CursorTailable, TimeoutMode: allium.TimeoutOverLifetime, Timeout: second}),
		"lifetime of a tailable that awaits": find(allium.FindOptions{CursorType: allium.CursorTailableAwait, TimeoutMode: allium.TimeoutOverLifetime, Timeout: second}),
		"await as long as the timeout":       find(allium.FindOptions{CursorType: allium.CursorTailableAwait, MaxAwaitTime: time.Second, Timeout: second}),
		"await longer than the timeout":      find(allium.FindOptions{CursorType: allium.CursorTailableAwait, MaxAwaitTime: time.Minute, Timeout: second}),
		"no such mode":                       find(allium.FindOptions{TimeoutMode: "9", Timeout: second}),
		"no such type":                       find(allium.FindOptions{CursorType: "9"}),
		"negative timeout":                   find(allium.FindOptions{Timeout: new(-time.Second)}),
		"aggregate with $out": func() error {
			_, err := coll.Aggregate(ctx, bson.A{bson.D{{Key: "$out", Value: "o"}}}, allium.AggregateOptions{TimeoutMode: allium.TimeoutPerIteration, Timeout: second})
			return err
		}(),
		"aggregate, await": func() error {
			_, err := coll.Aggregate(ctx, bson.A{}, allium.AggregateOptions{MaxAwaitTime: time.Second, Timeout: second})
			return err
		}(),
		"aggregate, negative await": func() error {
			_, err := coll.Aggregate(ctx, bson.A{}, allium.AggregateOptions{MaxAwaitTime: -time.Second})
			return err
		}(),
		"list collections": func() error {
			_, err := db.ListCollections(ctx, allium.ListCollectionsOptions{TimeoutMode: allium.TimeoutOverLifetime})
			return err
		}(),
		"list indexes": func() error {
			_, err := coll.ListIndexes(ctx, allium.ListIndexesOptions{TimeoutMode: allium.TimeoutOverLifetime})
			return err
		}(),
		"cursor command": func() error {
			_, err := db.RunCursorCommand(ctx, bson.D{{Key: "find", Value: "c"}}, allium.RunCursorCommandOptions{MaxTime: time.Second, Timeout: second})
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if len(rec.Sent) > 0 {
		t.Errorf("sent %v", rec.Sent)
	}
	if err := find(allium.FindOptions{CursorType: allium.CursorTailableAwait, MaxAwaitTime: time.Minute, Timeout: new(time.Duration(0))}); err != nil && strings.Contains(err.Error(), "MaxAwaitTime") {
		t.Errorf("a timeout of 0 bounds nothing: %v", err)
	}
}

// TestCursorTimeoutModes checks, on a clock of its own, what a timeout bounds, and which commands
// carry a maxTimeMS.
func TestCursorTimeoutModes(t *testing.T) {
	const slow, timeout = 100 * time.Millisecond, 150 * time.Millisecond
	for name, tc := range map[string]struct {
		o           allium.FindOptions
		all         bool // the cursor can be read to its end
		findMax     bool // find carries maxTimeMS
		readsCapped bool
	}{
		"default":   {allium.FindOptions{}, false, true, false},
		"lifetime":  {allium.FindOptions{TimeoutMode: allium.TimeoutOverLifetime}, false, true, false},
		"iteration": {allium.FindOptions{TimeoutMode: allium.TimeoutPerIteration}, true, false, false},
		"tailable":  {allium.FindOptions{CursorType: allium.CursorTailable}, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network", mongotest.ReplicaSet(1), mongotest.InMemory())
				rec := &rig.Recorder{}
				client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, CommandMonitor: rec.Monitor()})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Stop()
				defer client.Close(context.Background())
				ctx, db := t.Context(), client.Database("d")
				if err := db.CreateCollection(ctx, "c", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}); err != nil {
					t.Fatal(err)
				}
				coll := db.Collection("c")
				if _, err := coll.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: 2}}, {{Key: "_id", Value: 3}}}); err != nil {
					t.Fatal(err)
				}
				d.FailCommand(mongotest.Fail{Commands: []string{"find", "getMore"}, Block: slow})
				o := tc.o
				o.BatchSize, o.Timeout = new(int32(1)), new(timeout)
				cur, err := coll.Find(ctx, bson.D{}, o)
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for n < 3 && cur.Next(ctx) {
					n++
				}
				var late *mongoerr.TimeoutError
				if tc.all && (n != 3 || cur.Err() != nil) || !tc.all && (n != 1 || !errors.As(cur.Err(), &late)) {
					t.Errorf("%d documents, then %v", n, cur.Err())
				}
				cur.Close(ctx)
				if got := rec.Of("find")[0].Field("maxTimeMS") != "-"; got != tc.findMax {
					t.Errorf("find carries maxTimeMS: %v", got)
				}
				for _, c := range rec.Of("getMore") {
					if c.Field("maxTimeMS") != "-" {
						t.Errorf("getMore carries maxTimeMS: %v", c.Body)
					}
				}
				if kills := rec.Of("killCursors"); len(kills) != 1 || kills[0].Field("maxTimeMS") == "-" {
					t.Errorf("killCursors: %v, want one with maxTimeMS, since the timeout begins anew for it", kills)
				}
			})
		})
	}
}

func TestBatches(t *testing.T) {
	_, coll, rec := startCursors(t, 5, allium.ClientOptions{})
	ctx := t.Context()
	open := func() *allium.Cursor[bson.D] {
		cur, err := coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2)), Sort: bson.D{{Key: "_id", Value: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		return cur
	}
	cur := open()
	if !cur.Next(ctx) {
		t.Fatal(cur.Err())
	}
	var sizes []int
	next := int64(1)
	for batch, err := range cur.Batches(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if err := batch.Validate(); err != nil {
			t.Fatal(err)
		}
		n := 0
		for v := range batch.Values() {
			doc, _ := v.Document()
			if id, _ := doc.Lookup("_id").AsInt64(); id != next {
				t.Errorf("document %d comes where %d should", id, next)
			}
			next++
			n++
		}
		sizes = append(sizes, n)
	}
	if !slices.Equal(sizes, []int{1, 2, 1}) {
		t.Errorf("batches have %v documents", sizes)
	}
	rec.Reset()
	for range open().Batches(ctx) {
		break
	}
	if n := len(rec.Of("killCursors")); n != 1 {
		t.Errorf("%d killCursors after a loop that was left early", n)
	}
	rig.FailPoint(t, coll.Database().Client(), bson.D{{Key: "failCommands", Value: bson.A{"getMore"}}, {Key: "errorCode", Value: 8}}, 1)
	var last error
	batches := 0
	for _, err := range open().Batches(ctx) {
		if last = err; err == nil {
			batches++
		}
	}
	var server *mongoerr.ServerError
	if batches != 1 || !errors.As(last, &server) || server.Code != 8 {
		t.Errorf("%d batches, then %v", batches, last)
	}
}

// A cursor lives on one server: its getMores, and the killCursors at its end, go to that one,
// whichever the client would choose for another operation (specification: Server Selection,
// "Cursors").
func TestCursorsStayWithTheirServer(t *testing.T) {
	sent := &rig.Sent{}
	d := testdeploy.Start(t, testdeploy.Sharded(1, 3))
	client := rig.Open(t, d.URI(), allium.ClientOptions{CommandMonitor: sent.Monitor()})
	coll, ctx := client.Database("d").Collection("c"), t.Context()
	var docs []bson.D
	for i := range 20 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}})
	}
	if _, err := coll.InsertMany(ctx, docs); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (*allium.Cursor[bson.D], error){
		"find": func() (*allium.Cursor[bson.D], error) {
			return coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(1))})
		},
		"aggregate": func() (*allium.Cursor[bson.D], error) {
			return coll.Aggregate(ctx, bson.A{}, allium.AggregateOptions{BatchSize: new(int32(1))})
		},
		"run": func() (*allium.Cursor[bson.D], error) {
			return coll.Database().RunCursorCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}}, allium.RunCursorCommandOptions{BatchSize: new(int32(1))})
		},
	} {
		sent.Reset()
		cur, err := open()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for range 15 {
			if !cur.Next(ctx) {
				t.Fatalf("%s: ended with %v", name, cur.Err())
			}
		}
		if err := cur.Close(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all := sent.Of("")
		for _, e := range all {
			if e.Addr != all[0].Addr {
				t.Errorf("%s: %s went to %s, the cursor is at %s", name, e.CommandName, e.Addr, all[0].Addr)
			}
		}
		if last := all[len(all)-1]; len(all) < 16 || last.CommandName != "killCursors" {
			t.Errorf("%s: %d commands, the last is %s", name, len(all), last.CommandName)
		}
	}
}

func TestRunCursorCommand(t *testing.T) {
	for name, topology := range map[string]testdeploy.Kind{"replica set": testdeploy.ReplicaSet(1), "load balanced": testdeploy.LoadBalanced(1)} {
		t.Run(name, func(t *testing.T) {
			_, coll, rec := startCursors(t, 5, allium.ClientOptions{}, topology)
			ctx, db := t.Context(), coll.Database()
			cur, err := db.RunCursorCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}}, allium.RunCursorCommandOptions{BatchSize: new(int32(1)), Comment: "mine"})
			if err != nil {
				t.Fatal(err)
			}
			if all, err := cur.All(ctx); err != nil || len(all) != 5 {
				t.Errorf("%d documents, %v", len(all), err)
			}
			first := rec.Of("find")[0]
			for _, c := range rec.Of("getMore") {
				if c.Field("batchSize") != "1" || c.Body.Lookup("comment").String() != first.Body.Lookup("comment").String() && c.Field("comment") == "-" || !c.Body.Lookup("lsid").Equal(first.Body.Lookup("lsid")) {
					t.Errorf("getMore is %v after %v", c.Body, first.Body)
				}
			}
			if _, err := db.RunCursorCommand(ctx, bson.D{{Key: "ping", Value: 1}}); err == nil || !strings.Contains(err.Error(), "cursor") {
				t.Errorf("a command without a cursor: %v", err)
			}
			typed, err := allium.RunCursorCommand[struct {
				ID int `bson:"_id"`
			}](ctx, db, bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "_id", Value: -1}}}})
			if err != nil || !typed.Next(ctx) || typed.Current().ID != 4 {
				t.Errorf("typed: %v", err)
			}
			rec.Reset()
			early, err := db.RunCursorCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}})
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range early.Seq(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			if n := len(rec.Of("killCursors")); n != 1 {
				t.Errorf("%d killCursors after a loop that was left early", n)
			}
		})
	}
}

func TestAggregateAsAnotherType(t *testing.T) {
	_, coll, _ := startCursors(t, 5, allium.ClientOptions{})
	type sum struct{ Total int }
	cur, err := allium.Aggregate[sum](t.Context(), coll, bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "total", Value: bson.D{{Key: "$sum", Value: "$_id"}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := cur.All(t.Context()); err != nil || len(all) != 1 || all[0].Total != 10 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestCloseWithin: a cursor is closed within a timeout of its own, of which zero is none, and one
// that no operation could have is an error (specification: Client Side Operations Timeout,
// "Cursors").
func TestCloseWithin(t *testing.T) {
	rec := &rig.Recorder{}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), allium.ClientOptions{CommandMonitor: rec.Monitor()})
	ctx, coll := t.Context(), client.Database("d").Collection("c")
	rig.Must(coll.InsertMany(ctx, []any{bson.D{}, bson.D{}, bson.D{}}))
	for _, tc := range []struct {
		timeout *time.Duration
		killed  bool
	}{
		{nil, true}, {new(time.Duration(0)), true}, {new(time.Minute), true}, {new(-time.Nanosecond), false}, {new(-time.Minute), false},
	} {
		cur := rig.Must(coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(1))}))
		rec.Reset()
		err := cur.Close(ctx, allium.CloseCursorOptions{Timeout: tc.timeout})
		kills := rec.Of("killCursors")
		if (err == nil) != tc.killed || (len(kills) == 1) != tc.killed {
			t.Errorf("timeout %v: %v, %d killCursors", tc.timeout, err, len(kills))
		}
		for _, k := range kills { // the server is not told a limit (specification: the same section)
			if tc.timeout != nil && *tc.timeout == 0 && !k.Body.Lookup("maxTimeMS").IsZero() {
				t.Errorf("without a limit killCursors is %v", k.Body)
			}
		}
		cur.Close(ctx)
	}
}
