package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/patterns/stream"
)

// A consumer that mails orders. The first run stores where it began, so that the second one sees
// the order that came in between. One that cannot be mailed is set aside.
func ExampleRun() {
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
	type Order struct {
		ID       int    `bson:"_id"`
		Customer string `bson:"customer"`
	}
	db := client.Database("shop")
	orders := allium.CollectionOf[Order](db, "orders")

	work := func(what ...Order) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		left := len(what)
		options := stream.Options[Order]{
			Name: "mailer", Store: db.Collection("consumers"), Park: db.Collection("parked"),
			Begin: func(context.Context) error { fmt.Println("the first run"); stop(); return nil },
			Handle: func(ctx context.Context, ev allium.ChangeEvent[Order]) error {
				if left--; left == 0 {
					defer stop()
				}
				if ev.FullDocument.Customer == "" {
					return stream.Refuse(errors.New("nobody to mail"))
				}
				fmt.Println("mail to", ev.FullDocument.Customer, "by holder", stream.Token(ctx))
				return nil
			},
		}
		if err := stream.Run(ctx, orders, options); !errors.Is(err, context.Canceled) {
			log.Fatal(err)
		}
	}
	work()
	between := []Order{{1, "Ada"}, {2, ""}, {3, "Grace"}}
	if _, err := orders.InsertMany(context.Background(), between); err != nil {
		log.Fatal(err)
	}
	work(between...)
	for p, err := range allium.As[stream.Parked](db.Collection("parked")).Query(context.Background(), bson.D{}) {
		fmt.Println("parked:", p.Event.Lookup("documentKey"), p.Reason, err)
	}
	// Output:
	// the first run
	// mail to Ada by holder 2
	// mail to Grace by holder 2
	// parked: {"_id":2} event is refused: nobody to mail <nil>
}

// An outbox: a transaction writes an order and the message about it, and the relay sends it.
func ExampleRelay() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer client.Close(context.Background())
	type Order struct{ Customer string }
	type Message struct {
		ID   bson.ObjectID `bson:"_id,omitempty"`
		Text string        `bson:"text"`
	}
	db := client.Database("shop")
	orders, outbox := allium.CollectionOf[Order](db, "orders"), allium.CollectionOf[Message](db, "outbox")
	err = client.Transact(ctx, func(ctx context.Context) error {
		if _, err := orders.InsertOne(ctx, Order{Customer: "Ada"}); err != nil {
			return err
		}
		_, err := outbox.InsertOne(ctx, Message{Text: "order of Ada"})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	send := func(_ context.Context, m Message) error {
		fmt.Println("sent:", m.Text)
		stop()
		return nil
	}
	err = stream.Relay(ctx, outbox, send, stream.Options[Message]{Name: "relay", Store: db.Collection("consumers")})
	fmt.Println(err)
	// Output:
	// sent: order of Ada
	// context canceled
}
