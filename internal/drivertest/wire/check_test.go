package wire

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

// TestChecksBeforeSending calls every operation with arguments that cannot be right: each is an
// error of the driver's own, nothing is sent, and the client goes on working.
func TestChecksBeforeSending(t *testing.T) {
	rec := &rig.Recorder{}
	var out atomic.Int64 // connections that are checked out
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), allium.ClientOptions{CommandMonitor: rec.Monitor(), PoolMonitor: &event.PoolMonitor{
		ConnectionCheckedOut: func(*event.ConnectionCheckedOut) { out.Add(1) }, ConnectionCheckedIn: func(*event.ConnectionCheckedIn) { out.Add(-1) },
	}})
	ctx, db := t.Context(), client.Database("d")
	coll := db.Collection("c")
	if err := client.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	type user struct{ Name string }
	var (
		users    = allium.CollectionOf[*user](db, "c")
		values   = allium.CollectionOf[any](db, "c")
		maps     = allium.CollectionOf[map[string]int](db, "c")
		filter   = bson.D{{Key: "x", Value: 1}}
		set      = bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
		plain    = bson.D{{Key: "x", Value: 1}}
		unsorted = bson.M{"a": 1, "b": 1}
		nul      = bson.D{{Key: "a\x00b", Value: 1}}
		huge     = bson.D{{Key: "a", Value: strings.Repeat("a", 16<<20)}}
	)
	operations := regexp.MustCompile(`^(insert|update|delete|find|count|distinct|aggregate|bulkWrite|create|drop|list|run|updateSearch)[A-Za-z]*$`)
	// What the operation is about, where it is not the collection.
	about := map[string]string{
		"database aggregate: nil": "d", "no writes of the client": "", "list databases: filter": "", "list collections: filter": "d",
		"command: nil": "d", "command: empty": "d", "command without order": "d", "command is a list": "d", "cursor command: nil": "d",
		"create: no name": "d", "create: NUL": `"d.a\x00b"`, "collection without a name": "d", "collection with NUL": `"d.a\x00"`,
		"database without a name": ".c", "database with NUL": `"a\x00"`,
	}
	for name, run := range map[string]func() error{
		"nil document":              func() error { _, err := coll.InsertOne(ctx, nil); return err },
		"nil pointer":               func() error { _, err := users.InsertOne(ctx, nil); return err },
		"nil map":                   func() error { _, err := maps.InsertOne(ctx, nil); return err },
		"nil interface":             func() error { _, err := values.InsertOne(ctx, nil); return err },
		"pointer to nil":            func() error { _, err := values.InsertOne(ctx, (*user)(nil)); return err },
		"document is a number":      func() error { _, err := values.InsertOne(ctx, 1); return err },
		"document is a list":        func() error { _, err := values.InsertOne(ctx, []int{1}); return err },
		"document over 16 MiB":      func() error { _, err := coll.InsertOne(ctx, huge); return err },
		"document with NUL":         func() error { _, err := coll.InsertOne(ctx, nul); return err },
		"document that is no BSON":  func() error { _, err := values.InsertOne(ctx, bson.D{{Key: "f", Value: func() {}}}); return err },
		"no documents":              func() error { _, err := coll.InsertMany(ctx, nil); return err },
		"one nil among documents":   func() error { _, err := coll.InsertMany(ctx, []bson.D{plain, nil}); return err },
		"one huge among documents":  func() error { _, err := coll.InsertMany(ctx, []bson.D{plain, huge}); return err },
		"find: nil filter":          func() error { _, err := coll.Find(ctx, nil); return err },
		"find: filter is a string":  func() error { _, err := coll.Find(ctx, "x"); return err },
		"find: filter is a list":    func() error { _, err := coll.Find(ctx, bson.A{}); return err },
		"find: filter with NUL":     func() error { _, err := coll.Find(ctx, nul); return err },
		"find: sort without order":  func() error { _, err := coll.Find(ctx, filter, allium.FindOptions{Sort: unsorted}); return err },
		"find: hint without order":  func() error { _, err := coll.Find(ctx, filter, allium.FindOptions{Hint: unsorted}); return err },
		"find: projection":          func() error { _, err := coll.Find(ctx, filter, allium.FindOptions{Projection: 1}); return err },
		"find one: nil filter":      func() error { _, err := coll.FindOne(ctx, nil); return err },
		"count: nil filter":         func() error { _, err := coll.CountDocuments(ctx, nil); return err },
		"distinct: nil filter":      func() error { _, err := allium.Distinct[int](ctx, coll, "x", nil); return err },
		"delete one: nil filter":    func() error { _, err := coll.DeleteOne(ctx, nil); return err },
		"delete many: nil filter":   func() error { _, err := coll.DeleteMany(ctx, nil); return err },
		"delete many: not a filter": func() error { _, err := coll.DeleteMany(ctx, 1); return err },
		"update one: nil filter":    func() error { _, err := coll.UpdateOne(ctx, nil, set); return err },
		"update one: nil update":    func() error { _, err := coll.UpdateOne(ctx, filter, nil); return err },
		"update one: no operator":   func() error { _, err := coll.UpdateOne(ctx, filter, plain); return err },
		"update one: empty update":  func() error { _, err := coll.UpdateOne(ctx, filter, bson.D{}); return err },
		"update one: empty pipeline": func() error {
			_, err := coll.UpdateOne(ctx, filter, []bson.D{})
			return err
		},
		"update many: no operator": func() error { _, err := coll.UpdateMany(ctx, filter, plain); return err },
		"update many: sort": func() error {
			_, err := coll.UpdateMany(ctx, filter, set, allium.UpdateOptions{Sort: plain})
			return err
		},
		"update one: array filters": func() error {
			_, err := coll.UpdateOne(ctx, filter, set, allium.UpdateOptions{ArrayFilters: 1})
			return err
		},
		"replace one: operator":      func() error { _, err := coll.ReplaceOne(ctx, filter, set); return err },
		"replace one: nil":           func() error { _, err := coll.ReplaceOne(ctx, filter, nil); return err },
		"find and update: plain":     func() error { _, err := coll.FindOneAndUpdate(ctx, filter, plain); return err },
		"find and update: nil":       func() error { _, err := coll.FindOneAndUpdate(ctx, filter, nil); return err },
		"find and replace: operator": func() error { _, err := coll.FindOneAndReplace(ctx, filter, set); return err },
		"find and replace: nil":      func() error { _, err := coll.FindOneAndReplace(ctx, filter, nil); return err },
		"find and delete: nil":       func() error { _, err := coll.FindOneAndDelete(ctx, nil); return err },
		"aggregate: nil":             func() error { _, err := coll.Aggregate(ctx, nil); return err },
		"aggregate: a document":      func() error { _, err := coll.Aggregate(ctx, plain); return err },
		"aggregate: not documents":   func() error { _, err := coll.Aggregate(ctx, bson.A{1}); return err },
		"database aggregate: nil":    func() error { _, err := db.Aggregate(ctx, nil); return err },
		"watch: a document":          func() error { _, err := coll.Watch(ctx, plain); return err },
		"no writes":                  func() error { _, err := coll.BulkWrite(ctx, nil); return err },
		"no writes of the client":    func() error { _, err := client.BulkWrite(ctx, nil); return err },
		"no indexes":                 func() error { _, err := coll.CreateIndexes(ctx, nil); return err },
		"index without keys":         func() error { _, err := coll.CreateIndex(ctx, allium.IndexModel{}); return err },
		"index: keys without order":  func() error { _, err := coll.CreateIndex(ctx, allium.IndexModel{Keys: unsorted}); return err },
		"drop index: all":            func() error { return coll.DropIndex(ctx, "*") },
		"drop index: without order":  func() error { return coll.DropIndex(ctx, unsorted) },
		"drop index: nil":            func() error { return coll.DropIndex(ctx, nil) },
		"drop index: empty name":     func() error { return coll.DropIndex(ctx, "") },
		"search index: nil":          func() error { _, err := coll.CreateSearchIndex(ctx, allium.SearchIndexModel{}); return err },
		"search index: update":       func() error { return coll.UpdateSearchIndex(ctx, "x", nil) },
		"command: nil":               func() error { _, err := db.RunCommand(ctx, nil); return err },
		"command: empty":             func() error { _, err := db.RunCommand(ctx, bson.D{}); return err },
		"command without order":      func() error { _, err := db.RunCommand(ctx, unsorted); return err },
		"command is a list":          func() error { _, err := db.RunCommand(ctx, bson.A{1}); return err },
		"cursor command: nil":        func() error { _, err := db.RunCursorCommand(ctx, nil); return err },
		"create: no name":            func() error { return db.CreateCollection(ctx, "") },
		"create: NUL":                func() error { return db.CreateCollection(ctx, "a\x00b") },
		"collection without a name":  func() error { _, err := db.Collection("").InsertOne(ctx, plain); return err },
		"collection with NUL":        func() error { _, err := db.Collection("a\x00").Find(ctx, filter); return err },
		"database without a name":    func() error { _, err := client.Database("").Collection("c").InsertOne(ctx, plain); return err },
		"database with NUL":          func() error { return client.Database("a\x00").Drop(ctx) },
		"list databases: filter":     func() error { _, err := client.ListDatabases(ctx, allium.ListDatabasesOptions{Filter: 1}); return err },
		"list collections: filter":   func() error { _, err := db.ListCollections(ctx, allium.ListCollectionsOptions{Filter: 1}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			rec.Reset()
			err := run()
			var server *mongoerr.ServerError
			if err == nil || errors.As(err, &server) {
				t.Fatalf("want an error of the driver's, got %v", err)
			}
			operation, _, _ := strings.Cut(err.Error(), ": ")
			operation, namespace, _ := strings.Cut(operation, " ")
			want, ok := about[name]
			if !ok {
				want = "d.c"
			}
			if !operations.MatchString(operation) || namespace != want {
				t.Errorf("the error does not say which command it is about, or on what: %v", err)
			}
			if strings.Contains(name, "nil") && !strings.HasPrefix(name, "drop index") && !errors.Is(err, mongoerr.ErrNilDocument) {
				t.Errorf("the error is not ErrNilDocument: %v", err)
			}
			if len(rec.Sent) > 0 {
				t.Errorf("%d commands were sent, first %s", len(rec.Sent), rec.Sent[0].Name)
			}
			if n := out.Load(); n != 0 {
				t.Errorf("%d connections are not given back", n)
			}
		})
	}
	if _, err := coll.InsertOne(ctx, plain); err != nil {
		t.Errorf("the client does not work any more: %v", err)
	}
}

