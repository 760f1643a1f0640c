package pipeline

// How explain shows stages: parsed, in their full form, and joined where one does another's work.

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
)

// Shower shows stages as explain does.
type Shower struct {
	DB    string // of the pipeline's collection
	Scope *expr.Scope
	// Filter returns a filter as explain shows it.
	Filter func(bson.Raw) bson.Raw
}

// ShownStage is a stage as explain shows it. Its results are those of the stages as they were
// written, up to and with number Last.
type ShownStage struct {
	Doc  bson.Raw
	Last int
}

// Stages returns the stages of a pipeline as they are shown.
func (sh *Shower) Stages(stages []bson.Raw) []ShownStage {
	var list []ShownStage
	for i, doc := range stages {
		if n := len(list); n > 0 {
			if joined := sh.join(list[n-1].Doc, doc); joined != nil {
				list[n-1] = ShownStage{joined, i}
				continue
			}
		}
		for _, part := range expanded(doc) {
			list = append(list, ShownStage{sh.stage(part), i})
		}
	}
	return list
}

func (sh *Shower) stage(doc bson.Raw) bson.Raw {
	name, spec := bsondoc.FirstElement(doc)
	def := stages[name]
	if def == nil || def.shown == nil {
		return doc
	}
	return def.shown(sh, name, spec)
}

// join returns a stage that does the work of a second one, too; nil if it cannot.
func (sh *Shower) join(shown, doc bson.Raw) bson.Raw {
	before, spec := bsondoc.FirstElement(shown)
	name, arg := bsondoc.FirstElement(doc)
	first, _ := spec.Document()
	switch before + " " + name {
	case "$sort $limit", "$limit $limit":
		n, _ := arg.AsInt64()
		old := spec
		if before == "$sort" {
			old = first.Lookup("limit")
		}
		if most, ok := old.AsInt64(); ok {
			n = min(n, most)
		}
		if before == "$limit" {
			return bsondoc.Single(before, bsondoc.Int64Value(n))
		}
		return bsondoc.Single(before, with(bsondoc.Without(first, "limit"), "limit", bsondoc.Int64Value(n)))
	case "$skip $skip":
		n, _ := spec.AsInt64()
		more, _ := arg.AsInt64()
		if n+more < n {
			return nil
		}
		return bsondoc.Single(before, bsondoc.Int64Value(n+more))
	case "$lookup $unwind", "$graphLookup $unwind":
		unwind := unwindFields(arg)
		as, _ := first.Lookup("as").StringValue()
		if path, _ := unwind.Lookup("path").StringValue(); path != "$"+as || first.Lookup("unwinding").Type != 0 {
			return nil
		}
		unwinding := bsondoc.Build(func(d *bsondoc.Builder) {
			d.Flag("preserveNullAndEmptyArrays", unwind.Lookup("preserveNullAndEmptyArrays").AsBool())
			if index := unwind.Lookup("includeArrayIndex"); index.Type != 0 {
				d.B = bson.AppendRawValue(d.B, "includeArrayIndex", index)
			}
		})
		return bsondoc.Single(before, with(first, "unwinding", bsondoc.DocumentValue(unwinding)))
	}
	return nil
}

// with returns a document with one field more, as a value.
func with(doc bson.Raw, name string, v bson.RawValue) bson.RawValue {
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = append(d.B, doc.Elements()...)
		d.B = bson.AppendRawValue(d.B, name, v)
	}))
}

func single(name string, build func(d *bsondoc.Builder)) bson.Raw {
	return bsondoc.Single(name, bsondoc.DocumentValue(bsondoc.Build(build)))
}

func (sh *Shower) operand(d *bsondoc.Builder, name string, v bson.RawValue) {
	d.B = bson.AppendRawValue(d.B, name, expr.Shown(v, sh.Scope))
}

func showMatch(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, _ := spec.Document()
	return bsondoc.Single(name, bsondoc.DocumentValue(sh.Filter(doc)))
}

