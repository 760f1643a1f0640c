package stage

import (
	"fmt"

	"allium/bson"
	"allium/field"
	"allium/field/expr"
)

// Assignment gives a field of documents of type Out the value of an expression on documents of type
// In.
type Assignment[In, Out any] struct {
	name  string
	value any
}

// To is the assignment of a value to the field p.
func To[In, Out, V any](p field.Path[Out, V], v expr.Value[In, V]) Assignment[In, Out] {
	return Assignment[In, Out]{p.String(), v.BSON()}
}

func assigned[In, Out any](as []Assignment[In, Out]) bson.D {
	d := make(bson.D, len(as))
	for i, a := range as {
		d[i] = bson.E{Key: a.name, Value: a.value}
	}
	return d
}

// AddFields sets fields, and lets the others through. It also is the stage $set.
func AddFields[In, Out any](as ...Assignment[In, Out]) Pipeline[In, Out] {
	return one[In, Out]("$addFields", assigned(as))
}

// Project makes documents of these fields, and of the _id if none of them says what that is.
func Project[In, Out any](as ...Assignment[In, Out]) Pipeline[In, Out] {
	return one[In, Out]("$project", assigned(as))
}

// ReplaceRoot makes each document the value of the expression, which must be a document.
func ReplaceRoot[In, Out any](v expr.Value[In, Out]) Pipeline[In, Out] {
	return one[In, Out]("$replaceRoot", bson.D{{Key: "newRoot", Value: v.BSON()}})
}

// Accumulator is a field of the documents that Group makes.
type Accumulator[In, Out any] struct {
	name  string
	value bson.D
}

// Group makes one document of all those that have the same key. to is where that goes: the field
// _id of what comes out. It panics if to is another field.
func Group[In, Out, K any](to field.Path[Out, K], key expr.Value[In, K],
	accumulators ...Accumulator[In, Out]) Pipeline[In, Out] {
	if to.String() != "_id" {
		panic("field: stage: the key of Group goes to the field _id, not to " + to.String())
	}
	return group(key.BSON(), accumulators)
}

// GroupAll makes one document of all. Its _id is null.
func GroupAll[In, Out any](accumulators ...Accumulator[In, Out]) Pipeline[In, Out] {
	return group(nil, accumulators)
}

func group[In, Out any](key any, accumulators []Accumulator[In, Out]) Pipeline[In, Out] {
	d := append(make(bson.D, 0, len(accumulators)+1), bson.E{Key: "_id", Value: key})
	for _, a := range accumulators {
		d = append(d, bson.E{Key: a.name, Value: a.value})
	}
	return one[In, Out]("$group", d)
}

func accumulate[In, Out, V, W any](op string, to field.Path[Out, V], v expr.Value[In, W]) Accumulator[In, Out] {
	return Accumulator[In, Out]{to.String(), bson.D{{Key: op, Value: v.BSON()}}}
}

// Sum is the sum of the group's values that are numbers.
func Sum[In, Out any, N expr.Number](to field.Path[Out, N], v expr.Value[In, N]) Accumulator[In, Out] {
	return accumulate("$sum", to, v)
}

// Members is the number of documents in the group.
func Members[In, Out any, N expr.Number](to field.Path[Out, N]) Accumulator[In, Out] {
	return Accumulator[In, Out]{to.String(), bson.D{{Key: "$sum", Value: 1}}}
}

// Avg is the average of the group's values that are numbers.
func Avg[In, Out any, N expr.Number](to field.Path[Out, float64], v expr.Value[In, N]) Accumulator[In, Out] {
	return accumulate("$avg", to, v)
}

// Min is the group's least value.
func Min[In, Out, V any](to field.Path[Out, V], v expr.Value[In, V]) Accumulator[In, Out] {
	return accumulate("$min", to, v)
}

// Max is the group's greatest value.
func Max[In, Out, V any](to field.Path[Out, V], v expr.Value[In, V]) Accumulator[In, Out] {
	return accumulate("$max", to, v)
}

// First is the value of the group's first document.
func First[In, Out, V any](to field.Path[Out, V], v expr.Value[In, V]) Accumulator[In, Out] {
	return accumulate("$first", to, v)
}

