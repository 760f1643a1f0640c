package mistakes

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/mongotest"
)

// in makes a mistake with the collection of users.
func in(make func(ctx context.Context, users *allium.UntypedCollection) error) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error { return make(ctx, e.users()) }
}

// user is what a program may have.
type user struct {
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

var commands = Section{"Filters, updates and commands", true, []Mistake{
	{
		Name: "nil filter", Code: `users.FindOne(ctx, nil)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.FindOne(ctx, nil))
		}),
	},
	{
		Name: "filter that is no document", Code: `users.FindOne(ctx, "Ada")`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.FindOne(ctx, "Ada"))
		}),
	},
	{
		Name: "misspelt operator in a filter", Code: `users.FindOne(ctx, bson.M{"age": bson.M{"$gr": 18}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.FindOne(ctx, bson.M{"age": bson.M{"$gr": 18}}))
		}),
	},
	{
		Name: "no document matches", Code: `users.FindOne(ctx, bson.M{"name": "Edsger"})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.FindOne(ctx, bson.M{"name": "Edsger"}))
		}),
		Do: "`errors.Is(err, mongoerr.ErrNoDocuments)` tells it from a failure.",
	},
	{
		Name: "update without an operator", Code: `users.UpdateOne(ctx, filter, bson.M{"age": 37})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"age": 37}))
		}),
	},
	{
		Name: "empty update", Code: `users.UpdateOne(ctx, filter, bson.M{})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{}))
		}),
	},
	{
		Name: "replacement with an operator", Code: `users.ReplaceOne(ctx, filter, bson.D{{"$set", ...}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.ReplaceOne(ctx, bson.M{"_id": 1},
				bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 37}}}}))
		}),
	},
	{
		Name: "misspelt operator in an update",
		Code: `users.UpdateOne(ctx, filter, bson.M{"$sett": bson.M{"age": 37}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$sett": bson.M{"age": 37}}))
		}),
	},
	{
		Name: "change of the _id", Code: `users.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"_id": 9}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"_id": 9}}))
		}),
	},
	{
		Name: "number added to a text", Code: `users.UpdateOne(ctx, filter, bson.M{"$inc": bson.M{"name": 1}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"name": 1}}))
		}),
	},
	{
		Name: "map with two keys as a command", Code: `db.RunCommand(ctx, bson.M{"find": "users", "limit": 1})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.Database().RunCommand(ctx, bson.M{"find": "users", "limit": 1}))
		}),
	},
	{
		Name: "map with two keys as a sort",
		Code: `users.Find(ctx, filter, allium.FindOptions{Sort: bson.M{"age": 1, "name": 1}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.Find(ctx, bson.M{}, allium.FindOptions{Sort: bson.M{"age": 1, "name": 1}}))
		}),
	},
	{
		Name: "map with two keys as an index",
		Code: `users.CreateIndex(ctx, allium.IndexModel{Keys: bson.M{"age": 1, "name": 1}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.CreateIndex(ctx, allium.IndexModel{Keys: bson.M{"age": 1, "name": 1}}))
		}),
	},
	{
		Name: "command that does not exist", Code: `db.RunCommand(ctx, bson.D{{"serverstatus", 1}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.Database().RunCommand(ctx, bson.D{{Key: "serverstatus", Value: 1}}))
		}),
	},
	{
		Name: "misspelt stage", Code: `users.Aggregate(ctx, bson.A{bson.M{"$mtach": bson.M{"age": 36}}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.Aggregate(ctx, bson.A{bson.M{"$mtach": bson.M{"age": 36}}}))
		}),
	},
	{
		Name: "pipeline that is a document", Code: `users.Aggregate(ctx, bson.D{{"$match", bson.D{}}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.Aggregate(ctx, bson.M{"$match": bson.M{}}))
		}),
	},
	{
		Name: "text search without an index", Code: `users.FindOne(ctx, bson.M{"$text": bson.M{"$search": "ada"}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.FindOne(ctx, bson.M{"$text": bson.M{"$search": "ada"}}))
		}),
	},
	{
		Name: "hint at an index that is not there",
		Code: `users.FindOne(ctx, filter, allium.FindOneOptions{Hint: "age_1"})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.FindOne(ctx, bson.M{}, allium.FindOneOptions{Hint: "age_1"}))
		}),
	},
	{
		Name: "a sort order for an update of many",
		Code: `users.UpdateMany(ctx, filter, update, allium.UpdateOptions{Sort: bson.D{{Key: "age", Value: 1}}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.UpdateMany(ctx, bson.M{}, bson.M{"$set": bson.M{"x": 1}},
				allium.UpdateOptions{Sort: bson.D{{Key: "age", Value: 1}}}))
		}),
	},
	{
		Name: "nil context", Code: `users.FindOne(nil, filter)`,
		Make: in(func(_ context.Context, users *allium.UntypedCollection) error {
			var none context.Context
			return second(users.FindOne(none, bson.M{}))
		}),
	},
}}

