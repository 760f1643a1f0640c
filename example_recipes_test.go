package allium_test

import (
	"context"
	"errors"
	"fmt"
	"log"
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
	"allium/mongoerr"
	"allium/mongotest"
)

// A handler for a health check: it answers within a second whether the deployment takes operations,
// and says why not. The client looks for servers by itself; a check needs no client of its own.
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

	health := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := client.Ping(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})

	check := func() int {
		w := httptest.NewRecorder()
		health.ServeHTTP(w, httptest.NewRequest("GET", "/health", nil))
		return w.Code
	}
	fmt.Println(check())
	d.Stop()
	fmt.Println(check())
	// Output:
	// 200
	// 503
}

// Pages by keys: each page begins after the last key of the page before. Unlike Skip, it costs the
// same for every page, and nothing is shown twice or left out when documents come and go. The
// filter and the sort need an index on both fields; _id makes the order of equal prices definite.
func Example_pages() {
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
	type Good struct {
		ID    int `bson:"_id"`
		Price int `bson:"price"`
	}
	goods := allium.CollectionOf[Good](client.Database("shop"), "goods")
	if _, err := goods.InsertMany(ctx, []Good{{1, 30}, {2, 10}, {3, 20}, {4, 20}, {5, 40}}); err != nil {
		log.Fatal(err)
	}
	order := bson.D{{Key: "price", Value: 1}, {Key: "_id", Value: 1}}
	if _, err := goods.CreateIndex(ctx, allium.IndexModel{Keys: order}); err != nil {
		log.Fatal(err)
	}

	// page returns the page after a document, the first page after nil.
	page := func(after *Good) ([]Good, error) {
		filter := bson.D{}
		if after != nil {
			filter = bson.D{{Key: "$or", Value: bson.A{
				bson.M{"price": bson.M{"$gt": after.Price}},
				bson.M{"price": after.Price, "_id": bson.M{"$gt": after.ID}},
			}}}
		}
		cur, err := goods.Find(ctx, filter, allium.FindOptions{Sort: order, Limit: 2})
		if err != nil {
			return nil, err
		}
		return cur.All(ctx)
	}

	var last *Good
	for {
		list, err := page(last)
		if err != nil {
			log.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		fmt.Println(list)
		last = &list[len(list)-1]
	}
	// Output:
	// [{2 10} {3 20}]
	// [{4 20} {1 30}]
	// [{5 40}]
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

	errChanged := errors.New("somebody else has changed the page")
	save := func(ctx context.Context, page Page) error {
		old := bson.M{"_id": page.ID, "version": page.Version}
		page.Version++
		res, err := pages.ReplaceOne(ctx, old, page)
		if err == nil && res.MatchedCount == 0 {
			err = errChanged
		}
		return err
	}

	ada, err := pages.FindOne(ctx, bson.M{"_id": "home"})
	if err != nil {
		log.Fatal(err)
	}
	grace := ada
	ada.Text, grace.Text = "Hello from Ada", "Hello from Grace"
	fmt.Println(save(ctx, ada))
	fmt.Println(save(ctx, grace))
	// Output:
	// <nil>
	// somebody else has changed the page
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

// A worker follows a collection and stores after each event how far it is: the next run goes on
// there. An event may be handled twice, and none is missed as long as the oplog reaches back.
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

	open := func(ctx context.Context) (*allium.ChangeStream[bson.D], error) {
		position, err := positions.FindOne(ctx, bson.M{"_id": "worker"})
		if err != nil && !errors.Is(err, mongoerr.ErrNoDocuments) {
			return nil, err
		}
		return orders.Watch(ctx, nil, allium.WatchOptions{ResumeAfter: position.Token}) // nil at first: from now on
	}
	store := func(ctx context.Context, token bson.Raw) error {
		_, err := positions.ReplaceOne(ctx, bson.M{"_id": "worker"}, Position{"worker", token}, allium.ReplaceOptions{Upsert: true})
		return err
	}

	for run := range 2 {
		stream, err := open(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if run == 0 {
			if _, err := orders.InsertMany(ctx, []bson.D{{{Key: "n", Value: 1}}, {{Key: "n", Value: 2}}}); err != nil {
				log.Fatal(err)
			}
		}
		if stream.Next(ctx) {
			n, _ := stream.Current().FullDocument.Get("n")
			fmt.Println("run", run, "handles", n)
			if err := store(ctx, stream.ResumeToken()); err != nil {
				log.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil {
			log.Fatal(err)
		}
		stream.Close(ctx) // the worker is restarted
	}
	// Output:
	// run 0 handles 1
	// run 1 handles 2
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
