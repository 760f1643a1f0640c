package randcmd

import (
	"math"
	"math/rand/v2"

	"allium/bson"
)

type (
	d = bson.D
	a = bson.A
)

// e is an element.
func e(k string, v any) bson.E { return bson.E{Key: k, Value: v} }

// gen makes random parts of commands. Values come from a small world, so that documents match
// filters and keys meet.
type gen struct {
	*rand.Rand
	modern bool // with what there is since 5.0
}

func pick[T any](g *gen, list ...T) T { return list[g.IntN(len(list))] }

// one is true once in n times.
func (g *gen) one(n int) bool { return g.IntN(n) == 0 }

func decimal(text string) bson.Decimal128 {
	v, err := bson.ParseDecimal128(text)
	if err != nil {
		panic(err) // the texts stand in this file
	}
	return v
}

// scalar is a value that holds no others.
func (g *gen) scalar() any {
	switch g.IntN(24) {
	case 0, 1, 2, 3, 4:
		return int32(g.IntN(5) - 1)
	case 5:
		return int64(g.IntN(5) - 1)
	case 6:
		return pick(g, 0.0, 1.0, 1.5, -2.5, 3.0, 1e20, 0.1)
	case 7:
		return pick(g, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1))
	case 8:
		return decimal(pick(g, "0", "1", "1.5", "-2.50", "NaN", "Infinity", "1E+3", "0.1"))
	case 9, 10, 11, 12:
		return pick(g, "", "a", "A", "b", "ab", "10", "9", "ä", "x,y", "2020-01-31")
	case 13:
		return nil
	case 14:
		return g.one(2)
	case 15:
		return bson.DateTime(pick(g, int64(0), 1580464800000, -1, 1e15))
	case 16:
		return bson.ObjectID{1, 2, 3, byte(g.IntN(2))}
	case 17:
		return bson.Regex{Pattern: pick(g, "a", "^a", "b$", "."), Options: pick(g, "", "i")}
	case 18:
		return bson.Binary{Subtype: byte(g.IntN(2)) * 4, Data: []byte("0123456789abcdef")[:16*g.IntN(2)]}
	case 19:
		return bson.Timestamp{T: uint32(g.IntN(3)), I: 1}
	case 20:
		return pick[any](g, bson.MinKey{}, bson.MaxKey{})
	case 21:
		return pick[any](g, int32(math.MaxInt32), int64(math.MaxInt64), int64(math.MinInt64), int64(1<<53+1))
	case 22:
		return pick[any](g, bson.JavaScript("x"), bson.Symbol("a"), bson.Undefined{})
	}
	return "s"
}

// value is any value, three levels deep at most.
func (g *gen) value(depth int) any {
	switch n := g.IntN(10); {
	case n < 6 || depth <= 0:
		return g.scalar()
	case n < 8:
		list := a{}
		for range g.IntN(4) {
			list = append(list, g.value(depth-1))
		}
		return list
	}
	doc := d{}
	for _, k := range []string{"a", "b", "c", "0"} {
		if g.one(3) {
			doc = append(doc, e(k, g.value(depth-1)))
		}
	}
	return doc
}

// field is a name at the top of documents.
func (g *gen) field() string { return pick(g, "a", "b", "c", "d", "_id") }

// path is a dotted path that may hold something.
func (g *gen) path() string {
	p := g.field()
	for g.one(3) {
		p += "." + pick(g, "a", "b", "0", "1", "c")
	}
	return p
}

func (g *gen) document(id int) d {
	doc := d{e("_id", int32(id))}
	for _, k := range []string{"a", "b", "c", "d"} {
		if !g.one(4) {
			doc = append(doc, e(k, g.value(2)))
		}
	}
	if g.one(3) {
		g.Shuffle(len(doc)-1, func(i, j int) { doc[i+1], doc[j+1] = doc[j+1], doc[i+1] })
	}
	return doc
}

// collation is one that the server has, or nil.
func (g *gen) collation() d {
	if !g.one(6) {
		return nil
	}
	c := d{e("locale", pick(g, "en", "de", "simple", "fr"))}
	if c[0].Value == "simple" {
		return c
	}
	if g.one(2) {
		c = append(c, e("strength", int32(1+g.IntN(5))))
	}
	if g.one(3) {
		c = append(c, e("numericOrdering", true))
	}
	if g.one(5) {
		c = append(c, e("caseLevel", g.one(2)))
	}
	return c
}

