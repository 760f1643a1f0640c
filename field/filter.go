package field

import (
	"allium/bson"
	"allium/field/expr"
)

// Filter is a condition on documents of type D: a bson.D as filters are. The zero Filter is nil,
// which operations refuse; And() matches every document.
type Filter[D any] bson.D

// Number is what servers calculate with. For other types that are stored as numbers use As.
type Number interface {
	Integer | ~float32 | ~float64 | bson.Decimal128
}

// Integer is a type of whole numbers.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Eq matches documents with this value at p, or in an array at p. A value that could be taken for
// operators, such as a document that came from elsewhere, is compared all the same.
func (p Path[D, V]) Eq(v V) Filter[D] {
	if p.at.exact {
		return p.op("$eq", v)
	}
	return Filter[D]{{Key: p.at.name, Value: v}}
}

func (p Path[D, V]) op(name string, v any) Filter[D] {
	return Filter[D]{{Key: p.at.name, Value: bson.D{{Key: name, Value: v}}}}
}

// Ne matches documents that Eq does not match, those without the field too.
func (p Path[D, V]) Ne(v V) Filter[D] {
	return Filter[D]{{Key: p.at.name, Value: bson.D{{Key: "$ne", Value: v}}}}
}

// Gt matches values greater than v, of the same BSON type.
func (p Path[D, V]) Gt(v V) Filter[D] {
	return Filter[D]{{Key: p.at.name, Value: bson.D{{Key: "$gt", Value: v}}}}
}

// Gte matches values greater than or equal to v.
func (p Path[D, V]) Gte(v V) Filter[D] {
	return Filter[D]{{Key: p.at.name, Value: bson.D{{Key: "$gte", Value: v}}}}
}

// Lt matches values less than v.
func (p Path[D, V]) Lt(v V) Filter[D] {
	return Filter[D]{{Key: p.at.name, Value: bson.D{{Key: "$lt", Value: v}}}}
}

// Lte matches values less than or equal to v.
func (p Path[D, V]) Lte(v V) Filter[D] {
	return Filter[D]{{Key: p.at.name, Value: bson.D{{Key: "$lte", Value: v}}}}
}

// In matches documents with one of the values; with none, no document.
func (p Path[D, V]) In(vs ...V) Filter[D] { return p.op("$in", list(vs)) }

// Nin matches documents with none of the values, those without the field too.
func (p Path[D, V]) Nin(vs ...V) Filter[D] { return p.op("$nin", list(vs)) }

// Exists matches documents that have the field, be it null, or with false those that do not.
func (p Path[D, V]) Exists(exists bool) Filter[D] { return p.op("$exists", exists) }

// IsNull matches documents in which the field is null or missing.
func (p Path[D, V]) IsNull() Filter[D] { return p.op("$eq", nil) }

// Type matches documents in which the value has one of these BSON types.
func (p Path[D, V]) Type(types ...bson.Type) Filter[D] {
	numbers := make([]int32, len(types))
	for i, t := range types {
		numbers[i] = int32(int8(t)) // the min key's is -1
	}
	return p.op("$type", numbers)
}

// list returns values as an array: a slice of bytes would be a binary, and nil could be null.
func list[V any](vs []V) any {
	switch b := any(vs).(type) {
	case []byte:
		a := make(bson.A, len(b))
		for i := range b {
			a[i] = int32(b[i])
		}
		return a
	case []bson.E:
		a := make(bson.A, len(b))
		for i := range b {
			a[i] = b[i]
		}
		return a
	}
	if vs == nil {
		return bson.A{}
	}
	return vs
}

// Regex matches strings that have a match of the regular expression, in the syntax of PCRE. options
// is "" or some of i, m, s and x. A pattern that begins with ^ can use an index.
func Regex[D any, S ~string](p Path[D, S], pattern, options string) Filter[D] {
	return p.op("$regex", bson.Regex{Pattern: pattern, Options: options})
}

// Mod matches numbers that leave this remainder when they are divided by divisor.
func Mod[D any, N Number](p Path[D, N], divisor, remainder int64) Filter[D] {
	return p.op("$mod", []int64{divisor, remainder})
}

// BitsAllSet matches numbers in which all bits of mask are set.
func BitsAllSet[D any, N Integer](p Path[D, N], mask int64) Filter[D] {
	return p.op("$bitsAllSet", mask)
}

// BitsAnySet matches numbers in which a bit of mask is set.
func BitsAnySet[D any, N Integer](p Path[D, N], mask int64) Filter[D] {
	return p.op("$bitsAnySet", mask)
}

// BitsAllClear matches numbers in which no bit of mask is set.
func BitsAllClear[D any, N Integer](p Path[D, N], mask int64) Filter[D] {
	return p.op("$bitsAllClear", mask)
}

// BitsAnyClear matches numbers in which a bit of mask is not set.
func BitsAnyClear[D any, N Integer](p Path[D, N], mask int64) Filter[D] {
	return p.op("$bitsAnyClear", mask)
}

// Size matches arrays of n elements.
func Size[D any, S ~[]E, E any](p Path[D, S], n int) Filter[D] { return p.op("$size", n) }

