package pipeline

import (
	"cmp"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&stageDef{name: "$geoNear", parse: one(parseGeoNear), first: true, notInFacet: true, filter: "query",
		selects: true, ranks: true, names: "distanceField includeLocs key"})
}

// GeoEnv is an Env that knows geo indexes.
type GeoEnv interface {
	// GeoIndex returns the field of the geo index that $geoNear uses: the one named by key, or the
	// only one there is. Its error is the server's.
	GeoIndex(ns Namespace, key string) (field string, err error)
	// FindNear opens the documents that match a filter with $near, in any order.
	FindNear(ns Namespace, filter *query.Filter) (Iterator, error)
}

// geoNearStage is $geoNear: documents by their distance from a point.
type geoNearStage struct {
	rt             *runtime
	ns             Namespace
	options        *query.Options
	near           bson.RawValue
	nearBy         expr.Expr // what near names, if that is not fixed; or nil
	spherical      bool
	distance, locs []string
	key            string
	limits         []byte // $minDistance and $maxDistance
	multiplier     float64
	query          bson.Raw
}

func parseGeoNear(p *parser, name string, v bson.RawValue) (*geoNearStage, error) {
	doc, ok := v.Document()
	if !ok && v.Type == bson.TypeArray { // whose elements have other names than the options
		doc, ok = v.Value, true
	}
	if !ok {
		return nil, srverr.New(10065, "invalid parameter: expected an object (%s)", name)
	}
	g := &geoNearStage{rt: p.rt, ns: p.ns, multiplier: 1, options: p.rt.filterOptions(p.scope),
		near: doc.Lookup("near")}
	if err := g.parseNear(p); err != nil {
		return nil, err
	}
	if err := g.parseDistanceField(doc.Lookup("distanceField")); err != nil {
		return nil, err
	}
	for key, item := range doc.All() {
		switch key {
		case "spherical":
			g.spherical = item.AsBool()
		case "minDistance", "maxDistance":
			limit, err := limitOption(p, key, item)
			if err != nil {
				return nil, err
			}
			g.limits = bson.AppendRawValue(g.limits, "$"+key, limit)
		case "distanceMultiplier":
			if err := distanceOption(key, item); err != nil {
				return nil, err
			}
			g.multiplier = expr.ToDouble(item)
		case "includeLocs":
			s, ok := item.StringValue()
			if !ok {
				return nil, srverr.New(16607, "$geoNear requires that 'includeLocs' option is a String")
			}
			if err := checkGeoOutput(s, p.rt.o.Version); err != nil {
				return nil, err
			}
			g.locs = strings.Split(s, ".")
		case "key":
			s, ok := item.StringValue()
			if !ok {
				return nil, srverr.New(srverr.TypeMismatch,
					"$geoNear parameter 'key' must be of type string but found type: %s", typeName(item))
			}
			if s == "" {
				return nil, srverr.New(srverr.BadValue, "$geoNear parameter 'key' cannot be the empty string")
			}
			if v := p.rt.o.Version; v.AllParsed() {
				if err := checkGeoKey(s, v); err != nil {
					return nil, err
				}
			}
			g.key = s
		case "num", "limit":
			code := map[string]int32{"num": 50857, "limit": 50858}[key]
			return nil, srverr.New(code, "$geoNear no longer supports the '%s' parameter. Use a $limit stage instead.",
				key)
		case "query":
			sub, ok := item.Document()
			if !ok {
				return nil, srverr.New(srverr.TypeMismatch, "query must be an object")
			}
			options := *g.options
			options.NoNear = p.rt.o.Version.AllParsed()
			f, err := query.ParseFilter(sub, &options)
			switch {
			case err != nil:
				return nil, err
			case f.NeedsGeoIndex() && p.rt.o.Version.AtLeast(5, 0):
				return nil, query.NearNotAllowed(p.rt.o.Version)
			}
			g.query = sub
		case "near", "distanceField":
		default:
			if p.rt.o.Version.AllParsed() {
				return nil, srverr.New(srverr.BadValue, "unknown argument to $geoNear: %s", key)
			}
		}
	}
	return g, nil
}

