package query

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The numbers of cells are those of the S2 geometry, at the poles, the antimeridian and the corners
// of the cube, too.
func TestCellNumbers(t *testing.T) {
	for _, test := range []struct {
		lng, lat float64
		leaf     int64
		path     string // of the cell of level 6
	}{
		{0, 0, 1152921504606846977, "0f200000"},
		{180, 0, 8070450532247928831, "3f133333"},
		{-180, 0, 8070450532247928833, "3f200000"},
		{0, 90, 5764607523034234881, "2f200000"},
		{12.5, -90, -5764607523034234879, "5f200000"},
		{-73.9857, 40.7484, -8520148959805276813, "4f103201"},
		{151.2093, -33.8688, 7715420701375135829, "3f112021"},
		{45, 35.264389682754654, 1537228672809129301, "0f222222"},
		{-0.0001, 0.0001, 1152921504602368699, "0f133333"},
	} {
		id := leafOf(toVector(test.lng, test.lat))
		if int64(id) != test.leaf || id.parent(6).digits() != test.path {
			t.Errorf("(%v, %v) is in %d, of %s, want %d, %s", test.lng, test.lat, int64(id), id.parent(6).digits(), test.leaf, test.path)
		}
	}
}

// A cell is made of its four quarters, has its middle, and knows its neighbours.
func TestCellParts(t *testing.T) {
	g := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for range 2000 {
		leaf := leafOf(randomPoint(g))
		level := g.IntN(26) // of smaller ones the middle is known to a few cells only
		id := leaf.parent(level)
		face, i, j := leaf.place()
		if cellAt(face, i, j) != leaf || leaf.level() != maxCellLevel || id.level() != level {
			t.Fatalf("%d is not what its place says", leaf)
		}
		if id.child(0).first() != id.first() || id.child(3).final() != id.final() || !slices.Contains([]cellID{id.child(0), id.child(1), id.child(2), id.child(3)}, leaf.parent(level+1)) {
			t.Fatalf("%s is not made of its quarters", id.digits())
		}
		c := newCell(id)
		if middle := leafOf(c.center); middle < id.first() || middle > id.final() || !c.has(c.center) {
			t.Fatalf("%s does not have its middle", id.digits())
		}
		near := leaf.around(level)
		if len(near) < 3 || near[0] != id {
			t.Fatalf("%d has neighbours %d", leaf, near)
		}
		for _, other := range near {
			if other.level() != level || newCell(other).distance(c.center) > 3*c.radius {
				t.Fatalf("%s is no neighbour of %s", other.digits(), id.digits())
			}
		}
	}
}

func randomPoint(g *rand.Rand) vector {
	return toVector(360*g.Float64()-180, math.Asin(2*g.Float64()-1)*180/math.Pi)
}

// A covering has every point of a circle, is in order, and is about as small as it may be.
func TestCoverings(t *testing.T) {
	g := rand.New(rand.NewPCG(rand.Uint64(), 2))
	cells := 0
	const rounds = 200
	for range rounds {
		center, radius := randomPoint(g), math.Pi*math.Pow(10, -6*g.Float64())
		s := &shape{circle: true, center: geoPoint{v: center}, radius: radius}
		list := cover(s, maxCoveringSize, finestCell)
		cells += len(list)
		for i, id := range list {
			if i > 0 && list[i-1].final() >= id.first() || id.level() > finestCell {
				t.Fatalf("a covering is out of order: %d", list)
			}
		}
		covered := func(p vector) bool {
			leaf := leafOf(p)
			return slices.ContainsFunc(list, func(id cellID) bool { return id.first() <= leaf && leaf <= id.final() })
		}
		u := center.cross(randomPoint(g))
		u = u.scale(1 / u.norm())
		w := center.cross(u)
		outside := 0
		for range 100 {
			turn, far := 2*math.Pi*g.Float64(), radius*math.Sqrt(g.Float64())
			at := func(far float64) vector {
				around := u.scale(math.Cos(turn)).add(w.scale(math.Sin(turn)))
				return center.scale(math.Cos(far)).add(around.scale(math.Sin(far)))
			}
			if !covered(at(far)) || !covered(at(radius)) {
				t.Fatalf("a covering of %v around %v lacks a point", radius, center)
			}
			if radius < 0.7 && covered(at(4*radius)) {
				outside++
			}
		}
		if outside > 0 && radius > 1e-5 {
			t.Errorf("a covering of %v around %v has points far outside", radius, center)
		}
	}
	if cells > 24*rounds {
		t.Errorf("coverings have %d cells on average", cells/rounds)
	}
}
