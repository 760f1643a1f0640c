package main

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func value(name string) any { return values[name]() }

func ids(of ...any) []any {
	docs := make([]any, len(of))
	for i, id := range of {
		docs[i] = bson.D{{Key: "_id", Value: id}}
	}
	return docs
}

func doc(key string, v any) bson.D { return bson.D{{Key: key, Value: v}} }

func insert(id any) mongo.WriteModel { return mongo.NewInsertOneModel().SetDocument(doc("_id", id)) }

func clientInsert(id any) mongo.ClientBulkWrite {
	return mongo.ClientBulkWrite{Database: "walks", Collection: "clientwritten",
		Model: mongo.NewClientInsertOneModel().SetDocument(doc("_id", id))}
}

func clientWrite(m mongo.ClientWriteModel) mongo.ClientBulkWrite {
	return mongo.ClientBulkWrite{Database: "walks", Collection: "clientwritten", Model: m}
}

func of[T any](v T) func() any { return func() any { return v } }

// values are what the steps' arguments name.
var values = map[string]func() any{
	"D":       func() any { return new(bson.D) },
	"Ds":      func() any { return new([]bson.D) },
	"empty":   of[any](bson.D{}),
	"raw":     of[any](bson.Raw(nil)),
	"ts":      of[any](&bson.Timestamp{T: 1, I: 1}),
	"bad":     of[any](doc("$bad", 1)),
	"id0":     of[any](doc("_id", 0)),
	"id9":     of[any](doc("_id", 9)),
	"set":     of[any](doc("$set", doc("n", 5))),
	"badset":  of[any](doc("$bad", doc("n", 5))),
	"setid":   of[any](doc("$set", doc("_id", 50))),
	"upsert":  of[any](options.UpdateOne().SetUpsert(true)),
	"three":   of[any](ids(10, 11, 12)),
	"dup":     of[any](ids(10, 1, 11)),
	"dupdup":  of[any](ids(0, 10, 1, 11, 2)),
	"noids":   of[any]([]any{doc("a", 1), doc("a", 2)}),
	"dupnoid": of[any]([]any{doc("a", 1), doc("_id", 1), doc("a", 2)}),
	"anyhow":  of[any](options.InsertMany().SetOrdered(false)),
	"anybulk": of[any](options.BulkWrite().SetOrdered(false)),
	"mixed": of[any]([]mongo.WriteModel{insert(20), mongo.NewUpdateOneModel().SetFilter(doc("_id", 1)).
		SetUpdate(doc("$set", doc("x", 1))), mongo.NewDeleteOneModel().SetFilter(doc("_id", 2)),
		mongo.NewUpdateOneModel().SetFilter(doc("_id", 30)).SetUpdate(doc("$set", doc("x", 1))).SetUpsert(true)}),
	"dupbulk": of[any]([]mongo.WriteModel{insert(20), insert(1), insert(21),
		mongo.NewDeleteOneModel().SetFilter(doc("_id", 2))}),
	"lastbad": of[any]([]mongo.WriteModel{
		mongo.NewUpdateManyModel().SetFilter(bson.D{}).SetUpdate(doc("$set", doc("x", 1))),
		mongo.NewUpdateOneModel().SetFilter(doc("_id", 40)).SetUpdate(doc("$set", doc("x", 1))).SetUpsert(true),
		insert(0)}),
	"many": func() any {
		var models []mongo.WriteModel
		for i := range 2500 {
			models = append(models, insert(100+i))
		}
		return append(models, insert(0))
	},
	"clientmixed": of[any]([]mongo.ClientBulkWrite{clientInsert(20), clientWrite(mongo.NewClientUpdateOneModel().
		SetFilter(doc("_id", 1)).SetUpdate(doc("$set", doc("x", 1)))), clientWrite(mongo.NewClientDeleteOneModel().
		SetFilter(doc("_id", 2)))}),
	"clientdup": of[any]([]mongo.ClientBulkWrite{clientInsert(20), clientInsert(1), clientInsert(21)}),
	"clientbad": of[any]([]mongo.ClientBulkWrite{clientInsert(1), clientInsert(21)}),
	"clientany": of[any](options.ClientBulkWrite().SetOrdered(false)),
	"verbose":   of[any](options.ClientBulkWrite().SetVerboseResults(true)),
	"quiet":     of[any](options.Collection().SetWriteConcern(writeconcern.Unacknowledged())),
	"a1":        of[any](doc("a", 1)),
	"zz":        of[any](doc("zz", 1)),
	"pipeline":  of[any](mongo.Pipeline{}),
	"ping":      of[any](doc("ping", 1)),
	"badcmd":    of[any](doc("nosuch", 1)),
	"model":     of[any](mongo.IndexModel{Keys: doc("m", 1)}),
	"models":    of[any]([]mongo.IndexModel{{Keys: doc("m", 1)}, {Keys: doc("o", 1)}}),
	"badmodel":  of[any](mongo.IndexModel{Keys: doc("a", "nosuch")}),
	"calls":     of[any](func(context.Context) error { return nil }),
	"fails":     of[any](func(context.Context) error { return errMine }),
	"panics":    of[any](func(context.Context) error { panic(fmt.Sprint("own panic")) }),
	"nested": of[any](func(ctx context.Context) error {
		outer := mongo.SessionFromContext(ctx)
		return client.UseSession(ctx, func(ctx context.Context) error {
			if mongo.SessionFromContext(ctx) == outer {
				return fmt.Errorf("the same session")
			}
			return errMine
		})
	}),
	"sessionopts": of[any](options.Session()),
	"snapshot":    of[any](options.Session().SetSnapshot(true)),
}
