package pipeline

// $out and $merge.

import (
	"fmt"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(
		&stageDef{name: "$out", shown: showOut, parse: one(parseOut),
			precheck: checkWriter(16990, "$out only supports"),
			noTxn:    refusedInParse, concern: notLinearizable, last: true, notInFacet: true, notInLookup: true,
			writes: "coll", names: whole + " coll db",
			actions: actionsOfOut, at: primaryShard, unsharded: func(expr.Version) bool {
				return true
			}},
		&stageDef{name: "$merge", shown: showMerge, parse: one(parseMerge), precheck: checkWriter(srverr.TypeMismatch,
			"$merge requires"),
			noTxn: refusedInParse, concern: notLinearizable, last: true, notInFacet: true, notInLookup: true,
			writes: "into", actions: actionsOfMerge, names: whole + " into on", keyed: "let"},
	)
}

// checkWriter refuses an argument that names no collection, which the server finds before it parses
// any stage.
func checkWriter(code int32, text string) func(p *parser, name string, v bson.RawValue) error {
	return func(_ *parser, _ string, v bson.RawValue) error {
		if v.Type == bson.TypeString || v.Type == bson.TypeEmbeddedDocument {
			return nil
		}
		return srverr.New(code, "%s a string or object argument, but found %s", text, typeName(v))
	}
}

func internalDB(db string) bool { return db == "admin" || db == "config" || db == "local" }

// outStage is $out: the input becomes the whole contents of a collection.
type outStage struct {
	rt     *runtime
	to     Namespace
	series bson.Raw // the option that makes it a time series collection
}

// outArgs are the fields of $out since it can make time series collections.
var outArgs = args.Table[outStage]{Name: "$out", Copy: true, Required: []string{"db", "coll"},
	Fields: map[string]args.Field[outStage]{
		"db":         args.String(func(o *outStage) *string { return &o.to.DB }),
		"coll":       args.String(func(o *outStage) *string { return &o.to.Coll }),
		"timeseries": args.Object(func(o *outStage) *bson.Raw { return &o.series }),
	}}

func parseOut(p *parser, _ string, v bson.RawValue) (*outStage, error) {
	o := &outStage{rt: p.rt, to: Namespace{DB: p.ns.DB}}
	switch v.Type {
	case bson.TypeString:
		o.to.Coll, _ = v.StringValue()
	case bson.TypeEmbeddedDocument:
		if p.rt.o.Version.Has(release.Argument, "$out.timeseries") {
			o.to.DB = ""
			if err := outArgs.Parse(args.NoCommand{As: p.rt.o.Version}, v.Value, o); err != nil {
				return nil, err
			}
			if o.series != nil && p.rt.o.CheckSeries != nil {
				if err := p.rt.o.CheckSeries("$out.timeseries", o.series); err != nil {
					return nil, err
				}
			}
			break
		}
		n := 0
		for key, item := range bson.Raw(v.Value).All() {
			s, ok := item.StringValue()
			switch {
			case key == "db" && ok:
				o.to.DB = s
			case key == "coll" && ok:
				o.to.Coll = s
			default:
				n = -1000
			}
			n++
		}
		if n != 2 {
			return nil, srverr.New(16994,
				"If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll'")
		}
	}
	switch {
	case !validNamespace(o.to):
		return nil, srverr.New(srverr.InvalidNamespace, "Invalid $out target namespace, %s", o.to)
	case strings.HasPrefix(o.to.Coll, "system."):
		return nil, srverr.New(17385, "Can't $out to special collection: %s", o.to.Coll)
	case internalDB(o.to.DB):
		return nil, srverr.New(31321, "Can't $out to internal database: %s", o.to.DB)
	}
	return o, nil
}

func (o *outStage) target() Namespace { return o.to }

func (o *outStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) {
		docs, err := collect(src, memoryLimit)
		if err != nil {
			return nil, err
		}
		return nil, o.rt.o.Env.Replace(o.to, docs, o.series)
	}}, nil
}

