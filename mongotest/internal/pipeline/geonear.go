package pipeline

import (
	"math"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&stageDef{name: "$geoNear", parse: one(parseGeoNear), first: true, notInFacet: true})
}

// GeoEnv is an Env that knows geo indexes.
type GeoEnv interface {
	// GeoIndex returns the field of the geo index that $geoNear uses: the one named by key, or the only one there is. Its
	// error is the server's.
	GeoIndex(ns Namespace, key string) (field string, err error)
}

// earthRadius is in metres, as the server has it.
const earthRadius = 6378100

// geoNearStage is $geoNear: documents by their distance from a point. Points alone are understood.
type geoNearStage struct {
	rt               *runtime
	ns               Namespace
	x, y             float64
	geoJSON          bool
	spherical        bool
	distance, locs   []string
	key              string
	minimum, maximum float64
	multiplier       float64
	filter           *query.Filter
}

func parseGeoNear(p *parser, name string, v bson.RawValue) (*geoNearStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(10065, "invalid parameter: expected an object (%s)", name)
	}
	g := &geoNearStage{rt: p.rt, ns: p.ns, maximum: math.Inf(1), multiplier: 1}
	near := doc.Lookup("near")
	if (near.Type == bson.TypeArray || near.Type == bson.TypeEmbeddedDocument) && bson.Raw(near.Value).IsEmpty() {
		return nil, srverr.New(srverr.BadValue, "$geometry is required for geo near query")
	}
	if !g.parsePoint(near) {
		return nil, srverr.New(16605, "$geoNear requires a 'near' option as an Array")
	}
	field, ok := doc.Lookup("distanceField").StringValue()
	if !ok {
		return nil, srverr.New(16606, "$geoNear requires a 'distanceField' option as a String")
	}
	if err := expr.CheckPath(field, p.rt.o.Version); err != nil {
		return nil, err
	}
	g.distance = strings.Split(field, ".")
	for key, item := range doc.All() {
		switch key {
		case "spherical":
			g.spherical = item.AsBool()
		case "minDistance":
			if err := g.limit(&g.minimum, key, item); err != nil {
				return nil, err
			}
		case "maxDistance":
			if err := g.limit(&g.maximum, key, item); err != nil {
				return nil, err
			}
		case "distanceMultiplier":
			if err := g.limit(&g.multiplier, key, item); err != nil {
				return nil, err
			}
		case "includeLocs":
			s, ok := item.StringValue()
			if !ok {
				return nil, srverr.New(16607, "$geoNear requires that 'includeLocs' option is a String")
			}
			if err := expr.CheckPath(s, p.rt.o.Version); err != nil {
				return nil, err
			}
			g.locs = strings.Split(s, ".")
		case "key":
			s, ok := item.StringValue()
			if !ok {
				return nil, srverr.New(srverr.TypeMismatch, "$geoNear parameter 'key' must be of type string but found type: %s", typeName(item))
			}
			if s == "" {
				return nil, srverr.New(srverr.BadValue, "$geoNear parameter 'key' cannot be the empty string")
			}
			g.key = s
		case "num", "limit":
			code := map[string]int32{"num": 50857, "limit": 50858}[key]
			return nil, srverr.New(code, "$geoNear no longer supports the '%s' parameter. Use a $limit stage instead.", key)
		case "query":
			sub, ok := item.Document()
			if !ok {
				return nil, srverr.New(srverr.TypeMismatch, "query must be an object")
			}
			f, err := query.ParseFilter(sub, p.rt.filterOptions(p.scope))
			if err != nil {
				return nil, err
			}
			g.filter = f
		}
	}
	g.spherical = g.spherical || g.geoJSON
	return g, nil
}

// limit reads minDistance or maxDistance.
func (g *geoNearStage) limit(dst *float64, name string, v bson.RawValue) error {
	if !v.IsNumber() {
		return srverr.New(srverr.TypeMismatch, "%s must be a number", name)
	}
	if *dst = expr.ToDouble(v); !(*dst >= 0) {
		return srverr.New(srverr.BadValue, "%s must be nonnegative", name)
	}
	return nil
}

// point reads [x, y], {x: .., y: ..} or a GeoJSON point.
func point(v bson.RawValue) (x, y float64, geoJSON, ok bool) {
	if doc, isDoc := v.Document(); isDoc {
		if c := doc.Lookup("coordinates"); c.Type == bson.TypeArray {
			if t, _ := doc.Lookup("type").StringValue(); t != "Point" {
				return 0, 0, false, false
			}
			x, y, _, ok = point(c)
			return x, y, true, ok
		}
	} else if v.Type != bson.TypeArray {
		return 0, 0, false, false
	}
	var n []float64
	for item := range bson.Raw(v.Value).Values() {
		if !item.IsNumber() {
			return 0, 0, false, false
		}
		n = append(n, expr.ToDouble(item))
	}
	if len(n) < 2 {
		return 0, 0, false, false
	}
	return n[0], n[1], false, true
}

func (g *geoNearStage) parsePoint(v bson.RawValue) (ok bool) {
	g.x, g.y, g.geoJSON, ok = point(v)
	return ok
}

func (*geoNearStage) isSource() {}

// measure returns the distance in the unit of the query: metres, radians or the plane's.
func (g *geoNearStage) measure(x, y float64) float64 {
	if !g.spherical {
		return math.Hypot(x-g.x, y-g.y)
	}
	const degree = math.Pi / 180
	lat1, lat2 := g.y*degree, y*degree
	sinLat, sinLon := math.Sin((lat2-lat1)/2), math.Sin((x-g.x)*degree/2)
	a := sinLat*sinLat + math.Cos(lat1)*math.Cos(lat2)*sinLon*sinLon
	radians := 2 * math.Asin(math.Min(1, math.Sqrt(a)))
	if g.geoJSON {
		return radians * earthRadius
	}
	return radians
}

func (g *geoNearStage) open(src Iterator) (Iterator, error) {
	src.Close()
	none := srverr.New(srverr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
	env, ok := g.rt.o.Env.(GeoEnv)
	if !ok {
		return nil, none
	}
	field, err := env.GeoIndex(g.ns, g.key)
	if err != nil {
		return nil, err
	}
	it, err := g.rt.o.Env.Find(g.ns, g.filter)
	if err != nil {
		return nil, err
	}
	docs, err := collect(it, memoryLimit)
	if err != nil {
		return nil, err
	}
	type hit struct {
		doc      bson.Raw
		distance float64
	}
	var hits []hit
	for _, doc := range docs {
		v := document(doc)
		for _, part := range strings.Split(field, ".") {
			sub, _ := v.Document()
			v = sub.Lookup(part)
		}
		x, y, _, ok := point(v)
		if !ok {
			continue
		}
		d := g.measure(x, y)
		if d < g.minimum || d > g.maximum {
			continue
		}
		doc = setPath(doc, g.distance, double(d*g.multiplier))
		if g.locs != nil {
			doc = setPath(doc, g.locs, v)
		}
		hits = append(hits, hit{doc, d})
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		switch {
		case a.distance < b.distance:
			return -1
		case a.distance > b.distance:
			return 1
		}
		return 0
	})
	out := make([]bson.Raw, len(hits))
	for i := range hits {
		out[i] = hits[i].doc
	}
	return FromSlice(out), nil
}
