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
	"allium/mongotest"
)

// appWithUsers starts a replica set inside this process, whose database app has a collection of
// three users, and connects to it. A program calls allium.Open with the connection string of its
// own deployment.
func appWithUsers() (client *allium.Client, done func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err = allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	users := client.Database("app").Collection("users")
	if _, err := users.InsertMany(context.Background(), []bson.D{{{Key: "name", Value: "Ada"}}, {{Key: "name", Value: "Grace"}}, {{Key: "name", Value: "Edsger"}}}); err != nil {
		log.Fatal(err)
	}
	return client, func() {
		client.Close(context.Background())
		d.Stop()
	}
}

func ExampleClient_ListDatabases() {
	client, done := appWithUsers()
	defer done()
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
	client, done := appWithUsers()
	defer done()
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
	client, done := appWithUsers()
	defer done()
	if err := client.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	known := client.Topology()
	fmt.Println(known.Kind, known.SetName, known.HasWritableServer())
	// Output: ReplicaSetWithPrimary rs0 true
}

func ExampleDatabase_ListCollections() {
	client, done := appWithUsers()
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
	client, done := appWithUsers()
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
	client, done := appWithUsers()
	defer done()
	db := client.Database("app")
	reports := db.With(allium.DatabaseOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.SecondaryPreferred}})
	fmt.Println(db.Settings().ReadPreference == nil, reports.Settings().ReadPreference.Mode)
	// Output: true secondaryPreferred
}

func ExampleDatabase_Drop() {
	client, done := appWithUsers()
	defer done()
	ctx, db := context.Background(), client.Database("app")
	if err := db.Drop(ctx); err != nil {
		log.Fatal(err)
	}
	names, err := db.ListCollectionNames(ctx)
	fmt.Println(len(names), err)
	// Output: 0 <nil>
}

func ExampleCollection_Drop() {
	client, done := appWithUsers()
	defer done()
	ctx := context.Background()
	users := client.Database("app").Collection("users")
	fmt.Println(users.Drop(ctx), users.Drop(ctx))
	// Output: <nil> <nil>
}

func ExampleCollection_CreateIndexes() {
	client, done := appWithUsers()
	defer done()
	ctx := context.Background()
	users := client.Database("app").Collection("users")
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
	client, done := appWithUsers()
	defer done()
	ctx := context.Background()
	cur, err := client.Database("app").Collection("users").ListIndexes(ctx)
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
	client, done := appWithUsers()
	defer done()
	ctx := context.Background()
	users := client.Database("app").Collection("users")
	definition := bson.M{"mappings": bson.M{"dynamic": true}}
	_, err := users.CreateSearchIndexes(ctx, []allium.SearchIndexModel{{Name: "words", Definition: definition}})
	fmt.Println(refusal(err))
	_, err = users.ListSearchIndexes(ctx, allium.ListSearchIndexesOptions{Name: "words"})
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
	client, done := appWithUsers()
	defer done()
	if err := client.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	topology := client.Topology()
	fmt.Println(topology.HasWritableServer(), allium.HasReadableServer(topology, &consistency.ReadPreference{Mode: consistency.Secondary}))
	// Output: true false
}
