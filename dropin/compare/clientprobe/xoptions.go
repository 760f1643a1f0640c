package main

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/xoptions"
)

// toolOptions prints what package xoptions takes, and what fields of commands do.
func toolOptions(db *mongo.Database) {
	fields := bson.D{{Key: "bypassEmptyTsReplacement", Value: true}}
	values := []any{true, false, fields, bson.D{}, bson.M{"a": 1}, nil, 1, "x"}
	for _, key := range []string{"rawData", "addCommandFields", "authenticateToAnything", "deployment", "", "x"} {
		for _, v := range values {
			say("xoptions "+key, v, xoptions.SetInternalClientOptions(options.Client(), key, v),
				xoptions.SetInternalBulkWriteOptions(options.BulkWrite(), key, v))
		}
	}
	coll := db.Collection("tool options")
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	zero := bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: bson.Timestamp{}}}
	for _, more := range []bson.D{nil, fields, {}, {{Key: "comment", Value: "c"}, {Key: "maxTimeMS", Value: 5000}},
		{{Key: "nonsense", Value: 1}}} {
		for _, write := range []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(zero),
			mongo.NewUpdateOneModel().SetFilter(bson.D{}).SetUpdate(set),
			mongo.NewReplaceOneModel().SetFilter(bson.D{}).SetReplacement(zero),
			mongo.NewDeleteOneModel().SetFilter(bson.D{}),
		} {
			o := options.BulkWrite()
			err := xoptions.SetInternalBulkWriteOptions(o, "addCommandFields", more)
			res, failed := coll.BulkWrite(ctx, []mongo.WriteModel{write}, o)
			doc, _ := coll.FindOne(ctx, bson.D{}).Raw()
			at, _, found := doc.Lookup("at").TimestampOK()
			say("more fields", err, res, failed, at == 0, found)
		}
	}
}