// filter is a query of some depth.
func (g *gen) filter(depth int) d {
	f := d{}
	for range 1 + g.IntN(2) {
		switch n := g.IntN(12); {
		case n < 7 || depth <= 0:
			f = append(f, e(g.path(), g.condition(depth)))
		case n < 10:
			list := a{}
			for range 1 + g.IntN(3) {
				list = append(list, g.filter(depth-1))
			}
			f = append(f, e(pick(g, "$and", "$or", "$nor"), list))
		case n < 11:
			f = append(f, e("$expr", g.expr(depth)))
		default:
			f = append(f, pick(g, e("$alwaysTrue", int32(1)), e("$alwaysFalse", int32(1)), e("$comment", "x"),
				e("$jsonSchema", g.schema(1))))
		}
	}
	return f
}

func (g *gen) condition(depth int) any {
	if g.one(4) {
		return g.value(1)
	}
	c := d{}
	for range 1 + g.IntN(2) {
		c = append(c, g.operator(depth))
	}
	return c
}

func (g *gen) values() a {
	list := a{}
	for range g.IntN(4) {
		list = append(list, g.value(1))
	}
	return list
}

func (g *gen) operator(depth int) bson.E {
	switch g.IntN(16) {
	case 0, 1, 2, 3:
		return e(pick(g, "$eq", "$gt", "$gte", "$lt", "$lte", "$ne"), g.value(2))
	case 4, 5:
		return e(pick(g, "$in", "$nin"), g.values())
	case 6:
		return e("$exists", pick[any](g, true, false, int32(1)))
	case 7:
		return e("$type", pick[any](g, "number", "string", int32(2), a{"int", "array"}, "array", "object", "null",
			int32(-1), "nosuch", int32(30)))
	case 8:
		return e("$all", g.values())
	case 9:
		if g.one(2) {
			return e("$elemMatch", g.filter(depth-1))
		}
		return e("$elemMatch", d{g.operator(depth - 1)})
	case 10:
		return e("$size", pick[any](g, int32(g.IntN(4)), 1.0, int64(2), int32(-1), "a"))
	case 11:
		return e("$mod", pick[any](g, a{int32(2), int32(0)}, a{2.5, int32(1)}, a{int32(0), int32(0)}, a{int32(3)}))
	case 12:
		return e("$regex", pick[any](g, "a", "^a", bson.Regex{Pattern: "B", Options: "i"}, "("))
	case 13:
		if depth <= 0 {
			return e("$not", d{e("$gt", g.scalar())})
		}
		return e("$not", pick[any](g, d{g.operator(depth - 1)}, bson.Regex{Pattern: "a"}))
	case 14:
		return e(pick(g, "$bitsAllSet", "$bitsAnyClear", "$bitsAllClear", "$bitsAnySet"),
			pick[any](g, int32(3), a{int32(0), int32(2)}, int64(1)<<40, 1.5))
	}
	return e(pick(g, "$geoWithin", "$geoIntersects"),
		d{e("$geometry", d{e("type", "Polygon"), e("coordinates", a{a{a{0, 0}, a{3, 0}, a{3, 3}, a{0, 0}}})})})
}

func (g *gen) schema(depth int) d {
	s := d{}
	if g.one(2) {
		s = append(s, e("required", a{g.field()}))
	}
	if g.one(2) {
		s = append(s, e(pick(g, "bsonType", "type"), pick[any](g, "object", "string", a{"object", "array"})))
	}
	if depth > 0 && g.one(2) {
		s = append(s, e("properties", d{e(g.field(), g.schema(depth-1))}))
	}
	if g.one(4) {
		s = append(s, e("minimum", int32(g.IntN(3))))
	}
	if g.one(4) {
		s = append(s, e("enum", a{g.value(1), g.value(1)}))
	}
	return s
}

