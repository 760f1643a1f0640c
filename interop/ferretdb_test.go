package interop

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/mongoerr"

	"github.com/FerretDB/FerretDB/ferretdb"
)

// ferret starts FerretDB with its SQLite backend inside the test's process and connects Allium to
// it.
func ferret(t *testing.T) *allium.Client {
	t.Helper()
	f, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Logger:    slog.New(slog.DiscardHandler),
		Handler:   "sqlite",
		SQLiteURL: "file:" + t.TempDir() + "/",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Error("FerretDB does not stop")
		}
	})
	client, err := allium.Open(f.MongoDBURI())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

type person struct {
	ID   int    `bson:"_id"`
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

func TestFerretDB(t *testing.T) {
	client := ferret(t)
	ctx := t.Context()
	db := client.Database("interop")
	people := allium.CollectionOf[person](db, "people")

	t.Run("insert and find", func(t *testing.T) {
		res := must(people.InsertOne(ctx, person{1, "Ada", 36}))(t)
		if res.InsertedID != int32(1) {
			t.Fatalf("inserted id %v (%[1]T)", res.InsertedID)
		}
		must(people.InsertMany(ctx, []person{{2, "Grace", 85}, {3, "Edsger", 72}}))(t)
		if p := must(people.FindOne(ctx, bson.M{"age": bson.M{"$gt": 80}}))(t); p.Name != "Grace" {
			t.Fatalf("found %+v", p)
		}
		if _, err := people.FindOne(ctx, bson.M{"age": -1}); !errors.Is(err, mongoerr.ErrNoDocuments) {
			t.Fatalf("find nothing: %v", err)
		}
	})
	t.Run("update, replace and delete", func(t *testing.T) {
		up := must(people.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"age": 1}}))(t)
		if up.MatchedCount != 1 || up.ModifiedCount != 1 {
			t.Fatalf("update one: %+v", up)
		}
		up = must(people.UpdateMany(ctx, bson.M{}, bson.M{"$set": bson.M{"seen": true}}))(t)
		if up.ModifiedCount != 3 {
			t.Fatalf("update many: %+v", up)
		}
		up = must(people.UpdateOne(ctx, bson.M{"_id": 4}, bson.M{"$set": bson.M{"name": "Barbara"}}, allium.UpdateOptions{Upsert: true}))(t)
		if up.UpsertedCount != 1 || up.UpsertedID != int32(4) || up.MatchedCount != 0 {
			t.Fatalf("upsert: %+v", up)
		}
		up = must(people.ReplaceOne(ctx, bson.M{"_id": 4}, person{4, "Liskov", 80}))(t)
		if up.ModifiedCount != 1 {
			t.Fatalf("replace: %+v", up)
		}
		if n := must(people.CountDocuments(ctx, bson.M{"age": bson.M{"$gte": 72}}))(t); n != 3 {
			t.Fatalf("count: %d", n)
		}
		if del := must(people.DeleteOne(ctx, bson.M{"_id": 4}))(t); del.DeletedCount != 1 {
			t.Fatalf("delete one: %+v", del)
		}
	})
	t.Run("bulk insert with a duplicate", func(t *testing.T) {
		for _, unordered := range []bool{false, true} {
			coll := allium.CollectionOf[bson.M](db, map[bool]string{false: "ordered", true: "unordered"}[unordered])
			docs := []bson.M{{"_id": 1}, {"_id": 2}, {"_id": 1}, {"_id": 3}}
			res, err := coll.InsertMany(ctx, docs, allium.InsertManyOptions{Unordered: unordered})
			var bulk *mongoerr.BulkWriteError
			if !errors.As(err, &bulk) || len(bulk.WriteErrors) != 1 || bulk.WriteErrors[0].Index != 2 || !errors.Is(err, mongoerr.ErrDuplicateKey) {
				t.Fatalf("unordered %v: want one duplicate key error at index 2, got %v", unordered, err)
			}
			want := 2
			if unordered {
				want = 3
			}
			if len(res.InsertedIDs) != want {
				t.Errorf("unordered %v: inserted %v, want %d", unordered, res.InsertedIDs, want)
			}
		}
	})
	t.Run("cursor over several batches", func(t *testing.T) {
		type doc struct {
			ID int `bson:"_id"`
		}
		coll := allium.CollectionOf[doc](db, "batches")
		docs := make([]doc, 500)
		for i := range docs {
			docs[i].ID = i
		}
		must(coll.InsertMany(ctx, docs))(t)
		cur := must(coll.Find(ctx, bson.M{}, allium.FindOptions{BatchSize: new(int32(7)), Sort: bson.D{{Key: "_id", Value: 1}}}))(t)
		n := 0
		for d, err := range cur.Seq(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if d.ID != n {
				t.Fatalf("document %d has _id %d", n, d.ID)
			}
			n++
		}
		if n != len(docs) {
			t.Fatalf("%d documents, want %d", n, len(docs))
		}
		cur = must(coll.Find(ctx, bson.M{}, allium.FindOptions{BatchSize: new(int32(2))}))(t)
		for range cur.Seq(ctx) {
			break // closes the cursor on the server
		}
	})
	t.Run("unique index and aggregation", func(t *testing.T) {
		coll := allium.CollectionOf[bson.M](db, "indexed")
		if name := must(coll.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "email", Value: 1}}, Unique: true}))(t); name != "email_1" {
			t.Fatalf("index name %q", name)
		}
		must(coll.InsertOne(ctx, bson.M{"email": "ada@example.com"}))(t)
		if _, err := coll.InsertOne(ctx, bson.M{"email": "ada@example.com"}); !errors.Is(err, mongoerr.ErrDuplicateKey) {
			t.Fatalf("want a duplicate key error, got %v", err)
		}
		type sum struct {
			N int `bson:"n"`
		}
		cur := must(allium.CollectionOf[sum](db, "people").Aggregate(ctx, []bson.M{{"$group": bson.D{{Key: "_id", Value: nil}, {Key: "n", Value: bson.M{"$sum": "$age"}}}}}))(t)
		all := must(cur.All(ctx))(t)
		if len(all) != 1 || all[0].N != 37+85+72 {
			t.Fatalf("sum of ages: %+v", all)
		}
	})
	t.Run("errors", func(t *testing.T) {
		_, err := db.RunCommand(ctx, bson.D{{Key: "nope", Value: 1}})
		var server *mongoerr.ServerError
		if !errors.As(err, &server) || server.Code != 59 || server.Command != "nope" {
			t.Fatalf("unknown command: %v", err)
		}
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := people.FindOne(canceled, bson.M{}); !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled: %v", err)
		}
	})
}
