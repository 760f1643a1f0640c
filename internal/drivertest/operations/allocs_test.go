package operations

import (
	"context"
	"os"
	"regexp"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/norace"
)

// costs says how often each operation allocates at most, with the one document, model or index that
// it is given. The document's own memory is part of it. A number that grows needs a reason in the
// change that makes it grow.
var costs = []struct {
	name string // the operation as the list of the API has it, with what is done
	most float64
	do   func(ctx context.Context, c *costClients) error
}{
	{"(*Client) Ready", 8, func(ctx context.Context, c *costClients) error { return c.client.Ready(ctx) }},
	{"(*Client) Ping", 8, func(ctx context.Context, c *costClients) error { return c.client.Ping(ctx) }},
	{"(*Client) BulkWrite", 18, func(ctx context.Context, c *costClients) error {
		_, err := c.client.BulkWrite(ctx, []allium.WriteModel{c.coll.InsertOneModel(c.doc)})
		return err
	}},
	{"(*Client) ListDatabases", 6, func(ctx context.Context, c *costClients) error { _, err := c.client.ListDatabases(ctx); return err }},
	{"(*Client) ListDatabaseNames", 7, func(ctx context.Context, c *costClients) error { _, err := c.client.ListDatabaseNames(ctx); return err }},
	{"(*Client) Databases", 9, func(ctx context.Context, c *costClients) error { _, err := c.client.Databases(ctx); return err }},
	{"(*Client) Transact", 18, func(ctx context.Context, c *costClients) error {
		return c.client.Transact(ctx, func(ctx context.Context) error { _, err := c.coll.InsertOne(ctx, c.doc); return err })
	}},
	{"(*Client) Watch", 10, func(ctx context.Context, c *costClients) error {
		s, err := c.client.Watch(ctx, nil)
		return closed(ctx, s, err)
	}},
	{"(*Database) Watch", 10, func(ctx context.Context, c *costClients) error {
		s, err := c.db.Watch(ctx, nil)
		return closed(ctx, s, err)
	}},
	{"Watch[V any]", 10, func(ctx context.Context, c *costClients) error {
		s, err := allium.Watch[tenFields](ctx, c.db, nil)
		return closed(ctx, s, err)
	}},
	{"(*Collection[T]) Watch", 10, func(ctx context.Context, c *costClients) error {
		s, err := c.coll.Watch(ctx, nil)
		return closed(ctx, s, err)
	}},
	{"(*Collection[T]) Aggregate", 8, func(ctx context.Context, c *costClients) error {
		cur, err := c.coll.Aggregate(ctx, bson.A{})
		return drained(ctx, cur, err)
	}},
	{"Aggregate[V any]", 8, func(ctx context.Context, c *costClients) error {
		cur, err := allium.Aggregate[tenFields](ctx, c.coll, bson.A{})
		return drained(ctx, cur, err)
	}},
	{"(*Database) Aggregate", 11, func(ctx context.Context, c *costClients) error {
		cur, err := c.db.Aggregate(ctx, bson.A{})
		return drained(ctx, cur, err)
	}},
	{"(*Collection[T]) BulkWrite", 14, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.BulkWrite(ctx, []allium.WriteModel{c.coll.InsertOneModel(c.doc)})
		return err
	}},
	{"(*Collection[T]) Count", 2, func(ctx context.Context, c *costClients) error { _, err := c.coll.Count(ctx, c.filter); return err }},
	{"(*Collection[T]) CountDocuments", 8, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.CountDocuments(ctx, c.filter)
		return err
	}},
	{"(*Collection[T]) EstimatedDocumentCount", 1, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.EstimatedDocumentCount(ctx)
		return err
	}},
	{"Distinct[V any]", 6, func(ctx context.Context, c *costClients) error {
		_, err := allium.Distinct[int32](ctx, c.coll, "age", c.filter)
		return err
	}},
	{"(*Collection[T]) CreateIndex", 5, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.CreateIndex(ctx, c.index)
		return err
	}},
	{"(*Collection[T]) CreateIndexes", 5, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.CreateIndexes(ctx, []allium.IndexModel{c.index})
		return err
	}},
	{"(*Collection[T]) ListIndexes", 7, func(ctx context.Context, c *costClients) error {
		cur, err := c.coll.ListIndexes(ctx)
		return drained(ctx, cur, err)
	}},
	{"(*Collection[T]) ListIndexNames", 7, func(ctx context.Context, c *costClients) error { _, err := c.coll.ListIndexNames(ctx); return err }},
	{"(*Collection[T]) DropIndex", 2, func(ctx context.Context, c *costClients) error { return c.coll.DropIndex(ctx, "age_1") }},
	{"(*Collection[T]) DropIndexes", 2, func(ctx context.Context, c *costClients) error { return c.coll.DropIndexes(ctx) }},
	{"(*Collection[T]) CreateSearchIndex", 7, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.CreateSearchIndex(ctx, c.search)
		return err
	}},
	{"(*Collection[T]) CreateSearchIndexes", 7, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.CreateSearchIndexes(ctx, []allium.SearchIndexModel{c.search})
		return err
	}},
	{"(*Collection[T]) ListSearchIndexes", 15, func(ctx context.Context, c *costClients) error {
		cur, err := c.coll.ListSearchIndexes(ctx)
		return drained(ctx, cur, err)
	}},
	{"(*Collection[T]) UpdateSearchIndex", 2, func(ctx context.Context, c *costClients) error {
		return c.coll.UpdateSearchIndex(ctx, "s", c.search.Definition)
	}},
	{"(*Collection[T]) DropSearchIndex", 2, func(ctx context.Context, c *costClients) error { return c.coll.DropSearchIndex(ctx, "s") }},
	{"(*Collection[T]) DeleteOne", 3, func(ctx context.Context, c *costClients) error { _, err := c.coll.DeleteOne(ctx, c.filter); return err }},
	{"(*Collection[T]) DeleteMany", 3, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.DeleteMany(ctx, c.filter)
		return err
	}},
	{"(*Collection[T]) UpdateOne", 4, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.UpdateOne(ctx, c.filter, c.update)
		return err
	}},
	{"Save[T any]", 39, func(ctx context.Context, c *costClients) error {
		before := c.doc
		before.ID = bson.ObjectID{1}
		after := before
		after.Name = "Ada"
		return allium.Save(ctx, c.coll, "age", before, &after)
	}},
	{"(*Collection[T]) UpdateMany", 4, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.UpdateMany(ctx, c.filter, c.update)
		return err
	}},
	{"(*Collection[T]) ReplaceOne", 4, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.ReplaceOne(ctx, c.filter, c.doc)
		return err
	}},
	{"(*Collection[T]) InsertOne", 5, func(ctx context.Context, c *costClients) error { _, err := c.coll.InsertOne(ctx, c.doc); return err }},
	{"(*Collection[T]) InsertMany", 9, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.InsertMany(ctx, []tenFields{c.doc})
		return err
	}},
	{"(*Collection[T]) FindOne with its filter, as BenchmarkFindOne", 4, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.FindOne(ctx, bson.D{{Key: "_id", Value: 1}})
		return err
	}},
	{"(*Collection[T]) FindOneAndDelete", 6, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.FindOneAndDelete(ctx, c.filter)
		return err
	}},
	{"(*Collection[T]) All", 7, func(ctx context.Context, c *costClients) error { _, err := c.coll.All(ctx, c.filter); return err }},
	{"(*Collection[T]) Query", 6, func(ctx context.Context, c *costClients) (err error) {
		for _, err = range c.coll.Query(ctx, c.filter) {
		}
		return err
	}},
	{"(*UntypedCollection) InsertOne", 7, func(ctx context.Context, c *costClients) error {
		_, err := c.db.Collection("users").InsertOne(ctx, c.doc)
		return err
	}},
	{"(*UntypedCollection) InsertMany", 11, func(ctx context.Context, c *costClients) error {
		_, err := c.db.Collection("users").InsertMany(ctx, []tenFields{c.doc})
		return err
	}},
	{"(*UntypedCollection) ReplaceOne", 6, func(ctx context.Context, c *costClients) error {
		_, err := c.db.Collection("users").ReplaceOne(ctx, c.filter, c.doc)
		return err
	}},
	{"(*UntypedCollection) FindOneAndReplace", 10, func(ctx context.Context, c *costClients) error {
		_, err := c.db.Collection("users").FindOneAndReplace(ctx, c.filter, c.doc)
		return err
	}},
	{"(*Collection[T]) FindOneAndReplace", 7, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.FindOneAndReplace(ctx, c.filter, c.doc)
		return err
	}},
	{"(*Collection[T]) FindOneAndUpdate", 7, func(ctx context.Context, c *costClients) error {
		_, err := c.coll.FindOneAndUpdate(ctx, c.filter, c.update)
		return err
	}},
	{"(*Collection[T]) Find", 6, func(ctx context.Context, c *costClients) error {
		cur, err := c.coll.Find(ctx, c.filter)
		return drained(ctx, cur, err)
	}},
	{"(*Cursor[T]) Seq over 1,000 documents", 1005, func(ctx context.Context, c *costClients) error {
		cur, err := c.many.Find(ctx, c.filter)
		if err != nil {
			return err
		}
		for _, err := range cur.Seq(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"(*Cursor[T]) Next, 1,000 documents", 1005, func(ctx context.Context, c *costClients) error {
		cur, err := c.many.Find(ctx, c.filter)
		return drained(ctx, cur, err)
	}},
	{"(*Cursor[T]) TryNext, 1,000 documents", 1005, func(ctx context.Context, c *costClients) error {
		cur, err := c.many.Find(ctx, c.filter)
		if err != nil {
			return err
		}
		for cur.TryNext(ctx) {
		}
		return cur.Err()
	}},
	{"(*Cursor[T]) All, 1,000 documents", 1016, func(ctx context.Context, c *costClients) error {
		cur, err := c.many.Find(ctx, c.filter)
		if err != nil {
			return err
		}
		_, err = cur.All(ctx)
		return err
	}},
	{"(*Cursor[T]) Batches, 1,000 documents", 6, func(ctx context.Context, c *costClients) error {
		cur, err := c.many.Find(ctx, c.filter)
		if err != nil {
			return err
		}
		for _, err := range cur.Batches(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"(*Collection[T]) Drop", 4, func(ctx context.Context, c *costClients) error { return c.coll.Drop(ctx) }},
	{"(*Collection[T]) Rename", 7, func(ctx context.Context, c *costClients) error { return c.coll.Rename(ctx, "people") }},
	{"(*Database) Collections", 9, func(ctx context.Context, c *costClients) error { _, err := c.db.Collections(ctx); return err }},
	{"(*Database) CreateCollection", 2, func(ctx context.Context, c *costClients) error { return c.db.CreateCollection(ctx, "people") }},
	{"(*Database) ModifyCollection", 2, func(ctx context.Context, c *costClients) error { return c.db.ModifyCollection(ctx, "people") }},
	{"(*Database) Drop", 2, func(ctx context.Context, c *costClients) error { return c.db.Drop(ctx) }},
	{"(*Database) ListCollections", 5, func(ctx context.Context, c *costClients) error {
		cur, err := c.db.ListCollections(ctx)
		return drained(ctx, cur, err)
	}},
	{"(*Database) ListCollectionNames", 7, func(ctx context.Context, c *costClients) error { _, err := c.db.ListCollectionNames(ctx); return err }},
	{"(*Database) RunCommand", 6, func(ctx context.Context, c *costClients) error { _, err := c.db.RunCommand(ctx, c.command); return err }},
	{"(*Database) RunCursorCommand", 11, func(ctx context.Context, c *costClients) error {
		cur, err := c.db.RunCursorCommand(ctx, c.cursorCommand)
		return drained(ctx, cur, err)
	}},
	{"RunCursorCommand[T any]", 9, func(ctx context.Context, c *costClients) error {
		cur, err := allium.RunCursorCommand[tenFields](ctx, c.db, c.cursorCommand)
		return drained(ctx, cur, err)
	}},
	{"(*Session) Transact", 14, func(ctx context.Context, c *costClients) error {
		return c.session.Transact(ctx, func(ctx context.Context) error { _, err := c.coll.InsertOne(ctx, c.doc); return err })
	}},
	{"(*Session) CommitTransaction", 13, func(ctx context.Context, c *costClients) error {
		return c.transaction(ctx, c.session.CommitTransaction)
	}},
	{"(*Session) AbortTransaction", 18, func(ctx context.Context, c *costClients) error {
		return c.transaction(ctx, c.session.AbortTransaction)
	}},
	{"(*Session) End", 4, func(ctx context.Context, c *costClients) error {
		s, err := c.client.StartSession()
		if err != nil {
			return err
		}
		return s.End(ctx)
	}},
}

// Methods whose costs another row holds, or that happen once in a client's life.
var costless = map[string]string{
	"(*ChangeStream[T]) Close":   "Watch",
	"(*ChangeStream[T]) Next":    "the rows of Cursor",
	"(*ChangeStream[T]) Seq":     "the rows of Cursor",
	"(*ChangeStream[T]) TryNext": "the rows of Cursor",
	"(*Cursor[T]) Close":         "Find",
	"(*Client) Close":            "once",
	"(*Client) CheckRevocation":  "asks a responder",
	"SessionFrom":                "no I/O",
	"WithSession":                "no I/O",
}

// costClients are what the operations are done with.
type costClients struct {
	client                 *allium.Client
	db                     *allium.Database
	coll, many             *allium.Collection[tenFields]
	session                *allium.Session
	doc                    tenFields
	filter, update         bson.D
	command, cursorCommand bson.D
	index                  allium.IndexModel
	search                 allium.SearchIndexModel
}

func (c *costClients) transaction(ctx context.Context, end func(context.Context, ...allium.EndTransactionOptions) error) error {
	if err := c.session.StartTransaction(); err != nil {
		return err
	}
	if _, err := c.coll.InsertOne(allium.WithSession(ctx, c.session), c.doc); err != nil {
		return err
	}
	return end(ctx)
}

// drained reads a cursor to its end.
func drained[T any](ctx context.Context, cur *allium.Cursor[T], err error) error {
	if err != nil {
		return err
	}
	for cur.Next(ctx) {
	}
	return cur.Err()
}

// closed closes a change stream that was just opened.
func closed[T any](ctx context.Context, s *allium.ChangeStream[T], err error) error {
	if err != nil {
		return err
	}
	return s.Close(ctx)
}

// openCostClients opens a client of a mongos with canned replies, each of which names one document.
func openCostClients(t *testing.T) *costClients {
	one, ok := tenFields{Name: "Ada Lovelace", Age: 36}, bson.E{Key: "ok", Value: 1.0}
	cursor := func(ns string, docs ...any) []byte {
		return rig.Encoded(t, bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: bson.A(docs)}, {Key: "id", Value: int64(0)}, {Key: "ns", Value: ns}}}, ok})
	}
	written := rig.Encoded(t, bson.D{{Key: "n", Value: 1}, {Key: "nModified", Value: 1}, ok})
	found := rig.Encoded(t, bson.D{{Key: "value", Value: one}, ok})
	// What aggregates count has the field n; what they list has names.
	row := bson.D{{Key: "_id", Value: bson.NilObjectID}, {Key: "name", Value: "age_1"}, {Key: "n", Value: 1}, {Key: "key", Value: bson.D{{Key: "age", Value: 1}}}}
	hello := rig.Encoded(t, bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true}, {Key: "msg", Value: "isdbgrid"},
		{Key: "logicalSessionTimeoutMinutes", Value: 30}, {Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48_000_000},
		{Key: "maxWriteBatchSize", Value: 100_000}, {Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 25}, ok})
	replies := map[string][]byte{
		"hello": hello, "isMaster": hello,
		"find": findReply(1), "aggregate": cursor("app.users", row), "listIndexes": cursor("app.users", row),
		"listCollections": cursor("app.$cmd.listCollections", bson.D{{Key: "name", Value: "users"}, {Key: "type", Value: "collection"}}),
		"insert":          written, "update": written, "delete": written, "count": written,
		"findAndModify": found, "distinct": rig.Encoded(t, bson.D{{Key: "values", Value: bson.A{int32(36)}}, ok}),
		"listDatabases":       rig.Encoded(t, bson.D{{Key: "databases", Value: bson.A{bson.D{{Key: "name", Value: "app"}, {Key: "sizeOnDisk", Value: 1}, {Key: "empty", Value: false}}}}, ok}),
		"createSearchIndexes": rig.Encoded(t, bson.D{{Key: "indexesCreated", Value: bson.A{bson.D{{Key: "id", Value: "1"}, {Key: "name", Value: "s"}}}}, ok}),
		"bulkWrite": rig.Encoded(t, bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "firstBatch", Value: bson.A{}}, {Key: "ns", Value: "admin.$cmd.bulkWrite"}}},
			{Key: "nErrors", Value: 0}, {Key: "nInserted", Value: 1}, {Key: "nMatched", Value: 0}, {Key: "nModified", Value: 0}, {Key: "nUpserted", Value: 0}, {Key: "nDeleted", Value: 0}, ok}),
	}
	open := func(replies map[string][]byte) *allium.Client {
		client, err := allium.Open(canned(t, replies))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close(context.Background()) })
		return client
	}
	client := open(replies)
	session, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	return &costClients{
		client: client, db: client.Database("app"), coll: allium.CollectionOf[tenFields](client.Database("app"), "users"), session: session,
		many: allium.CollectionOf[tenFields](open(map[string][]byte{"find": findReply(1000)}).Database("app"), "users"),
		doc:  one, filter: bson.D{{Key: "_id", Value: 1}}, update: bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 37}}}},
		command: bson.D{{Key: "ping", Value: 1}}, cursorCommand: bson.D{{Key: "find", Value: "users"}},
		index:  allium.IndexModel{Keys: bson.D{{Key: "age", Value: 1}}},
		search: allium.SearchIndexModel{Name: "s", Definition: bson.D{{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: true}}}}},
	}
}

