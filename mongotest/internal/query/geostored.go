package query

// What geo indexes refuse to have keys of.

import (
	"fmt"

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

// Plane is the region that a 2d index covers.
type Plane struct{ Min, Max float64 }

// Bad says why a 2d index cannot hold a document's value, "" if it can.
func (r Plane) Bad(doc bson.Raw, v bson.RawValue) (code int32, text string) {
	if !isObject(v) || bson.Raw(v.Value).IsEmpty() {
		return 0, ""
	}
	if _, first, _ := firstElement(v.Value); first.IsNumber() {
		return r.badPoint(doc, v.Value)
	}
	for e := range bson.Raw(v.Value).Values() { // several points
		if !isObject(e) {
			return 16804, "location object expected, location array not in correct format"
		}
		if bson.Raw(e.Value).IsEmpty() {
			continue
		}
		if code, text := r.badPoint(doc, e.Value); code != 0 {
			return code, text
		}
	}
	return 0, ""
}

func (r Plane) badPoint(doc, point bson.Raw) (code int32, text string) {
	list := documentValues(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: point})
	caused := " :: caused by :: " + bsontext.Document(doc)
	switch {
	case len(list) == 0:
		return 13067, "geo field is empty" + caused
	case len(list) == 1:
		return 13068, "geo field only has 1 element" + caused
	case !list[0].IsNumber() || !list[1].IsNumber():
		return 13026, "geo values must be 'legacy coordinate pairs' for 2d indexes" + caused
	}
	x, y := Float(list[0]), Float(list[1])
	if !(x >= r.Min && x < r.Max && y >= r.Min && y < r.Max) {
		return 13027, fmt.Sprintf("point not in interval of [ %s, %s ]", bsontext.CDouble(r.Min, 6),
			bsontext.CDouble(r.Max, 6)) + caused
	}
	return 0, ""
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
