package query

// The cells of the plane that 2d indexes have as keys: a square, which is divided into quarters,
// these again, and so on. The number of a cell has two bits for each level, of which the first says
// whether the quarter is to the right, and the second whether it is above.

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/work"
)

// Plane is the grid of a 2d index: from Min up to Max in both directions, with 2 to the power of
// Bits cells each. The last cells have Max itself, too.
type Plane struct {
	Min, Max float64
	Bits     int
}

// gridCell is a cell of a level; x and y have that many bits.
type gridCell struct {
	x, y  uint32
	level int
}

// scale is the number of the smallest cells that there can be in a unit.
func (g *Plane) scale() float64 { return (1 << 32) / (g.Max - g.Min) }

func (g *Plane) axis(x float64) uint32 {
	at := (x - g.Min) * g.scale()
	switch {
	case !(at > 0):
		return 0
	case at >= 1<<32:
		return math.MaxUint32
	}
	return uint32(at)
}

// at returns the cell of a level that has a point.
func (g *Plane) at(x, y float64, level int) gridCell {
	return gridCell{g.axis(x) >> (32 - level), g.axis(y) >> (32 - level), level}
}

// hash is the number of the cell, with its first bit as the first of 64.
func (c gridCell) hash() (n uint64) {
	for k := c.level - 1; k >= 0; k-- {
		n = n<<2 | uint64(c.x>>k&1)<<1 | uint64(c.y>>k&1)
	}
	return n << (64 - 2*c.level)
}

func (c gridCell) child(k int) gridCell {
	return gridCell{c.x<<1 | uint32(k>>1), c.y<<1 | uint32(k&1), c.level + 1}
}

// hashValue is a number as an index has it.
func hashValue(n uint64) bson.RawValue {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return bson.RawValue{Type: bson.TypeBinary, Value: bson.AppendBinaryValue(nil, 0x80, b[:])}
}

// bounds are those of the keys within some cells, in order.
func (g *Plane) bounds(list []gridCell) []Interval {
	out := make([]Interval, len(list))
	for i, c := range list {
		first := c.hash()
		last := first
		if c.level < 32 {
			last |= math.MaxUint64 >> (2 * c.level)
		}
		out[i] = Interval{Lo: hashValue(first), Hi: hashValue(last)}
	}
	return out
}

// box is a rectangle of the plane.
type box struct{ min, max geoPoint }

// box returns the part of the plane that a cell is, made wider by a margin.
func (g *Plane) box(c gridCell, margin float64) box {
	edge := func(i uint32, more float64) float64 {
		return g.Min + math.Ldexp(float64(i)+more, 32-c.level)/g.scale()
	}
	return box{geoPoint{x: edge(c.x, 0) - margin, y: edge(c.y, 0) - margin},
		geoPoint{x: edge(c.x, 1) + margin, y: edge(c.y, 1) + margin}}
}

// planeRegion is a part of the plane that is to be covered.
type planeRegion interface {
	// reach is the greatest number among its coordinates.
	reach() float64
	// within compares the region with a rectangle.
	within(b box) overlap
}

// maxPlaneCells is about how many cells cover a part of the plane: what the parameter
// internalGeoPredicateQuery2DMaxCoveringCells is by default.
const maxPlaneCells = 16

// cover returns the cells that have a part of a region, in order: the largest ones are divided as
// long as there are not too many.
func (g *Plane) cover(r planeRegion) []gridCell {
	// What a computation may be wrong by has to be much less.
	margin := 1e-12 * (math.Abs(g.Min) + math.Abs(g.Max) + r.reach())
	var whole, parts []gridCell
	look := func(c gridCell) {
		switch what := r.within(g.box(c, margin)); {
		case what == noOverlap:
		case what == fullOverlap || c.level >= g.Bits:
			whole = append(whole, c)
		default:
			parts = append(parts, c)
		}
	}
	look(gridCell{})
	for i := 0; i < len(parts); i++ { // the larger ones come first
		done, waiting := len(whole), len(parts)
		for k := range 4 {
			look(parts[i].child(k))
		}
		if more := len(whole) - done + len(parts) - waiting; more > 1 && done+waiting-i-1+more > maxPlaneCells {
			whole, parts = append(whole[:done], parts[i]), parts[:waiting]
		}
	}
	return joinedCells(whole)
}

