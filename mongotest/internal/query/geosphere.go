package query

// Geometry on the sphere: edges are the shorter arcs of great circles.

import (
	"fmt"
	"math"
	"slices"

	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/work"
)

// vector is a point of the unit sphere.
type vector [3]float64

func toVector(lng, lat float64) vector {
	phi, theta := math.Pi/180*lat, math.Pi/180*lng
	c := math.Cos(phi)
	return vector{math.Cos(theta) * c, math.Sin(theta) * c, math.Sin(phi)}
}

func (a vector) dot(b vector) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func (a vector) cross(b vector) vector {
	return vector{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

func (a vector) norm() float64 { return math.Sqrt(a.dot(a)) }

func (a vector) scale(f float64) vector { return vector{a[0] * f, a[1] * f, a[2] * f} }

func (a vector) add(b vector) vector { return vector{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }

// angle is that between two points, in radians.
func (a vector) angle(b vector) float64 { return math.Atan2(a.cross(b).norm(), a.dot(b)) }

// exactAngle is the angle between two points with the last digit as the C library has it, which
// takes longer.
func (p geoPoint) exactAngle(q geoPoint) float64 {
	a, b := p.exactVector(), q.exactVector()
	sin, cos := a.cross(b).norm(), a.dot(b)
	if sin == 0 || cos == 0 {
		return a.angle(b)
	}
	return decimal.FromFloat(sin).Atan2(decimal.FromFloat(cos)).Float()
}

func (p geoPoint) exactVector() vector {
	phi, theta := decimal.FromFloat(math.Pi/180*p.y), decimal.FromFloat(math.Pi/180*p.x)
	c := phi.Cos().Float()
	return vector{theta.Cos().Float() * c, theta.Sin().Float() * c, phi.Sin().Float()}
}

// degrees returns latitude and longitude.
func (a vector) degrees() (lat, lng float64) {
	return math.Atan2(a[2], math.Hypot(a[0], a[1])) * 180 / math.Pi, math.Atan2(a[1], a[0]) * 180 / math.Pi
}

// onEdge is how near, in radians, a point has to be to count as lying on an edge: about a
// centimetre, the size of the smallest cells that the server knows.
const onEdge = 1e-9

// toEdge returns the angle between a point and the nearest point of an edge.
func (a vector) toEdge(b, c vector) float64 {
	n := b.cross(c)
	if length := n.norm(); length > 0 {
		n = n.scale(1 / length)
		// The nearest point of the great circle lies on the edge if it is between the planes
		// through its ends.
		if n.cross(b).dot(a) >= 0 && c.cross(n).dot(a) >= 0 && a.dot(b.add(c)) > 0 {
			return math.Abs(math.Asin(max(-1, min(1, n.dot(a)))))
		}
	}
	return min(a.angle(b), a.angle(c))
}

// edgesCross tells whether two edges cross at a point that is inside of both.
func edgesCross(a, b, c, d vector) bool {
	if a == c || a == d || b == c || b == d {
		return false
	}
	ab, cd := a.cross(b), c.cross(d)
	abc, abd, cda, cdb := ab.dot(c), ab.dot(d), cd.dot(a), cd.dot(b)
	if abc*abd >= 0 || cda*cdb >= 0 {
		return false
	}
	// The great circles meet at two points; the edges do at the one that is on their side of the
	// sphere.
	x := ab.cross(cd)
	if x.dot(a.add(b)) < 0 {
		x = x.scale(-1)
	}
	return x.dot(c.add(d)) > 0
}

// loop is a closed ring of vertices without the repeated last one.
type loop []vector

func (l loop) edges(visit func(a, b vector) bool) bool {
	for i, a := range l {
		if visit(a, l[(i+1)%len(l)]) {
			return true
		}
	}
	return false
}

// invalid says what is wrong with a loop, "" if it is simple. m counts its steps.
func (l loop) invalid(m *work.Meter) string {
	seen := map[vector]int{}
	for i, v := range l {
		if j, ok := seen[v]; ok {
			return fmt.Sprintf("Duplicate vertices: %d and %d", j, i)
		}
		seen[v] = i
	}
	point := func(v vector) string {
		lat, lng := v.degrees()
		return fmt.Sprintf("[%.7f, %.7f]", lat, lng)
	}
	for i := range l {
		for j := i + 2; j < len(l); j++ {
			m.Do(1)
			a, b, c, d := l[i], l[i+1], l[j], l[(j+1)%len(l)]
			if edgesCross(a, b, c, d) {
				return fmt.Sprintf("Edges %d and %d cross. Edge locations in degrees: %s-%s and %s-%s", i, j, point(a),
					point(b), point(c), point(d))
			}
		}
	}
	return ""
}

// normalize returns the loop with the smaller of its two sides, at most a hemisphere, on the left.
func (l loop) normalize() loop {
	area := 0.0
	for i := 1; i+1 < len(l); i++ {
		a, b, c := l[0], l[i], l[i+1]
		area += 2 * math.Atan2(a.dot(b.cross(c)), 1+a.dot(b)+b.dot(c)+c.dot(a))
	}
	area = math.Mod(area, 4*math.Pi)
	if area < 0 {
		area += 4 * math.Pi
	}
	if area <= 2*math.Pi {
		return l
	}
	l = slices.Clone(l)
	slices.Reverse(l)
	return l
}

// on tells whether a point lies on the loop.
func (l loop) on(p vector) bool {
	return l.edges(func(a, b vector) bool { return p.toEdge(a, b) <= onEdge })
}

// inside tells whether a point that is not on a normalized loop is inside of it: the loop turns
// around it once, to the left.
func (l loop) inside(p vector) bool {
	turn := 0.0
	l.edges(func(a, b vector) bool {
		u, w := a.add(p.scale(-p.dot(a))), b.add(p.scale(-p.dot(b)))
		turn += math.Atan2(p.dot(u.cross(w)), u.dot(w))
		return false
	})
	return turn > math.Pi
}

// containsLoop tells whether another loop lies inside.
func (l loop) containsLoop(other loop, m *work.Meter) bool {
	for _, v := range other {
		m.Do(len(l))
		if !l.on(v) && !l.inside(v) {
			return false
		}
	}
	return !l.crosses(other, m)
}

func (l loop) crosses(other loop, m *work.Meter) bool {
	return l.edges(func(a, b vector) bool {
		m.Do(len(other))
		return other.edges(func(c, d vector) bool { return edgesCross(a, b, c, d) })
	})
}

// polygon is a shell with holes.
type polygon struct {
	loops []loop
	// strict: the winding order says which side is meant; outside: it is the larger one.
	strict, outside bool
	work            *work.Meter // of who compares it with others
}

// invalid says what is wrong with loops that are fine by themselves.
func (p *polygon) invalid() string {
	type edge struct{ a, b vector }
	seen := map[edge][2]int{}
	for i, l := range p.loops {
		for j, a := range l {
			b := l[(j+1)%len(l)]
			for _, e := range []edge{{a, b}, {b, a}} {
				if at, ok := seen[e]; ok && at[0] != i {
					return fmt.Sprintf("Duplicate edge: loop %d, edge %d and loop %d, edge %d", i, j, at[0], at[1])
				}
			}
			seen[edge{a, b}] = [2]int{i, j}
		}
	}
	for i := range p.loops {
		for j := i + 1; j < len(p.loops); j++ {
			if p.loops[i].crosses(p.loops[j], p.work) {
				return fmt.Sprintf("Loop %d crosses loop %d", i, j)
			}
		}
	}
	return ""
}

// edges visits all edges.
func (p *polygon) edges(visit func(a, b vector) bool) bool {
	return slices.ContainsFunc(p.loops, func(l loop) bool { return l.edges(visit) })
}

// side says where a point is: 1 inside, 0 on the edge, -1 outside.
func (p *polygon) side(v vector) int {
	for _, l := range p.loops {
		p.work.Do(len(l))
		if l.on(v) {
			return 0
		}
	}
	in := p.loops[0].inside(v)
	for _, hole := range p.loops[1:] {
		in = in && !hole.inside(v)
	}
	if in != p.outside {
		return 1
	}
	return -1
}

func middle(a, b vector) vector {
	m := a.add(b)
	return m.scale(1 / m.norm())
}

// containsLine tells whether the polygon covers a line.
func (p *polygon) containsLine(line []vector) bool {
	for i, v := range line {
		if p.side(v) < 0 || i > 0 && p.side(middle(line[i-1], v)) < 0 {
			return false
		}
	}
	return !p.crossesLine(line)
}

func (p *polygon) crossesLine(line []vector) bool {
	return p.edges(func(a, b vector) bool {
		p.work.Do(len(line))
		for i := 1; i < len(line); i++ {
			if edgesCross(a, b, line[i-1], line[i]) {
				return true
			}
		}
		return false
	})
}

// intersectsLine tells whether a part of the line is inside.
func (p *polygon) intersectsLine(line []vector) bool {
	for i, v := range line {
		if p.side(v) >= 0 || i > 0 && p.side(middle(line[i-1], v)) > 0 {
			return true
		}
	}
	return p.crossesLine(line)
}

// closed returns a loop as a line.
func (l loop) closed() []vector { return append(slices.Clone([]vector(l)), l[0]) }

func (p *polygon) containsPolygon(other *polygon) bool {
	for _, l := range other.loops[:1] {
		if !p.containsLine(l.closed()) {
			return false
		}
	}
	for _, hole := range p.loops[1:] {
		for _, v := range hole {
			if other.side(v) > 0 {
				return false
			}
		}
	}
	return true
}

// intersectsPolygon tells whether the polygons share more than edges.
func (p *polygon) intersectsPolygon(other *polygon) bool {
	touches := func(p, other *polygon) bool {
		for _, l := range other.loops {
			for i, v := range l {
				if p.side(v) > 0 || p.side(middle(v, l[(i+1)%len(l)])) > 0 {
					return true
				}
			}
			if p.crossesLine(l.closed()) {
				return true
			}
		}
		return false
	}
	if touches(p, other) || touches(other, p) {
		return true
	}
	// All vertices and edges are shared: the polygons are the same, or they are neighbours.
	var m vector
	for _, v := range other.loops[0] {
		m = m.add(v)
	}
	return p.side(m.scale(1/m.norm())) > 0
}

// capContains tells whether a point is within the radius of the center of a circle.
func (s *shape) capContains(v vector) bool { return s.center.v.angle(v) <= s.radius+onEdge }

// capContainsLine tells whether a circle covers a line. A circle of more than a hemisphere does if
// the line keeps away from the rest of the sphere.
func (s *shape) capContainsLine(line []vector) bool {
	for i, v := range line {
		if !s.capContains(v) {
			return false
		}
		if s.radius > math.Pi/2 && i > 0 && s.center.v.scale(-1).toEdge(line[i-1], v) < math.Pi-s.radius {
			return false
		}
	}
	return true
}

func (s *shape) containsPoint(p geoPoint) bool {
	if s.circle && s.capContains(p.v) {
		return true
	}
	return slices.ContainsFunc(s.polygons, func(g polygon) bool { return g.side(p.v) >= 0 })
}

func (s *shape) containsLine(line []vector) bool {
	if s.circle && s.capContainsLine(line) {
		return true
	}
	return slices.ContainsFunc(s.polygons, func(g polygon) bool { return g.containsLine(line) })
}

func (s *shape) containsPolygon(p *polygon) bool {
	if s.circle {
		return s.capContainsLine(p.loops[0].closed()) &&
			(s.radius <= math.Pi/2 || p.side(s.center.v.scale(-1)) < 0 || s.radius >= math.Pi)
	}
	return slices.ContainsFunc(s.polygons, func(g polygon) bool { return g.containsPolygon(p) })
}

// contains tells whether all of another shape, projected like this one, is inside.
func (s *shape) contains(other *shape) bool {
	if s.flat {
		p := other.points[0]
		switch {
		case s.box != nil:
			return p.x >= s.box[0].x && p.x <= s.box[1].x && p.y >= s.box[0].y && p.y <= s.box[1].y
		case s.ring != nil:
			s.work.Do(len(s.ring))
			return insideRing(s.ring, p)
		}
		return s.circle && math.Hypot(s.center.x-p.x, s.center.y-p.y) <= s.radius
	}
	for _, p := range other.points {
		if !s.containsPoint(p) {
			return false
		}
	}
	for _, line := range other.lines {
		if !s.containsLine(line) {
			return false
		}
	}
	for i := range other.polygons {
		if !s.containsPolygon(&other.polygons[i]) {
			return false
		}
	}
	return true
}

// meetsPoint tells whether a part of the shape is at a point.
func (s *shape) meetsPoint(v vector) bool {
	return s.angle(v) <= onEdge
}

func (s *shape) meetsLine(line []vector) bool {
	for _, p := range s.points {
		s.work.Do(len(line))
		for i := 1; i < len(line); i++ {
			if p.v.toEdge(line[i-1], line[i]) <= onEdge {
				return true
			}
		}
	}
	for _, mine := range s.lines {
		if linesMeet(mine, line, s.work) {
			return true
		}
	}
	return slices.ContainsFunc(s.polygons, func(g polygon) bool { return g.intersectsLine(line) })
}

func linesMeet(a, b []vector, m *work.Meter) bool {
	for i := 1; i < len(a); i++ {
		m.Do(len(b))
		for j := 1; j < len(b); j++ {
			if edgesCross(a[i-1], a[i], b[j-1], b[j]) || a[i-1].toEdge(b[j-1], b[j]) <= onEdge ||
				a[i].toEdge(b[j-1], b[j]) <= onEdge ||
				b[j-1].toEdge(a[i-1], a[i]) <= onEdge || b[j].toEdge(a[i-1], a[i]) <= onEdge {
				return true
			}
		}
	}
	return false
}

// intersects tells whether two shapes of the sphere share a point.
func (s *shape) intersects(other *shape) bool {
	for _, p := range other.points {
		if s.meetsPoint(p.v) {
			return true
		}
	}
	for _, line := range other.lines {
		if s.meetsLine(line) {
			return true
		}
	}
	for i := range other.polygons {
		g := &other.polygons[i]
		for _, p := range s.points {
			if g.side(p.v) >= 0 {
				return true
			}
		}
		for _, line := range s.lines {
			if g.intersectsLine(line) {
				return true
			}
		}
		for j := range s.polygons {
			if s.polygons[j].intersectsPolygon(g) {
				return true
			}
		}
	}
	return false
}

// angle returns the distance of a point of the sphere from the nearest point of the shape, in
// radians.
func (s *shape) angle(v vector) float64 {
	s.work.Do(len(s.points))
	best := math.Inf(1)
	for _, p := range s.points {
		best = min(best, v.angle(p.v))
	}
	for _, line := range s.lines {
		s.work.Do(len(line))
		for i := 1; i < len(line); i++ {
			best = min(best, v.toEdge(line[i-1], line[i]))
		}
	}
	for i := range s.polygons {
		g := &s.polygons[i]
		if g.side(v) >= 0 {
			return 0
		}
		g.edges(func(a, b vector) bool {
			best = min(best, v.toEdge(a, b))
			return false
		})
	}
	return best
}

// insideRing tells whether a point of the plane is inside of a ring, by the edges that a ray to the
// right of it crosses. Corners are inside, and so are edges that lie along an axis. Of the points
// on other edges, those are from which the ray crosses an odd number, the edge itself included.
func insideRing(ring []geoPoint, p geoPoint) bool {
	inside := false
	for i, a := range ring {
		b := ring[(i+1)%len(ring)]
		low, high := geoPoint{x: min(a.x, b.x), y: min(a.y, b.y)}, geoPoint{x: max(a.x, b.x), y: max(a.y, b.y)}
		corner := p.x == a.x && p.y == a.y
		along := low.x == high.x && p.x == low.x && p.y >= low.y && p.y <= high.y ||
			low.y == high.y && p.y == low.y && p.x >= low.x && p.x <= high.x
		if corner || along {
			return true
		}
		if p.y > low.y && p.y <= high.y && p.x <= high.x &&
			(a.x == b.x || p.x <= (p.y-a.y)*(b.x-a.x)/(b.y-a.y)+a.x) {
			inside = !inside
		}
	}
	return inside
}
