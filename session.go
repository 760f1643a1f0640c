package allium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/exec"
	"allium/internal/flight"
	"allium/internal/option"
	"allium/internal/session"
)

// Session is a logical session. Operations use it when their context carries it (WithSession).
// Unless CausalConsistency is off, each operation of a session observes the effects of the earlier
// ones, on whichever member it runs.
//
// A session is not safe for concurrent use: one operation at a time may run on it, and a second one
// fails. Unacknowledged writes fail on it, too.
type Session struct {
	client *Client
	inner  *session.Session
	// bound is what bounds the Transact that is running, nil if it has no timeout. It holds for its
	// operations, too.
	bound   *exec.Limit
	carried session.Carried // by the contexts that WithSession returns
}

// bind sets what bounds the Transact that is running, and returns what did before.
func (s *Session) bind(b *exec.Limit) (before *exec.Limit) {
	before, s.bound = s.bound, b
	s.carried.Bounded = b != nil
	return before
}

// SessionOptions are the options of StartSession.
type SessionOptions struct {
	// CausalConsistency is on unless Snapshot is. A pointer to false switches it off.
	CausalConsistency *bool
	// Snapshot makes all reads of the session see the data of one point in time (server 5.0 and
	// later).
	Snapshot bool
	// SnapshotTime sets that point in time. Nil: the first read sets it.
	SnapshotTime *bson.Timestamp
	// Transaction holds defaults for the session's transactions. Its Timeout must be nil.
	Transaction TransactionOptions
	// Timeout bounds each commit, each abort, and each Transact as a whole. Nil: the client's
	// timeout.
	Timeout *time.Duration
}

// StartSession starts a session. It does no I/O: the first operation fails if the deployment does
// not support sessions. End the session when it is no longer needed. The server expires sessions
// that are idle (after 30 minutes by default); operations on them may fail.
func (c *Client) StartSession(opts ...SessionOptions) (*Session, error) {
	o := option.Merge(opts)
	switch {
	case o.Timeout != nil && *o.Timeout < 0:
		return nil, fmt.Errorf("start session: timeout is %v, want 0 or more", *o.Timeout)
	case o.Transaction.Timeout != nil:
		return nil, errors.New("start session: the timeout of its transactions is SessionOptions.Timeout")
	}
	o = option.Copy(o)
	inner, err := session.New(&c.sessions, c.exec.SessionTimeout, session.Options{
		CausalConsistency: o.CausalConsistency, Snapshot: o.Snapshot, SnapshotTime: o.SnapshotTime,
		Transaction: o.Transaction.inner(), Timeout: o.Timeout,
	})
	if err != nil {
		return nil, err
	}
	s := &Session{client: c, inner: inner}
	s.carried = session.Carried{Session: inner, Of: s}
	return s, nil
}

// Tests of other packages measure the backoffs of a client.
func init() { exec.Inside = func(c any) *exec.Executor { return c.(*Client).exec } }

// WithSession returns a context whose operations run on the session. A nil session makes them run
// outside of the session that ctx carries.
func WithSession(ctx context.Context, s *Session) context.Context {
	if s == nil {
		return session.NewContext(ctx, nil)
	}
	return session.NewContext(ctx, &s.carried)
}

// SessionFrom returns the session that the context carries, or nil. Inside Transact it is the
// transaction's.
func SessionFrom(ctx context.Context) *Session {
	if ctx == nil {
		return nil
	}
	c := session.FromContext(ctx)
	if c == nil {
		return nil
	}
	return c.Of.(*Session)
}

// EndSessionOptions are the options of End.
type EndSessionOptions struct {
	// Timeout bounds the abort of a transaction that is still open. Nil: the session's timeout.
	Timeout *time.Duration
}

// End ends the session, and aborts its transaction if one is open: also one whose commit or abort
// could not be sent. It may be called more than once. It waits for an operation that runs on the
// session. The abort takes at most the timeout or, without one, ten seconds, and at most half a
// second once ctx has ended. An abort that could not be sent in that time is tried for a minute
// more in the background, or until the client is closed. Errors of the abort are not returned: the
// server aborts the transaction in time. End returns an error only for invalid options; the session
// has ended all the same.
func (s *Session) End(ctx context.Context, opts ...EndSessionOptions) error {
	o := option.Merge(opts)
	var err error
	if o.Timeout != nil && *o.Timeout < 0 {
		o, err = EndSessionOptions{}, fmt.Errorf("end session: %w", negative("timeout", *o.Timeout))
	}
	defer s.inner.End() // also if code of the program's panics in the abort
	s.abortOpen(ctx, o.Timeout)
	return err
}

// abortGrace is how long an abort goes on behind the end of its context.
const abortGrace = 500 * time.Millisecond

// abortOpen aborts a transaction that is open, even if ctx has ended. The server aborts it by
// itself in time if that fails.
func (s *Session) abortOpen(ctx context.Context, timeout *time.Duration) {
	if !s.inner.Transaction().Open() {
		return
	}
	limit, err := s.limit(timeout)
	if err != nil {
		limit, _ = s.limit(nil)
	}
	if ctx == nil {
		ctx = context.Background() // a session ends without a context, too
	}
	ctx, cancel := flight.Linger(ctx, abortGrace)
	defer cancel()
	if limit.Deadline.IsZero() {
		ctx, cancel = context.WithTimeout(ctx, exec.AbortTimeout)
		defer cancel()
	}
	s.client.exec.AbortOpen(ctx, s.inner, limit)
}

// limit returns what bounds a commit or an abort that begins now: timeout, or what the session has
// if that is nil.
func (s *Session) limit(timeout *time.Duration) (exec.Limit, error) {
	inherited := s.client.inherited()
	if t := s.inner.Options().Timeout; t != nil && timeout == nil {
		inherited.timeout, inherited.timeoutLevel = t, "session"
	}
	return inherited.limit(timeout)
}

// ID returns the session's lsid document. It is nil if the session ended without being used.
func (s *Session) ID() bson.Raw { return s.inner.ID() }

// Client returns the client that the session belongs to.
func (s *Session) Client() *Client { return s.client }

// ClusterTime returns the newest $clusterTime that the session has seen, nil if it has seen none.
func (s *Session) ClusterTime() bson.Raw {
	if t := s.inner.ClusterTime(); t != nil {
		return t.Doc
	}
	return nil
}

// OperationTime returns the time of the session's last operation, nil if there was none.
func (s *Session) OperationTime() *bson.Timestamp { return s.inner.OperationTime() }

// SnapshotTime returns the point in time that a snapshot session reads at, nil before its first
// read.
func (s *Session) SnapshotTime() *bson.Timestamp { return s.inner.SnapshotTime() }

// AdvanceClusterTime advances the session's cluster time to that of another session. An older time
// changes nothing.
func (s *Session) AdvanceClusterTime(clusterTime bson.Raw) error {
	t := session.ParseClusterTime(clusterTime)
	if t == nil {
		return errors.New("advance cluster time: document has no timestamp clusterTime")
	}
	s.inner.AdvanceClusterTime(t)
	return nil
}

// AdvanceOperationTime advances the session's operation time to that of another session, so that
// its next operation observes the other session's last one. An older time changes nothing.
func (s *Session) AdvanceOperationTime(t bson.Timestamp) { s.inner.AdvanceOperationTime(t) }

// InTransaction reports whether a transaction of the session is open: from StartTransaction on
// until its commit or abort may have reached a server.
func (s *Session) InTransaction() bool { return s.inner.Transaction().Open() }