// showNumber shows $limit and $skip.
func showNumber(_ *Shower, name string, spec bson.RawValue) bson.Raw {
	n, _ := spec.AsInt64()
	return bsondoc.Single(name, bsondoc.Int64Value(n))
}

func showSort(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	return single(name, func(d *bsondoc.Builder) { d.B = bson.AppendRawValue(d.B, "sortKey", spec) })
}

func showSample(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, _ := spec.Document()
	n, _ := doc.Lookup("size").AsInt64()
	return single(name, func(d *bsondoc.Builder) { d.B = bson.AppendInt64(d.B, "size", n) })
}

func unwindFields(spec bson.RawValue) bson.Raw {
	if doc, ok := spec.Document(); ok {
		return doc
	}
	return bsondoc.Single("path", spec)
}

func showUnwind(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc := unwindFields(spec)
	return single(name, func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(d.B, "path", doc.Lookup("path"))
		if doc.Lookup("preserveNullAndEmptyArrays").AsBool() {
			d.Flag("preserveNullAndEmptyArrays", true)
		}
		if index := doc.Lookup("includeArrayIndex"); index.Type != 0 {
			d.B = bson.AppendRawValue(d.B, "includeArrayIndex", index)
		}
	})
}

func showReplace(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	if name == "$replaceRoot" {
		doc, _ := spec.Document()
		spec = doc.Lookup("newRoot")
	}
	return single("$replaceRoot", func(d *bsondoc.Builder) { sh.operand(d, "newRoot", spec) })
}

func showExpression(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	return bsondoc.Single(name, expr.Shown(spec, sh.Scope))
}

func showGroup(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, _ := spec.Document()
	return single(name, func(d *bsondoc.Builder) {
		sh.operand(d, "_id", doc.Lookup("_id"))
		for k, v := range doc.All() {
			switch k {
			case "_id":
			case "$doingMerge":
				d.B = bson.AppendRawValue(d.B, k, v)
			default:
				d.B = bson.AppendRawValue(d.B, k, expr.ShownAccumulator(v, sh.Scope))
			}
		}
	})
}

func expandCount(spec bson.RawValue) []bson.Raw {
	field, _ := spec.StringValue()
	return []bson.Raw{
		single("$group", func(d *bsondoc.Builder) {
			d.B = bson.AppendNull(d.B, "_id")
			d.B = bson.AppendRawValue(d.B, field, countSpec())
		}),
		bsondoc.Of("$project", bsondoc.Of(field, int32(1), "_id", int32(0))),
	}
}

func expandSortByCount(spec bson.RawValue) []bson.Raw {
	return []bson.Raw{
		single("$group", func(d *bsondoc.Builder) {
			d.B = bson.AppendRawValue(d.B, "_id", spec)
			d.B = bson.AppendRawValue(d.B, "count", countSpec())
		}),
		bsondoc.Of("$sort", bsondoc.Of("count", int32(-1))),
	}
}

// expandBucket makes $bucket a $group by a $switch over the boundaries, and a $sort.
func expandBucket(spec bson.RawValue) []bson.Raw {
	doc, _ := spec.Document()
	by := doc.Lookup("groupBy")
	bounds := bsondoc.Items(doc.Lookup("boundaries"))
	compare := func(op string, bound bson.RawValue) bson.RawValue {
		return bsondoc.DocumentValue(bsondoc.Single(op, bsondoc.ArrayValue(by, bound)))
	}
	var branches []bson.RawValue
	for i := 1; i < len(bounds); i++ {
		between := bsondoc.Single("$and", bsondoc.ArrayValue(compare("$gte", bounds[i-1]), compare("$lt", bounds[i])))
		branches = append(branches, bsondoc.DocumentValue(bsondoc.Of("case", between, "then", bounds[i-1])))
	}
	return []bson.Raw{
		single("$group", func(d *bsondoc.Builder) {
			d.Doc("_id", single("$switch", func(d *bsondoc.Builder) {
				d.B = bson.AppendRawValue(d.B, "branches", bsondoc.ArrayValue(branches...))
				if other := doc.Lookup("default"); other.Type != 0 {
					d.B = bson.AppendRawValue(d.B, "default", other)
				}
			}))
			output, ok := doc.Lookup("output").Document()
			if !ok {
				output = bsondoc.Single("count", countSpec())
			}
			d.B = append(d.B, output.Elements()...)
		}),
		bsondoc.Of("$sort", bsondoc.Of("_id", int32(1))),
	}
}

