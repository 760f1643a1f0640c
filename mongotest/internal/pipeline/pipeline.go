// Package pipeline runs aggregation pipelines over iterators of encoded documents.
//
//	p, err := pipeline.Parse(stages, &pipeline.Options{Env: env, NS: ns, Version: v})
//	filter := p.TakeMatch()              // the source may apply it, with an index
//	it, err := p.Run(source)             // pulls from source as documents are asked for
//	for doc, err := it.Next(); doc != nil && err == nil; doc, err = it.Next() { ... }
//
// What a stage needs of the world beyond its input (other collections, statistics, a change log) it
// asks of Env. A pipeline is made for one operation and used by one goroutine; pipelines of
// different operations are independent. Errors are *srverr.Error with the server's codes and texts.
package pipeline

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Namespace names a collection.
type Namespace struct{ DB, Coll string }

// String returns "db.coll".
func (ns Namespace) String() string { return ns.DB + "." + ns.Coll }

// Iterator yields documents one after another. Next returns nil without an error at the end; a
// document is valid until the iterator is closed and must not be changed. A source that has nothing
// now but may have later returns ErrWait, which passes through the stages, and is asked again.
type Iterator interface {
	Next() (bson.Raw, error)
	Close()
}

// ErrWait says that a tailable source has no document at the moment.
var ErrWait = errors.New("no document at the moment")

// Options is what a pipeline is parsed for.
type Options struct {
	// Check returns the error that ends the operation: it was killed, ran out of time, or nobody
	// waits for it any more. Whatever loops asks for it now and then. nil: nothing ends the
	// operation.
	Check     func() error
	Env       Env       // nil: no stage that needs it may be used
	NS        Namespace // the collection; Coll is empty for {aggregate: 1}
	Version   expr.Version
	Collation *query.Collation
	// Let are the command's variables (server 5.0 and later); Now is $$NOW, ClusterTime
	// $$CLUSTER_TIME where there is one.
	Let         bson.Raw
	Now         bson.DateTime
	ClusterTime bson.Timestamp
	UserRoles   bson.RawValue
	// Rand is the source of $sample and $rand; nil is a global one.
	Rand *rand.Rand
	// BypassValidation is the command's bypassDocumentValidation, for $out and $merge.
	BypassValidation bool
	// AllowDiskUse lets $sort, $group and $bucketAuto keep more than memoryLimit, as a server does
	// that spills to disk.
	AllowDiskUse bool
	// Script makes what runs JavaScript, for as long as check has no error. nil: the server runs
	// none.
	Script func(check func() error) expr.Script
	// Search tells that there are search indexes, Searches that they answer: then Env is a
	// SearchEnv.
	Search, Searches bool
	// Validator tells that the expressions are part of a collection's validator.
	Validator bool
	// ReplicaSet tells that the node is a member of a replica set, which $changeStream needs;
	// Mongos that it is a router.
	ReplicaSet, Mongos bool
	// CheckChangeStream checks the fields of a $changeStream; nil leaves that to Env.
	CheckChangeStream func(spec bson.Raw) error
	// View names the view whose pipeline it is that is checked; messages tell it.
	View string
	// InTxn tells that the pipeline is to run in a multi-document transaction.
	InTxn bool
}

// Pipeline is a parsed and optimized pipeline.
type Pipeline struct {
	stages []parsedStage
	rt     *runtime
	view   *Pipeline // of the view that a sub-pipeline runs on, once it is known
	wants  []string  // the kinds of metadata that its stages ask its source for
	// selfContained tells that a stage makes documents that have nothing of the source's.
	selfContained bool
}

type parsedStage struct {
	def   *stageDef
	index int // in what was parsed: some stages are made of several
	stage stage
}

// stage is one step. open may be called again after its last iterator is closed, as sub-pipelines
// are.
type stage interface {
	open(src Iterator) (Iterator, error)
}

// source is a stage that makes documents of its own and has no input.
type source interface{ isSource() }

// optimizer is a stage with expressions that may be computed beforehand.
type optimizer interface {
	optimize(env *expr.Env) error
}

// runtime is what all stages of a pipeline and its sub-pipelines share.
type runtime struct {
	o     *Options
	env   *expr.Env
	state *expr.State
	query *query.Options
	scope *expr.Scope // the system variables alone; views see no others
	depth int         // of sub-pipelines
	meta  bool        // a stage asks for metadata
	holes []*hole     // of all stages
	// update tells that the pipeline is an update.
	update bool
}

