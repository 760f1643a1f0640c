// Package typed has a view of a collection that takes the filters, changes, orders and pipelines of
// package field, and takes those for its own documents alone: one for another type does not
// compile.
//
//	orders := typed.Of(allium.CollectionOf[Order](db, "orders"))
//	byDate := typed.FindOptions[Order]{Sort: field.Asc(created)}
//	found, err := orders.Find(ctx, city.Eq("Bonn"), byDate)
//
// A Collection takes filters of any type, as it must for those that are written by hand. The view
// adds nothing but types: it is as cheap as the collection, which Untyped returns.
package typed

import (
	"context"
	"iter"

	"allium"
	"allium/bson"
	"allium/field"
	"allium/field/stage"
)

// Collection is a view of a collection with documents of type D. It is safe for concurrent use.
type Collection[D any] struct{ c *allium.Collection[D] }

// Of returns the view of a collection.
func Of[D any](c *allium.Collection[D]) Collection[D] { return Collection[D]{c} }

// Untyped returns the collection.
func (c Collection[D]) Untyped() *allium.Collection[D] { return c.c }

// FindOptions are the options of Find.
type FindOptions[D any] struct {
	// Sort and Projection stand for those of the embedded options.
	Sort       field.Keys[D]
	Projection field.Projection[D]
	// FindOptions are the other options.
	allium.FindOptions
}

// FindOneOptions are the options of FindOne.
type FindOneOptions[D any] struct {
	// Sort and Projection stand for those of the embedded options.
	Sort       field.Keys[D]
	Projection field.Projection[D]
	// FindOneOptions are the other options.
	allium.FindOneOptions
}

func plain[D any](opts []FindOptions[D]) []allium.FindOptions {
	out := make([]allium.FindOptions, len(opts))
	for i, o := range opts {
		out[i] = o.FindOptions
		if o.Sort != nil {
			out[i].Sort = bson.D(o.Sort)
		}
		if o.Projection != nil {
			out[i].Projection = bson.D(o.Projection)
		}
	}
	return out
}

// Find is Collection.Find.
func (c Collection[D]) Find(ctx context.Context, filter field.Filter[D],
	opts ...FindOptions[D]) (*allium.Cursor[D], error) {
	return c.c.Find(ctx, bson.D(filter), plain(opts)...)
}

// Query is Collection.Query.
func (c Collection[D]) Query(ctx context.Context, filter field.Filter[D], opts ...FindOptions[D]) iter.Seq2[D, error] {
	return c.c.Query(ctx, bson.D(filter), plain(opts)...)
}

// All is Collection.All.
func (c Collection[D]) All(ctx context.Context, filter field.Filter[D], opts ...FindOptions[D]) ([]D, error) {
	return c.c.All(ctx, bson.D(filter), plain(opts)...)
}

// FindOne is Collection.FindOne.
func (c Collection[D]) FindOne(ctx context.Context, filter field.Filter[D], opts ...FindOneOptions[D]) (D, error) {
	plain := make([]allium.FindOneOptions, len(opts))
	for i, o := range opts {
		plain[i] = o.FindOneOptions
		if o.Sort != nil {
			plain[i].Sort = bson.D(o.Sort)
		}
		if o.Projection != nil {
			plain[i].Projection = bson.D(o.Projection)
		}
	}
	return c.c.FindOne(ctx, bson.D(filter), plain...)
}

// InsertOne is Collection.InsertOne.
func (c Collection[D]) InsertOne(ctx context.Context, doc D,
	opts ...allium.InsertOneOptions) (allium.InsertOneResult, error) {
	return c.c.InsertOne(ctx, doc, opts...)
}

// CountDocuments is Collection.CountDocuments.
func (c Collection[D]) CountDocuments(ctx context.Context, filter field.Filter[D],
	opts ...allium.CountOptions) (int64, error) {
	return c.c.CountDocuments(ctx, bson.D(filter), opts...)
}

// UpdateOne is Collection.UpdateOne.
func (c Collection[D]) UpdateOne(ctx context.Context, filter field.Filter[D], change field.Change[D],
	opts ...allium.UpdateOptions) (allium.UpdateResult, error) {
	return c.c.UpdateOne(ctx, bson.D(filter), bson.D(change), opts...)
}

// UpdateMany is Collection.UpdateMany.
func (c Collection[D]) UpdateMany(ctx context.Context, filter field.Filter[D], change field.Change[D],
	opts ...allium.UpdateOptions) (allium.UpdateResult, error) {
	return c.c.UpdateMany(ctx, bson.D(filter), bson.D(change), opts...)
}

