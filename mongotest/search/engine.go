// Package search makes the search indexes of a mongotest deployment answer: $search,
// $searchMeta and $vectorSearch, and with them $rankFusion and $scoreFusion.
//
//	d := mongotest.Start(t, mongotest.SearchWith(search.Engine()))
//
// It is a package of its own so that programs which do not search do not link it. Everything is
// exact and deterministic: scores are BM25 as Lucene computes it, vectors are compared with all
// others, documents of the same score come in the order of the collection, and what is written is
// found at once. docs/search.md lists what differs from Atlas.
package search

import (
	"iter"
	"sync"

	"allium/bson"
	"allium/mongotest"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/search/internal/index"
)

// engine makes indexes.
type engine struct{}

// Engine returns an engine for [mongotest.SearchWith]. It has no state and is safe for concurrent
// use; each index of a deployment keeps its own.
func Engine() mongotest.SearchEngine { return engine{} }

// Open reads an index's definition and returns what answers its queries.
func (engine) Open(kind string, definition bson.Raw) (mongotest.SearchAnswer, error) {
	if kind == "vectorSearch" {
		def, err := parseVectors(definition)
		if err != nil {
			return nil, err
		}
		return (&vectorIndex{def: def}).answer, nil
	}
	def, err := index.ParseDefinition(definition)
	if err != nil {
		return nil, err
	}
	return (&textIndex{x: index.New(def)}).answer, nil
}

// Check finds what is wrong with a stage by itself, which is said even without an index.
func (engine) Check(stage string, spec bson.Raw) error {
	if stage == "$vectorSearch" {
		_, err := parseVectorQuery(spec)
		return err
	}
	return checkSearch(stage, spec)
}

// textIndex is an index of type "search".
type textIndex struct {
	mu sync.Mutex
	x  *index.Index
}

// hit is a document that was found.
type hit struct {
	doc, meta bson.Raw
}

func (t *textIndex) answer(stage string, spec bson.Raw, read func(string) iter.Seq2[bson.Raw, error],
	step func(n int)) (iter.Seq2[bson.Raw, bson.Raw], bson.Raw, error) {
	if stage == "$vectorSearch" {
		return nil, nil, invalid("$vectorSearch needs an index of type vectorSearch")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.x.Sync(read(""), step); err != nil {
		return nil, nil, err
	}
	q, err := parseQuery(spec, t.x, read, step)
	if err != nil {
		return nil, nil, err
	}
	q.run()
	meta := q.meta()
	if stage == "$searchMeta" {
		return each(nil), meta, nil
	}
	hits, err := q.results()
	return each(hits), meta, err
}

func each(list []hit) iter.Seq2[bson.Raw, bson.Raw] {
	return func(yield func(doc, meta bson.Raw) bool) {
		for _, h := range list {
			if !yield(h.doc, h.meta) {
				return
			}
		}
	}
}

func invalid(format string, args ...any) error {
	return srverr.New(srverr.UnknownError, format, args...)
}
