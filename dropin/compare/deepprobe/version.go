package main

import (
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
	deleteOptions        = options.DeleteOne
)

const poolReady = event.ConnectionPoolReady

func filters() []any { return []any{} }

func failureOf(e *event.CommandFailedEvent) any { return told(e.Failure) }
