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

// Checks of arguments as the server's generated parsers make them. field is the full name, "insert.ordered".

// boolArg takes a boolean only, or any number as well if loose.
func boolArg(field string, v bson.RawValue, loose bool) (bool, error) {
	if v.Type == bson.TypeBoolean {
		return v.AsBool(), nil
	}
	if !loose {
		return false, wrongType(field, v.Type, "bool")
	}
	if !v.IsNumber() {
		return false, wrongTypes(field, v.Type, "[bool, long, int, decimal, double']")
	}
	return v.AsBool(), nil
}

func wrongTypes(field string, got bson.Type, want string) error {
	return srverr.New(srverr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected types '%s", field, bsontext.TypeName(got), want)
}

// objectArg takes a document.
func objectArg(field string, v bson.RawValue) (bson.Raw, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, wrongType(field, v.Type, "object")
	}
	return v.Value, nil
}

// stringArg takes a string.
func stringArg(field string, v bson.RawValue) (string, error) {
	s, ok := v.StringValue()
	if !ok {
		return "", wrongType(field, v.Type, "string")
	}
	return s, nil
}

// arrayArg takes an array.
func arrayArg(field string, v bson.RawValue) (bson.Raw, error) {
	if v.Type != bson.TypeArray {
		return nil, wrongType(field, v.Type, "array")
	}
	return v.Value, nil
}

// numberArg takes any number, cut to an int64.
func numberArg(field string, v bson.RawValue) (int64, error) {
	if !v.IsNumber() {
		return 0, wrongTypes(field, v.Type, "[long, int, decimal, double']")
	}
	n, _ := number(v)
	return n, nil
}

// documentList returns the documents of an array argument.
func documentList(field string, v bson.RawValue) ([]bson.Raw, error) {
	array, err := arrayArg(field, v)
	if err != nil {
		return nil, err
	}
	var list []bson.Raw
	for k, e := range array.All() {
		doc, err := objectArg(field+"."+k, e)
		if err != nil {
			return nil, err
		}
		list = append(list, doc)
	}
	return list, nil
}
