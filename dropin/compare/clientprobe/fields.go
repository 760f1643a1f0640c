package main

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/xoptions"
)

// An operation has options that package xoptions sets.
type operation struct {
	name string
	set  func(key string, v any) error          // of new options
	run  func(key string, v any) (error, error) // sets a new option, and calls the operation with it
}

func withOption[B any](name string, newOptions func() B, set func(B, string, any) error,
	run func(B) error) operation {
	return operation{name, func(key string, v any) error { return set(newOptions(), key, v) },
		func(key string, v any) (error, error) {
			o := newOptions()
			if err := set(o, key, v); err != nil {
				return err, nil
			}
			return nil, run(o)
		}}
}

// withOptions returns each operation whose options package xoptions sets.
func withOptions(client *mongo.Client, coll *mongo.Collection) []operation {
	all, change := bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	index := mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}}
	insert := mongo.NewInsertOneModel().SetDocument(bson.D{{Key: "b", Value: 1}})
	read := func(cur *mongo.Cursor, err error) error {
		if err == nil {
			var docs []bson.D
			err = cur.All(ctx, &docs)
		}
		return err
	}
	return []operation{
		withOption("Aggregate", options.Aggregate, xoptions.SetInternalAggregateOptions,
			func(o *options.AggregateOptionsBuilder) error { return read(coll.Aggregate(ctx, bson.A{}, o)) }),
		withOption("BulkWrite", options.BulkWrite, xoptions.SetInternalBulkWriteOptions,
			func(o *options.BulkWriteOptionsBuilder) error {
				_, err := coll.BulkWrite(ctx, []mongo.WriteModel{insert, mongo.NewDeleteOneModel().SetFilter(all),
					mongo.NewUpdateManyModel().SetFilter(all).SetUpdate(change)}, o)
				return err
			}),
		withOption("Client.BulkWrite", options.ClientBulkWrite, xoptions.SetInternalClientBulkWriteOptions,
			func(o *options.ClientBulkWriteOptionsBuilder) error {
				_, err := client.BulkWrite(ctx, []mongo.ClientBulkWrite{{Database: coll.Database().Name(),
					Collection: coll.Name(), Model: mongo.NewClientInsertOneModel().SetDocument(bson.D{})}}, o)
				return err
			}),
		withOption("CountDocuments", options.Count, xoptions.SetInternalCountOptions,
			func(o *options.CountOptionsBuilder) error { _, err := coll.CountDocuments(ctx, all, o); return err }),
		withOption("CreateOne", options.CreateIndexes, xoptions.SetInternalCreateIndexesOptions,
			func(o *options.CreateIndexesOptionsBuilder) error {
				_, err := coll.Indexes().CreateOne(ctx, index, o)
				return err
			}),
		withOption("DeleteMany", options.DeleteMany, xoptions.SetInternalDeleteManyOptions,
			func(o *options.DeleteManyOptionsBuilder) error {
				_, err := coll.DeleteMany(ctx, bson.D{{Key: "x", Value: 1}}, o)
				return err
			}),
		withOption("DeleteOne", options.DeleteOne, xoptions.SetInternalDeleteOneOptions,
			func(o *options.DeleteOneOptionsBuilder) error { _, err := coll.DeleteOne(ctx, all, o); return err }),
		withOption("Distinct", options.Distinct, xoptions.SetInternalDistinctOptions,
			func(o *options.DistinctOptionsBuilder) error { return coll.Distinct(ctx, "a", all, o).Err() }),
		withOption("DropOne", options.DropIndexes, xoptions.SetInternalDropIndexesOptions,
			func(o *options.DropIndexesOptionsBuilder) error { return coll.Indexes().DropOne(ctx, "a_1", o) }),
		withOption("DropWithKey", options.DropIndexes, xoptions.SetInternalDropIndexesOptions,
			func(o *options.DropIndexesOptionsBuilder) error {
				return coll.Indexes().DropWithKey(ctx, bson.D{{Key: "a", Value: 1}}, o)
			}),
		withOption("DropAll", options.DropIndexes, xoptions.SetInternalDropIndexesOptions,
			func(o *options.DropIndexesOptionsBuilder) error { return coll.Indexes().DropAll(ctx, o) }),
		withOption("EstimatedDocumentCount", options.EstimatedDocumentCount,
			xoptions.SetInternalEstimatedDocumentCountOptions,
			func(o *options.EstimatedDocumentCountOptionsBuilder) error {
				_, err := coll.EstimatedDocumentCount(ctx, o)
				return err
			}),
		withOption("FindOneAndDelete", options.FindOneAndDelete, xoptions.SetInternalFindOneAndDeleteOptions,
			func(o *options.FindOneAndDeleteOptionsBuilder) error { return coll.FindOneAndDelete(ctx, all, o).Err() }),
		withOption("FindOneAndReplace", options.FindOneAndReplace, xoptions.SetInternalFindOneAndReplaceOptions,
			func(o *options.FindOneAndReplaceOptionsBuilder) error {
				return coll.FindOneAndReplace(ctx, all, bson.D{}, o).Err()
			}),
		withOption("FindOneAndUpdate", options.FindOneAndUpdate, xoptions.SetInternalFindOneAndUpdateOptions,
			func(o *options.FindOneAndUpdateOptionsBuilder) error {
				return coll.FindOneAndUpdate(ctx, all, change, o).Err()
			}),
		withOption("FindOne", options.FindOne, xoptions.SetInternalFindOneOptions,
			func(o *options.FindOneOptionsBuilder) error { return coll.FindOne(ctx, all, o).Err() }),
		withOption("Find", func() *options.FindOptionsBuilder { return options.Find().SetBatchSize(2) },
			xoptions.SetInternalFindOptions,
			func(o *options.FindOptionsBuilder) error { return read(coll.Find(ctx, all, o)) }),
		withOption("InsertMany", options.InsertMany, xoptions.SetInternalInsertManyOptions,
			func(o *options.InsertManyOptionsBuilder) error {
				_, err := coll.InsertMany(ctx, []any{bson.D{}, bson.D{}, bson.D{}}, o)
				return err
			}),
		withOption("InsertOne", options.InsertOne, xoptions.SetInternalInsertOneOptions,
			func(o *options.InsertOneOptionsBuilder) error { _, err := coll.InsertOne(ctx, bson.D{}, o); return err }),
		withOption("ListCollections", options.ListCollections, xoptions.SetInternalListCollectionsOptions,
			func(o *options.ListCollectionsOptionsBuilder) error {
				return read(coll.Database().ListCollections(ctx, bson.D{{Key: "name", Value: coll.Name()}}, o))
			}),
		withOption("List", func() *options.ListIndexesOptionsBuilder { return options.ListIndexes().SetBatchSize(1) },
			xoptions.SetInternalListIndexesOptions,
			func(o *options.ListIndexesOptionsBuilder) error { return read(coll.Indexes().List(ctx, o)) }),
		withOption("ListSpecifications", options.ListIndexes, xoptions.SetInternalListIndexesOptions,
			func(o *options.ListIndexesOptionsBuilder) error {
				_, err := coll.Indexes().ListSpecifications(ctx, o)
				return err
			}),
		withOption("ReplaceOne", options.Replace, xoptions.SetInternalReplaceOptions,
			func(o *options.ReplaceOptionsBuilder) error {
				_, err := coll.ReplaceOne(ctx, all, bson.D{}, o)
				return err
			}),
		withOption("UpdateMany", options.UpdateMany, xoptions.SetInternalUpdateManyOptions,
			func(o *options.UpdateManyOptionsBuilder) error {
				_, err := coll.UpdateMany(ctx, all, change, o)
				return err
			}),
		withOption("UpdateOne", options.UpdateOne, xoptions.SetInternalUpdateOneOptions,
			func(o *options.UpdateOneOptionsBuilder) error {
				_, err := coll.UpdateOne(ctx, all, change, o)
				return err
			}),
		withOption("UpdateByID", options.UpdateOne, xoptions.SetInternalUpdateOneOptions,
			func(o *options.UpdateOneOptionsBuilder) error {
				_, err := coll.UpdateByID(ctx, 1, change, o)
				return err
			}),
		withOption("Drop", options.DropCollection, xoptions.SetInternalDropCollectionOptions,
			func(o *options.DropCollectionOptionsBuilder) error { return coll.Drop(ctx, o) }),
		withOption("Drop, encrypted", func() *options.DropCollectionOptionsBuilder {
			return options.DropCollection().SetEncryptedFields(bson.D{{Key: "fields", Value: bson.A{}}})
		}, xoptions.SetInternalDropCollectionOptions,
			func(o *options.DropCollectionOptionsBuilder) error { return coll.Drop(ctx, o) }),
	}
}

