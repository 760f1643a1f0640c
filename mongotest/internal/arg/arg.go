// Package arg checks the types of arguments, with the errors of the server.
package arg

import (
	"math"
	"math/big"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// The errors of the server's generated parsers.

// WrongType is the error of a field of a type that it does not take.
func WrongType(field string, got bson.Type, want string) error {
	return srverr.New(srverr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", field, bsontext.TypeName(got), want)
}

// UnknownField is the error of a field that there is not.
func UnknownField(field string) error {
	return srverr.New(40415, "BSON field '%s' is an unknown field.", field)
}

// MissingField is the error of a required field that is not given.
func MissingField(field string) error {
	return srverr.New(40414, "BSON field '%s' is missing but a required field", field)
}

// Number returns any number cut to an int64, as the server's numberLong does.
func Number(v bson.RawValue) (int64, bool) {
	if n, ok := v.AsInt64(); ok {
		return n, true
	}
	if f, ok := v.Double(); ok {
		switch {
		case math.IsNaN(f):
			return 0, true
		case f >= math.MaxInt64:
			return math.MaxInt64, true
		case f <= math.MinInt64:
			return math.MinInt64, true
		}
		return int64(f), true
	}
	if d, ok := v.Decimal128(); ok {
		return decimalNumber(d.String()), true
	}
	return 0, false
}

// CastNumber is Number for commands that cast doubles as they are: what does not fit is the least
// number there is.
func CastNumber(v bson.RawValue) int64 {
	if f, ok := v.Double(); ok && (math.IsNaN(f) || math.Abs(f) >= 1<<63) {
		return math.MinInt64
	}
	n, _ := Number(v)
	if d, ok := v.Decimal128(); ok && (n == math.MaxInt64 || d.String() == "NaN") {
		return math.MinInt64
	}
	return n
}

// decimalNumber rounds a decimal to a whole number: half to even.
func decimalNumber(text string) int64 {
	x, _, err := big.ParseFloat(strings.Replace(text, "Infinity", "Inf", 1), 10, 256, big.ToNearestEven)
	switch {
	case err != nil: // not a number
		return 0
	case x.IsInf() || x.MantExp(nil) > 64:
		if x.Sign() < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	whole, _ := x.Int(nil)
	rest := new(big.Float).Sub(x, new(big.Float).SetInt(whole))
	half := rest.Abs(rest).Cmp(big.NewFloat(0.5))
	if half > 0 || half == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(int64(x.Sign())))
	}
	if !whole.IsInt64() {
		if whole.Sign() < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return whole.Int64()
}

// Checks of arguments as the server's generated parsers make them. field is the full name,
// "insert.ordered".

// Bool takes a boolean only, or any number as well if loose.
func Bool(field string, v bson.RawValue, loose bool) (bool, error) {
	if v.Type == bson.TypeBoolean {
		return v.AsBool(), nil
	}
	if !loose {
		return false, WrongType(field, v.Type, "bool")
	}
	if !v.IsNumber() {
		return false, WrongTypes(field, v.Type, "[bool, long, int, decimal, double']") // sic
	}
	return v.AsBool(), nil
}

// WrongTypes is the error of a field that takes several types, and none like this one.
func WrongTypes(field string, got bson.Type, want string) error {
	return srverr.New(srverr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected types '%s", field, bsontext.TypeName(got), want)
}

// Object takes a document.
func Object(field string, v bson.RawValue) (bson.Raw, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, WrongType(field, v.Type, "object")
	}
	return v.Value, nil
}

// String takes a string.
func String(field string, v bson.RawValue) (string, error) {
	s, ok := v.StringValue()
	if !ok {
		return "", WrongType(field, v.Type, "string")
	}
	return s, nil
}

// array takes an array.
func array(field string, v bson.RawValue) (bson.Raw, error) {
	if v.Type != bson.TypeArray {
		return nil, WrongType(field, v.Type, "array")
	}
	return v.Value, nil
}

// Integer takes any number, cut to an int64.
func Integer(field string, v bson.RawValue) (int64, error) {
	if !v.IsNumber() {
		return 0, WrongTypes(field, v.Type, "[long, int, decimal, double']") // sic
	}
	n, _ := Number(v)
	return n, nil
}

// Documents returns the documents of an array argument.
func Documents(field string, v bson.RawValue) ([]bson.Raw, error) {
	array, err := array(field, v)
	if err != nil {
		return nil, err
	}
	var list []bson.Raw
	for k, e := range array.All() {
		doc, err := Object(field+"."+k, e)
		if err != nil {
			return nil, err
		}
		list = append(list, doc)
	}
	return list, nil
}
