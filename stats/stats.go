// Package stats holds the types that [allium.Client.Stats] returns: what a client has open, what it
// is doing, and why its connections were closed, in the spirit of sql.DBStats.
//
// Nothing in these types holds a value of a document, a filter or an update, or a credential.
// Failures are described by the kind of error, without the server's text.
package stats

import "time"

// Listed is the greatest number of operations, cursors, slow operations and events that a Client
// lists, each.
const Listed = 100

// Client is a snapshot of a client. The figures of its parts are read one after the other, so they
// may disagree by what happened in between.
type Client struct {
	// Pools are the connection pools: one for each server, in the order of the topology's
	// description. Those of a client for a key vault, which encryption may need, come last.
	Pools []Pool
	// Sessions are the server sessions.
	Sessions Sessions

	// Operations is how many operations are in flight: called, and not returned yet. An open cursor
	// does not count; its getMore does.
	Operations int
	// OldestOperations are the ones that began first, at most Listed, the oldest first.
	OldestOperations []Operation

	// Cursors is how many cursors servers hold for the client, change streams included.
	Cursors int
	// OldestCursors are the ones that were opened first, at most Listed, the oldest first.
	OldestCursors []Cursor

	// SlowThreshold is the duration from which an operation counts as slow:
	// ClientOptions.SlowOperation, or 100 milliseconds if that is not set. With 0 or less, none
	// does.
	SlowThreshold time.Duration
	// SlowOperations is how many operations have been slow since the client was opened.
	SlowOperations int64
	// RecentSlowOperations are the latest ones, at most Listed, the latest first.
	RecentSlowOperations []SlowOperation

	// RecentEvents are the latest changes in what is known about the deployment, at most Listed,
	// the latest first. A check that found nothing new is not an event.
	RecentEvents []Event

	// DroppedEvents is how many events and log messages of servers, the topology and pools were not
	// delivered, because a listener or a log handler did not return while very many waited for it.
	DroppedEvents int64
}

// Pool is the connection pool of one server. Open is the sum of InUse, Idle, Connecting and
// Draining.
type Pool struct {
	Addr string // the server's address
	// State is "ready", "paused" while the server is not known, or "closed".
	State string
	// PausedBy is what paused the pool, for example "dial: connection refused"; empty if there is
	// nothing to tell.
	PausedBy string
	// Generation is how often the pool was cleared: its connections were given up. Behind a load
	// balancer each service has a generation of its own, and this is 0.
	Generation uint64

	MaxOpen int // the bound of Open (maxPoolSize); 0: none
	MinOpen int // how many connections are kept open (minPoolSize)

	Open       int // connections that exist or are being made
	InUse      int // those that operations, cursors or transactions have
	Idle       int // those that can be had at once
	Connecting int // those that are being made
	Draining   int // those that read off the reply to an operation that has ended without it

	// InUseByCursors and InUseByTransactions are the part of InUse that stays checked out between
	// operations.
	InUseByCursors      int
	InUseByTransactions int

	// Waiting is how many operations wait for a connection now. WaitCount is how many have had to
	// wait because none was idle. WaitDuration is the total time they waited, without the
	// operations that still wait.
	Waiting      int
	WaitCount    int64
	WaitDuration time.Duration
	// WaitTimeouts is how many of them gave up because their time or their context ended.
	WaitTimeouts int64

	// Created is how many connections were made or tried, Closed how many of them are gone.
	Created int64
	Closed  Closed
}

// Closed is how many connections were closed, by reason. A connection that could not be established
// counts as closed by an error.
type Closed struct {
	Stale      int64 // the pool was cleared
	Idle       int64 // not used for longer than maxIdleTimeMS
	Error      int64 // a network error, a failed handshake, or a stream of replies that was abandoned
	PoolClosed int64 // the client was closed, or the server left the deployment
}

// Total is how many connections were closed for whatever reason.
func (c Closed) Total() int64 { return c.Stale + c.Idle + c.Error + c.PoolClosed }

// Sessions are the server sessions of a client.
type Sessions struct {
	InUse  int // held by operations, cursors and explicit sessions
	Pooled int // kept for the next operation
}

// Phase is what an operation is doing.
type Phase string

// The phases of an operation.
const (
	PhaseSelection  Phase = "selection"  // it selects a server
	PhaseCheckout   Phase = "checkout"   // it waits for a connection to Operation.Addr
	PhaseEncryption Phase = "encryption" // it encrypts its command
	PhaseCommand    Phase = "command"    // its command is at the server, or on its way
	PhaseDecryption Phase = "decryption" // it decrypts its reply
	PhaseDecoding   Phase = "decoding"   // it decodes its reply
	PhaseBackoff    Phase = "backoff"    // it waits before another attempt, as the server is overloaded
)

// Operation is an operation in flight.
type Operation struct {
	Command string // the command's name, for example "find"
	// Namespace is the collection or the database that it is about, for example "app.users"; empty
	// for the deployment.
	Namespace string
	Started   time.Time
	Phase     Phase
	Addr      string // the server of the latest attempt; empty until one is selected
	Attempts  int    // how many attempts have failed
}

// Cursor is a cursor that a server holds.
type Cursor struct {
	ID        int64
	Namespace string
	Addr      string // the server
	Opened    time.Time
}

// SlowOperation is an operation that took at least Client.SlowThreshold.
type SlowOperation struct {
	Command   string
	Namespace string
	Addr      string // the server of the last attempt; empty if none was selected
	Started   time.Time
	Duration  time.Duration

	// Selection is the part of Duration that waited for a suitable server, Checkout for a
	// connection, Encryption for the command to be encrypted, and Backoff between attempts. The
	// rest is the command's way to the server and back.
	Selection, Checkout, Encryption, Backoff time.Duration
	Attempts                                 int // 1 unless it was tried again; 0 if nothing was sent

	// Shape is the shape of the command's filter, or of its pipeline: names of fields, operators
	// and stages, and a question mark for every value, for example {status: ?, age: {$gt: ?}}. A
	// field that is encrypted is left out. For several statements in one command it is that of the
	// first. Empty: the command has none, or none was sent.
	Shape string
	// Failure is the kind of error that it ended in, for example "MaxTimeMSExpired (50)" or
	// "timeout: connection checkout"; empty if it succeeded. It has no message, since those of
	// servers may hold values.
	Failure string
}

// Event is a change in what the client knows about its deployment, or in a pool.
type Event struct {
	Time time.Time
	Addr string // the server; empty for the deployment as a whole
	// Text says what happened, for example "RSSecondary -> RSPrimary" or "pool cleared".
	Text string
	// Cause is the kind of error behind it, for example "dial: connection refused"; empty if there
	// is none.
	Cause string
}
