package pipeline

import (
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(
		&stageDef{name: "$lookup", shown: showLookup, parse: one(parseLookup), precheck: checkLookup, reads: "from",
			pipelines: "pipeline", names: "from as localField foreignField", keyed: "let",
			refuses: refusedByLookup, at: primaryShard, unsharded: before51},
		&stageDef{name: "$graphLookup", shown: showGraphLookup, parse: one(parseGraphLookup), precheck: checkLookup,
			reads: "from", names: "from as connectFromField connectToField depthField",
			filter: "restrictSearchWithMatch", at: primaryShard, unsharded: before51},
	)
}

func refusedByLookup(inner *stageDef) error {
	if !inner.notInLookup {
		return nil
	}
	return srverr.New(51047, "%s is not allowed within a $lookup's sub-pipeline", inner.name)
}

// validNamespace reports whether a database and collection may be named so.
func validNamespace(ns Namespace) bool {
	return ns.DB != "" && len(ns.DB) < 64 && !strings.ContainsAny(ns.DB, "/\\. \"$\x00") && ns.Coll != "" &&
		ns.Coll[0] != '.' && !strings.Contains(ns.Coll, "\x00")
}

// fromNamespace reads the 'from' of $lookup and $graphLookup.
func (p *parser) fromNamespace(name string, from bson.RawValue) (Namespace, error) {
	s, ok := from.StringValue()
	if doc, isDoc := from.Document(); isDoc && name == "$lookup" && p.rt.o.Version.AllParsed() {
		if err := lookupFromArgs.Parse(args.NoCommand{As: p.rt.o.Version}, doc, &args.None{}); err != nil {
			return Namespace{}, err
		}
	}
	if !ok {
		return Namespace{}, srverr.New(srverr.FailedToParse, "'from' option to %s must be a string, but was type %s",
			name, typeName(from))
	}
	ns := Namespace{p.ns.DB, s}
	if !validNamespace(ns) {
		return ns, srverr.New(srverr.InvalidNamespace, "invalid %s namespace: %s", name, ns)
	}
	return ns, nil
}

// lookupFromArgs are the fields of a 'from' with a database, which only servers themselves send.
var lookupFromArgs = args.Table[args.None]{Name: "$lookup.from", Fields: map[string]args.Field[args.None]{
	"db":   args.String[args.None](nil),
	"coll": args.String[args.None](nil),
}}

// checkLookup is what the server looks at in $lookup and $graphLookup before it parses any stage.
func checkLookup(p *parser, name string, v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return srverr.New(srverr.FailedToParse, "the %s stage specification must be an object, but found %s", name,
			typeName(v))
	}
	from := doc.Lookup("from")
	pl := doc.Lookup("pipeline")
	if from.Type == 0 {
		if p.startsWithDocuments(pl) {
			return nil
		}
		return srverr.New(srverr.FailedToParse, "missing 'from' option to %s stage specification: %s", name,
			bsontext.Document(doc))
	}
	if _, err := p.fromNamespace(name, from); err != nil {
		return err
	}
	if name == "$lookup" && p.rt.o.Version.AllParsed() && p.startsWithDocuments(pl) {
		return srverr.New(srverr.InvalidNamespace,
			"$lookup with a pipeline that begins with $documents may not specify 'from'")
	}
	if name == "$lookup" && pl.Type != 0 {
		return p.checkNames(pl)
	}
	return nil
}

// startsWithDocuments reports whether a sub-pipeline makes its own documents, so that no collection
// need be named.
func (p *parser) startsWithDocuments(pl bson.RawValue) bool {
	stages, err := StagesOf(pl)
	if err != nil || len(stages) == 0 {
		return false
	}
	def, err := p.lookupStage(stages[0])
	return err == nil && def.name == "$documents"
}

// checkNames checks the stage names of a sub-pipeline.
func (p *parser) checkNames(pl bson.RawValue) error {
	stages, err := StagesOf(pl)
	if err != nil {
		return err
	}
	for _, doc := range stages {
		if _, err := p.lookupStage(doc); err != nil {
			return err
		}
	}
	return nil
}

