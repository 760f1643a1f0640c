package allium_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/mongoerr"
	"allium/mongotest"
)

// User is the document of the examples.
type User struct {
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

// connect starts a replica set inside this process and connects to it. A program calls allium.Open
// with the connection string of its own deployment.
func connect() (client *allium.Client, done func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err = allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		client.Close(context.Background())
		d.Stop()
	}
}

// people returns a collection with three users in it.
func people(client *allium.Client) *allium.Collection[User] {
	users := allium.CollectionOf[User](client.Database("app"), "users")
	if _, err := users.InsertMany(context.Background(), []User{{"Ada", 36}, {"Grace", 85}, {"Edsger", 72}}); err != nil {
		log.Fatal(err)
	}
	return users
}

func Example() {
	client, done := connect()
	defer done()
	ctx := context.Background()

	users := allium.CollectionOf[User](client.Database("app"), "users")
	if _, err := users.InsertOne(ctx, User{Name: "Ada", Age: 36}); err != nil {
		log.Fatal(err)
	}
	ada, err := users.FindOne(ctx, bson.M{"name": "Ada"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ada.Name, ada.Age)
	// Output: Ada 36
}

func ExampleOpen() {
	client, err := allium.Open("mongodb://localhost:27017/?replicaSet=rs0", allium.ClientOptions{
		AppName: "shop",
		Timeout: new(5 * time.Second), // for each operation, from start to finish
	})
	if err != nil {
		log.Fatal(err) // the connection string or an option is wrong; nothing has been sent yet
	}
	defer client.Close(context.Background())
	fmt.Println(client.Database("app").Name())
	// Output: app
}

func ExampleClient_AppendDriverInfo() {
	client, done := connect()
	defer done()
	// A library that is handed a client says that it is there.
	if err := client.AppendDriverInfo(allium.DriverInfo{Name: "mapper", Version: "2.1"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.AppendDriverInfo(allium.DriverInfo{Name: "a|b"}))
	// Output: append driver info: driver info "a|b" contains the delimiter "|"
}

func ExampleClient_Ping() {
	client, err := allium.Open("mongodb://localhost:1/?serverSelectionTimeoutMS=50")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	err = client.Ping(context.Background())
	var none *mongoerr.SelectionError
	fmt.Println("no server:", errors.As(err, &none))
	// Output: no server: true
}

func ExampleClient_Transact() {
	client, done := connect()
	defer done()
	users := people(client)

	err := client.Transact(context.Background(), func(ctx context.Context) error {
		if _, err := users.UpdateOne(ctx, bson.M{"name": "Ada"}, bson.M{"$inc": bson.M{"age": 1}}); err != nil {
			return err
		}
		_, err := users.UpdateOne(ctx, bson.M{"name": "Grace"}, bson.M{"$inc": bson.M{"age": -1}})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	ada, _ := users.FindOne(context.Background(), bson.M{"name": "Ada"})
	grace, _ := users.FindOne(context.Background(), bson.M{"name": "Grace"})
	fmt.Println(ada.Age, grace.Age)
	// Output: 37 84
}

func ExampleClient_StartSession() {
	client, done := connect()
	defer done()
	users := people(client)

	s, err := client.StartSession()
	if err != nil {
		log.Fatal(err)
	}
	ctx := allium.WithSession(context.Background(), s)
	defer s.End(ctx)
	if _, err := users.DeleteMany(ctx, bson.D{}); err != nil {
		log.Fatal(err)
	}
	// Sees the deletion, whichever member it runs on.
	n, err := users.With(allium.CollectionOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}}).CountDocuments(ctx, bson.D{})
	fmt.Println(n, err)
	// Output: 0 <nil>
}

func ExampleDatabase_RunCommand() {
	client, done := connect()
	defer done()
	reply, err := client.Database("admin").RunCommand(context.Background(), bson.D{{Key: "ping", Value: 1}})
	if err != nil {
		log.Fatal(err)
	}
	ok, _ := reply.Lookup("ok").AsInt64()
	fmt.Println(ok)
	// Output: 1
}

func ExampleCollection_InsertOne() {
	client, done := connect()
	defer done()
	users := allium.CollectionOf[bson.D](client.Database("app"), "users")
	ctx := context.Background()

	res, err := users.InsertOne(ctx, bson.D{{Key: "_id", Value: "ada"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.InsertedID)
	_, err = users.InsertOne(ctx, bson.D{{Key: "_id", Value: "ada"}})
	fmt.Println("duplicate:", errors.Is(err, mongoerr.ErrDuplicateKey))
	// Output:
	// ada
	// duplicate: true
}

func ExampleCollection_InsertMany() {
	client, done := connect()
	defer done()
	users := allium.CollectionOf[bson.M](client.Database("app"), "users")

	docs := []bson.M{{"_id": 1}, {"_id": 2}, {"_id": 1}, {"_id": 3}}
	res, err := users.InsertMany(context.Background(), docs, allium.InsertManyOptions{Unordered: true})
	var bulk *mongoerr.BulkWriteError
	if errors.As(err, &bulk) {
		fmt.Println("refused:", bulk.WriteErrors[0].Index)
	}
	fmt.Println("inserted:", len(res.InsertedIDs))
	// Output:
	// refused: 2
	// inserted: 3
}

func ExampleCollection_Find() {
	client, done := connect()
	defer done()
	users := people(client)
	ctx := context.Background()

	cur, err := users.Find(ctx, bson.M{"age": bson.M{"$gte": 40}}, allium.FindOptions{Sort: bson.D{{Key: "age", Value: -1}}})
	if err != nil {
		log.Fatal(err)
	}
	for user, err := range cur.Seq(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(user.Name)
	}
	// Output:
	// Grace
	// Edsger
}

func ExampleCursor_Next() {
	client, done := connect()
	defer done()
	users := people(client)
	ctx := context.Background()

	cur, err := users.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2)), Sort: bson.D{{Key: "name", Value: 1}}})
	if err != nil {
		log.Fatal(err)
	}
	defer cur.Close(ctx)
	for cur.Next(ctx) {
		fmt.Println(cur.Current().Name, cur.ID() != 0) // as long as the server has more, its cursor has an id
	}
	if err := cur.Err(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Ada true
	// Edsger true
	// Grace false
}

// A long read without a round trip for each batch.
func ExampleFindOptions_exhaust() {
	client, done := connect()
	defer done()
	users := people(client)
	ctx := context.Background()

	cur, err := users.Find(ctx, bson.D{}, allium.FindOptions{Exhaust: true, BatchSize: new(int32(1)), Sort: bson.D{{Key: "age", Value: 1}}})
	if err != nil {
		log.Fatal(err)
	}
	for user, err := range cur.Seq(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(user.Name, user.Age)
	}
	// Output:
	// Ada 36
	// Edsger 72
	// Grace 85
}

func ExampleCursor_All() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	cur, err := people(client).Find(ctx, bson.M{"age": bson.M{"$lt": 80}})
	if err != nil {
		log.Fatal(err)
	}
	all, err := cur.All(ctx)
	fmt.Println(len(all), err)
	// Output: 2 <nil>
}

