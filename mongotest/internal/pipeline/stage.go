package pipeline

// The table of stages, and the simple ones.

import (
	"maps"
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

// stageDef is an entry of the table of stages. Which versions have it is in the table of package
// release.
type stageDef struct {
	name  string
	parse func(p *parser, name string, v bson.RawValue) ([]stage, error)
	// search stages are answered by a search index.
	search bool
	// first and last stages have to stand there. collectionless ones run on {aggregate: 1}.
	first, last, collectionless bool
	// Which sub-pipelines may not use it, which their stages see to; $lookup stands for $unionWith,
	// too.
	notInFacet, notInLookup bool
	// changeStream marks what may follow $changeStream.
	changeStream bool
	// expand returns the stages that this one is short for. shown is how explain shows the stage;
	// nil: as it is written.
	expand func(spec bson.RawValue) []bson.Raw
	shown  func(sh *Shower, name string, spec bson.RawValue) bson.Raw
	// made is the first of the stages that this one stands for.
	made string
	// noTxn says that the stage does not go with transactions, and how the server words that.
	noTxn txnRefusal
	// concern is the only read concern level that the stage goes with; notLinearizable all but that
	// one.
	concern string
	// precheck finds the errors that the server reports before it parses any stage.
	precheck func(p *parser, name string, v bson.RawValue) error
	// update marks what a pipeline update may consist of.
	update bool

	// selects marks what finds documents and leaves them as they are; ranks, what puts them in an
	// order that means something; scores, what gives each a score.
	selects, ranks, scores bool

	// reads and writes are the fields that name the collection which the stage reads beside its
	// input, or writes. The whole specification may be the name.
	reads, writes string
	// uses is what a first stage does on the pipeline's collection; nil: it finds. actions is what
	// a stage does that writes.
	uses    func(s Stage) []Use
	actions func(spec bson.RawValue) []string
	// pipelines is the path of the sub-pipelines in the specification, in which "*" stands for
	// every field; filter is that of its filter, or whole.
	pipelines, filter string
	// names are the fields of the specification that name fields or collections, and do not compute
	// anything; keyed are those whose documents have fields' names. Both are separated by spaces,
	// and may be whole.
	names, keyed string
	// refuses is why a stage may not be used in a sub-pipeline of this one, nil if it may.
	refuses func(inner *stageDef) error
	// at is where the stage is done in a cluster. unsharded tells whether a mongos of a version
	// refuses a collection that is sharded.
	at        place
	unsharded func(v expr.Version) bool
	// notV1 marks what version 1 of the Stable API does not have; v1Field is the only option that
	// it has.
	notV1   bool
	v1Field string
}

// place is where a cluster does a stage.
type place uint8

const (
	merger       place = iota // where the shards' results come together
	eachShard                 // on the shards, each for itself: it looks at one document after the other
	elsewhere                 // not on a shard, even if that has all documents
	primaryShard              // on the primary shard only
)

// txnRefusal is how a stage is refused in a transaction.
type txnRefusal uint8

const (
	refusedEarly   txnRefusal = iota + 1 // before any stage is parsed
	refusedInParse                       // when it is its turn
	refusedInPlace                       // when the whole pipeline is checked
)

// whole is the path of a part that is the whole specification.
const whole = "."

const notLinearizable = "not linearizable"

// CheckReadConcern returns why the pipeline does not go with a read concern level, nil if it does.
func CheckReadConcern(list []bson.Raw, level string, explain bool) error {
	if explain && level != "local" {
		return srverr.New(
			srverr.InvalidOptions, "Explain for the aggregate command cannot run with a readConcern other than 'local'. Current readConcern level: %s", level)
	}
	for _, doc := range list {
		for name := range doc.All() {
			def := stages[name]
			switch {
			case def == nil || def.concern == "" || def.concern == level:
			case def.concern != notLinearizable:
				return srverr.New(srverr.InvalidOptions,
					"Aggregation stage %s cannot run with a readConcern other than '%s'. Current readConcern: %s", name,
					def.concern, level)
			case level == "linearizable":
				return srverr.New(srverr.InvalidOptions, "%s cannot be used with a 'linearizable' read concern level",
					name)
			}
			break
		}
	}
	return nil
}

// stages is filled by the init functions of the files that implement them.
var stages = map[string]*stageDef{}

func register(defs ...*stageDef) {
	for _, d := range defs {
		stages[d.name] = d
	}
}

// one adapts a parser that yields a single stage.
func one[S stage](f func(p *parser, name string, v bson.RawValue) (S, error)) func(*parser, string,
	bson.RawValue) ([]stage, error) {
	return func(p *parser, name string, v bson.RawValue) ([]stage, error) {
		s, err := f(p, name, v)
		if err != nil {
			return nil, err
		}
		return []stage{s}, nil
	}
}

func init() {
	register(
		&stageDef{name: "$match", shown: showMatch, parse: one(parseMatch), filter: whole, selects: true,
			changeStream: true,
			at:           eachShard},
		&stageDef{name: "$limit", shown: showNumber, parse: one(parseLimit), selects: true},
		&stageDef{name: "$skip", shown: showNumber, parse: one(parseSkip), selects: true},
		&stageDef{name: "$count", expand: expandCount, made: "$group", parse: parseCount, names: whole},
		&stageDef{name: "$replaceRoot", shown: showReplace, parse: one(parseReplace), update: true, changeStream: true,
			at: eachShard},
		&stageDef{name: "$replaceWith", shown: showReplace, made: "$replaceRoot", parse: one(parseReplace),
			update:       true,
			changeStream: true, at: eachShard, keyed: whole},
		&stageDef{name: "$_internalInhibitOptimization", parse: one(parseInhibit)},
		&stageDef{name: "$_internalSplitPipeline", parse: one(parseSplitPipeline)},
		&stageDef{name: "$mergeCursors", parse: one(parseMergeCursors), first: true, notInFacet: true},
	)
}

func typeName(v bson.RawValue) string { return bsontext.TypeName(v.Type) }

// transform is an iterator that maps documents; nil drops one.
type transform struct {
	src Iterator
	f   func(doc bson.Raw) (bson.Raw, error)
}

func (t *transform) Next() (bson.Raw, error) {
	for {
		doc, err := t.src.Next()
		if doc == nil || err != nil {
			return nil, err
		}
		if doc, err = t.f(doc); doc != nil || err != nil {
			return doc, err
		}
	}
}

func (t *transform) Close() { t.src.Close() }

// matchStage is $match. Its filter keeps the order of its conditions, but the source of a pipeline
// gets a sorted one.
type matchStage struct {
	rt     *runtime
	scope  *expr.Scope
	doc    bson.Raw
	filter *query.Filter
	exprs  []*boundExpr // of $expr
}

func parseMatch(p *parser, _ string, v bson.RawValue) (*matchStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(15959, "the match filter must be an expression in an object")
	}
	doc, err := p.rewriteSampleRate(doc)
	if err != nil {
		return nil, err
	}
	m := &matchStage{rt: p.rt, scope: p.scope, doc: doc}
	if err := m.parse(false); err != nil {
		return nil, err
	}
	if m.filter.NeedsGeoIndex() {
		return nil, query.NearNotAllowed(p.rt.o.Version)
	}
	return m, nil
}