type lookupStage struct {
	rt        *runtime
	from      Namespace
	as        []string
	local     []string // nil: the sub-pipeline alone decides
	foreign   string
	slots     []expr.Slot
	values    []expr.Expr
	sub       *Pipeline
	optimized bool
	filled    []*hole
}

// lookupSpec is the specification of $lookup.
type lookupSpec struct {
	as, local, foreign string
	let                bson.Raw
	stages             bson.RawValue
}

// lookupArgs are its fields where the server has a definition of them.
var lookupArgs = args.Table[lookupSpec]{Name: "$lookup", Copy: true, Required: []string{"as"},
	Fields: map[string]args.Field[lookupSpec]{
		"from":         {}, // fromNamespace reads it
		"as":           args.String(func(l *lookupSpec) *string { return &l.as }),
		"localField":   args.String(func(l *lookupSpec) *string { return &l.local }),
		"foreignField": args.String(func(l *lookupSpec) *string { return &l.foreign }),
		"let":          args.Object(func(l *lookupSpec) *bson.Raw { return &l.let }),
		"pipeline":     args.Any(func(l *lookupSpec) *bson.RawValue { return &l.stages }),
	}}

// readLookup reads the fields of $lookup.
func readLookup(version expr.Version, doc bson.Raw) (l lookupSpec, err error) {
	if version.AllParsed() {
		err = lookupArgs.Parse(args.NoCommand{As: version}, doc, &l)
		return l, err
	}
	for key, item := range doc.All() {
		switch key {
		case "pipeline":
			l.stages = item
			continue
		case "let":
			var ok bool
			if l.let, ok = item.Document(); !ok {
				return l, srverr.New(srverr.FailedToParse, "$lookup argument '%s' must be an object, is type %s",
					bsontext.Element(key, item), typeName(item))
			}
			continue
		}
		s, ok := item.StringValue()
		if !ok {
			return l, srverr.New(srverr.FailedToParse, "$lookup argument '%s' must be a string, found %s: %s",
				key, bsontext.Element(key, item), typeName(item))
		}
		switch key {
		case "from":
		case "as":
			l.as = s
		case "localField":
			l.local = s
		case "foreignField":
			l.foreign = s
		default:
			return l, srverr.New(srverr.FailedToParse, "unknown argument to $lookup: %s", key)
		}
	}
	if l.as == "" {
		return l, srverr.New(srverr.FailedToParse, "must specify 'as' field for a $lookup")
	}
	return l, nil
}

