package allium_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/mongotest"
	"allium/tracing"
)

// What a program in production sets: docs/production.md says why.
func ExampleClientOptions() {
	d, err := mongotest.Open(mongotest.ReplicaSet(3))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	uri := d.URI() // of a program: os.Getenv("MONGODB_URI")

	client, err := allium.Open(uri, allium.ClientOptions{
		AppName:     "shop",
		Timeout:     new(10 * time.Second),
		MaxPoolSize: new(50),
		Compressors: []string{"zstd", "snappy"},
		Logger:      slog.Default(),
		LogLevels: map[allium.LogComponent]slog.Level{
			allium.LogCommand: slog.LevelWarn, allium.LogConnection: slog.LevelWarn,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	fmt.Println(client.Ping(ctx))
	// Output: <nil>
}

func ExampleClientOptions_tlsFiles() {
	deployment, err := mongotest.Open(mongotest.TLS())
	if err != nil {
		log.Fatal(err)
	}
	defer deployment.Stop()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ca, cert, err := deployment.WriteTLSFiles(dir)
	if err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open(deployment.URI(), allium.ClientOptions{
		TLSFiles: &allium.TLSFiles{CAFile: ca, CertificateKeyFile: cert},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.Ping(context.Background()))
	// Output: <nil>
}

func ExampleClientOptions_proxy() {
	proxy := &allium.Proxy{Host: "localhost", Username: "shop", Password: "secret"} // on port 1080
	client, err := allium.Open("mongodb://db.internal/", allium.ClientOptions{Proxy: proxy})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Printf("%+v\n", *proxy)
	// Output: {Host:localhost Port:0 Username:shop Password:***}
}

// A program's own connections to services can be checked as those to servers are.
func ExampleClient_CheckRevocation() {
	client, err := allium.Open("mongodb://localhost/?tls=true")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	service := httptest.NewTLSServer(http.NotFoundHandler())
	defer service.Close()
	conn, err := tls.Dial("tcp", service.Listener.Addr().String(), &tls.Config{
		RootCAs: service.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	state := conn.ConnectionState()
	err = client.CheckRevocation(context.Background(), &state, func(error) { conn.Close() })
	fmt.Println(err)
	// Output: <nil>
}

// The connection string says who the client is. What is special in a password has to be escaped.
func ExampleClientOptions_scram() {
	d, err := mongotest.Open(mongotest.Auth("ada", "p@ss/word"))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	ada := url.UserPassword("ada", "p@ss/word").String()
	client, err := allium.Open("mongodb://" + ada + "@" + d.Hosts()[0] + "/?authSource=admin")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.Ping(context.Background()))
	// Output: <nil>
}

// A command that is short-lived has connections for its first operations, and no more than it uses
// afterwards.
func ExampleClient_Ready_warm() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI(), allium.ClientOptions{Warm: new(8)})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := client.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Stats().Pools[0].Open)
	// Output: 8
}

// A service has its connections before it takes traffic.
func ExampleClient_Ready() {
	d, err := mongotest.Open(mongotest.ReplicaSet(3))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI(), allium.ClientOptions{MinPoolSize: new(4)})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := client.Ready(ctx); err != nil {
		log.Fatal(err) // it says which server was waited for, and why
	}
	for _, p := range client.Stats().Pools {
		fmt.Println(p.Open-p.Connecting >= 4)
	}
	// Output:
	// true
	// true
	// true
}

// A vault changes the password now and then. The client asks for it when it needs one.
func ExampleClientOptions_credentials() {
	d, err := mongotest.Open(mongotest.Auth("root", "root"))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	read := func(ctx context.Context, path string) (user, password string, err error) { return "root", "root", nil } // of the vault

	client, err := allium.Open("mongodb://"+d.Hosts()[0], allium.ClientOptions{
		Credentials: func(ctx context.Context) (auth.Credential, error) {
			user, password, err := read(ctx, "mongodb/orders")
			return auth.Credential{Username: user, Password: auth.Secret(password)}, err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.Ping(context.Background()))
	// Output: <nil>
}

// A client certificate is the proof; its subject is the name of a user on "$external".
func ExampleClientOptions_x509() {
	d, err := mongotest.Open(mongotest.TLS(), mongotest.Auth("root", "open sesame"))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	if err := d.AddUser(mongotest.User{Name: d.ClientSubject(), DB: "$external", Roles: []string{"root"}}); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "certificates")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ca, certKey, err := d.WriteTLSFiles(dir)
	if err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open("mongodb://"+d.Hosts()[0]+"/?authMechanism=MONGODB-X509&tls=true", allium.ClientOptions{
		TLSFiles: &allium.TLSFiles{CAFile: ca, CertificateKeyFile: certKey},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.Ping(context.Background()))
	// Output: <nil>
}

// PLAIN sends the password as it is, for a directory that the server asks: only with TLS.
func ExampleClientOptions_plain() {
	d, err := mongotest.Open(mongotest.TLS(), mongotest.Auth("root", "open sesame"))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	if err := d.AddUser(mongotest.User{Name: "ada", Password: "pencil", DB: "$external", Roles: []string{"root"}}); err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open("mongodb://ada:pencil@"+d.Hosts()[0]+"/?authMechanism=PLAIN&tls=true", allium.ClientOptions{TLS: d.TLSConfig()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	fmt.Println(client.Ping(context.Background()))
	// Output: <nil>
}

// A program that has its servers in a configuration of its own needs no connection string.
func ExampleClientOptions_hosts() {
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.ReplicaSet(3)) // a program has a deployment of its own
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	hosts := []string{d.Primary().Addr()} // one is enough: the others are found

	client, err := allium.Open("", allium.ClientOptions{Hosts: hosts, ReplicaSet: "rs0"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)
	if err := client.Ping(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(client.Topology().Servers), "servers")
	// Output: 3 servers
}

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

// Person is the document of the examples of change streams.
type Person struct {
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

// staff starts a replica set inside this process and connects to it. The collection that it returns
// has one document. A program calls allium.Open with the connection string of its own deployment.
func staff() (client *allium.Client, users *allium.Collection[Person], done func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err = allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	users = allium.CollectionOf[Person](client.Database("app"), "users")
	if _, err := users.InsertOne(context.Background(), Person{"Ada", 36}); err != nil {
		log.Fatal(err)
	}
	return client, users, func() {
		client.Close(context.Background())
		d.Stop()
	}
}

func ExampleCollection_Watch() {
	_, users, done := staff()
	defer done()
	ctx := context.Background()

	stream, err := users.Watch(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := users.InsertOne(ctx, Person{Name: "Barbara", Age: 28}); err != nil {
		log.Fatal(err)
	}
	if _, err := users.UpdateOne(ctx, bson.M{"name": "Barbara"}, bson.M{"$inc": bson.M{"age": 1}}); err != nil {
		log.Fatal(err)
	}
	if _, err := users.DeleteOne(ctx, bson.M{"name": "Ada"}); err != nil {
		log.Fatal(err)
	}
	for event, err := range stream.Seq(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch event.OperationType {
		case allium.ChangeInsert:
			fmt.Println("new:", event.FullDocument.Name)
		case allium.ChangeUpdate:
			fmt.Println("changed:", event.UpdateDescription.UpdatedFields)
		default:
			fmt.Println(event.OperationType, event.Namespace)
			return
		}
	}
	// Output:
	// new: Barbara
	// changed: {"age":29}
	// delete app.users
}

func ExampleDatabase_Watch() {
	client, users, done := staff()
	defer done()
	ctx := context.Background()
	db := client.Database("app")

	deletes := []bson.M{{"$match": bson.M{"operationType": "delete"}}}
	stream, err := db.Watch(ctx, deletes, allium.WatchOptions{MaxAwaitTime: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close(ctx)
	if _, err := users.DeleteOne(ctx, bson.M{"name": "Ada"}); err != nil {
		log.Fatal(err)
	}
	if stream.Next(ctx) {
		fmt.Println(stream.Current().OperationType, stream.Current().Namespace)
	}
	// Output: delete app.users
}

func ExampleClient_Watch() {
	client, _, done := staff()
	defer done()
	ctx := context.Background()

	stream, err := client.Watch(ctx, nil, allium.WatchOptions{ShowExpandedEvents: true})
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close(ctx)
	if err := client.Database("app").CreateCollection(ctx, "teams"); err != nil {
		log.Fatal(err)
	}
	if stream.Next(ctx) {
		fmt.Println(stream.Current().OperationType, stream.Current().Namespace)
	}
	// Output: create app.teams
}

func ExampleWatch() {
	client, users, done := staff()
	defer done()
	ctx := context.Background()

	type named struct{ Name string }
	stream, err := allium.Watch[named](ctx, client.Database("app"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close(ctx)
	if _, err := users.InsertOne(ctx, Person{"Grace", 41}); err != nil {
		log.Fatal(err)
	}
	if stream.Next(ctx) {
		fmt.Println(stream.Current().FullDocument.Name)
	}
	// Output: Grace
}

// A stream goes on where another one, perhaps of an earlier run of the application, has stopped.
func ExampleChangeStream_ResumeToken() {
	_, users, done := staff()
	defer done()
	ctx := context.Background()

	first, err := users.Watch(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	if first.TryNext(ctx) || first.Err() != nil { // there is no event yet, but a token
		log.Fatal("an event, or an error: ", first.Err())
	}
	token := first.ResumeToken()
	first.Close(ctx)

	if _, err := users.InsertOne(ctx, Person{Name: "Barbara", Age: 28}); err != nil {
		log.Fatal(err)
	}
	second, err := users.Watch(ctx, nil, allium.WatchOptions{ResumeAfter: token})
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close(ctx)
	if second.TryNext(ctx) {
		fmt.Println(second.Current().FullDocument.Name, "from cursor", second.ID() != 0)
	}
	// Output: Barbara from cursor true
}

// A change stream survives that the primary steps down: it resumes on the new one, and no event is
// missed.
func ExampleChangeStream_stepDown() {
	d, err := mongotest.Open(mongotest.ReplicaSet(3))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	users := allium.CollectionOf[Person](client.Database("app"), "users")

	stream, err := users.Watch(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close(ctx)
	for _, name := range []string{"Barbara", "Donald"} {
		if _, err := users.InsertOne(ctx, Person{Name: name}); err != nil {
			log.Fatal(err)
		}
		if stream.Next(ctx) {
			fmt.Println(stream.Current().FullDocument.Name)
		}
		d.StepDown()
	}
	// Output:
	// Barbara
	// Donald
}
