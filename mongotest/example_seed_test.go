package mongotest_test

import (
	"context"
	"fmt"
	"strings"
	"testing/fstest"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// users are fixtures; a test has them in a folder, and takes os.DirFS("testdata/seed") or an
// embed.FS.
var users = fstest.MapFS{
	"app/users.json":      {Data: []byte(`{"_id": 1, "name": "Ada"}` + "\n" + `{"_id": 2, "name": "Grace"}`)},
	"app/users.meta.json": {Data: []byte(`{"indexes": [{"key": {"name": 1}, "unique": true}]}`)},
	"app/orders.csv":      {Data: []byte("_id,user,placed.date(2006-01-02)\n1,2,2024-02-29\n")},
}

func ExampleSeed() {
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.Seed(users))
	if err != nil {
		panic(err) // seed: app/users.json:2:7: ...
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)
	order, err := client.Database("app").Collection("orders").FindOne(ctx, bson.D{{Key: "_id", Value: 1}})
	fmt.Println(order, err)
	// Output: {"_id":1,"user":2,"placed":{"$date":"2024-02-29T00:00:00Z"}} <nil>
}

func ExampleSeedFile() {
	_, err := mongotest.Open(mongotest.SeedFile(fstest.MapFS{"seed.json": {Data: []byte("{\"app.users\": [\n  {\"_id\": 1},\n  {\"_id\": 1}\n]}")}}, "seed.json"))
	fmt.Println(err)
	// Output: seed: seed.json:3:3: insert into app.users: DuplicateKey: E11000 duplicate key error collection: app.users index: _id_ dup key: { _id: 1 }
}

func ExamplePrepare() {
	d, err := mongotest.Open(mongotest.Auth("root", "secret"), mongotest.Prepare(func(d *mongotest.Deployment) error {
		return d.AddUser(mongotest.User{Name: "app", Password: "apple", Roles: []string{"readWriteAnyDatabase"}})
	}))
	if err != nil {
		panic(err)
	}
	defer d.Stop() // nobody has seen it without the user
	fmt.Println(len(d.Hosts()))
	// Output: 1
}

func ExampleDeployment_Inside() {
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.Auth("root", "secret"), mongotest.TLS())
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	err = d.Inside(func(uri string) error { // no user and no TLS
		client, err := allium.Open(uri, allium.ClientOptions{Dialer: d})
		if err != nil {
			return err
		}
		defer client.Close(ctx)
		_, err = client.Database("app").Collection("c").InsertOne(ctx, bson.D{{Key: "a", Value: 1}})
		return err
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleDeployment_Restore() {
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.ReplicaSet(1), mongotest.Seed(users))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	fresh, err := d.Snapshot() // once, with all fixtures
	if err != nil {
		panic(err)
	}
	client, err := allium.Open(d.URI())
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)
	coll := client.Database("app").Collection("users")
	for range 3 { // before each test
		if err := d.Restore(fresh); err != nil {
			panic(err)
		}
		if _, err := coll.DeleteOne(ctx, bson.D{{Key: "name", Value: "Ada"}}); err != nil {
			panic(err)
		}
		n, err := coll.CountDocuments(ctx, bson.D{})
		fmt.Println(n, err)
	}
	// Output:
	// 1 <nil>
	// 1 <nil>
	// 1 <nil>
}

func ExampleFrom() {
	d, err := mongotest.Open(mongotest.Seed(users))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	fresh, err := d.Snapshot()
	if err != nil {
		panic(err)
	}
	for range 2 { // tests that run in parallel, each with a copy
		mine, err := mongotest.Open(mongotest.From(fresh))
		if err != nil {
			panic(err)
		}
		defer mine.Stop()
		fmt.Println(mine.Hosts()[0] != d.Hosts()[0])
	}
	// Output:
	// true
	// true
}

func ExampleSnapshotCommands() {
	ctx := context.Background()
	d, err := mongotest.Open(mongotest.SnapshotCommands(), mongotest.Seed(users))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)
	for _, cmd := range []string{"saveSnapshot", "restoreSnapshot", "dropSnapshot"} {
		_, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: cmd, Value: "fresh"}})
		fmt.Println(cmd, err)
	}
	// Output:
	// saveSnapshot <nil>
	// restoreSnapshot <nil>
	// dropSnapshot <nil>
}

func ExampleBind() {
	d, err := mongotest.Open(mongotest.Bind("0.0.0.0"), mongotest.Auth("root", "secret"), mongotest.Advertise("localhost"))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	host, _, _ := strings.Cut(d.Hosts()[0], ":")
	fmt.Println(host)
	// Output: localhost
}

func ExampleAdvertise() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1), mongotest.Advertise("localhost"))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	fmt.Println(strings.HasPrefix(d.URI(), "mongodb://localhost:"), strings.HasSuffix(d.URI(), "replicaSet=rs0"))
	// Output: true true
}
