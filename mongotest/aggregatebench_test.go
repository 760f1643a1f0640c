//go:build unix

package mongotest_test

import (
	"context"
	"fmt"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// BenchmarkDocuments is what takes long on a collection: stages of pipelines, finds with a sort and
// the building of indexes, on 100,000 documents of about 200 bytes.
//
//	go test ./mongotest -run xxx -bench Documents -benchmem -benchtime 5x
func BenchmarkDocuments(b *testing.B) {
	const many = 100_000
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		b.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close(ctx)
	db := client.Database("app")
	c := allium.CollectionOf[bson.D](db, "c")
	var docs []bson.D
	for i := range many {
		docs = append(docs, bson.D{
			{Key: "_id", Value: i}, {Key: "name", Value: fmt.Sprint("a name of some length ", i*7919%many)},
			{Key: "g", Value: i % 1000}, {Key: "x", Value: float64(i*104729%many) / 8},
			{Key: "in", Value: bson.D{{Key: "city", Value: fmt.Sprint("city ", i%50)}, {Key: "zip", Value: i % 5000}}},
			{Key: "tags", Value: bson.A{"red", fmt.Sprint("tag ", i%20), "green"}},
		})
	}
	if _, err := c.InsertMany(ctx, docs); err != nil {
		b.Fatal(err)
	}
	if _, err := allium.CollectionOf[bson.D](db, "few").InsertMany(ctx, docs[:1000]); err != nil {
		b.Fatal(err)
	}
	run := func(b *testing.B, cmd string) {
		if _, err := db.RunCommand(ctx, extJSON(b, cmd)); err != nil {
			b.Fatal(err)
		}
	}
	for _, x := range []struct{ name, cmd, undo string }{
		{"match", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"in.zip": {"$gte": 2500}, "name": {"$ne": "x"}}}, {"$count": "n"}]}`, ""},
		{"expr", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"$expr": {"$gt": ["$x", "$g"]}}}, {"$count": "n"}]}`, ""},
		{"project", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"y": {"$add": ["$x", 1]}, "in.city": 1}}, {"$match": {"y": {"$lt": 0}}}]}`, ""},
		{"group", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$group": {"_id": "$g", "n": {"$sum": 1}, "most": {"$max": "$x"}, "mean": {"$avg": "$in.zip"}}}]}`, ""},
		{"group by document", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$group": {"_id": {"c": "$in.city", "g": "$g"}, "n": {"$sum": 1}}}]}`, ""},
		{"sort", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"x": 1}}, {"$group": {"_id": null, "n": {"$first": "$x"}}}]}`, ""},
		{"sort by name", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"in.city": 1, "name": -1}}, {"$group": {"_id": null, "n": {"$first": "$x"}}}]}`, ""},
		{"sort limit", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"x": -1}}, {"$limit": 10}]}`, ""},
		{"unwind", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$unwind": "$tags"}, {"$group": {"_id": "$tags", "n": {"$sum": 1}}}]}`, ""},
		{"bucketAuto", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$bucketAuto": {"groupBy": "$x", "buckets": 20}}]}`, ""},
		{"lookup by _id", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$lookup": {"from": "few", "localField": "g", "foreignField": "_id", "as": "f"}}, {"$match": {"f.x": -1}}]}`, ""},
		{"lookup", `{"aggregate": "few", "cursor": {}, "pipeline": [{"$limit": 100}, {"$lookup": {"from": "few", "localField": "in.zip", "foreignField": "in.zip", "as": "f"}}, {"$match": {"f.x": -1}}]}`, ""},
		{"find sorted", `{"find": "c", "sort": {"x": 1}, "limit": 100}`, ""},
		{"find all sorted", `{"find": "c", "sort": {"name": 1}, "allowDiskUse": true, "skip": 99990}`, ""},
		{"index", `{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x"}]}`, `{"dropIndexes": "c", "index": "x"}`},
		{"index of names", `{"createIndexes": "c", "indexes": [{"key": {"in.city": 1, "name": 1}, "name": "x"}]}`, `{"dropIndexes": "c", "index": "x"}`},
		{"index of arrays", `{"createIndexes": "c", "indexes": [{"key": {"tags": 1}, "name": "x"}]}`, `{"dropIndexes": "c", "index": "x"}`},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpu()
			for b.Loop() {
				run(b, x.cmd)
				if x.undo != "" {
					run(b, x.undo)
				}
			}
			b.ReportMetric(float64(cpu()-before)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