// joinedCells sorts cells that are apart, and puts one in the place of four that make it up.
func joinedCells(list []gridCell) (out []gridCell) {
	slices.SortFunc(list, func(a, b gridCell) int {
		if a.hash() < b.hash() {
			return -1
		}
		return 1
	})
	for _, c := range list {
		out = append(out, c)
		for n := len(out); n >= 4 && out[n-1].level > 0; n = len(out) {
			up := gridCell{out[n-1].x >> 1, out[n-1].y >> 1, out[n-1].level - 1}
			if !slices.Equal(out[n-4:], []gridCell{up.child(0), up.child(1), up.child(2), up.child(3)}) {
				break
			}
			out = append(out[:n-4], up)
		}
	}
	return out
}

func (s *shape) reach() float64 {
	far := math.Abs(s.radius) + max(math.Abs(s.center.x), math.Abs(s.center.y))
	list := s.ring
	if s.box != nil {
		list = s.box[:]
	}
	for _, p := range list {
		far = max(far, math.Abs(p.x), math.Abs(p.y))
	}
	return far
}

func (s *shape) within(b box) overlap {
	switch {
	case s.box != nil:
		return boxes{{s.box[0], s.box[1]}}.within(b)
	case s.ring == nil:
		return annulus{center: s.center, outer: s.radius}.within(b)
	}
	s.work.Do(len(s.ring))
	for i, p := range s.ring {
		if b.meets(p, s.ring[(i+1)%len(s.ring)]) {
			return partOverlap
		}
	}
	if insideRing(s.ring, geoPoint{x: b.min.x + (b.max.x-b.min.x)/2, y: b.min.y + (b.max.y-b.min.y)/2}) {
		return fullOverlap
	}
	return noOverlap
}

// meets reports whether the line between two points has a part in the box.
func (b box) meets(p, q geoPoint) bool {
	from, to := 0.0, 1.0
	clip := func(p, q, least, most float64) bool {
		d := q - p
		if d == 0 {
			return p >= least && p <= most
		}
		enter, leave := (least-p)/d, (most-p)/d
		if enter > leave {
			enter, leave = leave, enter
		}
		from, to = max(from, enter), min(to, leave)
		return from <= to
	}
	return clip(p.x, q.x, b.min.x, b.max.x) && clip(p.y, q.y, b.min.y, b.max.y)
}

// annulus is what lies between two circles of the plane.
type annulus struct {
	center       geoPoint
	inner, outer float64
}

func (r annulus) reach() float64 { return r.outer + max(math.Abs(r.center.x), math.Abs(r.center.y)) }

func (r annulus) within(b box) overlap {
	near := math.Hypot(max(b.min.x-r.center.x, 0, r.center.x-b.max.x),
		max(b.min.y-r.center.y, 0, r.center.y-b.max.y))
	far := b.farthest(r.center)
	switch {
	case near > r.outer || far < r.inner:
		return noOverlap
	case far <= r.outer && near >= r.inner:
		return fullOverlap
	}
	return partOverlap
}

// farthest is the distance between a point and the corner that is farthest from it.
func (b box) farthest(p geoPoint) float64 {
	return math.Hypot(max(p.x-b.min.x, b.max.x-p.x), max(p.y-b.min.y, b.max.y-p.y))
}

// boxes are rectangles of the plane.
type boxes []box

func (list boxes) reach() (far float64) {
	for _, b := range list {
		far = max(far, math.Abs(b.min.x), math.Abs(b.min.y), math.Abs(b.max.x), math.Abs(b.max.y))
	}
	return far
}

func (list boxes) within(b box) overlap {
	what := noOverlap
	for _, r := range list {
		switch {
		case b.min.x > r.max.x || b.max.x < r.min.x || b.min.y > r.max.y || b.max.y < r.min.y:
		case b.min.x >= r.min.x && b.max.x <= r.max.x && b.min.y >= r.min.y && b.max.y <= r.max.y:
			return fullOverlap
		default:
			what = partOverlap
		}
	}
	return what
}

