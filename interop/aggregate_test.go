package interop

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// orders is what the aggregations read: sales with a customer, a time and lines, and the customers.
func orders(t *testing.T, p *peer) (sales, customers *mongo.Collection) {
	t.Helper()
	sales, customers = p.db.Collection("sales"), p.db.Collection("customers")
	day := func(n int) bson.DateTime { return bson.DateTime(1_700_000_000_000 + int64(n)*86_400_000) }
	line := func(sku string, qty int, price float64) bson.D { return doc("sku", sku, "qty", qty, "price", price) }
	must(sales.InsertMany(t.Context(), []any{
		doc("_id", 1, "customer", "ada", "at", day(0), "lines", bson.A{line("pen", 10, 1.5), line("ink", 1, 8)}),
		doc("_id", 2, "customer", "grace", "at", day(1), "lines", bson.A{line("pen", 2, 1.5)}),
		doc("_id", 3, "customer", "ada", "at", day(1), "lines", bson.A{line("nib", 3, 2.25)}),
		doc("_id", 4, "customer", "edsger", "at", day(4), "lines", bson.A{line("ink", 2, 8), line("paper", 100, 0.0625)}),
	}))(t)
	must(customers.InsertMany(t.Context(), []any{
		doc("_id", "ada", "city", "London", "boss", nil), doc("_id", "grace", "city", "New York", "boss", "ada"),
		doc("_id", "edsger", "city", "Rotterdam", "boss", "grace"),
	}))(t)
	return sales, customers
}

