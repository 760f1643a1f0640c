package server

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// The errors of the server's generated parsers.

func wrongType(field string, got bson.Type, want string) error {
	return srverr.New(srverr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", field, bsontext.TypeName(got), want)
}

func unknownField(field string) error {
	return srverr.New(40415, "BSON field '%s' is an unknown field.", field)
}

func missingField(field string) error {
	return srverr.New(40414, "BSON field '%s' is missing but a required field", field)
}

// number returns any number cut to an int64, as the server's numberLong does.
func number(v bson.RawValue) (int64, bool) {
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
	return 0, false
}
