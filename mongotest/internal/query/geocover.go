package query

// Coverings: the few cells that together hold a geometry. Documents have their geometry's as keys
// of a 2dsphere index, and the bounds of a scan are made of the query's.

import (
	"math"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/work"
)

// Which cells a covering may be made of, and about how many: what the parameters
// internalQueryS2GeoFinestLevel and internalQueryS2GeoMaxCells are by default.
const (
	finestCell      = 23
	maxCoveringSize = 20
)

// region is a part of the sphere that is to be covered.
type region interface {
	// bound returns a circle around the region; it may be larger than needed.
	bound() (center vector, radius float64)
	// look compares the region with a cell. near is what look has returned for a cell around that
	// one, nil at first: it has to look at nothing else.
	look(c *cell, near *vicinity) (overlap, *vicinity)
}

// overlap is what a region has in common with a cell.
type overlap uint8

const (
	noOverlap   overlap = iota
	partOverlap         // or none, if it cannot tell
	fullOverlap         // it has all of the cell
)

// vicinity is the part of a geometry that a cell may have.
type vicinity struct {
	points []vector
	edges  [][2]vector
}

func (s *shape) bound() (center vector, radius float64) {
	if s.circle {
		return s.center.v, s.radius
	}
	if len(s.polygons) > 0 && s.polygons[0].outside {
		return vector{1}, math.Pi
	}
	all := s.vicinity()
	for _, e := range all.edges {
		all.points = append(all.points, e[0], e[1])
	}
	for _, p := range all.points {
		center = center.add(p)
	}
	if center.norm() < 1e-6 {
		return vector{1}, math.Pi
	}
	center = center.scale(1 / center.norm())
	for _, p := range all.points {
		radius = max(radius, center.angle(p))
	}
	if radius > math.Pi/2-0.01 { // it may not have the inside of lines between its points
		return vector{1}, math.Pi
	}
	return center, radius
}

func (s *shape) vicinity() *vicinity {
	v := &vicinity{}
	for _, p := range s.points {
		v.points = append(v.points, p.v)
	}
	for _, l := range s.lines {
		for i := 1; i < len(l); i++ {
			v.edges = append(v.edges, [2]vector{l[i-1], l[i]})
		}
	}
	for i := range s.polygons {
		s.polygons[i].edges(func(a, b vector) bool {
			v.edges = append(v.edges, [2]vector{a, b})
			return false
		})
	}
	return v
}

func (s *shape) look(c *cell, near *vicinity) (overlap, *vicinity) {
	if s.circle {
		return circleOverlap(s.center.v, s.radius, c), nil
	}
	if near == nil {
		near = s.vicinity()
	}
	in := &vicinity{}
	s.work.Do(len(near.points) + len(near.edges))
	for _, p := range near.points {
		if c.has(p) {
			in.points = append(in.points, p)
		}
	}
	for _, e := range near.edges {
		if c.meets(e[0], e[1]) {
			in.edges = append(in.edges, e)
		}
	}
	if len(in.points)+len(in.edges) > 0 {
		return partOverlap, in
	}
	if slices.ContainsFunc(s.polygons, func(g polygon) bool { return g.side(c.center) >= 0 }) {
		return fullOverlap, in
	}
	return noOverlap, in
}

// circleOverlap compares a circle with a cell: it has all of it if the rest of the sphere is a
// circle that has none.
func circleOverlap(center vector, radius float64, c *cell) overlap {
	far := center.angle(c.center)
	switch {
	case far > radius+c.radius+cellMargin:
		return noOverlap
	case radius >= math.Pi, far+c.radius+cellMargin < radius:
		return fullOverlap
	case c.distance(center) > radius+cellMargin:
		return noOverlap
	case c.distance(center.scale(-1)) > math.Pi-radius:
		return fullOverlap
	}
	return partOverlap
}

// candidate is a cell that a covering may have.
type candidate struct {
	cell     *cell
	terminal bool // it is not divided
	near     *vicinity
	children []*candidate
	priority int
}

// coverer looks for a covering: cells are divided, the largest ones first, as long as there are not
// too many.
type coverer struct {
	region  region
	max     int
	finest  int
	waiting []*candidate
	result  []cellID
}

// minCellWidth times a power of two is the least width of the cells of a level, in radians.
const minCellWidth = 2 * math.Sqrt2 / 3

// cover returns the cells that cover a region, in ascending order.
func cover(r region, most, finest int) []cellID {
	c := &coverer{region: r, max: most, finest: finest}
	for _, id := range c.begin() {
		c.add(c.candidate(id, nil))
	}
	for len(c.waiting) > 0 {
		best := 0
		for i, w := range c.waiting {
			if w.priority < c.waiting[best].priority {
				best = i
			}
		}
		next := c.waiting[best]
		c.waiting = slices.Delete(c.waiting, best, best+1)
		if len(next.children) == 1 || len(c.result)+len(c.waiting)+len(next.children) <= c.max {
			for _, child := range next.children {
				c.add(child)
			}
			continue
		}
		next.terminal = true
		c.add(next)
	}
	return joined(c.result)
}

