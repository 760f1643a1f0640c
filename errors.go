package allium

import (
	"errors"

	"allium/internal/command"
	"allium/internal/mongoerr"
)

// ServerError is what a server answered when a command failed. Its fields are Code, Name (the codeName), Message, Labels,
// Command, Addr, Raw (the whole reply) and Wrapped. errors.Is(err, ErrDuplicateKey) works on it.
type ServerError = mongoerr.ServerError

// ConnectionError is a failure of the connection to a server: it could not be made, or it broke. Its fields are Addr,
// Op (the step, such as "dial" or "authenticate"), Labels, Sent and Wrapped.
type ConnectionError = mongoerr.ConnectionError

// AuthError says that a server refused the client's credential, or that one of the two did not keep to the rules of the mechanism.
// Its fields are Addr, Mechanism and Wrapped, a *ServerError with the code 18 for a wrong password.
type AuthError = mongoerr.AuthError

// TimeoutError says that an operation ended because its time was up or its context was cancelled: in which Phase (such as "server
// selection" or "read"), by which Source (such as "the timeout of the client"), after how long (Elapsed), and with which server (Addr).
// It has Labels, and Wrapped is what was underway, or why. It is also context.DeadlineExceeded or context.Canceled, for errors.Is.
type TimeoutError = mongoerr.TimeoutError

// SelectionError says that no suitable server was found in time. Its fields are Criteria, Topology (what was known of each
// server), Reasons (why each of them would not do), Elapsed, Labels and Wrapped, the first real cause.
type SelectionError = mongoerr.SelectionError

// WriteError is a statement or document of a write that the server refused. Its fields are Index, Code, Message, Details
// (for example what a validator found) and Raw; DuplicateKey returns the key of a duplicate.
type WriteError = mongoerr.WriteError

// WriteConcernError says that a write was applied, but that the server could not confirm its write concern. Its fields are
// Code, Name, Message, Details, Labels, Addr, Raw and TopologyVersion.
type WriteConcernError = mongoerr.WriteConcernError

// BulkWriteError collects the errors of a write of many statements: WriteErrors by index, WriteConcernErrors, Labels, and Err, an
// error that ended the write early, such as one of the network. errors.Is and errors.As find each of them. The operation's result
// says what was done all the same.
type BulkWriteError = mongoerr.BulkWriteError

// The classes of errors, for errors.Is.
var (
	// ErrNoDocuments is returned where one document is asked for and none matches.
	ErrNoDocuments = errors.New("no documents match the filter")
	// ErrDuplicateKey is the class of errors that say that a unique index already holds the key.
	ErrDuplicateKey = mongoerr.ErrDuplicateKey
	// ErrClientClosed is returned by operations on a closed client.
	ErrClientClosed = mongoerr.ErrClientClosed
	// ErrPoolCleared is the class of errors of operations that met a connection pool that a failure had cleared.
	ErrPoolCleared = mongoerr.ErrPoolCleared
	// ErrNilDocument is the class of errors of a filter, update or document that is nil.
	ErrNilDocument = command.ErrNilDocument
)

// The server's codes that the driver itself looks at.
const (
	codeNamespaceNotFound = 26
	codeCursorNotFound    = 43
	codeMaxTimeMSExpired  = 50
	codeCursorKilled      = 237
	codeNoSuchTransaction = 251
)

// IsTimeout reports whether err says that time was up, whoever measured it: the context or a Timeout (a *TimeoutError), the selection
// of a server (a *SelectionError), a socket (a *ConnectionError), or the server, for MaxTime and for the Timeout of a write concern
// (the codes 50, 262 and 64). An operation that was cancelled did not time out.
func IsTimeout(err error) bool { return mongoerr.IsTimeout(err) }

// HasErrorCode reports whether err is or wraps an error of the server's with this code, for example 26 for a collection that does
// not exist, in whichever way the server said it: as a *ServerError, a *WriteError or a *WriteConcernError. For a duplicate key,
// which has several codes, use errors.Is with ErrDuplicateKey.
func HasErrorCode(err error, code int32) bool { return mongoerr.HasCode(err, code) }

// HasErrorLabel reports whether err, or an error that it wraps, carries the label, for example
// "TransientTransactionError".
func HasErrorLabel(err error, label string) bool { return mongoerr.HasLabel(err, label) }