// mergeStage is $merge: the input is merged into a collection, document by document.
type mergeStage struct {
	rt         *runtime
	into       Namespace
	on         []string
	nulls      bool     // null and what is missing are values of on like others
	matched    string   // replace, keepExisting, merge, fail, pipeline
	notMatched string   // insert, discard, fail
	names      []string // of the variables of the pipeline
	values     []expr.Expr
	// compile returns the pipeline that sees those variables for which has is true.
	compile func(has []bool) (*mergeUpdate, error)
}

// mergeUpdate is the pipeline of a $merge, with where it finds its variables.
type mergeUpdate struct {
	slots  []expr.Slot
	update *Update
}

func parseMerge(p *parser, name string, v bson.RawValue) (*mergeStage, error) {
	m := &mergeStage{rt: p.rt, into: Namespace{DB: p.ns.DB}, matched: "merge", notMatched: "insert"}
	var let bson.Raw
	var stages []bson.Raw
	switch v.Type {
	case bson.TypeString:
		m.into.Coll, _ = v.StringValue()
	case bson.TypeEmbeddedDocument:
		var haveInto bool
		for key, item := range bson.Raw(v.Value).All() {
			if nullish := item.Type == bson.TypeNull ||
				item.Type == bson.TypeUndefined; nullish && (key == "let" || key == "whenNotMatched") {
				continue // as if it were not there
			}
			var err error
			switch key {
			case "into":
				haveInto = true
				err = m.parseInto(p, item)
			case "on":
				err = m.parseOn(p, item)
			case "let":
				var ok bool
				if let, ok = item.Document(); !ok {
					err = args.WrongType("$merge.let", item.Type, "object")
				}
			case "whenMatched":
				stages, err = m.parseWhenMatched(item)
			case "whenNotMatched":
				err = enumeration(&m.notMatched, "$merge.whenNotMatched", "whenNotMatched", item, "insert", "discard",
					"fail")
			default:
				err = args.UnknownField("$merge." + key)
			}
			if err != nil {
				return nil, err
			}
		}
		if !haveInto {
			return nil, args.MissingField("$merge.into")
		}
	}
	if err := m.check(p, let); err != nil {
		return nil, err
	}
	if m.matched == "pipeline" {
		if err := m.parsePipeline(p, let, stages); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *mergeStage) parseInto(p *parser, v bson.RawValue) error {
	switch v.Type {
	case bson.TypeString:
		if m.into.Coll, _ = v.StringValue(); m.into.Coll == "" {
			if p.rt.o.Version.AllParsed() {
				return srverr.New(5786800, "$merge 'into' may not be an empty string")
			}
			return srverr.New(srverr.InvalidNamespace, "Collection names cannot start with '.'")
		}
		return nil
	case bson.TypeEmbeddedDocument:
	default:
		return srverr.New(51178, "$merge 'into' field  must be either a string or an object, but found %s", typeName(v))
	}
	named := false
	for key, item := range bson.Raw(v.Value).All() {
		s, ok := item.StringValue()
		if now := p.rt.o.Version.AllParsed(); now && key == "coll" && args.IsNull(item) {
			return srverr.New(5786801, "$merge 'into.coll' may not be null or undefined")
		} else if now && key == "db" && (args.IsNull(item) || ok && s == "") {
			continue // as if it were not there
		}
		if !ok && (key == "db" || key == "coll") {
			return args.WrongType("into."+key, item.Type, "string")
		}
		switch key {
		case "db":
			m.into.DB, named = s, true
		case "coll":
			m.into.Coll = s
		default:
			return args.UnknownField("into." + key)
		}
	}
	if m.into.Coll == "" && !named {
		return srverr.New(srverr.InvalidNamespace, "Collection names cannot start with '.'")
	}
	return nil
}

func (m *mergeStage) parseOn(_ *parser, v bson.RawValue) error {
	switch v.Type {
	case bson.TypeString:
		s, _ := v.StringValue()
		m.on = []string{s}
	case bson.TypeArray:
		for item := range bson.Raw(v.Value).Values() {
			s, ok := item.StringValue()
			if !ok {
				return srverr.New(51134, "$merge 'on' array elements must be strings, but found %s", typeName(item))
			}
			for _, other := range m.on {
				if other == s {
					return srverr.New(31465, "Found a duplicate field '%s'", s)
				}
			}
			m.on = append(m.on, s)
		}
		if len(m.on) == 0 {
			return srverr.New(51187, "If explicitly specifying $merge 'on', must include at least one field")
		}
	default:
		return srverr.New(51186, "$merge 'on' field  must be either a string or an array of strings, but found %s",
			typeName(v))
	}
	return nil
}

func enumeration(dst *string, path, _ string, v bson.RawValue, allowed ...string) error {
	s, ok := v.StringValue()
	if !ok {
		return args.WrongType(path, v.Type, "string")
	}
	for _, a := range allowed {
		if a == s {
			*dst = s
			return nil
		}
	}
	return srverr.New(srverr.BadValue, "Enumeration value '%s' for field '%s' is not a valid value.", s, path)
}

func (m *mergeStage) parseWhenMatched(v bson.RawValue) ([]bson.Raw, error) {
	switch v.Type {
	case bson.TypeArray:
		m.matched = "pipeline"
		return StagesOf(v)
	case bson.TypeString:
		return nil, enumeration(&m.matched, "whenMatched", "", v, "replace", "keepExisting", "merge", "fail")
	}
	return nil, srverr.New(51191, "$merge 'whenMatched' field  must be either a string or an array, but found %s",
		typeName(v))
}

// mergeModes are the combinations of whenMatched and whenNotMatched that the server has.
var mergeModes = map[string]string{
	"replace": "insert discard fail", "merge": "insert discard fail", "pipeline": "insert discard fail",
	"keepExisting": "insert", "fail": "insert",
}

func (m *mergeStage) check(p *parser, let bson.Raw) error {
	switch {
	case m.into.Coll == "" && m.into.DB != p.ns.DB:
		// The server accepts a database alone and writes nothing.
	case !validNamespace(m.into):
		return srverr.New(srverr.InvalidNamespace, "Invalid $merge target namespace: '%s'", m.into)
	case !strings.Contains(mergeModes[m.matched], m.notMatched):
		return srverr.New(
			51181, "Combination of $merge modes 'whenMatched: %s' and 'whenNotMatched: %s' is not supported", m.matched,
			m.notMatched)
	case strings.HasPrefix(m.into.Coll, "system."):
		return srverr.New(31319, "Cannot $merge to special collection: %s", m.into.Coll)
	case internalDB(m.into.DB):
		return srverr.New(31320, "Cannot $merge to internal database: %s", m.into.DB)
	}
	for _, path := range m.on {
		if err := expr.CheckPath(path, p.rt.o.Version); err != nil {
			return err
		}
	}
	if m.into.Coll != "" && p.rt.o.Env != nil {
		var err error
		var nulls bool
		if m.on, nulls, err = p.rt.o.Env.MergeKey(m.into, m.on, p.rt.query.Collation); err != nil {
			return err
		}
		m.nulls = nulls && p.rt.o.Version.AllParsed()
	} else if len(m.on) == 0 {
		m.on = []string{"_id"}
	}
	if let != nil && m.matched != "pipeline" {
		return srverr.New(51199, "Cannot use 'let' variables with 'whenMatched: %s' mode", m.matched)
	}
	return nil
}

func (m *mergeStage) parsePipeline(p *parser, let bson.Raw, stages []bson.Raw) error {
	if let == nil {
		start, dst := bson.BeginDocument(nil)
		let = bson.EndDocument(bson.AppendString(dst, "new", "$$ROOT"), start)
	} else if v := let.Lookup("new"); v.Type != 0 {
		if s, _ := v.StringValue(); s != "$$ROOT" {
			return srverr.New(51273, "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'")
		}
	} else if m.notMatched == "insert" || !let.IsEmpty() { // an upsert needs the new document
		start, dst := bson.BeginDocument(nil)
		for key, item := range let.All() {
			dst = bson.AppendRawValue(dst, key, item)
		}
		let = bson.EndDocument(bson.AppendString(dst, "new", "$$ROOT"), start)
	}
	for name, item := range let.All() {
		if err := expr.CheckVariableName(name, p.rt.o.Version); err != nil {
			return err
		}
		e, err := expr.Parse(item, p.scope)
		if err != nil {
			return err
		}
		m.names, m.values = append(m.names, name), append(m.values, e)
	}
	parse := func(has []bool) (*mergeUpdate, error) {
		u := &mergeUpdate{slots: make([]expr.Slot, len(m.names))}
		scope := p.scope
		for i, name := range m.names {
			if has[i] {
				scope, u.slots[i] = scope.Define(name)
			}
		}
		wasUpdate := p.rt.update
		var err error
		u.update, err = p.sub("$merge", m.into, scope).update(stages)
		p.rt.update = wasUpdate
		return u, err
	}
	if !p.rt.o.Version.AllParsed() {
		u, err := parse(slices.Repeat([]bool{true}, len(m.names)))
		m.compile = func([]bool) (*mergeUpdate, error) { return u, nil }
		return err
	}
	// The pipeline is that of an update, which is parsed when a document is to be merged: a
	// variable without a value is one that is not defined there.
	known := map[string]*mergeUpdate{}
	m.compile = func(has []bool) (*mergeUpdate, error) {
		key := fmt.Sprint(has)
		if u := known[key]; u != nil {
			return u, nil
		}
		u, err := parse(has)
		if err == nil {
			known[key] = u
		}
		return u, err
	}
	return nil
}

func (m *mergeStage) target() Namespace { return m.into }

func (m *mergeStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) {
		// Everything is read before anything is written: the target may be the source.
		docs, err := collect(src, memoryLimit)
		if err != nil || m.into.Coll == "" {
			return nil, err
		}
		// The writes of a batch do not stop at an error; the first one is reported.
		var first error
		for _, doc := range docs {
			if err := m.write(doc); err != nil {
				if srverr.CodeOf(err) == 51132 || srverr.CodeOf(err) == 51185 {
					return nil, err
				}
				if first == nil {
					first = err
				}
			}
		}
		return nil, first
	}}, nil
}

