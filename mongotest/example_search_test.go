package mongotest_test

import (
	"context"
	"fmt"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/mongotest/search"
)

// Vectors are compared exactly: the scores are those of the documentation.
func ExampleSearchWith() {
	d := open(mongotest.SearchWith(search.Engine()))
	defer d.Stop()
	ctx := context.Background()
	client := connect(d.URI())
	defer client.Close(ctx)
	points := client.Database("app").Collection("points")
	for id, v := range [][]float64{{0, 1}, {1, 0}, {1, 1}} {
		if _, err := points.InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "v", Value: v}}); err != nil {
			panic(err)
		}
	}
	_, err := points.CreateSearchIndex(ctx, allium.SearchIndexModel{Type: "vectorSearch", Definition: bson.D{{Key: "fields", Value: bson.A{bson.D{
		{Key: "type", Value: "vector"}, {Key: "path", Value: "v"}, {Key: "numDimensions", Value: 2}, {Key: "similarity", Value: "cosine"},
	}}}}})
	if err != nil {
		panic(err)
	}
	found, err := points.Aggregate(ctx, bson.A{
		bson.D{{Key: "$vectorSearch", Value: bson.D{
			{Key: "index", Value: "default"}, {Key: "path", Value: "v"}, {Key: "queryVector", Value: bson.A{2.0, 0.0}},
			{Key: "exact", Value: true}, {Key: "limit", Value: 2},
		}}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "score", Value: bson.D{{Key: "$meta", Value: "vectorSearchScore"}}}}}},
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
	// {"_id":1,"score":1.0}
	// {"_id":2,"score":0.8535534143447876}
}
