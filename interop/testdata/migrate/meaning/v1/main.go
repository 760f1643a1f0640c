// Command program runs small pieces of programs and prints what they do: the same before and after
// they are moved to Allium.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"

	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
)

var cases = map[string]func(ctx context.Context, db *mongo.Database){}

func add(name string, f func(ctx context.Context, db *mongo.Database)) { cases[name] = f }

func open() *mongo.Client {
	client, err := mongo.Connect(context.Background(), options.Client().ApplyURI(os.Getenv("MONGODB_URI")))
	if err != nil {
		panic(err)
	}
	return client
}

func main() {
	ctx := context.Background()
	client := open()
	var list []string
	for name := range cases {
		list = append(list, name)
	}
	sort.Strings(list)
	for i, name := range list {
		fmt.Println("== " + name)
		func() {
			defer func() {
				if p := recover(); p != nil {
					fmt.Println("panic:", strings.SplitN(fmt.Sprint(p), "\n", 2)[0])
				}
			}()
			db := client.Database(fmt.Sprintf("meaning%d", i))
			if err := db.Drop(ctx); err != nil {
				panic(err)
			}
			cases[name](ctx, db)
		}()
	}
	if err := client.Disconnect(ctx); err != nil {
		panic(err)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