func ExampleCollection_FindOne() {
	client, done := connect()
	defer done()
	_, err := people(client).FindOne(context.Background(), bson.M{"name": "Alan"})
	fmt.Println(errors.Is(err, mongoerr.ErrNoDocuments))
	// Output: true
}

func ExampleCollection_FindOneAndUpdate() {
	client, done := connect()
	defer done()
	older, err := people(client).FindOneAndUpdate(context.Background(), bson.M{"name": "Ada"}, bson.M{"$inc": bson.M{"age": 1}},
		allium.FindOneAndUpdateOptions{ReturnNew: true})
	fmt.Println(older.Age, err)
	// Output: 37 <nil>
}

func ExampleCollection_FindOneAndReplace() {
	client, done := connect()
	defer done()
	before, err := people(client).FindOneAndReplace(context.Background(), bson.M{"name": "Ada"}, User{"Alan", 41})
	fmt.Println(before.Name, err)
	// Output: Ada <nil>
}

// The next one of a queue: nobody else gets it.
func ExampleCollection_FindOneAndDelete() {
	client, done := connect()
	defer done()
	eldest, err := people(client).FindOneAndDelete(context.Background(), bson.D{}, allium.FindOneAndDeleteOptions{Sort: bson.M{"age": -1}})
	fmt.Println(eldest.Name, err)
	// Output: Grace <nil>
}

func ExampleCollection_UpdateOne() {
	client, done := connect()
	defer done()
	res, err := people(client).UpdateOne(context.Background(),
		bson.M{"name": "Ada"}, bson.M{"$set": bson.M{"age": 37}})
	fmt.Println(res.MatchedCount, res.ModifiedCount, err)
	// Output: 1 1 <nil>
}

func ExampleCollection_UpdateMany() {
	client, done := connect()
	defer done()
	res, err := people(client).UpdateMany(context.Background(),
		bson.M{"age": bson.M{"$gt": 50}}, bson.M{"$set": bson.M{"emeritus": true}})
	fmt.Println(res.ModifiedCount, err)
	// Output: 2 <nil>
}

