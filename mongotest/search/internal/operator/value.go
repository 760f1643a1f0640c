package operator

// The operators that compare values: equals, in, range, exists, near.

import (
	"math"
	"strconv"

	"allium/bson"
	"allium/mongotest/search/internal/index"
)

// kindOf returns the type that a value is indexed as.
func kindOf(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeBoolean:
		return "boolean"
	case bson.TypeObjectID:
		return "objectId"
	case bson.TypeDateTime:
		return "date"
	case bson.TypeString:
		return "token"
	case bson.TypeNull:
		return "null"
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		return "number"
	}
	if b, ok := v.Binary(); ok && b.Subtype == bson.BinaryUUID {
		return "uuid"
	}
	return ""
}

// normal returns a value as a path has it, if it is indexed so. Strings have to be.
func (c *compiler) normal(path, kind string, v bson.RawValue) (bson.RawValue, error) {
	if kind != "token" {
		return v, nil
	}
	f := c.context.Field(path, "token")
	if f == nil {
		return v, invalid("Path '%s' needs to be indexed as token", path)
	}
	s, _ := v.StringValue()
	return stringValue(f.Normal(s)), nil
}

func stringValue(s string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, s)}
}

func (c *compiler) equals(doc bson.Raw) (Query, error) {
	paths, err := c.paths(doc, false)
	if err != nil {
		return nil, err
	}
	v, err := c.required(doc, "value")
	if err != nil {
		return nil, err
	}
	kind := kindOf(v)
	if kind == "" {
		return nil, invalid("\"%s.value\" must be a boolean, objectId, number, string, date, uuid or null", c.where)
	}
	if kind == "number" && (math.IsNaN(index.Float(v)) || math.IsInf(index.Float(v), 0)) {
		return nothing{}, nil // an interval of numbers that are finite
	}
	return c.anyOf(paths, kind, []bson.RawValue{v})
}

func (c *compiler) in(doc bson.Raw) (Query, error) {
	paths, err := c.paths(doc, true)
	if err != nil {
		return nil, err
	}
	v, err := c.required(doc, "value")
	if err != nil {
		return nil, err
	}
	list := []bson.RawValue{v}
	if a, ok := v.Array(); ok {
		list = nil
		for item := range a.Values() {
			list = append(list, item)
		}
	}
	kind := ""
	for _, v := range list {
		k := kindOf(v)
		if k == "" || k == "null" {
			return nil, invalid(
				"\"%s.value\" must be a boolean, objectId, number, string, date or uuid, or an array of such", c.where)
		}
		if kind != "" && k != kind {
			return nil, invalid("\"%s.value\" must have values of one type", c.where)
		}
		kind = k
	}
	if len(list) == 0 {
		return nil, invalid("\"%s.value\" cannot be empty", c.where)
	}
	return c.anyOf(paths, kind, list)
}

// anyOf makes a query for one of some values of a kind at one of some paths.
func (c *compiler) anyOf(paths []target, kind string, list []bson.RawValue) (Query, error) {
	var tests []Query
	for _, p := range paths {
		values := make([]bson.RawValue, len(list))
		for i, v := range list {
			var err error
			if values[i], err = c.normal(p.path, kind, v); err != nil {
				return nil, err
			}
		}
		tests = append(tests,
			&test{c.boost, c.context.Prefix() + "$type:" + kind + "/" + p.path, func(d *index.Doc) bool {
				for _, have := range d.Values[p.path] {
					if have.Kind != kind {
						continue
					}
					for _, v := range values {
						if same(kind, have.V, v) {
							return true
						}
					}
				}
				return false
			}})
	}
	return oneOf(tests), nil
}

// same reports whether two values of a kind are equal. Numbers are doubles to the index.
func same(kind string, a, b bson.RawValue) bool {
	if kind != "number" {
		return bson.Compare(a, b) == 0
	}
	x, y := index.Float(a), index.Float(b)
	return x == y || math.IsNaN(x) && math.IsNaN(y)
}

