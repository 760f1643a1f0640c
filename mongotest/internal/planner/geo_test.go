package planner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// position is a place: anywhere, near the same few places, which are at the poles, at the
// antimeridian and at a corner of the cube of cells, or at one of them.
func (g *generator) position(around [2]float64, spread float64) string {
	lng, lat := around[0]+spread*(2*g.Float64()-1), around[1]+spread*(2*g.Float64()-1)
	switch {
	case lat > 90:
		lng, lat = lng+180, 180-lat
	case lat < -90:
		lng, lat = lng+180, -180-lat
	}
	lng = math.Mod(lng+540, 360) - 180
	return fmt.Sprintf("[%v, %v]", math.Round(lng*1e6)/1e6, math.Round(lat*1e6)/1e6)
}

func (g *generator) spot() [2]float64 {
	spots := [][2]float64{{0, 0}, {180, 0}, {-179.9, 40}, {10, 90}, {-50, -90}, {45, 35.264389682754654}, {30, 89.5}, {12.5, 47.25}}
	return spots[g.IntN(len(spots))]
}

// geometry is a random GeoJSON object of some kinds.
func (g *generator) geometry(kinds ...string) string {
	at, spread := g.spot(), []float64{0, 0.0001, 0.1, 3, 30}[g.IntN(5)]
	kind := g.pick(kinds...)
	list := func(n int) string {
		var out []string
		for range n {
			out = append(out, g.position(at, max(spread, 0.0001)))
		}
		return strings.Join(out, ", ")
	}
	ring := func() string {
		first := g.position(at, max(spread, 0.0001))
		return fmt.Sprintf("[[%s, %s, %s]]", first, list(2+g.IntN(2)), first)
	}
	switch kind {
	case "Point":
		return fmt.Sprintf(`{"type": "Point", "coordinates": %s}`, g.position(at, spread))
	case "LineString", "MultiPoint":
		return fmt.Sprintf(`{"type": %q, "coordinates": [%s]}`, kind, list(2+g.IntN(3)))
	case "Polygon":
		return fmt.Sprintf(`{"type": "Polygon", "coordinates": %s}`, ring())
	case "MultiPolygon":
		return fmt.Sprintf(`{"type": "MultiPolygon", "coordinates": [%s, %s]}`, ring(), ring())
	case "Strict":
		return fmt.Sprintf(`{"type": "Polygon", "coordinates": %s, "crs": {"type": "name", "properties": {"name": "urn:x-mongodb:crs:strictwinding:EPSG:4326"}}}`, ring())
	case "Legacy":
		return g.position(at, spread)
	}
	return fmt.Sprintf(`{"type": "GeometryCollection", "geometries": [%s, %s]}`, g.geometry("Point", "LineString", "Polygon"),
		g.geometry("Point", "LineString", "Polygon"))
}