// key returns the filter for the document that doc is to be merged into.
func (m *mergeStage) key(doc bson.Raw) (bson.Raw, error) {
	start, dst := bson.BeginDocument(nil)
	for _, path := range m.on {
		v := bsondoc.DocumentValue(doc)
		for _, part := range strings.Split(path, ".") {
			if v.Type == bson.TypeArray {
				return nil, srverr.New(51132,
					"$merge write error: 'on' field '%s' cannot be missing, null, undefined or an array", path)
			}
			sub, _ := v.Document()
			v = sub.Lookup(part)
		}
		switch v.Type {
		case 0:
			if path == "_id" {
				return nil, nil
			}
			fallthrough
		case bson.TypeNull, bson.TypeUndefined:
			if m.nulls {
				v = bson.RawValue{Type: bson.TypeNull}
				break
			}
			return nil, srverr.New(51132,
				"$merge write error: 'on' field '%s' cannot be missing, null, undefined or an array", path)
		case bson.TypeArray:
			return nil, srverr.New(51185, "$merge write error: 'on' field '%s' is an array", path)
		}
		term, next := bson.BeginDocumentElement(dst, path)
		dst = bson.EndDocument(bson.AppendRawValue(next, "$eq", v), term)
	}
	return bson.EndDocument(dst, start), nil
}

