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
	"allium/mongoerr"
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

// The first insert fails with a network error; the driver retries it, so that the caller does not
// notice.
func ExampleDeployment_FailCommand() {
	d := open(mongotest.ReplicaSet(1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, CloseConnection: true})
	fmt.Println(insertUser(client, 1))
	// Output: <nil>
}

// The driver finds the new primary by itself.
func ExampleDeployment_StepDown() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	before := d.Primary()
	for i := range 3 {
		if i == 1 {
			d.StepDown()
		}
		if err := insertUser(client, i); err != nil {
			panic(err)
		}
	}
	fmt.Println(countUsers(client), d.Primary() != before)
	// Output: 3 true
}

// A secondary that is held back does not see new writes, and w: 2 on two members waits for it in
// vain.
func ExampleNode_HoldBack() {
	d := open(mongotest.ReplicaSet(2))
	defer d.Stop()
	client := connect(d.URI() + "&w=2&wTimeoutMS=1")
	defer client.Close(context.Background())
	behind := d.Secondaries()[0]
	behind.HoldBack()
	fmt.Println("timed out:", mongoerr.IsTimeout(insertUser(client, 1)))
	behind.CatchUp()
	fmt.Println(insertUser(client, 2))
	// Output:
	// timed out: true
	// <nil>
}

// A secondary that falls behind, and is brought up to date.
func ExampleNode_SetLag() {
	d := open(mongotest.ReplicaSet(2))
	defer d.Stop()
	client := connect(d.URI() + "&w=2&wTimeoutMS=1")
	defer client.Close(context.Background())
	slow := d.Secondaries()[0]
	slow.SetLag(time.Hour)
	fmt.Println("timed out:", mongoerr.IsTimeout(insertUser(client, 1)))
	slow.SetLag(0)
	fmt.Println(insertUser(client, 2))
	// Output:
	// timed out: true
	// <nil>
}

// A client that shall talk to one mongos only, for instance because a fail point is set on that
// one.
func ExampleDeployment_SingleMongosURI() {
	ctx := context.Background()
	d := open(mongotest.LoadBalanced(2))
	defer d.Stop()
	client := connect(d.SingleMongosURI())
	defer client.Close(ctx)
	d.Node(0).FailCommand(mongotest.Fail{Commands: []string{"ping"}, Times: 1, Code: 8})
	fmt.Println(mongoerr.HasCode(client.Ping(ctx), 8))
	fmt.Println(client.Ping(ctx))
	// Output:
	// true
	// <nil>
}

// A session that expires after an hour, without waiting for it.
func ExampleDeployment_ShiftClock() {
	ctx := context.Background()
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(ctx)
	sessions := client.Database("app").Collection("sessions")
	if _, err := sessions.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, ExpireAfter: new(time.Hour)}); err != nil {
		panic(err)
	}
	if _, err := sessions.InsertOne(ctx, bson.D{{Key: "at", Value: time.Now()}}); err != nil {
		panic(err)
	}
	d.ShiftClock(2 * time.Hour)
	n, err := sessions.CountDocuments(ctx, bson.D{})
	fmt.Println(n, err)
	// Output: 0 <nil>
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

// A program that serves a deployment lets commands end before it leaves.
func ExampleDeployment_Shutdown() {
	d := open()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(d.Shutdown(ctx))
	// Output: <nil>
}
