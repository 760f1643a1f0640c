package mongotest

import (
	"iter"

	"allium/bson"
)

// SearchEngine answers $search, $searchMeta and $vectorSearch. Package search has one; it is a
// package of its own so that programs which do not search do not link it. It must be safe for
// concurrent use.
type SearchEngine interface {
	// Open reads the definition of an index of a kind, "search" or "vectorSearch", and returns what
	// answers its queries, or an error that says what is wrong with it.
	Open(kind string, definition bson.Raw) (answer SearchAnswer, err error)
}

// SearchAnswer answers a stage. read yields the documents of a collection of the database, with ""
// those of the index's own; they must not be changed. step is called with what the answer takes, in
// steps of a microsecond or so, and ends an operation that was killed. hits are the documents that
// were found, each with what $meta shows of it; meta is what $$SEARCH_META has.
type SearchAnswer = func(stage string, spec bson.Raw, read func(collection string) iter.Seq2[bson.Raw, error],
	step func(n int)) (
	hits iter.Seq2[bson.Raw, bson.Raw], meta bson.Raw, err error)

// SearchWith lets a deployment keep search indexes, and an engine answer the stages that search:
// that of package search. What is written is found at once. Indexes are ready at once, unless
// [Search] says how long they are built.
func SearchWith(e SearchEngine) Option { return func(o *options) { o.searchEngine = e } }
