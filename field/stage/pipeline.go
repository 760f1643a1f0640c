// Package stage has the stages of aggregation pipelines as functions: the compiler checks which
// documents go in, and which come out.
//
//	perCity := stage.Then(
//		stage.Match(paid.Eq(true)),
//		stage.Group(cityName, city.Ref(), stage.Sum(cityTotal, total.Ref())),
//	)
//	cur, err := allium.Aggregate[City](ctx, orders, perCity)
//
// Fields of what comes out have paths of their own, on a struct that the program declares for it.
// Package field/typed has an Aggregate that takes In and Out from the pipeline.
package stage

import (
	"allium/bson"
	"allium/field"
)

// Pipeline is one or more stages that make documents of type Out of documents of type In: a
// []bson.D as pipelines are. It also is an update if both are the same type and its stages may
// stand in one.
type Pipeline[In, Out any] []bson.D

func one[In, Out any](name string, v any) Pipeline[In, Out] {
	return Pipeline[In, Out]{{{Key: name, Value: v}}}
}

// Raw returns stages that are written by hand.
func Raw[In, Out any](stages ...bson.D) Pipeline[In, Out] { return stages }

// Then returns the stages of first and behind them those of next.
func Then[A, B, C any](first Pipeline[A, B], next Pipeline[B, C]) Pipeline[A, C] {
	return append(append(make(Pipeline[A, C], 0, len(first)+len(next)), first...), next...)
}

// Chain returns stages one behind the other that do not change the type of the documents.
func Chain[D any](parts ...Pipeline[D, D]) Pipeline[D, D] {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	out := make(Pipeline[D, D], 0, n)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// Match lets documents through that meet all conditions.
func Match[D any](conditions ...field.Filter[D]) Pipeline[D, D] {
	return one[D, D]("$match", bson.D(field.And(conditions...)))
}

// Sort orders documents.
func Sort[D any](orders ...field.Keys[D]) Pipeline[D, D] {
	return one[D, D]("$sort", bson.D(field.By(orders...)))
}

// Limit lets the first n documents through.
func Limit[D any](n int64) Pipeline[D, D] { return one[D, D]("$limit", n) }

// Skip leaves out the first n documents.
func Skip[D any](n int64) Pipeline[D, D] { return one[D, D]("$skip", n) }

// Sample chooses n documents at random.
func Sample[D any](n int64) Pipeline[D, D] {
	return one[D, D]("$sample", bson.D{{Key: "size", Value: n}})
}

// Select lets those fields through that the projections include, or all that they do not exclude.
func Select[D any](parts ...field.Projection[D]) Pipeline[D, D] {
	return one[D, D]("$project", bson.D(field.Project(parts...)))
}

// Unset removes fields.
func Unset[D any](ps ...field.In[D]) Pipeline[D, D] {
	names := make(bson.A, len(ps))
	for i, e := range field.Exclude(ps...) {
		names[i] = e.Key
	}
	return one[D, D]("$unset", names)
}

// Out writes the documents to a collection, in place of what was in it. It is the last stage.
func Out[D any](database, collection string) Pipeline[D, D] {
	return one[D, D]("$out", bson.D{{Key: "db", Value: database}, {Key: "coll", Value: collection}})
}

// WhenMatched says what Merge does with a document that the collection has.
type WhenMatched string

// The choices: to replace the document, to keep it, to add the fields to it (the server's default),
// or to fail.
const (
	WhenMatchedReplace      WhenMatched = "replace"
	WhenMatchedKeepExisting WhenMatched = "keepExisting"
	WhenMatchedMerge        WhenMatched = "merge"
	WhenMatchedFail         WhenMatched = "fail"
)

// WhenNotMatched says what Merge does with a document that the collection does not have.
type WhenNotMatched string

// The choices: to insert the document (the server's default), to leave it out, or to fail.
const (
	WhenNotMatchedInsert  WhenNotMatched = "insert"
	WhenNotMatchedDiscard WhenNotMatched = "discard"
	WhenNotMatchedFail    WhenNotMatched = "fail"
)

// MergeOptions say what Merge does with each document. The zero value of a field leaves it to the
// server.
type MergeOptions struct {
	// On are the fields by which a document of the collection is found; a unique index must have
	// them. Without it that is _id.
	On []string
	// WhenMatched is for documents that are found.
	WhenMatched WhenMatched
	// WhenNotMatched is for the others.
	WhenNotMatched WhenNotMatched
}

// Merge writes the documents into a collection, beside what is in it. It is the last stage.
func Merge[D any](database, collection string, o MergeOptions) Pipeline[D, D] {
	d := bson.D{{Key: "into", Value: bson.D{{Key: "db", Value: database}, {Key: "coll", Value: collection}}}}
	if o.On != nil {
		d = append(d, bson.E{Key: "on", Value: o.On})
	}
	if o.WhenMatched != "" {
		d = append(d, bson.E{Key: "whenMatched", Value: o.WhenMatched})
	}
	if o.WhenNotMatched != "" {
		d = append(d, bson.E{Key: "whenNotMatched", Value: o.WhenNotMatched})
	}
	return one[D, D]("$merge", d)
}

// UnionWith adds the documents of another collection, after a pipeline that makes them the same
// type. An empty pipeline takes them as they are.
func UnionWith[D, F any](collection string, p Pipeline[F, D]) Pipeline[D, D] {
	return one[D, D]("$unionWith", bson.D{{Key: "coll", Value: collection}, {Key: "pipeline", Value: stages(p)}})
}

// stages returns a pipeline as a value in another.
func stages[In, Out any](p Pipeline[In, Out]) bson.A {
	a := make(bson.A, len(p))
	for i := range p {
		a[i] = p[i]
	}
	return a
}