// operators of expressions, by how their operands are written.
var (
	unary = []string{"$abs", "$ceil", "$floor", "$sqrt", "$exp", "$ln", "$log10", "$not", "$size", "$isArray",
		"$isNumber", "$type", "$toString", "$toInt", "$toLong", "$toDouble",
		"$toDecimal", "$toBool", "$toDate", "$toUpper", "$toLower", "$strLenCP", "$strLenBytes", "$objectToArray",
		"$arrayToObject", "$reverseArray", "$year", "$dayOfWeek", "$isoWeek", "$first",
		"$last", "$sum", "$avg", "$min", "$max", "$stdDevPop", "$mergeObjects", "$allElementsTrue", "$anyElementTrue",
		"$literal", "$bsonSize", "$sin", "$trunc", "$round"}
	binary = []string{"$add", "$subtract", "$multiply", "$divide", "$mod", "$pow", "$log", "$eq", "$ne", "$gt", "$gte",
		"$lt", "$lte", "$cmp", "$arrayElemAt", "$in", "$ifNull", "$concat",
		"$concatArrays", "$split", "$strcasecmp", "$setUnion", "$setIntersection", "$setDifference", "$setEquals",
		"$setIsSubset", "$range", "$slice", "$indexOfArray", "$indexOfCP",
		"$indexOfBytes", "$round", "$trunc", "$and", "$or", "$sum", "$max", "$min", "$avg", "$mergeObjects", "$atan2"}
)

func (g *gen) expr(depth int) any {
	if depth <= 0 || g.one(4) {
		switch g.IntN(6) {
		case 0:
			return pick(g, "$$ROOT", "$$CURRENT.a", "$$REMOVE", "$a.b", "$d")
		case 1:
			return d{e("$literal", g.value(1))}
		case 2:
			return g.scalar()
		}
		return "$" + g.path()
	}
	in := func() any { return g.expr(depth - 1) }
	switch g.IntN(14) {
	case 0, 1, 2:
		return d{e(pick(g, unary...), in())}
	case 3, 4, 5, 6:
		return d{e(pick(g, binary...), a{in(), in()})}
	case 7:
		return d{e(pick(g, "$add", "$concat", "$and", "$setUnion", "$slice", "$substrCP", "$range", "$cond",
			"$multiply"), a{in(), in(), in()})}
	case 8:
		return d{e("$cond", d{e("if", in()), e("then", in()), e("else", in())})}
	case 9:
		return d{e(pick(g, "$map"), d{e("input", in()),
			e("in", pick[any](g, "$$this", d{e("$add", a{"$$this", int32(1)})}, in()))})}
	case 10:
		return pick(g, d{e("$filter", d{e("input", in()), e("cond", in())})}, d{e("$reduce",
			d{e("input", in()), e("initialValue", in()), e("in", d{e(pick(g, binary...), a{"$$value", "$$this"})})})},
			d{e("$let", d{e("vars", d{e("v", in())}), e("in", d{e(pick(g, binary...), a{"$$v", in()})})})},
			d{e("$zip", d{e("inputs", a{in(), in()}), e("useLongestLength", g.one(2))})})
	case 11:
		return pick(g, d{e("$convert", d{e("input", in()),
			e("to", pick[any](g, "int", "string", "date", "bool", "decimal")), e("onError", in()), e("onNull", in())})},
			d{e("$switch", d{e("branches", a{d{e("case", in()), e("then", in())}}), e("default", in())})},
			d{e("$dateToString", d{e("date", in()), e("format", "%Y-%m")})},
			d{e("$dateFromString", d{e("dateString", in())})}, d{e("$trim", d{e("input", in()), e("chars", in())})},
			d{e("$regexMatch", d{e("input", in()), e("regex", "a")})},
			d{e("$replaceAll", d{e("input", in()), e("find", in()), e("replacement", "x")})},
			d{e("$dateFromParts", d{e("year", in()), e("month", in())})}, d{e("$dateToParts", d{e("date", in())})})
	case 12:
		return d{e(pick(g, "a", "b"), in())}
	}
	return a{in(), in()}
}

func (g *gen) sort() d {
	s := d{}
	seen := map[string]bool{}
	for range 1 + g.IntN(3) {
		if p := g.path(); !seen[p] {
			seen[p] = true
			s = append(s, e(p, int32(1-2*g.IntN(2))))
		}
	}
	return s
}

