package migrate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing/fstest"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/patterns/migrate"
)

type person struct {
	ID   int    `bson:"_id"`
	Name string `bson:"name"`
}

// steps is what a program changes in its data, from the beginning. New steps come at the end.
func steps() []migrate.Step {
	return []migrate.Step{
		{
			Name: "2026-11 split names",
			Up: migrate.Each("people", func(_ context.Context, p person) (any, error) {
				first, last, _ := strings.Cut(p.Name, " ")
				return bson.D{{Key: "$set", Value: bson.D{{Key: "first", Value: first}, {Key: "last", Value: last}}}}, nil
			}),
			Down: migrate.Each("people", func(context.Context, person) (any, error) {
				return bson.D{{Key: "$unset", Value: bson.D{{Key: "first", Value: 1}, {Key: "last", Value: 1}}}}, nil
			}),
		},
		{
			Name: "2026-12 count people",
			Up: migrate.InTransaction(func(ctx context.Context, db *allium.Database) error {
				n, err := db.Collection("people").CountDocuments(ctx, bson.D{})
				if err != nil {
					return err
				}
				_, err = db.Collection("counts").InsertOne(ctx, bson.D{{Key: "people", Value: n}})
				return err
			}),
		},
		{
			Name: "2027-01 rename counts",
			Up: migrate.Once(func(ctx context.Context, db *allium.Database) error { // it may be called twice
				names, err := db.ListCollectionNames(ctx, allium.ListCollectionsOptions{Filter: bson.D{{Key: "name", Value: "counts"}}})
				if err != nil || len(names) == 0 {
					return err
				}
				return db.Collection("counts").Rename(ctx, "figures")
			}),
		},
	}
}

// seeded returns a database with documents of production's shape, that ends with the Example.
func seeded() (db *allium.Database, end func()) {
	files := fstest.MapFS{"app/people.jsonl": {Data: []byte(`{"_id": 1, "name": "Ada Lovelace"}` + "\n" + `{"_id": 2, "name": "Grace Hopper"}`)}}
	d, err := mongotest.Open(mongotest.ReplicaSet(1), mongotest.Seed(files))
	if err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	return client.Database("app"), func() {
		client.Close(context.Background())
		d.Stop()
	}
}

// A migration is tried on a deployment in the test's process, with a seed.
func Example() {
	db, end := seeded()
	defer end()
	ctx := context.Background()

	done, err := migrate.Run(ctx, db, steps())
	for _, s := range done {
		fmt.Println(s.State, s.Name, s.Modified)
	}
	fmt.Println(err)
	ada, err := db.Collection("people").FindOne(ctx, bson.D{{Key: "_id", Value: 1}})
	fmt.Println(ada, err)

	done, err = migrate.Run(ctx, db, steps())
	fmt.Println(len(done), err)
	// Output:
	// done 2026-11 split names 2
	// done 2026-12 count people 0
	// done 2027-01 rename counts 0
	// <nil>
	// {"_id":1,"name":"Ada Lovelace","first":"Ada","last":"Lovelace"} <nil>
	// 0 <nil>
}

func ExampleList() {
	db, end := seeded()
	defer end()
	ctx := context.Background()
	if _, err := migrate.Run(ctx, db, steps(), migrate.Options{Steps: 1}); err != nil {
		log.Fatal(err)
	}

	list, err := migrate.List(ctx, db, steps())
	for _, s := range list {
		fmt.Println(s.State, s.Name)
	}
	fmt.Println(err)
	// Output:
	// done 2026-11 split names
	// pending 2026-12 count people
	// pending 2027-01 rename counts
	// <nil>
}

func ExampleDown() {
	db, end := seeded()
	defer end()
	ctx := context.Background()
	if _, err := migrate.Run(ctx, db, steps(), migrate.Options{Steps: 1}); err != nil {
		log.Fatal(err)
	}

	undone, err := migrate.Down(ctx, db, steps())
	fmt.Println(len(undone), undone[0].Name, err)
	ada, err := db.Collection("people").FindOne(ctx, bson.D{{Key: "_id", Value: 1}})
	fmt.Println(ada, err)
	// Output:
	// 1 2026-11 split names <nil>
	// {"_id":1,"name":"Ada Lovelace"} <nil>
}

func ExampleUnlock() {
	db, end := seeded()
	defer end()
	ctx := context.Background()
	if _, err := migrate.Run(ctx, db, steps()); err != nil {
		log.Fatal(err)
	}

	fmt.Println(migrate.Unlock(ctx, db))
	holder, err := migrate.Holder(ctx, db)
	fmt.Println(holder.Held(), err)
	// Output:
	// <nil>
	// false <nil>
}

// A program writes its steps for "allium migrate status".
func ExampleWriteJSON() {
	if err := migrate.WriteJSON(os.Stdout, steps()[1:2]); err != nil {
		log.Fatal(err)
	}
	read, err := migrate.ReadJSON(strings.NewReader(`[{"name": "2026-11 split names", "sum": "0"}]`))
	fmt.Println(read[0].Name, err)
	// Output:
	// [
	//   {
	//     "name": "2026-12 count people",
	//     "sum": "d4b1c0a305d8aeb7"
	//   }
	// ]
	// 2026-11 split names <nil>
}