func ExampleCollection_ReplaceOne() {
	client, done := connect()
	defer done()
	res, err := people(client).ReplaceOne(context.Background(),
		bson.M{"name": "Alan"}, User{"Alan", 41}, allium.ReplaceOptions{Upsert: true})
	fmt.Println(res.MatchedCount, res.UpsertedCount, err)
	// Output: 0 1 <nil>
}

func ExampleCollection_DeleteOne() {
	client, done := connect()
	defer done()
	res, err := people(client).DeleteOne(context.Background(), bson.M{"name": "Ada"})
	fmt.Println(res.DeletedCount, err)
	// Output: 1 <nil>
}

func ExampleCollection_DeleteMany() {
	client, done := connect()
	defer done()
	res, err := people(client).DeleteMany(context.Background(), bson.D{})
	fmt.Println(res.DeletedCount, err)
	// Output: 3 <nil>
}

func ExampleCollection_CountDocuments() {
	client, done := connect()
	defer done()
	n, err := people(client).CountDocuments(context.Background(), bson.M{"age": bson.M{"$gt": 50}})
	fmt.Println(n, err)
	// Output: 2 <nil>
}

// For programs that come from an older driver: CountDocuments counts exactly.
func ExampleCollection_Count() {
	client, done := connect()
	defer done()
	n, err := people(client).Count(context.Background(), bson.M{"age": bson.M{"$gt": 50}})
	fmt.Println(n, err)
	// Output: 2 <nil>
}

func ExampleCollection_EstimatedDocumentCount() {
	client, done := connect()
	defer done()
	n, err := people(client).EstimatedDocumentCount(context.Background())
	fmt.Println(n, err)
	// Output: 3 <nil>
}

func ExampleCollection_Aggregate() {
	client, done := connect()
	defer done()
	users := people(client)
	ctx := context.Background()

	// The result has another shape than the collection's documents.
	type total struct {
		Years int `bson:"years"`
	}
	totals := allium.As[total](users)
	cur, err := totals.Aggregate(ctx, []bson.M{{"$group": bson.M{"_id": nil, "years": bson.M{"$sum": "$age"}}}})
	if err != nil {
		log.Fatal(err)
	}
	all, err := cur.All(ctx)
	fmt.Println(all, err)
	// Output: [{193}] <nil>
}

func ExampleAggregate() {
	client, done := connect()
	defer done()
	type decade struct {
		Decade float64 `bson:"_id"`
		People int
	}
	ctx := context.Background()
	cur, err := allium.Aggregate[decade](ctx, people(client), []bson.M{
		{"$group": bson.M{"_id": bson.M{"$floor": bson.M{"$divide": bson.A{"$age", 10}}}, "people": bson.M{"$sum": 1}}},
		{"$sort": bson.M{"_id": 1}},
	})
	if err != nil {
		log.Fatal(err)
	}
	all, err := cur.All(ctx)
	fmt.Println(all, err)
	// Output: [{3 1} {7 1} {8 1}] <nil>
}

func ExampleDatabase_RunCursorCommand() {
	client, done := connect()
	defer done()
	people(client)
	ctx := context.Background()
	cur, err := client.Database("app").RunCursorCommand(ctx, bson.D{{Key: "listIndexes", Value: "users"}})
	if err != nil {
		log.Fatal(err)
	}
	for index, err := range cur.Seq(ctx) {
		fmt.Println(index[2].Value, err)
	}
	// Output: _id_ <nil>
}

func ExampleRunCursorCommand() {
	client, done := connect()
	defer done()
	people(client)
	ctx := context.Background()
	cur, err := allium.RunCursorCommand[User](ctx, client.Database("app"), bson.D{{Key: "find", Value: "users"}, {Key: "limit", Value: 1}})
	if err != nil {
		log.Fatal(err)
	}
	all, err := cur.All(ctx)
	fmt.Println(all[0].Name, err)
	// Output: Ada <nil>
}

