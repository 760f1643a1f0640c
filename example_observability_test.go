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
	"allium/tracing"
)

// Commands and what is wrong with the deployment are logged. What a program sets wins over the
// environment: this one leaves out what a variable of the environment names, so that whoever runs
// it can ask for more, or for less.
func ExampleClientOptions_logLevels() {
	levels := map[allium.LogComponent]slog.Level{}
	for component, level := range map[allium.LogComponent]slog.Level{
		allium.LogCommand: slog.LevelDebug, allium.LogTopology: slog.LevelWarn,
		allium.LogServerSelection: slog.LevelWarn, allium.LogConnection: slog.LevelWarn,
	} {
		variable := map[allium.LogComponent]string{
			allium.LogCommand: "MONGODB_LOG_COMMAND", allium.LogTopology: "MONGODB_LOG_TOPOLOGY",
			allium.LogServerSelection: "MONGODB_LOG_SERVER_SELECTION", allium.LogConnection: "MONGODB_LOG_CONNECTION",
		}[component]
		if os.Getenv(variable) == "" && os.Getenv("MONGODB_LOG_ALL") == "" {
			levels[component] = level
		}
	}
	// An example prints the same every time: of each message only the text and the command.
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.MessageKey || a.Key == "commandName" {
			return a
		}
		return slog.Attr{}
	}})

	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI(), allium.ClientOptions{Logger: slog.New(handler), LogLevels: levels})
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	client.Close(context.Background())
	// Output:
	// msg="Command started" commandName=ping
	// msg="Command succeeded" commandName=ping
	// msg="Command started" commandName=endSessions
	// msg="Command succeeded" commandName=endSessions
}

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
		case slog.MessageKey, "commandName", "namespace", "shape":
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
	// Output:
	// msg="Slow operation" commandName=count namespace=app.users shape="{email: ?, age: {$gte: ?}}"
}

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
