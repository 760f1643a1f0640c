// Package session has the errors of sessions and transactions.
package session

import "errors"

var (
	// ErrSessionEnded is returned by operations in a session that has ended.
	ErrSessionEnded = errors.New("ended session was used")
	// ErrNoTransactStarted is returned by the end of a transaction that has not begun.
	ErrNoTransactStarted = errors.New("no transaction started")
	// ErrTransactInProgress is returned by the start of a transaction while one is running.
	ErrTransactInProgress = errors.New("transaction already in progress")
	// ErrAbortAfterCommit is returned by an abort behind a commit.
	ErrAbortAfterCommit = errors.New("cannot call abortTransaction after calling commitTransaction")
	// ErrAbortTwice is returned by an abort behind an abort.
	ErrAbortTwice = errors.New("cannot call abortTransaction twice")
	// ErrCommitAfterAbort is returned by a commit behind an abort.
	ErrCommitAfterAbort = errors.New("cannot call commitTransaction after calling abortTransaction")
	// ErrUnackWCUnsupported is returned by the start of a transaction whose write concern is
	// unacknowledged.
	ErrUnackWCUnsupported = errors.New("transactions do not support unacknowledged write concerns")
	// ErrSnapshotTransaction is returned by the start of a transaction in a snapshot session.
	ErrSnapshotTransaction = errors.New("transactions are not supported in snapshot sessions")
)