// parse parses the filter; its expressions are computed as far as they can be when the stage is
// optimized.
func (m *matchStage) parse(sorted bool) (err error) {
	o := *m.rt.query
	o.Unsorted = !sorted
	o.NoNear = o.Version.AllParsed()
	m.exprs = nil
	o.Expr = query.ExprParserFunc(func(v bson.RawValue) (query.Expr, error) {
		e, err := expr.Parse(v, m.scope)
		if err != nil {
			return nil, err
		}
		b := &boundExpr{e, m.rt.state}
		m.exprs = append(m.exprs, b)
		return b, nil
	})
	m.filter, err = query.ParseFilter(m.doc, &o)
	return err
}

func (m *matchStage) optimize(env *expr.Env) (err error) {
	for _, b := range m.exprs {
		if b.e, err = expr.Optimize(b.e, env); err != nil {
			return srverr.From(err).Prefix("Failed to optimize expression :: caused by :: ")
		}
	}
	return nil
}

func (m *matchStage) makes(meta string) bool {
	return meta == "textScore" && m.filter.NeedsTextIndex()
}

// source returns the filter as the source of a pipeline applies it.
func (m *matchStage) source() *query.Filter {
	if m.doc == nil {
		return m.filter
	}
	sorted := &matchStage{rt: m.rt, scope: m.scope, doc: m.doc}
	if sorted.parse(true) != nil || sorted.optimize(m.rt.env) != nil {
		return m.filter // what was parsed and optimized before is so again
	}
	return sorted.filter
}

