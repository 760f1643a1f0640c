package query

// Geometries as queries and documents spell them. What is wrong with one is said in the words of
// the server.

import (
	"fmt"
	"math"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/work"
)

// geoPoint is a point of the plane, or of the sphere: x is the longitude and y the latitude in
// degrees, v the same as a vector.
type geoPoint struct {
	x, y float64
	v    vector
}

// spherical tells whether the point is one of the sphere.
func (p geoPoint) spherical() bool { return p.x >= -180 && p.x <= 180 && p.y >= -90 && p.y <= 90 }

// shape is a geometry in the plane (flat) or on the sphere.
type shape struct {
	flat bool
	// single: nothing but one point, which can be seen in the plane and on the sphere alike.
	single   bool
	points   []geoPoint
	lines    [][]vector
	polygons []polygon
	box      *[2]geoPoint // in the plane: the corners
	ring     []geoPoint   // in the plane: a polygon
	circle   bool
	center   geoPoint
	radius   float64 // in units of the plane, or in radians

	work *work.Meter // of who compares it with others; nil: nobody counts
}

// area tells whether the shape can contain something.
func (s *shape) area() bool { return len(s.polygons) > 0 || s.box != nil || s.ring != nil || s.circle }

// big tells whether it is a polygon with a strict winding order, which only queries may have.
func (s *shape) big() bool { return len(s.polygons) == 1 && s.polygons[0].strict }

// project makes the shape one of the plane or of the sphere; it reports whether that is possible.
func (s *shape) project(flat bool) bool {
	switch {
	case s.flat == flat:
		return true
	case !s.single || !flat && !s.points[0].spherical():
		return false
	}
	s.flat = flat
	return true
}

func isObject(v bson.RawValue) bool {
	return v.Type == bson.TypeArray || v.Type == bson.TypeEmbeddedDocument
}

// looksLegacy tells whether a value is meant as a legacy point rather than as GeoJSON.
func looksLegacy(v bson.RawValue) bool {
	_, first, ok := firstElement(v.Value)
	return v.Type == bson.TypeArray || ok && first.IsNumber()
}

// parsePair parses [x, y] and {any: x, name: y}. more allows further elements.
func parsePair(v bson.RawValue, more bool) (p geoPoint, text string) {
	if !isObject(v) {
		return p, "Point must be an array or object"
	}
	var xy [2]float64
	n := 0
	for e := range bson.Raw(v.Value).Values() {
		if n == 2 {
			if !more {
				return p, "Point must only contain two numeric elements"
			}
			break
		}
		if !e.IsNumber() {
			break
		}
		xy[n] = Float(e)
		n++
	}
	if n < 2 {
		return p, "Point must only contain numeric elements"
	}
	if math.IsNaN(xy[0]) || math.IsInf(xy[0], 0) || math.IsNaN(xy[1]) || math.IsInf(xy[1], 0) {
		return p, "Point coordinates must be finite numbers"
	}
	return geoPoint{xy[0], xy[1], toVector(xy[0], xy[1])}, ""
}

// parsePosition parses a point of GeoJSON coordinates.
func parsePosition(v bson.RawValue) (p geoPoint, text string) {
	if p, text = parsePair(v, true); text == "" && !p.spherical() {
		text = fmt.Sprintf("longitude/latitude is out of bounds, lng: %s lat: %s", bsontext.CDouble(p.x, 6),
			bsontext.CDouble(p.y, 6))
	}
	return p, text
}

func parsePlanePoint(v bson.RawValue, more bool) (*shape, string) {
	p, text := parsePair(v, more)
	return &shape{flat: true, single: true, points: []geoPoint{p}}, text
}

// parsePoint parses a point in either form.
func parsePoint(v bson.RawValue, more bool) (*shape, string) {
	if !isObject(v) {
		return nil, "Point must be an array or object"
	}
	if looksLegacy(v) {
		return parsePlanePoint(v, more)
	}
	return parseGeoJSONPoint(v.Value)
}

// parsePointWithDistance parses [x, y, distance].
func parsePointWithDistance(v bson.RawValue) (s *shape, distance float64, text string) {
	var n []float64
	for e := range bson.Raw(v.Value).Values() {
		if !e.IsNumber() {
			return nil, 0, "not a point with a distance"
		}
		n = append(n, Float(e))
	}
	if len(n) != 3 {
		return nil, 0, "not a point with a distance"
	}
	return &shape{flat: true, single: true, points: []geoPoint{{n[0], n[1], toVector(n[0], n[1])}}}, n[2], ""
}

func parseBox(v bson.RawValue) (*shape, string) {
	list := documentValues(v)
	var box [2]geoPoint
	for i := range box {
		var corner bson.RawValue
		if i < len(list) {
			corner = list[i]
		}
		p, text := parsePair(corner, false)
		if text != "" {
			return nil, text
		}
		box[i] = p
	}
	a, b := box[0], box[1]
	box[0], box[1] = geoPoint{x: min(a.x, b.x), y: min(a.y, b.y)}, geoPoint{x: max(a.x, b.x), y: max(a.y, b.y)}
	return &shape{flat: true, box: &box}, ""
}

