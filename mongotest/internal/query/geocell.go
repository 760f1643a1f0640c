package query

// The cells of a sphere that 2dsphere indexes have as keys: those of the S2 geometry. The sphere is
// projected onto a cube, each face of which is divided into four cells, these again, and so on for
// 30 levels. A Hilbert curve goes through the cells of a face, so that the numbers of the cells
// within a cell are next to each other.

import (
	"math"
)

const (
	maxCellLevel = 30
	cellSize     = 1 << maxCellLevel // leaf cells along the edge of a face
)

// cellID is the number of a cell: three bits for the face, two for each level, a one and zeros.
type cellID uint64

// The curve within a cell has one of four orientations, made of these two bits.
const swapped, inverted = 1, 2

var (
	// curveCells has the quarters of a cell in the order of the curve, for each orientation: twice
	// the position along i, and that along j.
	curveCells = [4][4]int{{0, 1, 3, 2}, {0, 2, 3, 1}, {3, 2, 0, 1}, {3, 1, 0, 2}}
	// curvePlaces is its inverse.
	curvePlaces = [4][4]int{{0, 1, 3, 2}, {0, 3, 1, 2}, {2, 3, 1, 0}, {2, 1, 3, 0}}
	// curveTurns is what an orientation changes by in each of the quarters.
	curveTurns = [4]int{swapped, 0, 0, swapped | inverted}
)

// cellAt returns the leaf cell of a place on a face.
func cellAt(face, i, j int) cellID {
	id, turn := uint64(face), face&swapped
	for k := maxCellLevel - 1; k >= 0; k-- {
		place := curvePlaces[turn][(i>>k&1)<<1|j>>k&1]
		id = id<<2 | uint64(place)
		turn ^= curveTurns[place]
	}
	return cellID(id<<1 | 1)
}

// place returns the face of a cell, and the place of one of its leaf cells.
func (c cellID) place() (face, i, j int) {
	face = int(c >> 61)
	turn := face & swapped
	for k := maxCellLevel - 1; k >= 0; k-- {
		ij := curveCells[turn][c>>(2*k+1)&3]
		i, j = i<<1|ij>>1, j<<1|ij&1
		turn ^= curveTurns[c>>(2*k+1)&3]
	}
	return face, i, j
}

// last is the lowest bit that is set, from which the level follows.
func (c cellID) last() cellID { return c & -c }

func (c cellID) level() int {
	level := maxCellLevel
	for bit := c.last(); bit > 1; bit >>= 2 {
		level--
	}
	return level
}

func bitOf(level int) cellID { return 1 << (2 * (maxCellLevel - level)) }

// parent returns the cell of a level that the cell is part of.
func (c cellID) parent(level int) cellID {
	bit := bitOf(level)
	return c&-bit | bit
}

// child returns one of the four cells that the cell is divided into.
func (c cellID) child(k int) cellID {
	bit := c.last() >> 2
	return c - 3*bit + cellID(2*k)*bit
}

// first and final are the least and the greatest leaf cell within the cell.
func (c cellID) first() cellID { return c - (c.last() - 1) }
func (c cellID) final() cellID { return c + (c.last() - 1) }

// faceOf returns the face of the cube on which a point lies, and where on it.
func faceOf(p vector) (face int, u, v float64) {
	x, y, z := math.Abs(p[0]), math.Abs(p[1]), math.Abs(p[2])
	switch {
	case x > y && x > z:
	case x <= y && y > z:
		face = 1
	default:
		face = 2
	}
	if p[face] < 0 {
		face += 3
	}
	switch face {
	case 0:
		return face, p[1] / p[0], p[2] / p[0]
	case 1:
		return face, -p[0] / p[1], p[2] / p[1]
	case 2:
		return face, -p[0] / p[2], -p[1] / p[2]
	case 3:
		return face, p[2] / p[0], p[1] / p[0]
	case 4:
		return face, p[2] / p[1], -p[0] / p[1]
	}
	return face, -p[1] / p[2], -p[0] / p[2]
}

// onFace is the point of the sphere at a place on a face.
func onFace(face int, u, v float64) vector {
	var p vector
	switch face {
	case 0:
		p = vector{1, u, v}
	case 1:
		p = vector{-u, 1, v}
	case 2:
		p = vector{-u, -v, 1}
	case 3:
		p = vector{-1, -v, -u}
	case 4:
		p = vector{v, -1, -u}
	default:
		p = vector{v, u, -1}
	}
	return p.scale(1 / p.norm())
}

