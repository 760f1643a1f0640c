package event_test

import (
	"context"
	"fmt"
	"log"

	"allium"
	"allium/event"
	"allium/mongotest"
)

// ping connects to a server of the example's own, sends one ping, and closes the client.
func ping(o allium.ClientOptions) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI(), o)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := client.Ping(ctx); err != nil {
		log.Fatal(err)
	}
	if err := client.Close(ctx); err != nil {
		log.Fatal(err)
	}
}

func ExampleCommandMonitor() {
	ping(allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			if e.CommandName == "ping" {
				fmt.Println(e.CommandName, "on database", e.DatabaseName)
			}
		},
	}})
	// Output: ping on database admin
}

func ExamplePoolMonitor() {
	ping(allium.ClientOptions{PoolMonitor: &event.PoolMonitor{
		ConnectionReady: func(e *event.ConnectionReady) { fmt.Println("connection", e.ConnectionID, "is ready") },
		ConnectionClosed: func(e *event.ConnectionClosed) {
			fmt.Println("connection", e.ConnectionID, "was closed:", e.Reason)
		},
	}})
	// Output:
	// connection 1 is ready
	// connection 1 was closed: poolClosed
}

func ExampleServerMonitor() {
	ping(allium.ClientOptions{ServerMonitor: &event.ServerMonitor{
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) {
			if p := e.NewDescription.Primary(); p != nil {
				fmt.Println(e.NewDescription.Kind, "with", len(e.NewDescription.Servers), "member, the primary is known")
			}
		},
	}})
	// Output: ReplicaSetWithPrimary with 1 member, the primary is known
}

// What the driver knows of a deployment is published as descriptions, which can be kept and
// compared.
func ExampleTopologyDescription() {
	descriptions := make(chan *event.TopologyDescription, 100)
	ping(allium.ClientOptions{ServerMonitor: &event.ServerMonitor{
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) {
			if e.NewDescription.Kind == event.ReplicaSetWithPrimary {
				descriptions <- e.NewDescription
			}
		},
	}})
	d := <-descriptions
	server := d.Primary()
	fmt.Println(d.HasWritableServer(), d.Equal(d), d.Server(server.Addr) == server)
	fmt.Println(server.Kind, server.Kind.DataBearing(), server.DataBearing(), server.Equal(server), len(server.Members()))
	fmt.Println(server.Tags.Contains(event.TagSet{"dc": "ny"}), server.TopologyVersion.Compare(server.TopologyVersion))
	// Output:
	// true true true
	// RSPrimary true true true 1
	// false 0
}
