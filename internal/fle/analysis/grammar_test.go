package analysis

import (
	"strings"

	"allium/bson"
)

// The grammar of TestSafety: everything that is a D is made with m, the model of the documents that
// it is about.

func (g *generator) coll() string { return pick(g, "x", "x", "x", "x", "y", "y", "n") }

// elsewhere makes what names a collection of another database in a stage, and its model.
func (g *generator) elsewhere() (bson.D, *model) {
	coll := g.coll()
	target := d("db", "db2", "coll", coll)
	if g.chance(10) {
		target = d("atlas", append(d("clusterName", "c"), target...))
	}
	return target, g.models["db2."+coll]
}

// written makes a stage that writes to another database what it computes, or what came to it.
func (g *generator) written(m *model) bson.D {
	target, other := g.elsewhere()
	p := g.path(other)
	switch g.IntN(4) {
	case 0:
		return d("$out", target)
	case 1:
		return d("$merge", d("into", target, "whenMatched", bson.A{d("$set", d(p, d("$literal", g.literal(other, p))))}))
	case 2:
		return d("$merge", d("into", target, "let", d("v", g.literal(other, p)), "whenMatched", bson.A{d("$set", d(p, "$$v"))}))
	}
	return d("$facet", d("a", bson.A{d("$addFields", d(p, g.literal(other, p))), d("$merge", target)}))
}

// read makes a stage that reads another database.
func (g *generator) read(m *model, depth int) (bson.D, *model) {
	target, other := g.elsewhere()
	stages, sub := g.pipeline(other, max(depth-2, 0))
	switch g.IntN(3) {
	case 0:
		return d("$lookup", d("from", target, "pipeline", stages, "as", "n1")), m.set("n1", sub)
	case 1:
		return d("$unionWith", append(target, bson.E{Key: "pipeline", Value: stages})), union(m, sub)
	}
	q := g.path(other)
	return d("$graphLookup", d("from", target, "startWith", g.literal(other, q), "connectFromField", q, "connectToField", q, "as", "n1")), m.set("n1", other)
}