func parseLookup(p *parser, name string, v bson.RawValue) (*lookupStage, error) {
	doc := bson.Raw(v.Value)
	l := &lookupStage{rt: p.rt, sub: &Pipeline{rt: p.rt, depth: p.rt.depth + 1}}
	spec, err := readLookup(p.rt.o.Version, doc)
	if err != nil {
		return nil, err
	}
	as, local, foreign, let := spec.as, spec.local, spec.foreign, spec.let
	haveLocal, haveForeign := local != "", foreign != ""
	var stages []bson.Raw
	havePipeline := spec.stages.Type != 0
	if havePipeline {
		if stages, err = StagesOf(spec.stages); err != nil {
			return nil, err
		}
	}
	if from := doc.Lookup("from"); from.Type != 0 {
		l.from, _ = p.fromNamespace(name, from)
	} else {
		l.from = Namespace{DB: p.ns.DB}
	}
	modern := p.rt.o.Version.AtLeast(5, 0)
	switch {
	case havePipeline && !modern && (haveLocal || haveForeign):
		return nil, srverr.New(srverr.FailedToParse,
			"$lookup with 'pipeline' may not specify 'localField' or 'foreignField'")
	case (!havePipeline || haveLocal || haveForeign) && !(haveLocal && haveForeign):
		if havePipeline {
			return nil, srverr.New(srverr.FailedToParse,
				"$lookup requires both or neither of 'localField' and 'foreignField' to be specified")
		}
		return nil, srverr.New(srverr.FailedToParse,
			"$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	case !havePipeline && let != nil:
		return nil, srverr.New(srverr.FailedToParse, "$lookup with a 'let' argument must also specify 'pipeline'")
	}
	for i, path := range []string{as, local, foreign} {
		if i > 0 && !haveLocal {
			continue
		}
		if err := expr.CheckPath(path, p.rt.o.Version); err != nil {
			return nil, err
		}
	}
	l.as, l.foreign = strings.Split(as, "."), foreign
	if local != "" {
		l.local = strings.Split(local, ".")
	}
	scope := p.scope
	for name, item := range let.All() {
		if err := expr.CheckVariableName(name, p.rt.o.Version); err != nil {
			return nil, err
		}
		e, err := expr.Parse(item, p.scope)
		if err != nil {
			return nil, err
		}
		var slot expr.Slot
		scope, slot = scope.Define(name)
		l.slots, l.values = append(l.slots, slot), append(l.values, e)
	}
	if havePipeline {
		if l.sub, err = p.sub("$lookup", l.from, scope).pipeline(stages); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// The variables of $lookup and the start of $graphLookup are not computed beforehand, and a
// sub-pipeline is optimized when it runs.

func (l *lookupStage) open(src Iterator) (Iterator, error) {
	return &transform{src, l.apply}, nil
}

func (l *lookupStage) apply(doc bson.Raw) (bson.Raw, error) {
	meta := l.rt.env.Meta // the sub-pipeline has its own
	defer func() { l.rt.env.Meta = meta }()
	if !l.optimized {
		if err := l.sub.optimize(); err != nil {
			return nil, err
		}
		l.optimized = true
	}
	l.rt.state.WithRoot(doc)
	values := make([]bson.RawValue, len(l.values))
	for i, e := range l.values {
		var err error
		if values[i], err = expr.Eval(e, l.rt.state); err != nil {
			return nil, err
		}
	}
	for i, v := range values {
		l.rt.state.Set(l.slots[i], v)
	}
	var filter *query.Filter
	if l.local != nil {
		var first [1]bson.RawValue // most documents have one
		wanted := first[:0]
		visitPath(bsondoc.DocumentValue(doc), l.local, func(v bson.RawValue) {
			wanted = append(wanted, v)
		})
		if len(wanted) == 0 {
			wanted = []bson.RawValue{{Type: bson.TypeNull}}
		}
		var err error
		if filter, err = equalityFilter(l.foreign, wanted, nil, l.rt.query); err != nil {
			return nil, err
		}
	}
	it, err := l.sub.runOn(l.from, filter)
	if err != nil {
		return nil, err
	}
	found, err := collect(it, memoryLimit)
	if err != nil {
		return nil, err
	}
	size := 8
	for _, f := range found {
		size += len(f) + 8
	}
	start, dst := bson.BeginDocument(make([]byte, 0, min(size, stageLimit)))
	for i, f := range found {
		if dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), f...); len(dst) > stageLimit {
			return nil, srverr.New(
				4568, "Total size of documents in %s matching pipeline's $lookup stage exceeds %d bytes", l.from.Coll,
				stageLimit)
		}
	}
	doc = bsondoc.SetPath(doc, l.as, bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)})
	return fillHoles(doc, l.filled), nil
}

// equalityFilter returns a filter for documents whose path equals one of the values; and, if not
// nil, is a further filter.
func equalityFilter(path string, values []bson.RawValue, and bson.Raw, o *query.Options) (*query.Filter, error) {
	return query.ParseFilter(equalityDocument(path, values, and), o)
}

