// Package query is what a MongoDB server does with find filters, sort specifications, projections,
// update documents, collations and JSON schemas. It works on encoded documents and knows nothing of
// collections.
//
//	f, err := query.ParseFilter(filter, &query.Options{Collation: coll})
//	ok, err := f.Match(doc)
//
// Everything is parsed once and may then be used by several goroutines at a time. Errors that the
// server would report are *srverr.Error with its code and text.
//
//   - Filter (ParseFilter): Match, MatchIndex for the positional operator, Bounds and IDEquality
//     for choosing an index, Seed for upserts, String and Describe for the planner's messages,
//     Near for queries by distance.
//   - Update (ParseUpdate): Apply, and Insert for the document that an upsert creates.
//   - Projection (ParseProjection): Apply.
//   - Sort (ParseSort): Key, CompareKeys, SortDocuments.
//   - Collation (ParseCollation): CompareBytes, AppendKey.
//   - KeyGenerator: the keys that a document has in an index.
//   - Compare, Equal: the server's order of values under a collation.
//
// A server parses an update before the query beside it, so that the update's errors come first.
// Errors of evaluating a projection or an $expr have no prefix before 5.0.
package query
