// told: Package allium/event has the events
package main

import (
	"context"
	"fmt"
	"os"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func init() {
	add("told/monitor", func(ctx context.Context, db *mongo.Database) {
		n := 0
		monitor := &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) { n++ }}
		opts := options.Client().ApplyURI(os.Getenv("MONGODB_URI")).SetMonitor(monitor)
		fmt.Println(opts != nil)
	})
}
