package cached_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/patterns/cached"
)

type plan struct {
	ID    string `bson:"_id"`
	Price int    `bson:"price"`
}

// Prices are read for each request, and seldom change.
func ExampleReader_Find() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	plans := allium.CollectionOf[plan](client.Database("shop"), "plans")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := plans.InsertMany(ctx, []plan{{"free", 0}, {"team", 20}}); err != nil {
		log.Fatal(err)
	}

	prices := cached.New(plans) // once, for all requests
	go func() {
		if err := prices.Run(ctx); ctx.Err() == nil {
			log.Print(err) // prices are read from the server now
		}
	}()
	for !prices.Stats().Following {
		time.Sleep(time.Millisecond)
	}
	for range 100 {
		if _, err := prices.Find(ctx, "team"); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(prices.Stats().Reads, "read,", prices.Stats().Hits, "from memory")

	// Another program changes one.
	if _, err := plans.UpdateOne(ctx, bson.D{{Key: "_id", Value: "team"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "price", Value: 25}}}}); err != nil {
		log.Fatal(err)
	}
	for prices.Stats().Dropped == 0 {
		time.Sleep(time.Millisecond)
	}
	p, err := prices.Find(ctx, "team")
	fmt.Println(p.Price, err)
	// Output:
	// 1 read, 99 from memory
	// 25 <nil>
}

// A program that shows what it has just written does not wait for the event.
func ExampleReader_Forget() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	plans := allium.CollectionOf[plan](client.Database("shop"), "plans")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := plans.InsertOne(ctx, plan{"team", 20}); err != nil {
		log.Fatal(err)
	}
	prices := cached.New(plans, cached.Options{MaxDocuments: 1000})
	go prices.Run(ctx)

	if _, err := prices.Find(ctx, "team"); err != nil {
		log.Fatal(err)
	}
	if _, err := plans.UpdateOne(ctx, bson.D{{Key: "_id", Value: "team"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "price", Value: 25}}}}); err != nil {
		log.Fatal(err)
	}
	if err := prices.Forget("team"); err != nil {
		log.Fatal(err)
	}
	p, err := prices.Find(ctx, "team")
	fmt.Println(p.Price, err)
	// Output: 25 <nil>
}