func equalityDocument(path string, values []bson.RawValue, and bson.Raw) bson.Raw {
	size := 32 + 2*len(path) + len(and)
	for _, v := range values {
		size += len(v.Value) + 12
	}
	start, dst := bson.BeginDocument(make([]byte, 0, size))
	if len(values) == 1 && plainValue(values[0]) {
		term, next := bson.BeginDocumentElement(dst, path)
		dst = bson.EndDocument(bson.AppendRawValue(next, "$eq", values[0]), term)
		return andAlso(dst, start, and)
	}
	hasRegex := false
	for _, v := range values {
		hasRegex = hasRegex || v.Type == bson.TypeRegex
	}
	if hasRegex { // within $in it would match strings
		array, next := bson.BeginArrayElement(dst, "$or")
		dst = next
		for i, v := range values {
			term, next := bson.BeginDocumentElement(dst, strconv.Itoa(i))
			inner, next := bson.BeginDocumentElement(next, path)
			dst = bson.EndDocument(bson.EndDocument(bson.AppendRawValue(next, "$eq", v), inner), term)
		}
		dst = bson.EndDocument(dst, array)
	} else {
		term, next := bson.BeginDocumentElement(dst, path)
		array, next := bson.BeginArrayElement(next, "$in")
		for i, v := range values {
			next = append(bson.AppendIndexHeader(next, v.Type, i), v.Value...)
		}
		dst = bson.EndDocument(bson.EndDocument(next, array), term)
	}
	return andAlso(dst, start, and)
}

// plainValue tells of a value that equality and $in of one value take alike: $in refuses undefined
// by words of its own, and documents that look like operators.
func plainValue(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeArray, bson.TypeEmbeddedDocument, bson.TypeUndefined:
		return false
	}
	return true
}

// andAlso ends a filter; and, if not nil, is a further one.
func andAlso(dst []byte, start int, and bson.Raw) bson.Raw {
	if and != nil {
		array, next := bson.BeginArrayElement(dst, "$and")
		dst = bson.EndDocument(bson.AppendDocument(next, "0", and), array)
	}
	return bson.EndDocument(dst, start)
}

// visitPath calls f for every value at a path: through documents and arrays, array indexes
// included; of an array at its end for each item.
func visitPath(v bson.RawValue, path []string, f func(bson.RawValue)) {
	switch {
	case len(path) == 0:
		if v.Type == bson.TypeArray {
			for item := range bson.Raw(v.Value).Values() {
				f(item)
			}
		} else if v.Type != 0 {
			f(v)
		}
	case v.Type == bson.TypeEmbeddedDocument:
		visitPath(bson.Raw(v.Value).Lookup(path[0]), path[1:], f)
	case v.Type == bson.TypeArray:
		if n, err := strconv.ParseUint(path[0], 10, 31); err == nil && strconv.FormatUint(n, 10) == path[0] {
			visitPath(bson.Raw(v.Value).Lookup(path[0]), path[1:], f)
		}
		for item := range bson.Raw(v.Value).Values() {
			if item.Type == bson.TypeEmbeddedDocument {
				visitPath(item, path, f)
			}
		}
	}
}

// graphLookupStage is $graphLookup.
type graphLookupStage struct {
	rt                     *runtime
	from                   Namespace
	startWith              expr.Expr
	connectFrom, connectTo string
	as, depthField         []string
	maxDepth               int64 // -1: any
	restrict               bson.Raw
	options                *query.Options // what it is parsed with; nil: there is none
	sub                    *Pipeline
	filled                 []*hole
}

