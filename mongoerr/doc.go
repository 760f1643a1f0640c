// Package mongoerr holds the errors that operations return: one type for each kind of failure,
// classes for errors.Is, and functions that inspect any error.
//
//	errors.Is(err, mongoerr.ErrDuplicateKey)
//	serverErr, ok := errors.AsType[*mongoerr.ServerError](err)
//	mongoerr.IsTimeout(err)
//
// Do not change the fields of an error: several goroutines may share it.
package mongoerr

import "errors"

// The classes of errors, for errors.Is.
var (
	// ErrNoDocuments is returned by operations that return one document if none matches.
	ErrNoDocuments = errors.New("no documents match the filter")
	// ErrDuplicateKey is the class of errors of a key that a unique index already has.
	ErrDuplicateKey = errors.New("duplicate key")
	// ErrConflict is returned by allium.Save if the document has changed, or has gone, since it was
	// read.
	ErrConflict = errors.New("the document has changed since it was read")
	// ErrScope is the class of errors of what a scope does not allow (allium.Scope): to write a
	// document that is not within it, or what it cannot keep within it.
	ErrScope = errors.New("not in this scope")
	// ErrNilDocument is the class of errors of a filter, update or document that is nil.
	ErrNilDocument = errors.New("document is nil")
	// ErrClientClosed is returned by operations on a closed client.
	ErrClientClosed = errors.New("client is closed")
	// ErrPoolCleared is the class of errors of operations whose connection pool was cleared after a
	// failure. Such an operation may be retried.
	ErrPoolCleared = errors.New("connection pool was cleared")
	// ErrNoCursor is returned by allium.RunCursorCommand for a command that opens no cursor. The
	// command was run.
	ErrNoCursor = errors.New("server's reply has no cursor")
	// ErrNoResumeToken is the class of errors of a change stream whose events have no _id.
	ErrNoResumeToken = errors.New("cannot provide resume functionality when the resume token is missing")
)
