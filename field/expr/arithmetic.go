package expr

import "allium/bson"

// Add is the sum of numbers.
func Add[D any, N Number](vs ...Value[D, N]) Value[D, N] { return many[D, N]("$add", vs) }

// Subtract is a less b.
func Subtract[D any, N Number](a, b Value[D, N]) Value[D, N] {
	return two[D, N]("$subtract", a.raw, b.raw)
}

// Multiply is the product of numbers.
func Multiply[D any, N Number](vs ...Value[D, N]) Value[D, N] { return many[D, N]("$multiply", vs) }

// Divide is a divided by b. It is a double or a decimal, also of whole numbers.
func Divide[D any, N Number](a, b Value[D, N]) Value[D, float64] {
	return two[D, float64]("$divide", a.raw, b.raw)
}

// Mod is what remains of a divided by b.
func Mod[D any, N Number](a, b Value[D, N]) Value[D, N] { return two[D, N]("$mod", a.raw, b.raw) }

// Pow is a to the power of b.
func Pow[D any, N Number](a, b Value[D, N]) Value[D, N] { return two[D, N]("$pow", a.raw, b.raw) }

// Sqrt is the square root of a number.
func Sqrt[D any, N Number](v Value[D, N]) Value[D, float64] { return one[D, float64]("$sqrt", v.raw) }

// Abs is a number without its sign.
func Abs[D any, N Number](v Value[D, N]) Value[D, N] { return one[D, N]("$abs", v.raw) }

// Ceil is the least whole number that is not less than v.
func Ceil[D any, N Number](v Value[D, N]) Value[D, N] { return one[D, N]("$ceil", v.raw) }

// Floor is the greatest whole number that is not greater than v.
func Floor[D any, N Number](v Value[D, N]) Value[D, N] { return one[D, N]("$floor", v.raw) }

// Round is v to this number of decimal places, half to even.
func Round[D any, N Number](v Value[D, N], places int) Value[D, N] {
	return two[D, N]("$round", v.raw, places)
}

// Trunc is v cut to this number of decimal places.
func Trunc[D any, N Number](v Value[D, N], places int) Value[D, N] {
	return two[D, N]("$trunc", v.raw, places)
}

// ToString is a value as a string.
func ToString[D, V any](v Value[D, V]) Value[D, string] { return one[D, string]("$toString", v.raw) }

// ToInt is a value as a 32-bit integer.
func ToInt[D, V any](v Value[D, V]) Value[D, int32] { return one[D, int32]("$toInt", v.raw) }

// ToLong is a value as a 64-bit integer.
func ToLong[D, V any](v Value[D, V]) Value[D, int64] { return one[D, int64]("$toLong", v.raw) }

// ToDouble is a value as a double.
func ToDouble[D, V any](v Value[D, V]) Value[D, float64] { return one[D, float64]("$toDouble", v.raw) }

// ToDecimal is a value as a decimal.
func ToDecimal[D, V any](v Value[D, V]) Value[D, bson.Decimal128] {
	return one[D, bson.Decimal128]("$toDecimal", v.raw)
}

// ToObjectID is a string of 24 hexadecimal digits as an ObjectID.
func ToObjectID[D any](v Value[D, string]) Value[D, bson.ObjectID] {
	return one[D, bson.ObjectID]("$toObjectId", v.raw)
}

// Type is the name of a value's BSON type: "string", "missing".
func Type[D, V any](v Value[D, V]) Value[D, string] { return one[D, string]("$type", v.raw) }
