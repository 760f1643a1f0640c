package driver

import (
	"slices"

	"go.mongodb.org/mongo-driver/mongo/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	v2description "go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// ErrNoCursor is the error of a reply without a cursor.
var ErrNoCursor = driver.ErrNoCursor

// An Error is a command that has failed.
type Error struct {
	Code            int32
	Message         string
	Labels          []string
	Name            string
	Wrapped         error
	TopologyVersion *description.TopologyVersion
	Raw             bsoncore.Document
}

// known returns the code, but for one that means something to version 2 alone:
// ReadConcernMajorityNotAvailableYet.
func known(code int64) int64 {
	if code == 134 {
		return -1
	}
	return code
}

// core is the error as one of version 2, which says what the code and the labels mean.
func (e Error) core() driver.Error {
	return driver.Error{Code: int32(known(int64(e.Code))), Message: e.Message, Labels: e.Labels}
}

// Error returns the name, the message, and what is wrapped.
func (e Error) Error() string {
	text := ""
	if e.Name != "" {
		text = "(" + e.Name + ")"
	}
	text += " " + e.Message
	if e.Wrapped != nil {
		text += ": " + e.Wrapped.Error()
	}
	return text
}

// Unwrap returns the error behind it, if there is one.
func (e Error) Unwrap() error { return e.Wrapped }

// HasErrorLabel reports whether it has this label.
func (e Error) HasErrorLabel(label string) bool { return slices.Contains(e.Labels, label) }

// NetworkError reports whether a connection has failed.
func (e Error) NetworkError() bool { return e.core().NetworkError() }

// RetryableRead reports whether a read may be tried again.
func (e Error) RetryableRead() bool { return e.core().RetryableRead() }

// RetryableWrite reports whether a write may be tried again on a server of this version.
func (e Error) RetryableWrite(wireVersion *description.VersionRange) bool {
	if wireVersion == nil {
		return e.core().RetryableWrite(nil)
	}
	return e.core().RetryableWrite(&v2description.VersionRange{Min: wireVersion.Min, Max: wireVersion.Max})
}

// NodeIsRecovering reports whether the server says that it recovers.
func (e Error) NodeIsRecovering() bool { return e.core().NodeIsRecovering() }

// NodeIsShuttingDown reports whether the server says that it shuts down.
func (e Error) NodeIsShuttingDown() bool { return e.core().NodeIsShuttingDown() }

// NotPrimary reports whether the server says that it is no primary.
func (e Error) NotPrimary() bool { return e.core().NotPrimary() }

// NamespaceNotFound reports whether the collection is not there.
func (e Error) NamespaceNotFound() bool { return e.core().NamespaceNotFound() }

// UnsupportedStorageEngine reports whether the server's storage engine has no retryable writes.
func (e Error) UnsupportedStorageEngine() bool { return e.core().UnsupportedStorageEngine() }

// A WriteError is a write that the server has refused.
type WriteError struct {
	Index   int64
	Code    int64
	Message string
	Details bsoncore.Document
	Raw     bsoncore.Document
}

// Error returns the message.
func (we WriteError) Error() string { return we.Message }

// WriteErrors are the refused writes of a command.
type WriteErrors []WriteError

// core are the errors as those of version 2.
func (we WriteErrors) core() driver.WriteErrors {
	var out driver.WriteErrors
	for _, e := range we {
		out = append(out, driver.WriteError{Code: e.Code, Message: e.Message})
	}
	return out
}

// Error returns the texts of all.
func (we WriteErrors) Error() string { return we.core().Error() }

// A WriteConcernError is a write that was not acknowledged as the write concern wants.
type WriteConcernError struct {
	Name            string
	Code            int64
	Message         string
	Details         bsoncore.Document
	Labels          []string
	TopologyVersion *description.TopologyVersion
	Raw             bsoncore.Document
}

// core is the error as one of version 2.
func (wce WriteConcernError) core() *driver.WriteConcernError {
	return &driver.WriteConcernError{Name: wce.Name, Code: known(wce.Code), Message: wce.Message}
}

// Error returns the name and the message.
func (wce WriteConcernError) Error() string { return wce.core().Error() }

// NodeIsRecovering reports whether the server says that it recovers.
func (wce WriteConcernError) NodeIsRecovering() bool { return wce.core().NodeIsRecovering() }

// NodeIsShuttingDown reports whether the server says that it shuts down.
func (wce WriteConcernError) NodeIsShuttingDown() bool { return wce.core().NodeIsShuttingDown() }

// NotPrimary reports whether the server says that it is no primary.
func (wce WriteConcernError) NotPrimary() bool { return wce.core().NotPrimary() }

// Retryable reports whether the write may be tried again.
func (wce WriteConcernError) Retryable() bool {
	return wce.core().Retryable(v2description.ServerKindRSPrimary, nil)
}

// A WriteCommandError is a command whose reply has errors of writes.
type WriteCommandError struct {
	WriteConcernError *WriteConcernError
	WriteErrors       WriteErrors
	Labels            []string
	Raw               bsoncore.Document
}

// core is the error as one of version 2.
func (wce WriteCommandError) core() driver.WriteCommandError {
	out := driver.WriteCommandError{WriteErrors: wce.WriteErrors.core(), Labels: wce.Labels}
	if wce.WriteConcernError != nil {
		out.WriteConcernError = wce.WriteConcernError.core()
	}
	return out
}

// Error returns the texts of all its errors.
func (wce WriteCommandError) Error() string { return wce.core().Error() }

// HasErrorLabel reports whether it has this label.
func (wce WriteCommandError) HasErrorLabel(label string) bool {
	return slices.Contains(wce.Labels, label)
}

// Retryable reports whether the write may be tried again on a server of this version.
func (wce WriteCommandError) Retryable(wireVersion *description.VersionRange) bool {
	if wireVersion == nil {
		return wce.core().Retryable(v2description.ServerKindRSPrimary, nil)
	}
	return wce.core().Retryable(v2description.ServerKindRSPrimary,
		&v2description.VersionRange{Min: wireVersion.Min, Max: wireVersion.Max})
}

// UnsupportedStorageEngine reports whether the server's storage engine has no retryable writes.
func (wce WriteCommandError) UnsupportedStorageEngine() bool {
	return wce.core().UnsupportedStorageEngine()
}

// A QueryFailureError is a query that a server of a time before 3.6 has refused. Those that clients
// speak to send none.
type QueryFailureError struct {
	Message  string
	Response bsoncore.Document
	Wrapped  error
}

// Error returns the message and the reply.
func (e QueryFailureError) Error() string { return e.Message + ": " + e.Response.String() }

// Unwrap returns the error behind it, if there is one.
func (e QueryFailureError) Unwrap() error { return e.Wrapped }

// A RetryablePoolError is an error of a pool of connections, after which an operation may be tried
// again, or not.
type RetryablePoolError = driver.RetryablePoolError
