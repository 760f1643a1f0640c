package allium_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"allium"
	"allium/bson"
	"allium/bson/codecs"
	"allium/mongoerr"
	"allium/mongotest"
)

// A handler for a health check: it answers within a second whether the deployment takes operations.
// Why it does not is for the log: the error names servers, which are nobody's business who asks.
// The client looks for servers by itself; a check needs no client of its own.
func Example_healthCheck() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	logger := slog.New(slog.DiscardHandler) // the program's own

	health := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := client.Ping(ctx); err != nil {
			logger.ErrorContext(ctx, "health check", "error", err)
			http.Error(w, "database unavailable", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})

	check := func() {
		w := httptest.NewRecorder()
		health.ServeHTTP(w, httptest.NewRequest("GET", "/health", nil))
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	check()
	d.Stop()
	check()
	// Output:
	// 200 ok
	// 503 database unavailable
}

// Types of other packages: a set of codecs, which the client encodes and decodes with. A column
// that may be null is the value itself or null, and a filter finds it as such.
func Example_typesOfOtherPackages() {
	d, err := mongotest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	open := func(uri string) (*allium.Client, error) {
		set, err := bson.NewCodecs(codecs.Null(), codecs.BigInt())
		if err != nil {
			return nil, err
		}
		return allium.Open(uri, allium.ClientOptions{BSON: &bson.Options{Codecs: set}})
	}
	client, err := open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)

	type Account struct {
		ID      int              `bson:"_id"`
		Owner   sql.Null[string] `bson:"owner"`
		Balance *big.Int         `bson:"balance"`
	}
	accounts := allium.CollectionOf[Account](client.Database("bank"), "accounts")
	_, err = accounts.InsertMany(ctx, []Account{
		{ID: 1, Owner: sql.Null[string]{V: "Ann", Valid: true}, Balance: big.NewInt(5)},
		{ID: 2, Balance: new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)},
	})
	if err != nil {
		log.Fatal(err)
	}
	a, err := accounts.FindOne(ctx, bson.M{"owner": nil, "balance": bson.M{"$gt": big.NewInt(1000)}})
	fmt.Println(a.ID, a.Owner.Valid, a.Balance, err)
	// Output: 2 false 1000000000000000000000000000000 <nil>
}

// How a server would run a query: whether it uses an index, and which one. An explain is a command
// that holds the command of the query.
func Example_explain() {
	d, err := mongotest.Open()
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
	db := client.Database("shop")
	goods := db.Collection("goods")
	if _, err := goods.InsertOne(ctx, bson.D{{Key: "price", Value: 10}}); err != nil {
		log.Fatal(err)
	}
	explain := func(filter bson.D) string {
		reply, err := db.RunCommand(ctx, bson.D{
			{Key: "explain", Value: bson.D{{Key: "find", Value: "goods"}, {Key: "filter", Value: filter}}},
			{Key: "verbosity", Value: "queryPlanner"},
		})
		if err != nil {
			log.Fatal(err)
		}
		plan := reply.Lookup("queryPlanner", "winningPlan")
		for {
			stage, _ := plan.Document()
			if input := stage.Lookup("inputStage"); !input.IsZero() {
				plan = input
				continue
			}
			name, _ := stage.Lookup("stage").StringValue()
			index, _ := stage.Lookup("indexName").StringValue()
			return strings.TrimSpace(name + " " + index)
		}
	}
	filter := bson.D{{Key: "price", Value: bson.D{{Key: "$lt", Value: 20}}}}
	fmt.Println(explain(filter))
	if _, err := goods.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "price", Value: 1}}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(explain(filter))
	// Output:
	// COLLSCAN
	// IXSCAN price_1
}

