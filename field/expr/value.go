// Package expr has the expressions of aggregation with the types of their operands and of their
// results. Operands come from package field (Path.Ref), from Lit, and from Raw for what the package
// does not have.
//
//	field.Expr(expr.Gt(paid.Ref(), expr.Multiply(price.Ref(), amount.Ref())))
//
// What servers do with fields that are missing or have other types is for them to say: the types
// are those that the program's documents should have.
package expr

import (
	"time"

	"allium/bson"
)

// Value is an expression on documents of type D whose value has the type V. It encodes as itself,
// so that it can stand in documents that are written by hand.
type Value[D, V any] struct{ raw any }

// Raw returns an expression that is written by hand: a bson.D, a path such as "$total", a variable.
func Raw[D, V any](v any) Value[D, V] { return Value[D, V]{v} }

// BSON returns the expression as one writes it by hand: a bson.D, or a path.
func (v Value[D, V]) BSON() any { return v.raw }

// MarshalBSONValue encodes the expression.
func (v Value[D, V]) MarshalBSONValue() (typ byte, data []byte, err error) {
	raw, err := bson.MarshalValue(v.raw)
	return byte(raw.Type), raw.Value, err
}

// As returns an expression for values of another type W, which the program knows it has.
func As[W, D, V any](v Value[D, V]) Value[D, W] { return Value[D, W](v) }

// Lit returns a value as it is, whatever it looks like.
func Lit[D, V any](v V) Value[D, V] {
	switch any(v).(type) {
	case bool, int, int32, int64, float64, bson.ObjectID, bson.Decimal128, bson.DateTime, time.Time:
		return Value[D, V]{v}
	}
	return one[D, V]("$literal", v)
}

// Number is what servers calculate with.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 |
		bson.Decimal128
}

// Instant is a point in time.
type Instant interface {
	time.Time | bson.DateTime | bson.Timestamp | bson.ObjectID
}

func one[D, V any](op string, arg any) Value[D, V] {
	return Value[D, V]{bson.D{{Key: op, Value: arg}}}
}

func two[D, V any](op string, a, b any) Value[D, V] {
	return Value[D, V]{bson.D{{Key: op, Value: bson.A{a, b}}}}
}

func many[D, V, W any](op string, vs []Value[D, W]) Value[D, V] {
	a := make(bson.A, len(vs))
	for i := range vs {
		a[i] = vs[i].raw
	}
	return Value[D, V]{bson.D{{Key: op, Value: a}}}
}

// named returns an operator with named arguments; nil ones are left out.
func named[D, V any](op string, args ...bson.E) Value[D, V] {
	d := make(bson.D, 0, len(args))
	for _, a := range args {
		if a.Value != nil {
			d = append(d, a)
		}
	}
	return Value[D, V]{bson.D{{Key: op, Value: d}}}
}

func arg(name string, v any) bson.E { return bson.E{Key: name, Value: v} }

// Root returns the document itself.
func Root[D any]() Value[D, D] { return Value[D, D]{"$$ROOT"} }

// Now returns the server's time, the same for the whole command.
func Now[D any]() Value[D, time.Time] { return Value[D, time.Time]{"$$NOW"} }

// Eq is whether two values are equal. Unlike in filters it compares arrays as a whole.
func Eq[D, V any](a, b Value[D, V]) Value[D, bool] { return two[D, bool]("$eq", a.raw, b.raw) }

// Ne is whether two values are not equal.
func Ne[D, V any](a, b Value[D, V]) Value[D, bool] { return two[D, bool]("$ne", a.raw, b.raw) }

// Gt is whether a is greater than b.
func Gt[D, V any](a, b Value[D, V]) Value[D, bool] { return two[D, bool]("$gt", a.raw, b.raw) }

// Gte is whether a is greater than or equal to b.
func Gte[D, V any](a, b Value[D, V]) Value[D, bool] { return two[D, bool]("$gte", a.raw, b.raw) }

// Lt is whether a is less than b.
func Lt[D, V any](a, b Value[D, V]) Value[D, bool] { return two[D, bool]("$lt", a.raw, b.raw) }

// Lte is whether a is less than or equal to b.
func Lte[D, V any](a, b Value[D, V]) Value[D, bool] { return two[D, bool]("$lte", a.raw, b.raw) }

// Cmp is -1, 0 or 1 as a is less than, equal to or greater than b.
func Cmp[D, V any](a, b Value[D, V]) Value[D, int32] { return two[D, int32]("$cmp", a.raw, b.raw) }

// And is whether all values are true.
func And[D any](vs ...Value[D, bool]) Value[D, bool] { return many[D, bool]("$and", vs) }

// Or is whether a value is true.
func Or[D any](vs ...Value[D, bool]) Value[D, bool] { return many[D, bool]("$or", vs) }

// Not is whether a value is not true.
func Not[D any](v Value[D, bool]) Value[D, bool] { return one[D, bool]("$not", bson.A{v.raw}) }

// Cond is yes if the condition is true, and else no.
func Cond[D, V any](condition Value[D, bool], yes, no Value[D, V]) Value[D, V] {
	return one[D, V]("$cond", bson.A{condition.raw, yes.raw, no.raw})
}

// IfNull is the first value that is neither null nor missing, or else the last one.
func IfNull[D, V any](first Value[D, V], others ...Value[D, V]) Value[D, V] {
	return many[D, V]("$ifNull", append([]Value[D, V]{first}, others...))
}

// Case is a branch of a Switch.
type Case[D, V any] struct {
	// When is the condition of the branch.
	When Value[D, bool]
	// Then is the value if it is true.
	Then Value[D, V]
}

// Switch is the value of the first branch whose condition is true, or else the last argument.
func Switch[D, V any](cases []Case[D, V], otherwise Value[D, V]) Value[D, V] {
	branches := make(bson.A, len(cases))
	for i, c := range cases {
		branches[i] = bson.D{arg("case", c.When.raw), arg("then", c.Then.raw)}
	}
	return named[D, V]("$switch", arg("branches", branches), arg("default", otherwise.raw))
}
