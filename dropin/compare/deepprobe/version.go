package main

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// What differs between the versions of the official driver is in this file alone: that of version 1
// is testdata/deepprobe1/version.go.txt.
type (
	ObjectID     = bson.ObjectID
	ClientOption = *options.ClientOptions
	Session      = *mongo.Session
	InSession    = context.Context

	TransactionOption = options.Lister[options.TransactionOptions]
)

func newClient(opts ...ClientOption) (*mongo.Client, error) { return mongo.Connect(opts...) }

func distinct(ctx context.Context, c *mongo.Collection, field string, filter any) (any, error) {
	r := c.Distinct(ctx, field, filter)
	if r.Err() != nil {
		return nil, r.Err()
	}
	var out []any
	err := r.Decode(&out)
	return out, err
}

func clone(c *mongo.Collection, o *options.CollectionOptionsBuilder) *mongo.Collection {
	return c.Clone(o)
}

var (
	newCollectionOptions = options.Collection
	updateOptions        = options.UpdateOne
	updateManyOptions    = options.UpdateMany
	deleteOptions        = options.DeleteOne
	deleteManyOptions    = options.DeleteMany
)

const poolReady = event.ConnectionPoolReady

func filters() []any { return []any{} }

func failureOf(e *event.CommandFailedEvent) any { return told(e.Failure) }

// moreOptionals are the methods that version 1 does not have.
func moreOptionals(c *mongo.Collection) []optional {
	update := mongo.NewClientUpdateOneModel().SetFilter(d()).SetUpdate(d("$set", d("a", 1)))
	return []optional{
		{c.Database().Client(), "BulkWrite", options.ClientBulkWrite, []any{[]mongo.ClientBulkWrite{
			{Database: "zeros", Collection: "c", Model: update}}}},
		{c.Database().GridFSBucket(), "Find", options.GridFSFind, []any{d()}},
		{c.Database(), "RunCommand", options.RunCmd, []any{d("ping", 1)}},
	}
}

// The codecs of registries.
type (
	Registry         = bson.Registry
	ValueEncoder     = bson.ValueEncoder
	ValueDecoder     = bson.ValueDecoder
	ValueEncoderFunc = bson.ValueEncoderFunc
	ValueDecoderFunc = bson.ValueDecoderFunc
	EncodeContext    = bson.EncodeContext
	DecodeContext    = bson.DecodeContext
	ValueWriter      = bson.ValueWriter
	ValueReader      = bson.ValueReader
)

func encode(r *Registry, w *bytes.Buffer, v any) error {
	e := bson.NewEncoder(bson.NewDocumentWriter(w))
	e.SetRegistry(r)
	return e.Encode(v)
}

func decode(r *Registry, doc []byte, v any) error {
	x := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
	x.SetRegistry(r)
	return x.Decode(v)
}
