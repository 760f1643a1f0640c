package arg

import (
	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// Arguments as the commands read them whose parsers are written by hand.

// NotA is the error of a field that has to have one type and has another one.
func NotA(field, want string, v bson.RawValue) error {
	return srverr.New(srverr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", field, want, bsontext.TypeName(v.Type))
}

// Missing is the error of a field that has to be there.
func Missing(field string) error {
	return srverr.New(srverr.NoSuchKey, "Missing expected field \"%s\"", field)
}

// ExtractString returns a string field that has to be there.
func ExtractString(doc bson.Raw, field string) (string, error) {
	v := doc.Lookup(field)
	if v.IsZero() {
		return "", Missing(field)
	}
	s, ok := v.StringValue()
	if !ok {
		return "", NotA(field, "string", v)
	}
	return s, nil
}

// ExtractBool returns a boolean field, which may be a number; byDefault if it is not given.
func ExtractBool(doc bson.Raw, field string, byDefault bool) (bool, error) {
	v := doc.Lookup(field)
	switch {
	case v.IsZero():
		return byDefault, nil
	case v.Type != bson.TypeBoolean && !v.IsNumber():
		return false, srverr.New(srverr.TypeMismatch, "Expected boolean or number type for field \"%s\", found %s", field, bsontext.TypeName(v.Type))
	}
	return v.AsBool(), nil
}

// ExtractArray returns an array field; ok is false if it is not given.
func ExtractArray(doc bson.Raw, field string) (list bson.Raw, ok bool, err error) {
	v := doc.Lookup(field)
	switch {
	case v.IsZero():
		return nil, false, nil
	case v.Type != bson.TypeArray:
		return nil, false, NotA(field, "array", v)
	}
	return v.Value, true, nil
}

// ExtractObject returns a document field; ok is false if it is not given.
func ExtractObject(doc bson.Raw, field string) (sub bson.Raw, ok bool, err error) {
	v := doc.Lookup(field)
	switch {
	case v.IsZero():
		return nil, false, nil
	case v.Type != bson.TypeEmbeddedDocument:
		return nil, false, NotA(field, "object", v)
	}
	return v.Value, true, nil
}

// ExtractFlag returns a boolean field, which may be nothing else; false if it is not given.
func ExtractFlag(doc bson.Raw, field string) (bool, error) {
	v := doc.Lookup(field)
	if v.IsZero() {
		return false, nil
	}
	b, ok := v.Boolean()
	if !ok {
		return false, NotA(field, "bool", v)
	}
	return b, nil
}