// A capped collection can be followed like a log.
func ExampleCursor_TryNext() {
	client, done := connect()
	defer done()
	ctx, db := context.Background(), client.Database("app")
	if err := db.CreateCollection(ctx, "log", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20}); err != nil {
		log.Fatal(err)
	}
	entries := allium.CollectionOf[User](db, "log")
	if _, err := entries.InsertOne(ctx, User{"Ada", 36}); err != nil {
		log.Fatal(err)
	}
	cur, err := entries.Find(ctx, bson.D{}, allium.FindOptions{CursorType: allium.CursorTailable})
	if err != nil {
		log.Fatal(err)
	}
	defer cur.Close(ctx)
	for cur.TryNext(ctx) {
		fmt.Println(cur.Current().Name)
	}
	fmt.Println("nothing more for now:", cur.Err())
	if _, err := entries.InsertOne(ctx, User{"Grace", 85}); err != nil {
		log.Fatal(err)
	}
	if cur.TryNext(ctx) {
		fmt.Println(cur.Current().Name)
	}
	// Output:
	// Ada
	// nothing more for now: <nil>
	// Grace
}

func ExampleCursor_Batches() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	cur, err := people(client).Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
	if err != nil {
		log.Fatal(err)
	}
	for batch, err := range cur.Batches(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		n := 0
		for range batch.Values() {
			n++
		}
		fmt.Println(n, "documents")
	}
	// Output:
	// 2 documents
	// 1 documents
}

func ExampleDistinct() {
	client, done := connect()
	defer done()
	names, err := allium.Distinct[string](context.Background(), people(client), "name", bson.M{"age": bson.M{"$gt": 50}})
	fmt.Println(names, err)
	// Output: [Edsger Grace] <nil>
}

func ExampleCollection_BulkWrite() {
	client, done := connect()
	defer done()
	users := people(client)
	res, err := users.BulkWrite(context.Background(), []allium.WriteModel{
		users.InsertOneModel(User{"Alan", 41}),
		users.UpdateOneModel(bson.M{"name": "Ada"}, bson.M{"$inc": bson.M{"age": 1}}),
		users.DeleteManyModel(bson.M{"age": bson.M{"$gt": 50}}),
	})
	fmt.Println(res.InsertedCount, res.ModifiedCount, res.DeletedCount, err)
	// Output: 1 1 2 <nil>
}

func ExampleUntypedCollection() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	users := client.Database("app").Collection("users").With(allium.CollectionOptions{WriteConcern: consistency.Majority()})
	_, err := users.InsertOne(ctx, bson.M{"_id": 1, "name": "Ada"})
	fmt.Println(err)
	res, err := users.InsertMany(ctx, []User{{"Grace", 85}, {"Edsger", 72}})
	fmt.Println(len(res.InsertedIDs), err)
	replaced, err := users.ReplaceOne(ctx, bson.M{"name": "Grace"}, User{"Grace", 86})
	fmt.Println(replaced.ModifiedCount, err)
	before, err := users.FindOneAndReplace(ctx, bson.M{"_id": 1}, User{"Ada", 36})
	fmt.Println(before, err)
	bulk, err := users.BulkWrite(ctx, []allium.WriteModel{
		users.InsertOneModel(User{"Alan", 41}),
		users.ReplaceOneModel(bson.M{"name": "Edsger"}, bson.M{"name": "Edsger", "age": 73}),
	})
	fmt.Println(bulk.InsertedCount, bulk.ModifiedCount, err)
	// Output:
	// <nil>
	// 2 <nil>
	// 1 <nil>
	// {"_id":1,"name":"Ada"} <nil>
	// 1 1 <nil>
}