func TestNilContexts(t *testing.T) {
	rec := &rig.Recorder{}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), allium.ClientOptions{CommandMonitor: rec.Monitor()})
	db := client.Database("d")
	coll := db.Collection("c")
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec.Reset()
	var ctx context.Context
	doc, set := bson.D{{Key: "x", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	for name, run := range map[string]func() error{
		"Ping":              func() error { return client.Ping(ctx) },
		"ListDatabases":     func() error { _, err := client.ListDatabases(ctx); return err },
		"ListDatabaseNames": func() error { _, err := client.ListDatabaseNames(ctx); return err },
		"Databases":         func() error { _, err := client.Databases(ctx); return err },
		"Client.BulkWrite": func() error {
			_, err := client.BulkWrite(ctx, []allium.WriteModel{coll.InsertOneModel(doc)})
			return err
		},
		"Client.Watch":        func() error { _, err := client.Watch(ctx, nil); return err },
		"RunCommand":          func() error { _, err := db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}); return err },
		"RunCursorCommand":    func() error { _, err := db.RunCursorCommand(ctx, bson.D{{Key: "find", Value: "c"}}); return err },
		"ListCollections":     func() error { _, err := db.ListCollections(ctx); return err },
		"ListCollectionNames": func() error { _, err := db.ListCollectionNames(ctx); return err },
		"Collections":         func() error { _, err := db.Collections(ctx); return err },
		"CreateCollection":    func() error { return db.CreateCollection(ctx, "c") },
		"ModifyCollection":    func() error { return db.ModifyCollection(ctx, "c") },
		"Database.Drop":       func() error { return db.Drop(ctx) },
		"Database.Aggregate":  func() error { _, err := db.Aggregate(ctx, bson.A{}); return err },
		"Database.Watch":      func() error { _, err := db.Watch(ctx, nil); return err },
		"InsertOne":           func() error { _, err := coll.InsertOne(ctx, doc); return err },
		"InsertMany":          func() error { _, err := coll.InsertMany(ctx, []bson.D{doc}); return err },
		"UpdateOne":           func() error { _, err := coll.UpdateOne(ctx, doc, set); return err },
		"UpdateMany":          func() error { _, err := coll.UpdateMany(ctx, doc, set); return err },
		"ReplaceOne":          func() error { _, err := coll.ReplaceOne(ctx, doc, doc); return err },
		"DeleteOne":           func() error { _, err := coll.DeleteOne(ctx, doc); return err },
		"DeleteMany":          func() error { _, err := coll.DeleteMany(ctx, doc); return err },
		"FindOneAndUpdate":    func() error { _, err := coll.FindOneAndUpdate(ctx, doc, set); return err },
		"FindOneAndReplace":   func() error { _, err := coll.FindOneAndReplace(ctx, doc, doc); return err },
		"FindOneAndDelete":    func() error { _, err := coll.FindOneAndDelete(ctx, doc); return err },
		"BulkWrite": func() error {
			_, err := coll.BulkWrite(ctx, []allium.WriteModel{coll.InsertOneModel(doc)})
			return err
		},
		"Find":                   func() error { _, err := coll.Find(ctx, doc); return err },
		"FindOne":                func() error { _, err := coll.FindOne(ctx, doc); return err },
		"Aggregate":              func() error { _, err := coll.Aggregate(ctx, bson.A{}); return err },
		"Aggregate as another":   func() error { _, err := allium.Aggregate[bson.M](ctx, coll, bson.A{}); return err },
		"Distinct":               func() error { _, err := allium.Distinct[int](ctx, coll, "x", doc); return err },
		"Count":                  func() error { _, err := coll.Count(ctx, doc); return err },
		"CountDocuments":         func() error { _, err := coll.CountDocuments(ctx, doc); return err },
		"EstimatedDocumentCount": func() error { _, err := coll.EstimatedDocumentCount(ctx); return err },
		"CreateIndex":            func() error { _, err := coll.CreateIndex(ctx, allium.IndexModel{Keys: doc}); return err },
		"ListIndexes":            func() error { _, err := coll.ListIndexes(ctx); return err },
		"ListIndexNames":         func() error { _, err := coll.ListIndexNames(ctx); return err },
		"DropIndex":              func() error { return coll.DropIndex(ctx, "x_1") },
		"DropIndexes":            func() error { return coll.DropIndexes(ctx) },
		"CreateSearchIndex": func() error {
			_, err := coll.CreateSearchIndex(ctx, allium.SearchIndexModel{Definition: doc})
			return err
		},
		"UpdateSearchIndex": func() error { return coll.UpdateSearchIndex(ctx, "x", doc) },
		"DropSearchIndex":   func() error { return coll.DropSearchIndex(ctx, "x") },
		"ListSearchIndexes": func() error { _, err := coll.ListSearchIndexes(ctx); return err },
		"Rename":            func() error { return coll.Rename(ctx, "e") },
		"Drop":              func() error { return coll.Drop(ctx) },
		"Watch":             func() error { _, err := coll.Watch(ctx, nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			about, ok := map[string]string{
				"Ping": "ping", "ListDatabases": "listDatabases", "ListDatabaseNames": "listDatabases", "Databases": "listDatabases",
				"Client.BulkWrite": "bulkWrite", "Client.Watch": "aggregate", "RunCommand": "ping d", "RunCursorCommand": "find d.c",
				"ListCollections": "listCollections d", "ListCollectionNames": "listCollections d", "Collections": "listCollections d",
				"CreateCollection": "create d.c", "ModifyCollection": "collMod d.c", "Database.Drop": "dropDatabase d",
				"Database.Aggregate": "aggregate d", "Database.Watch": "aggregate d",
				"InsertOne": "insert d.c", "InsertMany": "insert d.c", "BulkWrite": "insert d.c", "UpdateOne": "update d.c", "UpdateMany": "update d.c",
				"ReplaceOne": "update d.c", "DeleteOne": "delete d.c", "DeleteMany": "delete d.c", "FindOneAndUpdate": "findAndModify d.c",
				"FindOneAndReplace": "findAndModify d.c", "FindOneAndDelete": "findAndModify d.c", "Find": "find d.c", "FindOne": "find d.c",
				"Aggregate": "aggregate d.c", "Aggregate as another": "aggregate d.c", "Distinct": "distinct d.c", "Count": "count d.c",
				"CountDocuments": "aggregate d.c", "EstimatedDocumentCount": "count d.c", "CreateIndex": "createIndexes d.c",
				"ListIndexes": "listIndexes d.c", "ListIndexNames": "listIndexes d.c", "DropIndex": "dropIndexes d.c", "DropIndexes": "dropIndexes d.c",
				"CreateSearchIndex": "createSearchIndexes d.c", "UpdateSearchIndex": "updateSearchIndex d.c", "DropSearchIndex": "dropSearchIndex d.c",
				"ListSearchIndexes": "aggregate d.c", "Rename": "renameCollection d.c", "Drop": "drop d.c", "Watch": "aggregate d.c",
			}[name]
			if err := run(); err == nil || !ok || err.Error() != about+": context is nil" {
				t.Errorf("got %v, want %s: context is nil", err, about)
			}
		})
	}
	if n := len(rec.Sent); n > 0 {
		t.Errorf("%d commands were sent", n)
	}
}
