package query

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// Geometry is computed in the plane, great-circle distances excepted: edges of GeoJSON polygons are straight in longitude
// and latitude instead of following great circles, which only matters for large ones.

// earthRadius is the server's, in metres.
const earthRadius = 6378100.0

type geoPoint struct{ x, y float64 }

// shape is a geometry: points, lines and polygons (each a list of rings, the first one the shell), or a circle.
type shape struct {
	points   []geoPoint
	lines    [][]geoPoint
	polygons [][][]geoPoint
	circle   bool
	center   geoPoint
	radius   float64 // in units of the plane, or in radians
	sphere   bool
}

// parseLegacyPoint parses [x, y] and {any: x, name: y}.
func parseLegacyPoint(v bson.RawValue) (geoPoint, bool) {
	if v.Type != bson.TypeArray && v.Type != bson.TypeEmbeddedDocument {
		return geoPoint{}, false
	}
	var xy [2]float64
	n := 0
	for e := range bson.Raw(v.Value).Values() {
		if !e.IsNumber() {
			return geoPoint{}, false
		}
		xy[n] = Float(e)
		if n++; n == 2 {
			break
		}
	}
	return geoPoint{xy[0], xy[1]}, n == 2
}

func parsePoints(v bson.RawValue) ([]geoPoint, bool) {
	if v.Type != bson.TypeArray && v.Type != bson.TypeEmbeddedDocument {
		return nil, false
	}
	var list []geoPoint
	for e := range bson.Raw(v.Value).Values() {
		p, ok := parseLegacyPoint(e)
		if !ok {
			return nil, false
		}
		list = append(list, p)
	}
	return list, true
}

func parseRings(v bson.RawValue) ([][]geoPoint, bool) {
	if v.Type != bson.TypeArray {
		return nil, false
	}
	var rings [][]geoPoint
	for e := range bson.Raw(v.Value).Values() {
		ring, ok := parsePoints(e)
		if !ok || len(ring) < 3 {
			return nil, false
		}
		rings = append(rings, ring)
	}
	return rings, len(rings) > 0
}

// parseGeoJSON parses a GeoJSON object.
func parseGeoJSON(v bson.RawValue) (s shape, ok bool) {
	doc, isDoc := v.Document()
	if !isDoc {
		return s, false
	}
	kind, _ := lookup(doc, "type").StringValue()
	coordinates := lookup(doc, "coordinates")
	if kind != "GeometryCollection" && coordinates.Type != bson.TypeArray {
		return s, false
	}
	switch kind {
	case "Point":
		p, ok := parseLegacyPoint(coordinates)
		s.points = []geoPoint{p}
		return s, ok
	case "MultiPoint":
		s.points, ok = parsePoints(coordinates)
	case "LineString":
		var line []geoPoint
		line, ok = parsePoints(coordinates)
		s.lines = [][]geoPoint{line}
		ok = ok && len(line) > 1
	case "MultiLineString":
		for e := range bson.Raw(coordinates.Value).Values() {
			line, good := parsePoints(e)
			if !good {
				return s, false
			}
			s.lines = append(s.lines, line)
		}
		ok = len(s.lines) > 0
	case "Polygon":
		var rings [][]geoPoint
		rings, ok = parseRings(coordinates)
		s.polygons = [][][]geoPoint{rings}
	case "MultiPolygon":
		for e := range bson.Raw(coordinates.Value).Values() {
			rings, good := parseRings(e)
			if !good {
				return s, false
			}
			s.polygons = append(s.polygons, rings)
		}
		ok = len(s.polygons) > 0
	case "GeometryCollection":
		for e := range bson.Raw(lookup(doc, "geometries").Value).Values() {
			part, good := parseGeoJSON(e)
			if !good {
				return s, false
			}
			s.points = append(s.points, part.points...)
			s.lines = append(s.lines, part.lines...)
			s.polygons = append(s.polygons, part.polygons...)
		}
		ok = true
	}
	return s, ok
}

