package clientperrequest

import (
	"context"
	"net/http"
	"os"
	"sync"

	"allium"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var shared *mongo.Client

func handler(w http.ResponseWriter, r *http.Request) {
	client, err := allium.Open(os.Getenv("MONGODB_URI")) // want `Open opens a client for each request`
	if err != nil {
		return
	}
	defer client.Close(r.Context())
	db := connect() // want `connect opens a client for each request`
	_ = db
}

func connect() *mongo.Database {
	uri := os.Getenv("MONGODB_URI")
	client, _ := mongo.Connect(options.Client().ApplyURI(uri))
	return client.Database("shop")
}

func each(names []string) {
	for _, name := range names {
		client, _ := mongo.Connect(options.Client().ApplyURI("mongodb://localhost")) // want `Connect opens a client in each turn of the loop`
		client.Database(name).Drop(context.Background())
		client.Disconnect(context.Background())
	}
}

var once sync.Once

func good(w http.ResponseWriter, r *http.Request) {
	once.Do(func() { shared, _ = mongo.Connect(options.Client().ApplyURI("mongodb://localhost")) })
	if shared == nil {
		shared, _ = mongo.Connect(options.Client().ApplyURI("mongodb://localhost"))
	}
	mongo.Connect(options.Client().ApplyURI(r.FormValue("uri"))) // looks at the deployment that it is told
}

func routes() http.HandlerFunc {
	client, _ := allium.Open("mongodb://localhost")
	return func(w http.ResponseWriter, r *http.Request) { client.Ping(r.Context()) }
}

func hosts(uris []string) {
	for _, uri := range uris {
		client, _ := allium.Open(uri)
		client.Close(context.Background())
	}
	for range 3 {
		if client, err := allium.Open("mongodb://localhost"); err == nil {
			client.Close(context.Background())
		}
	}
}
