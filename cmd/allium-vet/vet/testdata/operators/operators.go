package operators

import (
	"context"

	"allium"
	"allium/bson"

	obson "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const misspelt = "$inn"

func bad(ctx context.Context, c *allium.UntypedCollection, o *mongo.Collection) {
	c.Find(ctx, bson.M{"$gte": 5})                                                                                                                   // want `\$gte is a condition on a field`
	c.Find(ctx, bson.M{"price": bson.M{"$or": bson.A{}}})                                                                                            // want `\$or stands in the place of a field`
	c.Find(ctx, bson.M{"price": bson.M{"$greater": 5}})                                                                                              // want `unknown operator of filters \$greater`
	c.Find(ctx, bson.M{"price": bson.M{"$gtr": 5}})                                                                                                  // want `unknown operator of filters \$gtr`
	c.Find(ctx, bson.M{"tags": bson.M{"$elemMacth": bson.M{"a": 1}}})                                                                                // want `unknown operator of filters \$elemMacth: \$elemMatch is meant`
	c.Find(ctx, bson.M{"price": bson.M{misspelt: bson.A{}}})                                                                                         // want `unknown operator of filters \$inn`
	c.Find(ctx, bson.M{"$set": bson.M{"a": 1}})                                                                                                      // want `unknown operator of filters \$set: it is an update operator`
	c.Find(ctx, bson.D{{Key: "$and", Value: bson.A{bson.D{{Key: "a", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$exist", Value: true}}}}}}}}}) // want `\$exist: \$exists is meant`
	c.UpdateOne(ctx, bson.M{}, bson.M{"$increment": bson.M{"n": 1}})                                                                                 // want `unknown update operator \$increment`
	c.UpdateOne(ctx, bson.M{}, bson.M{"$gt": bson.M{"n": 1}})                                                                                        // want `unknown update operator \$gt: it is an operator of filters`
	c.UpdateOne(ctx, bson.M{}, bson.M{"$set": bson.M{"$inc": bson.M{"n": 1}}})                                                                       // want `\$inc stands below \$set`
	c.UpdateOne(ctx, bson.M{}, bson.M{"$set": bson.M{"n": bson.M{"$add": bson.A{"$n", 1}}}})                                                         // want `\$add below \$set is stored as it is: an expression needs a pipeline`
	c.UpdateOne(ctx, bson.M{}, bson.A{bson.M{"$inc": bson.M{"n": 1}}})                                                                               // want `unknown stage \$inc`
	c.UpdateOne(ctx, bson.M{}, bson.A{bson.M{"$match": bson.M{"n": 1}}})                                                                             // want `\$match is no stage of an update`
	o.Aggregate(ctx, mongo.Pipeline{{{Key: "$macth", Value: obson.M{}}}})                                                                            // want `unknown stage \$macth: \$match is meant`
	o.Aggregate(ctx, mongo.Pipeline{{{Key: "match", Value: obson.M{}}}})                                                                             // want `unknown stage match: \$match is meant`
	o.Aggregate(ctx, obson.A{obson.M{"$match": obson.M{"$where2": 1}}})                                                                              // want `unknown operator of filters \$where2`
	o.Aggregate(ctx, obson.A{obson.M{"$out": "x"}, obson.M{"$limit": 1}})                                                                            // want `\$out must be the last stage`
	o.Aggregate(ctx, obson.A{obson.M{"$limit": 1}, obson.M{"$geoNear": obson.M{}}})                                                                  // want `\$geoNear must be the first stage`
	o.Aggregate(ctx, obson.A{obson.M{"$limit": 1}, obson.M{"$search": obson.M{}}})                                                                   // want `\$search must be the first stage`
	o.Aggregate(ctx, obson.A{obson.M{"$group": obson.M{"_id": nil, "n": obson.M{"$summ": 1}}}})                                                      // want `unknown accumulator \$summ: \$sum is meant`
	o.Aggregate(ctx, obson.A{obson.M{"$project": obson.M{"n": obson.M{"$exists": true}}}})                                                           // want `unknown operator of expressions \$exists: it is an operator of filters`
	o.Aggregate(ctx, obson.A{obson.M{"$lookup": obson.M{"from": "x", "pipeline": obson.A{obson.M{"$mtch": 1}}}}})                                    // want `unknown stage \$mtch`
	o.Watch(ctx, mongo.Pipeline{{{Key: "$group", Value: obson.M{"_id": 1}}}})                                                                        // want `\$group is no stage of a change stream`
	_ = mongo.NewUpdateOneModel().SetFilter(obson.M{"$bad": 1}).SetUpdate(obson.M{"$bad": 1})                                                        // want `unknown operator of filters \$bad` `unknown update operator \$bad`
	_ = options.Index().SetPartialFilterExpression(obson.M{"a": obson.M{"$gte2": 1}})                                                                // want `unknown operator of filters \$gte2`
}

func good(ctx context.Context, c *allium.UntypedCollection, o *mongo.Collection, unknown string, values obson.M) {
	c.Find(ctx, bson.M{"price": bson.M{"$gte": 5, "$lt": 7}, "$or": bson.A{bson.M{"a": 1}, bson.M{"b": bson.M{"$in": bson.A{1}}}}})
	c.Find(ctx, bson.M{"owner": bson.M{"$ref": "users", "$id": 1}})
	c.Find(ctx, bson.M{"place": bson.M{"$near": bson.A{1, 2}, "$maxDistance": 5}})
	c.Find(ctx, bson.M{"place": bson.M{"$geoWithin": bson.M{"$centerSphere": bson.A{bson.A{1, 2}, 3}}}})
	c.Find(ctx, bson.M{unknown: 1, "a": bson.M{unknown: 1}})
	c.Find(ctx, bson.M{"scores": bson.M{"$elemMatch": bson.M{"$gt": 1, "$lt": 4}}, "lines": bson.M{"$elemMatch": bson.M{"$or": bson.A{}}}})
	c.Find(ctx, bson.M{"$expr": bson.M{"$gt": bson.A{"$a", "$b"}}, "$text": bson.M{"$search": "x"}, "$comment": "x"})
	c.UpdateOne(ctx, bson.M{}, bson.M{"$push": bson.M{"l": bson.M{"$each": bson.A{1}, "$slice": -5}}, "$set": bson.M{"a": bson.M{"$ref": "x", "$id": 1}}})
	c.UpdateOne(ctx, bson.M{}, bson.A{bson.M{"$set": bson.M{"n": bson.M{"$add": bson.A{"$n", 1}}}}})
	c.UpdateOne(ctx, bson.M{}, bson.M{"$pull": bson.M{"l": bson.M{"$in": bson.A{1}}, "m": bson.M{"$or": bson.A{bson.M{"a": 1}}}}})
	o.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: obson.M{"a": 1}}},
		{{Key: "$group", Value: obson.D{{Key: "_id", Value: "$a"}, {Key: "n", Value: obson.M{"$sum": 1}}, {Key: "top", Value: obson.M{"$topN": obson.M{"n": 3, "sortBy": obson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}}, "output": "$a"}}}}}},
		{{Key: "$project", Value: obson.M{"x": obson.M{"$cond": obson.M{"if": obson.M{"$eq": obson.A{1, 1}}, "then": 1, "else": 2}}, "y": obson.M{"$literal": obson.M{"$x": 1}}}}},
		{{Key: "$setWindowFields", Value: obson.M{"output": obson.M{"r": obson.M{"$rank": obson.M{}, "window": obson.M{}}, "s": obson.M{"$sum": "$x"}}}}},
		{{Key: "$facet", Value: obson.M{"a": obson.A{obson.M{"$count": "n"}}}}},
	})
	o.Aggregate(ctx, mongo.Pipeline{{{Key: "$search", Value: obson.M{"text": obson.M{"$anything": 1}}}}, {{Key: "$limit", Value: 5}}})
	o.Aggregate(ctx, obson.A{obson.M{"$match": obson.M{}}, obson.M{"$merge": "x"}})
	c.Find(ctx, bson.M{"$gte": 5}) //allium:ignore operators shows what a server answers
	//allium:ignore operators so does this
	c.Find(ctx, bson.M{"$gte": 5})
}

func ignored(ctx context.Context, c *allium.UntypedCollection) {
	//allium:ignore operators
	c.Find(ctx, bson.M{"$gte": 5}) // want `\$gte is a condition on a field`
	//allium:ignore maporder of another rule
	c.Find(ctx, bson.M{"$gte": 5}) // want `\$gte is a condition on a field`
}
