package interop

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func TestOfficialBulkWrite(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("bulk")
		res := must(coll.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(doc("_id", 1, "n", 1, "tags", bson.A{1, 2, 3})),
			mongo.NewInsertOneModel().SetDocument(doc("_id", 2, "n", 2, "name", "ADA")),
			mongo.NewInsertOneModel().SetDocument(doc("_id", 3, "n", 3)),
			mongo.NewUpdateOneModel().SetFilter(doc("_id", 1)).SetUpdate(doc("$set", doc("tags.$[big]", 9))).SetArrayFilters([]any{doc("big", doc("$gte", 2))}),
			mongo.NewUpdateManyModel().SetFilter(doc("n", doc("$gt", 1))).SetUpdate(doc("$inc", doc("n", 10))),
			mongo.NewUpdateOneModel().SetFilter(doc("name", "ada")).SetUpdate(bson.A{doc("$set", doc("twice", doc("$multiply", bson.A{"$n", 2})))}).
				SetCollation(&options.Collation{Locale: "en", Strength: 2}),
			mongo.NewUpdateOneModel().SetFilter(doc("_id", 4)).SetUpdate(doc("$setOnInsert", doc("new", true))).SetUpsert(true),
			mongo.NewReplaceOneModel().SetFilter(doc("_id", 3)).SetReplacement(doc("replaced", true)),
			mongo.NewReplaceOneModel().SetFilter(doc("_id", 5)).SetReplacement(doc("five", 5)).SetUpsert(true),
			mongo.NewDeleteOneModel().SetFilter(doc("_id", 4)),
			mongo.NewDeleteManyModel().SetFilter(doc("five", doc("$exists", true))),
		}))(t)
		got := fmt.Sprint(res.InsertedCount, res.MatchedCount, res.ModifiedCount, res.UpsertedCount, res.DeletedCount, res.UpsertedIDs)
		if want := "3 5 5 2 2 map[6:4 8:5]"; got != want {
			t.Errorf("result %s, want %s", got, want)
		}
		cur, err := coll.Find(ctx, doc(), options.Find().SetSort(doc("_id", 1)))
		want := `{"_id":1,"n":1,"tags":[1,9,9]} {"_id":2,"n":12,"name":"ADA","twice":24} {"_id":3,"replaced":true}`
		if got := all(t, cur, err); got != want {
			t.Errorf("documents %s\nwant %s", got, want)
		}
	})
}

// TestOfficialBulkWriteErrors has two statements that fail among others: the first ends an ordered
// bulk.
func TestOfficialBulkWriteErrors(t *testing.T) {
	models := []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(doc("_id", 1)),
		mongo.NewInsertOneModel().SetDocument(doc("_id", 1)),
		mongo.NewUpdateOneModel().SetFilter(doc("_id", 1)).SetUpdate(doc("$set", doc("x", "text"))),
		mongo.NewUpdateOneModel().SetFilter(doc("_id", 1)).SetUpdate(doc("$inc", doc("x", 1))),
		mongo.NewDeleteOneModel().SetFilter(doc("_id", 1)),
	}
	deployments(t, func(t *testing.T, p *peer) {
		for _, tc := range []struct {
			ordered bool
			codes   string
			result  string // inserted, modified, deleted
		}{
			{true, "1:11000", "1 0 0"},
			{false, "1:11000 3:14", "1 1 1"},
		} {
			coll := p.db.Collection(fmt.Sprintf("errors-%v", tc.ordered))
			res, err := coll.BulkWrite(t.Context(), models, options.BulkWrite().SetOrdered(tc.ordered))
			var bulk mongo.BulkWriteException
			if !errors.As(err, &bulk) {
				t.Fatalf("ordered %v: no bulk write error but %v", tc.ordered, err)
			}
			var codes []string
			for _, e := range bulk.WriteErrors {
				codes = append(codes, fmt.Sprintf("%d:%d", e.Index, e.Code))
			}
			if got := strings.Join(codes, " "); got != tc.codes {
				t.Errorf("ordered %v: errors %s, want %s", tc.ordered, got, tc.codes)
			}
			if got := fmt.Sprint(res.InsertedCount, res.ModifiedCount, res.DeletedCount); got != tc.result {
				t.Errorf("ordered %v: result %s, want %s", tc.ordered, got, tc.result)
			}
		}
	})
}

// TestOfficialBulkWriteOverLimits has more documents, and more bytes, than go into one command.
func TestOfficialBulkWriteOverLimits(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		inserts := p.count("insert")
		many := make([]any, 100_001)
		for i := range many {
			many[i] = doc("_id", i)
		}
		res := must(p.db.Collection("many").InsertMany(ctx, many))(t)
		if len(res.InsertedIDs) != len(many) || inserts.Load() != 2 {
			t.Errorf("%d documents inserted by %d commands", len(res.InsertedIDs), inserts.Load())
		}
		inserts = p.count("insert")
		big := make([]any, 4)
		for i := range big {
			big[i] = doc("_id", i, "text", strings.Repeat("x", 15<<20))
		}
		must(p.db.Collection("big").InsertMany(ctx, big))(t)
		if inserts.Load() != 2 {
			t.Errorf("60 MB inserted by %d commands", inserts.Load())
		}
		for coll, want := range map[string]int64{"many": 100_001, "big": 4} {
			if n := must(p.db.Collection(coll).CountDocuments(ctx, doc()))(t); n != want {
				t.Errorf("%d documents in %s, want %d", n, coll, want)
			}
		}
	})
}

