package allium_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

func ExampleClient_Stats() {
	ctx := context.Background()
	d, err := mongotest.Open() // a program has a deployment of its own
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	users := client.Database("app").Collection("users")
	if _, err := users.InsertMany(ctx, []bson.D{{}, {}, {}}); err != nil {
		log.Fatal(err)
	}
	cursor, err := users.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
	if err != nil {
		log.Fatal(err)
	}
	defer cursor.Close(ctx)

	s := client.Stats()
	fmt.Println("operations in flight:", s.Operations)
	fmt.Println("open cursors:", s.Cursors, "on", s.OldestCursors[0].Namespace)
	fmt.Println("sessions in use:", s.Sessions.InUse)
	fmt.Println("connections:", s.Pools[0].Open, "open,", s.Pools[0].InUse, "in use,", s.Pools[0].Idle, "idle")
	// Output:
	// operations in flight: 0
	// open cursors: 1 on app.users
	// sessions in use: 1
	// connections: 1 open, 0 in use, 1 idle
}

// Operations of 100 milliseconds and more are logged, with the shape of what they look for and
// without its values.
func ExampleClientOptions_slowOperation() {
	ctx := context.Background()
	d, err := mongotest.Open() // a program has a deployment of its own
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	// An example prints the same every time: of each message what does not depend on the machine.
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.LevelKey, slog.MessageKey, "commandName", "namespace", "shape":
			return a
		}
		return slog.Attr{}
	}})
	client, err := allium.Open(d.URI(), allium.ClientOptions{SlowOperation: 100 * time.Millisecond, Logger: slog.New(handler)})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	d.FailCommand(mongotest.Fail{Commands: []string{"count"}, Times: 1, Block: 120 * time.Millisecond})
	filter := bson.D{{Key: "email", Value: "ada@example.com"}, {Key: "age", Value: bson.D{{Key: "$gte", Value: 18}}}}
	if _, err := client.Database("app").Collection("users").Count(ctx, filter); err != nil {
		log.Fatal(err)
	}
	// Output: level=WARN msg="Slow operation" commandName=count namespace=app.users shape="{email: ?, age: {$gte: ?}}"
}