// rewriteSampleRate makes an expression of a $sampleRate at the top of a filter: {$lt: [{$rand:
// {}}, rate]}.
func (p *parser) rewriteSampleRate(filter bson.Raw) (bson.Raw, error) {
	rate := filter.Lookup("$sampleRate")
	if rate.Type == 0 || !p.rt.o.Version.Has(release.Filter, "$sampleRate") {
		return filter, nil
	}
	if f := expr.ToDouble(rate); !rate.IsNumber() || !(f >= 0 && f <= 1) {
		return filter, nil // whose parser refuses it
	}
	start, dst := bson.BeginDocument(nil)
	and, dst := bson.BeginArrayElement(dst, "$and")
	first, dst := bson.BeginDocumentElement(dst, "0")
	for key, v := range filter.All() {
		if key != "$sampleRate" {
			dst = bson.AppendRawValue(dst, key, v)
		}
	}
	dst = bson.EndDocument(dst, first)
	second, dst := bson.BeginDocumentElement(dst, "1")
	test, dst := bson.BeginDocumentElement(dst, "$expr")
	pair, dst := bson.BeginArrayElement(dst, "$lt")
	dst = bson.AppendDocument(dst, "0", bson.EndDocument(bson.AppendDocument(slices.Clone(emptyDocument[:4]), "$rand",
		emptyDocument), 0))
	dst = bson.AppendRawValue(dst, "1", rate)
	for _, open := range []int{pair, test, second, and, start} {
		dst = bson.EndDocument(dst, open)
	}
	return dst, nil
}

func (m *matchStage) open(src Iterator) (Iterator, error) {
	return &transform{src, func(doc bson.Raw) (bson.Raw, error) {
		ok, err := m.filter.Match(doc)
		if !ok || err != nil {
			return nil, err
		}
		return doc, nil
	}}, nil
}

type limitStage struct{ n int64 }

// parseCountArgument reads the number of $limit and $skip as servers since 5.0 do.
func parseCountArgument(name string, v bson.RawValue, code int32) (int64, error) {
	fail := func(text string) (int64, error) {
		return 0, srverr.New(code, "invalid argument to %s stage: %s: %s", name, text, bsontext.Element(name, v))
	}
	if !v.IsNumber() {
		return fail("Expected a number in")
	}
	n, ok := v.AsInt64()
	if d, isDecimal := v.Decimal128(); isDecimal {
		n, ok = expr.DecimalToLong(d)
	}
	switch {
	case !ok:
		if f, isDouble := v.Double(); isDouble && f == f && (f < -(1<<63) || f >= 1<<63) {
			return fail("Cannot represent as a 64-bit integer")
		}
		return fail("Expected an integer")
	case n < 0:
		return fail("Expected a non-negative number in")
	}
	return n, nil
}

func parseLimit(p *parser, name string, v bson.RawValue) (*limitStage, error) {
	var n int64
	if p.rt.o.Version.AtLeast(5, 0) {
		var err error
		if n, err = parseCountArgument(name, v, 5107201); err != nil {
			return nil, err
		}
	} else {
		if !v.IsNumber() {
			return nil, srverr.New(15957, "the limit must be specified as a number")
		}
		n = expr.ClampLong(v)
	}
	if n <= 0 {
		return nil, srverr.New(15958, "the limit must be positive")
	}
	return &limitStage{n}, nil
}

type limitIterator struct {
	src  Iterator
	left int64
}

func (l *limitStage) open(src Iterator) (Iterator, error) { return &limitIterator{src, l.n}, nil }

func (l *limitIterator) Next() (bson.Raw, error) {
	if l.left == 0 {
		return nil, nil
	}
	doc, err := l.src.Next()
	if doc != nil && err == nil {
		l.left--
	}
	return doc, err
}

func (l *limitIterator) Close() { l.src.Close() }

type skipStage struct{ n int64 }

