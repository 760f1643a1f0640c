package query

// Predicates about places: $geoWithin, $geoIntersects, $near and $nearSphere.

import (
	"math"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// earthRadius is the server's, in metres.
const earthRadius = 6378100.0

// geoTest is $geoWithin and $geoIntersects.
type geoTest struct {
	within bool
	shape  *shape
	raw    bson.Raw // {field: {$operator: region}}
	work   *work.Meter
}

func (t *geoTest) test(v bson.RawValue) (bool, int) {
	s, err := parseStored(v, t.work)
	if err != "" || s.big() || !s.project(t.shape.flat) {
		return false, noIndex
	}
	if t.within {
		return t.shape.contains(s), noIndex
	}
	return t.shape.intersects(s), noIndex
}

func (p *filterParser) parseGeo(c condition) (node, error) {
	key, v := c.op, c.arg
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, badValue("geometry must be an object")
	}
	if first, _, _ := firstElement(c.ops); first == key {
		i := 0
		for extra, arg := range c.ops.All() {
			if i++; i == 2 {
				return nil, badValue("can't parse extra field: %s", bsontext.Element(extra, arg))
			}
		}
	}
	t := &geoTest{work: p.work, within: key != "$geoIntersects",
		raw: bsondoc.Single(c.field, bsondoc.DocumentValue(bsondoc.Single(key, v)))}
	for name, arg := range bson.Raw(v.Value).All() {
		if name == "$uniqueDocs" {
			continue
		}
		s, text := parseRegion(name, arg, p.work)
		if text != "" {
			return nil, badValue("%s", text)
		}
		if t.shape != nil && p.version.AtLeast(5, 0) {
			return nil, badValue("geo query has more than one geometry: %s", bsontext.Document(v.Value))
		}
		t.shape, s.work = s, p.work
	}
	switch {
	case t.shape == nil:
		return nil, badValue("geo query doesn't have any geometry")
	case t.within && !t.shape.area():
		return nil, badValue("$within not supported with provided geometry: { %s }", bsontext.Element(key, v))
	case !t.within && !t.shape.project(false):
		return nil, badValue("$geoIntersect not supported with provided geometry: { %s }", bsontext.Element(key, v))
	}
	return p.leaf(c.field, t), nil
}

// parseRegion parses what $geoWithin and $geoIntersects look in. Its text says what is wrong.
func parseRegion(name string, arg bson.RawValue, m *work.Meter) (s *shape, text string) {
	if arg.Type != bson.TypeArray && arg.Type != bson.TypeEmbeddedDocument {
		return nil, "unknown geo specifier: " + bsontext.Element(name, arg)
	}
	switch name {
	case "$geometry":
		if looksLegacy(arg) {
			return parsePlanePoint(arg, false)
		}
		return parseGeoJSON(arg.Value, m)
	case "$box":
		return parseBox(arg)
	case "$polygon":
		return parsePlanePolygon(arg)
	case "$center", "$centerSphere":
		return parseCircle(arg, name == "$centerSphere")
	}
	return nil, "unknown geo specifier: " + bsontext.Element(name, arg)
}

// Near is the $near or $nearSphere condition of a filter. It needs an index and yields the
// documents by distance.
type Near struct {
	path     Path
	center   *shape // a point
	sphere   bool   // the operator is $nearSphere and the point is not GeoJSON's
	radians  bool   // the unit of distances
	finite   bool   // distances of GeoJSON are
	max, min float64
	work     *work.Meter
}

// Near returns the filter's $near condition, nil if there is none.
func (f *Filter) Near() *Near { return f.near }

// Path returns the field that has to have a geo index.
func (n *Near) Path() string { return n.path.name }

// Uses reports whether an index of a kind, "2d" or "2dsphere", can find what is near.
func (n *Near) Uses(kind string) bool {
	if kind == "2dsphere" {
		return !n.center.flat
	}
	return n.center.flat || n.radians
}

// Distance returns how far the nearest of a document's geometries is, in metres for GeoJSON, else
// in radians or units of the plane; ok is false if there is none within the limits. place is that
// geometry.
func (n *Near) Distance(doc bson.Raw) (distance float64, place bson.RawValue, ok bool) {
	t := nearTest{near: n, best: math.Inf(1)}
	l := leaf{work: n.work, path: n.path, test: &t}
	l.match(doc)
	return t.best, t.place, t.place.Type != 0
}

