// Package mongoerr holds the errors that operations return: one type for each kind of failure, classes for errors.Is, and
// questions that are asked of any error.
//
//	errors.Is(err, mongoerr.ErrDuplicateKey)
//	serverErr, ok := errors.AsType[*mongoerr.ServerError](err)
//	mongoerr.IsTimeout(err)
//
// The fields of an error are for reading; an error may be shared by several goroutines.
package mongoerr

import "errors"

// The classes of errors, for errors.Is.
var (
	// ErrNoDocuments is returned where one document is asked for and none matches.
	ErrNoDocuments = errors.New("no documents match the filter")
	// ErrDuplicateKey is the class of errors that say that a unique index already holds the key.
	ErrDuplicateKey = errors.New("duplicate key")
	// ErrNilDocument is the class of errors of a filter, update or document that is nil.
	ErrNilDocument = errors.New("document is nil")
	// ErrClientClosed is returned by operations on a closed client.
	ErrClientClosed = errors.New("client is closed")
	// ErrPoolCleared is the class of errors of operations that met a connection pool that a failure had cleared. Such an
	// operation may be tried again.
	ErrPoolCleared = errors.New("connection pool was cleared")
)
