package mongoerr_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/mongoerr"
	"allium/mongotest"
)

type User struct {
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

// connect starts a replica set inside this process and connects to it. An application calls
// allium.Open with the connection string of its own deployment.
func connect() (client *allium.Client, done func()) {
	client, _, done = connectTo(mongotest.ReplicaSet(1))
	return client, done
}

// connectTo is connect for another kind of deployment.
func connectTo(kind mongotest.Option) (client *allium.Client, d *mongotest.Deployment, done func()) {
	d, err := mongotest.Open(kind)
	if err != nil {
		log.Fatal(err)
	}
	client, err = allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	return client, d, func() {
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

func ExampleErrDuplicateKey() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	users := people(client)
	if _, err := users.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "name", Value: 1}}, Unique: true}); err != nil {
		log.Fatal(err)
	}
	_, err := users.InsertOne(ctx, User{Name: "Ada"})
	if errors.Is(err, mongoerr.ErrDuplicateKey) {
		var write *mongoerr.WriteError
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
	fmt.Println(errors.Is(err, mongoerr.ErrNoDocuments))
	// Output: true
}

// Whether a timeout was the context's, an option's or the server's, IsTimeout knows it; a
// TimeoutError says more.
func ExampleIsTimeout() {
	client, d, done := connectTo(mongotest.Standalone())
	defer done()
	users := allium.CollectionOf[User](client.Database("app"), "users")

	// With a connection in the pool, nothing but the reply can take that long.
	if err := client.Ping(context.Background()); err != nil {
		fmt.Println(err)
	}
	d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Block: time.Hour})
	_, err := users.FindOne(context.Background(), bson.M{}, allium.FindOneOptions{Timeout: new(500 * time.Millisecond)})
	var timeout *mongoerr.TimeoutError
	fmt.Println(mongoerr.IsTimeout(err), errors.As(err, &timeout), timeout.Phase, "by", timeout.Source)

	d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Code: 50})
	_, err = users.FindOne(context.Background(), bson.M{}, allium.FindOneOptions{MaxTime: time.Second})
	fmt.Println(mongoerr.IsTimeout(err), errors.As(err, &timeout))
	// Output:
	// true true read by the timeout of the operation
	// true false
}

// A collection that may be there already.
func ExampleHasCode() {
	client, done := connect()
	defer done()
	people(client)
	const namespaceExists = 48
	err := client.Database("app").CreateCollection(context.Background(), "users", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20})
	fmt.Println(mongoerr.HasCode(err, namespaceExists))
	// Output: true
}

func ExampleHasLabel() {
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
		fmt.Println("try again:", mongoerr.HasLabel(err, "TransientTransactionError"))
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
	var failed *mongoerr.BulkWriteError
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

func ExampleServerError_DuplicateKey() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	users := people(client)
	if _, err := users.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "name", Value: 1}}, Unique: true}); err != nil {
		log.Fatal(err)
	}
	_, err := users.FindOneAndUpdate(ctx, bson.M{"name": "Ada"}, bson.M{"$set": bson.M{"name": "Grace"}})
	if server, ok := errors.AsType[*mongoerr.ServerError](err); ok {
		pattern, key, _ := server.DuplicateKey()
		fmt.Println(pattern, key)
	}
	// Output: {"name":1} {"name":"Grace"}
}

func ExampleTimeoutError_Canceled() {
	client, done := connect()
	defer done()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := people(client).FindOne(ctx, bson.M{})
	if timeout, ok := errors.AsType[*mongoerr.TimeoutError](err); ok {
		fmt.Println(timeout.Canceled(), mongoerr.IsTimeout(err))
	}
	// Output: true false
}

func ExampleLabels() {
	err := &mongoerr.ServerError{Labels: mongoerr.Labels{mongoerr.LabelRetryableWrite}}
	fmt.Println(err.HasLabel(mongoerr.LabelRetryableWrite), err.ErrorLabels())
	// Output: true [RetryableWriteError]
}

func ExampleAuthError() {
	deployment, err := mongotest.Open(mongotest.Auth("ada", "lovelace"))
	if err != nil {
		log.Fatal(err)
	}
	defer deployment.Stop()
	client, err := allium.Open("mongodb://"+deployment.Hosts()[0], allium.ClientOptions{
		Credential: &auth.Credential{Username: "ada", Password: "byron"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	_, err = client.ListDatabaseNames(context.Background())
	if refused, ok := errors.AsType[*mongoerr.AuthError](err); ok {
		fmt.Println(refused.Mechanism, refused.Wrapped.(*mongoerr.ServerError).Name)
	}
	// Output: SCRAM-SHA-256 AuthenticationFailed
}

func ExampleDecodeError() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	numbers := client.Database("app").Collection("numbers")
	if _, err := numbers.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 1}, {Key: "n", Value: 10}}, {{Key: "_id", Value: 2}, {Key: "n", Value: "ten"}}, {{Key: "_id", Value: 3}, {Key: "n", Value: 30}}}); err != nil {
		fmt.Println(err)
	}
	type number struct{ N int }
	cur, err := allium.CollectionOf[number](client.Database("app"), "numbers").Find(ctx, bson.D{})
	if err != nil {
		fmt.Println(err)
	}
	for n, err := range cur.Seq(ctx) {
		if odd, ok := errors.AsType[*mongoerr.DecodeError](err); ok {
			fmt.Println("set aside:", odd.Namespace, odd.Document)
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(n.N)
	}
	// Output:
	// 10
	// set aside: app.numbers {"_id":2,"n":"ten"}
	// 30
}

func ExampleDecodeErrors() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	numbers := client.Database("app").Collection("numbers")
	if _, err := numbers.InsertOne(ctx, bson.D{{Key: "n", Value: bson.A{1, "two", 3, true}}}); err != nil {
		fmt.Println(err)
	}
	values, err := allium.Distinct[string](ctx, numbers, "n", bson.D{})
	fmt.Println(values)
	if errs, ok := errors.AsType[mongoerr.DecodeErrors](err); ok {
		fmt.Println(len(errs), "others")
	}
	// Output:
	// [two]
	// 3 others
}
