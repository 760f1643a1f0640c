package allium_test

import (
	"context"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// A program that has its servers in a configuration of its own needs no connection string.
func ExampleClientOptions_hosts() {
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.ReplicaSet(3)) // a program has a deployment of its own
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	hosts := []string{d.Primary().Addr()} // one is enough: the others are found

	client, err := allium.Open("", allium.ClientOptions{Hosts: hosts, ReplicaSet: "rs0"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	if err := client.Ping(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(client.Topology().Servers), "servers")
	// Output: 3 servers
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
