package mongotest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// In a test, Start(t, ...) does the same and stops the deployment when the test ends.
func ExampleOpen() {
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.ReplicaSet(3), mongotest.Version("7.0"))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)
	coll := client.Database("app").Collection("users")
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "Ada"}}); err != nil {
		panic(err)
	}
	n, err := coll.CountDocuments(ctx, bson.D{})
	fmt.Println(n, err, len(d.Hosts()))
	// Output: 1 <nil> 3
}

// A timeout of a minute is tested in no time: the deployment and the client live in a bubble with a
// clock of its own.
func TestTimeoutInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
		if err != nil {
			t.Fatal(err)
		}
		coll := client.Database("app").Collection("users")
		if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Block: time.Hour})
		start := time.Now()
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = coll.FindOne(short, bson.D{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("find ends with %v", err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		client.Close(ctx)
		d.Stop()
	})
}