// Expanded returns a pipeline with the stages that some are short for.
func Expanded(list []bson.Raw) []bson.Raw {
	var out []bson.Raw
	for _, doc := range list {
		out = append(out, expanded(doc)...)
	}
	return out
}

func expanded(doc bson.Raw) []bson.Raw {
	name, spec := bsondoc.FirstElement(doc)
	if def := stages[name]; def != nil && def.expand != nil {
		return def.expand(spec)
	}
	return []bson.Raw{doc}
}

// output appends the accumulators of a $bucketAuto, which are a count by default.
func (sh *Shower) output(d *bsondoc.Builder, output bson.RawValue) {
	doc, ok := output.Document()
	if !ok {
		doc = bsondoc.Single("count", countSpec())
	}
	for k, v := range doc.All() {
		d.B = bson.AppendRawValue(d.B, k, expr.ShownAccumulator(v, sh.Scope))
	}
}

func showBucketAuto(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, _ := spec.Document()
	return single(name, func(d *bsondoc.Builder) {
		sh.operand(d, "groupBy", doc.Lookup("groupBy"))
		n, _ := doc.Lookup("buckets").AsInt64()
		d.B = bson.AppendInt32(d.B, "buckets", int32(n))
		if g := doc.Lookup("granularity"); g.Type != 0 {
			d.B = bson.AppendRawValue(d.B, "granularity", g)
		}
		d.Doc("output", bsondoc.Build(func(d *bsondoc.Builder) { sh.output(d, doc.Lookup("output")) }))
	})
}

func showLookup(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, _ := spec.Document()
	return single(name, func(d *bsondoc.Builder) {
		for _, k := range []string{"from", "as", "localField", "foreignField"} {
			if v := doc.Lookup(k); v.Type != 0 {
				d.B = bson.AppendRawValue(d.B, k, v)
			}
		}
		if sub := doc.Lookup("pipeline"); sub.Type != 0 { // as it is written
			d.Doc("let", sh.let(doc))
			d.B = bson.AppendRawValue(d.B, "pipeline", sub)
		}
	})
}

// let shows the variables of a stage.
func (sh *Shower) let(spec bson.Raw) bson.Raw {
	vars, _ := spec.Lookup("let").Document()
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range vars.All() {
			sh.operand(d, k, v)
		}
	})
}

func showGraphLookup(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, _ := spec.Document()
	return single(name, func(d *bsondoc.Builder) {
		for _, k := range []string{"from", "as", "connectToField", "connectFromField", "startWith", "depthField",
			"maxDepth", "restrictSearchWithMatch"} {
			v := doc.Lookup(k)
			switch {
			case v.Type == 0:
			case k == "startWith":
				sh.operand(d, k, v)
			case k == "maxDepth":
				n, _ := v.AsInt64()
				d.B = bson.AppendInt64(d.B, k, n)
			default:
				d.B = bson.AppendRawValue(d.B, k, v)
			}
		}
	})
}

func showUnion(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, ok := spec.Document()
	if !ok {
		doc = bsondoc.Single("coll", spec)
	}
	return single(name, func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(d.B, "coll", doc.Lookup("coll"))
		sub := doc.Lookup("pipeline")
		if sub.Type == 0 {
			sub = bsondoc.ArrayValue()
		}
		d.B = bson.AppendRawValue(d.B, "pipeline", sh.array(sub))
	})
}

