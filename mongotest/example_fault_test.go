package mongotest_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/mongoerr"
	"allium/mongotest"
)

// Only one of two mongoses fails. The driver tries the read once more.
func ExampleNode_FailCommand() {
	d := open(mongotest.Sharded(1, 2))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	d.Node(0).FailCommand(mongotest.Fail{Commands: []string{"aggregate"}, Times: 1, Code: 6})
	for range 5 {
		countUsers(client)
	}
	d.ClearFailures()
	fmt.Println(countUsers(client))
	// Output: 0
}

// A reply is cut off after ten bytes: the write was executed, but the client does not know. It
// tries again, and the server does not do it twice.
func ExampleNode_SetNetFaults() {
	d := open(mongotest.ReplicaSet(1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	d.Primary().SetNetFaults(mongotest.NetFaults{DropAfter: 10, Times: 1})
	err := insertUser(client, 2)
	d.Primary().SetNetFaults(mongotest.NetFaults{})
	fmt.Println(err, countUsers(client))
	// Output: <nil> 2
}

// A client that has been closed leaves no connection.
func ExampleNode_Connections() {
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	fmt.Println(d.Node(0).Connections() > 0)
	client.Close(context.Background())
	for d.Node(0).Connections() > 0 { // the server notices a moment later
		time.Sleep(time.Millisecond)
	}
	fmt.Println(d.Node(0).Connections())
	// Output:
	// true
	// 0
}

// The insert runs, its reply does not come.
func ExampleNode_HoldReplies() {
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	d.Primary().HoldReplies()
	done := make(chan error)
	go func() { done <- insertUser(client, 2) }()
	select {
	case <-done:
		fmt.Println("the reply came")
	case <-time.After(20 * time.Millisecond):
	}
	d.Primary().ReleaseReplies()
	fmt.Println(<-done, countUsers(client))
	// Output: <nil> 2
}

// A client whose idle connections break does not notice.
func ExampleNode_CloseConnections() {
	d := open(mongotest.ReplicaSet(1))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	d.Primary().CloseConnections()
	fmt.Println(insertUser(client, 2), countUsers(client))
	// Output: <nil> 2
}

func ExampleNode_RefuseConnections() {
	d := open()
	defer d.Stop()
	d.Node(0).RefuseConnections()
	_, err := d.DialContext(context.Background(), "tcp", d.Node(0).Addr())
	fmt.Println(err != nil)
	if err := d.Node(0).AcceptConnections(); err != nil {
		panic(err)
	}
	client := connect(d.URI())
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output:
	// true
	// <nil>
}

// A hook sees each command before it runs, and may answer in the server's place.
func ExampleDeployment_OnCommand() {
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	var mu sync.Mutex
	var seen []string
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		switch c.Name {
		case "insert":
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, c.DB+"."+c.Name)
		case "count":
			return bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 42}})
		}
		return nil, nil // let it run
	})
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	n, err := client.Database("app").Collection("users").EstimatedDocumentCount(context.Background())
	mu.Lock()
	defer mu.Unlock()
	fmt.Println(seen, n, err)
	// Output: [app.insert] 42 <nil>
}

// The primary dies, and comes back as a secondary.
func ExampleNode_Kill() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	old := d.Primary()
	old.Kill()
	fmt.Println(insertUser(client, 2), d.Primary() != old)
	if err := old.Restart(); err != nil {
		panic(err)
	}
	fmt.Println(len(d.Secondaries()))
	// Output:
	// <nil> true
	// 2
}

// A chosen member becomes the primary.
func ExampleNode_StepUp() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	next := d.Secondaries()[1]
	if err := next.StepUp(); err != nil {
		panic(err)
	}
	fmt.Println(d.Primary() == next)
	next.StepDown(time.Hour) // and is not elected again for an hour
	fmt.Println(d.Primary() == next)
	// Output:
	// true
	// false
}

// A primary that is cut off from the others steps down, and they elect another one.
func ExampleNode_Partition() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	old := d.Primary()
	old.Partition()
	fmt.Println(d.Primary() != old)
	old.Heal()
	client := connect(d.URI() + "&w=3")
	defer client.Close(context.Background())
	fmt.Println(insertUser(client, 1))
	// Output:
	// true
	// <nil>
}

// The primary stops answering without closing its connections. The client's write times out, and
// the next one goes to the member that has taken over.
func ExampleNode_Hang() {
	d := open(mongotest.ReplicaSet(3))
	defer d.Stop()
	heartbeat := 500 * time.Millisecond
	client := connect(d.URI(), allium.ClientOptions{HeartbeatInterval: &heartbeat, ConnectTimeout: &heartbeat})
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	old := d.Primary()
	old.Hang()
	defer old.Resume()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := client.Database("app").Collection("users").InsertOne(ctx, bson.D{{Key: "_id", Value: 2}})
	fmt.Println(mongoerr.IsTimeout(err), d.Primary() != old)
	fmt.Println(insertUser(client, 3), countUsers(client))
	// Output:
	// true true
	// <nil> 2
}

// A process that goes on where it stopped answers what came meanwhile.
func ExampleNode_Resume() {
	d := open()
	defer d.Stop()
	client := connect(d.URI())
	defer client.Close(context.Background())
	if err := insertUser(client, 1); err != nil {
		panic(err)
	}
	d.Node(0).Hang()
	done := make(chan error)
	go func() { done <- insertUser(client, 2) }()
	select {
	case <-done:
		fmt.Println("the reply came")
	case <-time.After(20 * time.Millisecond):
	}
	d.Node(0).Resume()
	fmt.Println(<-done, countUsers(client))
	// Output: <nil> 2
}
