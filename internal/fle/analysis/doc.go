// Package analysis decides which values of a command are to be encrypted. It takes a command and
// the schemas of the collections that the command reads or writes, and returns the command with a
// placeholder in place of every such value. It does no I/O and holds no key.
//
// The rule above all others: when in doubt, refuse. As soon as one of the collections has an
// encrypted field, every field, operator, expression and stage of the command must be one that the
// package knows. A command that could carry the plaintext of an encrypted field, or that compares
// ciphertexts in a way that cannot work, is an *Error.
//
// How it works: a schema becomes a tree of nodes (schema.go). A nil node is a path without
// encryption at or below it, which makes the common case cheap. Filters (match.go), documents and
// updates (document.go, update.go), expressions (expression.go) and pipelines (pipeline.go) walk
// their input along that tree. A pipeline's stage maps the tree of the documents that come in to
// that of those that go out.
package analysis