// array shows a sub-pipeline.
func (sh *Shower) array(pipeline bson.RawValue, before ...bson.RawValue) bson.RawValue {
	for _, s := range sh.Stages(StagesIn(pipeline)) {
		before = append(before, bsondoc.DocumentValue(s.Doc))
	}
	return bsondoc.ArrayValue(before...)
}

func showFacet(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, _ := spec.Document()
	source := bsondoc.DocumentValue(bsondoc.Of("$internalFacetTeeConsumer", bsondoc.OrEmpty(nil)))
	return single(name, func(d *bsondoc.Builder) {
		for k, sub := range doc.All() {
			d.B = bson.AppendRawValue(d.B, k, sh.array(sub, source))
		}
	})
}

// target appends the collection that a stage writes.
func (sh *Shower) target(d *bsondoc.Builder, v bson.RawValue) {
	db, coll := sh.DB, ""
	if doc, ok := v.Document(); ok {
		if name, ok := doc.Lookup("db").StringValue(); ok {
			db = name
		}
		coll, _ = doc.Lookup("coll").StringValue()
	} else {
		coll, _ = v.StringValue()
	}
	d.Str("db", db).Str("coll", coll)
}

func showOut(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	if !sh.Scope.Env().Version.AtLeast(5, 0) {
		return bsondoc.Single(name, spec)
	}
	doc, ok := spec.Document()
	if !ok {
		doc = bsondoc.Single("coll", spec)
	}
	return single(name, func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(d.B, "coll", doc.Lookup("coll"))
		db := doc.Lookup("db")
		if db.Type == 0 {
			db = bsondoc.StringValue(sh.DB)
		}
		d.B = bson.AppendRawValue(d.B, "db", db)
		if series := doc.Lookup("timeseries"); series.Type != 0 {
			d.B = bson.AppendRawValue(d.B, "timeseries", series)
		}
	})
}

func showMerge(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, ok := spec.Document()
	if !ok {
		doc = bsondoc.Single("into", spec)
	}
	given := func(name string, otherwise bson.RawValue) bson.RawValue {
		if v := doc.Lookup(name); v.Type != 0 {
			return v
		}
		return otherwise
	}
	return single(name, func(d *bsondoc.Builder) {
		d.Doc("into", bsondoc.Build(func(d *bsondoc.Builder) { sh.target(d, doc.Lookup("into")) }))
		d.B = bson.AppendRawValue(d.B, "on", given("on", bsondoc.StringValue("_id")))
		matched := given("whenMatched", bsondoc.StringValue("merge"))
		if matched.Type == bson.TypeArray {
			vars := sh.let(doc)
			if doc.Lookup("let").Type == 0 {
				vars = bsondoc.Of("new", "$$ROOT")
			}
			d.Doc("let", vars)
		}
		d.B = bson.AppendRawValue(d.B, "whenMatched", matched)
		d.B = bson.AppendRawValue(d.B, "whenNotMatched", given("whenNotMatched", bsondoc.StringValue("insert")))
	})
}

// showComputed shows $addFields and $set.
func showComputed(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, _ := spec.Document()
	return single(name, func(d *bsondoc.Builder) { sh.fieldTree(doc, true).append(sh, d, bsondoc.BoolValue(true)) })
}

func showUnset(sh *Shower, _ string, spec bson.RawValue) bson.Raw {
	names := bsondoc.Items(spec)
	if spec.Type == bson.TypeString {
		names = []bson.RawValue{spec}
	}
	return showProject(sh, "$project", bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		for _, v := range names {
			name, _ := v.StringValue()
			d.B = bson.AppendInt32(d.B, name, 0)
		}
	})))
}

