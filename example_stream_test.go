package allium_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// Person is the document of the examples.
type Person struct {
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

// staff starts a replica set inside this process and connects to it. The collection that it returns
// has one document. A program calls allium.Open with the connection string of its own deployment.
func staff() (client *allium.Client, users *allium.Collection[Person], done func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err = allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	users = allium.CollectionOf[Person](client.Database("app"), "users")
	if _, err := users.InsertOne(context.Background(), Person{"Ada", 36}); err != nil {
		log.Fatal(err)
	}
	return client, users, func() {
		client.Close(context.Background())
		d.Stop()
	}
}

func ExampleCollection_Watch() {
	_, users, done := staff()
	defer done()
	ctx := context.Background()

	stream, err := users.Watch(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := users.InsertOne(ctx, Person{Name: "Barbara", Age: 28}); err != nil {
		log.Fatal(err)
	}
	if _, err := users.UpdateOne(ctx, bson.M{"name": "Barbara"}, bson.M{"$inc": bson.M{"age": 1}}); err != nil {
		log.Fatal(err)
	}
	if _, err := users.DeleteOne(ctx, bson.M{"name": "Ada"}); err != nil {
		log.Fatal(err)
	}
	for event, err := range stream.Seq(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch event.OperationType {
		case allium.ChangeInsert:
			fmt.Println("new:", event.FullDocument.Name)
		case allium.ChangeUpdate:
			fmt.Println("changed:", event.UpdateDescription.UpdatedFields)
		default:
			fmt.Println(event.OperationType, event.Namespace)
			return
		}
	}
	// Output:
	// new: Barbara
	// changed: {"age":29}
	// delete app.users
}

func ExampleDatabase_Watch() {
	client, users, done := staff()
	defer done()
	ctx := context.Background()
	db := client.Database("app")

	deletes := []bson.M{{"$match": bson.M{"operationType": "delete"}}}
	stream, err := db.Watch(ctx, deletes, allium.WatchOptions{MaxAwaitTime: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close(ctx)
	if _, err := users.DeleteOne(ctx, bson.M{"name": "Ada"}); err != nil {
		log.Fatal(err)
	}
	if stream.Next(ctx) {
		fmt.Println(stream.Current().OperationType, stream.Current().Namespace)
	}
	// Output: delete app.users
}

func ExampleClient_Watch() {
	client, _, done := staff()
	defer done()
	ctx := context.Background()

	stream, err := client.Watch(ctx, nil, allium.WatchOptions{ShowExpandedEvents: true})
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close(ctx)
	if err := client.Database("app").CreateCollection(ctx, "teams"); err != nil {
		log.Fatal(err)
	}
	if stream.Next(ctx) {
		fmt.Println(stream.Current().OperationType, stream.Current().Namespace)
	}
	// Output: create app.teams
}

func ExampleWatch() {
	client, users, done := staff()
	defer done()
	ctx := context.Background()

	type named struct{ Name string }
	stream, err := allium.Watch[named](ctx, client.Database("app"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close(ctx)
	if _, err := users.InsertOne(ctx, Person{"Grace", 41}); err != nil {
		log.Fatal(err)
	}
	if stream.Next(ctx) {
		fmt.Println(stream.Current().FullDocument.Name)
	}
	// Output: Grace
}

// A stream goes on where another one, perhaps of an earlier run of the application, has stopped.
func ExampleChangeStream_ResumeToken() {
	_, users, done := staff()
	defer done()
	ctx := context.Background()

	first, err := users.Watch(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	if first.TryNext(ctx) || first.Err() != nil { // there is no event yet, but a token
		log.Fatal("an event, or an error: ", first.Err())
	}
	token := first.ResumeToken()
	first.Close(ctx)

	if _, err := users.InsertOne(ctx, Person{Name: "Barbara", Age: 28}); err != nil {
		log.Fatal(err)
	}
	second, err := users.Watch(ctx, nil, allium.WatchOptions{ResumeAfter: token})
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close(ctx)
	if second.TryNext(ctx) {
		fmt.Println(second.Current().FullDocument.Name, "from cursor", second.ID() != 0)
	}
	// Output: Barbara from cursor true
}

// A change stream survives that the primary steps down: it resumes on the new one, and no event is
// missed.
func ExampleChangeStream_stepDown() {
	d, err := mongotest.Open(mongotest.ReplicaSet(3))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	users := allium.CollectionOf[Person](client.Database("app"), "users")

	stream, err := users.Watch(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close(ctx)
	for _, name := range []string{"Barbara", "Donald"} {
		if _, err := users.InsertOne(ctx, Person{Name: name}); err != nil {
			log.Fatal(err)
		}
		if stream.Next(ctx) {
			fmt.Println(stream.Current().FullDocument.Name)
		}
		d.StepDown()
	}
	// Output:
	// Barbara
	// Donald
}
