package expr

import (
	"strconv"

	"allium/bson"
)

func doc(op string, args ...any) bson.D { return bson.D{{Key: op, Value: bson.A(args)}} }

// Size is the number of elements of an array.
func Size[D any, S ~[]E, E any](v Value[D, S]) Value[D, int32] { return one[D, int32]("$size", v.raw) }

// In is whether an array has an element of this value.
func In[D any, S ~[]E, E any](v Value[D, E], list Value[D, S]) Value[D, bool] {
	return two[D, bool]("$in", v.raw, list.raw)
}

// ElemAt is the element of an array at an index, which counts from the end if it is negative.
func ElemAt[D any, S ~[]E, E any](v Value[D, S], index int) Value[D, E] {
	return two[D, E]("$arrayElemAt", v.raw, index)
}

// First is the first element of an array.
func First[D any, S ~[]E, E any](v Value[D, S]) Value[D, E] { return ElemAt(v, 0) }

// Last is the last element of an array.
func Last[D any, S ~[]E, E any](v Value[D, S]) Value[D, E] { return ElemAt(v, -1) }

// Slice is n elements of an array from its beginning or, if n is negative, its last ones.
func Slice[D any, S ~[]E, E any](v Value[D, S], n int) Value[D, S] {
	return two[D, S]("$slice", v.raw, n)
}

// ConcatArrays is the elements of arrays one behind the other; null if one is null.
func ConcatArrays[D any, S ~[]E, E any](vs ...Value[D, S]) Value[D, S] {
	return many[D, S]("$concatArrays", vs)
}

// Filter is those elements of an array for which the condition is true. The condition gets the
// element as a variable.
func Filter[D any, S ~[]E, E any](v Value[D, S], condition func(element Value[D, E]) Value[D, bool]) Value[D, S] {
	name, body := each(condition)
	return named[D, S]("$filter", arg("input", v.raw), arg("as", name), arg("cond", body))
}

// Map is what becomes of the elements of an array, one by one. The function gets the element as a
// variable.
func Map[D any, S ~[]E, E, W any](v Value[D, S], f func(element Value[D, E]) Value[D, W]) Value[D, []W] {
	name, body := each(f)
	return named[D, []W]("$map", arg("input", v.raw), arg("as", name), arg("in", body))
}

// Field is a field of a value that is a document, such as an element in Map: by the expression that
// the field has in documents of the value's type, Path.Ref.
func Field[D, E, V any](v Value[D, E], ref Value[E, V]) Value[D, V] {
	of, ok := v.raw.(string)
	name, simple := ref.raw.(string)
	if !ok || !simple || len(name) < 2 || name[1] == '$' {
		panic("field: expr: Field wants a variable or a field, and the Ref of a path")
	}
	return Value[D, V]{of + "." + name[1:]}
}

// Sum is the sum of the elements of an array.
func Sum[D any, S ~[]N, N Number](v Value[D, S]) Value[D, N] { return one[D, N]("$sum", v.raw) }

// Avg is the average of the elements of an array.
func Avg[D any, S ~[]N, N Number](v Value[D, S]) Value[D, float64] {
	return one[D, float64]("$avg", v.raw)
}

// Min is the least element of an array.
func Min[D any, S ~[]E, E any](v Value[D, S]) Value[D, E] { return one[D, E]("$min", v.raw) }

// Max is the greatest element of an array.
func Max[D any, S ~[]E, E any](v Value[D, S]) Value[D, E] { return one[D, E]("$max", v.raw) }

// each returns what f makes of the variable for an element, and the variable's name: one that no
// loop inside uses, which would hide it.
func each[D, E, W any](f func(element Value[D, E]) Value[D, W]) (name string, body any) {
	for n := 1; ; n++ {
		name = "element"
		if n > 1 {
			name += strconv.Itoa(n)
		}
		if body = f(Value[D, E]{"$$" + name}).raw; !loops(body, name) {
			return name, body
		}
	}
}

// loops reports whether there is a loop in an expression whose variable has this name.
func loops(v any, name string) bool {
	switch v := v.(type) {
	case bson.D:
		for _, e := range v {
			if e.Key == "as" && e.Value == any(name) || loops(e.Value, name) {
				return true
			}
		}
	case bson.A:
		for _, item := range v {
			if loops(item, name) {
				return true
			}
		}
	}
	return false
}