// parseNear reads where to look: a place, or from 5.1 on an expression that the variables of a
// command make fixed.
func (g *geoNearStage) parseNear(p *parser) error {
	computed := p.rt.o.Version.AtLeast(5, 1)
	switch {
	case namesVariable(g.near):
		var err error
		g.nearBy, err = expr.Parse(g.near, p.scope)
		return err
	case !computed && !isPlace(g.near):
		return srverr.New(16605, "$geoNear requires a 'near' option as an Array")
	case !computed:
		return nil
	case g.near.Type == 0:
		return srverr.New(5860400, "$geoNear requires a 'near' argument")
	case isPlace(g.near) && !computes(g.near):
		return nil
	}
	c, err := p.constant(g.near)
	switch {
	case err != nil:
		return err
	case c == nil:
		return srverr.New(5860402, "$geoNear requires a constant near argument")
	case !isPlace(*c):
		return notAPlace
	}
	g.near = *c
	return nil
}

var notAPlace = srverr.New(5860401, "$geoNear requires near argument to be a GeoJSON object or a legacy point(array)")

func (g *geoNearStage) parseDistanceField(v bson.RawValue) error {
	version := g.rt.o.Version
	if v.Type == 0 && version.AllParsed() {
		return nil
	}
	field, ok := v.StringValue()
	if !ok {
		return srverr.New(16606, "$geoNear requires a 'distanceField' option as a String")
	}
	g.distance = strings.Split(field, ".")
	return checkGeoOutput(field, version)
}

// maxGeoOutput is the number of names that the path of a field may have which $geoNear adds: one
// less than paths of others.
const maxGeoOutput = 199

func checkGeoOutput(path string, version release.Version) error {
	err := expr.CheckPath(path, version)
	if err == nil && version.AllParsed() && strings.Count(path, ".") >= maxGeoOutput {
		err = srverr.New(5984700, "FieldPath is too long")
	}
	return err
}

// limitOption reads minDistance or maxDistance, which are numbers, or from 7.2 on constant
// expressions.
func limitOption(p *parser, key string, v bson.RawValue) (bson.RawValue, error) {
	if computes(v) && p.rt.o.Version.AtLeast(7, 2) {
		c, err := p.constant(v)
		switch {
		case err != nil:
			return v, err
		case c == nil:
			code := map[string]int32{"minDistance": 7555701, "maxDistance": 7555702}[key]
			return v, srverr.New(code, "$geoNear requires a constant %s argument", key)
		}
		v = *c
	}
	return v, distanceOption(key, v)
}

// maxGeoKey is the number of names that the path in key may have.
const maxGeoKey = 180

func checkGeoKey(key string, version release.Version) error {
	err := expr.CheckPath(key, version)
	if err == nil && strings.Count(key, ".") >= maxGeoKey {
		err = srverr.New(5729100, "$geoNear 'key' has more than %d names", maxGeoKey)
	}
	return err
}

// computes reports whether a value has an expression other than constants.
func computes(v bson.RawValue) bool {
	if s, ok := v.StringValue(); ok {
		return strings.HasPrefix(s, "$")
	}
	if isPlace(v) {
		for key, item := range bson.Raw(v.Value).All() {
			if strings.HasPrefix(key, "$") || computes(item) {
				return true
			}
		}
	}
	return false
}

// isPlace reports whether a value can be a point, as GeoJSON or as coordinates.
func isPlace(v bson.RawValue) bool {
	return v.Type == bson.TypeArray || v.Type == bson.TypeEmbeddedDocument
}

// namesVariable reports whether a value is an expression with a variable.
func namesVariable(v bson.RawValue) bool {
	if s, ok := v.StringValue(); ok {
		return strings.HasPrefix(s, "$$")
	}
	if isPlace(v) {
		for item := range bson.Raw(v.Value).Values() {
			if namesVariable(item) {
				return true
			}
		}
	}
	return false
}