func parsePlanePolygon(v bson.RawValue) (*shape, string) {
	s := &shape{flat: true}
	for e := range bson.Raw(v.Value).Values() {
		p, text := parsePair(e, false)
		if text != "" {
			return nil, text
		}
		s.ring = append(s.ring, p)
	}
	if len(s.ring) < 3 {
		return nil, "Polygon must have at least 3 points"
	}
	return s, ""
}

func parseCircle(v bson.RawValue, sphere bool) (*shape, string) {
	list := documentValues(v)
	for len(list) < 2 {
		list = append(list, bson.RawValue{})
	}
	s := &shape{flat: !sphere, circle: true}
	var text string
	if s.center, text = parsePair(list[0], false); text != "" {
		return nil, text
	}
	if sphere {
		if s.center, text = parsePosition(list[0]); text != "" {
			return nil, text
		}
	}
	if s.radius = Float(list[1]); !list[1].IsNumber() || !(s.radius >= 0) {
		return nil, "radius must be a non-negative number"
	}
	if len(list) > 2 {
		return nil, "Only 2 fields allowed for circular region"
	}
	return s, ""
}

// documentValues returns the values of an array or a document.
func documentValues(v bson.RawValue) []bson.RawValue {
	return slices.Collect(bson.Raw(v.Value).Values())
}

// parseStored parses a geometry as documents have it. m counts the steps of that.
func parseStored(v bson.RawValue, m *work.Meter) (*shape, string) {
	if !isObject(v) {
		return nil, "geo element must be an array or object: " + bsontext.Value(v)
	}
	if looksLegacy(v) {
		return parsePlanePoint(v, true)
	}
	return parseGeoJSON(v.Value, m)
}

// Names of coordinate reference systems.
const (
	crs84         = "urn:ogc:def:crs:OGC:1.3:CRS84"
	crs4326       = "EPSG:4326"
	crsStrictWind = "urn:x-mongodb:crs:strictwinding:EPSG:4326"
)

// parseCRS parses a geometry's coordinate reference system. strict is the one whose polygons may
// cover more than a hemisphere.
func parseCRS(doc bson.Raw, polygon bool) (strict bool, text string) {
	crs := doc.Lookup("crs")
	if crs.Type == 0 {
		return false, ""
	}
	if !isObject(crs) {
		return false, "GeoJSON CRS must be an object"
	}
	if kind, _ := bson.Raw(crs.Value).Lookup("type").StringValue(); kind != "name" {
		return false, `GeoJSON CRS must have field "type": "name"`
	}
	properties := bson.Raw(crs.Value).Lookup("properties")
	if !isObject(properties) {
		return false, `CRS must have field "properties" which is an object`
	}
	name, ok := bson.Raw(properties.Value).Lookup("name").StringValue()
	switch {
	case !ok:
		return false, `In CRS, "properties.name" must be a string`
	case name == crs84 || name == crs4326:
		return false, ""
	case name == crsStrictWind && !polygon:
		return false, "Strict winding order is only supported by polygon"
	case name == crsStrictWind:
		return true, ""
	}
	return false, "Unknown CRS name: " + name
}

func parseGeoJSONPoint(doc bson.Raw) (*shape, string) {
	if _, text := parseCRS(doc, false); text != "" {
		return nil, text
	}
	p, text := parsePosition(doc.Lookup("coordinates"))
	return &shape{single: true, points: []geoPoint{p}}, text
}

// parseGeoJSON parses a GeoJSON object. m counts the steps of that, and those of comparisons.
func parseGeoJSON(doc bson.Raw, m *work.Meter) (*shape, string) {
	kind, _ := doc.Lookup("type").StringValue()
	coordinates := doc.Lookup("coordinates")
	s := &shape{work: m}
	switch kind {
	case "Point":
		return parseGeoJSONPoint(doc)
	case "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon":
	case "GeometryCollection":
		return parseCollection(doc.Lookup("geometries"), m)
	default:
		return nil, "unknown GeoJSON type: " + bsontext.Document(doc)
	}
	strict, text := parseCRS(doc, kind == "Polygon")
	if text != "" {
		return nil, text
	}
	switch kind {
	case "LineString":
		text = s.addLine(coordinates)
	case "Polygon":
		if strict {
			text = s.addBigPolygon(coordinates)
		} else {
			text = s.addPolygon(coordinates)
		}
	case "MultiPoint":
		if s.points, text = parsePositions(coordinates); text == "" && len(s.points) == 0 {
			text = "MultiPoint coordinates must have at least 1 element"
		}
	case "MultiLineString":
		text = each(coordinates, kind, s.addLine)
	case "MultiPolygon":
		text = each(coordinates, kind, s.addPolygon)
	}
	return s, text
}

// each adds the parts of coordinates that have to be an array.
func each(v bson.RawValue, kind string, add func(bson.RawValue) string) string {
	if v.Type != bson.TypeArray {
		return kind + " coordinates must be an array"
	}
	list := documentValues(v)
	for _, e := range list {
		if text := add(e); text != "" {
			return text
		}
	}
	if len(list) == 0 {
		return kind + " coordinates must have at least 1 element"
	}
	return ""
}