func d(pairs ...any) bson.D {
	var out bson.D
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

// command makes a command.
func (g *generator) command() bson.Raw {
	cmd := g.commandOf(pick(g, "find", "find", "find", "count", "distinct", "aggregate", "aggregate", "aggregate", "insert", "insert", "update", "update",
		"delete", "findAndModify", "bulkWrite", "explain", "create", "collMod", "createIndexes"))
	if g.chance(2) {
		cmd = append(cmd, bson.E{Key: "future", Value: g.unplaced()})
	}
	if g.chance(10) {
		cmd = append(cmd, bson.E{Key: "lsid", Value: d("id", bson.NewUUID())}, bson.E{Key: "$db", Value: "db"})
	}
	return value(cmd).Value
}

func (g *generator) commandOf(name string) bson.D {
	coll := g.coll()
	m := g.models["db."+coll]
	cmd := d(name, coll)
	maybe := func(percent int, key string, v func() any) {
		if g.chance(percent) {
			cmd = append(cmd, bson.E{Key: key, Value: v()})
		}
	}
	filter := func() any { return g.filter(m, 2) }
	collation := func() any { return d("locale", pick(g, "de", "simple")) }
	switch name {
	case "find":
		maybe(95, "filter", filter)
		maybe(10, "sort", func() any { return d(g.path(m), 1) })
		maybe(15, "projection", func() any { doc, _ := g.projection(m, true); return doc })
		maybe(3, "min", func() any { p := g.path(m); return d(p, g.literal(m, p)) })
		maybe(3, "max", func() any { p := g.path(m); return d(p, g.literal(m, p)) })
		maybe(5, "collation", collation)
		if g.chance(3) {
			// A variable is a secret if it is compared with an encrypted field.
			p := g.path(m)
			cmd.Set("filter", d("$expr", d("$eq", bson.A{"$" + p, "$$v"})))
			cmd.Set("let", d("v", g.literal(m, p)))
		}
	case "count":
		maybe(95, "query", filter)
	case "distinct":
		cmd = append(cmd, d("key", g.path(m), "query", g.filter(m, 1))...)
	case "aggregate":
		stages, _ := g.pipeline(m, 4)
		cmd = append(cmd, bson.E{Key: "pipeline", Value: stages})
		maybe(90, "cursor", func() any { return bson.D{} })
		maybe(5, "collation", collation)
	case "insert":
		docs := bson.A{}
		for range g.IntN(3) + 1 {
			docs = append(docs, g.document(m))
		}
		cmd = append(cmd, bson.E{Key: "documents", Value: docs})
	case "update":
		list := bson.A{}
		for range g.IntN(2) + 1 {
			u := d("q", g.filter(m, 1), "u", g.update(m))
			if g.chance(30) {
				u = append(u, d("multi", g.chance(50))...)
			}
			if g.chance(30) {
				u = append(u, d("upsert", g.chance(50))...)
			}
			if g.chance(5) {
				p := g.path(m)
				u = append(u, bson.E{Key: "arrayFilters", Value: bson.A{d("i."+p, g.public())}})
			}
			if g.chance(5) {
				u = append(u, bson.E{Key: "collation", Value: collation()})
			}
			list = append(list, u)
		}
		cmd = append(cmd, bson.E{Key: "updates", Value: list})
	case "delete":
		cmd = append(cmd, bson.E{Key: "deletes", Value: bson.A{d("q", g.filter(m, 2), "limit", g.IntN(2))}})
	case "findAndModify":
		cmd = append(cmd, bson.E{Key: "query", Value: g.filter(m, 1)})
		if g.chance(30) {
			cmd = append(cmd, bson.E{Key: "remove", Value: true})
		} else {
			cmd = append(cmd, bson.E{Key: "update", Value: g.update(m)})
		}
		maybe(10, "new", func() any { return g.chance(50) })
		maybe(10, "fields", func() any { doc, _ := g.projection(m, true); return doc })
		maybe(10, "sort", func() any { return d(g.path(m), -1) })
	case "bulkWrite":
		cmd[0].Value = 1
		ops := bson.A{}
		for range g.IntN(2) + 1 {
			switch g.IntN(3) {
			case 0:
				ops = append(ops, d("insert", 0, "document", g.document(m)))
			case 1:
				ops = append(ops, d("update", 0, "filter", g.filter(m, 1), "updateMods", g.update(m)))
			default:
				ops = append(ops, d("delete", 0, "filter", g.filter(m, 1)))
			}
		}
		cmd = append(cmd, d("ops", ops, "nsInfo", bson.A{d("ns", "db."+coll)})...)
	case "explain":
		cmd[0].Value = g.commandOf(pick(g, "find", "count", "aggregate", "update"))
	case "create", "collMod":
		switch g.IntN(3) {
		case 0:
			cmd = append(cmd, bson.E{Key: "validator", Value: g.filter(m, 1)})
		case 1:
			cmd = append(cmd, bson.E{Key: "validator", Value: d("$jsonSchema", g.valueSchema(m))})
		default:
			stages, _ := g.pipeline(m, 1)
			cmd = d(name, "v", "viewOn", coll, "pipeline", stages)
		}
	case "createIndexes":
		index := d("name", "n", "key", d(g.path(m), pick[any](g, 1, -1, "hashed", "text", "2d")))
		if g.chance(50) {
			index = append(index, bson.E{Key: "partialFilterExpression", Value: g.filter(m, 1)})
		}
		cmd = append(cmd, bson.E{Key: "indexes", Value: bson.A{index}})
	}
	return cmd
}

// valueSchema makes a $jsonSchema that says which values a field may have.
func (g *generator) valueSchema(m *model) bson.D {
	p := g.path(m)
	for strings.Contains("."+p+".", ".0.") || strings.Contains("."+p+".", ".7.") {
		p = g.path(m) // a number is a name here, not the position in an array
	}
	keys := strings.Split(p, ".")
	v := g.literal(m, p)
	s := pick(g, d("enum", bson.A{v}), d("minimum", v), d("not", d("enum", bson.A{v})), d("anyOf", bson.A{d("enum", bson.A{v})}))
	for i := len(keys) - 1; i >= 0; i-- {
		s = d(pick(g, "properties", "properties", "properties", "patternProperties"), d(keys[i], s))
		if g.chance(20) {
			s = append(s, bson.E{Key: "bsonType", Value: "object"})
		}
	}
	return s
}

// filter makes a filter.
func (g *generator) filter(m *model, depth int) bson.D {
	out := bson.D{}
	for range pick(g, 0, 1, 1, 1, 2, 2, 3) {
		out = append(out, g.condition(m, depth))
	}
	return out
}

func (g *generator) condition(m *model, depth int) bson.E {
	if depth > 0 && g.chance(25) {
		list := bson.A{}
		for range g.IntN(3) + 1 {
			list = append(list, g.filter(m, depth-1))
		}
		return bson.E{Key: pick(g, "$and", "$or", "$nor"), Value: list}
	}
	if g.chance(15) {
		return bson.E{Key: "$expr", Value: g.test(m, nil, depth)}
	}
	if g.chance(2) {
		switch g.IntN(3) {
		case 0:
			return bson.E{Key: "$where", Value: g.unplaced()}
		case 1:
			return bson.E{Key: "$text", Value: d("$search", g.unplaced())}
		}
		return bson.E{Key: "$jsonSchema", Value: g.valueSchema(m)}
	}
	p := g.path(m)
	if g.chance(40) {
		return bson.E{Key: p, Value: g.literal(m, p)}
	}
	ops := bson.D{}
	for range pick(g, 1, 1, 1, 2) {
		ops = append(ops, g.operator(m, p, 1))
	}
	return bson.E{Key: p, Value: ops}
}

// operator makes an operator of the field at p.
func (g *generator) operator(m *model, p string, depth int) bson.E {
	lit := func() any { return g.literal(m, p) }
	list := func() bson.A {
		out := bson.A{}
		for range g.IntN(3) {
			out = append(out, lit())
		}
		return out
	}
	found, encrypted := m.find(p)
	if encrypted && found.kind == Range && g.chance(60) {
		return bson.E{Key: pick(g, "$gt", "$gte", "$lt", "$lte"), Value: lit()}
	}
	switch g.IntN(22) {
	case 0, 1, 2, 3:
		return bson.E{Key: "$eq", Value: lit()}
	case 4, 5:
		return bson.E{Key: "$ne", Value: lit()}
	case 6, 7:
		return bson.E{Key: "$in", Value: list()}
	case 8:
		return bson.E{Key: "$nin", Value: list()}
	case 9, 10:
		return bson.E{Key: pick(g, "$gt", "$gte", "$lt", "$lte"), Value: lit()}
	case 11:
		if g.chance(10) {
			return bson.E{Key: "$exists", Value: lit()}
		}
		return bson.E{Key: "$exists", Value: true}
	case 12, 13:
		if depth > 0 {
			return bson.E{Key: "$not", Value: bson.D{g.operator(m, p, depth-1)}}
		}
	case 14:
		return bson.E{Key: "$all", Value: list()}
	case 15:
		// An element may hold a field with a name that is encrypted at the root: that is not this
		// field.
		if encrypted {
			return bson.E{Key: "$elemMatch", Value: d("$eq", lit())}
		}
		if found.holds() {
			return bson.E{Key: "$elemMatch", Value: g.filter(found, 1)}
		}
		if g.chance(30) && m.holds() {
			q := g.path(m)
			if _, encrypted := m.find(q); encrypted {
				return bson.E{Key: "$elemMatch", Value: d("$expr", d("$eq", bson.A{"$" + q, g.literal(m, q)}))}
			}
		}
		return bson.E{Key: "$elemMatch", Value: d("a", g.public())}
	case 16:
		if encrypted {
			return bson.E{Key: "$regex", Value: g.secret(nil)}
		}
		return bson.E{Key: "$regex", Value: "public"}
	case 17:
		return bson.E{Key: "$mod", Value: bson.A{3, 1}}
	case 18:
		return bson.E{Key: "$future", Value: lit()}
	case 19:
		return bson.E{Key: "$type", Value: "string"}
	case 20:
		return bson.E{Key: "$near", Value: lit()}
	}
	return bson.E{Key: "$eq", Value: lit()}
}

// test makes an expression that is true or false; vars are variables with models of their own.
func (g *generator) test(m *model, vars map[string]*model, depth int) any {
	if depth > 0 && g.chance(25) {
		return pick[any](g,
			d("$and", bson.A{g.test(m, vars, depth-1), g.test(m, vars, depth-1)}),
			d("$or", bson.A{g.test(m, vars, depth-1)}),
			d("$not", bson.A{g.test(m, vars, depth-1)}),
			d("$cond", bson.A{g.test(m, vars, depth-1), g.test(m, vars, depth-1), false}),
		)
	}
	p := g.path(m)
	ref := "$" + p
	if len(vars) > 0 && g.chance(40) {
		// A variable's own model: of the whole path or of what is below it.
		for name, c := range vars {
			if c != nil && c.kind == 0 && len(c.kids) > 0 {
				p = g.path(c)
				return g.comparison(c, p, "$$"+name+"."+p)
			}
			return g.comparison(&model{kids: map[string]*model{"v": c}}, "v", "$$"+name)
		}
	}
	if depth > 0 && g.chance(10) {
		found, encrypted := m.find(p)
		if encrypted {
			found = &model{kids: map[string]*model{"v": found}}
			return d("$let", d("vars", d("w", ref), "in", g.comparison(found, "v", "$$w")))
		}
	}
	if g.chance(5) {
		ref = "$$ROOT." + p
	}
	if g.chance(3) {
		ref = "$$CURRENT." + p
	}
	return g.comparison(m, p, ref)
}

// comparison makes a comparison of the field at p, which ref refers to.
func (g *generator) comparison(m *model, p, ref string) any {
	found, encrypted := m.find(p)
	lit := func() any {
		v := g.literal(m, p)
		if g.chance(20) {
			return d("$literal", v)
		}
		return v
	}
	if found != nil && found.kind == Text && g.chance(60) {
		switch g.IntN(4) {
		case 0:
			return d("$encStrStartsWith", d("input", ref, "prefix", lit()))
		case 1:
			return d("$encStrEndsWith", d("input", ref, "suffix", lit()))
		case 2:
			return d("$encStrContains", d("input", ref, "substring", lit()))
		}
		return d("$encStrNormalizedEq", d("input", ref, "string", lit()))
	}
	var operand any = ref
	if g.chance(12) {
		wrapped := []any{
			d("$toLower", ref), d("$ifNull", bson.A{ref, g.public()}), d("$ifNull", bson.A{ref, "$$REMOVE"}), d("$concat", bson.A{ref, lit()}),
			d("$cond", bson.A{true, ref, ref}), d("$first", bson.A{ref}), d("$getField", p), d("$let", d("vars", bson.D{}, "in", ref)),
			d("$getField", d("field", p, "input", "$$ROOT")), d("$mergeObjects", bson.A{"$$ROOT", d("a", 1)}), bson.A{ref},
			d("$switch", d("branches", bson.A{d("case", true, "then", ref)}, "default", "$$REMOVE")), d("$future", ref),
		}
		operand = pick(g, wrapped...)
		// The whole document and the first array element are not the field: what they are compared
		// with is no secret but if it is a value of the field in an object, which it is not.
	}
	op := pick(g, "$eq", "$eq", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$cmp", "$setIsSubset", "$future")
	if found != nil && found.kind == Range && g.chance(50) {
		op = pick(g, "$gt", "$gte", "$lt", "$lte")
	}
	switch op {
	case "$in":
		return d(op, bson.A{operand, bson.A{lit(), lit()}})
	case "$setIsSubset":
		return d(op, bson.A{bson.A{lit()}, bson.A{operand}})
	}
	if g.chance(10) {
		q := g.path(m)
		_, other := m.find(q)
		if !encrypted && !other {
			return d(op, bson.A{operand, "$" + q})
		}
	}
	if g.chance(30) {
		return d(op, bson.A{lit(), operand})
	}
	return d(op, bson.A{operand, lit()})
}

// update makes an update.
func (g *generator) update(m *model) any {
	if g.chance(20) {
		return g.document(m)
	}
	if g.chance(3) {
		p := g.path(m)
		return bson.A{d("$set", d(p, g.literal(m, p)))}
	}
	out := bson.D{}
	for range g.IntN(2) + 1 {
		fields := bson.D{}
		op := pick(g, "$set", "$set", "$set", "$set", "$setOnInsert", "$unset", "$inc", "$mul", "$min", "$max", "$push", "$addToSet", "$pull", "$pullAll", "$pop",
			"$currentDate", "$bit", "$rename", "$future")
		for range g.IntN(2) + 1 {
			p := g.path(m)
			v := g.literal(m, p)
			if g.chance(5) {
				keys := strings.Split(p, ".")
				i := g.IntN(len(keys)) + 1
				keys = append(keys[:i:i], append([]string{pick(g, "$", "$[]", "$[i]")}, keys[i:]...)...)
				p = strings.Join(keys, ".")
			}
			switch op {
			case "$unset":
				if g.chance(50) {
					v = ""
				}
			case "$rename":
				v = g.path(m)
			case "$push", "$addToSet":
				if g.chance(30) {
					v = d("$each", bson.A{v})
				}
			case "$pullAll":
				v = bson.A{v}
			}
			fields = append(fields, bson.E{Key: p, Value: v})
		}
		out = append(out, bson.E{Key: op, Value: fields})
	}
	return out
}

// projection makes a projection and the model of what comes out.
func (g *generator) projection(m *model, find bool) (bson.D, *model) {
	out := bson.D{}
	if g.chance(30) {
		rest := m
		for range g.IntN(2) + 1 {
			p := g.path(m)
			out, rest = append(out, bson.E{Key: p, Value: 0}), rest.without(p)
		}
		return out, rest
	}
	next := &model{kids: map[string]*model{}}
	for range g.IntN(3) + 1 {
		p := g.path(m)
		found, encrypted := m.find(p)
		switch {
		case g.chance(50):
			out = append(out, bson.E{Key: p, Value: 1})
			if c := m.exact(p); c != nil {
				next = next.set(p, c)
			}
		case g.chance(50):
			name := pick(g, "n1", "n2", "n3.a")
			out = append(out, bson.E{Key: name, Value: "$" + p})
			if encrypted && m.exact(p) == nil {
				continue // below an encrypted field
			}
			next = next.set(name, found)
		case find && g.chance(50):
			out = append(out, bson.E{Key: p, Value: pick(g, d("$slice", 1), d("$elemMatch", d("$eq", g.literal(m, p))), d("$meta", "x"))})
		default:
			out = append(out, bson.E{Key: pick(g, "n4", "n5"), Value: g.test(m, nil, 1)})
		}
	}
	return out, next
}

// exact is find without the tolerance for indexes and for what is below an encrypted field.
func (m *model) exact(path string) *model {
	for key := range strings.SplitSeq(path, ".") {
		m = m.kidOf(key)
	}
	return m
}

func (m *model) without(path string) *model {
	return m.set(path, nil)
}

// pipeline makes stages, and the model of what comes out.
func (g *generator) pipeline(m *model, depth int) (bson.A, *model) {
	out := bson.A{}
	for range g.IntN(depth + 1) {
		var s bson.D
		s, m = g.stage(m, depth)
		out = append(out, s)
	}
	if g.chance(60) {
		out = append(out, d("$match", g.filter(m, 1)))
	}
	if depth > 2 && g.chance(10) {
		out = append(out, g.written(m))
	}
	return out, m
}

func (g *generator) stage(m *model, depth int) (bson.D, *model) {
	p := g.path(m)
	found, encrypted := m.find(p)
	if encrypted {
		found = m.exact(p)
	}
	switch g.IntN(26) {
	case 24:
		return g.written(m), m
	case 25:
		return g.read(m, depth)
	case 0, 1, 2:
		return d("$match", g.filter(m, 1)), m
	case 3, 4:
		doc, next := g.projection(m, false)
		return d("$project", doc), next
	case 5, 6:
		name := pick(g, "n1", "n2.a", "a", "b.c", p)
		return d(pick(g, "$addFields", "$set"), d(name, "$"+p)), m.set(name, found)
	case 7:
		return d("$addFields", d("n6", g.test(m, nil, 1))), m.set("n6", nil)
	case 8:
		return d("$unset", p), m.without(p)
	case 9:
		if g.chance(50) {
			return d("$replaceRoot", d("newRoot", "$"+p)), found
		}
		return d("$replaceWith", d("n1", "$"+p, "n2", "$$ROOT")), (&model{}).set("n1", found).set("n2", m)
	case 10:
		return d(pick(g, "$limit", "$skip"), 5), m
	case 11:
		return d("$sort", d(p, 1)), m
	case 12, 13:
		q := g.path(m)
		other := m.exact(q)
		acc := pick(g, "$push", "$addToSet", "$first", "$max", "$sum", "$mergeObjects", "$future")
		next := (&model{}).set("_id", found).set("n1", other)
		return d("$group", d("_id", "$"+p, "n1", d(acc, "$"+q), "n2", d("$sum", d("$cond", bson.A{g.test(m, nil, 1), 1, 0})))), next
	case 14:
		return d("$sortByCount", "$"+p), (&model{}).set("_id", found)
	case 15:
		return d("$unwind", "$"+p), m
	case 16:
		return d("$redact", d("$cond", bson.A{g.test(m, nil, 1), "$$DESCEND", "$$PRUNE"})), m
	case 17:
		if depth > 1 {
			stages, sub := g.pipeline(m, depth-2)
			return d("$facet", d("n1", stages)), (&model{}).set("n1", sub)
		}
	case 18, 19:
		coll := g.coll()
		other := g.models["db."+coll]
		l := d("from", coll, "as", pick(g, "n1", "z"))
		if g.chance(60) {
			l = append(l, d("localField", p, "foreignField", g.path(other))...)
		}
		sub := other
		if g.chance(50) && depth > 1 {
			l = append(l, d("let", d("w", "$"+p))...)
			inner := bson.A{}
			if g.chance(60) {
				inner = append(inner, d("$match", d("$expr", g.test(other, map[string]*model{"w": found}, 1))))
			}
			var more bson.A
			more, sub = g.pipeline(other, depth-2)
			l = append(l, bson.E{Key: "pipeline", Value: append(inner, more...)})
		}
		as, _ := l.Get("as")
		return d("$lookup", l), m.set(as.(string), sub)
	case 20:
		coll := g.coll()
		other := g.models["db."+coll]
		q := g.path(other)
		return d("$graphLookup", d("from", coll, "startWith", pick[any](g, "$"+p, g.literal(other, q)), "connectFromField", g.path(other), "connectToField", q, "as", "n1",
			"restrictSearchWithMatch", g.filter(other, 1))), m.set("n1", other)
	case 21:
		coll := g.coll()
		stages, sub := g.pipeline(g.models["db."+coll], max(depth-2, 0))
		// What comes after concerns documents of both.
		return d("$unionWith", d("coll", coll, "pipeline", stages)), union(m, sub)
	case 22:
		return d("$bucket", d("groupBy", "$"+p, "boundaries", bson.A{g.literal(m, p)}, "output", d("n1", d("$push", "$"+p)))), (&model{}).set("n1", found)
	}
	return d(pick(g, "$out", "$merge", "$future", "$search", "$setWindowFields", "$changeStream"), g.unplaced()), m
}

// union returns a model of the documents of both.
func union(a, b *model) *model {
	if a == nil {
		return b
	}
	if b == nil || a.kind != 0 {
		return a
	}
	if b.kind != 0 {
		return b
	}
	out := &model{kids: map[string]*model{}}
	for name, c := range a.kids {
		out.kids[name] = c
	}
	for name, c := range b.kids {
		out.kids[name] = union(out.kids[name], c)
	}
	return out
}