// parseStored parses a geometry as documents have it.
func parseStored(v bson.RawValue) (shape, bool) {
	if s, ok := parseGeoJSON(v); ok {
		return s, true
	}
	p, ok := parseLegacyPoint(v)
	return shape{points: []geoPoint{p}}, ok
}

// insideRing tells whether a point is inside of a ring or on it.
func insideRing(ring []geoPoint, p geoPoint) bool {
	inside := false
	for i, a := range ring {
		b := ring[(i+1)%len(ring)]
		if onSegment(a, b, p) {
			return true
		}
		if (a.y > p.y) != (b.y > p.y) && p.x < (b.x-a.x)*(p.y-a.y)/(b.y-a.y)+a.x {
			inside = !inside
		}
	}
	return inside
}

func cross(a, b, c geoPoint) float64 { return (b.x-a.x)*(c.y-a.y) - (b.y-a.y)*(c.x-a.x) }

func onSegment(a, b, p geoPoint) bool {
	return cross(a, b, p) == 0 && p.x >= min(a.x, b.x) && p.x <= max(a.x, b.x) && p.y >= min(a.y, b.y) && p.y <= max(a.y, b.y)
}

func segmentsMeet(a, b, c, d geoPoint) bool {
	if onSegment(a, b, c) || onSegment(a, b, d) || onSegment(c, d, a) || onSegment(c, d, b) {
		return true
	}
	return (cross(a, b, c) > 0) != (cross(a, b, d) > 0) && (cross(c, d, a) > 0) != (cross(c, d, b) > 0)
}

// has tells whether a point is in the shape.
func (s *shape) has(p geoPoint) bool {
	if s.circle {
		return s.distance(p) <= s.radius
	}
	for _, q := range s.points {
		if q == p {
			return true
		}
	}
	for _, line := range s.lines {
		for i := 1; i < len(line); i++ {
			if onSegment(line[i-1], line[i], p) {
				return true
			}
		}
	}
	for _, rings := range s.polygons {
		if !insideRing(rings[0], p) {
			continue
		}
		hole := false
		for _, ring := range rings[1:] {
			hole = hole || insideRing(ring, p)
		}
		if !hole {
			return true
		}
	}
	return false
}

// distance is that of a point from the centre.
func (s *shape) distance(p geoPoint) float64 {
	if s.sphere {
		return radians(s.center, p)
	}
	return math.Hypot(s.center.x-p.x, s.center.y-p.y)
}

// radians is the angle between two points on a sphere, given in degrees.
func radians(a, b geoPoint) float64 {
	const degree = math.Pi / 180
	dLat, dLng := (b.y-a.y)*degree/2, (b.x-a.x)*degree/2
	h := math.Sin(dLat)*math.Sin(dLat) + math.Cos(a.y*degree)*math.Cos(b.y*degree)*math.Sin(dLng)*math.Sin(dLng)
	return 2 * math.Asin(math.Min(1, math.Sqrt(h)))
}

func (s *shape) vertices() []geoPoint {
	list := append([]geoPoint(nil), s.points...)
	for _, line := range s.lines {
		list = append(list, line...)
	}
	for _, rings := range s.polygons {
		for _, ring := range rings {
			list = append(list, ring...)
		}
	}
	return list
}

func (s *shape) edges(visit func(a, b geoPoint) bool) bool {
	for _, line := range s.lines {
		for i := 1; i < len(line); i++ {
			if visit(line[i-1], line[i]) {
				return true
			}
		}
	}
	for _, rings := range s.polygons {
		for _, ring := range rings {
			for i, a := range ring {
				if visit(a, ring[(i+1)%len(ring)]) {
					return true
				}
			}
		}
	}
	return false
}

func (s *shape) contains(other *shape) bool {
	for _, p := range other.vertices() {
		if !s.has(p) {
			return false
		}
	}
	return true
}