func parseGraphLookup(p *parser, name string, v bson.RawValue) (*graphLookupStage, error) {
	g := &graphLookupStage{rt: p.rt, maxDepth: -1, sub: &Pipeline{rt: p.rt, depth: p.rt.depth + 1}}
	var as string
	for key, item := range bson.Raw(v.Value).All() {
		switch key {
		case "startWith":
			e, err := expr.Parse(item, p.scope)
			if err != nil {
				return nil, err
			}
			g.startWith = e
		case "maxDepth":
			if !item.IsNumber() {
				return nil, srverr.New(40100, "maxDepth must be numeric, found type: %s", typeName(item))
			}
			n := expr.ToLong(item)
			if n < 0 {
				return nil, srverr.New(40101, "maxDepth requires a nonnegative argument, found: %d", n)
			}
			if f := expr.ToDouble(item); f != float64(n) {
				return nil, srverr.New(40102, "maxDepth could not be represented as a long long: %d", n)
			}
			g.maxDepth = n
		case "restrictSearchWithMatch":
			doc, ok := item.Document()
			if !ok {
				return nil, srverr.New(40185, "restrictSearchWithMatch must be an object, found %s", typeName(item))
			}
			g.options = p.rt.filterOptions(p.scope)
			g.options.NoText = true
			if _, err := query.ParseFilter(doc, g.options); err != nil {
				return nil, srverr.From(
					err).Prefix("Failed to parse 'restrictSearchWithMatch' option to $graphLookup :: caused by :: ")
			}
			g.restrict = doc
		case "from", "as", "connectFromField", "connectToField", "depthField":
			s, ok := item.StringValue()
			if !ok {
				return nil,
					srverr.New(40103, "expected string as argument for %s, found: %s", key, bsontext.Value(item))
			}
			if key == "from" {
				g.from = Namespace{p.ns.DB, s}
				continue
			}
			if s == "" && key != "depthField" {
				continue // as if it were not there
			}
			if err := expr.CheckPath(s, p.rt.o.Version); err != nil {
				return nil, err
			}
			switch key {
			case "as":
				as = s
			case "connectFromField":
				g.connectFrom = s
			case "connectToField":
				g.connectTo = s
			case "depthField":
				g.depthField = strings.Split(s, ".")
			}
		default:
			return nil, srverr.New(40104, "Unknown argument to $graphLookup: %s", key)
		}
	}
	if g.from.Coll == "" || as == "" || g.startWith == nil || g.connectFrom == "" || g.connectTo == "" {
		return nil, srverr.New(
			40105, "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.")
	}
	g.as = strings.Split(as, ".")
	return g, nil
}

func (g *graphLookupStage) open(src Iterator) (Iterator, error) {
	return &transform{src, g.apply}, nil
}

func (g *graphLookupStage) apply(doc bson.Raw) (bson.Raw, error) {
	start, err := expr.Eval(g.startWith, g.rt.state.WithRoot(doc))
	if err != nil {
		return nil, err
	}
	meta := g.rt.env.Meta
	defer func() { g.rt.env.Meta = meta }()
	asked := expr.NewGroups(g.rt.env) // values that have been looked for
	// Two documents are one if their _id is, whatever the collation.
	visited := expr.NewGroups(&expr.Env{Version: g.rt.env.Version})
	var frontier []bson.RawValue
	steps := g.rt.query.Work
	add := func(v bson.RawValue) {
		steps.Do(1)
		if _, added := asked.Index(v); added {
			frontier = append(frontier, v)
		}
	}
	visitPath(start, nil, add) // what is missing finds nothing, null finds null and what is missing
	begin, dst := bson.BeginDocument(nil)
	n := 0
	for depth := int64(0); len(frontier) > 0 && (g.maxDepth < 0 || depth <= g.maxDepth); depth++ {
		steps.Do(docWork)
		options := g.options
		if options == nil {
			options = g.rt.query
		}
		filter, err := equalityFilter(g.connectTo, frontier, g.restrict, options)
		if err != nil {
			return nil, err
		}
		frontier = nil
		it, err := g.sub.runOn(g.from, filter)
		if err != nil {
			return nil, err
		}
		found, err := collect(it, memoryLimit)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			steps.Do(docWork)
			if _, added := visited.Index(f.Lookup("_id")); !added {
				continue
			}
			visitPath(bsondoc.DocumentValue(f), strings.Split(g.connectFrom, "."), add)
			if g.depthField != nil {
				f = bsondoc.SetPath(f, g.depthField,
					bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, depth)})
			}
			dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n), f...)
			if n++; len(dst) > stageLimit {
				return nil, srverr.New(40099, "$graphLookup reached maximum memory consumption")
			}
		}
	}
	doc = bsondoc.SetPath(doc, g.as, bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, begin)})
	return fillHoles(doc, g.filled), nil
}
