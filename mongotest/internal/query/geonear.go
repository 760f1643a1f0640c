package query

// What is near a point, by the cells of a 2dsphere index.

import "math"

// Limits returns between which distances documents are looked for, both included. There is no
// distance on a sphere that is more than half of its circumference.
func (n *Near) Limits() (least, most float64) {
	return n.min, min(n.max, math.Pi*n.radius())
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

// Between returns the bounds that a 2dsphere index of a version has for places whose distance is
// between two: for the cells of a ring.
func (n *Near) Between(least, most float64, version int) []Interval {
	r := ring{n.center.points[0].v, least / n.radius(), most / n.radius()}
	return cellBounds(cover(r, maxCoveringSize, finestCell), version)
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
// in an index of a version, and about how far they reach. f returns whether to go on.
func (n *Near) Steps(version int, f func(bounds []Interval, far float64) (more bool)) {
	leaf := leafOf(n.center.points[0].v)
	for level := finestCell; level >= 0; level-- {
		if !f(cellBounds(leaf.around(level), version), math.Ldexp(averageCellEdge, -level)*n.radius()) {
			return
		}
	}
}
