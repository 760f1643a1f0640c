package mongoerr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"allium/event"
)

// A ConnectionError is a failure of the connection to a server: it could not be established, or it
// broke.
type ConnectionError struct {
	Addr   string // the server
	Op     string // what was attempted: "dial", "TLS handshake", "hello", "authenticate", "write", "read"
	Labels        // those that the specifications make the driver add
	// Sent reports whether any byte of a command may have reached the server.
	Sent    bool
	Wrapped error
}

// Error returns the server, the step and the cause.
func (e *ConnectionError) Error() string {
	return oneLine(fmt.Sprintf("connection to %s: %s: %v", e.Addr, e.Op, e.Wrapped))
}

// Unwrap returns e.Wrapped.
func (e *ConnectionError) Unwrap() error { return e.Wrapped }

// Timeout reports whether the connection failed because a deadline passed.
func (e *ConnectionError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.Is(e.Wrapped, os.ErrDeadlineExceeded) || errors.As(e.Wrapped, &t) && t.Timeout()
}

// A PoolClearedError reports that the connection pool of a server was cleared after a failure while
// an operation waited for a connection or used one. The operation may be retried. errors.Is(err,
// ErrPoolCleared) holds for it.
type PoolClearedError struct {
	Addr string // the server
	// Cause is the failure that cleared the pool, nil if the pool has not been ready yet. It
	// belongs to another operation, or to a monitor, and Unwrap does not return it.
	Cause       error
	Interrupted bool // the operation had a connection, which was closed
	Labels           // those that the specifications make the driver add
}

// Error returns the server and the failure.
func (e *PoolClearedError) Error() string {
	// The words are those of the specification Connection Monitoring and Pooling.
	switch {
	case e.Interrupted:
		return "Connection to " + e.Addr + " interrupted due to server monitor timeout"
	case e.Cause == nil:
		return "Connection pool for " + e.Addr + " was cleared"
	}
	return oneLine("Connection pool for " + e.Addr + " was cleared because another operation failed with: " + e.Cause.Error())
}

// Is makes errors.Is(err, ErrPoolCleared) true.
func (e *PoolClearedError) Is(target error) bool { return target == ErrPoolCleared }

// A TimeoutError reports that an operation timed out or that its context was cancelled, and in
// which phase.
//
// errors.Is(err, context.DeadlineExceeded) holds for every TimeoutError of a timeout, and
// errors.Is(err, context.Canceled) for one of a cancelled context.
type TimeoutError struct {
	Phase   string        // "server selection", "connection checkout", "connect", "write", "read", "backoff", "cursor", ...
	Source  string        // the limit that passed, for example "context", "timeoutMS of the client", "maxTimeMS on the server"
	Elapsed time.Duration // since the operation began
	Addr    string        // the server, if one was selected already
	Labels                // those that the specifications make the driver add
	// Wrapped is the cause: a *SelectionError, a *ConnectionError, a *ServerError, or the context's
	// error.
	Wrapped error
}

// Error returns the phase, the time and the cause.
func (e *TimeoutError) Error() string {
	what := "timed out"
	if e.Canceled() {
		what = "cancelled"
	}
	s := fmt.Sprintf("%s %s after %v", e.Phase, what, e.Elapsed.Round(time.Millisecond))
	if e.Addr != "" {
		s += " (server " + e.Addr + ")"
	}
	if e.Source != "" {
		s += " by " + e.Source
	}
	if e.Wrapped != nil {
		s += ": " + e.Wrapped.Error()
	}
	return oneLine(s)
}

// Canceled reports whether a cancelled context ended the operation, not a timeout.
func (e *TimeoutError) Canceled() bool { return errors.Is(e.Wrapped, context.Canceled) }

// Timeout reports whether the operation timed out; it is false if the context was cancelled.
func (e *TimeoutError) Timeout() bool { return !e.Canceled() }

// Unwrap returns e.Wrapped.
func (e *TimeoutError) Unwrap() error { return e.Wrapped }

// Is makes errors.Is(err, context.DeadlineExceeded) true unless the context was cancelled.
func (e *TimeoutError) Is(target error) bool {
	return target == context.DeadlineExceeded && !e.Canceled()
}

// A SelectionError reports that no suitable server was found in time.
type SelectionError struct {
	Criteria string                     // what a server must be suitable for, for example "writing", or the read preference
	Topology *event.TopologyDescription // what the driver knew when it gave up
	Reasons  []string                   // why each server was rejected, for example "a:27017: not the primary: RSSecondary"
	Elapsed  time.Duration
	Labels         // those that the specifications make the driver add
	Wrapped  error // the first underlying error
}

// Error returns the criteria, the first underlying error, and why each server was rejected.
func (e *SelectionError) Error() string {
	s := fmt.Sprintf("no server available for %s after %v", e.Criteria, e.Elapsed.Round(time.Millisecond))
	if e.Wrapped != nil {
		s += ": " + e.Wrapped.Error()
	}
	if e.Topology != nil {
		s += "; topology is " + e.Topology.Kind.String()
		if e.Topology.SetName != "" {
			s += " " + e.Topology.SetName
		}
		if len(e.Reasons) > 0 {
			s += ": " + strings.Join(e.Reasons, "; ")
		}
	}
	return oneLine(s)
}

// Unwrap returns e.Wrapped.
func (e *SelectionError) Unwrap() error { return e.Wrapped }

// An AuthError reports that authentication failed. It is not a network failure, and a retry does
// not help.
type AuthError struct {
	Addr      string // the server
	Mechanism string // for example "SCRAM-SHA-256"; "" if it was not negotiated yet
	// Wrapped is why: a *ServerError if the server refused (code 18 for a wrong password), else
	// what was wrong with the server's part of the conversation.
	Wrapped error
}

// Error returns the mechanism, the server and the cause.
func (e *AuthError) Error() string {
	s := "authentication"
	if e.Mechanism != "" {
		s += " with " + e.Mechanism
	}
	if se, ok := errors.AsType[*ServerError](e.Wrapped); !ok || se.Addr == "" {
		s += " on " + e.Addr
	}
	return oneLine(fmt.Sprintf("%s: %v", s, e.Wrapped))
}

// Unwrap returns e.Wrapped.
func (e *AuthError) Unwrap() error { return e.Wrapped }