func (m *mergeStage) write(doc bson.Raw) error {
	env := m.rt.o.Env
	key, err := m.key(doc)
	if err != nil {
		return err
	}
	if m.matched == "fail" {
		return env.Insert(m.into, doc)
	}
	matched := false
	if key != nil { // a document without _id matches none
		if matched, err = env.Update(m.into, key, m.notMatched == "insert", func(old bson.Raw) (bson.Raw, error) {
			return m.merged(old, doc)
		}); err != nil {
			if srverr.CodeOf(err) == srverr.ImmutableField {
				err = srverr.From(
					err).Prefix("$merge failed to update the matching document, did you attempt to modify the _id or the shard key? :: caused by :: ")
			}
			return err
		}
	}
	if matched {
		return nil
	}
	switch m.notMatched {
	case "insert":
		if m.matched == "merge" || m.matched == "keepExisting" { // the server upserts by $set and $setOnInsert
			doc = inUpdateOrder(m.withNulls(doc))
		}
		return env.Insert(m.into, doc)
	case "fail":
		return srverr.New(srverr.MergeStageNoMatchingDocument,
			"$merge could not find a matching document in the target collection for at least one document in the source collection")
	}
	return nil
}

// withNulls returns the document with null for each field of on that it lacks: an upsert has the
// values that it looked for.
func (m *mergeStage) withNulls(doc bson.Raw) bson.Raw {
	for _, path := range m.on {
		if parts := strings.Split(path, "."); m.nulls && path != "_id" && doc.Lookup(parts...).Type == 0 {
			doc = bsondoc.SetPath(doc, parts, bson.RawValue{Type: bson.TypeNull})
		}
	}
	return doc
}