func TestOfficialAggregate(t *testing.T) {
	total := doc("$sum", doc("$map", doc("input", "$lines", "in", doc("$multiply", bson.A{"$$this.qty", "$$this.price"}))))
	tests := []struct {
		name     string
		pipeline []bson.D
		want     string
	}{
		{"match, sort, skip, limit, project", []bson.D{
			doc("$match", doc("lines.qty", doc("$gte", 2))), doc("$sort", doc("_id", -1)), doc("$skip", 1), doc("$limit", 2),
			doc("$project", doc("customer", doc("$toUpper", "$customer"), "n", doc("$size", "$lines"))),
		}, `{"_id":3,"customer":"ADA","n":1} {"_id":2,"customer":"GRACE","n":1}`},
		{"unwind and group", []bson.D{
			doc("$unwind", "$lines"),
			doc("$group", doc("_id", "$lines.sku", "qty", doc("$sum", "$lines.qty"), "by", doc("$addToSet", "$customer"), "first", doc("$min", "$_id"))),
			doc("$set", doc("by", doc("$sortArray", doc("input", "$by", "sortBy", 1)))), doc("$sort", doc("_id", 1)),
		}, `{"_id":"ink","qty":3,"by":["ada","edsger"],"first":1} {"_id":"nib","qty":3,"by":["ada"],"first":3} ` +
			`{"_id":"paper","qty":100,"by":["edsger"],"first":4} {"_id":"pen","qty":12,"by":["ada","grace"],"first":1}`},
		{"lookup with a pipeline", []bson.D{
			doc("$match", doc("_id", doc("$in", bson.A{1, 2}))),
			doc("$lookup", doc("from", "customers", "localField", "customer", "foreignField", "_id", "as", "who",
				"pipeline", bson.A{doc("$project", doc("_id", 0, "city", 1))})),
			doc("$replaceWith", doc("$mergeObjects", bson.A{doc("id", "$_id"), doc("$first", "$who")})), doc("$sort", doc("id", 1)),
		}, `{"id":1,"city":"London"} {"id":2,"city":"New York"}`},
		{"graphLookup", []bson.D{
			doc("$match", doc("_id", 4)),
			doc("$graphLookup", doc("from", "customers", "startWith", "$customer", "connectFromField", "boss", "connectToField", "_id", "as", "chain", "depthField", "depth")),
			doc("$project", doc("chain", doc("$map", doc("input", doc("$sortArray", doc("input", "$chain", "sortBy", doc("depth", 1))), "in", "$$this._id")))),
		}, `{"_id":4,"chain":["edsger","grace","ada"]}`},
		{"facet, bucket, sortByCount, count", []bson.D{
			doc("$facet", doc(
				"buckets", bson.A{doc("$bucket", doc("groupBy", "$_id", "boundaries", bson.A{0, 2, 10}))},
				"customers", bson.A{doc("$sortByCount", "$customer"), doc("$limit", 1)},
				"n", bson.A{doc("$count", "sales")},
			)),
		}, `{"buckets":[{"_id":0,"count":1},{"_id":2,"count":3}],"customers":[{"_id":"ada","count":2}],"n":[{"sales":4}]}`},
		{"window fields", []bson.D{
			doc("$set", doc("total", total)),
			doc("$setWindowFields", doc("sortBy", doc("_id", 1), "output", doc(
				"running", doc("$sum", "$total", "window", doc("documents", bson.A{"unbounded", "current"})),
				"rank", doc("$rank", doc())))),
			doc("$project", doc("total", 1, "running", 1, "rank", 1)),
		}, `{"_id":1,"total":23.0,"running":23.0,"rank":1} {"_id":2,"total":3.0,"running":26.0,"rank":2} ` +
			`{"_id":3,"total":6.75,"running":32.75,"rank":3} {"_id":4,"total":22.25,"running":55.0,"rank":4}`},
		{"union and dates", []bson.D{
			doc("$match", doc("_id", 4)), doc("$project", doc("day", doc("$dateToString", doc("date", "$at", "format", "%Y-%m-%d")))),
			doc("$unionWith", doc("coll", "customers", "pipeline", bson.A{doc("$match", doc("boss", nil)), doc("$unset", "boss")})),
		}, `{"_id":4,"day":"2023-11-18"} {"_id":"ada","city":"London"}`},
		{"switch, reduce, let", []bson.D{
			doc("$project", doc("size", doc("$let", doc("vars", doc("n", doc("$reduce", doc("input", "$lines.qty", "initialValue", 0, "in", doc("$add", bson.A{"$$value", "$$this"})))),
				"in", doc("$switch", doc("branches", bson.A{doc("case", doc("$gte", bson.A{"$$n", 100}), "then", "large"), doc("case", doc("$gt", bson.A{"$$n", 5}), "then", "middle")}, "default", "small")))))),
			doc("$sort", doc("_id", 1)),
		}, `{"_id":1,"size":"middle"} {"_id":2,"size":"small"} {"_id":3,"size":"small"} {"_id":4,"size":"large"}`},
		{"densify and fill", []bson.D{
			doc("$project", doc("_id", 0, "n", "$_id", "first", doc("$first", "$lines.qty"))), doc("$match", doc("n", doc("$ne", 2))),
			doc("$densify", doc("field", "n", "range", doc("step", 1, "bounds", "full"))),
			doc("$fill", doc("sortBy", doc("n", 1), "output", doc("first", doc("method", "locf")))),
		}, `{"n":1,"first":10} {"n":2,"first":10} {"n":3,"first":3} {"n":4,"first":2}`},
		{"redact and replaceRoot", []bson.D{
			doc("$match", doc("_id", 1)),
			doc("$redact", doc("$cond", bson.A{doc("$eq", bson.A{"$sku", "ink"}), "$$PRUNE", "$$DESCEND"})),
			doc("$replaceRoot", doc("newRoot", doc("$arrayElemAt", bson.A{"$lines", 0}))),
		}, `{"sku":"pen","qty":10,"price":1.5}`},
	}
	deployments(t, func(t *testing.T, p *peer) {
		sales, _ := orders(t, p)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				cur, err := sales.Aggregate(t.Context(), tt.pipeline)
				if got := all(t, cur, err); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		}
		t.Run("out and merge", func(t *testing.T) {
			ctx := t.Context()
			cur, err := sales.Aggregate(ctx, []bson.D{doc("$project", doc("customer", 1)), doc("$out", "copied")})
			if got := all(t, cur, err); got != "" {
				t.Errorf("$out returns %s", got)
			}
			cur, err = sales.Aggregate(ctx, []bson.D{
				doc("$project", doc("n", doc("$size", "$lines"))), doc("$set", doc("_id", doc("$add", bson.A{"$_id", 2}))),
				doc("$merge", doc("into", "copied", "whenMatched", "merge", "whenNotMatched", "insert")),
			})
			if got := all(t, cur, err); got != "" {
				t.Errorf("$merge returns %s", got)
			}
			cur, err = p.db.Collection("copied").Find(ctx, doc("_id", doc("$gte", 3)), options.Find().SetSort(doc("_id", 1)))
			if got, want := all(t, cur, err), `{"_id":3,"customer":"ada","n":2} {"_id":4,"customer":"edsger","n":1} {"_id":5,"n":1} {"_id":6,"n":2}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
		t.Run("batches and options", func(t *testing.T) {
			getMores := p.count("getMore")
			cur, err := sales.Aggregate(t.Context(), []bson.D{doc("$match", doc("customer", doc("$ne", nil))), doc("$project", doc("x", "$$factor"))},
				options.Aggregate().SetBatchSize(1).SetLet(doc("factor", 3)).SetAllowDiskUse(true).SetHint("_id_").SetComment("a comment"))
			if got, want := all(t, cur, err), `{"_id":1,"x":3} {"_id":2,"x":3} {"_id":3,"x":3} {"_id":4,"x":3}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if getMores.Load() < 3 {
				t.Errorf("%d getMores with a batch size of 1", getMores.Load())
			}
		})
		t.Run("errors", func(t *testing.T) {
			for code, stage := range map[int]bson.D{
				40324: doc("$nope", 1),
				16020: doc("$project", doc("x", doc("$divide", bson.A{1, 2, 3}))),
				2:     doc("$project", doc("x", doc("$divide", bson.A{1, 0}))),
			} {
				cur, err := sales.Aggregate(t.Context(), []bson.D{stage})
				if err == nil {
					err = cur.Err()
				}
				wantCode(t, err, code)
			}
		})
		t.Run("whole database", func(t *testing.T) {
			cur, err := p.client.Database("admin").Aggregate(t.Context(), []bson.D{doc("$documents", bson.A{doc("x", 1), doc("x", 2)}), doc("$match", doc("x", 2))})
			if got := all(t, cur, err); got != `{"x":2}` {
				t.Errorf("got %s", got)
			}
		})
	})
}

func TestOfficialDistinctAndCounts(t *testing.T) {
	deployments(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		sales, _ := orders(t, p)
		var skus []string
		if err := sales.Distinct(ctx, "lines.sku", doc("_id", doc("$lt", 4))).Decode(&skus); err != nil || fmt.Sprint(skus) != "[ink nib pen]" {
			t.Errorf("distinct: %v, %v", skus, err)
		}
		if n := must(sales.EstimatedDocumentCount(ctx))(t); n != 4 {
			t.Errorf("estimated count %d", n)
		}
		if n := must(sales.CountDocuments(ctx, doc("customer", "ada"), options.Count().SetSkip(1).SetLimit(5)))(t); n != 1 {
			t.Errorf("count %d", n)
		}
	})
}
