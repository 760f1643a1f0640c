package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/patterns/lease"
)

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
	ctx := context.Background()

	err := lease.Run(ctx, db.Collection("leases"), "mailer", func(ctx context.Context, l *lease.Lease) error {
		fmt.Println("holder number", l.Token())
		_, err := lease.TryAcquire(ctx, db.Collection("leases"), "mailer")
		fmt.Println("another copy:", errors.Is(err, lease.ErrHeld))
		return nil
	})
	fmt.Println(err)
	// Output:
	// holder number 1
	// another copy: true
	// <nil>
}

// What is done in a transaction with Fence is done by the holder of the lease, or not at all.
func ExampleLease_Fence() {
	db, end := open()
	defer end()
	ctx := context.Background()

	l, err := lease.Acquire(ctx, db.Collection("leases"), "billing", lease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Release(ctx)
	bill := func(ctx context.Context) error {
		if err := l.Fence(ctx); err != nil {
			return err
		}
		_, err := db.Collection("bills").InsertOne(ctx, bson.D{{Key: "by", Value: l.Token()}})
		return err
	}
	fmt.Println(db.Client().Transact(ctx, bill))

	// Somebody believes that this program has died.
	if err := lease.Break(ctx, db.Collection("leases"), "billing"); err != nil {
		log.Fatal(err)
	}
	err = db.Client().Transact(ctx, bill)
	fmt.Println(errors.Is(err, lease.ErrLost))
	// Output:
	// <nil>
	// true
}

func ExampleRead() {
	db, end := open()
	defer end()
	ctx := context.Background()

	l, err := lease.TryAcquire(ctx, db.Collection("leases"), "report")
	if err != nil {
		log.Fatal(err)
	}
	info, err := lease.Read(ctx, db.Collection("leases"), "report")
	fmt.Println(info.Held(), info.Holder == l.Holder(), l.Context().Err(), err)
	if err := l.Release(ctx); err != nil {
		log.Fatal(err)
	}
	info, err = lease.Read(ctx, db.Collection("leases"), "report")
	fmt.Println(info.Held(), info.Token, l.Context().Err(), err)
	// Output:
	// true true <nil> <nil>
	// false 1 context canceled <nil>
}
