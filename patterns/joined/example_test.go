package joined_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/patterns/joined"
)

type user struct {
	ID   int    `bson:"_id"`
	Name string `bson:"name"`
}

// Many requests read at the same time; a few finds answer them all.
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
	ctx := context.Background()
	users := allium.CollectionOf[user](client.Database("app"), "users")
	if _, err := users.InsertMany(ctx, []user{{1, "Ada"}, {2, "Grace"}, {3, "Edsger"}}); err != nil {
		log.Fatal(err)
	}

	byID := joined.New(users) // once, for all requests
	names := make([]string, 100)
	var requests sync.WaitGroup
	for i := range names {
		requests.Go(func() {
			u, err := byID.Find(ctx, 1+i%3)
			if err != nil {
				log.Print(err)
				return
			}
			names[i] = u.Name
		})
	}
	requests.Wait()
	fmt.Println(names[0], names[1], names[2])
	// Output: Ada Grace Edsger
}

// An _id that is encoded by a codec needs the codec here, too.
func ExampleNew() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	type reference struct{ Number int64 }
	codecs, err := bson.NewCodecs(bson.CodecFor(
		func(dst []byte, r reference) (bson.Type, []byte, error) {
			return bson.TypeInt64, bson.AppendInt64Value(dst, r.Number), nil
		},
		func(v bson.RawValue) (reference, error) {
			n, ok := v.AsInt64()
			if !ok {
				return reference{}, fmt.Errorf("a reference is a number, not a %v", v.Type)
			}
			return reference{n}, nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	options := &bson.Options{Codecs: codecs}
	client, err := allium.Open(d.URI(), allium.ClientOptions{BSON: options})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	ctx := context.Background()
	type order struct {
		ID reference `bson:"_id"`
	}
	orders := allium.CollectionOf[order](client.Database("app"), "orders")
	if _, err := orders.InsertOne(ctx, order{reference{36}}); err != nil {
		log.Fatal(err)
	}
	byID := joined.New(orders, joined.Options{Finds: 2, BSON: options})
	o, err := byID.Find(ctx, reference{36})
	fmt.Println(o.ID.Number, err)
	// Output: 36 <nil>
}
