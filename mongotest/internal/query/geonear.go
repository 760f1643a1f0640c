package query

// What is near a point, by the cells of a 2dsphere index.

import (
	"math"

	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// Limits returns between which distances an index finds documents, both included. There is no
// distance on a sphere that is more than half of its circumference, and none in the plane that is
// more than that of a corner.
func (n *Near) Limits(in *Cells) (least, most float64) {
	if n.center.flat {
		return n.min, min(n.max, in.Plane.box(gridCell{}, 0).farthest(n.center.points[0]))
	}
	return n.min, min(n.max, math.Pi*n.radius())
}

// Outside is the error of a search around a point that a 2d index does not have, or nil.
func (n *Near) Outside(in *Cells) error {
	p := n.center.points[0]
	if in.Plane == nil || in.Plane.has(p.x, p.y) {
		return nil
	}
	at := bsondoc.Of("0", p.x, "1", p.y)
	return srverr.New(16433, "%s :: caused by :: %s", in.Plane.outside(), bsontext.Document(at))
}

// radius is that of the sphere in the unit of the distances.
func (n *Near) radius() float64 {
	if n.radians {
		return 1
	}
	return earthRadius
}

// IsOf reports whether a condition is the filter's $near.
func (n *Near) IsOf(c Condition) bool {
	node, ok := c.node.(*nearNode)
	return ok && node.near == n
}

// Between returns the bounds that an index has for places whose distance is between two: for the
// cells of a ring.
func (n *Near) Between(least, most float64, in *Cells) []Interval {
	p := n.center.points[0]
	switch {
	case n.center.flat:
		return in.Plane.bounds(in.Plane.cover(annulus{p, least, most}))
	case in.Plane != nil:
		return in.Plane.bounds(in.Plane.cover(capBoxes(p, most)))
	}
	r := ring{p.v, least / n.radius(), most / n.radius()}
	return cellBounds(cover(r, maxCoveringSize, finestCell), in.Sphere)
}

// ring is what lies between two circles around a point.
type ring struct {
	center       vector
	inner, outer float64
}

func (r ring) bound() (center vector, radius float64) { return r.center, r.outer }

func (r ring) look(c *cell, _ *vicinity) (overlap, *vicinity) {
	what := circleOverlap(r.center, r.outer, c)
	if what == noOverlap || r.inner <= 2*cellMargin {
		return what, nil
	}
	switch circleOverlap(r.center, r.inner-2*cellMargin, c) {
	case fullOverlap:
		return noOverlap, nil
	case partOverlap:
		return partOverlap, nil
	}
	return what, nil
}

// averageCellEdge times a power of two is the average edge of the cells of a level, in radians.
const averageCellEdge = 1.459213746386106

// Steps calls f for the surroundings of the point, from the smallest to the largest: their bounds
// in an index, and about how far they reach. f returns whether to go on.
func (n *Near) Steps(in *Cells, f func(bounds []Interval, far float64) (more bool)) {
	if in.Plane != nil {
		n.stepsInPlane(in.Plane, f)
		return
	}
	leaf := leafOf(n.center.points[0].v)
	for level := finestCell; level >= 0; level-- {
		if !f(cellBounds(leaf.around(level), in.Sphere), math.Ldexp(averageCellEdge, -level)*n.radius()) {
			return
		}
	}
}

func (n *Near) stepsInPlane(g *Plane, f func(bounds []Interval, far float64) (more bool)) {
	p := n.center.points[0]
	for level := g.Bits; level >= 0; level-- {
		far := (g.Max - g.Min) / math.Ldexp(1, level)
		around := boxes{{geoPoint{x: p.x - far/2, y: p.y - far/2}, geoPoint{x: p.x + far/2, y: p.y + far/2}}}
		list := g.bounds(g.cover(around))
		if n.radians {
			far *= math.Pi / 180
		}
		if !f(list, far) {
			return
		}
	}
}