// distanceOption checks a distance or a factor.
func distanceOption(name string, v bson.RawValue) error {
	if !v.IsNumber() {
		return srverr.New(srverr.TypeMismatch, "%s must be a number", name)
	}
	if f := expr.ToDouble(v); !(f >= 0) {
		return srverr.New(srverr.BadValue, "%s must be nonnegative", name)
	}
	return nil
}

func (*geoNearStage) isSource() {}

func (*geoNearStage) makes(meta string) bool {
	return meta == "geoNearDistance" || meta == "geoNearPoint"
}

// filter makes a query with $near of the stage.
func (g *geoNearStage) filter(field string) (*query.Filter, error) {
	place := g.near
	if g.nearBy != nil {
		var err error
		if place, err = expr.Eval(g.nearBy, g.rt.state); err != nil {
			return nil, err
		}
		if !isPlace(place) {
			return nil, notAPlace
		}
	}
	return query.ParseFilter(nearQuery(field, place, g.spherical, g.limits, g.query), g.options)
}

func nearQuery(field string, place bson.RawValue, spherical bool, limits []byte, others bson.Raw) bson.Raw {
	operator := "$near"
	if spherical {
		operator = "$nearSphere"
	}
	start, dst := bson.BeginDocument(nil)
	dst = append(dst, others.Elements()...)
	near, dst := bson.BeginDocumentElement(dst, field)
	dst = append(bson.AppendRawValue(dst, operator, place), limits...)
	return bson.EndDocument(bson.EndDocument(dst, near), start)
}

// NearQuery returns the query of a $geoNear that is valid, for the field that it measures. value
// returns that of an expression which the variables of a command make fixed.
func NearQuery(spec bson.Raw, field string, value func(expr bson.RawValue) (bson.RawValue, error)) (bson.Raw, error) {
	var limits []byte
	for _, key := range []string{"minDistance", "maxDistance"} {
		v := spec.Lookup(key)
		if computes(v) {
			var err error
			if v, err = value(v); err != nil {
				return nil, err
			}
		}
		if v.Type != 0 {
			limits = bson.AppendRawValue(limits, "$"+key, v)
		}
	}
	others, _ := spec.Lookup("query").Document()
	place := spec.Lookup("near")
	if computes(place) {
		var err error
		if place, err = value(place); err != nil {
			return nil, err
		}
	}
	return nearQuery(field, place, spec.Lookup("spherical").AsBool(), limits, others), nil
}

func (g *geoNearStage) open(src Iterator) (Iterator, error) {
	src.Close()
	env, ok := g.rt.o.Env.(GeoEnv)
	if !ok {
		return nil, srverr.New(srverr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
	}
	field, err := env.GeoIndex(g.ns, g.key)
	if err != nil {
		return nil, err
	}
	filter, err := g.filter(field)
	if err != nil {
		return nil, err
	}
	it, err := env.FindNear(g.ns, filter)
	if err != nil {
		return nil, err
	}
	docs, err := collect(it, memoryLimit)
	if err != nil {
		return nil, err
	}
	type near struct {
		hit
		distance float64
	}
	var hits []near
	for _, doc := range docs {
		g.rt.query.Work.Do(1 + len(doc)>>8)
		d, place, ok := filter.Near().Distance(doc)
		if !ok {
			continue
		}
		exact := filter.Near().Exact(d, place)
		if g.distance != nil {
			doc = bsondoc.SetPath(doc, g.distance, bsondoc.DoubleValue(exact*g.multiplier))
		}
		if g.locs != nil {
			doc = bsondoc.SetPath(doc, g.locs, place)
		}
		meta := withMeta(withMeta(nil, "geoNearDistance", bsondoc.DoubleValue(exact)), "geoNearPoint", place)
		hits = append(hits, near{hit{doc: doc, meta: meta}, d})
	}
	slices.SortStableFunc(hits, func(a, b near) int { return cmp.Compare(a.distance, b.distance) })
	out := make([]hit, len(hits))
	for i := range hits {
		out[i] = hits[i].hit
	}
	return &keeper{rt: g.rt, rows: out, filled: true}, nil
}
