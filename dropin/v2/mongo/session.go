package mongo

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"allium"
	abson "allium/bson"
	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/coding"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/session"
)

// A Session is a logical session. Operations run in it whose context has it. It is not safe for
// concurrent use.
type Session struct {
	client   *Client
	inner    *allium.Session
	snapshot bool
	defaults *options.TransactionOptions
	state    transactionState
	ended    bool
}

type transactionState int

const (
	noTransaction transactionState = iota
	running
	committed
	aborted
)

// contextKey is where a context has its *Session.
type contextKey struct{}

// NewSessionContext returns a context whose operations run in the session.
func NewSessionContext(parent context.Context, sess *Session) context.Context {
	ctx := context.WithValue(parent, contextKey{}, sess)
	if sess == nil {
		return allium.WithSession(ctx, nil)
	}
	return allium.WithSession(ctx, sess.inner)
}

// SessionFromContext returns the session of a context, nil if it has none.
func SessionFromContext(ctx context.Context) *Session {
	if ctx == nil {
		return nil
	}
	s, _ := ctx.Value(contextKey{}).(*Session)
	return s
}

// WithSession calls fn with a context that has the session.
func WithSession(ctx context.Context, sess *Session, fn func(context.Context) error) error {
	return fn(NewSessionContext(ctx, sess))
}

// StartSession starts a session.
func (c *Client) StartSession(opts ...options.Lister[options.SessionOptions]) (*Session, error) {
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	if err := c.unconnected(); err != nil {
		return nil, err
	}
	s := &Session{client: c, snapshot: set(o.Snapshot), defaults: new(options.TransactionOptions)}
	settings := allium.SessionOptions{CausalConsistency: o.CausalConsistency, Snapshot: s.snapshot}
	if s.snapshot && set(o.CausalConsistency) {
		return nil, errors.New("causal consistency and snapshot cannot both be set for a session")
	}
	if o.SnapshotTime != nil {
		if !s.snapshot {
			return nil, errors.New("cannot set snapshotTime when snapshot is false")
		}
		t := abson.Timestamp(*o.SnapshotTime)
		settings.SnapshotTime = &t
	}
	if o.DefaultTransactionOptions != nil {
		if s.defaults, err = merged(
			[]options.Lister[options.TransactionOptions]{o.DefaultTransactionOptions}); err != nil {
			return nil, err
		}
		settings.Transaction = transactionOptions(s.defaults)
	}
	if s.inner, err = c.inner.StartSession(settings); err != nil {
		return nil, failure(err)
	}
	c.sessions.Add(1)
	return s, nil
}

func transactionOptions(o *options.TransactionOptions) allium.TransactionOptions {
	if o.WriteConcern != nil {
		if w, ok := o.WriteConcern.W.(coding.TimedW); ok {
			out := allium.TransactionOptions{ReadConcern: readConcern(o.ReadConcern),
				ReadPreference: readPreference(o.ReadPreference), MaxCommitTime: w.Commit}
			if w.W != nil || w.Timeout != 0 || o.WriteConcern.Journal != nil {
				out.WriteConcern = writeConcern(o.WriteConcern)
			}
			return out
		}
	}
	return allium.TransactionOptions{ReadConcern: readConcern(o.ReadConcern),
		WriteConcern: writeConcern(o.WriteConcern), ReadPreference: readPreference(o.ReadPreference)}
}

// UseSession calls fn with a context that has a new session, and ends that.
func (c *Client) UseSession(ctx context.Context, fn func(context.Context) error) error {
	return c.UseSessionWithOptions(ctx, options.Session(), fn)
}

// UseSessionWithOptions is UseSession with options.
func (c *Client) UseSessionWithOptions(ctx context.Context, opts *options.SessionOptionsBuilder,
	fn func(context.Context) error) error {
	s, err := c.StartSession(opts)
	if err != nil {
		return err
	}
	defer s.EndSession(ctx)
	return fn(NewSessionContext(ctx, s))
}

// use is called before an operation runs in the session.
func (s *Session) use() error {
	if s.ended {
		return session.ErrSessionEnded
	}
	if s.state == committed || s.state == aborted {
		s.state = noTransaction
	}
	return nil
}

// Client returns the client.
func (s *Session) Client() *Client { return s.client }

// ID returns the document by which servers know the session.
func (s *Session) ID() bson.Raw { return bson.Raw(s.inner.ID()) }

// ClusterTime returns the newest cluster time that the session has seen.
func (s *Session) ClusterTime() bson.Raw { return bson.Raw(s.inner.ClusterTime()) }

// OperationTime returns the time of the last operation.
func (s *Session) OperationTime() *bson.Timestamp {
	t := s.inner.OperationTime()
	if t == nil {
		return nil
	}
	out := bson.Timestamp(*t)
	return &out
}

// SnapshotTime returns the time at which a snapshot session reads.
func (s *Session) SnapshotTime() bson.Timestamp {
	if t := s.inner.SnapshotTime(); t != nil {
		return bson.Timestamp(*t)
	}
	return bson.Timestamp{}
}

// AdvanceClusterTime makes the cluster time at least this one.
func (s *Session) AdvanceClusterTime(d bson.Raw) error {
	if s.ended {
		return session.ErrSessionEnded
	}
	if len(d) == 0 {
		return nil
	}
	return s.inner.AdvanceClusterTime(abson.Raw(d))
}

