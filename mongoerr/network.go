package mongoerr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"allium/event"
)

// A ConnectionError is a failure of the connection to a server: it could not be established, or it
// broke.
type ConnectionError struct {
	Addr string // the server
	// Op is what was attempted: "dial", "TLS handshake", "hello", "authenticate", "write" or
	// "read". If code of the program's panicked meanwhile, it is "connect" for a connection that
	// was to be made, and "check" for that of a monitor.
	Op string
	// Command is the command that an operation could not send or lost the reply of, and Namespace
	// its database or collection; both are empty if it was not an operation's.
	Command, Namespace string
	Labels             // those that the specifications make the driver add
	// Sent reports whether any byte of a command may have reached the server.
	Sent    bool
	Wrapped error
}

// Error returns the command, the server, the step and the cause, for example
//
//	find app.users: connection to localhost:27017: dial: connect: connection refused
func (e *ConnectionError) Error() string {
	return oneLine(subject(e.Command, e.Namespace, "") + "connection to " + e.Addr + ": " + e.step())
}

// step returns the step and the cause.
func (e *ConnectionError) step() string { return e.Op + ": " + cause(e.Wrapped) }

// cause returns the text of an error without what the error around it says already: package net
// repeats the network and both addresses.
func cause(err error) string {
	if op, ok := err.(*net.OpError); ok && op.Err != nil {
		switch op.Op {
		case "dial", "read", "write":
			return cause(op.Err)
		}
	}
	if name, ok := err.(*net.DNSError); ok {
		return "look up " + name.Name + ": " + name.Err
	}
	return fmt.Sprint(err)
}

// subject returns what an error is about, to stand before its text: the command, its namespace, and
// the server if addr is not empty.
func subject(command, namespace, addr string) string {
	s := command
	if s != "" && namespace != "" {
		s += " " + namespace
	}
	if s != "" && addr != "" {
		s += " on " + addr
	}
	if s != "" {
		s += ": "
	}
	return s
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
	// Command is the operation's command, and Namespace its database or collection.
	Command, Namespace string
	Labels             // those that the specifications make the driver add
}

// Error returns the command, the server and the failure.
func (e *PoolClearedError) Error() string {
	return oneLine(subject(e.Command, e.Namespace, "") + e.text())
}

func (e *PoolClearedError) text() string {
	// The words are those of the specification Connection Monitoring and Pooling.
	switch {
	case e.Interrupted:
		return "Connection to " + e.Addr + " interrupted due to server monitor timeout"
	case e.Cause == nil:
		return "Connection pool for " + e.Addr + " was cleared"
	}
	return "Connection pool for " + e.Addr + " was cleared because another operation failed with: " + e.Cause.Error()
}

// Is makes errors.Is(err, ErrPoolCleared) true.
func (e *PoolClearedError) Is(target error) bool { return target == ErrPoolCleared }

// A TimeoutError reports that an operation timed out or that its context was cancelled, and in
// which phase.
//
// errors.Is(err, context.DeadlineExceeded) holds for every TimeoutError of a timeout, and
// errors.Is(err, context.Canceled) for one of a cancelled context.
type TimeoutError struct {
	Phase  Phase  // what the operation was doing
	Source Source // the limit that passed; "" for a Transact whose caller's context ended
	// Elapsed is the time since the operation began; of PhaseIndexes, since the wait did. It is 0
	// of PhaseEncoding if a part of the command was encoded before the operation began.
	Elapsed time.Duration
	Addr    string // the server, if one was selected already
	// Command is the operation's command, and Namespace its database or collection.
	Command, Namespace string
	Labels             // those that the specifications make the driver add
	// Wrapped is the cause: a *SelectionError, a *ConnectionError, a *ServerError, a *kms.Error, or
	// the context's error; several of them are joined. Of PhaseTransaction it holds the failure of
	// the last attempt.
	Wrapped error
}