func (c *compiler) rangeOf(doc bson.Raw) (Query, error) {
	paths, err := c.paths(doc, true)
	if err != nil {
		return nil, err
	}
	kind := ""
	bounds := map[string]bson.RawValue{}
	for _, name := range []string{"gt", "gte", "lt", "lte"} {
		v := doc.Lookup(name)
		if v.Type == 0 {
			continue
		}
		k := kindOf(v)
		switch {
		case k == "" || k == "null" || k == "boolean" || k == "uuid":
			return nil, invalid("\"%s.%s\" must be a number, date, string or objectId", c.where, name)
		case kind != "" && k != kind:
			return nil, invalid("\"%s\" must have bounds of the same type", c.where)
		}
		kind, bounds[name] = k, v
	}
	for _, pair := range [][2]string{{"gt", "gte"}, {"lt", "lte"}} {
		if bounds[pair[0]].Type != 0 && bounds[pair[1]].Type != 0 {
			return nil, invalid("\"%s\" cannot have both \"%s\" and \"%s\"", c.where, pair[0], pair[1])
		}
	}
	if kind == "" {
		return nil, invalid("\"%s\" must have one of [gt, gte, lt, lte]", c.where)
	}
	for low, v := range map[string]bson.RawValue{"gt": bounds["gt"], "gte": bounds["gte"]} {
		for high, w := range map[string]bson.RawValue{"lt": bounds["lt"], "lte": bounds["lte"]} {
			if v.Type == 0 || w.Type == 0 {
				continue
			}
			if n := bson.Compare(v, w); n > 0 || n == 0 && low == "gt" && high == "lt" {
				return nil, invalid("\"%s\" is empty: its lower bound is above its upper bound", c.where)
			}
		}
	}
	var tests []Query
paths:
	for _, p := range paths {
		own := map[string]bson.RawValue{}
		for name, v := range bounds {
			if kind == "token" && c.context.Field(p.path, "token") == nil && c.context.Field(p.path, "number") != nil {
				continue paths // where there are numbers, no string is
			}
			if own[name], err = c.normal(p.path, kind, v); err != nil {
				return nil, err
			}
		}
		text := c.context.Prefix() + "$type:" + kind + "/" + p.path + ":" + rangeText(own)
		if kind == "number" {
			text = c.context.Prefix() + "$type:double/" + p.path + ":" + rangeText(own)
		}
		tests = append(tests, &test{c.boost, text, func(d *index.Doc) bool {
			for _, have := range d.Values[p.path] {
				if have.Kind == kind && within(have.V, own) {
					return true
				}
			}
			return false
		}})
	}
	return oneOf(tests), nil
}

func within(v bson.RawValue, bounds map[string]bson.RawValue) bool {
	if f, ok := v.Double(); ok && f != f {
		return false
	}
	for name, b := range bounds {
		if f, ok := b.Double(); ok && f != f {
			return false
		}
		n := bson.Compare(v, b)
		if name == "gt" && n <= 0 || name == "gte" && n < 0 || name == "lt" && n >= 0 || name == "lte" && n > 0 {
			return false
		}
	}
	return true
}

// rangeText is how Lucene shows a range: numbers as the integers that their doubles sort as.
func rangeText(bounds map[string]bson.RawValue) string {
	show := func(inclusive, exclusive string, step int64, none int64) string {
		v, add := bounds[inclusive], int64(0)
		if v.Type == 0 {
			v, add = bounds[exclusive], step
		}
		switch {
		case v.Type == 0:
			return strconv.FormatInt(none, 10)
		case v.IsNumber():
			return strconv.FormatInt(sortable(index.Float(v))+add, 10)
		}
		if ms, ok := v.DateTime(); ok {
			return strconv.FormatInt(int64(ms)+add, 10)
		}
		if s, ok := v.StringValue(); ok {
			return s
		}
		if id, ok := v.ObjectID(); ok {
			return id.Hex()
		}
		return "*"
	}
	return "[" + show("gte", "gt", 1, math.MinInt64) + " TO " + show("lte", "lt", -1, math.MaxInt64) + "]"
}

func sortable(f float64) int64 {
	bits := int64(math.Float64bits(f))
	return bits ^ (bits >> 63 & math.MaxInt64)
}