// gridOf turns a coordinate on a face, from -1 to 1, into one of the grid of leaf cells. The grid
// is stretched so that cells have about the same size everywhere.
func gridOf(u float64) int {
	s := 0.5 * math.Sqrt(1+3*math.Abs(u))
	if u < 0 {
		s = 1 - s
	}
	return min(max(int(math.Floor(s*cellSize)), 0), cellSize-1)
}

// faceCoordinate is the inverse of gridOf, for the beginning of a leaf cell.
func faceCoordinate(i int) float64 {
	s := float64(i) / cellSize
	if s >= 0.5 {
		return (4*s*s - 1) / 3
	}
	return (1 - 4*(1-s)*(1-s)) / 3
}

// leafOf returns the leaf cell of a point.
func leafOf(p vector) cellID {
	face, u, v := faceOf(p)
	return cellAt(face, gridOf(u), gridOf(v))
}

// cell is a cell with its corners.
type cell struct {
	id      cellID
	level   int
	corners [4]vector // to the left around it
	normals [4]vector // of the planes through the edges, to the inside
	center  vector
	radius  float64 // of the circle around it, in radians
}

func newCell(id cellID) *cell {
	c := &cell{id: id, level: id.level()}
	face, i, j := id.place()
	size := 1 << (maxCellLevel - c.level)
	i, j = i&-size, j&-size
	u0, v0, u1, v1 := faceCoordinate(i), faceCoordinate(j), faceCoordinate(i+size), faceCoordinate(j+size)
	c.corners = [4]vector{onFace(face, u0, v0), onFace(face, u1, v0), onFace(face, u1, v1), onFace(face, u0, v1)}
	for k, a := range c.corners {
		n := a.cross(c.corners[(k+1)%4])
		c.normals[k] = n.scale(1 / n.norm())
		c.center = c.center.add(a)
	}
	c.center = c.center.scale(1 / c.center.norm())
	chord := 0.0
	for _, a := range c.corners {
		away := a.add(c.center.scale(-1))
		chord = max(chord, away.dot(away))
	}
	c.radius = 2 * math.Asin(min(1, math.Sqrt(chord)/2))
	return c
}

// cellMargin is how far, in radians, beyond its edges a cell reaches when it is asked what lies in
// it: farther than comparisons of geometries are off.
const cellMargin = 1.5 * onEdge

// has tells whether a point lies in the cell.
func (c *cell) has(p vector) bool {
	for _, n := range c.normals {
		if n.dot(p) < -cellMargin {
			return false
		}
	}
	return true
}

// distance is that of a point from the cell, in radians.
func (c *cell) distance(p vector) float64 {
	if c.has(p) {
		return 0
	}
	best := math.Inf(1)
	for k, a := range c.corners {
		if c.normals[k].dot(p) < 0 { // the nearest edge has the point on its outside
			best = min(best, p.toEdge(a, c.corners[(k+1)%4]))
		}
	}
	return best
}

// meets tells whether a part of an edge lies in the cell.
func (c *cell) meets(a, b vector) bool {
	switch {
	case c.center.toEdge(a, b) > c.radius+cellMargin:
		return false
	case c.has(a) || c.has(b):
		return true
	}
	for k, x := range c.corners {
		if x.toEdge(a, b) <= cellMargin || edgesCross(a, b, x, c.corners[(k+1)%4]) {
			return true
		}
	}
	return false
}

// around returns the cells of a level that meet at the corner nearest to a leaf cell.
func (c cellID) around(level int) []cellID {
	face, i, j := c.place()
	half := 1 << (maxCellLevel - level - 1)
	step := func(x int) (to int, same bool) {
		if x&half != 0 {
			return x + 2*half, x+2*half < cellSize
		}
		return x - 2*half, x-2*half >= 0
	}
	at := func(i, j int, same bool) cellID {
		if same {
			return cellAt(face, i, j).parent(level)
		}
		return wrapped(face, i, j).parent(level)
	}
	i2, iSame := step(i)
	j2, jSame := step(j)
	list := []cellID{c.parent(level), at(i2, j, iSame), at(i, j2, jSame)}
	if iSame || jSame {
		list = append(list, at(i2, j2, iSame && jSame))
	}
	return list
}

// wrapped returns the leaf cell just beyond the edge of a face.
func wrapped(face, i, j int) cellID {
	i, j = min(max(i, -1), cellSize), min(max(j, -1), cellSize)
	linear := func(i int) float64 {
		return min(max((2*float64(i)+1-cellSize)/cellSize, -1-1e-15), 1+1e-15)
	}
	face, u, v := faceOf(onFace(face, linear(i), linear(j)))
	grid := func(u float64) int { return min(max(int(math.Floor((u+1)/2*cellSize)), 0), cellSize-1) }
	return cellAt(face, grid(u), grid(v))
}