var documents = Section{"Documents and types", true, []Mistake{
	{
		Name: "text in a field of numbers",
		Code: `type User struct { Age int }; users.FindOne(ctx, filter) // {age: "36"}`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			if _, err := users.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"age": "36"}}); err != nil {
				return err
			}
			return second(allium.CollectionOf[user](users.Database(), "users").FindOne(ctx, bson.M{"_id": 1}))
		}),
	},
	{
		Name: "decoding into a value", Code: `bson.Unmarshal(data, user) // not a pointer`,
		Make: func(context.Context, *Env) error {
			raw, err := bson.Marshal(user{Name: "Ada"})
			if err != nil {
				return err
			}
			var u user
			return bson.Unmarshal(raw, u)
		},
	},
	{
		Name: "nil pointer to decode into", Code: `var u *User; bson.Unmarshal(data, u)`,
		Make: func(context.Context, *Env) error {
			raw, err := bson.Marshal(user{Name: "Ada"})
			if err != nil {
				return err
			}
			var u *user
			return bson.Unmarshal(raw, u)
		},
	},
	{
		Name: "number that does not fit",
		Code: `type User struct { Age int8 }; users.FindOne(ctx, filter) // {age: 300}`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			type small struct {
				Age int8 `bson:"age"`
			}
			if _, err := users.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"age": 300}}); err != nil {
				return err
			}
			return second(allium.CollectionOf[small](users.Database(), "users").FindOne(ctx, bson.M{"_id": 1}))
		}),
	},
	{
		Name: "field that cannot be encoded", Code: `type User struct { Done chan bool }; users.InsertOne(ctx, user)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			type waiting struct {
				Done chan bool `bson:"done"`
			}
			return second(allium.CollectionOf[waiting](users.Database(), "users").InsertOne(ctx,
				waiting{Done: make(chan bool)}))
		}),
	},
	{
		Name: "document that is no document", Code: `allium.CollectionOf[string](db, "users").InsertOne(ctx, "Ada")`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(allium.CollectionOf[string](users.Database(), "users").InsertOne(ctx, "Ada"))
		}),
	},
	{
		Name: "document that is too large", Code: `users.InsertOne(ctx, bson.D{{"photo", make([]byte, 17<<20)}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.InsertOne(ctx, bson.D{{Key: "photo", Value: make([]byte, 17<<20)}}))
		}),
		Do: "Store files with allium/gridfs.",
	},
	{
		Name: "array as an _id", Code: `users.InsertOne(ctx, bson.D{{"_id", bson.A{1, 2}}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.InsertOne(ctx, bson.D{{Key: "_id", Value: bson.A{1, 2}}}))
		}),
	},
	{
		Name: "text that is no ObjectID", Code: `bson.ParseObjectID("42")`,
		Make: func(context.Context, *Env) error { return second(bson.ParseObjectID("42")) },
	},
	{
		Name: "field name with a dollar", Code: `users.InsertOne(ctx, bson.D{{"_id", bson.D{{"$oid", 1}}}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.InsertOne(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$oid", Value: 1}}}}))
		}),
	},
	{
		Name: "nothing to insert", Code: `users.InsertMany(ctx, nil)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.InsertMany(ctx, nil))
		}),
	},
}}

var cursors = Section{"Cursors, sessions and transactions", true, []Mistake{
	{
		Name: "cursor that was closed", Code: `cur.Close(ctx); cur.All(ctx)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			cur, err := users.Find(ctx, bson.M{}, allium.FindOptions{BatchSize: new(int32(1))})
			if err != nil {
				return err
			}
			cur.Close(ctx)
			return second(cur.All(ctx))
		}),
		Do: "Read first: All, Seq and Batches close the cursor by themselves.",
	},
	{
		Name: "cursor that the server closed", Code: `for cur.Next(ctx) { time.Sleep(time.Hour) }`,
		Make: func(ctx context.Context, e *Env) error {
			users := e.users()
			cur, err := users.Find(ctx, bson.M{}, allium.FindOptions{BatchSize: new(int32(1))})
			if err != nil {
				return err
			}
			defer cur.Close(ctx)
			e.Show(strconv.FormatInt(cur.ID(), 10), "7")
			if _, err := users.Database().RunCommand(ctx,
				bson.D{{Key: "killCursors", Value: "users"}, {Key: "cursors", Value: bson.A{cur.ID()}}}); err != nil {
				return err
			}
			for cur.Next(ctx) {
			}
			return cur.Err()
		},
		Do: "A server closes cursors that nobody has read for ten minutes. Read faster, or sort by a key and start again after the last document that was read.",
	},
	{
		Name: "session that has ended", Code: `s.End(ctx); users.FindOne(allium.WithSession(ctx, s), filter)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			s, err := users.Database().Client().StartSession()
			if err != nil {
				return err
			}
			s.End(ctx)
			return second(users.FindOne(allium.WithSession(ctx, s), bson.M{}))
		}),
	},
	{
		Name: "session of another client", Code: `users.FindOne(allium.WithSession(ctx, other), filter)`,
		Make: func(ctx context.Context, e *Env) error {
			s, err := e.client(e.Set().URI()).StartSession()
			if err != nil {
				return err
			}
			defer s.End(ctx)
			return second(e.users().FindOne(allium.WithSession(ctx, s), bson.M{}))
		},
	},
	{
		Name: "session used by two goroutines", Code: `go users.FindOne(allium.WithSession(ctx, s), filter); users.FindOne(allium.WithSession(ctx, s), filter)`,
		Make: func(ctx context.Context, e *Env) error {
			started, release := make(chan struct{}), make(chan struct{})
			users := e.client(e.Set().URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
				Started: func(_ context.Context, ev *event.CommandStarted) {
					if ev.CommandName == "aggregate" { // The other operation has the session until it is released.
						close(started)
						<-release
					}
				},
			}}).Database("app").Collection("users")
			s, err := users.Database().Client().StartSession()
			if err != nil {
				return err
			}
			defer s.End(ctx)
			ctx = allium.WithSession(ctx, s)
			done := make(chan error)
			go func() {
				_, err := users.CountDocuments(ctx, bson.M{})
				done <- err
			}()
			<-started
			_, err = users.FindOne(ctx, bson.M{})
			close(release)
			if other := <-done; other != nil {
				return fmt.Errorf("the operation that had the session: %w", other)
			}
			return err
		},
	},
	{
		Name: "transaction on a standalone", Code: `client.Transact(ctx, fn) // on a standalone server`,
		Make: func(ctx context.Context, e *Env) error {
			client := e.client("mongodb://" + host(e.Standalone()))
			return client.Transact(ctx, func(ctx context.Context) error {
				return second(client.Database("app").Collection("users").InsertOne(ctx,
					bson.D{{Key: "name", Value: "Ada"}}))
			})
		},
		Do: "Start the server as a replica set of one member.",
	},
	{
		Name: "change stream on a standalone", Code: `users.Watch(ctx, nil) // on a standalone server`,
		Make: func(ctx context.Context, e *Env) error {
			return second(e.client("mongodb://"+host(e.Standalone())).Database("app").Collection("users").Watch(ctx,
				nil))
		},
		Do: "Start the server as a replica set of one member.",
	},
	{
		Name: "transaction in a transaction", Code: `client.Transact(ctx, func(ctx context.Context) error { return client.Transact(ctx, fn) })`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			client := users.Database().Client()
			return client.Transact(ctx, func(ctx context.Context) error {
				return client.Transact(ctx, func(context.Context) error { return nil })
			})
		}),
	},
	{
		Name: "error that the function of a transaction kept for itself",
		Code: `client.Transact(ctx, func(ctx context.Context) error { users.InsertOne(ctx, twice); return nil })`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return users.Database().Client().Transact(ctx, func(ctx context.Context) error {
				users.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
				return nil
			})
		}),
	},
	{
		Name: "commit without a transaction", Code: `s.CommitTransaction(ctx)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			s, err := users.Database().Client().StartSession()
			if err != nil {
				return err
			}
			defer s.End(ctx)
			return s.CommitTransaction(ctx)
		}),
	},
	{
		Name: "two transactions that change one document",
		Code: `users.UpdateOne(second, filter, update) // while another transaction has changed it`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			inc := bson.M{"$inc": bson.M{"age": 1}}
			client := users.Database().Client()
			start := func() (context.Context, func()) {
				s, _ := client.StartSession()
				s.StartTransaction()
				return allium.WithSession(ctx, s), func() { s.End(ctx) }
			}
			first, end := start()
			defer end()
			other, end2 := start()
			defer end2()
			if _, err := users.UpdateOne(first, bson.M{"_id": 1}, inc); err != nil {
				return err
			}
			return second(users.UpdateOne(other, bson.M{"_id": 1}, inc))
		}),
		Do: "Use Transact, which runs the function again.",
	},
}}