func parseSkip(p *parser, name string, v bson.RawValue) (*skipStage, error) {
	if p.rt.o.Version.AtLeast(5, 0) {
		n, err := parseCountArgument(name, v, 5107200)
		return &skipStage{n}, err
	}
	if !v.IsNumber() {
		return nil, srverr.New(15972, "Argument to $skip must be a number not a %s", typeName(v))
	}
	n := expr.ClampLong(v)
	if n < 0 {
		return nil, srverr.New(15956, "Argument to $skip cannot be negative")
	}
	return &skipStage{n}, nil
}

func (s *skipStage) open(src Iterator) (Iterator, error) {
	left := s.n
	return &transform{src, func(doc bson.Raw) (bson.Raw, error) {
		if left > 0 {
			left--
			return nil, nil
		}
		return doc, nil
	}}, nil
}

// parseCount makes $count of a $group and a $project, as the server does.
func parseCount(p *parser, name string, v bson.RawValue) ([]stage, error) {
	field, ok := v.StringValue()
	switch {
	case !ok:
		return nil, srverr.New(40156, "the count field must be a non-empty string")
	case field == "":
		return nil, srverr.New(40157, "the count field must be a non-empty string")
	case field[0] == '$':
		return nil, srverr.New(40158, "the count field cannot be a $-prefixed path")
	case strings.IndexByte(field, 0) >= 0:
		return nil, srverr.New(40159, "the count field cannot contain a null byte")
	case strings.Contains(field, "."):
		return nil, srverr.New(40160, "the count field cannot contain '.'")
	case field == "_id":
		if p.rt.o.Version.AtLeast(5, 0) {
			return nil, srverr.New(9039800, "the count field cannot be '_id'")
		}
		return nil, srverr.New(15948, "a group's _id may only be specified once")
	}
	return []stage{&countStage{field}}, nil
}

type countStage struct{ field string }

func (c *countStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) {
		n := int64(0)
		for {
			doc, err := src.Next()
			if err != nil {
				return nil, err
			}
			if doc == nil {
				break
			}
			n++
		}
		if n == 0 {
			return nil, nil
		}
		start, dst := bson.BeginDocument(nil)
		if n <= 1<<31-1 {
			dst = bson.AppendInt32(dst, c.field, int32(n))
		} else {
			dst = bson.AppendInt64(dst, c.field, n)
		}
		return []bson.Raw{bson.EndDocument(dst, start)}, nil
	}}, nil
}

// lazy computes all of its documents when the first one is asked for.
type lazy struct {
	src    Iterator
	fill   func() ([]bson.Raw, error)
	filled bool
	docs   []bson.Raw
}

func (l *lazy) Next() (bson.Raw, error) {
	if !l.filled {
		docs, err := l.fill()
		if err != nil {
			return nil, err
		}
		l.docs, l.filled = docs, true
	}
	if len(l.docs) == 0 {
		return nil, nil
	}
	doc := l.docs[0]
	l.docs = l.docs[1:]
	return doc, nil
}

func (l *lazy) Close() {
	l.docs, l.filled = nil, true
	l.src.Close()
}

// replaceStage is $replaceRoot and $replaceWith.
type replaceStage struct {
	rt   *runtime
	e    expr.Expr
	what string // as messages call the expression
}

func parseReplace(p *parser, name string, v bson.RawValue) (*replaceStage, error) {
	r := &replaceStage{rt: p.rt, what: "'replacement document'"}
	if name == "$replaceRoot" {
		r.what = "'newRoot' expression"
		doc, ok := v.Document()
		if !ok {
			return nil, srverr.New(40229, "expected an object as specification for $replaceRoot stage, got %s",
				typeName(v))
		}
		v = bson.RawValue{}
		for key, item := range doc.All() {
			if key != "newRoot" {
				return nil, args.UnknownField("$replaceRoot." + key)
			}
			if v.Type != 0 {
				return nil, args.DuplicateField("$replaceRoot.newRoot")
			}
			v = item
		}
		if v.Type == 0 {
			return nil, args.MissingField("$replaceRoot.newRoot")
		}
	}
	var err error
	r.e, err = expr.Parse(v, p.scope)
	return r, err
}

func (r *replaceStage) optimize(env *expr.Env) (err error) {
	r.e, err = expr.Optimize(r.e, env)
	return err
}