// A counter that many programs share: FindOneAndUpdate changes and reads it in one step, and Upsert
// makes it when it is used first.
func Example_counter() {
	d, err := mongotest.Open()
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
	type Counter struct {
		Name string `bson:"_id"`
		N    int64  `bson:"n"`
	}
	counters := allium.CollectionOf[Counter](client.Database("shop"), "counters")

	next := func(ctx context.Context, name string) (int64, error) {
		counter, err := counters.FindOneAndUpdate(ctx, bson.M{"_id": name}, bson.M{"$inc": bson.M{"n": 1}},
			allium.FindOneAndUpdateOptions{Upsert: true, ReturnNew: true})
		return counter.N, err
	}

	fmt.Println(next(ctx, "invoices"))
	fmt.Println(next(ctx, "invoices"))
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// Two people edit the same document: the later one must not overwrite what the earlier one wrote
// without having seen it. Each document has a version, which a write expects and raises.
func Example_optimisticLock() {
	d, err := mongotest.Open()
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
	type Page struct {
		ID      string `bson:"_id"`
		Version int    `bson:"version"`
		Text    string `bson:"text"`
	}
	pages := allium.CollectionOf[Page](client.Database("wiki"), "pages")
	if _, err := pages.InsertOne(ctx, Page{ID: "home", Text: "Hello"}); err != nil {
		log.Fatal(err)
	}

	edit := func(ctx context.Context, page Page, text string) error {
		edited := page
		edited.Text = text
		err := allium.Save(ctx, pages, "version", page, &edited)
		if errors.Is(err, mongoerr.ErrConflict) {
			return errors.New("somebody else has changed the page: read it again")
		}
		return err
	}

	ada, err := pages.FindOne(ctx, bson.M{"_id": "home"})
	if err != nil {
		log.Fatal(err)
	}
	grace := ada
	fmt.Println(edit(ctx, ada, "Hello from Ada"))
	fmt.Println(edit(ctx, grace, "Hello from Grace"))
	// Output:
	// <nil>
	// somebody else has changed the page: read it again
}

// A queue of jobs. A worker takes the oldest job that nobody has, and has it for a minute: if the
// worker dies, another one takes it after that. Whoever is done deletes it. A job may run twice, so
// that it must not matter if it does.
func Example_queue() {
	d, err := mongotest.Open()
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
	type Job struct {
		ID    bson.ObjectID `bson:"_id,omitempty"`
		Task  string        `bson:"task"`
		Until time.Time     `bson:"until"` // when the worker's time is over
	}
	jobs := allium.CollectionOf[Job](client.Database("shop"), "jobs")
	if _, err := jobs.InsertMany(ctx, []Job{{Task: "send invoice 1"}, {Task: "send invoice 2"}}); err != nil {
		log.Fatal(err)
	}

	take := func(ctx context.Context) (Job, error) { // mongoerr.ErrNoDocuments: there is no job
		now := time.Now()
		return jobs.FindOneAndUpdate(ctx, bson.M{"until": bson.M{"$lt": now}}, bson.M{"$set": bson.M{"until": now.Add(time.Minute)}},
			allium.FindOneAndUpdateOptions{Sort: bson.D{{Key: "_id", Value: 1}}, ReturnNew: true})
	}
	done := func(ctx context.Context, job Job) error {
		_, err := jobs.DeleteOne(ctx, bson.M{"_id": job.ID, "until": job.Until}) // unless somebody else has it by now
		return err
	}

	for {
		job, err := take(ctx)
		if errors.Is(err, mongoerr.ErrNoDocuments) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(job.Task)
		if err := done(ctx, job); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// send invoice 1
	// send invoice 2
}

// An outbox: a change and the message about it are written in one transaction, so that there is
// never one without the other. A relay sends the messages and deletes them. If it dies in between,
// a message is sent twice, and none is lost.
func Example_outbox() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
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
	type Order struct {
		Customer string `bson:"customer"`
	}
	type Message struct {
		ID   bson.ObjectID `bson:"_id,omitempty"`
		Text string        `bson:"text"`
	}
	orders := allium.CollectionOf[Order](client.Database("shop"), "orders")
	outbox := allium.CollectionOf[Message](client.Database("shop"), "outbox")

	order := func(ctx context.Context, customer string) error {
		return client.Transact(ctx, func(ctx context.Context) error {
			if _, err := orders.InsertOne(ctx, Order{Customer: customer}); err != nil {
				return err
			}
			_, err := outbox.InsertOne(ctx, Message{Text: "order of " + customer})
			return err
		})
	}
	relay := func(ctx context.Context, send func(Message) error) error {
		cur, err := outbox.Find(ctx, bson.D{}, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})
		if err != nil {
			return err
		}
		for message, err := range cur.Seq(ctx) {
			if err != nil {
				return err
			}
			if err := send(message); err != nil {
				return err // the next run sends it again
			}
			if _, err := outbox.DeleteOne(ctx, bson.M{"_id": message.ID}); err != nil {
				return err
			}
		}
		return nil
	}

	for _, customer := range []string{"Ada", "Grace"} {
		if err := order(ctx, customer); err != nil {
			log.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing left
		if err := relay(ctx, func(m Message) error { _, err := fmt.Println(m.Text); return err }); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// order of Ada
	// order of Grace
}

// A worker follows a collection, and its next run goes on where this one ended. The position is
// stored as soon as the stream is open, so that a run without an event leaves one, too; after each
// event that was handled; and once a minute while nothing happens, since the server forgets old
// positions. After a crash the last event is handled again, and none is missed.
func Example_resumeAfterRestart() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
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
	type Position struct {
		ID    string   `bson:"_id"`
		Token bson.Raw `bson:"token"`
	}
	orders := client.Database("shop").Collection("orders")
	positions := allium.CollectionOf[Position](client.Database("shop"), "positions")

	store := func(ctx context.Context, token bson.Raw) error {
		_, err := positions.ReplaceOne(ctx, bson.M{"_id": "worker"}, Position{"worker", token}, allium.ReplaceOptions{Upsert: true})
		return err
	}
	open := func(ctx context.Context) (*allium.ChangeStream[bson.D], error) {
		position, err := positions.FindOne(ctx, bson.M{"_id": "worker"})
		if err != nil && !errors.Is(err, mongoerr.ErrNoDocuments) {
			return nil, err
		}
		stream, err := orders.Watch(ctx, nil, allium.WatchOptions{StartAfter: position.Token}) // nil at first: from now on
		if err != nil {
			return nil, err
		}
		if err := store(ctx, stream.ResumeToken()); err != nil {
			stream.Close(ctx)
			return nil, err
		}
		return stream, nil
	}
	follow := func(ctx context.Context, stream *allium.ChangeStream[bson.D], handle func(allium.ChangeEvent[bson.D]) error) error {
		stored := time.Now()
		for {
			more := stream.TryNext(ctx) // waits up to a second for an event
			if err := stream.Err(); err != nil {
				return err
			}
			if more {
				if err := handle(stream.Current()); err != nil {
					return err
				}
			}
			if more || time.Since(stored) > time.Minute {
				if err := store(ctx, stream.ResumeToken()); err != nil {
					return err
				}
				stored = time.Now()
			}
			if more && stream.Current().OperationType == "invalidate" {
				return nil // the collection was dropped or renamed
			}
		}
	}

	stream, err := open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	stream.Close(ctx) // the worker is restarted before its first event
	if _, err := orders.InsertMany(ctx, []bson.D{{{Key: "n", Value: 1}}, {{Key: "n", Value: 2}}}); err != nil {
		log.Fatal(err)
	}
	crash := errors.New("the worker crashes")
	for run := range 2 {
		stream, err := open(ctx)
		if err != nil {
			log.Fatal(err)
		}
		err = follow(ctx, stream, func(event allium.ChangeEvent[bson.D]) error {
			n, _ := event.FullDocument.Get("n")
			fmt.Println("run", run, "handles", n)
			if n == int32(2) {
				return crash
			}
			return nil
		})
		fmt.Println(err)
		stream.Close(ctx)
	}
	// Output:
	// run 0 handles 1
	// run 0 handles 2
	// the worker crashes
	// run 1 handles 2
	// the worker crashes
}

// A server that ends in order: it takes no more requests, lets those that run come to their end,
// and only then closes the client, since Close ends the operations that still run.
func Example_gracefulShutdown() {
	d, err := mongotest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := client.Database("shop").Collection("orders").CountDocuments(r.Context(), bson.D{})
		fmt.Fprintln(w, n, err)
	})}
	go server.Serve(listener)

	stop() // stands for the signal, which ends ctx
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second) // Kubernetes kills after 30
	defer cancel()
	fmt.Println(server.Shutdown(ctx))
	fmt.Println(client.Close(ctx))
	// Output:
	// <nil>
	// <nil>
}