func TestOfficialClientBulkWrite(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		write := func(coll string, m mongo.ClientWriteModel) mongo.ClientBulkWrite {
			return mongo.ClientBulkWrite{Database: "interop", Collection: coll, Model: m}
		}
		res := must(p.client.BulkWrite(ctx, []mongo.ClientBulkWrite{
			write("a", mongo.NewClientInsertOneModel().SetDocument(doc("_id", 1, "n", 1))),
			write("b", mongo.NewClientInsertOneModel().SetDocument(doc("_id", 1, "n", 1))),
			{Database: "elsewhere", Collection: "a", Model: mongo.NewClientInsertOneModel().SetDocument(doc("_id", "x"))},
			write("a", mongo.NewClientUpdateOneModel().SetFilter(doc("_id", 1)).SetUpdate(doc("$inc", doc("n", 1)))),
			write("a", mongo.NewClientUpdateManyModel().SetFilter(doc("n", 7)).SetUpdate(doc("$set", doc("none", true)))),
			write("b", mongo.NewClientReplaceOneModel().SetFilter(doc("_id", 2)).SetReplacement(doc("n", 2)).SetUpsert(true)),
			write("b", mongo.NewClientDeleteOneModel().SetFilter(doc("_id", 1))),
			write("b", mongo.NewClientDeleteManyModel().SetFilter(doc())),
		}, options.ClientBulkWrite().SetVerboseResults(true)))(t)
		got := fmt.Sprint(res.InsertedCount, res.MatchedCount, res.ModifiedCount, res.UpsertedCount, res.DeletedCount)
		if want := "3 1 1 1 2"; got != want {
			t.Errorf("result %s, want %s", got, want)
		}
		if !res.HasVerboseResults || len(res.InsertResults) != 3 || res.InsertResults[2].InsertedID != "x" || res.UpdateResults[3].ModifiedCount != 1 ||
			res.UpdateResults[4].MatchedCount != 0 || fmt.Sprint(res.UpdateResults[5].UpsertedID) != "2" || res.DeleteResults[7].DeletedCount != 1 {
			t.Errorf("verbose results %+v", res)
		}
		cur, err := p.db.Collection("a").Find(ctx, doc())
		if got := all(t, cur, err); got != `{"_id":1,"n":2}` {
			t.Errorf("documents %s", got)
		}

		fail := []mongo.ClientBulkWrite{
			write("c", mongo.NewClientInsertOneModel().SetDocument(doc("_id", 1))),
			write("c", mongo.NewClientInsertOneModel().SetDocument(doc("_id", 1))),
			write("c", mongo.NewClientInsertOneModel().SetDocument(doc("_id", 2))),
			write("c", mongo.NewClientInsertOneModel().SetDocument(doc("_id", 2))),
		}
		for _, ordered := range []bool{true, false} {
			must(p.db.Collection("c").DeleteMany(ctx, doc()))(t)
			_, err := p.client.BulkWrite(ctx, fail, options.ClientBulkWrite().SetOrdered(ordered))
			var bulk mongo.ClientBulkWriteException
			if !errors.As(err, &bulk) {
				t.Fatalf("ordered %v: no client bulk write error but %v", ordered, err)
			}
			want, inserted := map[int]int{1: 11000}, int64(1)
			if !ordered {
				want, inserted = map[int]int{1: 11000, 3: 11000}, 2
			}
			codes := map[int]int{}
			for i, e := range bulk.WriteErrors {
				codes[i] = e.Code
			}
			if fmt.Sprint(codes) != fmt.Sprint(want) || bulk.PartialResult == nil || bulk.PartialResult.InsertedCount != inserted {
				t.Errorf("ordered %v: errors %v, partial result %+v", ordered, codes, bulk.PartialResult)
			}
		}
	})
}

// TestOfficialClientBulkWriteCursor has results that do not fit into one reply: the driver reads
// them with getMore.
func TestOfficialClientBulkWriteCursor(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		getMores := p.count("getMore")
		var writes []mongo.ClientBulkWrite
		for i := range 2 {
			writes = append(writes, mongo.ClientBulkWrite{Database: "interop", Collection: "large", Model: mongo.NewClientUpdateOneModel().
				SetFilter(doc("_id", strings.Repeat(string(rune('a'+i)), 8<<20))).SetUpdate(doc("$set", doc("x", 1))).SetUpsert(true)})
		}
		res := must(p.client.BulkWrite(t.Context(), writes, options.ClientBulkWrite().SetVerboseResults(true)))(t)
		if res.UpsertedCount != 2 || len(res.UpdateResults) != 2 || getMores.Load() != 1 {
			t.Errorf("%d upserted, %d results, %d getMores", res.UpsertedCount, len(res.UpdateResults), getMores.Load())
		}
	})
}
