// Package field names the fields of documents so that the compiler checks them: the field, the type
// of its value, and the type of the document. Nothing is generated.
//
//	type Order struct {
//		ID   bson.ObjectID `bson:"_id"`
//		Ship Address
//		Total float64
//	}
//
//	var (
//		city  = field.Of(func(o *Order) *string { return &o.Ship.City })
//		total = field.Of(func(o *Order) *float64 { return &o.Total })
//	)
//
//	found, err := orders.Find(ctx, field.And(city.Eq("Bonn"), total.Gt(100)))
//	_, err = orders.UpdateMany(ctx, city.Eq("Bonn"), field.Inc(total, 2.5))
//
// Of finds out once, when the program starts, which path the function leads to, by the names that
// package bson encodes the fields under. A field that is renamed in an editor is renamed here too;
// its key, which stands in the tag, is not.
//
// Everything that this package makes is a bson.D under the name of a type that also says which
// documents it is for: Filter[Order], Change[Order], Keys[Order], Projection[Order]. Their literals
// and conversions mix with documents that are written by hand:
//
//	f := field.And(city.Eq("Bonn"), field.Filter[Order]{{Key: "$text", Value: text}})
//	d := append(bson.D(f), bson.E{Key: "paid", Value: true})
//
// A Collection takes filters of any type. Package field/typed has a view of a collection that takes
// those for its documents alone. Expressions of aggregation are in field/expr, stages of pipelines
// in field/stage.
//
// Paths, and all that is made of them, are safe for concurrent use as long as nobody changes a
// document meanwhile. Values are not copied.
package field