// Error returns the command, the phase, the time, whose limit it was, and the cause in its own
// words, for example
//
//	find app.users: read timed out after 2s (server localhost:27017) by the timeout of the client:
//	context deadline exceeded
func (e *TimeoutError) Error() string {
	what := "timed out"
	if e.Canceled() {
		what = "cancelled"
	}
	s := subject(e.Command, e.Namespace, "") + string(e.Phase) + " " + what
	if e.Elapsed != 0 {
		s += fmt.Sprint(" after ", e.Elapsed.Round(time.Millisecond))
	}
	if e.Addr != "" {
		s += " (server " + e.Addr + ")"
	}
	if e.Source != "" && !(e.Canceled() && e.Source == SourceCancel) {
		s += " by " + string(e.Source)
	}
	if e.Wrapped != nil { // the specification Client Side Operations Timeout wants its text as it is
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

// A SelectionError reports that no suitable server was found in time, or at once that none can be:
// the deployment and the driver have no wire version in common, which
// Topology.CompatibilityErr says.
type SelectionError struct {
	// what a server must be suitable for, for example "writing", or the read preference
	Criteria string
	Topology *event.TopologyDescription // what the driver knew when it gave up
	// why each server was rejected, for example "a:27017: not the primary: RSSecondary"
	Reasons []string
	Elapsed time.Duration
	// Command is the operation's command, and Namespace its database or collection.
	Command, Namespace string
	Labels             // those that the specifications make the driver add
	// Wrapped is the first underlying error. What a server answered to the command of another
	// operation, or of a monitor, is there by its text alone: it is not what became of this one.
	Wrapped error
}

// Error returns the command, the criteria, and why each server was rejected, for example
//
//	find app.users: no server available for writing after 30s: topology is Unknown:
//	localhost:27017: dial: connect: connection refused
func (e *SelectionError) Error() string {
	return oneLine(subject(e.Command, e.Namespace, "") + e.text())
}

// reasoned reports whether the reasons say what the first underlying error says.
func (e *SelectionError) reasoned() bool {
	text := e.Wrapped.Error()
	if c, ok := e.Wrapped.(*ConnectionError); ok {
		text = c.step()
	}
	return e.Topology != nil && slices.ContainsFunc(e.Reasons, func(reason string) bool {
		return strings.HasSuffix(reason, text)
	})
}

// text returns what is said of the selection.
func (e *SelectionError) text() string {
	s := fmt.Sprintf("no server available for %s after %v", e.Criteria, e.Elapsed.Round(time.Millisecond))
	sep := ": "
	if e.Wrapped != nil && !e.reasoned() {
		s, sep = s+": "+e.Wrapped.Error(), "; "
	}
	if e.Topology != nil {
		s += sep + "topology is " + e.Topology.Kind.String()
		if e.Topology.SetName != "" {
			s += " " + e.Topology.SetName
		}
		if len(e.Reasons) > 0 {
			s += ": " + strings.Join(e.Reasons, "; ")
		}
	}
	return s
}

// Unwrap returns e.Wrapped.
func (e *SelectionError) Unwrap() error { return e.Wrapped }

// An AuthError reports that authentication failed. It is not a network failure, and a retry does
// not help.
type AuthError struct {
	Addr      string // the server
	Mechanism string // for example "SCRAM-SHA-256"; "" if it was not negotiated yet
	Username  string // "" if the mechanism has none
	Source    string // the database that the user was looked for in
	// Command is the command of the operation that needed the connection, and Namespace its
	// database or collection; both are empty if none did.
	Command, Namespace string
	// Wrapped is why: a *ServerError if the server refused (code 18 for a wrong password), else
	// what was wrong with the server's part of the conversation.
	Wrapped error
}

// Error returns the user, the mechanism, the server and the cause, for example
//
//	ping: authentication of user "ada" of database "admin" with SCRAM-SHA-256: saslContinue on
//	localhost:27017: AuthenticationFailed (18): Authentication failed.
func (e *AuthError) Error() string {
	s := subject(e.Command, e.Namespace, "") + "authentication"
	if e.Username != "" {
		s += fmt.Sprintf(" of user %q of database %q", e.Username, e.Source)
	}
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
