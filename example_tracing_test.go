package allium_test

import (
	"context"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/tracing"
)

// printer is a tracer that prints what each span stands for. The module allium/otel has one for
// OpenTelemetry.
type printer struct{}

func (p printer) Start(ctx context.Context, begin tracing.Begin) (context.Context, tracing.Span) {
	fmt.Println("begin", begin.Name)
	return ctx, printedSpan{begin.Name}
}

type printedSpan struct{ name string }

func (s printedSpan) SetAttributes(...tracing.Attribute)         {}
func (s printedSpan) RecordError(err error)                      { fmt.Println("error", s.name, err) }
func (s printedSpan) Within(ctx context.Context) context.Context { return ctx }
func (s printedSpan) End()                                       { fmt.Println("end", s.name) }

// An operation is a span, and each command that is sent for it is one below. The last ones are of
// the client's end.
func ExampleTracing() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI(), allium.ClientOptions{
		Tracing: &allium.Tracing{Tracer: printer{}, Enabled: new(true)},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	users := client.Database("app").Collection("users")
	if _, err := users.CountDocuments(context.Background(), bson.D{{Key: "age", Value: 36}}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// begin aggregate app.users
	// begin aggregate
	// end aggregate
	// end aggregate app.users
	// begin endSessions admin
	// begin endSessions
	// end endSessions
	// end endSessions admin
}
