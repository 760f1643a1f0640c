package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/xoptions"
)

// clientBulks prints the results and the errors of bulk writes of a client, each with all that the
// server says of it.
func clientBulks(db *mongo.Database) {
	db = db.Client().Database("bulks")
	check(db.Drop(ctx))
	check(db.CreateCollection(ctx, "v", options.CreateCollection().SetValidator(
		bson.D{{Key: "n", Value: bson.D{{Key: "$type", Value: "int"}}}})))
	insert := func(coll string, doc any) mongo.ClientBulkWrite {
		return mongo.ClientBulkWrite{Database: db.Name(), Collection: coll,
			Model: mongo.NewClientInsertOneModel().SetDocument(doc)}
	}
	update := func(coll string, filter, u any) mongo.ClientBulkWrite {
		return mongo.ClientBulkWrite{Database: db.Name(), Collection: coll,
			Model: mongo.NewClientUpdateOneModel().SetFilter(filter).SetUpdate(u).SetUpsert(true)}
	}
	remove := func(coll string, filter any) mongo.ClientBulkWrite {
		return mongo.ClientBulkWrite{Database: db.Name(), Collection: coll,
			Model: mongo.NewClientDeleteManyModel().SetFilter(filter)}
	}
	id := func(n int) bson.D { return bson.D{{Key: "_id", Value: n}} }
	set := func(key string, v any) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: key, Value: v}}}} }
	replace := mongo.ClientBulkWrite{Database: db.Name(), Collection: "a",
		Model: mongo.NewClientReplaceOneModel().SetFilter(id(20)).SetReplacement(bson.D{}).SetUpsert(true)}
	writes := [][]mongo.ClientBulkWrite{
		{insert("a", id(1)), insert("a", id(1)), insert("a", id(2)), update("a", id(7), set("x", 1))},
		{insert("v", bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: "x"}}),
			insert("v", bson.D{{Key: "_id", Value: 2}, {Key: "n", Value: int32(1)}}), update("v", id(2), set("n", "y")),
			remove("v", bson.D{})},
		{update("a", id(1), bson.D{{Key: "$nope", Value: 1}}), insert("a", id(9))},
		{insert("a", id(11)), update("a", id(11), set("x", 1)), update("a", id(11), set("x", 1)),
			update("a", id(12), set("x", 1)), replace, replace, remove("a", bson.D{})},
	}
	command := []string{"bulkWrite"}
	concern := bson.D{{Key: "code", Value: 100}, {Key: "errmsg", Value: "not met"},
		{Key: "errInfo", Value: bson.D{{Key: "a", Value: 1}}}}
	for i, list := range writes {
		for n := range 4 {
			for k, fail := range []bson.D{nil, {{Key: "errorCode", Value: 8}, {Key: "failCommands", Value: command}},
				{{Key: "writeConcernError", Value: concern}, {Key: "failCommands", Value: command}},
				{{Key: "errorCode", Value: 8}, {Key: "errorLabels", Value: []string{"Foo"}},
					{Key: "failCommands", Value: command}}} {
				for _, name := range []string{"a", "v"} {
					_, err := db.Collection(name).DeleteMany(ctx, bson.D{})
					check(err)
				}
				if fail != nil {
					failPoint := bson.D{{Key: "configureFailPoint", Value: "failCommand"},
						{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}}, {Key: "data", Value: fail}}
					check(db.Client().Database("admin").RunCommand(ctx, failPoint).Err())
				}
				res, err := db.Client().BulkWrite(ctx, list,
					options.ClientBulkWrite().SetVerboseResults(n&1 != 0).SetOrdered(n&2 != 0))
				tellBulk(fmt.Sprint("client bulk ", i, n, k), res, err)
			}
		}
	}
	collectionUUIDs(insert)
}

// tellBulk prints a result and all that is in an error.
func tellBulk(what string, res *mongo.ClientBulkWriteResult, err error) {
	say(what, res)
	var e mongo.ClientBulkWriteException
	if !errors.As(err, &e) {
		say(what+" error", err)
		return
	}
	if e.WriteError != nil {
		say(what+" top", e.WriteError.Code, e.WriteError.Message, e.WriteError.Details)
	}
	for i := range 10 {
		if w, ok := e.WriteErrors[i]; ok {
			say(fmt.Sprint(what, " write ", i), w.Index, w.Code, w.Message, w.Raw, w.Details)
		}
	}
	for _, w := range e.WriteConcernErrors {
		say(what+" concern", w.Name, w.Code, w.Message, w.Raw, w.Details)
	}
	say(what+" partial", e.PartialResult)
}

// collectionUUIDs prints which namespaces a bulk write has with the option of this name.
func collectionUUIDs(insert func(coll string, doc any) mongo.ClientBulkWrite) {
	var sent bson.RawValue
	client := connect(options.Client().SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.CommandName == "bulkWrite" {
				sent = e.Command.Lookup("nsInfo")
			}
		},
	}))
	defer client.Disconnect(ctx)
	a, b := slices.Repeat([]byte{1}, 16), slices.Repeat([]byte{2}, 16)
	for i, uuids := range [][][]byte{nil, {}, {a}, {a, b}, {nil, b}, {{}, b}, {nil, nil}, {a, b, a}, {a, a, b},
		{b, nil, b}, {a, a, a}, {{1}, {1, 0}, {1}}} {
		for _, names := range [][]string{{"x"}, {"x", "x"}, {"x", "y"}, {"x", "y", "x"}, {"x", "x", "y"}} {
			o := options.ClientBulkWrite()
			check(xoptions.SetInternalClientBulkWriteOptions(o, "collectionUUIDs", uuids))
			list := make([]mongo.ClientBulkWrite, len(names))
			for i, name := range names {
				list[i] = insert(name, bson.D{})
			}
			sent = bson.RawValue{}
			res, err := client.BulkWrite(ctx, list, o)
			say(fmt.Sprint("UUIDs ", i, names), sent, res != nil, err)
		}
	}
}