// merged returns what becomes of a matched document.
func (m *mergeStage) merged(old, doc bson.Raw) (bson.Raw, error) {
	id := old.Lookup("_id")
	newID := doc.Lookup("_id")
	altered := func(v bson.RawValue) error {
		return srverr.New(
			srverr.ImmutableField, "After applying the update, the (immutable) field '_id' was found to have been altered to %s", bsontext.Element("_id", v))
	}
	switch m.matched {
	case "keepExisting":
		return old, nil
	case "replace":
		if newID.Type == 0 {
			return withID(doc, id), nil
		}
		if !query.Equal(id, newID, nil) {
			return nil, altered(newID)
		}
		return doc, nil
	case "merge":
		if newID.Type != 0 && !query.Equal(id, newID, nil) {
			return nil, srverr.New(srverr.ImmutableField,
				"Performing an update on the path '_id' would modify the immutable field '_id'")
		}
		out := old
		for _, key := range updateOrder(doc) {
			if key != "_id" {
				out = bsondoc.SetPath(out, []string{key}, doc.Lookup(key))
			}
		}
		return out, nil
	}
	values := make([]bson.RawValue, len(m.values))
	m.rt.state.WithRoot(doc)
	for i, e := range m.values {
		var err error
		if values[i], err = expr.Eval(e, m.rt.state); err != nil {
			return nil, err
		}
	}
	has := make([]bool, len(values))
	for i, v := range values {
		has[i] = v.Type != 0
	}
	u, err := m.compile(has)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		if has[i] || !m.rt.o.Version.AllParsed() {
			m.rt.state.Set(u.slots[i], v)
		}
	}
	out, err := u.update.Apply(old)
	if err != nil {
		return nil, err
	}
	newID = out.Lookup("_id")
	if newID.Type == 0 {
		return withID(out, id), nil
	}
	if !query.Equal(id, newID, nil) {
		return nil, altered(newID)
	}
	return out, nil
}

func withID(doc bson.Raw, id bson.RawValue) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendRawValue(dst, "_id", id)
	for key, v := range doc.All() {
		if key != "_id" {
			dst = bson.AppendRawValue(dst, key, v)
		}
	}
	return bson.EndDocument(dst, start)
}

// updateOrder returns the names of a document's fields in the order in which an update adds them:
// by their bytes.
func updateOrder(doc bson.Raw) []string {
	var names []string
	for name := range doc.All() {
		names = append(names, name)
	}
	slices.SortStableFunc(names, strings.Compare)
	return names
}

// inUpdateOrder returns what an upsert by $set makes of a document: its _id, then the other fields
// in the order of updateOrder.
func inUpdateOrder(doc bson.Raw) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	if id := doc.Lookup("_id"); id.Type != 0 {
		dst = bson.AppendRawValue(dst, "_id", id)
	}
	for _, name := range updateOrder(doc) {
		if name != "_id" {
			dst = bson.AppendRawValue(dst, name, doc.Lookup(name))
		}
	}
	return bson.EndDocument(dst, start)
}
