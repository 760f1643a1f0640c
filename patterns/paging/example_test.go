package paging_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/field"
	"allium/mongotest"
	"allium/patterns/paging"
)

// A list by price, the dearest first: one whose price is a text, those that have none, and all
// others have a place. A token leads to the page behind, and another one back.
func Example() {
	d, err := mongotest.Open()
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
	type Good struct {
		ID    int `bson:"_id"`
		Price any
	}
	goods := allium.CollectionOf[Good](client.Database("shop"), "goods")
	_, err = client.Database("shop").Collection("goods").InsertMany(ctx, []bson.M{
		{"_id": 0, "price": 30}, {"_id": 1, "price": 10}, {"_id": 2}, {"_id": 3, "price": 20}, {"_id": 4, "price": nil},
		{"_id": 5, "price": 20}, {"_id": 6, "price": "on request"},
	})
	if err != nil {
		log.Fatal(err)
	}
	dearest := field.Desc(field.Of(func(g *Good) *any { return &g.Price }))
	if _, err := goods.CreateIndex(ctx, paging.Index(dearest)); err != nil {
		log.Fatal(err)
	}

	var page paging.Page[Good]
	for {
		page, err = paging.Find(ctx, goods, bson.D{}, paging.Options{Sort: dearest, Limit: 3, Token: page.Next})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(page.Items)
		if page.Next == "" {
			break
		}
	}
	page, err = paging.Find(ctx, goods, bson.D{}, paging.Options{Sort: dearest, Limit: 3, Token: page.Prev})
	fmt.Println("back:", page.Items, err)
	// Output:
	// [{6 on request} {0 30} {5 20}]
	// [{3 20} {1 10} {4 <nil>}]
	// [{2 <nil>}]
	// back: [{3 20} {1 10} {4 <nil>}] <nil>
}

// Sealed tokens say nothing to who has them, and cannot be changed.
func ExampleNewSeal() {
	d, err := mongotest.Open()
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
	users := allium.CollectionOf[bson.M](client.Database("app"), "users")
	if _, err := users.InsertMany(ctx, []bson.M{{"_id": 1}, {"_id": 2}}); err != nil {
		log.Fatal(err)
	}

	key := make([]byte, 32) // from the program's secrets: the same for all of its copies
	rand.Read(key)
	seal, err := paging.NewSeal(key)
	if err != nil {
		log.Fatal(err)
	}
	page, err := paging.Find(ctx, users, bson.D{}, paging.Options{Limit: 1, Seal: seal})
	if err != nil {
		log.Fatal(err)
	}
	_, err = paging.Find(ctx, users, bson.D{}, paging.Options{Limit: 1, Seal: seal, Token: page.Next[:20] + "AAAA" + page.Next[24:]})
	fmt.Println(errors.Is(err, paging.ErrToken), err)
	_, err = paging.Find(ctx, users, bson.M{"admin": true}, paging.Options{Seal: seal, Token: page.Next})
	fmt.Println(errors.Is(err, paging.ErrOtherQuery), err)
	// Output:
	// true page of users: token is not valid: it is sealed with another key, or was changed
	// true page of users: token is not valid: it is from another query
}