var writes = Section{"Writes that the server rejects", true, []Mistake{
	{
		Name: "key that is there already", Code: `users.InsertOne(ctx, bson.D{{"_id", 1}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}))
		}),
		Do: "`errors.Is(err, mongoerr.ErrDuplicateKey)` tells it from other errors.",
	},
	{
		Name: "keys that are there already",
		Code: `users.InsertMany(ctx, sevenDocuments, allium.InsertManyOptions{Unordered: true})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			var docs []bson.D
			for i := range 8 {
				docs = append(docs, bson.D{{Key: "_id", Value: i/7 + 1}})
			}
			return second(users.InsertMany(ctx, docs, allium.InsertManyOptions{Unordered: true}))
		}),
	},
	{
		Name: "document that a validator rejects", Code: `users.InsertOne(ctx, bson.D{{"_id", 3}, {"age", "old"}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			db := users.Database()
			if err := db.Collection("adults").Drop(ctx); err != nil {
				return err
			}
			if err := db.CreateCollection(ctx, "adults",
				allium.CreateCollectionOptions{Validator: bson.M{"$jsonSchema": bson.M{
					"properties": bson.M{"age": bson.M{"bsonType": "int"}}}}}); err != nil {
				return err
			}
			return second(db.Collection("adults").InsertOne(ctx,
				bson.D{{Key: "_id", Value: 3}, {Key: "age", Value: "old"}}))
		}),
	},
	{
		Name: "model without a filter", Code: `users.BulkWrite(ctx, []allium.WriteModel{users.DeleteOneModel(nil)})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.BulkWrite(ctx, []allium.WriteModel{users.DeleteOneModel(nil)}))
		}),
	},
	{
		Name: "nothing to write", Code: `users.BulkWrite(ctx, nil)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.BulkWrite(ctx, nil))
		}),
	},
	{
		Name: "position without an array in the filter",
		Code: `users.UpdateOne(ctx, filter, bson.M{"$set": bson.M{"scores.$": 1}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"scores.$": 1}}))
		}),
	},
}}

