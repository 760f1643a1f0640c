package stats_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"allium"
	"allium/mongotest"
)

// How a program watches its pools, as it would with sql.DBStats.
func Example() {
	ctx := context.Background()
	d, err := mongotest.Open() // a program has a deployment of its own
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI(), allium.ClientOptions{MaxPoolSize: new(20), MaxIdleTime: new(time.Minute)})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	if err := client.Ping(ctx); err != nil {
		log.Fatal(err)
	}
	for _, p := range client.Stats().Pools {
		fmt.Printf("%d of %d connections open, %d in use, %d operations wait, %d connections were closed\n",
			p.Open, p.MaxOpen, p.InUse, p.Waiting, p.Closed.Total())
	}
	// Output: 1 of 20 connections open, 0 in use, 0 operations wait, 0 connections were closed
}