// boundExpr evaluates an expression of a filter with the pipeline's variables.
type boundExpr struct {
	e  expr.Expr
	st *expr.State
}

func (b *boundExpr) Eval(doc bson.Raw) (bson.RawValue, error) {
	return expr.Eval(b.e, b.st.WithRoot(doc))
}

// filterOptions returns the options for parsing filters whose $expr sees a scope.
func (rt *runtime) filterOptions(s *expr.Scope) *query.Options {
	o := *rt.query
	o.Expr = func(v bson.RawValue) (query.Expr, error) {
		e, err := expr.Parse(v, s)
		if err != nil {
			return nil, err
		}
		if e, err = expr.Optimize(e, rt.env); err != nil {
			return nil, optimizeError(err)
		}
		return &boundExpr{e, rt.state}, nil
	}
	return &o
}

// interrupted returns the error that ends the operation. It is called for every document and looks
// at every 64th.
func (rt *runtime) interrupted() error { return rt.state.Work(docWork) }

// docWork is what a document counts in the steps of expr.State.
const docWork = expr.CheckInterval / 64

func optimizeError(err error) error {
	return srverr.From(err).Prefix("Failed to optimize pipeline :: caused by :: ")
}

// parser is the state of parsing one (sub-)pipeline.
type parser struct {
	rt    *runtime
	scope *expr.Scope
	ns    Namespace
	// within names the stage that holds this sub-pipeline, "" at the top.
	within string
}

// newRuntime prepares the environment that the options describe.
func newRuntime(o *Options) (*parser, error) {
	env := &expr.Env{Version: o.Version, Now: o.Now, ClusterTime: o.ClusterTime, UserRoles: o.UserRoles, Rand: o.Rand, Check: o.Check, Validator: o.Validator}
	if o.Collation != nil {
		env.Compare = func(a, b bson.RawValue) int { return query.Compare(a, b, o.Collation) }
	}
	rt := &runtime{o: o, env: env, state: expr.NewState(env)}
	if o.Script != nil {
		env.Script = o.Script(o.Check)
	}
	rt.query = &query.Options{Collation: o.Collation, Version: o.Version, NoWhere: true, Work: work.New(o.Check)}
	env.ParseSort = func(spec bson.Raw) (expr.Sorter, error) {
		s, err := query.ParseSort(spec, rt.query)
		if err != nil {
			return nil, err
		}
		if s == nil {
			return nil, srverr.New(15976, "$sort stage must have at least one sort key")
		}
		return s, nil
	}
	rt.scope = expr.NewScope(env)
	p := &parser{rt: rt, scope: rt.scope, ns: o.NS}
	for name, v := range o.Let.All() {
		if err := expr.CheckVariableName(name, o.Version); err != nil {
			return nil, err
		}
		e, err := expr.Parse(v, p.scope)
		if err != nil {
			return nil, err
		}
		value, err := expr.Eval(e, rt.state)
		if err != nil {
			return nil, err
		}
		var slot expr.Slot
		p.scope, slot = p.scope.Define(name)
		rt.state.Set(slot, value)
	}
	return p, nil
}