func (s *shape) intersects(other *shape) bool {
	for _, p := range other.vertices() {
		if s.has(p) {
			return true
		}
	}
	for _, p := range s.vertices() {
		if other.has(p) {
			return true
		}
	}
	return s.edges(func(a, b geoPoint) bool {
		return other.edges(func(c, d geoPoint) bool { return segmentsMeet(a, b, c, d) })
	})
}

// geoTest is $geoWithin and $geoIntersects.
type geoTest struct {
	within bool
	shape  shape
}

func (t *geoTest) test(v bson.RawValue) (bool, int) {
	s, ok := parseStored(v)
	if !ok {
		return false, noIndex
	}
	if t.within {
		return t.shape.contains(&s), noIndex
	}
	return t.shape.intersects(&s), noIndex
}

func (p *filterParser) parseGeo(field, key string, v bson.RawValue) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return nil, badValue("geometry must be an object")
	}
	t := &geoTest{within: key != "$geoIntersects"}
	found := false
	for name, arg := range bson.Raw(v.Value).All() {
		if name == "$uniqueDocs" {
			continue
		}
		s, err := parseRegion(name, arg, v.Value)
		if err != nil {
			return nil, err
		}
		if t.within && len(s.polygons) == 0 && !s.circle {
			return nil, badValue("%s not supported with provided geometry: %s", key, bsontext.Document(v.Value))
		}
		if !t.within && name != "$geometry" {
			return nil, badValue("%s not supported with provided geometry: %s", key, bsontext.Document(v.Value))
		}
		t.shape, found = s, true
	}
	if !found {
		return nil, badValue("geo query doesn't have any geometry")
	}
	return &leaf{path: NewPath(field), test: t}, nil
}

// parseRegion parses what $geoWithin and $geoIntersects look in.
func parseRegion(name string, arg bson.RawValue, spec bson.Raw) (s shape, err error) {
	points, ok := parsePoints(arg)
	switch name {
	case "$geometry":
		if s, ok = parseGeoJSON(arg); !ok {
			if p, isPoint := parseLegacyPoint(arg); isPoint {
				return shape{points: []geoPoint{p}}, nil
			}
			return s, badValue("unknown GeoJSON type: %s", bsontext.Value(arg))
		}
		return s, nil
	case "$box":
		if !ok || len(points) < 2 {
			return s, badValue("Point must be an array or object")
		}
		a, b := points[0], points[1]
		s.polygons = [][][]geoPoint{{{{a.x, a.y}, {a.x, b.y}, {b.x, b.y}, {b.x, a.y}}}}
		return s, nil
	case "$polygon":
		if !ok {
			return s, badValue("Point must be an array or object")
		}
		if len(points) < 3 {
			return s, badValue("Polygon must have at least 3 points")
		}
		s.polygons = [][][]geoPoint{{points}}
		return s, nil
	case "$center", "$centerSphere":
		list := arrayValues(arg)
		if len(list) == 0 {
			return s, badValue("Point must be an array or object")
		}
		s.circle, s.sphere = true, name == "$centerSphere"
		if s.center, ok = parseLegacyPoint(list[0]); !ok {
			return s, badValue("Point must be an array or object")
		}
		if len(list) < 2 || !list[1].IsNumber() || Float(list[1]) < 0 {
			return s, badValue("radius must be a non-negative number")
		}
		s.radius = Float(list[1])
		return s, nil
	}
	return s, badValue("unknown geo specifier: %s", bsontext.Element(name, arg))
}

// Near is the $near or $nearSphere condition of a filter. It needs an index and yields the documents by distance.
type Near struct {
	path     Path
	center   geoPoint
	sphere   bool
	metres   bool
	max, min float64
}

// Near returns the filter's $near condition, nil if there is none.
func (f *Filter) Near() *Near { return f.near }

// Path returns the field that has to have a geo index.
func (n *Near) Path() string { return n.path.name }

