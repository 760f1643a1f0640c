package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
)

// oddReplies makes replies of which parts are missing or of another type than they should be.
type oddReplies struct{ *rand.Rand }

// value returns any value, also one that looks like what is often there.
func (o *oddReplies) value() any {
	values := []any{nil, int32(-1), int32(0), int32(1), int64(1) << 40, -1.5, "", "x.y", true, bson.D{}, bson.A{}, bson.A{1, "x", nil}, bson.D{{Key: "_id", Value: 1}},
		bson.A{bson.D{{Key: "index", Value: 3}, {Key: "idx", Value: 3}, {Key: "ok", Value: 1}, {Key: "_id", Value: bson.D{}}}}, bson.Timestamp{T: 1}, bson.NewObjectID()}
	return values[o.IntN(len(values))]
}

// change returns a copy of v with about one part in ten changed.
func (o *oddReplies) change(v any) any {
	if o.IntN(10) == 0 {
		return o.value()
	}
	switch v := v.(type) {
	case bson.D:
		out := bson.D{}
		for _, e := range v {
			if o.IntN(20) != 0 {
				out = append(out, bson.E{Key: e.Key, Value: o.change(e.Value)})
			}
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, e := range v {
			out = append(out, o.change(e))
		}
		return out
	}
	return v
}

// answered is an operation and the reply of the server that it is about.
type answered struct {
	reply bson.D
	run   func(ctx context.Context, client *allium.Client, c *allium.UntypedCollection) error
}

// answeredOperations returns operations by name.
func answeredOperations() map[string]answered {
	event := bson.D{{Key: "_id", Value: bson.D{{Key: "_data", Value: "82"}}}, {Key: "operationType", Value: "update"}, {Key: "ns", Value: bson.D{{Key: "db", Value: "x"}, {Key: "coll", Value: "y"}}},
		{Key: "fullDocument", Value: bson.D{{Key: "x", Value: 1}}}, {Key: "updateDescription", Value: bson.D{{Key: "updatedFields", Value: bson.D{}}, {Key: "removedFields", Value: bson.A{"a"}},
			{Key: "truncatedArrays", Value: bson.A{bson.D{{Key: "field", Value: "a"}, {Key: "newSize", Value: 1}}}}}}, {Key: "collectionUUID", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}},
		{Key: "splitEvent", Value: bson.D{{Key: "fragment", Value: 1}, {Key: "of", Value: 1}}}}
	outcome := bson.D{{Key: "ok", Value: 1.0}, {Key: "idx", Value: 0}, {Key: "n", Value: 1}, {Key: "nModified", Value: 1}, {Key: "upserted", Value: bson.D{{Key: "_id", Value: 1}}}}
	cursor := func(batch string, docs ...any) bson.D {
		return bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "x.y"}, {Key: batch, Value: bson.A(docs)},
			{Key: "postBatchResumeToken", Value: bson.D{{Key: "_data", Value: "83"}}}}}}
	}
	index := bson.D{{Key: "v", Value: 2}, {Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "name", Value: "_id_"}, {Key: "expireAfterSeconds", Value: 1}}
	written := bson.D{{Key: "n", Value: 1}, {Key: "nModified", Value: 1}, {Key: "upserted", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "_id", Value: 1}}}},
		{Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E"}, {Key: "errInfo", Value: bson.D{}}, {Key: "keyPattern", Value: bson.D{}}}}},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "W"}, {Key: "errInfo", Value: bson.D{}}, {Key: "errorLabels", Value: bson.A{"L"}}}},
		{Key: "errorLabels", Value: bson.A{"L"}}, {Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: bson.NewObjectID()}, {Key: "counter", Value: int64(1)}}}}
	filter, set := rig.FieldOf("x", 1), rig.SetOf("y", 1)
	return map[string]answered{
		"insert": {written, func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.InsertMany(ctx, []bson.D{filter}))
		}},
		"update": {written, func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.UpdateOne(ctx, filter, set))
		}},
		"delete": {written, func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.DeleteMany(ctx, filter))
		}},
		"bulk write": {written, func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.BulkWrite(ctx, []allium.WriteModel{c.InsertOneModel(filter), c.InsertOneModel(filter), c.UpdateOneModel(filter, set), c.DeleteManyModel(filter)}, allium.BulkWriteOptions{Unordered: true}))
		}},
		"bulk write of the client": {slices.Concat(cursor("firstBatch", outcome), bson.D{{Key: "nErrors", Value: 0}, {Key: "nInserted", Value: 1}}),
			func(ctx context.Context, client *allium.Client, _ *allium.UntypedCollection) error {
				return rig.ErrorOf(client.BulkWrite(ctx, []allium.WriteModel{client.Database("x").Collection("y").UpdateOneModel(filter, set)}, allium.ClientBulkWriteOptions{VerboseResults: true}))
			}},
		"find and modify": {bson.D{{Key: "value", Value: filter}, {Key: "lastErrorObject", Value: bson.D{}}}, func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.FindOneAndUpdate(ctx, filter, set))
		}},
		"find": {cursor("firstBatch", filter), func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			cur, err := c.Find(ctx, filter)
			return rig.Drain(ctx, cur, err)
		}},
		"find one": {cursor("firstBatch", filter), func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.FindOne(ctx, filter))
		}},
		"count": {cursor("firstBatch", bson.D{{Key: "n", Value: 1}}), func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.CountDocuments(ctx, filter))
		}},
		"distinct": {bson.D{{Key: "values", Value: bson.A{1, 2}}}, func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(allium.Distinct[int](ctx, c, "x", filter))
		}},
		"list indexes": {cursor("firstBatch", index), func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.ListIndexNames(ctx))
		}},
		"list collections": {cursor("firstBatch", bson.D{{Key: "name", Value: "c"}, {Key: "options", Value: bson.D{}}}), func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.Database().ListCollectionNames(ctx))
		}},
		"list databases": {bson.D{{Key: "databases", Value: bson.A{bson.D{{Key: "name", Value: "d"}, {Key: "sizeOnDisk", Value: 1.5}, {Key: "empty", Value: false}}}}},
			func(ctx context.Context, client *allium.Client, _ *allium.UntypedCollection) error {
				return rig.ErrorOf(client.ListDatabases(ctx))
			}},
		"search indexes": {bson.D{{Key: "indexesCreated", Value: bson.A{bson.D{{Key: "name", Value: "s"}}}}}, func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			return rig.ErrorOf(c.CreateSearchIndex(ctx, allium.SearchIndexModel{Definition: bson.D{}}))
		}},
		"watch": {cursor("firstBatch", event), func(ctx context.Context, _ *allium.Client, c *allium.UntypedCollection) error {
			s, err := c.Watch(ctx, nil, allium.WatchOptions{SplitLargeEvents: true})
			if err == nil {
				defer s.Close(ctx)
				s.TryNext(ctx)
				err = s.Err()
			}
			return err
		}},
		"run command": {written, func(ctx context.Context, client *allium.Client, _ *allium.UntypedCollection) error {
			return rig.ErrorOf(client.Database("x").RunCommand(ctx, bson.D{{Key: "insert", Value: "y"}}))
		}},
		"run cursor command": {cursor("firstBatch", filter), func(ctx context.Context, client *allium.Client, _ *allium.UntypedCollection) error {
			cur, err := client.Database("x").RunCursorCommand(ctx, bson.D{{Key: "find", Value: "y"}})
			return rig.Drain(ctx, cur, err)
		}},
	}
}