func ExampleCollection_Query() {
	client, done := connect()
	defer done()
	for user, err := range people(client).Query(context.Background(), bson.M{"age": bson.M{"$gt": 50}}, allium.FindOptions{Sort: bson.D{{Key: "age", Value: 1}}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(user.Name)
	}
	// Output:
	// Edsger
	// Grace
}

func ExampleCollection_All() {
	client, done := connect()
	defer done()
	old, err := people(client).All(context.Background(), bson.M{"age": bson.M{"$gt": 80}})
	fmt.Println(old, err)
	// Output: [{Grace 85}] <nil>
}

// One list has writes of all kinds. Each of them has options of its own.
func ExampleWriteModel() {
	client, done := connect()
	defer done()
	users := people(client)
	res, err := users.BulkWrite(context.Background(), []allium.WriteModel{
		users.InsertOneModel(User{"Alan", 41}),
		users.UpdateOneModel(bson.M{"name": "Kurt"}, bson.M{"$set": bson.M{"age": 71}}, allium.UpdateModelOptions{Upsert: true}),
		users.UpdateManyModel(bson.M{}, bson.M{"$inc": bson.M{"age": 1}}),
		users.ReplaceOneModel(bson.M{"name": "Ada"}, User{"Ada", 37}),
		users.DeleteOneModel(bson.M{"name": "Alan"}, allium.DeleteModelOptions{Collation: &allium.Collation{Locale: "en"}}),
		users.DeleteManyModel(bson.M{"age": bson.M{"$gt": 80}}),
	})
	fmt.Println(res.InsertedCount, res.UpsertedCount, res.MatchedCount, res.DeletedCount, err)
	// Output: 1 1 6 2 <nil>
}

func ExampleClient_BulkWrite() {
	client, done := connect()
	defer done()
	users, log := people(client), client.Database("app").Collection("log")
	res, err := client.BulkWrite(context.Background(), []allium.WriteModel{
		users.InsertOneModel(User{"Alan", 41}),
		log.InsertOneModel(bson.D{{Key: "added", Value: "Alan"}}),
	})
	fmt.Println(res.InsertedCount, err)
	// Output: 2 <nil>
}

func ExampleCollection_CreateIndex() {
	client, done := connect()
	defer done()
	name, err := people(client).CreateIndex(context.Background(), allium.IndexModel{
		Keys:   bson.D{{Key: "name", Value: 1}},
		Unique: true,
	})
	fmt.Println(name, err)
	// Output: name_1 <nil>
}

func ExampleCollection_ListIndexNames() {
	client, done := connect()
	defer done()
	names, err := people(client).ListIndexNames(context.Background())
	fmt.Println(names, err)
	// Output: [_id_] <nil>
}

func ExampleCollection_DropIndex() {
	client, done := connect()
	defer done()
	users := people(client)
	if _, err := users.CreateIndex(context.Background(), allium.IndexModel{Keys: bson.D{{Key: "name", Value: 1}}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(users.DropIndex(context.Background(), "name_1"))
	// Output: <nil>
}

func ExampleCollection_CreateSearchIndex() {
	client, done := connect()
	defer done()
	// Search indexes are a service of Atlas.
	_, err := people(client).CreateSearchIndex(context.Background(), allium.SearchIndexModel{Definition: bson.M{"mappings": bson.M{"dynamic": true}}})
	var refused *mongoerr.ServerError
	fmt.Println(errors.As(err, &refused), refused.Name)
	// Output: true SearchNotEnabled
}

func ExampleCollection_Rename() {
	client, done := connect()
	defer done()
	ctx, db := context.Background(), client.Database("app")
	if err := people(client).Rename(ctx, "members"); err != nil {
		log.Fatal(err)
	}
	names, err := db.ListCollectionNames(ctx)
	fmt.Println(names, err)
	// Output: [members] <nil>
}

func ExampleDatabase_CreateCollection() {
	client, done := connect()
	defer done()
	ctx, db := context.Background(), client.Database("app")
	if err := db.CreateCollection(ctx, "log", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20}); err != nil {
		log.Fatal(err)
	}
	names, err := db.ListCollectionNames(ctx)
	fmt.Println(names, err)
	// Output: [log] <nil>
}

func ExampleDatabase_ModifyCollection() {
	client, done := connect()
	defer done()
	people(client)
	err := client.Database("app").ModifyCollection(context.Background(), "users", allium.ModifyCollectionOptions{
		Validator: bson.M{"age": bson.M{"$gte": 0}},
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleClient_ListDatabaseNames() {
	client, done := connect()
	defer done()
	people(client)
	names, err := client.ListDatabaseNames(context.Background(), allium.ListDatabasesOptions{Filter: bson.M{"name": "app"}})
	fmt.Println(names, err)
	// Output: [app] <nil>
}

func ExampleCollection_With() {
	client, done := connect()
	defer done()
	durable := people(client).With(allium.CollectionOptions{WriteConcern: consistency.Majority()})
	_, err := durable.InsertOne(context.Background(), User{"Alan", 41})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleClientOptions_commandMonitor() {
	d, err := mongotest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) {
			if e.DatabaseName == "app" {
				fmt.Println("sending", e.CommandName)
			}
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	if _, err := client.Database("app").Collection("users").CountDocuments(ctx, bson.D{}); err != nil {
		log.Fatal(err)
	}
	// Output: sending aggregate
}

// The _id of a result becomes the program's own type.
func ExampleInsertOneResult() {
	ctx := context.Background()
	d, err := mongotest.Open() // a program has a deployment of its own
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	type UserID string
	type User struct {
		ID   UserID `bson:"_id"`
		Name string `bson:"name"`
	}
	users := allium.CollectionOf[User](client.Database("app"), "users")
	res, err := users.InsertOne(ctx, User{ID: "ada", Name: "Ada Lovelace"})
	if err != nil {
		log.Fatal(err)
	}
	id, err := bson.Convert[UserID](res.InsertedID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T %s\n", id, id)
	// Output: allium_test.UserID ada
}
