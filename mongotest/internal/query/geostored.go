package query

// What geo indexes refuse to have keys of.

import (
	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/work"
)

// storedInSphere parses a document's value for a 2dsphere index: nil if there is none, or if the
// index cannot hold it, which the text says. field is the element's name. Indexes since version 2
// take null and what is empty for no value. m counts the steps.
func storedInSphere(version int, field string, v bson.RawValue, m *work.Meter) (s *shape, text string) {
	switch {
	case v.Type == 0, version > 1 && (v.Type == bson.TypeNull || v.Type == bson.TypeUndefined):
		return nil, ""
	case !isObject(v):
		return nil, "geo element must be an array or object: " + bsontext.Element(field, v)
	case version > 1 && bson.Raw(v.Value).IsEmpty():
		return nil, ""
	}
	s, text = parseStored(v, m)
	switch {
	case text != "":
		return nil, text
	case s.big() || !s.project(false):
		return nil, "can't project geometry into spherical CRS: " + bsontext.Value(v)
	}
	s.work = m
	return s, ""
}

// BadHaystack says why a geoHaystack index cannot hold a document's value, "" if it can.
func BadHaystack(doc bson.Raw, v bson.RawValue) (code int32, text string) {
	if v.Type == 0 {
		return 0, ""
	}
	var list []bson.RawValue
	if isObject(v) {
		list = documentValues(v)
	}
	switch {
	case len(list) < 2:
		return 16775, "cannot extract [lng, lat] array or object from " + bsontext.Document(doc)
	case !list[0].IsNumber() || !list[1].IsNumber():
		return 16776, "geo field is not a number"
	}
	return 0, ""
}
