// Package session has the errors of sessions and transactions: those of version 2.
package session

import "go.mongodb.org/mongo-driver/v2/x/mongo/driver/session"

var (
	// ErrSessionEnded is returned by operations in a session that has ended.
	ErrSessionEnded = session.ErrSessionEnded
	// ErrNoTransactStarted is returned by the end of a transaction that has not begun.
	ErrNoTransactStarted = session.ErrNoTransactStarted
	// ErrTransactInProgress is returned by the start of a transaction while one is running.
	ErrTransactInProgress = session.ErrTransactInProgress
	// ErrAbortAfterCommit is returned by an abort behind a commit.
	ErrAbortAfterCommit = session.ErrAbortAfterCommit
	// ErrAbortTwice is returned by an abort behind an abort.
	ErrAbortTwice = session.ErrAbortTwice
	// ErrCommitAfterAbort is returned by a commit behind an abort.
	ErrCommitAfterAbort = session.ErrCommitAfterAbort
	// ErrUnackWCUnsupported is returned by the start of a transaction whose write concern is
	// unacknowledged.
	ErrUnackWCUnsupported = session.ErrUnackWCUnsupported
	// ErrSnapshotTransaction is returned by the start of a transaction in a snapshot session.
	ErrSnapshotTransaction = session.ErrSnapshotTransaction
)

// A Client is a session as the inside of the official driver has it. There are none here.
type Client struct{ _ struct{} }
