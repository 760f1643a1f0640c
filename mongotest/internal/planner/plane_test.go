package planner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// place is a point of the plane: of a grid, so that several are at the edge of a region, or next to
// one of it, or anywhere.
func (g *generator) place() string {
	n := func() float64 {
		at := float64(g.IntN(21) - 10)
		switch g.IntN(6) {
		case 0:
			at *= 17.9
		case 1:
			at += 1e-9 * (g.Float64() - 0.5)
		case 2:
			at = 359.9*g.Float64() - 180
			if g.IntN(5) == 0 {
				at = math.Copysign(180, at)
			}
		case 3:
			return at + 0.5
		}
		return at
	}
	x, y := n(), n()
	if g.IntN(8) == 0 {
		return fmt.Sprintf(`{"lng": %v, "lat": %v}`, x, y)
	}
	return fmt.Sprintf("[%v, %v]", x, y)
}

func (g *generator) places(least, most int) string {
	var list []string
	for range least + g.IntN(most-least+1) {
		list = append(list, g.place())
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func (g *generator) planeDocument() string {
	list := []string{fmt.Sprintf(`"t": %s`, g.value(1))}
	at := g.place()
	switch g.IntN(10) {
	case 0:
	case 1:
		list = append(list, `"p": `+g.pick(`null`, `[]`, `{}`, `7`, `"here"`))
	case 2, 3:
		list = append(list, `"p": `+g.places(1, 3))
	case 4:
		list = append(list, fmt.Sprintf(`"s": [{"p": %s, "n": 1}, {"p": %s, "n": %s}, {"n": 3}]`, at, g.places(1, 2), g.scalar()))
	default:
		list = append(list, fmt.Sprintf(`"p": %s, "s": {"p": %s, "n": %s}`, at, g.place(), g.value(1)))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func (g *generator) planeRegion() string {
	size := []float64{0, 1e-9, 0.5, 1, 3, 40, 400, 1e9}[g.IntN(8)]
	switch g.IntN(5) {
	case 0:
		return fmt.Sprintf(`{"$box": [%s, %s]}`, g.place(), g.place())
	case 1:
		return fmt.Sprintf(`{"$polygon": %s}`, g.places(3, 5))
	case 2:
		return fmt.Sprintf(`{"$center": [%s, %v]}`, g.place(), size)
	case 3:
		at := g.spot()
		return fmt.Sprintf(`{"$centerSphere": [%s, %v]}`, g.position(at, 1), []float64{0, 1e-9, 0.01, 0.2, 1, 1.6, 3.1, 4}[g.IntN(8)])
	}
	// Other geometries are not for such indexes.
	return g.pick(`{"$geometry": {"type": "Polygon", "coordinates": [[[0, 0], [5, 0], [5, 5], [0, 0]]]}}`, `{"$box": [[-500, -500], [500, 500]]}`)
}

func (g *generator) planeFilter() string {
	geo := func() string {
		return fmt.Sprintf(`%q: {"$geoWithin": %s}`, g.pick("p", "p", "p", "s.p"), g.planeRegion())
	}
	other := fmt.Sprintf(`%q: %s`, g.pick("t", "s.n", "p"), g.operator())
	switch g.IntN(8) {
	case 0, 1:
		return "{" + geo() + ", " + strings.Replace(other, `"p"`, `"t"`, 1) + "}"
	case 2:
		return fmt.Sprintf(`{"$or": [{%s}, {%s}]}`, geo(), geo())
	case 3:
		return fmt.Sprintf(`{"$and": [{%s}, {%s}, {%s}]}`, geo(), geo(), other)
	case 4:
		return g.pick(`{"p": null}`, `{"p": [0, 0]}`, `{"p": {"$ne": null}}`, "{"+other+"}", fmt.Sprintf(`{"p": {"$not": %s}}`, strings.SplitN(geo(), ":", 2)[1]))
	case 5:
		return fmt.Sprintf(`{"s": {"$elemMatch": {"p": {"$geoWithin": %s}, "n": %s}}}`, g.planeRegion(), g.operator())
	}
	return "{" + geo() + "}"
}

func (g *generator) planeIndex(i int) string {
	options := g.pick("", "", `, "bits": 2`, `, "bits": 32`, `, "bits": 1`, `, "min": -200, "max": 190.5`, `, "min": -1e8, "max": 1e9, "bits": 30`)
	key := g.pick(`"p": "2d"`, `"p": "2d"`, `"s.p": "2d"`, `"p": "2d", "t": 1`, `"p": "2d", "t": -1, "s.n": 1`, `"s.p": "2d", "s.n": 1`, `"p": "2d", "s.p": 1`)
	return fmt.Sprintf(`{"key": {%s}, "name": "g%d"%s}`, key, i, options)
}

func (g *generator) planeCollection(t *testing.T, n int, what string) (*store.Coll, func() string) {
	return g.collectionOf(t, n, what, g.planeIndex, g.planeDocument)
}

// TestPlanePlansAgree: plans with 2d indexes, compound and multikey ones too, find what a scan of
// the collection finds.
func TestPlanePlansAgree(t *testing.T) {
	seed := rand.Uint64()
	g := &generator{rand.New(rand.NewPCG(seed, 4))}
	used := 0
	for round := range 40 {
		c, where := g.planeCollection(t, 60, fmt.Sprintf("seed %d round %d", seed, round))
		for range 40 {
			order := ""
			if g.IntN(4) == 0 {
				order = g.pick(`{"t": 1}`, `{"t": -1}`, `{"s.n": 1}`, `{"p": 1}`)
			}
			filter := g.planeFilter()
			if !valid(t, filter) {
				continue
			}
			used += checkPlans(t, c, filter, order, where)
			if t.Failed() {
				return
			}
		}
	}
	if used < 300 {
		t.Errorf("only %d plans had an index", used)
	}
}

// TestNearInPlaneAgrees: searches over a 2d index, in the plane and on the sphere, yield all that a
// scan of the collection finds, by its distance, and their rings add up.
func TestNearInPlaneAgrees(t *testing.T) {
	seed := rand.Uint64()
	g := &generator{rand.New(rand.NewPCG(seed, 5))}
	used := 0
	for round := range 15 {
		c, where := g.planeCollection(t, 80, fmt.Sprintf("seed %d round %d", seed, round))
		for range 30 {
			near := fmt.Sprintf(`{"$near": %s%s}`, g.place(), g.pick(``, ``, `, "$maxDistance": 5`, `, "$maxDistance": 0`, `, "$minDistance": 2`, `, "$minDistance": 3, "$maxDistance": 90`))
			if g.IntN(3) == 0 {
				near = fmt.Sprintf(`{"$nearSphere": %s%s}`, g.position(g.spot(), 1), g.pick(``, `, "$maxDistance": 0.03`, `, "$minDistance": 0.1`))
			}
			filter := fmt.Sprintf(`{%q: %s}`, g.pick("p", "p", "s.p"), near)
			if g.IntN(3) == 0 {
				filter = strings.TrimSuffix(filter, "}") + fmt.Sprintf(`, %q: %s}`, g.pick("t", "s.n"), g.operator())
			}
			if !valid(t, filter) {
				continue
			}
			f, _ := query.ParseFilter(doc(t, filter), nil)
			p, err := (&Access{Coll: c, Filter: f}).Plan()
			if err != nil {
				continue // no index has the field
			}
			s := p.Whole()
			for s.Near == nil {
				s = s.Inputs[0]
			}
			if near := f.Near(); near.Outside(s.cells()) != nil {
				if err := p.Run(s, neverEnds{}, 0, nil); err == nil {
					t.Errorf("%s found something around a point that the index has not\n%s", filter, where())
				}
				continue
			}
			used += checkPlans(t, c, filter, "", where)
			checkRings(t, p, f.Near(), func() string { return filter + "\n" + where() })
			if t.Failed() {
				return
			}
		}
	}
	if used < 100 {
		t.Errorf("only %d plans had an index", used)
	}
}

// A point has one key, of the cell that it lies in, and bounds of about as many cells as may be.
func TestPlaneBounds(t *testing.T) {
	seed := rand.Uint64()
	g := &generator{rand.New(rand.NewPCG(seed, 6))}
	for range 300 {
		plane := &query.Plane{Min: -180, Max: 180, Bits: 1 + g.IntN(32)}
		key := func(x, y float64) string {
			list, code, _ := plane.Keys(nil, doc(t, fmt.Sprintf(`{"p": [%v, %v]}`, x, y)).Lookup("p"), nil)
			if code != 0 || len(list) != 1 {
				t.Fatalf("[%v, %v] has the keys %v", x, y, list)
			}
			return string(list[0].Value)
		}
		x, y := 360*g.Float64()-180, 360*g.Float64()-180
		size := math.Pow(10, 4*g.Float64()-2)
		// A box with a corner at (x, y), the same as a polygon, or the circle within it.
		kind := g.IntN(3)
		region := []string{fmt.Sprintf(`{"$box": [[%v, %v], [%v, %v]]}`, x, y, x+size, y+size),
			fmt.Sprintf(`{"$polygon": [[%[1]v, %[2]v], [%[3]v, %[2]v], [%[3]v, %[4]v], [%[1]v, %[4]v]]}`, x, y, x+size, y+size),
			fmt.Sprintf(`{"$center": [[%v, %v], %v]}`, x+size/2, y+size/2, size/2)}[kind]
		f, err := query.ParseFilter(doc(t, `{"p": {"$geoWithin": `+region+`}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		bounds, _, ok := f.Condition().Bounds(query.Field{Cells: &query.Cells{Plane: plane}})
		if !ok || len(bounds) > 16 {
			t.Fatalf("seed %d: bounds %v", seed, bounds)
		}
		inside := func(k string) bool {
			for _, in := range bounds {
				if string(in.Lo.Value) <= k && k <= string(in.Hi.Value) {
					return true
				}
			}
			return false
		}
		far := 0
		for range 20 {
			px, py := x+size*g.Float64(), y+size*g.Float64()
			if turn := 2 * math.Pi * g.Float64(); kind == 2 { // near the rim
				px, py = x+size/2+0.4999*size*math.Cos(turn), y+size/2+0.4999*size*math.Sin(turn)
			}
			if px < 180 && py < 180 && !inside(key(px, py)) {
				t.Fatalf("seed %d: [%v, %v] is not within the bounds of %s", seed, px, py, region)
			}
			if px, py := x+5*size, y+5*size; size > 0.1 && plane.Bits > 20 && px < 180 && py < 180 && inside(key(px, py)) {
				far++
			}
		}
		if far > 0 {
			t.Errorf("seed %d: the bounds of %s have points far away", seed, region)
		}
	}
}