// TestOddReplies gives every operation replies that no server should send: it may succeed or fail,
// but must return, and must not panic. A cursor that never ends is a server's right: after a
// hundred replies the operation is cancelled. In a bubble the rest depends on no clock.
func TestOddReplies(t *testing.T) {
	for name, tc := range answeredOperations() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testOddReplies(t, name, tc) })
		})
	}
}

func testOddReplies(t *testing.T, name string, tc answered) {
	var (
		mu     sync.Mutex // an operation that was cancelled leaves a connection that is still read from
		odd    = &oddReplies{rand.New(rand.NewPCG(1, 2))}
		left   int
		cancel context.CancelFunc
	)
	client := openFake(t, fakeserver.Hello(), func(r *fakeserver.Request) {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			cancel()
		}
		reply, ok := odd.change(tc.reply).(bson.D)
		if !ok {
			reply = tc.reply
		}
		raw, err := bson.Marshal(append(bson.D{{Key: "ok", Value: 1}}, reply...))
		if err != nil {
			t.Error(err)
		}
		r.Reply(raw)
	})
	coll := client.Database("x").Collection("y")
	done, failed := 0, 0
	for range 300 {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		mu.Lock()
		left, cancel = 100, stop
		mu.Unlock()
		if tc.run(ctx, client, coll) == nil {
			done++
		} else {
			failed++
		}
		stop()
	}
	if done == 0 && name != "insert" && name != "update" && name != "delete" && name != "bulk write" && name != "run command" || failed == 0 {
		t.Errorf("%d of the operations succeeded, %d failed: the replies are not odd enough, or too odd", done, failed)
	}
}