// All matches arrays that have all of these elements; with none, no document.
func All[D any, S ~[]E, E any](p Path[D, S], vs ...E) Filter[D] { return p.op("$all", list(vs)) }

// ElemMatch matches arrays with an element that meets all conditions at once. Where the elements
// are no documents the conditions are on Self.
func ElemMatch[D any, S ~[]E, E any](p Path[D, S], conditions ...Filter[E]) Filter[D] {
	return p.op("$elemMatch", onElement(p.at.name, And(conditions...), false))
}

// onElement returns a condition on elements: that on Self is one on the element, and has no key.
// With value, a comparison for equality becomes the value.
func onElement[E any](name string, f Filter[E], value bool) any {
	for i := range f {
		if f[i].Key != "" {
			continue
		}
		ops, ok := f[i].Value.(bson.D)
		if len(f) > 1 || !ok {
			panic("field: " + name + ": conditions on Self and on fields of it together")
		}
		if value && len(ops) == 1 && ops[0].Key == "$eq" && plainValue(ops[0].Value) {
			return ops[0].Value
		}
		return ops
	}
	if hasSelf(bson.D(f)) {
		panic("field: " + name + ": conditions on Self can be joined by And alone")
	}
	return bson.D(f)
}

// hasSelf reports whether a condition on Self lies in an $and, $or or $nor.
func hasSelf(f bson.D) bool {
	for i := range f {
		if f[i].Key == "" {
			return true
		}
		if a, ok := f[i].Value.(bson.A); ok && len(f[i].Key) > 0 && f[i].Key[0] == '$' {
			for _, v := range a {
				if d, ok := v.(bson.D); ok && hasSelf(d) {
					return true
				}
			}
		}
	}
	return false
}

// plainValue reports whether a value may stand where operators may stand, too.
func plainValue(v any) bool {
	switch v.(type) {
	case nil, string, bool, int, int32, int64, float64, bson.ObjectID, bson.Decimal128:
		return true
	}
	return false
}

// And matches documents that meet all conditions; with none, every document. Conditions on
// different fields stand side by side in it, as one writes them by hand, and so do those on one
// field with different operators.
func And[D any](conditions ...Filter[D]) Filter[D] {
	n := 0
	for _, f := range conditions {
		n += len(f)
	}
	out := make(Filter[D], 0, n)
	for _, f := range conditions {
		for i := range f {
			if !out.join(f[i]) {
				return apart(conditions)
			}
		}
	}
	return out
}

// join adds an element to a filter, and reports whether that says the same as both.
func (f *Filter[D]) join(e bson.E) bool {
	for i := range *f {
		if (*f)[i].Key != e.Key {
			continue
		}
		ops, ok := (*f)[i].Value.(bson.D)
		more, too := e.Value.(bson.D)
		if !ok || !too || !operators(ops) || !operators(more) {
			return false
		}
		for j := range more {
			if _, there := ops.Get(more[j].Key); there {
				return false
			}
		}
		// ops may be a document of the program's.
		(*f)[i].Value = append(append(make(bson.D, 0, len(ops)+len(more)), ops...), more...)
		return true
	}
	*f = append(*f, e)
	return true
}

// operators reports whether a document has operators that say the same whatever stands beside them.
func operators(d bson.D) bool {
	for i := range d {
		switch d[i].Key {
		case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$mod", "$size", "$all",
			"$elemMatch", "$not", "$regex",
			"$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear":
		default:
			return false
		}
	}
	return len(d) > 0
}

// apart returns the conditions under an $and.
func apart[D any](conditions []Filter[D]) Filter[D] {
	return Filter[D]{{Key: "$and", Value: documents(conditions)}}
}

// documents returns filters as an array, without those that say nothing.
func documents[D any](conditions []Filter[D]) bson.A {
	out := make(bson.A, len(conditions))
	for i, f := range conditions {
		out[i] = append(bson.D{}, f...)
	}
	return out
}

// Or matches documents that meet one of the conditions; with none, no document.
func Or[D any](conditions ...Filter[D]) Filter[D] {
	if len(conditions) == 0 {
		return Nor(Filter[D]{})
	}
	return Filter[D]{{Key: "$or", Value: documents(conditions)}}
}

// Nor matches documents that meet none of the conditions; with none, every document.
func Nor[D any](conditions ...Filter[D]) Filter[D] {
	if len(conditions) == 0 {
		return Filter[D]{}
	}
	return Filter[D]{{Key: "$nor", Value: documents(conditions)}}
}

// Not matches documents that do not meet the condition.
func Not[D any](condition Filter[D]) Filter[D] { return Nor(condition) }

// Text matches documents that the collection's text index finds for these words.
func Text[D any](search string) Filter[D] {
	return Filter[D]{{Key: "$text", Value: bson.D{{Key: "$search", Value: search}}}}
}

// Expr matches documents for which the expression is true.
func Expr[D any](condition expr.Value[D, bool]) Filter[D] {
	return Filter[D]{{Key: "$expr", Value: condition.BSON()}}
}
