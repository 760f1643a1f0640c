package driver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// ErrNoCursor is the error of a reply without a cursor.
var ErrNoCursor = errors.New("database response does not contain a cursor")

// The codes of servers that are told apart (specification: Retryable Reads, Server Discovery and
// Monitoring).
var (
	recovering   = []int64{91, 189, 11600, 11602, 13436}
	shuttingDown = []int64{91, 11600}
	notPrimary   = []int64{10058, 10107, 13435}
	retryable    = []int64{6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
)

const (
	codeIllegalOperation  = 20
	codeNamespaceNotFound = 26
	labelsWritesSince     = 9 // the wire version of servers that label errors of writes
)

func isNotPrimary(code int64, message string) bool {
	return slices.Contains(notPrimary, code) || code == 0 && strings.Contains(message, "not master")
}

func isRecovering(code int64, message string) bool {
	return slices.Contains(recovering, code) || code == 0 && strings.Contains(message, "node is recovering")
}

func unsupportedEngine(code int64, message string) bool {
	return code == codeIllegalOperation && strings.HasPrefix(strings.ToLower(message), "transaction numbers")
}

// unlabeled reports whether a server of this version does not label the errors of writes.
func unlabeled(version *description.VersionRange) bool {
	return version != nil && version.Max < labelsWritesSince
}

// An Error is a command that has failed.
type Error struct {
	Code            int32
	Message         string
	Labels          []string
	Name            string
	Wrapped         error
	TopologyVersion *description.TopologyVersion
	Raw             bsoncore.Document
	BaseBackoff     time.Duration
}

// Error returns the name, the message, and what is wrapped.
func (e Error) Error() string {
	var parts []string
	if e.Name != "" {
		parts = append(parts, "("+e.Name+")")
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	switch {
	case e.Wrapped == nil || e.Wrapped.Error() == e.Message: // it is said once
	case e.Message != "":
		parts[len(parts)-1] += ": " + e.Wrapped.Error()
	default:
		parts = append(parts, e.Wrapped.Error())
	}
	return strings.Join(parts, " ")
}

// Unwrap returns the error behind it, if there is one.
func (e Error) Unwrap() error { return e.Wrapped }

// HasErrorLabel reports whether it has this label.
func (e Error) HasErrorLabel(label string) bool { return slices.Contains(e.Labels, label) }

// NetworkError reports whether a connection has failed.
func (e Error) NetworkError() bool { return e.HasErrorLabel(NetworkError) }

// RetryableRead reports whether a read may be tried again.
func (e Error) RetryableRead() bool {
	return e.NetworkError() || slices.Contains(retryable, int64(e.Code))
}

// RetryableWrite reports whether a write may be tried again on a server of this version.
func (e Error) RetryableWrite(wireVersion *description.VersionRange) bool {
	return e.NetworkError() || e.HasErrorLabel(RetryableWriteError) ||
		unlabeled(wireVersion) && slices.Contains(retryable, int64(e.Code))
}

// NodeIsRecovering reports whether the server says that it recovers.
func (e Error) NodeIsRecovering() bool { return isRecovering(int64(e.Code), e.Message) }

// NodeIsShuttingDown reports whether the server says that it shuts down.
func (e Error) NodeIsShuttingDown() bool { return slices.Contains(shuttingDown, int64(e.Code)) }

// NotPrimary reports whether the server says that it is no primary.
func (e Error) NotPrimary() bool { return isNotPrimary(int64(e.Code), e.Message) }

// NamespaceNotFound reports whether the collection is not there.
func (e Error) NamespaceNotFound() bool {
	return e.Code == codeNamespaceNotFound || e.Message == "ns not found"
}

// UnsupportedStorageEngine reports whether the server's storage engine has no retryable writes.
func (e Error) UnsupportedStorageEngine() bool { return unsupportedEngine(int64(e.Code), e.Message) }

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

// Error returns the texts of all.
func (we WriteErrors) Error() string {
	texts := make([]string, len(we))
	for i, e := range we {
		texts[i] = "{" + e.Error() + "}"
	}
	return "write errors: [" + strings.Join(texts, ", ") + "]"
}

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

// Error returns the name and the message.
func (wce WriteConcernError) Error() string {
	if wce.Name != "" {
		return fmt.Sprintf("(%v) %v", wce.Name, wce.Message)
	}
	return wce.Message
}

// NodeIsRecovering reports whether the server says that it recovers.
func (wce WriteConcernError) NodeIsRecovering() bool { return isRecovering(wce.Code, wce.Message) }

// NodeIsShuttingDown reports whether the server says that it shuts down.
func (wce WriteConcernError) NodeIsShuttingDown() bool {
	return slices.Contains(shuttingDown, wce.Code)
}

// NotPrimary reports whether the server says that it is no primary.
func (wce WriteConcernError) NotPrimary() bool { return isNotPrimary(wce.Code, wce.Message) }

// Retryable reports whether the write may be tried again on a server of this kind and version.
func (wce WriteConcernError) Retryable(serverKind description.ServerKind, wireVersion *description.VersionRange) bool {
	if serverKind == description.ServerKindMongos && unlabeled(wireVersion) {
		return false // it has retried it
	}
	return slices.Contains(retryable, wce.Code)
}

// A WriteCommandError is a command whose reply has errors of writes.
type WriteCommandError struct {
	WriteConcernError *WriteConcernError
	WriteErrors       WriteErrors
	Labels            []string
	Raw               bsoncore.Document
	BaseBackoff       time.Duration
}

// Error returns the texts of all its errors.
func (wce WriteCommandError) Error() string {
	concern := "<nil>"
	if wce.WriteConcernError != nil {
		concern = wce.WriteConcernError.Error()
	}
	return fmt.Sprintf("write command error: [{%s}, {%s}]", wce.WriteErrors.Error(), concern)
}

// HasErrorLabel reports whether it has this label.
func (wce WriteCommandError) HasErrorLabel(label string) bool {
	return slices.Contains(wce.Labels, label)
}

// Retryable reports whether the write may be tried again on a server of this kind and version.
func (wce WriteCommandError) Retryable(serverKind description.ServerKind, wireVersion *description.VersionRange) bool {
	return wce.HasErrorLabel(RetryableWriteError) || unlabeled(wireVersion) && wce.WriteConcernError != nil &&
		wce.WriteConcernError.Retryable(serverKind, wireVersion)
}

// UnsupportedStorageEngine reports whether the server's storage engine has no retryable writes.
func (wce WriteCommandError) UnsupportedStorageEngine() bool {
	return slices.ContainsFunc(wce.WriteErrors, func(e WriteError) bool { return unsupportedEngine(e.Code, e.Message) })
}

// A QueryFailureError is a query that a server of a time before 3.6 has refused. Those that clients
// speak to send none.
type QueryFailureError struct {
	Message  string
	Response bsoncore.Document
	Wrapped  error
}

// Error returns the message and the reply.
func (e QueryFailureError) Error() string { return fmt.Sprintf("%v: %v", e.Message, e.Response) }

// Unwrap returns the error behind it, if there is one.
func (e QueryFailureError) Unwrap() error { return e.Wrapped }

// A RetryablePoolError is an error of a pool of connections, after which an operation may be tried
// again, or not.
type RetryablePoolError interface {
	Retryable() bool
}