func (g *generator) geoDocument() string {
	place := g.geometry("Point", "Point", "Legacy", "LineString", "Polygon", "MultiPoint", "MultiPolygon", "Collection")
	list := []string{fmt.Sprintf(`"t": %s`, g.value(1))}
	switch g.IntN(10) {
	case 0:
	case 1:
		list = append(list, `"p": null`)
	case 2:
		list = append(list, fmt.Sprintf(`"p": {"l": %s}, "s": [{"p": %s, "n": 1}, {"p": %s, "n": 2}]`, place, place, g.geometry("Point", "LineString")))
	default:
		list = append(list, fmt.Sprintf(`"p": %s, "s": {"p": %s, "n": %s}`, place, g.geometry("Point", "Polygon"), g.scalar()))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func (g *generator) geoFilter() string {
	at := g.spot()
	geo := func() string {
		path := g.pick("p", "p", "p", "s.p", "p.l")
		switch g.IntN(4) {
		case 0:
			return fmt.Sprintf(`%q: {"$geoWithin": {"$centerSphere": [%s, %v]}}`, path, g.position(at, 1), []float64{0, 0.001, 0.05, 0.7, 1.6, 3, 4}[g.IntN(7)])
		case 1:
			return fmt.Sprintf(`%q: {"$geoWithin": {"$geometry": %s}}`, path, g.geometry("Polygon", "MultiPolygon", "Strict"))
		}
		return fmt.Sprintf(`%q: {"$geoIntersects": {"$geometry": %s}}`, path,
			g.geometry("Point", "LineString", "Polygon", "Polygon", "MultiPolygon", "Strict", "Collection", "MultiPoint"))
	}
	other := fmt.Sprintf(`%q: %s`, g.pick("t", "s.n"), g.operator())
	switch g.IntN(8) {
	case 0:
		return "{" + geo() + ", " + other + "}"
	case 1:
		return fmt.Sprintf(`{"$or": [{%s}, {%s}]}`, geo(), geo())
	case 2:
		return fmt.Sprintf(`{"$and": [{%s}, {%s}, {%s}]}`, geo(), geo(), other)
	case 3:
		return fmt.Sprintf(`{"$or": [{%s, %s}, {%s}]}`, geo(), other, other)
	case 4:
		return g.pick(`{"p": null}`, `{"p": {"$exists": false}}`, `{"p": {"$ne": null}}`, "{"+other+"}", fmt.Sprintf(`{"p": {"$not": %s}}`, strings.SplitN(geo(), ":", 2)[1]))
	case 5:
		inner := strings.Replace(geo(), `"s.p"`, `"p"`, 1)
		return fmt.Sprintf(`{"s": {"$elemMatch": {%s, "n": %s}}}`, strings.Replace(inner, `"p.l"`, `"p"`, 1), g.operator())
	}
	return "{" + geo() + "}"
}

func (g *generator) geoIndex(i int) string {
	version := g.pick("", "", `, "2dsphereIndexVersion": 2`, `, "2dsphereIndexVersion": 1`, `, "2dsphereIndexVersion": 3, "sparse": true`)
	key := g.pick(`"p": "2dsphere"`, `"p": "2dsphere"`, `"s.p": "2dsphere"`, `"p.l": "2dsphere"`, `"t": 1, "p": "2dsphere"`, `"p": "2dsphere", "t": -1`,
		`"p": "2dsphere", "s.p": "2dsphere"`, `"s.p": "2dsphere", "s.n": 1`, `"s.n": -1, "t": 1, "p": "2dsphere"`)
	return fmt.Sprintf(`{"key": {%s}, "name": "g%d"%s}`, key, i, version)
}

// nearFilter asks for what is near a point, within limits or not, maybe with another condition.
func (g *generator) nearFilter() string {
	limits := g.pick(``, ``, `, "$maxDistance": 5`, `, "$maxDistance": 200000`, `, "$minDistance": 20000`, `, "$minDistance": 1000, "$maxDistance": 4000000`)
	near := fmt.Sprintf(`{"$near": {"$geometry": %s%s}}`, g.geometry("Point"), limits)
	if g.IntN(4) == 0 {
		near = fmt.Sprintf(`{"$nearSphere": %s%s}`, g.position(g.spot(), 1), g.pick(``, `, "$maxDistance": 0.03`, `, "$minDistance": 0.1`))
	}
	path := g.pick("p", "p", "s.p", "p.l")
	if g.IntN(3) == 0 {
		return fmt.Sprintf(`{%q: %s, %q: %s}`, path, near, g.pick("t", "s.n"), g.operator())
	}
	return fmt.Sprintf(`{%q: %s}`, path, near)
}

// TestNearPlansAgree: searches for what is near yield all that a scan of the collection finds, by
// its distance, and so do the rings that they have gone through add up.
func TestNearPlansAgree(t *testing.T) {
	seed := rand.Uint64()
	g := &generator{rand.New(rand.NewPCG(seed, 3))}
	used := 0
	for round := range 15 {
		c, where := g.geoCollection(t, 60, fmt.Sprintf("seed %d round %d", seed, round))
		for range 20 {
			filter := g.nearFilter()
			if !valid(t, filter) {
				continue
			}
			f, _ := query.ParseFilter(doc(t, filter), nil)
			a := &Access{Coll: c, Filter: f}
			if _, err := a.Plan(); err != nil {
				continue // no index has the field
			}
			used += checkPlans(t, c, filter, "", where)
			p, _ := (&Access{Coll: c, Filter: f}).Plan()
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

// checkRings runs a search and compares what its rings say with what it yields.
func checkRings(t *testing.T, p *Plan, near *query.Near, where func() string) {
	t.Helper()
	s := p.Whole()
	var distances []float64
	if err := p.Run(s, neverEnds{}, 0, func(d bson.Raw) error {
		distance, _, _ := near.Distance(d)
		distances = append(distances, distance)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(distances) {
		t.Errorf("distances %v\n%s", distances, where())
	}
	for s.Near == nil {
		s = s.Inputs[0]
	}
	least, most := near.Limits(s.cells())
	var returned, docs int64
	for i, r := range s.search.rings {
		if r.least != least || r.most < r.least || r.inclusive != (i == len(s.search.rings)-1) {
			t.Errorf("rings %+v\n%s", s.search.rings, where())
		}
		least, returned = r.most, returned+r.returned
		docs += r.buffered
	}
	if least != most || returned != s.Advanced || docs != returned {
		t.Errorf("rings %+v up to %v, with %d documents\n%s", s.search.rings, most, s.Advanced, where())
	}
}

type neverEnds struct{}

func (neverEnds) Interrupted() error { return nil }

// geoCollection makes a collection with some 2dsphere indexes, and a text for errors.
func (g *generator) geoCollection(t *testing.T, n int, what string) (*store.Coll, func() string) {
	t.Helper()
	return g.collectionOf(t, n, what, g.geoIndex, g.geoDocument)
}

// collectionOf makes a collection of some kinds of indexes and documents, and a text for errors.
func (g *generator) collectionOf(t *testing.T, n int, what string, index func(i int) string,
	document func() string) (*store.Coll, func() string) {
	t.Helper()
	s := store.New(store.Options{})
	if err := s.Write(func(tx *store.Tx) error {
		_, err := tx.Create("db.c", store.Settings{}, nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var docs, indexes []string
	for i := range 1 + g.IntN(3) {
		if ix := index(i); tryIndex(t, s, ix) {
			indexes = append(indexes, ix)
		}
	}
	for range n {
		if d := document(); tryInsert(t, s, d) {
			docs = append(docs, d)
		}
	}
	return s.Latest().Coll("db.c"), func() string {
		return fmt.Sprintf("%s\nindexes %s\ndocuments %s", what, strings.Join(indexes, "\n\t"), strings.Join(docs, "\n\t"))
	}
}

// TestGeoPlansAgree: plans with 2dsphere indexes, compound and multikey ones too, find what a scan
// of the collection finds.
func TestGeoPlansAgree(t *testing.T) {
	seed := rand.Uint64()
	g := &generator{rand.New(rand.NewPCG(seed, 2))}
	used := 0
	for round := range 40 {
		c, where := g.geoCollection(t, 40, fmt.Sprintf("seed %d round %d", seed, round))
		for range 25 {
			order := ""
			if g.IntN(4) == 0 {
				order = g.pick(`{"t": 1}`, `{"t": -1}`, `{"s.n": 1}`)
			}
			filter := g.geoFilter()
			if !valid(t, filter) {
				continue // an invalid polygon
			}
			used += checkPlans(t, c, filter, order, where)
			if t.Failed() {
				return
			}
		}
	}
	if used < 100 {
		t.Errorf("only %d plans had an index", used)
	}
}
