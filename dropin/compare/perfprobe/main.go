//go:build unix

// Command perfprobe prints the processor time that a client spends on common operations, with the
// official driver or, built with -modfile=dropin.mod, with the drop-in. Its argument is the
// connection string of a deployment.
package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

type user struct {
	ID   int      `bson:"_id"`
	Name string   `bson:"name"`
	Age  int      `bson:"age"`
	Tags []string `bson:"tags"`
	Mail string   `bson:"mail"`
}

func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(name string, n int, f func()) {
	f()
	start := cpu()
	for range n {
		f()
	}
	fmt.Printf("%-20s %10d us\n", name, (cpu()-start).Microseconds()/int64(n))
}

func main() {
	ctx := context.Background()
	client, err := mongo.Connect(options.Client().ApplyURI(os.Args[1]))
	check(err)
	defer client.Disconnect(ctx)
	db := client.Database("perf")
	check(db.Drop(ctx))
	c := db.Collection("users")
	var docs []user
	for i := range 10000 {
		docs = append(docs, user{i, fmt.Sprint("name", i), i % 90, []string{"a", "b", "c"}, "someone@example.com"})
	}
	measure("insert many", 3, func() {
		check(c.Drop(ctx))
		_, err := c.InsertMany(ctx, docs)
		check(err)
	})
	measure("find one", 2000, func() {
		var u user
		check(c.FindOne(ctx, bson.D{{Key: "_id", Value: 5}}).Decode(&u))
	})
	o := db.Collection("ones")
	measure("insert one", 2000, func() {
		_, err := o.InsertOne(ctx, bson.D{{Key: "name", Value: "x"}, {Key: "age", Value: 5}})
		check(err)
	})
	measure("all structs", 5, func() {
		cur, err := c.Find(ctx, bson.D{})
		check(err)
		var all []user
		check(cur.All(ctx, &all))
	})
	measure("next decode D", 5, func() {
		cur, err := c.Find(ctx, bson.D{})
		check(err)
		for cur.Next(ctx) {
			var d bson.D
			check(cur.Decode(&d))
		}
	})
	measure("next decode M", 5, func() {
		cur, err := c.Find(ctx, bson.D{})
		check(err)
		for cur.Next(ctx) {
			var m bson.M
			check(cur.Decode(&m))
		}
	})
}