func Example_tenants() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
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
	type Order struct {
		ID     int    `bson:"_id"`
		Tenant string `bson:"tenant"`
		Total  int    `bson:"total"`
	}
	shop := client.Database("shop")
	forTenant := func(name string) *allium.Database {
		return shop.Scoped(allium.Scope{
			Filter:   bson.D{{Key: "tenant", Value: name}},
			OnInsert: func(context.Context) bson.D { return bson.D{{Key: "tenant", Value: name}} },
		})
	}
	ours := allium.CollectionOf[Order](forTenant("acme"), "orders")
	theirs := allium.CollectionOf[Order](forTenant("initech"), "orders")
	ours.InsertOne(ctx, Order{ID: 1, Total: 10})
	theirs.InsertOne(ctx, Order{ID: 2, Total: 20})

	all, err := ours.All(ctx, bson.D{})
	fmt.Println(all, err)
	res, err := ours.UpdateMany(ctx, bson.D{}, bson.D{{Key: "$inc", Value: bson.D{{Key: "total", Value: 1}}}})
	fmt.Println(res.ModifiedCount, err)
	_, err = ours.UpdateMany(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "tenant", Value: "initech"}}}})
	fmt.Println(errors.Is(err, mongoerr.ErrScope))
	fmt.Println(err)
	// Output:
	// [{1 acme 10}] <nil>
	// 1 <nil>
	// true
	// update shop.orders: not in this scope: $set of "tenant" could move a document out of it: leave the field alone, or use the collection without the scope
}

