package query

import (
	"math"
	"strconv"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// typeAliases are the names that $type takes.
var typeAliases = map[string]bson.Type{
	"double":              bson.TypeDouble,
	"string":              bson.TypeString,
	"object":              bson.TypeEmbeddedDocument,
	"array":               bson.TypeArray,
	"binData":             bson.TypeBinary,
	"undefined":           bson.TypeUndefined,
	"objectId":            bson.TypeObjectID,
	"bool":                bson.TypeBoolean,
	"date":                bson.TypeDateTime,
	"null":                bson.TypeNull,
	"regex":               bson.TypeRegex,
	"dbPointer":           bson.TypeDBPointer,
	"javascript":          bson.TypeJavaScript,
	"symbol":              bson.TypeSymbol,
	"javascriptWithScope": bson.TypeCodeWithScope,
	"int":                 bson.TypeInt32,
	"timestamp":           bson.TypeTimestamp,
	"long":                bson.TypeInt64,
	"decimal":             bson.TypeDecimal128,
	"maxKey":              bson.TypeMaxKey,
	"minKey":              bson.TypeMinKey,
}

// parseTypeSet parses the argument of $type: a number, a name, or an array of them.
func parseTypeSet(field string, v bson.RawValue) (typeSet, error) {
	var set typeSet
	if v.Type != bson.TypeArray {
		return set, set.add(v)
	}
	n := 0
	for e := range bson.Raw(v.Value).Values() {
		if err := set.add(e); err != nil {
			return set, err
		}
		n++
	}
	if n == 0 {
		return set, srverr.New(srverr.FailedToParse, "%s must match at least one type", field)
	}
	return set, nil
}

func (s *typeSet) add(v bson.RawValue) error {
	if v.IsNumber() {
		return s.addCode(v)
	}
	name, ok := v.StringValue()
	if !ok {
		return srverr.New(srverr.TypeMismatch, "type must be represented as a number or a string")
	}
	if name == "number" {
		s.numbers = true
		return nil
	}
	t, ok := typeAliases[name]
	if !ok {
		return unknownType(name)
	}
	s.types = append(s.types, t)
	return nil
}

// unknownType is the error for a name that no type has. The expression $type has one more.
func unknownType(name string) error {
	if name == "missing" {
		return badValue("'missing' is not a legal type name. To query for non-existence of a field, use {$exists:false}.")
	}
	return badValue("Unknown type name alias: %s", name)
}

func (s *typeSet) addCode(v bson.RawValue) error {
	code, ok := exactInt64(v)
	if ok && code == 0 {
		return badValue("Invalid numerical type code: 0. Instead use {$exists:false}.")
	}
	t := bson.Type(code)
	if code == -1 {
		t = bson.TypeMinKey
	}
	if !ok || code < -1 || code > math.MaxInt8 || !t.IsValid() {
		return badValue("Invalid numerical type code: %s", plainNumber(v))
	}
	s.types = append(s.types, t)
	return nil
}

// plainNumber renders a number as a C++ stream does.
func plainNumber(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeDouble:
		f, _ := v.Double()
		return bsontext.CDouble(f, 6)
	case bson.TypeDecimal128:
		return bsontext.CDouble(Float(v), 6)
	}
	n, _ := v.AsInt64()
	return strconv.FormatInt(n, 10)
}
