package allium_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/mongoerr"
)

func ExampleClient_ListDatabases() {
	client, done := connect()
	defer done()
	people(client)
	infos, err := client.ListDatabases(context.Background(), allium.ListDatabasesOptions{Filter: bson.M{"name": "app"}})
	for _, info := range infos {
		fmt.Println(info.Name, info.Empty)
	}
	fmt.Println(err)
	// Output:
	// app false
	// <nil>
}

// Every collection of every database.
func ExampleClient_Databases() {
	client, done := connect()
	defer done()
	people(client)
	ctx := context.Background()
	dbs, err := client.Databases(ctx, allium.ListDatabasesOptions{Filter: bson.M{"name": bson.M{"$nin": bson.A{"admin", "config", "local"}}}})
	if err != nil {
		log.Fatal(err)
	}
	for _, db := range dbs {
		colls, err := db.Collections(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for _, coll := range colls {
			n, err := coll.EstimatedDocumentCount(ctx)
			fmt.Println(db.Name(), coll.Name(), n, err)
		}
	}
	// Output: app users 3 <nil>
}

func ExampleClient_Topology() {
	client, done := connect()
	defer done()
	if err := client.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	known := client.Topology()
	fmt.Println(known.Kind, known.SetName, known.HasWritableServer())
	// Output: ReplicaSetWithPrimary rs0 true
}

func ExampleDatabase_ListCollections() {
	client, done := connect()
	defer done()
	ctx, db := context.Background(), client.Database("app")
	if err := db.CreateCollection(ctx, "adults", allium.CreateCollectionOptions{ViewOn: "users", Pipeline: bson.A{}}); err != nil {
		log.Fatal(err)
	}
	cur, err := db.ListCollections(ctx, allium.ListCollectionsOptions{Filter: bson.M{"type": "view"}})
	if err != nil {
		log.Fatal(err)
	}
	for info, err := range cur.Seq(ctx) {
		fmt.Println(info.Name, info.Type, info.Options, err)
	}
	// Output: adults view {"viewOn":"users","pipeline":[]} <nil>
}

func ExampleDatabase_Aggregate() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	cur, err := client.Database("admin").Aggregate(ctx, []bson.M{{"$documents": bson.A{bson.M{"n": 1}, bson.M{"n": 2}}}})
	if err != nil {
		log.Fatal(err)
	}
	all, err := cur.All(ctx)
	fmt.Println(all, err)
	// Output: [{"n":1} {"n":2}] <nil>
}

func ExampleDatabase_With() {
	client, done := connect()
	defer done()
	db := client.Database("app")
	reports := db.With(allium.DatabaseOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.SecondaryPreferred}})
	fmt.Println(db.Settings().ReadPreference == nil, reports.Settings().ReadPreference.Mode)
	// Output: true secondaryPreferred
}

func ExampleDatabase_Drop() {
	client, done := connect()
	defer done()
	people(client)
	ctx, db := context.Background(), client.Database("app")
	if err := db.Drop(ctx); err != nil {
		log.Fatal(err)
	}
	names, err := db.ListCollectionNames(ctx)
	fmt.Println(len(names), err)
	// Output: 0 <nil>
}

func ExampleCollection_Drop() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	users := people(client)
	fmt.Println(users.Drop(ctx), users.Drop(ctx))
	// Output: <nil> <nil>
}

func ExampleCollection_CreateIndexes() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	users := people(client)
	names, err := users.CreateIndexes(ctx, []allium.IndexModel{
		{Keys: bson.D{{Key: "name", Value: 1}, {Key: "age", Value: -1}}, Unique: true},
		{Keys: bson.D{{Key: "age", Value: 1}}, Name: "by age"},
	})
	fmt.Println(names, err)
	fmt.Println(users.DropIndexes(ctx))
	// Output:
	// [name_1_age_-1 by age] <nil>
	// <nil>
}

func ExampleCollection_ListIndexes() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	cur, err := people(client).ListIndexes(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for index, err := range cur.Seq(ctx) {
		fmt.Println(index.Name, index.Keys, index.Unique, err)
	}
	// Output: _id_ {"_id":1} false <nil>
}

// Search indexes are a service of Atlas: other deployments refuse each of these calls.
func ExampleCollection_ListSearchIndexes() {
	client, done := connect()
	defer done()
	ctx := context.Background()
	users := people(client)
	definition := bson.M{"mappings": bson.M{"dynamic": true}}
	_, err := users.CreateSearchIndexes(ctx, []allium.SearchIndexModel{{Name: "words", Definition: definition}})
	fmt.Println(refusal(err))
	_, err = users.ListSearchIndexes(ctx, "words")
	fmt.Println(refusal(err))
	fmt.Println(refusal(users.UpdateSearchIndex(ctx, "words", definition)))
	fmt.Println(refusal(users.DropSearchIndex(ctx, "words")))
	// Output:
	// SearchNotEnabled
	// Location6047401
	// SearchNotEnabled
	// SearchNotEnabled
}

// refusal returns the name of a server's error.
func refusal(err error) string {
	var refused *mongoerr.ServerError
	if !errors.As(err, &refused) {
		return fmt.Sprint(err)
	}
	return refused.Name
}

func ExampleHasReadableServer() {
	client, done := connect()
	defer done()
	if err := client.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	topology := client.Topology()
	fmt.Println(topology.HasWritableServer(), allium.HasReadableServer(topology, &consistency.ReadPreference{Mode: consistency.Secondary}))
	// Output: true false
}