func (c *compiler) exists(doc bson.Raw) (Query, error) {
	paths, err := c.paths(doc, false)
	if err != nil {
		return nil, err
	}
	path := paths[0].path
	return &test{c.boost, "ConstantScore($meta/fields:" + path + ")", func(d *index.Doc) bool { return d.Has(path) }},
		nil
}

// near scores documents by how near a value is to an origin.
type near struct {
	path     string
	kind     string
	pivot    float64
	boost    float32
	origin   float64 // of numbers and dates
	lng, lat float64 // of places
}

func (c *compiler) near(doc bson.Raw) (Query, error) {
	paths, err := c.paths(doc, true)
	if err != nil {
		return nil, err
	}
	origin, err := c.required(doc, "origin")
	if err != nil {
		return nil, err
	}
	pivot, err := c.required(doc, "pivot")
	if err != nil {
		return nil, err
	}
	if !pivot.IsNumber() || !(index.Float(pivot) > 0) ||
		math.IsInf(index.Float(pivot), 0) {
		return nil, invalid("\"%s.pivot\" must be positive and finite", c.where)
	}
	var list []Query
	for _, p := range paths {
		n := &near{path: p.path, kind: kindOf(origin), pivot: index.Float(pivot), boost: c.boost}
		switch n.kind {
		case "number":
			n.origin = index.Float(origin)
		case "date":
			ms, _ := origin.DateTime()
			n.origin = float64(ms)
		default:
			shape, ok := origin.Document()
			if kind, _ := shape.Lookup("type").StringValue(); !ok || kind != "Point" {
				return nil, invalid("\"%s.origin\" must be a number, a date or a GeoJSON point", c.where)
			}
			if n.lng, n.lat, ok = point(origin); !ok {
				return nil, invalid("\"%s.origin\" must be a number, a date or a GeoJSON point", c.where)
			}
			n.kind = "geo"
			if c.context.Field(p.path, "geo") == nil {
				return nil, invalid("Path '%s' needs to be indexed as geo", p.path)
			}
		}
		list = append(list, n)
	}
	return oneOf(list), nil
}

// distance returns how far a document is from the origin, and where it is.
func (n *near) distance(d *index.Doc) (distance, at float64, ok bool) {
	found := 0
	for _, v := range d.Values[n.path] {
		if v.Kind != n.kind {
			continue
		}
		if found++; found > 1 {
			return 0, 0, false // arrays are not searched
		}
		switch n.kind {
		case "number":
			at = index.Float(v.V)
		case "date":
			ms, _ := v.V.DateTime()
			at = float64(ms)
		case "geo":
			lng, lat, isPoint := point(v.V)
			if !isPoint {
				return 0, 0, false
			}
			lng, lat = quantized(lng, lat)
			return haversine(n.lng, n.lat, lng, lat), 0, true
		}
		distance = math.Abs(at - n.origin)
	}
	return distance, at, found == 1 && !math.IsNaN(at)
}

func (n *near) Score(d *index.Doc) (float32, bool) {
	distance, _, ok := n.distance(d)
	if !ok {
		return 0, false
	}
	if math.IsNaN(n.origin) {
		return 0, true
	}
	return float32(float64(n.boost) * (n.pivot / (n.pivot + distance))), true
}

func (n *near) Explain(d *index.Doc) Details {
	score, _ := n.Score(d)
	distance, at, _ := n.distance(d)
	e := Details{Value: float64(
		score), Description: "Distance score, computed as weight * pivotDistance / (pivotDistance + abs(value - origin)) from:"}
	e.Parts = []Details{{float64(n.boost), "weight", nil}, {n.pivot, "pivotDistance", nil}}
	if n.kind == "geo" {
		e.Description = "Distance score, computed as weight * pivotDistance / (pivotDistance + distance) from:"
		e.Parts = append(e.Parts, Details{distance, "distance", nil})
		return e
	}
	e.Parts = append(e.Parts, Details{n.origin, "origin", nil}, Details{at, "current value", nil})
	return e
}

func (n *near) Terms(func(Term)) {}
