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
	"math/rand/v2"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
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
	// $$CLUSTER_TIME where there is one. NoTimes refuses both where they are named, NoClusterTime
	// the second one.
	Let                    bson.Raw
	Now                    bson.DateTime
	ClusterTime            bson.Timestamp
	NoTimes, NoClusterTime bool
	UserRoles              bson.RawValue
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
	// CheckSeries checks the timeseries option of $out, which errors call by its path; nil leaves
	// it.
	CheckSeries func(path string, spec bson.Raw) error
	// View names the view whose pipeline it is that is checked; messages tell it.
	View string
	// InTxn tells that the pipeline is to run in a multi-document transaction.
	InTxn bool
}

// Pipeline is a parsed and optimized pipeline.
type Pipeline struct {
	stages []parsedStage
	rt     *runtime
	depth  int       // how many pipelines it is nested in, and itself
	view   *Pipeline // of the view that a sub-pipeline runs on, once it is known
	wants  []string  // the kinds of metadata that its stages ask its source for
	// selfContained tells that a stage makes documents that have nothing of the source's.
	selfContained bool
}

type parsedStage struct {
	def   *stageDef
	index int      // in what was parsed: some stages are made of several
	doc   bson.Raw // as it was written, or the part of what it is short for
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
	o.Expr = query.ExprParserFunc(func(v bson.RawValue) (query.Expr, error) {
		e, err := expr.Parse(v, s)
		if err != nil {
			return nil, err
		}
		if e, err = expr.Optimize(e, rt.env); err != nil {
			return nil, optimizeError(err)
		}
		return &boundExpr{e, rt.state}, nil
	})
	return &o
}

// interrupted returns the error that ends the operation. It is called for every document and looks
// at every 64th.
func (rt *runtime) interrupted() error { return rt.state.Work(docWork) }

// docWork is what a document counts in the steps of expr.State.
const docWork = expr.CheckInterval / 64

// NeedsSource reports whether the pipeline reads its collection; with a first stage such as
// $collStats it does not.
func (pl *Pipeline) NeedsSource() bool {
	if len(pl.stages) == 0 {
		return true
	}
	_, ok := pl.stages[0].stage.(source)
	return !ok
}

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
