package faults

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
	"allium/mongoerr"
)

// bulkHello is the hello of a server that has bulkWrite.
func bulkHello(t *testing.T) bson.Raw {
	t.Helper()
	return rig.Encoded(t, bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true}, {Key: "msg", Value: "isdbgrid"},
		{Key: "logicalSessionTimeoutMinutes", Value: 30}, {Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48_000_000},
		{Key: "maxWriteBatchSize", Value: 100_000}, {Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 25}, {Key: "ok", Value: 1}})
}

// lyingBulk returns a client of a server that answers bulkWrite, insert and update with these
// results, and getMore with the same ones, again and again.
func lyingBulk(t *testing.T, results bson.A, errs int) *allium.Client {
	t.Helper()
	ok := bson.E{Key: "ok", Value: 1}
	cursor := func(batch string) bson.Raw {
		return rig.Encoded(t, bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(7)}, {Key: batch, Value: results}, {Key: "ns", Value: "admin.$cmd.bulkWrite"}}},
			{Key: "nErrors", Value: errs}, {Key: "nInserted", Value: 1}, {Key: "nMatched", Value: 0}, {Key: "nModified", Value: 0}, {Key: "nUpserted", Value: 0}, {Key: "nDeleted", Value: 0}, ok})
	}
	first, next, write := cursor("firstBatch"), cursor("nextBatch"), rig.Encoded(t, bson.D{{Key: "n", Value: 1}, {Key: "writeErrors", Value: results}, ok})
	return rig.Open(t, rig.StartFakeWith(t, bulkHello(t), func(r *fakeserver.Request) {
		switch r.Command {
		case "bulkWrite":
			r.Reply(first)
		case "getMore":
			r.Reply(next)
		case "insert", "update":
			r.Reply(write)
		default:
			r.Reply(fakeserver.OK())
		}
	}))
}

// TestLyingBulkResults: results of writes that name one write twice, or none that there is, end the
// operation with an error, and are not gathered without end.
func TestLyingBulkResults(t *testing.T) {
	one := func(ok int, idx any) bson.D {
		return bson.D{{Key: "ok", Value: ok}, {Key: "idx", Value: idx}, {Key: "index", Value: idx}, {Key: "n", Value: 1}, {Key: "code", Value: 5}, {Key: "errmsg", Value: "no"}}
	}
	for name, results := range map[string]bson.A{
		"one twice":           {one(0, 0), one(0, 0)},
		"one twice, later":    {one(0, 0), one(0, 1), one(0, 0)},
		"one for ever":        {one(0, 1)},
		"all for ever":        {one(0, 0), one(0, 1), one(0, 2)},
		"success twice":       {one(1, 0), one(1, 0)},
		"success and failure": {one(1, 2), one(0, 2)},
		"behind the last":     {one(0, 3)},
		"far behind":          {one(0, int64(1)<<32)},
		"negative":            {one(0, -1)},
		"very negative":       {one(0, int64(-1)<<63)},
		"text":                {one(0, "0")},
		"fraction":            {one(0, 0.5)},
		"null":                {one(0, nil)},
	} {
		for _, verbose := range []bool{false, true} {
			t.Run(fmt.Sprint(name, verbose), func(t *testing.T) {
				client := lyingBulk(t, results, 1)
				res, err := client.BulkWrite(t.Context(), rig.Repeat(client.Database("d").Collection("c").InsertOneModel(bson.D{}), 3), allium.ClientBulkWriteOptions{Unordered: true, VerboseResults: verbose})
				if err == nil || !strings.Contains(err.Error(), "server") {
					t.Errorf("%+v, %v", res, err)
				}
				if e, ok := errors.AsType[*mongoerr.BulkWriteError](err); ok && (len(e.WriteErrors) > 3 || e.Err == nil) {
					t.Errorf("%d write errors, %v", len(e.WriteErrors), e.Err)
				}
				if strings.HasPrefix(name, "success") {
					return // writeErrors have no successes
				}
				coll := client.Database("d").Collection("c")
				_, err = coll.InsertMany(t.Context(), []bson.D{{}, {}, {}}, allium.InsertManyOptions{Unordered: true})
				if err == nil {
					t.Error("insert: no error")
				}
				if e, ok := errors.AsType[*mongoerr.BulkWriteError](err); ok {
					seen := map[int]bool{}
					for _, w := range e.WriteErrors {
						if seen[w.Index] || w.Index < 0 || w.Index > 2 {
							t.Errorf("insert: write %d has failed: %v", w.Index, err)
						}
						seen[w.Index] = true
					}
				}
				if strings.HasPrefix(name, "one twice") && !strings.Contains(err.Error(), "reply says twice") {
					t.Errorf("insert: %v", err)
				}
			})
		}
	}
}