// StagesOf returns the documents of the array that a command has as its pipeline.
func StagesOf(v bson.RawValue) ([]bson.Raw, error) {
	array, ok := v.Array()
	if !ok {
		return nil, srverr.New(srverr.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	var out []bson.Raw
	for item := range array.Values() {
		doc, ok := item.Document()
		if !ok {
			return nil, srverr.New(srverr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		out = append(out, doc)
	}
	return out, nil
}

// Parse parses and checks a pipeline and computes what is constant in it.
func Parse(stages []bson.Raw, o *Options) (_ *Pipeline, err error) {
	defer work.Catch(&err)
	p, err := newRuntime(o)
	if err != nil {
		return nil, err
	}
	if o.View != "" {
		if err := p.glance(stages); err != nil {
			return nil, err
		}
	}
	pl, err := p.pipeline(stages)
	if err == nil && o.View != "" {
		err = pl.checkView(o.View)
	}
	if err != nil {
		if o.View != "" {
			err = srverr.From(err).Prefix("Invalid pipeline for view " + o.View + " :: caused by :: ")
		}
		return nil, err
	}
	if err := pl.optimize(); err != nil {
		return pl, err
	}
	return pl, pl.checkMeta()
}

// checkView refuses the stages that a view cannot have.
func (pl *Pipeline) checkView(view string) error {
	for _, st := range pl.stages {
		switch name := st.def.name; name {
		case "$out", "$merge":
			return srverr.New(srverr.OptionNotSupportedOnView, "The aggregation stage %s in location %d of the pipeline cannot be used in the view definition of %s because it writes to disk", name, st.index, view)
		case "$changeStream":
			return srverr.New(srverr.OptionNotSupportedOnView, "$changeStream cannot be used in a view definition")
		}
	}
	return nil
}

// maxSubPipelines is how deep pipelines nest in others.
const maxSubPipelines = 20

// maxStages is the server's limit on the length of a pipeline.
const maxStages = 1000

// pipeline parses a (sub-)pipeline without optimizing it.
func (p *parser) pipeline(stages []bson.Raw) (*Pipeline, error) {
	if p.rt.o.Version.AtLeast(4, 9) && len(stages) > maxStages {
		return nil, srverr.New(srverr.FailedToParse, "Pipeline length must be no longer than %d stages", maxStages)
	}
	if p.rt.depth++; p.rt.depth > maxSubPipelines+1 {
		return nil, srverr.New(srverr.MaxSubPipelineDepthExceeded, "Maximum number of nested sub-pipelines exceeded. Limit is %d", maxSubPipelines)
	}
	defer func() { p.rt.depth-- }()
	if err := p.glance(stages); err != nil {
		return nil, err
	}
	for _, doc := range stages {
		if def, err := p.lookupStage(doc); p.rt.o.InTxn && err == nil && def.noTxn == refusedEarly {
			return nil, srverr.New(srverr.OperationNotSupportedInTransaction, "Operation not permitted in transaction :: caused by :: Aggregation stage %s cannot run within a multi-document transaction.", def.name)
		}
	}
	pl := &Pipeline{rt: p.rt}
	outer := p.rt.env.WantsMeta
	p.rt.env.WantsMeta = nil
	defer func() { p.rt.env.WantsMeta = outer }()
	for i, doc := range stages {
		def, err := p.lookupStage(doc)
		if err != nil {
			return nil, err
		}
		if p.rt.o.InTxn && def.noTxn == refusedInParse {
			return nil, srverr.New(srverr.OperationNotSupportedInTransaction, "%s cannot be used in a transaction", def.name)
		}
		for _, v := range doc.All() {
			parsed, err := def.parse(p, def.name, v)
			if err != nil {
				return nil, err
			}
			for _, st := range parsed {
				pl.stages = append(pl.stages, parsedStage{def, i, st})
				pl.noteMeta()
			}
			break
		}
	}
	if p.within == "" && p.rt.o.NS.Coll == "" && !p.rt.update {
		if err := p.checkCollectionless(stages); err != nil {
			return nil, err
		}
	}
	return pl, pl.checkPositions(p)
}

// glance finds what the server reports before it parses any stage: a name that it does not know
// comes first.
func (p *parser) glance(stages []bson.Raw) error {
	for _, doc := range stages {
		def, err := p.lookupStage(doc)
		if err != nil {
			return err
		}
		if def.precheck != nil {
			for _, v := range doc.All() {
				if err := def.precheck(p, def.name, v); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// CheckStage says what a server of a version sees in a stage at first glance, before it parses the
// pipeline: that it names one stage, which exists.
func CheckStage(doc bson.Raw, v expr.Version) error {
	_, err := stageOf(doc, v)
	return err
}

func (p *parser) lookupStage(doc bson.Raw) (*stageDef, error) { return stageOf(doc, p.rt.o.Version) }

func stageOf(doc bson.Raw, v expr.Version) (*stageDef, error) {
	name, n := "", 0
	for key := range doc.All() {
		if n++; n == 1 {
			name = key
		}
	}
	if n != 1 {
		return nil, srverr.New(40323, "A pipeline stage specification object must contain exactly one field.")
	}
	def, ok := stages[name]
	if !ok || !v.Has(release.Stage, name) {
		return nil, srverr.New(40324, "Unrecognized pipeline stage name: '%s'%s", name, v.NotBuiltNote(release.Stage, name))
	}
	return def, nil
}

// checkCollectionless checks a pipeline of {aggregate: 1}.
func (p *parser) checkCollectionless(stages []bson.Raw) error {
	if len(stages) == 0 {
		return srverr.New(srverr.InvalidNamespace, "{aggregate: 1} is not valid for an empty pipeline.")
	}
	def, err := p.lookupStage(stages[0])
	if err != nil {
		return err
	}
	if !def.collectionless {
		name := def.name
		if def.made != "" {
			name = def.made
		}
		return srverr.New(srverr.InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.", name)
	}
	return nil
}

// checkPositions checks the rules about where in a pipeline a stage may stand.
func (pl *Pipeline) checkPositions(p *parser) error {
	for i, st := range pl.stages {
		def := st.def
		switch {
		case st.index > 0 && pl.stages[0].def.name == "$changeStream" && !def.changeStream:
			name := def.name
			if def.made != "" {
				name = def.made
			}
			return srverr.New(srverr.IllegalOperation, "%s is not permitted in a $changeStream pipeline", name)
		case p.rt.o.InTxn && def.noTxn == refusedInPlace:
			return srverr.New(srverr.OperationNotSupportedInTransaction, "Stage not supported inside of a multi-document transaction: %s", def.name)
		case def.first && st.index > 0:
			if p.rt.o.Version.AtLeast(5, 0) {
				return srverr.New(40602, "%s is only valid as the first stage in a pipeline", def.name)
			}
			return srverr.New(40602, "%s is only valid as the first stage in a pipeline.", def.name)
		case def.last && i < len(pl.stages)-1 && pl.stages[i+1].index != st.index:
			return srverr.New(40601, "%s can only be the final stage in the pipeline", def.name)
		}
		if outer := stages[p.within]; outer != nil && outer.refuses != nil {
			if err := outer.refuses(def); err != nil {
				return err
			}
		}
		if f, ok := st.stage.(*matchStage); ok && i > 0 && f.filter.NeedsTextIndex() {
			return srverr.New(17313, "$match with $text is only allowed as the first pipeline stage")
		}
	}
	return nil
}

// optimize computes constants; the errors have the prefix of the whole pipeline's optimization.
func (pl *Pipeline) optimize() error {
	if err := pl.fold(); err != nil {
		return optimizeError(err)
	}
	return nil
}

// fold is optimize without the prefix.
func (pl *Pipeline) fold() error {
	pl.move()
	pl.linkHoles()
	for _, st := range pl.stages {
		if o, ok := st.stage.(optimizer); ok {
			if err := o.optimize(pl.rt.env); err != nil {
				return err
			}
		}
	}
	return nil
}

// NeedsSource reports whether the pipeline reads its collection; with a first stage such as
// $collStats it does not.
func (pl *Pipeline) NeedsSource() bool {
	if len(pl.stages) == 0 {
		return true
	}
	_, ok := pl.stages[0].stage.(source)
	return !ok
}

// Len returns the number of stages left.
func (pl *Pipeline) Len() int { return len(pl.stages) }

// TakeMatch removes a $match at the front and returns its filter for the source to apply, or nil.
func (pl *Pipeline) TakeMatch() *query.Filter {
	if len(pl.stages) > 0 {
		if m, ok := pl.stages[0].stage.(*matchStage); ok {
			pl.stages = pl.stages[1:]
			return m.source()
		}
	}
	return nil
}

// FrontSort returns the specification of a $sort at the front, which the source may have an index
// for, or nil. A field that stands there twice counts as the last time, as it does for the server
// when it hands the specification to the query.
func (pl *Pipeline) FrontSort() (bson.Raw, error) {
	if len(pl.stages) == 0 {
		return nil, nil
	}
	s, ok := pl.stages[0].stage.(*sortStage)
	if !ok || slices.ContainsFunc(s.sort.Fields(), func(f query.SortField) bool { return f.Meta != "" }) {
		return nil, nil
	}
	s.front = true
	spec := lastOfEach(s.spec)
	if len(spec) == len(s.spec) {
		return spec, nil
	}
	var err error
	s.spec = spec
	s.sort, err = query.ParseSort(spec, pl.rt.query)
	return spec, err
}

// lastOfEach returns a document without fields that come twice: the value is the last one's, the
// place the first one's.
func lastOfEach(doc bson.Raw) bson.Raw {
	var names []string
	values := map[string]bson.RawValue{}
	for k, v := range doc.All() {
		if _, twice := values[k]; !twice {
			names = append(names, k)
		}
		values[k] = v
	}
	start, out := bson.BeginDocument(nil)
	for _, name := range names {
		out = bson.AppendRawValue(out, name, values[name])
	}
	return bson.EndDocument(out, start)
}

// DropSort removes the $sort at the front: the source has the documents in its order.
func (pl *Pipeline) DropSort() { pl.stages = pl.stages[1:] }

// Plain reports whether what is left of the pipeline after TakeMatch is a query's sort, skip and
// limit: then the server runs it as a query. limit is the least $limit, -1 without one.
func (pl *Pipeline) Plain() (limit int64, plain bool) {
	limit = -1
	for i, st := range pl.stages {
		switch s := st.stage.(type) {
		case *sortStage:
			if i > 0 {
				return limit, false
			}
		case *skipStage:
		case *limitStage:
			if limit < 0 || s.n < limit {
				limit = s.n
			}
		default:
			return limit, false
		}
	}
	return limit, true
}

// Writes returns the target of a $out or $merge at the end, and whether there is one.
func (pl *Pipeline) Writes() (target Namespace, ok bool) {
	if n := len(pl.stages); n > 0 {
		if w, isWriter := pl.stages[n-1].stage.(writer); isWriter {
			return w.target(), true
		}
	}
	return Namespace{}, false
}

// writer is a stage that writes its input to a collection.
type writer interface{ target() Namespace }

// Run connects the stages; src is nil if NeedsSource is false. Closing the returned iterator closes
// src.
func (pl *Pipeline) Run(src Iterator) (Iterator, error) {
	it, err := pl.connectSource(src)
	if err == nil {
		it = &guard{it}
	}
	if err == nil && pl.rt.o.Version.AtLeast(5, 0) {
		it = &executor{it}
	}
	return it, err
}

// RunBare is Run without the words that commands with a cursor put before errors.
func (pl *Pipeline) RunBare(src Iterator) (Iterator, error) {
	it, err := pl.connect(src)
	if err != nil {
		return nil, err
	}
	return &guard{it}, nil
}

// guard turns what a meter leaves its loops by into the error that ends the operation.
type guard struct{ Iterator }

func (g *guard) Next() (_ bson.Raw, err error) {
	defer work.Catch(&err)
	return g.Iterator.Next()
}

// compare returns the order of values under the operation's collation. It counts steps.
func (rt *runtime) compare() func(a, b bson.RawValue) int {
	compare := rt.env.Compare
	if compare == nil {
		compare = bson.Compare
	}
	return work.Counting(rt.query.Work, compare)
}

// executor prefixes the errors of running a pipeline as servers since 5.0 do.
type executor struct{ Iterator }

func (e *executor) Next() (bson.Raw, error) {
	doc, err := e.Iterator.Next()
	var known *srverr.Error
	if errors.As(err, &known) {
		err = known.Prefix("PlanExecutor error during aggregation :: caused by :: ")
	}
	return doc, err
}

// connectSource connects stages that read a collection. The server lets the query that reads it do
// a $project that stands in front, or after a $sort, so that a whole batch is projected before the
// next stage sees a document.
func (pl *Pipeline) connectSource(src Iterator) (Iterator, error) {
	at := 0
	if len(pl.stages) > 0 {
		if _, ok := pl.stages[0].stage.(*sortStage); ok {
			at = 1
		}
	}
	if at+1 >= len(pl.stages) {
		return pl.connect(src)
	}
	if pr, ok := pl.stages[at].stage.(*projection); !ok || pr.kind != inclusion || !pr.root.computed {
		return pl.connect(src)
	}
	it, err := (&Pipeline{rt: pl.rt, stages: pl.stages[:at+1]}).connect(src)
	if err != nil {
		return nil, err
	}
	b := &batched{rt: pl.rt, src: it, most: math.MaxInt}
	for _, st := range pl.stages[at+1:] { // a $limit reaches the query past stages that keep the number of documents
		if l, ok := st.stage.(*limitStage); ok {
			b.most = int(min(l.n, math.MaxInt))
		} else if _, ok := st.stage.(*projection); ok {
			continue
		}
		break
	}
	return (&Pipeline{rt: pl.rt, stages: pl.stages[at+1:]}).connect(b)
}

// batchSize is how many bytes of documents a pipeline takes from a query at once.
const batchSize = 4 << 20

// batched reads its source in batches.
type batched struct {
	rt    *runtime
	src   Iterator
	most  int // documents
	docs  []hit
	wait  error // what ended the batch
	ended bool
}

func (b *batched) Next() (bson.Raw, error) {
	for size := 0; len(b.docs) == 0 && !b.ended && size < batchSize; {
		doc, err := b.src.Next()
		for ; doc != nil && err == nil; doc, err = b.src.Next() {
			b.docs = append(b.docs, b.rt.note(doc))
			if size += len(doc); size >= batchSize || len(b.docs) == b.most {
				size = batchSize
				break
			}
		}
		if err != nil && err != ErrWait {
			return nil, err
		}
		b.wait, b.ended = err, doc == nil && err == nil
		if err == ErrWait {
			break
		}
	}
	if len(b.docs) == 0 {
		return nil, b.wait
	}
	doc := b.rt.show(b.docs[0])
	b.docs = b.docs[1:]
	return doc, nil
}

func (b *batched) Close() {
	b.docs, b.ended = nil, true
	b.src.Close()
}

func (pl *Pipeline) connect(src Iterator) (Iterator, error) {
	if src == nil {
		src = FromSlice(nil)
	}
	it := Iterator(&checked{src, pl.rt})
	for i, st := range pl.stages {
		if s, ok := st.stage.(*sortStage); ok && i+1 < len(pl.stages) {
			if l, ok := pl.stages[i+1].stage.(*limitStage); ok {
				s.limit = l.n
			}
		}
		next, err := st.stage.open(it)
		if err != nil {
			it.Close()
			return nil, err
		}
		it = next
	}
	return it, nil
}

// checked stops a pipeline whose operation has ended.
type checked struct {
	Iterator
	rt *runtime
}

func (c *checked) Next() (bson.Raw, error) {
	if err := c.rt.interrupted(); err != nil {
		return nil, err
	}
	return c.Iterator.Next()
}

// FromSlice returns an iterator over documents.
func FromSlice(docs []bson.Raw) Iterator { return &sliceIterator{docs} }

type sliceIterator struct{ docs []bson.Raw }

func (s *sliceIterator) Next() (bson.Raw, error) {
	if len(s.docs) == 0 {
		return nil, nil
	}
	doc := s.docs[0]
	s.docs = s.docs[1:]
	return doc, nil
}

func (s *sliceIterator) Close() { s.docs = nil }

// collect reads an iterator to its end and closes it.
//
// Stages for which the server knows no error of their own use it with memoryLimit.
func collect(it Iterator, limit int) ([]bson.Raw, error) {
	defer it.Close()
	var out []bson.Raw
	size := 0
	for {
		doc, err := it.Next()
		if err != nil || doc == nil {
			return out, err
		}
		if size += len(doc); size > limit {
			return nil, keepsTooMuch(limit)
		}
		out = append(out, doc)
	}
}

func keepsTooMuch(limit int) error {
	return srverr.New(srverr.ExceededMemoryLimit, "Exceeded memory limit for a stage that keeps its input: %d bytes", limit)
}

// sub returns the parser of a sub-pipeline that the named stage holds.
func (p *parser) sub(within string, ns Namespace, scope *expr.Scope) *parser {
	return &parser{rt: p.rt, scope: scope, ns: ns, within: within}
}

// runOn runs a sub-pipeline on a collection or view; it may be called again and again. filter, if
// not nil, is applied first.
func (pl *Pipeline) runOn(ns Namespace, filter *query.Filter) (Iterator, error) {
	env := pl.rt.o.Env
	pl.rt.env.Meta = nil
	if err := pl.checkMeta(); err != nil {
		return nil, err
	}
	rest := pl.stages
	if len(rest) > 0 {
		if _, ok := rest[0].stage.(source); ok {
			return (&Pipeline{rt: pl.rt, stages: rest}).connect(nil)
		}
	}
	base, viewStages, err := env.Resolve(ns)
	if err != nil {
		return nil, err
	}
	if len(viewStages) == 0 {
		if filter == nil && len(rest) > 0 {
			if m, ok := rest[0].stage.(*matchStage); ok {
				filter, rest = m.source(), rest[1:]
			}
		}
		src, err := env.Find(base, filter)
		if err != nil {
			return nil, err
		}
		return (&Pipeline{rt: pl.rt, stages: rest}).connectSource(pl.searched(src, filter))
	}
	if pl.view == nil { // a sub-pipeline always runs on the same namespace
		p := &parser{rt: pl.rt, scope: pl.rt.scope, ns: base, within: "view"}
		if pl.view, err = p.pipeline(viewStages); err != nil {
			return nil, err
		}
	}
	it, err := pl.view.runOn(base, nil)
	if err != nil {
		return nil, err
	}
	if filter != nil {
		if it, err = (&matchStage{filter: filter}).open(it); err != nil {
			return nil, err
		}
	}
	return (&Pipeline{rt: pl.rt, stages: rest}).connect(it)
}

// memoryLimit bounds what a stage that has to keep its whole input may hold.
const memoryLimit = 256 << 20

// stageLimit is the server's limit on what a stage keeps that may use the disk, or one that cannot:
// 100 MB.
const stageLimit = 100 << 20
