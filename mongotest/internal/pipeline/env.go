package pipeline

import (
	"allium/bson"
	"allium/mongotest/internal/query"
)

// Env is what stages need of the deployment. Its methods answer as of the operation's snapshot or
// transaction, and their errors are *srverr.Error.
type Env interface {
	// Resolve follows a namespace that may be a view: it returns the collection underneath and the
	// view's pipelines, the innermost first. A collection, existing or not, is itself with no
	// stages.
	Resolve(ns Namespace) (base Namespace, stages []bson.Raw, err error)
	// Find opens a collection's documents (none if it does not exist) that match the filter; nil is
	// all of them.
	Find(ns Namespace, filter *query.Filter) (Iterator, error)

	// Replace is $out: it makes the documents the new contents of a collection, which keeps its
	// indexes and options, or changes nothing and returns an error. With series, the option of
	// create, it is or becomes a time series collection.
	Replace(ns Namespace, docs []bson.Raw, series bson.Raw) error
	// MergeKey checks that the target of $merge may be written and has a unique index on exactly
	// the fields of on (in any order), and returns these; without any, those that name a document
	// of the target. nulls reports whether that index has documents without them, too.
	MergeKey(ns Namespace, on []string, coll *query.Collation) (key []string, nulls bool, err error)
	// Insert adds a document.
	Insert(ns Namespace, doc bson.Raw) error
	// Update changes the one document that matches the equalities of key (as a filter) to what
	// change returns for it; matched tells whether there was one. _id may not change. upsert tells
	// that a document is inserted if there was none.
	Update(ns Namespace, key bson.Raw, upsert bool, change func(old bson.Raw) (bson.Raw, error)) (matched bool,
		err error)

	// Stats serves stages whose documents the deployment makes: $collStats, $indexStats,
	// $currentOp, $listSessions, $listLocalSessions, $planCacheStats, $changeStream and the like.
	// spec is the stage's argument, already checked for its shape.
	Stats(stage string, ns Namespace, spec bson.Raw) (Iterator, error)
}
