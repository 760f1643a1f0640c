package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/mongo/options"
	v2bson "go.mongodb.org/mongo-driver/v2/bson"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
	v2options "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/x/mongo/driver/session"
)

// A Session is a logical session. Operations run in it whose context has it. It is not safe for
// concurrent use. Only this package implements it.
type Session interface {
	// StartTransaction starts a transaction.
	StartTransaction(...*options.TransactionOptions) error
	// AbortTransaction aborts the transaction.
	AbortTransaction(context.Context) error
	// CommitTransaction commits the transaction. It may be called again.
	CommitTransaction(context.Context) error
	// WithTransaction calls fn in a transaction, and commits it. An error with the label
	// TransientTransactionError makes it try all again, a commit whose outcome is unknown the
	// commit, for two minutes.
	WithTransaction(ctx context.Context, fn func(ctx SessionContext) (any, error),
		opts ...*options.TransactionOptions) (any, error)
	// EndSession aborts a transaction that is running, and ends the session.
	EndSession(context.Context)

	// ClusterTime returns the cluster time.
	ClusterTime() bson.Raw
	// OperationTime returns the time of the last operation.
	OperationTime() *primitive.Timestamp
	// Client returns the client that the session is of.
	Client() *Client
	// ID returns the document that servers know the session by.
	ID() bson.Raw
	// AdvanceClusterTime makes the cluster time at least this one.
	AdvanceClusterTime(bson.Raw) error
	// AdvanceOperationTime makes the operation time at least this one.
	AdvanceOperationTime(*primitive.Timestamp) error

	session()
}

// A SessionContext is a context with a session.
type SessionContext interface {
	context.Context
	Session
}

// An XSession is a session that shows its inside.
//
// Deprecated: there is nothing to see in it.
type XSession interface {
	ClientSession() *session.Client
}

// A sessionOf is a Session.
type sessionOf struct {
	client *Client
	inner  *v2mongo.Session
}

var (
	_ Session  = (*sessionOf)(nil)
	_ XSession = (*sessionOf)(nil)
)

// A sessionContext is a SessionContext.
type sessionContext struct {
	context.Context
	Session
}

// contextKey is where a context has its Session.
type contextKey struct{}

// NewSessionContext returns a context whose operations run in the session.
func NewSessionContext(ctx context.Context, sess Session) SessionContext {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx = context.WithValue(ctx, contextKey{}, sess)
	return &sessionContext{v2mongo.NewSessionContext(ctx, innerSession(sess)), sess}
}

// innerSession returns the session of version 2 in a Session, which may be a SessionContext.
func innerSession(sess Session) *v2mongo.Session {
	switch s := sess.(type) {
	case *sessionOf:
		return s.inner
	case *sessionContext:
		return innerSession(s.Session)
	}
	return nil
}

// SessionFromContext returns the session of a context, nil if it has none.
func SessionFromContext(ctx context.Context) Session {
	if ctx == nil {
		return nil
	}
	s, _ := ctx.Value(contextKey{}).(Session)
	return s
}

// WithSession calls fn with a context that has the session.
func WithSession(ctx context.Context, sess Session, fn func(SessionContext) error) error {
	return fn(NewSessionContext(ctx, sess))
}

// StartSession starts a session.
func (c *Client) StartSession(opts ...*options.SessionOptions) (Session, error) {
	s, err := c.inner.StartSession(convert.Session(options.MergeSessionOptions(opts...)))
	if err != nil {
		return nil, failure(err)
	}
	return &sessionOf{c, s}, nil
}

// UseSession calls fn with a context that has a new session, and ends that.
func (c *Client) UseSession(ctx context.Context, fn func(SessionContext) error) error {
	return c.UseSessionWithOptions(ctx, options.Session(), fn)
}

// UseSessionWithOptions is UseSession with options.
func (c *Client) UseSessionWithOptions(ctx context.Context, opts *options.SessionOptions,
	fn func(SessionContext) error) error {
	s, err := c.StartSession(opts)
	if err != nil {
		return err
	}
	defer s.EndSession(ctx)
	return fn(NewSessionContext(ctx, s))
}

func (s *sessionOf) session() {}

// ClientSession returns an empty struct.
func (s *sessionOf) ClientSession() *session.Client { return new(session.Client) }

func (s *sessionOf) Client() *Client { return s.client }

func (s *sessionOf) ID() bson.Raw { return bson.Raw(s.inner.ID()) }

func (s *sessionOf) ClusterTime() bson.Raw { return bson.Raw(s.inner.ClusterTime()) }

func (s *sessionOf) OperationTime() *primitive.Timestamp { return s.inner.OperationTime() }

func (s *sessionOf) AdvanceClusterTime(d bson.Raw) error {
	return failure(s.inner.AdvanceClusterTime(v2bson.Raw(d)))
}

func (s *sessionOf) AdvanceOperationTime(ts *primitive.Timestamp) error {
	return failure(s.inner.AdvanceOperationTime(ts))
}

func (s *sessionOf) EndSession(ctx context.Context) { s.inner.EndSession(ctx) }

func transaction(opts []*options.TransactionOptions) []v2options.Lister[v2options.TransactionOptions] {
	if len(opts) == 0 {
		return nil
	}
	return []v2options.Lister[v2options.TransactionOptions]{convert.Transaction(
		options.MergeTransactionOptions(opts...))}
}

func (s *sessionOf) StartTransaction(opts ...*options.TransactionOptions) error {
	return failure(s.inner.StartTransaction(transaction(opts)...))
}

func (s *sessionOf) AbortTransaction(ctx context.Context) error {
	return failure(s.inner.AbortTransaction(ctx))
}

func (s *sessionOf) CommitTransaction(ctx context.Context) error {
	return failure(s.inner.CommitTransaction(ctx))
}

func (s *sessionOf) WithTransaction(ctx context.Context, fn func(ctx SessionContext) (any, error),
	opts ...*options.TransactionOptions) (any, error) {
	res, err := s.inner.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		return fn(NewSessionContext(ctx, s))
	}, transaction(opts)...)
	return res, failure(err)
}
