package maporder

import (
	"context"

	"allium"
	"allium/bson"

	old "go.mongodb.org/mongo-driver/bson"
	oldmongo "go.mongodb.org/mongo-driver/mongo"
	obson "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func bad(ctx context.Context, c *allium.UntypedCollection, o *mongo.Collection, db *mongo.Database, v1 *oldmongo.Collection) {
	c.Find(ctx, bson.D{}, allium.FindOptions{Sort: bson.M{"city": 1, "name": -1}}) // want `the order of the keys decides in a sort`
	c.FindOne(ctx, bson.D{}, allium.FindOneOptions{
		Hint: bson.M{ // want `in a hint`
			"city": 1,
			"name": 1, // the second
		},
	})
	c.CreateIndex(ctx, allium.IndexModel{Keys: bson.M{"a": 1, "b": 1}})                                                        // want `in index keys`
	o.Find(ctx, obson.D{}, options.Find().SetSort(obson.M{"city": 1, "name": -1}))                                             // want `in a sort`
	o.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: map[string]int{"a": 1, "b": 1}})                                         // want `in index keys`
	v1.Indexes().CreateOne(ctx, oldmongo.IndexModel{Keys: old.M{"a": 1, "b": 1}})                                              // want `in index keys`
	db.RunCommand(ctx, obson.M{"collMod": "goods", "validator": obson.M{}})                                                    // want `in a command`
	o.Aggregate(ctx, obson.A{obson.M{"$sort": obson.M{"a": 1, "b": 1}}})                                                       // want `in \$sort`
	o.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: obson.M{}}, {Key: "$limit", Value: 1}}})                           // want `a stage has one operator, not 2`
	o.UpdateOne(ctx, obson.M{}, obson.M{"$push": obson.M{"l": obson.M{"$each": obson.A{}, "$sort": obson.M{"a": 1, "b": 1}}}}) // want `in \$sort`

	byBoth := obson.M{"a": 1, "b": 1} // want `in a sort`
	o.Find(ctx, obson.D{}, options.Find().SetSort(byBoth))
}

func good(ctx context.Context, c *allium.UntypedCollection, o *mongo.Collection, db *mongo.Database, more obson.M) {
	c.Find(ctx, bson.D{}, allium.FindOptions{Sort: bson.M{"city": 1}})
	c.Find(ctx, bson.M{"a": 1, "b": 2}, allium.FindOptions{Sort: bson.D{{Key: "city", Value: 1}, {Key: "name", Value: -1}}})
	o.Find(ctx, obson.D{}, options.Find().SetSort(more))
	o.Find(ctx, obson.D{}, options.Find().SetProjection(obson.M{"a": 1, "b": 1}))
	db.RunCommand(ctx, obson.M{"ping": 1})
	o.Aggregate(ctx, mongo.Pipeline{{{Key: "$sort", Value: obson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}}}}})
}
