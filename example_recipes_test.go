package allium_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"allium"
	"allium/bson"
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