func parseCollection(v bson.RawValue, m *work.Meter) (*shape, string) {
	if v.Type != bson.TypeArray {
		return nil, "GeometryCollection geometries must be an array"
	}
	s := &shape{work: m}
	list := documentValues(v)
	if len(list) == 0 {
		return nil, "GeometryCollection geometries must have at least 1 element"
	}
	for i, e := range list {
		doc, ok := e.Document()
		if !ok {
			return nil, fmt.Sprintf(`Element %d of "geometries" is not an object`, i)
		}
		switch kind, _ := doc.Lookup("type").StringValue(); kind {
		case "GeometryCollection":
			return nil, "GeometryCollections cannot be nested: " + bsontext.Value(e)
		case "Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon":
		default:
			return nil, "Unknown GeoJSON type: " + bsontext.Value(e)
		}
		part, text := parseGeoJSON(doc, m)
		if text != "" {
			return nil, text
		}
		s.points = append(s.points, part.points...)
		s.lines = append(s.lines, part.lines...)
		s.polygons = append(s.polygons, part.polygons...)
	}
	return s, ""
}

func parsePositions(v bson.RawValue) ([]geoPoint, string) {
	if v.Type != bson.TypeArray {
		return nil, "GeoJSON coordinates must be an array of coordinates"
	}
	var list []geoPoint
	for e := range bson.Raw(v.Value).Values() {
		p, text := parsePosition(e)
		if text != "" {
			return nil, text
		}
		list = append(list, p)
	}
	return list, ""
}

// parseVertices parses points and drops those that repeat the one before.
func parseVertices(v bson.RawValue) ([]vector, string) {
	points, text := parsePositions(v)
	var list []vector
	for _, p := range points {
		list = append(list, p.v)
	}
	return list, text
}

func (s *shape) addLine(v bson.RawValue) string {
	line, text := parseVertices(v)
	if text != "" {
		return text
	}
	line = slices.Compact(line)
	if len(line) < 2 {
		return "GeoJSON LineString must have at least 2 vertices: " + bsontext.Value(v)
	}
	for i := 1; i < len(line); i++ {
		if line[i] == line[i-1].scale(-1) {
			return fmt.Sprintf("GeoJSON LineString is not valid: Vertices %d and %d are identical or antipodal %s", i-1,
				i, bsontext.Value(v))
		}
	}
	s.lines = append(s.lines, line)
	return ""
}

// parseLoop parses a closed ring; whole is what messages show.
func parseLoop(v, whole bson.RawValue, m *work.Meter) (loop, string) {
	l, text := parseVertices(v)
	switch {
	case text != "":
		return nil, text
	case len(l) == 0:
		return nil, "Loop has no vertices: " + bsontext.Value(v)
	case l[0] != l[len(l)-1]:
		return nil, "Loop is not closed: " + bsontext.Value(v)
	}
	l = slices.Compact(l)
	l = l[:len(l)-1]
	if len(l) < 3 {
		return nil, "Loop must have at least 3 different vertices: " + bsontext.Value(whole)
	}
	if text := loop(l).invalid(m); text != "" {
		return nil, "Loop is not valid: " + bsontext.Value(whole) + " " + text
	}
	return l, ""
}

func (s *shape) addPolygon(v bson.RawValue) string {
	if v.Type != bson.TypeArray {
		return "Polygon coordinates must be an array"
	}
	p := polygon{work: s.work}
	list := documentValues(v)
	for i, e := range list {
		l, text := parseLoop(e, e, s.work)
		if text != "" {
			return text
		}
		l = l.normalize()
		if i > 0 && !p.loops[0].containsLoop(l, s.work) {
			return "Secondary loops not contained by first exterior loop - secondary loops must be holes: " +
				bsontext.Value(e) +
				" first loop: " + bsontext.Value(list[0])
		}
		p.loops = append(p.loops, l)
	}
	if len(p.loops) == 0 {
		return "Polygon has no loops."
	}
	if text := p.invalid(); text != "" {
		return "Polygon isn't valid: " + text + " " + bsontext.Value(v)
	}
	for i := 1; i < len(p.loops); i++ {
		for j := 1; j < len(p.loops); j++ {
			if i != j && p.loops[i].containsLoop(p.loops[j], s.work) {
				return "Polygon interior loops cannot be nested: " + bsontext.Value(v)
			}
		}
	}
	s.polygons = append(s.polygons, p)
	return ""
}

// addBigPolygon adds a polygon of one loop whose inside is on the left, even if that is more than a
// hemisphere.
func (s *shape) addBigPolygon(v bson.RawValue) string {
	if v.Type != bson.TypeArray {
		return "Coordinates of polygon must be an array"
	}
	list := documentValues(v)
	if len(list) != 1 {
		return "Only one simple loop is allowed in a big polygon: " + bsontext.Value(v)
	}
	l, text := parseLoop(list[0], v, s.work)
	if text != "" {
		return text
	}
	small := l.normalize()
	s.polygons = append(s.polygons, polygon{work: s.work, loops: []loop{small}, strict: true,
		outside: small[0] != l[0] || small[1] != l[1]})
	return ""
}