func (g *gen) projection() d {
	p := d{}
	on := any(int32(g.IntN(2)))
	for range 1 + g.IntN(3) {
		switch g.IntN(8) {
		case 0:
			p = append(p, e(g.path(), d{e("$slice", pick[any](g, int32(1), int32(-1), a{int32(1), int32(1)}))}))
		case 1:
			p = append(p, e(g.path(), d{e("$elemMatch", g.filter(0))}))
		case 2:
			p = append(p, e(g.path(), g.expr(1)))
		case 3:
			p = append(p, e("_id", int32(0)))
		default:
			p = append(p, e(g.path(), on))
		}
	}
	return p
}

func (g *gen) accumulator() d {
	return d{e(pick(g, "$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$addToSet", "$stdDevPop",
		"$mergeObjects"), g.expr(1))}
}

// stages is a pipeline that reads.
func (g *gen) stages(depth int) a {
	list := a{}
	for range 1 + g.IntN(4) {
		list = append(list, g.stage(depth))
	}
	return list
}

func (g *gen) fields() d {
	out := d{}
	for range 1 + g.IntN(3) {
		out = append(out, e(g.path(), g.expr(2)))
	}
	return out
}

func (g *gen) stage(depth int) d {
	if g.modern && g.one(8) {
		return g.modernStage()
	}
	switch g.IntN(21) {
	case 0, 1, 2, 3:
		return d{e("$match", g.filter(2))}
	case 4, 5:
		return d{e("$project", g.projection())}
	case 6, 7:
		return d{e(pick(g, "$addFields", "$set"), g.fields())}
	case 8, 9:
		return d{e("$sort", append(with(g.sort(), "_id", nil), e("_id", int32(1))))}
	case 10:
		return d{e(pick(g, "$limit", "$skip"), int32(1+g.IntN(4)))}
	case 11:
		return d{e("$unwind", pick[any](g, "$"+g.path(),
			d{e("path", "$"+g.path()), e("preserveNullAndEmptyArrays", g.one(2)), e("includeArrayIndex", g.path())}))}
	case 12, 13:
		return d{e("$group", d{e("_id", g.expr(1)), e("x", g.accumulator()), e("y", g.accumulator())})}
	case 14:
		return d{e(pick(g, "$replaceRoot"), d{e("newRoot", g.expr(2))})}
	case 15:
		return d{e("$unset", pick[any](g, g.path(), a{g.path(), g.path()}))}
	case 16:
		return pick(g, d{e("$count", pick(g, "n", "a.b", "", "$n"))}, d{e("$sortByCount", g.expr(1))},
			d{e("$redact", pick[any](g, "$$KEEP", d{e("$cond", a{g.expr(1), "$$DESCEND", "$$PRUNE"})}))},
			d{e("$bucketAuto", d{e("groupBy", "$"+g.path()), e("buckets", int32(1+g.IntN(3)))})}, d{e("$bucket",
				d{e("groupBy", "$"+g.path()), e("boundaries", a{int32(0), int32(2)}), e("default", "x")})})
	case 17:
		return d{e("$lookup", d{e("from", pick(g, "c", "o")), e("localField", g.path()), e("foreignField", g.path()),
			e("as", g.path())})}
	case 18:
		if depth <= 0 {
			return d{e("$lookup", d{e("from", "o"), e("let", d{e("v", g.expr(1))}),
				e("pipeline", a{d{e("$match", d{e("$expr", d{e("$eq", a{"$$v", "$" + g.path()})})})}}),
				e("as", g.field())})}
		}
		return d{e("$facet", d{e("f", g.stages(depth-1))})}
	}
	return d{e("$graphLookup", d{e("from", "c"), e("startWith", g.expr(1)), e("connectFromField", g.path()),
		e("connectToField", g.path()), e("as", g.field()), e("maxDepth", int32(g.IntN(3)))})}
}

