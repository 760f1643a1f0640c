package setstruct

import (
	"context"

	"allium"
	"allium/bson"

	obson "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

type user struct {
	ID   int      `bson:"_id,omitempty"`
	Name string   `bson:"name,omitempty"`
	Tags []string `bson:"tags,omitempty"`
	Age  int      `bson:"age"`
}

type patch struct {
	Name *string `bson:"name,omitempty"`
}

type goods struct {
	Text string `bson:",omitempty"`
}

func bad(ctx context.Context, c *allium.Collection[goods], o *mongo.Collection, u user, g goods) {
	o.UpdateOne(ctx, obson.M{"_id": 1}, obson.M{"$set": u})                // want `\$set of a whole setstruct.user cannot clear name, tags`
	o.UpdateOne(ctx, obson.M{"_id": 1}, obson.D{{Key: "$set", Value: &u}}) // want `cannot clear name, tags`
	c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": g})                  // want `cannot clear text`
}

func good(ctx context.Context, c *allium.Collection[goods], o *mongo.Collection, u user, p patch, g goods) {
	o.UpdateOne(ctx, obson.M{"_id": 1}, obson.M{"$set": p})
	o.UpdateOne(ctx, obson.M{"_id": 1}, obson.M{"$set": g}) // says not that it is all of a document
	o.UpdateOne(ctx, obson.M{"_id": 1}, obson.M{"$set": obson.M{"name": u.Name}})
	o.ReplaceOne(ctx, obson.M{"_id": 1}, u)
	allium.Save(ctx, c, "version", g, &g)
}
