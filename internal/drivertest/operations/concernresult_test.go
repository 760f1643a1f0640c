package operations

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// counted is a document that Save counts the changes of.
type counted struct {
	ID      int `bson:"_id"`
	N       int `bson:"n"`
	Version int `bson:"version"`
}

// concernWrites are the operations whose write concern the server may not meet, and what they tell
// of the write. Each begins with the documents 1 to 3.
var concernWrites = map[string]func(ctx context.Context, client *allium.Client, c *allium.Collection[counted]) (any, error){
	"InsertOne": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.InsertOne(ctx, counted{ID: 9})
	},
	"InsertMany": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.InsertMany(ctx, []counted{{ID: 9}, {ID: 10}})
	},
	"UpdateOne": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.UpdateOne(ctx, byNumber(1), raiseN)
	},
	"UpdateMany": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.UpdateMany(ctx, bson.D{}, raiseN)
	},
	"ReplaceOne, upsert": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.ReplaceOne(ctx, byNumber(9), counted{ID: 9}, allium.ReplaceOptions{Upsert: true})
	},
	"DeleteOne": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.DeleteOne(ctx, byNumber(1))
	},
	"DeleteMany": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.DeleteMany(ctx, bson.D{})
	},
	"FindOneAndUpdate": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndUpdate(ctx, byNumber(1), raiseN)
	},
	"FindOneAndUpdate, none": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndUpdate(ctx, byNumber(9), raiseN)
	},
	"FindOneAndUpdate, upsert": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndUpdate(ctx, byNumber(9), raiseN, allium.FindOneAndUpdateOptions{Upsert: true})
	},
	"FindOneAndReplace": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndReplace(ctx, byNumber(1), counted{ID: 1, N: 7}, allium.FindOneAndReplaceOptions{ReturnNew: true})
	},
	"FindOneAndReplace, none": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndReplace(ctx, byNumber(9), counted{ID: 9})
	},
	"FindOneAndDelete": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndDelete(ctx, byNumber(1))
	},
	"FindOneAndDelete, none": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndDelete(ctx, byNumber(9))
	},
	"BulkWrite": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.BulkWrite(ctx, []allium.WriteModel{c.InsertOneModel(counted{ID: 9}), c.InsertOneModel(counted{ID: 10})})
	},
	"BulkWrite of the client": func(ctx context.Context, client *allium.Client, c *allium.Collection[counted]) (any, error) {
		return client.BulkWrite(ctx, []allium.WriteModel{c.InsertOneModel(counted{ID: 9}), c.UpdateOneModel(byNumber(1), raiseN)},
			allium.ClientBulkWriteOptions{VerboseResults: true})
	},
	"CreateIndex": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}})
	},
	"CreateIndexes": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.CreateIndexes(ctx, []allium.IndexModel{{Keys: bson.D{{Key: "n", Value: 1}}}, {Keys: bson.D{{Key: "version", Value: 1}}, Name: "v"}})
	},
	"Save": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		after := counted{ID: 1, N: 5, Version: 1}
		err := allium.Save(ctx, c, "version", counted{ID: 1, N: 1, Version: 1}, &after)
		return after, err
	},
	"Save, conflict": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		after := counted{ID: 1, N: 5, Version: 8}
		err := allium.Save(ctx, c, "version", counted{ID: 1, N: 1, Version: 8}, &after)
		return after, err
	},
	"RunCommand": func(ctx context.Context, client *allium.Client, c *allium.Collection[counted]) (any, error) {
		reply, err := c.Database().RunCommand(ctx, bson.D{{Key: "delete", Value: c.Name()},
			{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: byNumber(1)}, {Key: "limit", Value: 1}}}}})
		return reply.Lookup("n").String(), err
	},
}

func byNumber(n int) bson.D { return bson.D{{Key: "_id", Value: n}} }

var raiseN = bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}

// TestResultsBesideConcernErrors: a write whose write concern was not met has been done, and tells
// of it what it tells without that error; what it says of itself, such as that there was no
// document, stands beside the error.
func TestResultsBesideConcernErrors(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client := rig.Open(t, d.URI())
	ctx := t.Context()
	for what, run := range concernWrites {
		begin := func() *allium.Collection[counted] {
			c := allium.CollectionOf[counted](client.Database("d"), "c")
			if err := c.Drop(ctx); err != nil {
				t.Fatal(err)
			}
			rig.Must(c.InsertMany(ctx, []counted{{1, 1, 1}, {2, 2, 1}, {3, 3, 1}}))
			return c
		}
		want, wantErr := run(ctx, client, begin())
		c := begin()
		d.FailCommand(t, mongotest.Fail{Times: 1,
			Commands:          []string{"insert", "update", "delete", "findAndModify", "bulkWrite", "createIndexes"},
			WriteConcernError: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting"}}})
		got, err := run(ctx, client, c)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
		if !mentionsConcern(err) {
			t.Errorf("%s: the error is %v", what, err)
		}
		for _, own := range []error{mongoerr.ErrNoDocuments, mongoerr.ErrConflict} {
			if errors.Is(wantErr, own) != errors.Is(err, own) {
				t.Errorf("%s: the error is %v, and without that of the write concern %v", what, err, wantErr)
			}
		}
	}
}

// mentionsConcern reports whether an error is, or has, one of a write concern.
func mentionsConcern(err error) bool {
	var bulk *mongoerr.BulkWriteError
	return errors.As(err, new(*mongoerr.WriteConcernError)) || errors.As(err, &bulk) && len(bulk.WriteConcernErrors) > 0
}
