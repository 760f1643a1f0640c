package operator

// Places: geoWithin, geoShape, and distances on the sphere.

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/search/internal/index"
)

// earth is the mean radius of the earth in metres.
const earth = 6371008.7714

// haversine returns the distance of two places in metres.
func haversine(lng1, lat1, lng2, lat2 float64) float64 {
	rad := math.Pi / 180
	h := 1 - math.Cos((lat1-lat2)*rad) + math.Cos(lat1*rad)*math.Cos(lat2*rad)*(1-math.Cos((lng1-lng2)*rad))
	return 2 * earth * math.Asin(math.Min(1, math.Sqrt(h*0.5)))
}

// quantized returns a place as an index keeps it: in two numbers of 32 bits.
func quantized(lng, lat float64) (float64, float64) {
	const x, y = float64(1<<32) / 360, float64(1<<32) / 180
	keep := func(v, scale float64) float64 {
		return math.Max(math.MinInt32, math.Min(math.MaxInt32, math.Floor(v*scale))) / scale
	}
	return keep(lng, x), keep(lat, y)
}

// point returns the coordinates of a GeoJSON point.
func point(v bson.RawValue) (lng, lat float64, ok bool) {
	doc, _ := v.Document()
	if kind, _ := doc.Lookup("type").StringValue(); kind != "Point" {
		return 0, 0, false
	}
	x, y := doc.Lookup("coordinates", "0"), doc.Lookup("coordinates", "1")
	if !x.IsNumber() || !y.IsNumber() {
		return 0, 0, false
	}
	lng, lat = index.Float(x), index.Float(y)
	return lng, lat, math.Abs(lng) <= 180 && math.Abs(lat) <= 90
}

func (c *compiler) geoWithin(doc bson.Raw) (Query, error) {
	paths, err := c.paths(doc, true)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, name := range []string{"circle", "box", "geometry"} {
		if doc.Lookup(name).Type != 0 {
			n++
		}
	}
	if n != 1 {
		return nil, invalid("\"%s\" must have one of [circle, box, geometry]", c.where)
	}
	var is func(v bson.RawValue) bool
	if v := doc.Lookup("circle"); v.Type != 0 {
		circle, _ := v.Document()
		lng, lat, ok := point(circle.Lookup("center"))
		radius := circle.Lookup("radius")
		if !ok || !radius.IsNumber() || index.Float(radius) < 0 {
			return nil, invalid(
				"\"%s.circle\" must have a \"center\", which is a GeoJSON point, and a \"radius\" that is not negative",
				c.where)
		}
		is = func(v bson.RawValue) bool {
			x, y, ok := point(v)
			x, y = quantized(x, y)
			return ok && haversine(lng, lat, x, y) <= index.Float(radius)
		}
	}
	if v := doc.Lookup("box"); v.Type != 0 {
		box, _ := v.Document()
		left, bottom, ok := point(box.Lookup("bottomLeft"))
		right, top, ok2 := point(box.Lookup("topRight"))
		if !ok || !ok2 {
			return nil, invalid("\"%s.box\" must have \"bottomLeft\" and \"topRight\", which are GeoJSON points",
				c.where)
		}
		is = func(v bson.RawValue) bool {
			x, y, ok := point(v)
			across := x >= left && x <= right
			if left > right { // over the date line
				across = x >= left || x <= right
			}
			return ok && across && y >= bottom && y <= top
		}
	}
	if v := doc.Lookup("geometry"); v.Type != 0 {
		shape, _ := v.Document()
		if kind, _ := shape.Lookup("type").StringValue(); kind != "Polygon" && kind != "MultiPolygon" {
			return nil, invalid("\"%s.geometry\" must be a GeoJSON polygon or multipolygon", c.where)
		}
		within, err := c.geo("$geoWithin", v)
		if err != nil {
			return nil, err
		}
		is = func(v bson.RawValue) bool {
			_, _, isPoint := point(v)
			return isPoint && within(v)
		}
	}
	return c.places(paths, "geoWithin", is)
}

// geo returns a test of the server's geo queries.
func (c *compiler) geo(operator string, shape bson.RawValue) (func(v bson.RawValue) bool, error) {
	at, spec := bson.BeginDocument(nil)
	field, spec := bson.BeginDocumentElement(spec, "g")
	op, spec := bson.BeginDocumentElement(spec, operator)
	spec = bson.AppendRawValue(spec, "$geometry", shape)
	spec = bson.EndDocument(bson.EndDocument(bson.EndDocument(spec, op), field), at)
	f, err := query.ParseFilter(spec, &query.Options{Version: release.DefaultVersion})
	if err != nil {
		return nil, invalid("\"%s.geometry\" is not valid: %s", c.where, err)
	}
	return func(v bson.RawValue) bool {
		at, doc := bson.BeginDocument(nil)
		ok, err := f.Match(bson.EndDocument(bson.AppendRawValue(doc, "g", v), at))
		return ok && err == nil
	}, nil
}

func (c *compiler) places(paths []target, name string, is func(v bson.RawValue) bool) (Query, error) {
	var list []Query
	for _, p := range paths {
		if c.context.Field(p.path, "geo") == nil {
			return nil, invalid("Path '%s' needs to be indexed as geo", p.path)
		}
		list = append(list, &test{c.boost, name + "(" + p.path + ")", func(d *index.Doc) bool {
			for _, v := range d.Values[p.path] {
				if v.Kind == "geo" && is(v.V) {
					return true
				}
			}
			return false
		}})
	}
	return oneOf(list), nil
}

func (c *compiler) geoShape(doc bson.Raw) (Query, error) {
	paths, err := c.paths(doc, true)
	if err != nil {
		return nil, err
	}
	shape, err := c.required(doc, "geometry")
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if f := c.context.Field(p.path, "geo"); f != nil && !f.Shapes {
			return nil, invalid("Path '%s' needs to be indexed as geo with indexShapes", p.path)
		}
	}
	relation, _ := doc.Lookup("relation").StringValue()
	var is func(v bson.RawValue) bool
	switch relation {
	case "within":
		is, err = c.geo("$geoWithin", shape)
	case "intersects", "disjoint":
		is, err = c.geo("$geoIntersects", shape)
		if inner := is; relation == "disjoint" {
			is = func(v bson.RawValue) bool { return !inner(v) }
		}
	case "contains":
		_, err = c.geo("$geoIntersects", shape)
		is = func(v bson.RawValue) bool {
			within, err := c.geo("$geoWithin", v)
			return err == nil && within(shape)
		}
	default:
		return nil, invalid("\"%s.relation\" must be one of [contains, disjoint, intersects, within]", c.where)
	}
	if err != nil {
		return nil, err
	}
	return c.places(paths, "geoShape", is)
}
