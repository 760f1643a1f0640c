package updateform

import (
	"context"

	"allium"
	"allium/bson"

	obson "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

type user struct {
	ID   int `bson:"_id"`
	Name string
}

type change struct {
	Set user `bson:"$set"`
}

type own struct{ Name string }

func (own) MarshalBSON() ([]byte, error) { return nil, nil }

func bad(ctx context.Context, c *allium.UntypedCollection, o *mongo.Collection, u user) {
	c.UpdateOne(ctx, bson.M{}, bson.M{"name": "x"})                                              // want `UpdateOne needs operators: {\$set: {name: …}}`
	c.UpdateMany(ctx, bson.M{}, bson.D{{Key: "$set", Value: bson.M{}}, {Key: "name", Value: 1}}) // want `UpdateMany needs operators`
	c.UpdateOne(ctx, bson.M{}, bson.M{})                                                         // want `an empty update is refused`
	o.UpdateOne(ctx, obson.M{}, u)                                                               // want `UpdateOne needs operators: {\$set: …} around the updateform.user, or ReplaceOne`
	o.FindOneAndUpdate(ctx, obson.M{}, &u)                                                       // want `FindOneAndUpdate needs operators`
	o.ReplaceOne(ctx, obson.M{}, obson.M{"$set": obson.M{"name": "x"}})                          // want `ReplaceOne replaces the document: \$set is for updates`
	c.ReplaceOne(ctx, bson.M{}, bson.M{"$set": bson.M{"name": "x"}})                             // want `ReplaceOne replaces the document`
	_ = mongo.NewUpdateOneModel().SetUpdate(u)                                                   // want `SetUpdate needs operators`
	_ = &mongo.ReplaceOneModel{Replacement: obson.M{"$set": 1}}                                  // want `is for updates`
}

func good(ctx context.Context, c *allium.UntypedCollection, o *mongo.Collection, u user, m obson.M) {
	c.UpdateOne(ctx, bson.M{}, bson.M{"$set": u})
	c.UpdateOne(ctx, bson.M{}, bson.A{bson.M{"$set": u}})
	o.UpdateOne(ctx, obson.M{}, change{u})
	o.UpdateOne(ctx, obson.M{}, own{})
	o.UpdateOne(ctx, obson.M{}, m)
	o.ReplaceOne(ctx, obson.M{}, u)
	update := obson.M{}
	update["$set"] = u
	o.UpdateOne(ctx, obson.M{}, update)
}
