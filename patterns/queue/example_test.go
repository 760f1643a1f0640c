package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/patterns/queue"
)

type Mail struct {
	To string `bson:"to"`
}

// open returns a database of a deployment that ends with the Example.
func open() (db *allium.Database, end func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	return client.Database("app"), func() {
		client.Close(context.Background())
		d.Stop()
	}
}

func Example() {
	db, end := open()
	defer end()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	mails := queue.Of[Mail](db.Collection("mails"))
	if err := mails.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	for _, to := range []string{"ada@example.com", "nobody", "grace@example.com"} {
		if _, err := mails.Send(ctx, Mail{To: to}, queue.SendOptions{ID: "welcome " + to}); err != nil {
			log.Fatal(err)
		}
	}
	left := 3
	err := mails.Run(ctx, func(ctx context.Context, m *queue.Message[Mail]) error {
		if left--; left == 0 {
			defer stop()
		}
		if m.Payload.To == "nobody" {
			return queue.Refuse(errors.New("no such address"))
		}
		fmt.Println("mail to", m.Payload.To)
		return nil
	}, queue.RunOptions{Parallel: 1})
	fmt.Println(err)
	for d, err := range mails.Dead(context.Background()) {
		fmt.Println("dead:", d.ID, "–", d.Reason, err)
	}
	// Unordered output:
	// mail to ada@example.com
	// mail to grace@example.com
	// context canceled
	// dead: welcome nobody – message is refused: no such address <nil>
}

// What a transaction writes together with Done is written once, whatever fails.
func ExampleMessage_Done() {
	db, end := open()
	defer end()
	ctx := context.Background()
	type Payment struct{ Amount int }
	payments := queue.Of[Payment](db.Collection("payments"))
	if _, err := payments.Send(ctx, Payment{20}); err != nil {
		log.Fatal(err)
	}

	m, err := payments.Take(ctx)
	if err != nil {
		log.Fatal(err)
	}
	err = db.Client().Transact(ctx, func(ctx context.Context) error {
		if err := m.Done(ctx); err != nil {
			return err
		}
		_, err := db.Collection("account").UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
			bson.D{{Key: "$inc", Value: bson.D{{Key: "balance", Value: m.Payload.Amount}}}}, allium.UpdateOptions{Upsert: true})
		return err
	})
	fmt.Println(err)
	_, err = payments.TryTake(ctx)
	fmt.Println(errors.Is(err, queue.ErrEmpty))
	// Output:
	// <nil>
	// true
}

// Dead messages stay until somebody revives or deletes them.
func ExampleQueue_Revive() {
	db, end := open()
	defer end()
	ctx := context.Background()
	mails := queue.Of[Mail](db.Collection("mails"), queue.Options{Attempts: 1})
	if _, err := mails.Send(ctx, Mail{To: "ada@example.com"}); err != nil {
		log.Fatal(err)
	}
	m, err := mails.TryTake(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Retry(ctx, errors.New("no route to host")))
	stats, err := mails.Stats(ctx)
	fmt.Println(stats.Dead, err)

	fmt.Println(mails.Revive(ctx))
	m, err = mails.TryTake(ctx)
	fmt.Println(m.Payload.To, m.Attempt, m.Reason, err)
	// Output:
	// <nil>
	// 1 <nil>
	// 1 <nil>
	// ada@example.com 1 no route to host <nil>
}

// A program that takes messages by itself says what becomes of each.
func ExampleQueue_TryTake() {
	db, end := open()
	defer end()
	ctx := context.Background()
	coll := db.Collection("mails")
	if _, err := coll.CreateIndex(ctx, queue.Index()); err != nil { // as Ensure does
		log.Fatal(err)
	}
	mails := queue.Of[Mail](coll)
	if _, err := mails.Send(ctx, Mail{To: "ada@example.com"}); err != nil {
		log.Fatal(err)
	}
	m, err := mails.TryTake(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("it is mine for longer:", m.Extend(ctx))
	fmt.Println("somebody else may have it:", m.Release(ctx))
	fmt.Println("it is no longer mine:", errors.Is(m.Done(ctx), queue.ErrLost))

	m, err = mails.TryTake(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("attempt", m.Attempt, "of somebody else:", m.Bury(ctx, errors.New("spam")))
	_, err = mails.TryTake(ctx)
	fmt.Println(errors.Is(err, queue.ErrEmpty))
	// Output:
	// it is mine for longer: <nil>
	// somebody else may have it: <nil>
	// it is no longer mine: true
	// attempt 1 of somebody else: <nil>
	// true
}