// TestAllocations holds what the operations allocate, so that a regression is noticed where it is
// made.
func TestAllocations(t *testing.T) {
	norace.Skip(t, "the race detector allocates")
	ctx := t.Context() // like most, it can be cancelled, for which an operation that is slow allocates more
	c := openCostClients(t)
	for _, row := range costs {
		t.Run(row.name, func(t *testing.T) {
			n := row.most + 1
			for range 5 { // On a machine that is busy, operations are slow.
				if n > row.most {
					n = testing.AllocsPerRun(100, func() {
						if err := row.do(ctx, c); err != nil {
							t.Fatal(err)
						}
					})
				}
			}
			if n > row.most {
				t.Errorf("%v allocations, at most %v are allowed", n, row.most)
			}
			t.Logf("%v allocations", n)
		})
	}
	doc := rig.Encoded(t, bson.D{{Key: "name", Value: "Ada Lovelace"}, {Key: "age", Value: 36}, {Key: "a", Value: int64(1)}})
	if n := testing.AllocsPerRun(100, func() {
		var d tenFields
		if err := bson.Unmarshal(doc, &d); err != nil {
			t.Fatal(err)
		}
	}); n > 2 {
		t.Errorf("decoding a struct allocates %v times", n)
	}
	buffer := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := bson.MarshalAppend(buffer, &c.doc); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("encoding a struct allocates %v times", n)
	}
}

// Every operation of the public API has its row.
func TestAllocationsComplete(t *testing.T) {
	api, err := os.ReadFile("../../archtest/testdata/api.txt")
	if err != nil {
		t.Fatal(err)
	}
	takesContext := regexp.MustCompile(`(?m)^allium func (.*?)\(ctx context\.Context`)
	operations := takesContext.FindAllSubmatch(api, -1)
	if len(operations) < 60 {
		t.Fatalf("only %d operations in the list of the API", len(operations))
	}
	for _, m := range operations {
		name, found := string(m[1]), costless[string(m[1])] != ""
		for _, row := range costs {
			found = found || row.name == name || len(row.name) > len(name) && row.name[:len(name)] == name && (row.name[len(name)] == ' ' || row.name[len(name)] == ',')
		}
		if !found {
			t.Errorf("what %s allocates is not held", name)
		}
	}
}