// Distance returns how far the nearest of a document's points is, in metres for GeoJSON, else in radians or units of
// the plane; ok is false if there is none within the limits.
func (n *Near) Distance(doc bson.Raw) (distance float64, ok bool) {
	t := nearTest{near: n, best: math.Inf(1)}
	l := leaf{path: n.path, test: &t}
	l.match(doc)
	return t.best, !math.IsInf(t.best, 1)
}

// nearTest looks at all points and remembers the nearest.
type nearTest struct {
	near *Near
	best float64
}

func (t *nearTest) test(v bson.RawValue) (bool, int) {
	s, ok := parseStored(v)
	if !ok {
		return false, noIndex
	}
	circle := shape{center: t.near.center, sphere: t.near.sphere}
	for _, p := range s.vertices() {
		d := circle.distance(p)
		if t.near.metres {
			d *= earthRadius
		}
		if d <= t.near.max && d >= t.near.min {
			t.best = min(t.best, d)
		}
	}
	return false, noIndex
}

// nearNode stands for $near in the tree; distance and order are the caller's work.
type nearNode struct{ near *Near }

func (n nearNode) match(doc bson.Raw) (bool, int, error) {
	_, ok := n.near.Distance(doc)
	return ok, noIndex, nil
}

func (nearNode) matchValue(bson.RawValue) bool { return true }

func (p *filterParser) parseNear(field string, ops bson.Raw) (node, error) {
	if p.noText {
		return nil, badValue("$geoNear, $near, and $nearSphere are not allowed in this context")
	}
	n := &Near{path: NewPath(field), max: math.MaxFloat64}
	for key, v := range ops.All() {
		switch key {
		case "$near", "$nearSphere", "$geoNear":
			n.sphere = key == "$nearSphere"
			if g := lookup(v.Value, "$geometry"); v.Type == bson.TypeEmbeddedDocument && g.Type != 0 {
				s, ok := parseGeoJSON(g)
				if !ok || len(s.points) != 1 {
					return nil, badValue("$near requires a point, given %s", bsontext.Value(g))
				}
				n.center, n.sphere, n.metres = s.points[0], true, true
				for name, arg := range bson.Raw(v.Value).All() {
					if err := n.limit(name, arg); err != nil {
						return nil, err
					}
				}
				continue
			}
			c, ok := parseLegacyPoint(v)
			if !ok {
				return nil, badValue("invalid point in geo near query $geometry argument: %s", bsontext.Document(v.Value))
			}
			n.center = c
			if list := arrayValues(v); v.Type == bson.TypeArray && len(list) > 2 && list[2].IsNumber() {
				n.max = Float(list[2])
			}
		case "$maxDistance", "$minDistance":
			if err := n.limit(key, v); err != nil {
				return nil, err
			}
		case "$uniqueDocs":
		default:
			return nil, badValue("invalid argument in geo near query: %s", key)
		}
	}
	if p.near != nil {
		return nil, badValue("Too many geoNear expressions")
	}
	p.near = n
	return &nearNode{n}, nil
}

func (n *Near) limit(key string, v bson.RawValue) error {
	var to *float64
	switch key {
	case "$maxDistance":
		to = &n.max
	case "$minDistance":
		to = &n.min
	case "$geometry":
		return nil
	default:
		return badValue("invalid argument in geo near query: %s", key)
	}
	if !v.IsNumber() {
		return badValue("%s must be a number", key[1:])
	}
	if *to = Float(v); *to < 0 {
		return badValue("%s must be non-negative", key[1:])
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
	for key, arg := range bson.Raw(v.Value).All() {
		want := bson.TypeString
		switch key {
		case "$search", "$language":
		case "$caseSensitive", "$diacriticSensitive":
			want = bson.TypeBoolean
		default:
			return nil, badValue("extra fields in $text")
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
	if lookup(v.Value, "$search").Type == 0 {
		return nil, srverr.New(srverr.NoSuchKey, "Missing expected field \"$search\"")
	}
	p.text = t
	return t, nil
}
