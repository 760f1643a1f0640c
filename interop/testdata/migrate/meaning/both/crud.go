package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

type item struct {
	ID    int      `bson:"_id" json:"id"`
	Name  string   `bson:"name" json:"name"`
	Tags  []string `bson:"tags" json:"tags"`
	Count int      `bson:"count,omitempty" json:"count"`
}

func fill(ctx context.Context, c *mongo.Collection) {
	_, err := c.InsertMany(ctx, []any{
		item{ID: 1, Name: "a", Tags: []string{"x"}, Count: 1}, item{ID: 2, Name: "b", Tags: []string{}}, item{ID: 3, Name: "c", Count: 3},
	})
	check(err)
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	check(err)
	return string(b)
}

func init() {
	add("crud/nil slice in a filter", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		var none []string
		n, err := c.CountDocuments(ctx, bson.M{"tags": none})
		fmt.Println(n, err)
		n, err = c.CountDocuments(ctx, bson.M{"tags": []string{}})
		fmt.Println(n, err)
		var noMap map[string]int
		n, err = c.CountDocuments(ctx, bson.M{"nothing": noMap})
		fmt.Println(n, err)
		var noBytes []byte
		n, err = c.CountDocuments(ctx, bson.D{{Key: "nothing", Value: noBytes}})
		fmt.Println(n, err)
	})
	add("crud/nil fields are null", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		_, err := c.InsertOne(ctx, struct {
			S []int
			M map[string]int
			B []byte
			A bson.A
			D bson.D
			P *int
		}{})
		check(err)
		for _, f := range []string{"s", "m", "b", "a", "d", "p"} {
			n, err := c.CountDocuments(ctx, bson.M{f: bson.M{"$type": 10}})
			fmt.Println(f, n, err)
		}
	})
	add("crud/nil in updates", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		var none []string
		res, err := c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"tags": none}})
		fmt.Println(res.MatchedCount, res.ModifiedCount, err)
		n, err := c.CountDocuments(ctx, bson.M{"tags": nil})
		fmt.Println(n, err)
		_, err = c.ReplaceOne(ctx, bson.M{"_id": 2}, item{ID: 2})
		check(err)
		n, err = c.CountDocuments(ctx, bson.M{"tags": bson.M{"$type": "null"}})
		fmt.Println(n, err)
	})
	add("crud/typed nil filter", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		var d bson.D
		n, err := c.CountDocuments(ctx, d)
		fmt.Println(n, err != nil)
		var m bson.M
		n, err = c.CountDocuments(ctx, m)
		fmt.Println(n, err)
		cur, err := c.Find(ctx, m)
		check(err)
		var list []item
		check(cur.All(ctx, &list))
		fmt.Println(len(list))
		_, err = c.DeleteMany(ctx, d)
		fmt.Println(err != nil)
	})
	add("crud/results", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		one, err := c.InsertOne(ctx, item{ID: 1, Name: "a"})
		check(err)
		fmt.Printf("%T %v\n", one.InsertedID, one.InsertedID)
		many, err := c.InsertMany(ctx, []any{bson.M{"_id": "two"}, bson.D{{Key: "_id", Value: int64(3)}}, bson.M{"_id": 2.5}})
		check(err)
		for _, id := range many.InsertedIDs {
			fmt.Printf("%T %v\n", id, id)
		}
		up, err := c.UpdateOne(ctx, bson.M{"_id": 9}, bson.M{"$set": bson.M{"x": 1}}, updateUpsert())
		check(err)
		fmt.Printf("%d %d %d %T %v\n", up.MatchedCount, up.ModifiedCount, up.UpsertedCount, up.UpsertedID, up.UpsertedID)
		up, err = c.UpdateMany(ctx, bson.M{}, bson.M{"$set": bson.M{"x": 1}})
		check(err)
		fmt.Println(up.MatchedCount, up.ModifiedCount, up.UpsertedCount, up.UpsertedID)
		del, err := c.DeleteMany(ctx, bson.M{"x": 1})
		check(err)
		fmt.Println(del.DeletedCount)
	})
	add("crud/result after an error", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		one, err := c.InsertOne(ctx, item{ID: 1})
		fmt.Println(one == nil, err != nil)
		many, err := c.InsertMany(ctx, []any{item{ID: 10}, item{ID: 1}, item{ID: 11}})
		fmt.Println(many == nil, err != nil)
		if many != nil {
			fmt.Println(len(many.InsertedIDs))
			for _, id := range many.InsertedIDs {
				fmt.Println(id)
			}
		}
		up, err := c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$noSuch": 1})
		fmt.Println(up == nil, err != nil)
		up, err = c.UpdateMany(ctx, bson.M{"_id": 1}, bson.M{"$noSuch": 1})
		fmt.Println(up == nil, err != nil)
		del, err := c.DeleteOne(ctx, bson.M{"$noSuch": 1})
		fmt.Println(del == nil, err != nil)
		up, err = c.ReplaceOne(ctx, bson.M{"_id": 1}, bson.M{"$set": 1})
		fmt.Println(up == nil, err != nil)
		bulk, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(item{ID: 12}), mongo.NewInsertOneModel().SetDocument(item{ID: 1})})
		fmt.Println(bulk == nil, err != nil)
		if bulk != nil {
			fmt.Println(bulk.InsertedCount)
		}
	})
	add("crud/decode keeps what the document has not", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		_, err := c.InsertOne(ctx, bson.M{"_id": 1, "name": "new"})
		check(err)
		it := item{Name: "old", Count: 7}
		err = c.FindOne(ctx, bson.M{"_id": 1}).Decode(&it)
		fmt.Println(it.ID, it.Name, it.Count, err)
		it2 := item{Name: "default", Count: 7}
		err2 := c.FindOne(ctx, bson.M{"_id": 99}).Decode(&it2)
		fmt.Println(it2.Name, it2.Count, err2 == mongo.ErrNoDocuments)
		m := bson.M{"kept": true}
		check(c.FindOne(ctx, bson.M{"_id": 1}).Decode(&m))
		fmt.Println(len(m), m["kept"])
	})
	add("crud/decode into a fresh variable", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		var it item
		err := c.FindOne(ctx, bson.M{"_id": 1}).Decode(&it)
		fmt.Println(asJSON(it), err)
		var other item
		err = c.FindOneAndDelete(ctx, bson.M{"_id": 3}).Decode(&other)
		fmt.Println(asJSON(other), err)
		var none item
		err = c.FindOne(ctx, bson.M{"_id": 30}).Decode(&none)
		fmt.Println(asJSON(none), errors.Is(err, mongo.ErrNoDocuments))
	})
	add("crud/decode in a loop", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		var it item
		for i := 1; i <= 3; i++ {
			var err error
			err = c.FindOne(ctx, bson.M{"_id": i}).Decode(&it)
			fmt.Println(it.ID, it.Count, err)
		}
	})
	add("crud/find and change", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		var before, after, gone bson.M
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "name", Value: "z"}}}}
		check(c.FindOneAndUpdate(ctx, bson.M{"_id": 1}, set).Decode(&before))
		check(c.FindOneAndUpdate(ctx, bson.M{"_id": 2}, set, options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&after))
		fmt.Println(before["name"], after["name"])
		check(c.FindOneAndReplace(ctx, bson.M{"_id": 3}, bson.M{"name": "r"}, options.FindOneAndReplace().SetReturnDocument(options.After)).Decode(&after))
		fmt.Println(after["name"], after["tags"])
		check(c.FindOneAndDelete(ctx, bson.M{"_id": 1}, options.FindOneAndDelete().SetProjection(bson.M{"name": 1})).Decode(&gone))
		fmt.Println(len(gone))
		err := c.FindOneAndUpdate(ctx, bson.M{"_id": 100}, set, options.FindOneAndUpdate().SetUpsert(true)).Err()
		fmt.Println(err == mongo.ErrNoDocuments)
	})
	add("crud/distinct and counts", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		n, err := c.EstimatedDocumentCount(ctx)
		fmt.Println(n, err)
		n, err = c.CountDocuments(ctx, bson.D{}, options.Count().SetLimit(2))
		fmt.Println(n, err)
		n, err = c.CountDocuments(ctx, bson.D{}, options.Count().SetSkip(1))
		fmt.Println(n, err)
	})
	add("crud/arguments that are refused", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		_, err := c.InsertMany(ctx, []any{})
		fmt.Println(err != nil)
		_, err = c.BulkWrite(ctx, nil)
		fmt.Println(err != nil)
		_, err = c.UpdateOne(ctx, bson.D{}, bson.D{{Key: "x", Value: 1}})
		fmt.Println(err != nil)
		_, err = c.ReplaceOne(ctx, bson.D{}, bson.D{{Key: "$set", Value: 1}})
		fmt.Println(err != nil)
		_, err = c.Find(ctx, bson.D{}, options.Find().SetSort(bson.M{"a": 1, "b": 1}))
		fmt.Println(err != nil)
		_, err = c.InsertOne(ctx, 5)
		fmt.Println(err != nil)
		_, err = c.InsertOne(ctx, []string{"a"})
		fmt.Println(err != nil)
	})
	add("crud/options in variables", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		opts := options.Find()
		opts.SetSort(bson.D{{Key: "_id", Value: -1}})
		opts.SetLimit(2)
		opts.SetSkip(1)
		cur, err := c.Find(ctx, bson.D{}, opts)
		check(err)
		var list []item
		check(cur.All(ctx, &list))
		for _, it := range list {
			fmt.Println(it.ID, it.Tags == nil, len(it.Tags))
		}
		proj := options.FindOne().SetProjection(bson.D{{Key: "name", Value: 1}, {Key: "_id", Value: 0}}).SetSort(bson.D{{Key: "_id", Value: -1}})
		var m bson.M
		check(c.FindOne(ctx, bson.D{}, proj).Decode(&m))
		fmt.Println(asJSON(m))
	})
	add("crud/empty id", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		type doc struct {
			ID   any    `bson:"_id,omitempty"`
			Name string `bson:"name"`
		}
		res, err := c.InsertOne(ctx, doc{Name: "a"})
		check(err)
		fmt.Println(len(fmt.Sprint(res.InsertedID)))
		type bare struct {
			ID any `bson:"_id"`
		}
		res, err = c.InsertOne(ctx, bare{})
		fmt.Printf("%T %v\n", res.InsertedID, err)
		var m bson.M
		check(c.FindOne(ctx, bson.M{"name": "a"}).Decode(&m))
		fmt.Println(len(fmt.Sprint(m["_id"])))
	})
}
