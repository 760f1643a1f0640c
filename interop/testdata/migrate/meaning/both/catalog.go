package main

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

func init() {
	add("catalog/indexes", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		name, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "name", Value: 1}}, Options: options.Index().SetUnique(true)})
		fmt.Println(name, err)
		names, err := c.Indexes().CreateMany(ctx, []mongo.IndexModel{
			{Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}},
			{Keys: bson.D{{Key: "t", Value: 1}}, Options: options.Index().SetName("ttl").SetExpireAfterSeconds(60)},
		})
		fmt.Println(names, err)
		cur, err := c.Indexes().List(ctx)
		check(err)
		var list []bson.M
		check(cur.All(ctx, &list))
		for _, m := range list {
			fmt.Println(m["name"], m["unique"], m["expireAfterSeconds"])
		}
		_, err = c.InsertOne(ctx, bson.M{"name": "x"})
		check(err)
		_, err = c.InsertOne(ctx, bson.M{"name": "x"})
		fmt.Println(mongo.IsDuplicateKeyError(err))
		_, err = c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "name", Value: 1}}})
		var ce mongo.CommandError
		fmt.Println(errors.As(err, &ce), ce.Code)
		_, err = c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"a": 1, "z": 1}})
		fmt.Println(err != nil)
	})
	add("catalog/collections", func(ctx context.Context, db *mongo.Database) {
		check(db.CreateCollection(ctx, "one"))
		check(db.CreateCollection(ctx, "two", options.CreateCollection().SetCapped(true).SetSizeInBytes(4096)))
		names, err := db.ListCollectionNames(ctx, bson.D{})
		sort.Strings(names)
		fmt.Println(names, err)
		names, err = db.ListCollectionNames(ctx, bson.M{"name": "one"})
		fmt.Println(names, err)
		names, err = db.ListCollectionNames(ctx, bson.M{"name": "none"})
		fmt.Println(names, len(names), err)
		err = db.CreateCollection(ctx, "two")
		var ce mongo.CommandError
		fmt.Println(errors.As(err, &ce), ce.Name)
		check(db.Collection("one").Drop(ctx))
		check(db.Collection("one").Drop(ctx))
		cur, err := db.ListCollections(ctx, bson.D{})
		check(err)
		for cur.Next(ctx) {
			fmt.Println(cur.Current.Lookup("name").StringValue())
		}
	})
	add("catalog/names", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fmt.Println(c.Name(), c.Database().Name() == db.Name(), db.Client() != nil)
		check(db.Client().Ping(ctx, nil))
		check(db.Client().Ping(ctx, readpref.Primary()))
		fill(ctx, c)
		names, err := db.Client().ListDatabaseNames(ctx, bson.M{"name": db.Name()})
		fmt.Println(len(names), err)
	})
	add("catalog/commands", func(ctx context.Context, db *mongo.Database) {
		var reply bson.M
		err := db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Decode(&reply)
		fmt.Println(reply["ok"], err)
		err = db.RunCommand(ctx, bson.M{"ping": 1}).Err()
		fmt.Println(err)
		var s struct{ OK float64 }
		fmt.Println(db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}, options.RunCmd().SetReadPreference(readpref.Primary())).Decode(&s), s.OK)
		raw, err := db.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Raw()
		fmt.Println(len(raw) > 0, err)
	})
}
