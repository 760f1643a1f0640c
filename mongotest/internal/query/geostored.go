package query

import (
	"fmt"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
)

// What geo indexes refuse to have keys of.

// BadSphere says why a 2dsphere index cannot hold a value, "" if it can. field is the element's name.
func BadSphere(field string, v bson.RawValue) string {
	switch v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined:
		return ""
	case bson.TypeArray:
		return badPoint(v)
	case bson.TypeEmbeddedDocument:
	default:
		return "geo element must be an array or object: " + bsontext.Element(field, v)
	}
	for first := range bson.Raw(v.Value).Values() {
		if first.IsNumber() {
			return badPoint(v)
		}
		break
	}
	return badGeoJSON(v.Value)
}

// badPoint checks a point: two numbers within the bounds of the sphere.
func badPoint(v bson.RawValue) string {
	if v.Type != bson.TypeArray && v.Type != bson.TypeEmbeddedDocument {
		return "Point must be an array or object"
	}
	p, ok := parseLegacyPoint(v)
	if !ok {
		return "Point must only contain numeric elements"
	}
	if !(p.x >= -180 && p.x <= 180 && p.y >= -90 && p.y <= 90) {
		return fmt.Sprintf("longitude/latitude is out of bounds, lng: %s lat: %s", bsontext.CDouble(p.x, 6), bsontext.CDouble(p.y, 6))
	}
	return ""
}

func badGeoJSON(doc bson.Raw) string {
	kind, _ := doc.Lookup("type").StringValue()
	c := doc.Lookup("coordinates")
	each := func(v bson.RawValue, what string, check func(bson.RawValue) string) string {
		if v.Type != bson.TypeArray {
			return what
		}
		for e := range bson.Raw(v.Value).Values() {
			if text := check(e); text != "" {
				return text
			}
		}
		return ""
	}
	line := func(v bson.RawValue) string {
		text := each(v, "GeoJSON coordinates must be an array of coordinates", badPoint)
		if points, ok := parsePoints(v); text == "" && (!ok || len(points) < 2) {
			text = "GeoJSON LineString must have at least 2 vertices: " + bsontext.Value(v)
		}
		return text
	}
	loop := func(v bson.RawValue) string {
		text := each(v, "GeoJSON coordinates must be an array of coordinates", badPoint)
		points, _ := parsePoints(v)
		switch {
		case text != "":
			return text
		case len(points) < 4:
			return "Loop must have at least 3 different vertices: " + bsontext.Value(v)
		case points[0] != points[len(points)-1]:
			return "Loop is not closed: " + bsontext.Value(v)
		}
		return ""
	}
	polygon := func(v bson.RawValue) string { return each(v, "Polygon coordinates must be an array", loop) }
	switch kind {
	case "Point":
		return badPoint(c)
	case "LineString":
		return line(c)
	case "Polygon":
		return polygon(c)
	case "MultiPoint":
		return each(c, "MultiPoint coordinates must be an array", badPoint)
	case "MultiLineString":
		return each(c, "MultiLineString coordinates must be an array", line)
	case "MultiPolygon":
		return each(c, "MultiPolygon coordinates must be an array", polygon)
	case "GeometryCollection":
		return each(doc.Lookup("geometries"), "GeometryCollection geometries must be an array", func(v bson.RawValue) string {
			if v.Type != bson.TypeEmbeddedDocument {
				return fmt.Sprintf("Element %s of \"geometries\" is not an object", bsontext.Value(v))
			}
			return badGeoJSON(v.Value)
		})
	}
	return "unknown GeoJSON type: " + bsontext.Document(doc)
}

// BadPlane says why a 2d index cannot hold a value, "" if it can.
func BadPlane(v bson.RawValue) (code int32, text string) {
	switch v.Type {
	case 0, bson.TypeNull, bson.TypeUndefined:
		return 0, ""
	case bson.TypeArray, bson.TypeEmbeddedDocument:
	default:
		return 13068, "geo field only has 1 element"
	}
	doc := bson.Raw(v.Value)
	if doc.IsEmpty() {
		return 0, ""
	}
	for first := range doc.Values() {
		if !first.IsNumber() && (first.Type == bson.TypeArray || first.Type == bson.TypeEmbeddedDocument) {
			for e := range doc.Values() { // several points
				if code, text := BadPlane(e); code != 0 {
					return code, text
				}
			}
			return 0, ""
		}
		break
	}
	p, ok := parseLegacyPoint(v)
	switch {
	case !ok:
		return 13026, "geo values must be 'legacy coordinate pairs' for 2d indexes"
	case !(p.x >= -180 && p.x < 180 && p.y >= -180 && p.y < 180):
		return 13027, fmt.Sprintf("point not in interval of [ -180, 180 ] :: caused by :: %s", bsontext.Value(v))
	}
	return 0, ""
}
