package mongotest_test

import (
	"context"
	"fmt"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// BenchmarkReset compares the ways back to 10 collections with an index, and 1,000 documents in
// each, after a test has changed one: to restore a snapshot, in Go and by the command; a copy of
// its own, started and stopped; and to drop the collections and fill them again.
//
//	go test ./mongotest -run xxx -bench Reset -benchtime 200x
func BenchmarkReset(b *testing.B) {
	const collections = 10
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.ReplicaSet(1), mongotest.SnapshotCommands())
	if err != nil {
		b.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close(ctx)
	var docs []bson.D
	for i := range 1000 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "name", Value: fmt.Sprint("name ", i)}, {Key: "n", Value: i % 10}})
	}
	db := client.Database("app")
	coll := func(i int) *allium.Collection[bson.D] { return allium.CollectionOf[bson.D](db, fmt.Sprint("c", i)) }
	fill := func() {
		for i := range collections {
			if _, err := coll(i).InsertMany(ctx, docs); err != nil {
				b.Fatal(err)
			}
			if _, err := db.RunCommand(ctx, bson.D{{Key: "createIndexes", Value: fmt.Sprint("c", i)}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "name", Value: 1}}}, {Key: "name", Value: "name"}}}}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	fill()
	s, err := d.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	admin := func(name string) {
		if _, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: name, Value: "s"}}); err != nil {
			b.Fatal(err)
		}
	}
	admin("saveSnapshot")
	for _, way := range []struct {
		name  string
		reset func()
	}{
		{"snapshot", func() {
			if _, err := d.Snapshot(); err != nil {
				b.Fatal(err)
			}
		}},
		{"restore", func() {
			if err := d.Restore(s); err != nil {
				b.Fatal(err)
			}
		}},
		{"restoreSnapshot", func() { admin("restoreSnapshot") }},
		{"copy", func() {
			mine, err := mongotest.Open(mongotest.ReplicaSet(1), mongotest.From(s))
			if err != nil {
				b.Fatal(err)
			}
			mine.Stop()
		}},
		{"drop and fill", func() {
			for i := range collections {
				if err := coll(i).Drop(ctx); err != nil {
					b.Fatal(err)
				}
			}
			fill()
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				if _, err := coll(0).UpdateMany(ctx, bson.D{}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				way.reset()
			}
		})
	}
}