// modernStage is a stage that came with 5.0 or later.
func (g *gen) modernStage() d {
	window := d{}
	if g.one(2) {
		window = d{e("window", d{e(pick(g, "documents", "range"),
			a{pick[any](g, "unbounded", int32(-1), "current", 1.5), pick[any](g, "unbounded", int32(1), "current")})})}
	}
	sort := append(with(g.sort(), "_id", nil), e("_id", int32(1)))
	switch g.IntN(3) {
	case 0:
		f := append(d{pick(g, e("$sum", "$a"), e("$push", "$b"), e("$rank", d{}), e("$denseRank", d{}),
			e("$documentNumber", d{}), e("$shift", d{e("output", "$a"), e("by", int32(1))}), e("$locf", "$a"),
			e("$expMovingAvg", d{e("input", "$a"), e("N", int32(2))}), e("$integral", d{e("input", "$a")}),
			e("$derivative", d{e("input", "$a")}))}, window...)
		return d{e("$setWindowFields", d{e("partitionBy", g.expr(1)), e("sortBy", sort), e("output", d{e("w", f)})})}
	case 1:
		return d{e("$densify", d{e("field", g.field()),
			e("range", d{e("step", pick[any](g, int32(1), 0.5, int32(0))),
				e("bounds", pick[any](g, "full", "partition", a{int32(0), int32(5)}))})})}
	}
	return d{e("$fill", d{e("sortBy", sort), e("output",
		d{e(g.field(), pick(g, d{e("method", "linear")}, d{e("method", "locf")}, d{e("value", g.expr(1))}))})})}
}

// update is a document of modifiers, a replacement or a pipeline.
func (g *gen) update() any {
	switch g.IntN(8) {
	case 0:
		return d{e("a", g.value(1)), e("d", g.value(1))}
	case 1:
		return a{d{e("$set", g.fields())}}
	case 2:
		return a{pick(g, d{e("$unset", g.path())}, d{e("$replaceWith", g.expr(2))}, d{e("$project", g.projection())})}
	}
	u := d{}
	seen := map[string]bool{}
	for range 1 + g.IntN(2) {
		op := pick(g, "$set", "$unset", "$inc", "$mul", "$min", "$max", "$push", "$addToSet", "$pull", "$pullAll",
			"$pop", "$rename", "$bit", "$currentDate", "$setOnInsert")
		if seen[op] {
			continue
		}
		seen[op] = true
		fields := d{}
		for range 1 + g.IntN(2) {
			fields = append(fields, e(g.updatePath(), g.operand(op)))
		}
		u = append(u, e(op, fields))
	}
	return u
}

func (g *gen) updatePath() string {
	p := g.path()
	switch g.IntN(8) {
	case 0:
		p += ".$[]"
	case 1:
		p += ".$[x]"
	case 2:
		p += ".$"
	}
	if g.one(6) {
		p += ".b"
	}
	return p
}

func (g *gen) operand(op string) any {
	switch op {
	case "$inc", "$mul":
		return pick[any](g, int32(1), int64(2), 1.5, decimal("0.1"), g.scalar())
	case "$push", "$addToSet":
		if g.one(2) {
			each := d{e("$each", g.values())}
			if op == "$push" && g.one(2) {
				each = append(each, e(pick(g, "$slice", "$position"), int32(g.IntN(4)-2)))
			}
			if op == "$push" && g.one(3) {
				each = append(each, e("$sort", pick[any](g, int32(1), int32(-1), d{e("a", int32(1))})))
			}
			return each
		}
	case "$pull":
		if g.one(2) {
			return d{g.operator(1)}
		}
	case "$pullAll":
		return g.values()
	case "$pop":
		return pick[any](g, int32(1), int32(-1), 1.0, int32(2))
	case "$rename":
		return g.path()
	case "$bit":
		return d{e(pick(g, "and", "or", "xor"), pick[any](g, int32(3), int64(5)))}
	case "$currentDate":
		return true
	}
	return g.value(1)
}

// index is a specification; its name is the caller's.
func (g *gen) index(name string) d {
	var key d
	switch g.IntN(10) {
	case 0:
		key = d{e(pick(g, "$**", "a.$**"), int32(1))}
	case 1:
		key = d{e(g.path(), "hashed")}
	default:
		key = g.sort()
	}
	ix := d{e("key", key), e("name", name)}
	if g.one(5) {
		ix = append(ix, e("sparse", true))
	}
	if g.one(6) {
		ix = append(ix, e("unique", true))
	}
	if g.one(5) {
		ix = append(ix, e("partialFilterExpression",
			d{e(g.field(), pick[any](g, d{e("$exists", true)}, d{e("$gt", int32(0))}, int32(1)))}))
	}
	if c := g.collation(); c != nil {
		ix = append(ix, e("collation", c))
	}
	return ix
}