// TestLyingUpserts: a reply that says of one statement twice that it has upserted, or of one that
// there is not, is an error.
func TestLyingUpserts(t *testing.T) {
	upsert := func(index any) bson.D { return bson.D{{Key: "index", Value: index}, {Key: "_id", Value: 1}} }
	for name, list := range map[string]bson.A{
		"twice":           {upsert(1), upsert(1)},
		"twice, later":    {upsert(0), upsert(1), upsert(0)},
		"behind the last": {upsert(2)},
		"far behind":      {upsert(int64(1) << 32)},
		"negative":        {upsert(-1)},
	} {
		reply := rig.Encoded(t, bson.D{{Key: "n", Value: 2}, {Key: "nModified", Value: 0}, {Key: "upserted", Value: list}, {Key: "ok", Value: 1}})
		coll := rig.Open(t, rig.StartFakeWith(t, bulkHello(t), func(r *fakeserver.Request) {
			if r.Command == "update" {
				r.Reply(reply)
				return
			}
			r.Reply(fakeserver.OK())
		})).Database("d").Collection("c")
		write := coll.ReplaceOneModel(bson.D{}, bson.D{}, allium.ReplaceModelOptions{Upsert: true})
		res, err := coll.BulkWrite(t.Context(), []allium.WriteModel{write, write})
		if err == nil || !strings.Contains(err.Error(), "server's reply says") || len(res.UpsertedIDs) > 2 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

// TestSuccessBeforeALostBatch: the result of a write that succeeded stays known when the results
// after it cannot be had.
func TestSuccessBeforeALostBatch(t *testing.T) {
	first := rig.Encoded(t, bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(7)}, {Key: "ns", Value: "admin.$cmd.bulkWrite"},
		{Key: "firstBatch", Value: bson.A{bson.D{{Key: "ok", Value: 1}, {Key: "idx", Value: 0}, {Key: "n", Value: 1}}}}}},
		{Key: "nErrors", Value: 1}, {Key: "nInserted", Value: 1}, {Key: "nMatched", Value: 0}, {Key: "nModified", Value: 0},
		{Key: "nUpserted", Value: 0}, {Key: "nDeleted", Value: 0}, {Key: "ok", Value: 1}})
	refused := rig.Encoded(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 43}, {Key: "codeName", Value: "CursorNotFound"}, {Key: "errmsg", Value: "gone"}})
	client := rig.Open(t, rig.StartFakeWith(t, bulkHello(t), func(r *fakeserver.Request) {
		switch r.Command {
		case "bulkWrite":
			r.Reply(first)
		case "getMore":
			r.Reply(refused)
		default:
			r.Reply(fakeserver.OK())
		}
	}))
	res, err := client.BulkWrite(t.Context(), rig.Repeat(client.Database("d").Collection("c").InsertOneModel(bson.D{}), 3),
		allium.ClientBulkWriteOptions{VerboseResults: true})
	e, ok := errors.AsType[*mongoerr.BulkWriteError](err)
	if !ok || !mongoerr.HasCode(e.Err, 43) || res.InsertedCount != 1 || len(res.InsertedIDs) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}
