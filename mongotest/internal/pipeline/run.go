package pipeline

import (
	"errors"
	"math"

	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Running: the stages of a parsed pipeline are connected, each to the iterator before it, and what
// belongs to the whole is put around them: the words before errors, batches, the limits of memory.

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
	return srverr.New(srverr.ExceededMemoryLimit, "Exceeded memory limit for a stage that keeps its input: %d bytes",
		limit)
}

// sub returns the parser of a sub-pipeline that the named stage holds.
func (p *parser) sub(within string, ns Namespace, scope *expr.Scope) *parser {
	return &parser{rt: p.rt, scope: scope, ns: ns, within: within, faceted: p.faceted || within == "$facet"}
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
			if filter == nil {
				return (&Pipeline{rt: pl.rt, stages: rest}).connect(nil)
			}
			it, err := (&Pipeline{rt: pl.rt, stages: rest[:1]}).connect(nil)
			if err == nil {
				it, err = (&matchStage{filter: filter}).open(it)
			}
			if err != nil {
				return nil, err
			}
			return (&Pipeline{rt: pl.rt, stages: rest[1:]}).connect(it)
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
		outer := pl.rt.depth
		pl.rt.depth = pl.depth - 1 // the view's stages stand in this pipeline
		pl.view, err = p.pipeline(viewStages)
		if pl.rt.depth = outer; err != nil {
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