func (r *replaceStage) apply(doc bson.Raw) (bson.Raw, error) {
	v, err := expr.Eval(r.e, r.rt.state.WithRoot(doc))
	if err != nil {
		return nil, err
	}
	out, ok := v.Document()
	if !ok {
		return nil, srverr.New(
			40228, "%s must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'. Input document: %s",
			r.what, expr.Text(v), typeName(v), r.inputText(doc))
	}
	return out, nil
}

// inputText shows the input as the server sees it there: with the fields alone that the expression
// uses, unless the pipeline is an update.
func (r *replaceStage) inputText(doc bson.Raw) string {
	if r.rt.update {
		return expr.Text(bsondoc.DocumentValue(doc))
	}
	paths, whole := expr.Dependencies(r.e)
	if whole {
		return expr.Text(bsondoc.DocumentValue(doc))
	}
	start, dst := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		for _, path := range paths {
			if first, _, _ := strings.Cut(path, "."); first == key {
				dst = bson.AppendRawValue(dst, key, v)
				break
			}
		}
	}
	return expr.Text(bsondoc.DocumentValue(bson.EndDocument(dst, start)))
}

func (r *replaceStage) open(src Iterator) (Iterator, error) { return &transform{src, r.apply}, nil }

// nothingStage passes its input on.
type nothingStage struct{}

// parseInhibit parses $_internalInhibitOptimization, which keeps stages from moving past it.
func parseInhibit(_ *parser, name string, v bson.RawValue) (*nothingStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(srverr.TypeMismatch, "%s must take a nested object but found: %s", name,
			bsontext.Element(name, v))
	}
	if !doc.IsEmpty() {
		return nil, srverr.New(srverr.FailedToParse, "%s must take an empty object but found: %s", name,
			bsontext.Document(doc))
	}
	return &nothingStage{}, nil
}

// parseSplitPipeline parses $_internalSplitPipeline, which says where a mongos splits a pipeline.
func parseSplitPipeline(_ *parser, name string, v bson.RawValue) (*nothingStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(srverr.TypeMismatch, "%s must take a nested object but found: %s", name,
			bsontext.Element(name, v))
	}
	for key, item := range doc.All() {
		if key != "mergeType" {
			return nil, srverr.New(srverr.BadValue, "unrecognized field while parsing %s: '%s'", name, key)
		}
		where, ok := item.StringValue()
		if !ok {
			return nil, srverr.New(srverr.BadValue, "'mergeType' must be a string value but found: %s", typeName(item))
		}
		switch where {
		case "anyShard", "localOnly", "mongos", "primaryShard":
		default:
			return nil, srverr.New(srverr.BadValue, "unrecognized field while parsing mergeType: '%s'", key)
		}
	}
	return &nothingStage{}, nil
}

func (*nothingStage) open(src Iterator) (Iterator, error) { return src, nil }

// parseMergeCursors refuses $mergeCursors: only a mongos makes that stage, for the shard that
// merges.
func parseMergeCursors(_ *parser, name string, v bson.RawValue) (*nothingStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(17026, "$mergeCursors stage expected an object as argument")
	}
	for key := range doc.All() {
		switch key {
		case "sort", "compareWholeSortKey", "remotes", "tailableMode", "batchSize", "nss", "allowPartialResults",
			"lsid", "txnNumber", "autocommit":
		default:
			return nil, args.UnknownField(name + "." + key)
		}
	}
	for _, key := range []string{"remotes", "nss"} {
		if doc.Lookup(key).Type == 0 {
			return nil, args.MissingField(name + "." + key)
		}
	}
	return nil, srverr.New(srverr.CommandNotSupported, "%s is for the routers of a cluster alone", name)
}

// Place says where in which pipelines a stage may stand.
type Place struct {
	Name           string
	First, Last    bool // only there
	Update, Stream bool // in the pipeline of an update, behind $changeStream
	NotInFacet     bool
}

// Places lists the stages by name.
func Places() (all []Place) {
	for _, name := range slices.Sorted(maps.Keys(stages)) {
		d := stages[name]
		all = append(all, Place{Name: name, First: d.first, Last: d.last, Update: d.update, Stream: d.changeStream,
			NotInFacet: d.notInFacet})
	}
	return all
}