// capBoxes returns rectangles of longitudes and latitudes that have all of a circle on the sphere.
func capBoxes(center geoPoint, radius float64) boxes {
	radius += 2 * onEdge
	const margin = 1e-7 // degrees
	turn := radius*180/math.Pi + margin
	low, high := center.y-turn, center.y+turn
	if low <= -90 || high >= 90 {
		return boxes{{geoPoint{x: -180, y: max(low, -90)}, geoPoint{x: 180, y: min(high, 90)}}}
	}
	wide := 180.0
	if s := math.Sin(radius) / math.Cos(center.y*math.Pi/180); s < 1 {
		wide = min(math.Asin(s)*180/math.Pi+margin, 180)
	}
	list := boxes{{geoPoint{x: max(center.x-wide, -180), y: low}, geoPoint{x: min(center.x+wide, 180), y: high}}}
	if center.x-wide < -180 {
		list = append(list, box{geoPoint{x: center.x - wide + 360, y: low}, geoPoint{x: 180, y: high}})
	}
	if center.x+wide > 180 {
		list = append(list, box{geoPoint{x: -180, y: low}, geoPoint{x: center.x + wide - 360, y: high}})
	}
	return list
}

// planeBounds returns the bounds of $geoWithin for a 2d index; ok is false for other conditions,
// and for GeoJSON.
func (c Condition) planeBounds(g *Plane) (list []Interval, how Tightness, ok bool) {
	l, ok := c.node.(*leaf)
	if !ok {
		return nil, 0, false
	}
	t, ok := l.test.(*geoTest)
	switch {
	case !ok || !t.within || !t.shape.flat && !t.shape.circle:
		return nil, 0, false
	case !t.shape.flat:
		return g.bounds(g.cover(capBoxes(t.shape.center, t.shape.radius))), Fetched, true
	case t.shape.ring == nil && t.shape.box == nil && !t.shape.circle: // a point
		return nil, 0, false
	}
	return g.bounds(g.cover(t.shape)), Fetched, true
}

// Keys returns the keys that a document's value has in a 2d index: those of a point, or of several.
// The code and the text say why it cannot have them; the code is 0 if it can. m counts the steps.
func (g *Plane) Keys(doc bson.Raw, v bson.RawValue, m *work.Meter) (keys []bson.RawValue, code int32, text string) {
	if !isObject(v) || bson.Raw(v.Value).IsEmpty() {
		return nil, 0, ""
	}
	if _, first, _ := firstElement(v.Value); first.IsNumber() {
		key, code, text := g.key(doc, v.Value)
		return []bson.RawValue{key}, code, text
	}
	for e := range bson.Raw(v.Value).Values() {
		m.Do(1)
		if !isObject(e) {
			return nil, 16804, "location object expected, location array not in correct format"
		}
		if bson.Raw(e.Value).IsEmpty() {
			continue
		}
		key, code, text := g.key(doc, e.Value)
		if code != 0 {
			return nil, code, text
		}
		keys = append(keys, key)
	}
	return keys, 0, ""
}

func (g *Plane) key(doc, point bson.Raw) (key bson.RawValue, code int32, text string) {
	list := documentValues(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: point})
	switch {
	case len(list) == 0:
		code, text = 13067, "geo field is empty"
	case len(list) == 1:
		code, text = 13068, "geo field only has 1 element"
	case !list[0].IsNumber() || !list[1].IsNumber():
		code, text = 13026, "geo values must be 'legacy coordinate pairs' for 2d indexes"
	case !g.has(Float(list[0]), Float(list[1])):
		code, text = 13027, g.outside()
	default:
		return hashValue(g.at(Float(list[0]), Float(list[1]), g.Bits).hash()), 0, ""
	}
	return key, code, text + " :: caused by :: " + bsontext.Document(doc)
}

// outside says that a point is none of the plane.
func (g *Plane) outside() string {
	return fmt.Sprintf("point not in interval of [ %s, %s ]", bsontext.CDouble(g.Min, 6), bsontext.CDouble(g.Max, 6))
}

func (g *Plane) has(x, y float64) bool { return x >= g.Min && x <= g.Max && y >= g.Min && y <= g.Max }
