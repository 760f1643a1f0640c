package main

import (
	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A call is a method with replies that it can do with.
type call struct {
	name string
	good []bson.D
	run  func(*mongo.Database) []any
}

// on is a call of a collection.
func on(f func(*mongo.Collection) []any) func(*mongo.Database) []any {
	return func(db *mongo.Database) []any { return f(db.Collection("c")) }
}

// rest is what a cursor has, document by document.
func rest(c *mongo.Cursor, err error) []any {
	if err != nil {
		return []any{c == nil, err}
	}
	out := []any{"id", c.ID(), "left", c.RemainingBatchLength()}
	for range 5 {
		if !c.Next(ctx) {
			break
		}
		out = append(out, c.Current.String(), c.ID(), c.RemainingBatchLength())
	}
	if err := c.Err(); err != nil {
		_ = c.Close(ctx) // nil here
		return append(out, err)
	}
	return append(out, c.ID(), c.Close(ctx))
}

// all is what All of a cursor returns.
func all(c *mongo.Cursor, err error) []any {
	if err != nil {
		return []any{c == nil, err}
	}
	var list []bson.M
	err = c.All(ctx, &list)
	return []any{say.Dump(list), err, c.ID(), c.Err()}
}

// single is what a SingleResult has.
func single(r *mongo.SingleResult) []any {
	raw, err := r.Raw()
	var m bson.M
	return []any{raw.String(), err, r.Err(), r.Decode(&m), say.Dump(m)}
}

func watched(s *mongo.ChangeStream, err error) []any {
	if err != nil {
		return []any{s == nil, err}
	}
	out := []any{"id", s.ID(), "token", s.ResumeToken().String()}
	for range 3 {
		if !s.TryNext(ctx) {
			break
		}
		out = append(out, s.Current.String(), s.ID(), s.ResumeToken().String())
	}
	out = append(out, s.Err())
	_ = s.Close(ctx) // nil here
	return out
}

var (
	written  = []bson.D{d("ok", 1, "n", 1)}
	changed  = []bson.D{d("ok", 1, "n", 1, "nModified", 1)}
	upserted = []bson.D{d("ok", 1, "n", 1, "nModified", 0, "upserted", bson.A{d("index", 0, "_id", 7)})}
	found    = []bson.D{d("ok", 1, "value", d("_id", 1), "lastErrorObject", d("n", 1))}
	done     = []bson.D{d("ok", 1)}
	onlyOne  = []bson.D{d("ok", 1, "cursor", cursor(0, "firstBatch", d("_id", 1), d("_id", 2)))}
	batches  = []bson.D{
		d("ok", 1, "cursor", cursor(9, "firstBatch", d("_id", 1))),
		d("ok", 1, "cursor", cursor(9, "nextBatch", d("_id", 2))),
		d("ok", 1, "cursor", cursor(0, "nextBatch", d("_id", 3))),
	}
	counted = []bson.D{d("ok", 1, "cursor", cursor(0, "firstBatch", d("n", 3)))}
	indexes = []bson.D{d("ok", 1, "cursor", cursor(0, "firstBatch", d("v", 2, "key", d("x", 1), "name", "x_1", "ns",
		"db.c", "unique", true)))}
	listed = []bson.D{d("ok", 1, "cursor", cursor(0, "firstBatch", d("name", "c", "type", "collection", "options",
		d("capped", true), "info", d("readOnly", false), "idIndex", d("v", 2, "key", d("_id", 1), "name", "_id_"))))}
	events = []bson.D{
		d("ok", 1, "cursor", cursor(9, "firstBatch", d("_id", d("_data", "a"), "operationType", "insert"))),
		d("ok", 1, "cursor", cursor(9, "nextBatch", d("_id", d("_data", "b"), "operationType", "insert"))),
		d("ok", 1, "cursor", append(cursor(9, "nextBatch"), bson.E{Key: "postBatchResumeToken", Value: d("_data",
			"p")})),
		d("ok", 1), // to killCursors
	}
	databases = []bson.D{d("ok", 1, "databases", bson.A{d("name", "a", "sizeOnDisk", int64(5), "empty", false),
		d("name", "b",
			"sizeOnDisk", 6.0, "empty", true)}, "totalSize", int64(11))}
	id   = ObjectID{1, 2, 3}
	file = d("ok", 1, "cursor", cursor(0, "firstBatch", d("_id", id, "length", int64(3), "chunkSize", 255,
		"filename", "f",
		"metadata", d("a", 1))))
	chunk  = d("ok", 1, "cursor", cursor(0, "firstBatch", d("_id", 5, "files_id", id, "n", 0, "data", []byte("abc"))))
	update = d("$set", d("a", 1))
)

func inTransaction(db *mongo.Database, f func(InSession) error) []any {
	s, err := db.Client().StartSession()
	if err != nil {
		return []any{err}
	}
	defer s.EndSession(ctx)
	if err := s.StartTransaction(); err != nil {
		return []any{err}
	}
	inside := mongo.WithSession(ctx, s, f)
	return []any{inside, s.CommitTransaction(ctx), s.AbortTransaction(ctx)}
}

// thorough are the calls whose replies are spoilt field by field: others read theirs as one of them
// does.
var thorough = []string{"InsertOne", "UpdateOne upsert", "BulkWrite", "Find", "FindOne", "FindOneAndUpdate",
	"CountDocuments",
	"EstimatedDocumentCount", "Distinct", "Watch", "SearchIndexes.CreateMany", "RunCommand", "ListCollectionNames",
	"ListDatabases"}

// oddly are the calls whose replies are others with odd values, too.
var oddly = []string{"InsertOne", "FindOne", "CreateCollection", "FindOneAndUpdate"}

var calls = []call{
	{"InsertOne", written, on(func(c *mongo.Collection) []any { return got(c.InsertOne(ctx, d("_id", 1))) })},
	{"InsertMany", written, on(func(c *mongo.Collection) []any {
		return got(c.InsertMany(ctx, []any{d("_id", 1), d("_id", 2)}))
	})},
	{"InsertMany unordered", written, on(func(c *mongo.Collection) []any {
		return got(c.InsertMany(ctx, []any{d("_id", 1), d("_id", 2)}, options.InsertMany().SetOrdered(false)))
	})},
	{"UpdateOne", changed, on(func(c *mongo.Collection) []any { return got(c.UpdateOne(ctx, d(), update)) })},
	{"UpdateOne upsert", upserted, on(func(c *mongo.Collection) []any { return got(c.UpdateOne(ctx, d(), update)) })},
	{"UpdateMany", changed, on(func(c *mongo.Collection) []any { return got(c.UpdateMany(ctx, d(), update)) })},
	{"UpdateByID", changed, on(func(c *mongo.Collection) []any { return got(c.UpdateByID(ctx, 1, update)) })},
	{"ReplaceOne", upserted, on(func(c *mongo.Collection) []any { return got(c.ReplaceOne(ctx, d(), d("a", 1))) })},
	{"DeleteOne", written, on(func(c *mongo.Collection) []any { return got(c.DeleteOne(ctx, d())) })},
	{"DeleteMany", written, on(func(c *mongo.Collection) []any { return got(c.DeleteMany(ctx, d())) })},
	{"BulkWrite", []bson.D{written[0], changed[0], written[0]}, on(func(c *mongo.Collection) []any {
		return got(c.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(d("_id", 1)),
			mongo.NewUpdateOneModel().SetFilter(d()).SetUpdate(update).SetUpsert(true),
			mongo.NewDeleteOneModel().SetFilter(d()),
		}))
	})},
	{"Find", batches, on(func(c *mongo.Collection) []any { return rest(c.Find(ctx, d())) })},
	{"Find all", onlyOne, on(func(c *mongo.Collection) []any { return all(c.Find(ctx, d())) })},
	{"FindOne", onlyOne, on(func(c *mongo.Collection) []any { return single(c.FindOne(ctx, d())) })},
	{"FindOneAndUpdate", found, on(func(c *mongo.Collection) []any {
		return single(c.FindOneAndUpdate(ctx, d(),
			update))
	})},
	{"FindOneAndReplace", found, on(func(c *mongo.Collection) []any {
		return single(c.FindOneAndReplace(ctx, d(), d("a", 1)))
	})},
	{"FindOneAndDelete", found, on(func(c *mongo.Collection) []any { return single(c.FindOneAndDelete(ctx, d())) })},
	{"Aggregate", onlyOne, on(func(c *mongo.Collection) []any { return rest(c.Aggregate(ctx, []bson.D{})) })},
	{"CountDocuments", counted, on(func(c *mongo.Collection) []any { return got(c.CountDocuments(ctx, d())) })},
	{"EstimatedDocumentCount", []bson.D{d("ok", 1, "n", 3)}, on(func(c *mongo.Collection) []any {
		return got(c.EstimatedDocumentCount(ctx))
	})},
	{"Distinct", []bson.D{d("ok", 1, "values", bson.A{1, "a"})},
		on(func(c *mongo.Collection) []any { return got(distinct(c)) })},
	{"Drop", done, on(func(c *mongo.Collection) []any { return gone(c.Drop(ctx)) })},
	{"Watch", events, on(func(c *mongo.Collection) []any { return watched(c.Watch(ctx, []bson.D{})) })},
	{"Database.Watch", []bson.D{events[0], events[2], events[3]},
		func(db *mongo.Database) []any { return watched(db.Watch(ctx, []bson.D{})) }},
	{"Client.Watch", []bson.D{events[0], events[2], events[3]},
		func(db *mongo.Database) []any { return watched(db.Client().Watch(ctx, []bson.D{})) }},
	{"Indexes.CreateOne", done, on(func(c *mongo.Collection) []any {
		return got(c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: d("x", 1)}))
	})},
	{"Indexes.CreateMany", done, on(func(c *mongo.Collection) []any {
		return got(c.Indexes().CreateMany(ctx, []mongo.IndexModel{{Keys: d("x", 1)}, {Keys: d("y", 1)}}))
	})},
	{"Indexes.List", indexes, on(func(c *mongo.Collection) []any { return rest(c.Indexes().List(ctx)) })},
	{"Indexes.ListSpecifications", indexes, on(func(c *mongo.Collection) []any {
		return got(c.Indexes().ListSpecifications(ctx))
	})},
	{"SearchIndexes.CreateOne", []bson.D{d("ok", 1, "indexesCreated", bson.A{d("id", "i", "name", "n")})},
		on(func(c *mongo.Collection) []any {
			return got(c.SearchIndexes().CreateOne(ctx, mongo.SearchIndexModel{Definition: d("x", 1)}))
		})},
	{"SearchIndexes.CreateMany", []bson.D{d("ok", 1, "indexesCreated", bson.A{d("id", "i", "name", "n"), d("id", "j",
		"name", "m")})}, on(func(c *mongo.Collection) []any {
		return got(c.SearchIndexes().CreateMany(ctx, []mongo.SearchIndexModel{{Definition: d("x", 1)},
			{Definition: d("y", 1)}}))
	})},
	{"SearchIndexes.List", onlyOne, on(func(c *mongo.Collection) []any {
		return rest(c.SearchIndexes().List(ctx, options.SearchIndexes()))
	})},
	{"SearchIndexes.UpdateOne", done, on(func(c *mongo.Collection) []any {
		return gone(c.SearchIndexes().UpdateOne(ctx, "n", d("x", 1)))
	})},
	{"SearchIndexes.DropOne", done, on(func(c *mongo.Collection) []any {
		return gone(c.SearchIndexes().DropOne(ctx,
			"n"))
	})},
	{"Database.Aggregate", onlyOne, func(db *mongo.Database) []any { return rest(db.Aggregate(ctx, []bson.D{})) }},
	{"RunCommand", []bson.D{d("ok", 1, "x", 1)}, func(db *mongo.Database) []any {
		return single(db.RunCommand(ctx,
			d("ping", 1)))
	}},
	{"RunCommandCursor", onlyOne, func(db *mongo.Database) []any {
		return rest(db.RunCommandCursor(ctx, d("find",
			"c")))
	}},
	{"Database.Drop", done, func(db *mongo.Database) []any { return gone(db.Drop(ctx)) }},
	{"CreateCollection", done, func(db *mongo.Database) []any { return gone(db.CreateCollection(ctx, "c")) }},
	{"CreateView", done, func(db *mongo.Database) []any { return gone(db.CreateView(ctx, "v", "c", []bson.D{})) }},
	{"ListCollections", listed, func(db *mongo.Database) []any { return rest(db.ListCollections(ctx, d())) }},
	{"ListCollectionNames", listed, func(db *mongo.Database) []any { return got(db.ListCollectionNames(ctx, d())) }},
	{"ListCollectionSpecifications", listed, func(db *mongo.Database) []any {
		return got(db.ListCollectionSpecifications(ctx, d()))
	}},
	{"ListDatabases", databases, func(db *mongo.Database) []any { return got(db.Client().ListDatabases(ctx, d())) }},
	{"ListDatabaseNames", databases, func(db *mongo.Database) []any {
		return got(db.Client().ListDatabaseNames(ctx,
			d()))
	}},
	{"Ping", done, func(db *mongo.Database) []any { return gone(db.Client().Ping(ctx, nil)) }},
	{"transaction", []bson.D{written[0], done[0]}, func(db *mongo.Database) []any {
		return inTransaction(db, func(ctx InSession) error {
			_, err := db.Collection("c").InsertOne(ctx, d("_id", 1))
			return err
		})
	}},
	{"upload", []bson.D{onlyOne[0], written[0], written[0]},
		func(db *mongo.Database) []any { return gone(upload(db)) }},
	{"download", []bson.D{file, chunk}, func(db *mongo.Database) []any { return got(download(db, id)) }},
	{"rename", changed, func(db *mongo.Database) []any { return gone(rename(db, id)) }},
	{"remove", []bson.D{written[0], written[0]}, func(db *mongo.Database) []any { return gone(remove(db, id)) }},
	{"files", []bson.D{file}, func(db *mongo.Database) []any { return rest(files(db)) }},
}
