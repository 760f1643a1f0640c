package search_test

import (
	"context"
	"fmt"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/mongotest/search"
)

// A test searches what it has just written: the index is ready, and knows the documents, at once.
func ExampleEngine() {
	d, err := mongotest.Open(mongotest.SearchWith(search.Engine()))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	books := client.Database("shop").Collection("books")
	for i, title := range []string{"Walking the Alps", "The walker's map", "A history of maps"} {
		if _, err := books.InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "title", Value: title}}); err != nil {
			panic(err)
		}
	}
	_, err = books.CreateSearchIndex(ctx, allium.SearchIndexModel{Definition: bson.D{
		{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: true}}},
		{Key: "analyzer", Value: "lucene.english"},
	}})
	if err != nil {
		panic(err)
	}
	found, err := books.Aggregate(ctx, bson.A{
		bson.D{{Key: "$search", Value: bson.D{{Key: "text", Value: bson.D{
			{Key: "path", Value: "title"}, {Key: "query", Value: "a walk with a map"},
		}}}}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "title", Value: 1}, {Key: "_id", Value: 0}}}},
	})
	if err != nil {
		panic(err)
	}
	for doc, err := range found.Seq(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(doc)
	}
	// Output:
	// {"title":"Walking the Alps"}
	// {"title":"The walker's map"}
	// {"title":"A history of maps"}
}