// Last is the value of the group's last document.
func Last[In, Out, V any](to field.Path[Out, V], v expr.Value[In, V]) Accumulator[In, Out] {
	return accumulate("$last", to, v)
}

// Push is the array of the group's values.
func Push[In, Out, V any](to field.Path[Out, []V], v expr.Value[In, V]) Accumulator[In, Out] {
	return accumulate("$push", to, v)
}

// AddToSet is the array of the group's values, each once, in no order.
func AddToSet[In, Out, V any](to field.Path[Out, []V], v expr.Value[In, V]) Accumulator[In, Out] {
	return accumulate("$addToSet", to, v)
}

// UnwindOptions are the options of Unwind.
type UnwindOptions struct {
	// KeepEmpty lets documents through whose array is empty, null or missing.
	KeepEmpty bool
	// IndexField is the name of a field for the element's index.
	IndexField string
}

// Unwind makes a document for each element of an array, which stands in place of the array. to is
// the field of the element, which has the name of the array's: it panics if it does not.
func Unwind[In, Out any, S ~[]E, E any](p field.Path[In, S], to field.Path[Out, E], o UnwindOptions) Pipeline[In, Out] {
	if p.String() != to.String() {
		panic(fmt.Sprintf("field: stage: Unwind puts an element where its array was: the field %s, not %s", p, to))
	}
	d := bson.D{{Key: "path", Value: p.Ref().BSON()}}
	if o.IndexField != "" {
		d = append(d, bson.E{Key: "includeArrayIndex", Value: o.IndexField})
	}
	if o.KeepEmpty {
		d = append(d, bson.E{Key: "preserveNullAndEmptyArrays", Value: true})
	}
	return one[In, Out]("$unwind", d)
}

// Lookup adds an array of those documents of another collection whose field foreign is equal to
// the field local.
func Lookup[In, Out, F, K any](collection string, local field.Path[In, K], foreign field.Path[F, K],
	to field.Path[Out, []F]) Pipeline[In, Out] {
	return one[In, Out]("$lookup", bson.D{{Key: "from", Value: collection}, {Key: "localField", Value: local.String()},
		{Key: "foreignField", Value: foreign.String()}, {Key: "as", Value: to.String()}})
}

// LookupThrough is Lookup with a pipeline that the documents found go through (server 5.0 and
// later).
func LookupThrough[In, Out, F, G, K any](collection string, local field.Path[In, K], foreign field.Path[F, K],
	p Pipeline[F, G], to field.Path[Out, []G]) Pipeline[In, Out] {
	return one[In, Out]("$lookup", bson.D{{Key: "from", Value: collection}, {Key: "localField", Value: local.String()},
		{Key: "foreignField", Value: foreign.String()}, {Key: "pipeline", Value: stages(p)},
		{Key: "as", Value: to.String()}})
}

// Count makes one document with the number of documents, or none if there are none. In is to be
// named, the others are inferred.
//
//	stage.Count[Order](number)
func Count[In, Out any, N expr.Number](to field.Path[Out, N]) Pipeline[In, Out] {
	return one[In, Out]("$count", to.String())
}

// Counted is a value and how many documents have it.
type Counted[V any] struct {
	// Value is the value of the expression.
	Value V `bson:"_id"`
	// Count is the number of documents.
	Count int64 `bson:"count"`
}

// SortByCount makes a document for each value of the expression, the most frequent first.
func SortByCount[In, V any](v expr.Value[In, V]) Pipeline[In, Counted[V]] {
	return one[In, Counted[V]]("$sortByCount", v.BSON())
}

// Branch is a pipeline of a Facet, and where its documents go.
type Branch[In, Out any] struct {
	name string
	p    bson.A
}

// FacetOf is the branch of a Facet whose documents become the array to.
func FacetOf[In, Out, V any](to field.Path[Out, []V], p Pipeline[In, V]) Branch[In, Out] {
	return Branch[In, Out]{to.String(), stages(p)}
}

// Facet makes one document of the results of several pipelines on the same documents.
func Facet[In, Out any](branches ...Branch[In, Out]) Pipeline[In, Out] {
	d := make(bson.D, len(branches))
	for i, b := range branches {
		d[i] = bson.E{Key: b.name, Value: b.p}
	}
	return one[In, Out]("$facet", d)
}