// ReplaceOne is Collection.ReplaceOne.
func (c Collection[D]) ReplaceOne(ctx context.Context, filter field.Filter[D], replacement D,
	opts ...allium.ReplaceOptions) (allium.UpdateResult, error) {
	return c.c.ReplaceOne(ctx, bson.D(filter), replacement, opts...)
}

// DeleteOne is Collection.DeleteOne.
func (c Collection[D]) DeleteOne(ctx context.Context, filter field.Filter[D],
	opts ...allium.DeleteOptions) (allium.DeleteResult, error) {
	return c.c.DeleteOne(ctx, bson.D(filter), opts...)
}

// DeleteMany is Collection.DeleteMany.
func (c Collection[D]) DeleteMany(ctx context.Context, filter field.Filter[D],
	opts ...allium.DeleteOptions) (allium.DeleteResult, error) {
	return c.c.DeleteMany(ctx, bson.D(filter), opts...)
}

// FindOneAndUpdate is Collection.FindOneAndUpdate.
func (c Collection[D]) FindOneAndUpdate(ctx context.Context, filter field.Filter[D], change field.Change[D],
	opts ...allium.FindOneAndUpdateOptions) (D, error) {
	return c.c.FindOneAndUpdate(ctx, bson.D(filter), bson.D(change), opts...)
}

// FindOneAndReplace is Collection.FindOneAndReplace.
func (c Collection[D]) FindOneAndReplace(ctx context.Context, filter field.Filter[D], replacement D,
	opts ...allium.FindOneAndReplaceOptions) (D, error) {
	return c.c.FindOneAndReplace(ctx, bson.D(filter), replacement, opts...)
}

// FindOneAndDelete is Collection.FindOneAndDelete.
func (c Collection[D]) FindOneAndDelete(ctx context.Context, filter field.Filter[D],
	opts ...allium.FindOneAndDeleteOptions) (D, error) {
	return c.c.FindOneAndDelete(ctx, bson.D(filter), opts...)
}

// UpdateOneModel is Collection.UpdateOneModel.
func (c Collection[D]) UpdateOneModel(filter field.Filter[D], change field.Change[D],
	opts ...allium.UpdateModelOptions) allium.WriteModel {
	return c.c.UpdateOneModel(bson.D(filter), bson.D(change), opts...)
}

// UpdateManyModel is Collection.UpdateManyModel.
func (c Collection[D]) UpdateManyModel(filter field.Filter[D], change field.Change[D],
	opts ...allium.UpdateModelOptions) allium.WriteModel {
	return c.c.UpdateManyModel(bson.D(filter), bson.D(change), opts...)
}

// ReplaceOneModel is Collection.ReplaceOneModel.
func (c Collection[D]) ReplaceOneModel(filter field.Filter[D], replacement D,
	opts ...allium.ReplaceModelOptions) allium.WriteModel {
	return c.c.ReplaceOneModel(bson.D(filter), replacement, opts...)
}

// DeleteOneModel is Collection.DeleteOneModel.
func (c Collection[D]) DeleteOneModel(filter field.Filter[D], opts ...allium.DeleteModelOptions) allium.WriteModel {
	return c.c.DeleteOneModel(bson.D(filter), opts...)
}

// DeleteManyModel is Collection.DeleteManyModel.
func (c Collection[D]) DeleteManyModel(filter field.Filter[D], opts ...allium.DeleteModelOptions) allium.WriteModel {
	return c.c.DeleteManyModel(bson.D(filter), opts...)
}

// Aggregate is the function Aggregate of package allium with the types of the pipeline.
func Aggregate[In, Out any](ctx context.Context, c Collection[In], p stage.Pipeline[In, Out],
	opts ...allium.AggregateOptions) (*allium.Cursor[Out], error) {
	return allium.Aggregate[Out](ctx, c.c, []bson.D(p), opts...)
}

// Distinct is the function Distinct of package allium with the type of the field.
func Distinct[D, V any](ctx context.Context, c Collection[D], p field.Path[D, V], filter field.Filter[D],
	opts ...allium.DistinctOptions) ([]V, error) {
	return allium.Distinct[V](ctx, c.c, p.String(), bson.D(filter), opts...)
}

// Save is the function Save of package allium with the path of the version.
func Save[D any, N field.Integer](ctx context.Context, c Collection[D], version field.Path[D, N], before D, after *D,
	opts ...allium.UpdateOptions) error {
	return allium.Save(ctx, c.c, version.String(), before, after, opts...)
}

// Index returns the model of an index with these keys, for CreateIndex: other settings of the model
// stay as they are.
func (c Collection[D]) Index(keys field.Keys[D], settings allium.IndexModel) allium.IndexModel {
	settings.Keys = bson.D(keys)
	return settings
}
