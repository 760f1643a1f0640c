package emptyfilter

import (
	"context"

	"allium"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

type query struct {
	Name string `bson:"name,omitempty"`
	City string `bson:"city,omitempty"`
}

type byTenant struct {
	Tenant int    `bson:"tenant"`
	Name   string `bson:"name,omitempty"`
}

func bad(ctx context.Context, c *allium.UntypedCollection, o *mongo.Collection, q query) {
	c.DeleteMany(ctx, q)                    // want `if no field of the emptyfilter.query is set, the filter is empty and DeleteMany takes any document`
	o.UpdateMany(ctx, &q, mongo.Pipeline{}) // want `UpdateMany takes any document`
	o.DeleteOne(ctx, query{Name: q.City})   // want `DeleteOne takes any document`
	o.FindOneAndDelete(ctx, query{})        // want `FindOneAndDelete takes any document`
}

func good(ctx context.Context, c *allium.UntypedCollection, o *mongo.Collection, q query, b byTenant) {
	c.DeleteMany(ctx, b)
	o.Find(ctx, q)
	o.DeleteMany(ctx, query{Name: "x"})
}