// begin returns cells that hold the region: up to four that meet in its middle, or the faces.
func (c *coverer) begin() []cellID {
	center, radius := c.region.bound()
	level := maxCellLevel
	if width := 2 * (radius + cellMargin); width > 0 {
		level = min(max(math.Ilogb(minCellWidth/width), 0), maxCellLevel)
	}
	if level = min(level, c.finest, maxCellLevel-1); level > 0 {
		return leafOf(center).around(level)
	}
	faces := make([]cellID, 6)
	for i := range faces {
		faces[i] = cellID(i)<<61 | bitOf(0)
	}
	return faces
}

// candidate returns the candidate of a cell, nil if the region has nothing of it.
func (c *coverer) candidate(id cellID, near *vicinity) *candidate {
	at := newCell(id)
	what, near := c.region.look(at, near)
	if what == noOverlap {
		return nil
	}
	return &candidate{cell: at, near: near, terminal: what == fullOverlap || at.level >= c.finest}
}

func (c *coverer) add(x *candidate) {
	switch {
	case x == nil:
		return
	case x.terminal:
		c.result = append(c.result, x.cell.id)
		return
	}
	terminal := 0
	for k := range 4 {
		if child := c.candidate(x.cell.id.child(k), x.near); child != nil {
			x.children = append(x.children, child)
			if child.terminal {
				terminal++
			}
		}
	}
	switch {
	case len(x.children) == 0:
	case terminal == 4:
		x.terminal = true
		c.add(x)
	default:
		x.priority = (x.cell.level<<2+len(x.children))<<2 + terminal
		c.waiting = append(c.waiting, x)
	}
}

// joined sorts cells, and puts one in the place of four that make it up.
func joined(list []cellID) []cellID {
	slices.Sort(list)
	var out []cellID
	for _, id := range list {
		if n := len(out); n > 0 && out[n-1].first() <= id && id <= out[n-1].final() {
			continue
		}
		for len(out) > 0 && id.first() <= out[len(out)-1] && out[len(out)-1] <= id.final() {
			out = out[:len(out)-1]
		}
		for n := len(out); n >= 3 && id.level() > 0; n = len(out) {
			up := id.parent(id.level() - 1)
			if out[n-1] != up.child(2) || out[n-2] != up.child(1) || out[n-3] != up.child(0) || id != up.child(3) {
				break
			}
			out, id = out[:n-3], up
		}
		out = append(out, id)
	}
	return out
}

// key is a cell as a 2dsphere index of a version has it: the number, or before version 3 the digits
// of its face and its quarters.
func (c cellID) key(version int) bson.RawValue {
	if version >= 3 {
		return bsondoc.Int64Value(int64(c))
	}
	return bsondoc.StringValue(c.digits())
}

func (c cellID) digits() string {
	var b strings.Builder
	b.WriteByte('0' + byte(c>>61))
	b.WriteByte('f')
	for level := 1; level <= c.level(); level++ {
		b.WriteByte('0' + byte(c>>(2*(maxCellLevel-level)+1)&3))
	}
	return b.String()
}

// SphereKeys returns the keys that a value has in a 2dsphere index of a version, and what is wrong
// with it, "" if nothing is. field is the element's name. m counts the steps.
func SphereKeys(version int, field string, v bson.RawValue, m *work.Meter) (keys []bson.RawValue, text string) {
	s, text := storedInSphere(version, field, v, m)
	if s == nil {
		return nil, text
	}
	for _, id := range s.cells(version) {
		keys = append(keys, id.key(version))
	}
	return keys, ""
}

// cells are those of a document's geometry.
func (s *shape) cells(version int) []cellID {
	if s.single && version >= 3 {
		return []cellID{leafOf(s.points[0].v)}
	}
	if s.single {
		return []cellID{leafOf(s.points[0].v).parent(finestCell)}
	}
	return cover(s, maxCoveringSize, finestCell)
}

// Cells is how a geo index divides space: the sphere, or a plane.
type Cells struct {
	Sphere int    // the version of a 2dsphere index
	Plane  *Plane // of a 2d index; nil: it is one of the sphere
}

// cellBounds are the bounds of the keys of all cells that are part of some, or have a part of them.
func cellBounds(list []cellID, version int) []Interval {
	var out []Interval
	seen := map[cellID]bool{}
	for _, id := range list {
		in := Interval{Lo: id.first().key(version), Hi: id.final().key(version)}
		if version < 3 {
			text := id.digits()
			end := []byte(text)
			end[len(end)-1]++
			in = Interval{Lo: bsondoc.StringValue(text), Hi: bsondoc.StringValue(string(end)), HiOpen: true}
		}
		out = append(out, in)
		for level := id.level() - 1; level >= 0 && !seen[id.parent(level)]; level-- {
			seen[id.parent(level)] = true
			out = append(out, point(id.parent(level).key(version)))
		}
	}
	return Union(nil, out, nil)
}

// sphereBounds returns the bounds of $geoWithin and $geoIntersects for a 2dsphere index of a
// version; ok is false for other conditions, and for what is meant in the plane.
func (c Condition) sphereBounds(version int) (list []Interval, how Tightness, ok bool) {
	l, ok := c.node.(*leaf)
	if !ok {
		return nil, 0, false
	}
	t, ok := l.test.(*geoTest)
	if !ok || t.shape.flat {
		return nil, 0, false
	}
	return cellBounds(cover(t.shape, maxCoveringSize, finestCell), version), Fetched, true
}