func Example_softDelete() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
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
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stamped := allium.Scope{
		OnInsert: func(context.Context) bson.D { return bson.D{{Key: "created", Value: now}, {Key: "version", Value: 1}} },
		OnUpdate: func(context.Context) bson.D {
			return bson.D{{Key: "$set", Value: bson.D{{Key: "changed", Value: now}}}, {Key: "$inc", Value: bson.D{{Key: "version", Value: 1}}}}
		},
	}
	alive := allium.Scope{Name: "deleted", Filter: bson.D{{Key: "deleted", Value: nil}}}
	pages := client.Database("app").Collection("pages").Scoped(stamped).Scoped(alive)
	pages.InsertMany(ctx, []bson.M{{"_id": "home"}, {"_id": "about"}})

	everything := pages.Without("deleted")
	everything.UpdateOne(ctx, bson.M{"_id": "about"}, bson.M{"$set": bson.M{"deleted": now}})

	n, err := pages.CountDocuments(ctx, bson.D{})
	fmt.Println(n, err)
	typed := allium.As[bson.M](pages).Scoped(allium.Scope{Name: "home", Filter: bson.D{{Key: "_id", Value: "home"}}})
	n, err = typed.Without("home").Without("deleted").CountDocuments(ctx, bson.D{})
	fmt.Println(n, err)
	gone, err := everything.FindOne(ctx, bson.M{"_id": "about"})
	version, _ := gone.Get("version")
	fmt.Println(version, err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 2 <nil>
}
