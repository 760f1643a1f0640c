package main

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/drivertest"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/xoptions"
)

// What differs between the versions of the official driver is in this file alone: that of version 1
// is testdata/mockprobe1/version.go.txt.
type (
	InSession = context.Context
	ObjectID  = bson.ObjectID
)

// mocked calls f with the database of a client that gets replies.
func mocked(_ *testing.T, replies []bson.D, f func(*mongo.Database)) {
	opts := options.Client()
	deployment := drivertest.NewMockDeployment(replies...)
	if err := xoptions.SetInternalClientOptions(opts, "deployment", deployment); err != nil {
		panic(err)
	}
	client, err := mongo.Connect(opts)
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Disconnect(ctx) }()
	f(client.Database("db"))
}

func distinct(c *mongo.Collection) (any, error) {
	r := c.Distinct(ctx, "x", bson.D{})
	if r.Err() != nil {
		return nil, r.Err()
	}
	var out []any
	err := r.Decode(&out)
	return out, err
}

func upload(db *mongo.Database) error {
	_, err := db.GridFSBucket().UploadFromStream(ctx, "f", reader())
	return err
}

func download(db *mongo.Database, id any) ([]byte, error) {
	s, err := db.GridFSBucket().OpenDownloadStream(ctx, id)
	if err != nil {
		return nil, err
	}
	return drained(s)
}

func rename(db *mongo.Database, id any) error { return db.GridFSBucket().Rename(ctx, id, "g") }
func remove(db *mongo.Database, id any) error { return db.GridFSBucket().Delete(ctx, id) }

func files(db *mongo.Database) (*mongo.Cursor, error) { return db.GridFSBucket().Find(ctx, bson.D{}) }

// moreCalls are those that version 1 does not have.
func moreCalls() []call {
	model := mongo.NewClientInsertOneModel().SetDocument(d("x", 1))
	return []call{{"Client.BulkWrite", []bson.D{d("ok", 1, "cursor", cursor(0, "firstBatch"),
		"nErrors", 0, "nInserted", 1, "nUpserted", 0, "nMatched", 0, "nModified", 0, "nDeleted", 0)},
		func(db *mongo.Database) []any {
			return got(db.Client().BulkWrite(ctx, []mongo.ClientBulkWrite{{Database: "db", Collection: "c",
				Model: model}}))
		}}}
}