// showProject shows which fields a $project takes, or leaves out, and then what it computes. _id is
// always there.
func showProject(sh *Shower, name string, spec bson.RawValue) bson.Raw {
	doc, _ := spec.Document()
	t := sh.fieldTree(bsondoc.Without(doc, "_id"), false)
	id := doc.Lookup("_id")
	takes := !t.leavesOut()
	if len(t.order) == 0 && id.Type != 0 && !id.AsBool() {
		takes = false
	}
	return single(name, func(d *bsondoc.Builder) {
		plain := id.IsNumber() || id.Type == bson.TypeBoolean
		switch {
		case takes && (id.Type == 0 || plain && id.AsBool()):
			d.Flag("_id", true)
		case !takes && plain && !id.AsBool():
			d.Flag("_id", false)
		}
		t.append(sh, d, bsondoc.BoolValue(takes))
		switch {
		case id.Type != 0 && !plain:
			sh.operand(d, "_id", id)
		case takes && id.Type != 0 && !id.AsBool():
			d.Flag("_id", false)
		case !takes && (id.Type == 0 || id.AsBool()):
			d.Flag("_id", true)
		}
	})
}

// ShownProjection shows a $project that takes fields and computes none, as the query's own.
func ShownProjection(spec bson.Raw) bson.Raw {
	id, below := spec.Lookup("_id"), false
	for k := range spec.All() {
		below = below || strings.HasPrefix(k, "_id.")
	}
	sh := &Shower{}
	return bsondoc.Build(func(d *bsondoc.Builder) {
		if _, nested := id.Document(); nested || below {
			sh.fieldTree(spec, false).append(sh, d, bsondoc.BoolValue(true))
			return
		}
		d.Flag("_id", id.Type == 0 || id.AsBool())
		sh.fieldTree(bsondoc.Without(spec, "_id"), false).append(sh, d, bsondoc.BoolValue(true))
	})
}

// shownFields is what a projection says of the fields of a document.
type shownFields struct {
	order    []string
	leaves   map[string]bson.RawValue
	children map[string]*shownFields
	computes bool // $addFields: numbers are values
}

func newShownFields(computes bool) *shownFields {
	return &shownFields{leaves: map[string]bson.RawValue{}, children: map[string]*shownFields{}, computes: computes}
}

func (sh *Shower) fieldTree(doc bson.Raw, computes bool) *shownFields {
	t := newShownFields(computes)
	for k, v := range doc.All() {
		t.add(k, v)
	}
	return t
}

func (t *shownFields) add(path string, v bson.RawValue) {
	name, rest, dotted := strings.Cut(path, ".")
	if _, leaf := t.leaves[name]; !leaf && t.children[name] == nil {
		t.order = append(t.order, name)
	}
	inner, isDocument := v.Document()
	first, _ := bsondoc.FirstElement(inner)
	isDocument = isDocument && !strings.HasPrefix(first, "$") && first != ""
	if !dotted && !isDocument {
		t.leaves[name] = v
		return
	}
	if t.children[name] == nil {
		t.children[name] = newShownFields(t.computes)
	}
	if dotted {
		t.children[name].add(rest, v)
		return
	}
	for k, item := range inner.All() {
		t.children[name].add(k, item)
	}
}

func plainFlag(v bson.RawValue) bool { return v.IsNumber() || v.Type == bson.TypeBoolean }

// leavesOut reports whether a field is named with a false value.
func (t *shownFields) leavesOut() bool {
	for _, v := range t.leaves {
		if plainFlag(v) && !v.AsBool() {
			return true
		}
	}
	for _, c := range t.children {
		if c.leavesOut() {
			return true
		}
	}
	return false
}

// append appends the fields that are named, with this value, and behind them what is computed.
func (t *shownFields) append(sh *Shower, d *bsondoc.Builder, named bson.RawValue) {
	flag := func(name string) bool {
		v, ok := t.leaves[name]
		return ok && plainFlag(v) && !t.computes
	}
	for _, name := range t.order {
		if flag(name) {
			d.B = bson.AppendRawValue(d.B, name, named)
		}
	}
	for _, name := range t.order {
		switch child := t.children[name]; {
		case child != nil:
			d.Doc(name, bsondoc.Build(func(d *bsondoc.Builder) { child.append(sh, d, named) }))
		case !flag(name):
			sh.operand(d, name, t.leaves[name])
		}
	}
}