var schema = Section{"Databases, collections and indexes", true, []Mistake{
	{
		Name: "empty database name", Code: `client.Database("").Collection("users").FindOne(ctx, filter)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.Database().Client().Database("").Collection("users").FindOne(ctx, bson.M{}))
		}),
	},
	{
		Name: "database name with a dot", Code: `client.Database("my.app").Collection("users").InsertOne(ctx, user)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.Database().Client().Database("my.app").Collection("users").InsertOne(ctx,
				bson.D{{Key: "_id", Value: 1}}))
		}),
	},
	{
		Name: "collection name with a dollar", Code: `db.Collection("$users").InsertOne(ctx, user)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.Database().Collection("$users").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}))
		}),
	},
	{
		Name: "collection that exists with other options",
		Code: `db.CreateCollection(ctx, "users", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return users.Database().CreateCollection(ctx, "users",
				allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20})
		}),
	},
	{
		Name: "index that exists with other options",
		Code: `users.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{"age", 1}}, Unique: true})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			keys := bson.D{{Key: "age", Value: 1}}
			if _, err := users.CreateIndex(ctx, allium.IndexModel{Keys: keys}); err != nil {
				return err
			}
			return second(users.CreateIndex(ctx, allium.IndexModel{Keys: keys, Unique: true}))
		}),
	},
	{
		Name: "unique index over duplicates",
		Code: `users.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{"age", 1}}, Unique: true})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			if _, err := users.InsertOne(ctx, bson.D{{Key: "_id", Value: 3}, {Key: "age", Value: 36}}); err != nil {
				return err
			}
			return second(users.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "age", Value: 1}}, Unique: true}))
		}),
	},
	{
		Name: "drop of an index that is not there", Code: `users.DropIndex(ctx, "age_1")`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return users.DropIndex(ctx, "age_1")
		}),
	},
	{
		Name: "index without keys", Code: `users.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{}})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{}}))
		}),
	},
}}

var lateness = Section{"Time", false, []Mistake{
	{
		Name: "answer that comes too late", Code: `users.FindOne(ctx, filter, allium.FindOneOptions{Timeout: new(100 * time.Millisecond)})`,
		Make: func(ctx context.Context, e *Env) error {
			users := e.users()
			e.Set().FailCommand(mongotest.Fail{Commands: []string{"find"}, Block: 400 * time.Millisecond, Times: 1})
			return second(users.FindOne(ctx, bson.M{}, allium.FindOneOptions{Timeout: new(100 * time.Millisecond)}))
		},
	},
	{
		Name: "context that ends too early", Code: `ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond); users.FindOne(ctx, filter)`,
		Make: func(ctx context.Context, e *Env) error {
			users := e.users()
			e.Set().FailCommand(mongotest.Fail{Commands: []string{"find"}, Block: 400 * time.Millisecond, Times: 1})
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return second(users.FindOne(ctx, bson.M{}))
		},
	},
	{
		Name: "context that was cancelled", Code: `cancel(); users.FindOne(ctx, filter)`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return second(users.FindOne(ctx, bson.M{}))
		}),
	},
	{
		Name: "time on the server is up",
		Code: `users.FindOne(ctx, filter, allium.FindOneOptions{MaxTime: time.Millisecond})`,
		Make: func(ctx context.Context, e *Env) error {
			users := e.users()
			e.Set().FailCommand(mongotest.Fail{Commands: []string{"find"}, Code: 50, Times: 1})
			return second(users.FindOne(ctx, bson.M{}, allium.FindOneOptions{MaxTime: time.Millisecond}))
		},
	},
	{
		Name: "negative timeout", Code: `users.FindOne(ctx, filter, allium.FindOneOptions{Timeout: new(-time.Second)})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.FindOne(ctx, bson.M{}, allium.FindOneOptions{Timeout: new(-time.Second)}))
		}),
	},
	{
		Name: "no time for any round trip",
		Code: `users.FindOne(ctx, filter, allium.FindOneOptions{Timeout: new(time.Nanosecond)})`,
		Make: in(func(ctx context.Context, users *allium.UntypedCollection) error {
			return second(users.FindOne(ctx, bson.M{}, allium.FindOneOptions{Timeout: new(time.Nanosecond)}))
		}),
	},
}}
