package consistency_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/mongotest"
)

// connect starts a replica set inside this process and connects to it. An application calls
// allium.Open with the connection string of its own deployment.
func connect() (client *allium.Client, done func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(2))
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

func ExampleMajority() {
	client, done := connect()
	defer done()
	orders := client.Database("app").Collection("orders", allium.CollectionOptions{WriteConcern: consistency.Majority()})
	_, err := orders.InsertOne(context.Background(), bson.D{{Key: "total", Value: 42}})
	fmt.Println(err)
	// Output: <nil>
}

// Nobody waits for these, and nobody learns whether they arrived.
func ExampleUnacknowledged() {
	client, done := connect()
	defer done()
	log := client.Database("app").Collection("log", allium.CollectionOptions{WriteConcern: consistency.Unacknowledged()})
	res, err := log.InsertOne(context.Background(), bson.D{{Key: "text", Value: "hello"}})
	fmt.Println(res.Acknowledged, err)
	// Output: false <nil>
}

func ExampleWriteConcern_Acknowledged() {
	fmt.Println(consistency.Majority().Acknowledged(), consistency.Unacknowledged().Acknowledged())
	// Output: true false
}

func ExampleWriteConcern_Validate() {
	fmt.Println((&consistency.WriteConcern{W: 0, Journal: new(true)}).Validate())
	// Output: write concern: W 0 and Journal true exclude each other
}

// Reports are read from a secondary that lags behind by two minutes at most.
func ExampleReadPreference() {
	client, done := connect()
	defer done()
	reports := client.Database("app").Collection("orders", allium.CollectionOptions{ReadPreference: &consistency.ReadPreference{
		Mode: consistency.Secondary, MaxStaleness: 2 * time.Minute,
	}})
	n, err := reports.CountDocuments(context.Background(), bson.D{})
	fmt.Println(n, err)
	// Output: 0 <nil>
}

func ExampleReadPreference_Validate() {
	fmt.Println((&consistency.ReadPreference{MaxStaleness: time.Minute}).Validate())
	// Output: read preference primary must not be combined with maxStalenessSeconds
}