// AdvanceOperationTime makes the operation time at least this one.
func (s *Session) AdvanceOperationTime(ts *bson.Timestamp) error {
	if s.ended {
		return session.ErrSessionEnded
	}
	if ts != nil {
		s.inner.AdvanceOperationTime(abson.Timestamp(*ts))
	}
	return nil
}

// TransactionRunning reports whether a transaction was started and has not ended.
func (s *Session) TransactionRunning() bool { return s.state == running }

// EndSession aborts a transaction that is running, and ends the session.
func (s *Session) EndSession(ctx context.Context) {
	if s.ended {
		return
	}
	if ctx == nil {
		ctx = context.Background()
	}
	s.ended = true
	s.client.sessions.Add(-1)
	_ = s.inner.End(ctx)
	if s.state == running {
		s.state = aborted
	}
}

// StartTransaction starts a transaction.
func (s *Session) StartTransaction(opts ...options.Lister[options.TransactionOptions]) error {
	switch {
	case s.ended:
		return session.ErrSessionEnded
	case s.state == running:
		return session.ErrTransactInProgress
	case s.snapshot:
		return session.ErrSnapshotTransaction
	}
	o, err := built(opts)
	if err != nil {
		return err
	}
	concern := s.client.opts.WriteConcern
	for _, wc := range []*writeconcern.WriteConcern{s.defaults.WriteConcern, o.WriteConcern} {
		if wc != nil {
			concern = wc
		}
	}
	if !concern.Acknowledged() {
		return session.ErrUnackWCUnsupported
	}
	if err := s.inner.StartTransaction(transactionOptions(o)); err != nil {
		return failure(err)
	}
	s.state = running
	return nil
}

// AbortTransaction aborts the transaction.
func (s *Session) AbortTransaction(ctx context.Context) error {
	switch {
	case s.ended:
		return session.ErrSessionEnded
	case s.state == noTransaction:
		return session.ErrNoTransactStarted
	case s.state == committed:
		return session.ErrAbortAfterCommit
	case s.state == aborted:
		return session.ErrAbortTwice
	}
	if ctx == nil {
		ctx = context.Background()
	}
	s.state = aborted
	return failure(s.inner.AbortTransaction(ctx))
}

// CommitTransaction commits the transaction. It may be called again.
func (s *Session) CommitTransaction(ctx context.Context) error {
	switch {
	case s.ended:
		return session.ErrSessionEnded
	case s.state == noTransaction:
		return session.ErrNoTransactStarted
	case s.state == aborted:
		return session.ErrCommitAfterAbort
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ended := ctx.Err()
	err := s.inner.CommitTransaction(ctx)
	if err != nil && ended != nil {
		return ended
	}
	if !s.inner.InTransaction() {
		s.state = committed
	}
	return commitFailed(err)
}

// commitFailed is the error of a commit: a CommandError if the write concern was not met, too.
func commitFailed(err error) error {
	var concern *mongoerr.WriteConcernError
	e, ok := failure(err).(WriteException)
	if !ok || !errors.As(err, &concern) {
		return commandFailed(err)
	}
	return commandError(&mongoerr.ServerError{Code: concern.Code, Name: concern.Name, Message: concern.Message,
		Labels: e.Labels, Raw: concern.Reply})
}

// How long transactions are tried again, and how long to wait between attempts (specification:
// Convenient API for Transactions).
const (
	withTransactionTimeout = 120 * time.Second
	backoffInitial         = 5 * time.Millisecond
	backoffMax             = 500 * time.Millisecond
)

// WithTransaction calls fn in a transaction, and commits it. An error with the label
// TransientTransactionError makes it try all again, a commit whose outcome is unknown the commit,
// for two minutes.
func (s *Session) WithTransaction(ctx context.Context, fn func(ctx context.Context) (any, error),
	opts ...options.Lister[options.TransactionOptions]) (any, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	began := time.Now()
	inside := NewSessionContext(ctx, s)
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			wait := time.Duration(rand.Float64() * min(float64(backoffInitial)*math.Pow(1.5, float64(attempt-1)),
				float64(backoffMax)))
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(wait):
			}
		}
		if err := s.StartTransaction(opts...); err != nil {
			return nil, err
		}
		res, err := fn(inside)
		if err != nil {
			if s.state == running {
				_ = s.AbortTransaction(context.WithoutCancel(ctx)) // the error of fn matters
			}
			if hasLabel(err, driver.TransientTransactionError) && ctx.Err() == nil &&
				time.Since(began) < withTransactionTimeout {
				continue
			}
			return res, err
		}
		if s.state != running {
			return res, nil // fn has ended the transaction
		}
		if ctx.Err() != nil {
			_ = s.AbortTransaction(context.WithoutCancel(ctx))
			return nil, ctx.Err()
		}
		again, err := s.commit(ctx, began)
		if !again {
			return res, err
		}
	}
}

// commit commits, and tries that again while the outcome is unknown. again says that the whole
// transaction is to be tried again.
func (s *Session) commit(ctx context.Context, began time.Time) (again bool, err error) {
	for {
		err := s.CommitTransaction(ctx)
		if err == nil {
			return false, nil
		}
		if ctx.Err() != nil || time.Since(began) >= withTransactionTimeout {
			return false, err
		}
		var command CommandError
		expired := errors.As(err, &command) && command.IsMaxTimeMSExpiredError()
		switch {
		case hasLabel(err, driver.UnknownTransactionCommitResult) && !expired:
		case hasLabel(err, driver.TransientTransactionError):
			return true, err
		default:
			return false, err
		}
	}
}