// Exact returns the distance of a place that Distance found, to the last digit.
func (n *Near) Exact(distance float64, place bson.RawValue) float64 {
	s, text := parseStored(place, n.work)
	if text != "" || !s.single || n.center.flat || !s.project(false) {
		return distance
	}
	d := s.points[0].exactAngle(n.center.points[0]) * earthRadius
	if n.radians {
		d /= earthRadius
	}
	return d
}

// nearTest looks at all places and remembers the nearest.
type nearTest struct {
	near  *Near
	best  float64
	place bson.RawValue
}

func (t *nearTest) test(v bson.RawValue) (bool, int) {
	s, text := parseStored(v, t.near.work)
	if text != "" || s.big() || !s.project(t.near.center.flat) {
		return false, noIndex
	}
	var d float64
	if t.near.center.flat {
		d = math.Hypot(s.points[0].x-t.near.center.points[0].x, s.points[0].y-t.near.center.points[0].y)
	} else if d = s.angle(t.near.center.points[0].v) * earthRadius; t.near.radians {
		d /= earthRadius
	}
	if d <= t.near.max && d >= t.near.min && (d < t.best || t.place.Type == 0) {
		t.best, t.place = d, v
	}
	return false, noIndex
}

// nearNode stands for $near in the tree; distance and order are the caller's work.
type nearNode struct{ near *Near }

func (n nearNode) match(doc bson.Raw) (bool, int, error) {
	_, _, ok := n.near.Distance(doc)
	return ok, noIndex, nil
}

func (nearNode) matchValue(bson.RawValue) bool { return true }

// NearNotAllowed is the error of $near where documents cannot be sorted.
func NearNotAllowed(version release.Version) error {
	const text = "$geoNear, $near, and $nearSphere are not allowed in this context"
	if !version.AtLeast(5, 0) {
		return badValue("%s", text)
	}
	return srverr.New(5626500, text+", as these operators require sorting geospatial data. "+
		"If you do not need sort, consider using $geoWithin instead.")
}

func (p *filterParser) parseNear(field string, ops bson.Raw) (node, error) {
	if p.noText || p.noNear {
		return nil, NearNotAllowed(p.version)
	}
	n := &Near{finite: p.version.AllParsed(), path: NewPath(field), work: p.work}
	legacy, err := n.parseLegacy(ops)
	if err != nil {
		return nil, err
	}
	if !legacy {
		if err := n.parse(ops); err != nil {
			return nil, err
		}
	}
	if n.sphere {
		if n.radians = n.center.flat; n.radians && !n.center.project(false) {
			return nil, srverr.New(n.code(17444), "Legacy point is out of bounds for spherical query")
		}
	}
	if p.near != nil {
		return nil, badValue("Too many geoNear expressions")
	}
	p.near = n
	return &nearNode{n}, nil
}

// parseLegacy parses {$near: [x, y], $maxDistance: n}, also with a GeoJSON point of its own. ok is
// false if it is not that.
func (n *Near) parseLegacy(ops bson.Raw) (ok bool, err error) {
	n.max = math.MaxFloat64
	for key, v := range ops.All() {
		switch key {
		case "$near", "$nearSphere", "$geoNear":
			if v.Type != bson.TypeArray && v.Type != bson.TypeEmbeddedDocument {
				return false, nil
			}
			c, text := n.parsePoint(v)
			if text != "" {
				var far float64
				if c, far, text = parsePointWithDistance(v); text == "" {
					n.max = far
				}
			}
			if text == "" {
				if !(n.max >= 0) {
					return false, srverr.New(18522, "max distance must be non-negative")
				}
				n.center, n.sphere, ok = c, key == "$nearSphere", true
			}
		case "$minDistance":
			err = n.setLimit(&n.min, key, v, 16893)
		case "$maxDistance":
			err = n.setLimit(&n.max, key, v, 16895)
		case "$uniqueDocs":
		default:
			err = srverr.New(34413, "invalid argument in geo near query: %s", key)
		}
		if err != nil {
			return false, err
		}
	}
	return ok, nil
}