// commandFields prints which keys the setters of package xoptions take for each operation, and
// which commands of it then have the fields that are added.
func commandFields(*mongo.Database) {
	var sent []*event.CommandStartedEvent
	client := connect(options.Client().SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) { sent = append(sent, e) },
	}))
	defer client.Disconnect(ctx)
	coll := client.Database("probe").Collection("command fields")
	docs := make([]any, 5)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}}
	}
	unable := bson.D{{Key: "x", Value: make(chan int)}}
	for _, op := range withOptions(client, coll) {
		for _, key := range []string{"rawData", "addCommandFields", "collectionUUIDs", "deployment", ""} {
			for _, v := range []any{true, bson.D{{Key: "comment", Value: 1}}, bson.D(nil), bson.M{"a": 1}, bson.Raw{},
				[][]byte{{1}}, nil} {
				say("xoptions of "+op.name, key, v, op.set(key, v))
			}
		}
		for _, fields := range []bson.D{nil, {}, {{Key: "comment", Value: bson.D{{Key: "b", Value: "c"}}}},
			{{Key: "comment", Value: "b"}, {Key: "maxTimeMS", Value: int64(60_000)}}, {{Key: "nonsense", Value: 1}},
			unable} {
			check(coll.Drop(ctx))
			_, err := coll.InsertMany(ctx, docs)
			check(err)
			_, err = coll.Indexes().CreateMany(ctx, []mongo.IndexModel{{Keys: bson.D{{Key: "a", Value: 1}}},
				{Keys: bson.D{{Key: "c", Value: 1}}}})
			check(err)
			sent = nil
			set, failed := op.run("addCommandFields", fields)
			if failed != nil && len(fields) > 0 && fields[0].Key == "x" {
				failed = errors.New("has no form")
			}
			say("fields of "+op.name, len(fields), set, failed)
			if failed != nil && failed.Error() == "has no form" {
				continue // an encrypted collection's state is dropped first by one of the drivers
			}
			for _, e := range sent {
				added := ""
				for _, key := range []string{"comment", "maxTimeMS", "nonsense", "x"} {
					if v, err := e.Command.LookupErr(key); err == nil {
						added += " " + key + ": " + v.String()
					}
				}
				say("fields sent by "+op.name, e.CommandName, added)
			}
		}
	}
}
