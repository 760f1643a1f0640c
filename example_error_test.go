package allium_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

func ExampleErrDuplicateKey() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	users := people(client)
	if _, err := users.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "name", Value: 1}}, Unique: true}); err != nil {
		log.Fatal(err)
	}
	_, err := users.InsertOne(ctx, User{Name: "Ada"})
	if errors.Is(err, allium.ErrDuplicateKey) {
		var write *allium.WriteError
		if errors.As(err, &write) {
			_, key, _ := write.DuplicateKey()
			fmt.Println("there already:", key)
		}
	}
	// Output: there already: {"name":"Ada"}
}

func ExampleErrNoDocuments() {
	client, done := connect()
	defer done()
	_, err := people(client).FindOne(context.Background(), bson.M{"name": "Alan"})
	fmt.Println(errors.Is(err, allium.ErrNoDocuments))
	// Output: true
}

// Whether a timeout was the context's, an option's or the server's, IsTimeout knows it; a TimeoutError says more.
func ExampleIsTimeout() {
	client, d, done := connectTo(mongotest.Standalone(), allium.ClientOptions{})
	defer done()
	users := allium.CollectionOf[User](client.Database("app"), "users")

	d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Block: time.Hour})
	_, err := users.FindOne(context.Background(), bson.M{}, allium.FindOneOptions{Timeout: new(20 * time.Millisecond)})
	var timeout *allium.TimeoutError
	fmt.Println(allium.IsTimeout(err), errors.As(err, &timeout), timeout.Phase, "by", timeout.Source)

	d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Code: 50})
	_, err = users.FindOne(context.Background(), bson.M{}, allium.FindOneOptions{MaxTime: time.Second})
	fmt.Println(allium.IsTimeout(err), errors.As(err, &timeout))
	// Output:
	// true true read by the timeout of the operation
	// true false
}

// A collection that may be there already.
func ExampleHasErrorCode() {
	client, done := connect()
	defer done()
	people(client)
	const namespaceExists = 48
	err := client.Database("app").CreateCollection(context.Background(), "users", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20})
	fmt.Println(allium.HasErrorCode(err, namespaceExists))
	// Output: true
}

func ExampleHasErrorLabel() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	users := people(client)
	// Two transactions that change the same document are in each other's way.
	err := client.Transact(ctx, func(first context.Context) error {
		if _, err := users.UpdateOne(first, bson.M{"name": "Ada"}, bson.M{"$inc": bson.M{"age": 1}}); err != nil {
			return err
		}
		s, err := client.StartSession()
		if err != nil {
			return err
		}
		second := allium.WithSession(ctx, s)
		defer s.End(second)
		if err := s.StartTransaction(); err != nil {
			return err
		}
		_, err = users.UpdateOne(second, bson.M{"name": "Ada"}, bson.M{"$inc": bson.M{"age": 1}})
		fmt.Println("try again:", allium.HasErrorLabel(err, "TransientTransactionError"))
		return nil
	})
	fmt.Println(err)
	// Output:
	// try again: true
	// <nil>
}

// The result says what was done beside the errors.
func ExampleBulkWriteError() {
	client, done := connect()
	defer done()
	docs := client.Database("app").Collection("numbers")
	res, err := docs.InsertMany(context.Background(), []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: 1}}, {{Key: "_id", Value: 2}}},
		allium.InsertManyOptions{Unordered: true})
	var failed *allium.BulkWriteError
	if errors.As(err, &failed) {
		for _, e := range failed.WriteErrors {
			fmt.Println("document", e.Index, "has the error", e.Code)
		}
	}
	fmt.Println("inserted:", res.InsertedIDs)
	// Output:
	// document 1 has the error 11000
	// inserted: map[0:1 2:2]
}