// parsePoint parses a place. Before 8.1 GeoJSON may have any type.
func (n *Near) parsePoint(v bson.RawValue) (*shape, string) {
	if doc, ok := v.Document(); ok && n.finite && doc.Lookup("coordinates").Type == bson.TypeArray {
		kind := doc.Lookup("type") // without one, it is a point
		if s, _ := kind.StringValue(); kind.Type != 0 && s != "Point" {
			return nil, "unknown GeoJSON type: " + bsontext.Document(doc)
		}
	}
	return parsePoint(v, false)
}

// parse parses {$near: {$geometry: point, $maxDistance: metres}}.
func (n *Near) parse(ops bson.Raw) error {
	n.min, n.max, n.sphere = 0, math.MaxFloat64, false
	_, v, _ := firstElement(ops)
	count := 0
	for key, extra := range ops.All() {
		if count++; count == 2 {
			return badValue("geo near accepts just one argument when querying for a GeoJSON point. Extra field found: %s", bsontext.Element(key, extra))
		}
	}
	for key, arg := range bson.Raw(v.Value).All() {
		switch key {
		case "$geometry":
			if arg.Type != bson.TypeArray && arg.Type != bson.TypeEmbeddedDocument {
				continue
			}
			c, text := n.parsePoint(arg)
			if text != "" {
				return badValue("invalid point in geo near query $geometry argument: %s  %s", bsontext.Value(arg), text)
			}
			if c.flat {
				return srverr.New(16681, "$near requires geojson point, given %s", bsontext.Value(arg))
			}
			n.center = c
		case "$minDistance":
			if err := n.setLimit(&n.min, key, arg, 16897); err != nil {
				return err
			}
		case "$maxDistance":
			if err := n.setLimit(&n.max, key, arg, 16899); err != nil {
				return err
			}
		default:
			return badValue("invalid argument in geo near query: %s", key)
		}
	}
	if n.center == nil {
		return badValue("$geometry is required for geo near query")
	}
	return nil
}

// code is the code of an error about a distance or a place. Servers of 8.2 have one for most.
func (n *Near) code(code int32) int32 {
	if n.finite && code > 16895 {
		return srverr.BadValue
	}
	return code
}

// setLimit reads a distance; code is that of what is no number, the next one that of what is
// negative.
func (n *Near) setLimit(to *float64, key string, v bson.RawValue, code int32) error {
	if !v.IsNumber() {
		return srverr.New(n.code(code), "%s must be a number", key)
	}
	*to = Float(v)
	if !(*to >= 0) || n.finite && code > 16895 && math.IsInf(*to, 0) {
		return srverr.New(n.code(code+1), "%s must be non-negative", key)
	}
	return nil
}

func (p *filterParser) parseText(_ string, v bson.RawValue, lv level) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, badValue("$text expects an object")
	}
	if lv == levelElemMatch {
		return nil, badValue("$text can only be applied to the top-level document")
	}
	if p.noText {
		return nil, badValue("$text is not allowed in this context")
	}
	if p.text != nil {
		return nil, badValue("Too many text expressions")
	}
	t := &textNode{}
	spec := bson.Raw(v.Value)
	known := 0
	for _, key := range []string{"$search", "$language", "$caseSensitive", "$diacriticSensitive"} {
		arg := lookup(spec, key)
		if arg.Type == 0 {
			if key == "$search" {
				return nil, srverr.New(srverr.NoSuchKey, "Missing expected field \"$search\"")
			}
			continue
		}
		known++
		want := bson.TypeString
		if strings.HasSuffix(key, "Sensitive") {
			want = bson.TypeBoolean
		}
		if arg.Type != want {
			return nil, srverr.New(srverr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s",
				key, bsontext.TypeName(want), bsontext.TypeName(arg.Type))
		}
		switch key {
		case "$search":
			t.query.Search, _ = arg.StringValue()
		case "$language":
			t.query.Language, _ = arg.StringValue()
		case "$caseSensitive":
			t.query.CaseSensitive = arg.AsBool()
		case "$diacriticSensitive":
			t.query.DiacriticSensitive = arg.AsBool()
		}
	}
	if countElements(spec) != known {
		return nil, badValue("extra fields in $text")
	}
	p.text = t
	return t, nil
}
