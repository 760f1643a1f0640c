package allium

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"allium/consistency"
	"allium/internal/errcode"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/flight"
	"allium/internal/option"
	"allium/internal/session"
	"allium/mongoerr"
)

// TransactionOptions are the options of a transaction. Nil fields are inherited from the session's
// defaults, and then from the client.
type TransactionOptions struct {
	// ReadConcern is sent with the transaction's first operation, WriteConcern with its commit and
	// abort.
	ReadConcern  *consistency.ReadConcern
	WriteConcern *consistency.WriteConcern
	// ReadPreference must be the primary.
	ReadPreference *consistency.ReadPreference
	// MaxCommitTime bounds the server's work on one commit, to the millisecond. A timeout replaces
	// it.
	//
	// Deprecated: set Timeout in SessionOptions, or in those of CommitTransaction or Transact.
	MaxCommitTime time.Duration
	// Timeout bounds a Transact as a whole; a pointer to 0 means no limit. Nil: the session's
	// timeout. StartTransaction rejects it: commit and abort each have a timeout of their own.
	Timeout *time.Duration
}

func (o TransactionOptions) inner() session.TransactionOptions {
	return session.TransactionOptions{ReadConcern: o.ReadConcern, WriteConcern: o.WriteConcern,
		ReadPreference: o.ReadPreference, MaxCommitTime: o.MaxCommitTime}
}

// StartTransaction starts a transaction: the operations whose context carries the session belong to
// it, until CommitTransaction or AbortTransaction. Transact is easier to use correctly.
func (s *Session) StartTransaction(opts ...TransactionOptions) error {
	o := option.Merge(opts)
	if o.Timeout != nil {
		return errors.New("start transaction: a timeout is for Transact, CommitTransaction and AbortTransaction")
	}
	return s.start(o)
}

func (s *Session) start(o TransactionOptions) error {
	inherited := s.client.inherited()
	clientDefaults := TransactionOptions{ReadConcern: inherited.readConcern, WriteConcern: inherited.writeConcern,
		ReadPreference: inherited.readPreference}
	o = option.Copy(o)
	t := o.inner().Inherit(s.inner.Options().Transaction).Inherit(clientDefaults.inner())
	if t.MaxCommitTime < 0 {
		return negative("MaxCommitTime", t.MaxCommitTime)
	}
	if err := t.WriteConcern.Validate(); err != nil {
		return err
	}
	if !t.WriteConcern.Acknowledged() {
		return errors.New("transactions do not support unacknowledged write concerns")
	}
	return s.client.exec.InUse(s.inner.StartTransaction(t))
}

// EndTransactionOptions are the options of CommitTransaction and AbortTransaction.
type EndTransactionOptions struct {
	// Timeout bounds the operation; a pointer to 0 means no limit. Nil: the session's timeout.
	Timeout *time.Duration
}

// CommitTransaction commits the transaction. If the error has the label
// UnknownTransactionCommitResult, the outcome is unknown, and CommitTransaction may be called
// again. It is retried once after a network error, and within a timeout as long as there is time.
//
// If the commit could not be sent, because ctx had ended or no server was found, the transaction is
// still open (InTransaction): it can be committed again, aborted, or left to End. Another operation
// on the session aborts it.
func (s *Session) CommitTransaction(ctx context.Context, opts ...EndTransactionOptions) error {
	limit, err := s.ending(ctx, opts)
	if err != nil {
		return fmt.Errorf("commit transaction: %w", err)
	}
	return s.client.exec.Commit(ctx, s.inner, limit)
}

// AbortTransaction aborts the transaction, even if ctx has ended: it returns at most half a second
// later. It does not return errors of the server, which aborts the transaction by itself in time.
// If no server could be told, the transaction is still open (InTransaction). Whatever the session
// is used for next tries again, as does End, and then the client does, in the background, for a
// minute more or until it is closed.
func (s *Session) AbortTransaction(ctx context.Context, opts ...EndTransactionOptions) error {
	limit, err := s.ending(ctx, opts)
	if err != nil {
		return fmt.Errorf("abort transaction: %w", err)
	}
	ctx, cancel := flight.Linger(ctx, abortGrace)
	defer cancel()
	return s.client.exec.Abort(ctx, s.inner, limit)
}

// ending returns what bounds a commit or an abort.
func (s *Session) ending(ctx context.Context, opts []EndTransactionOptions) (exec.Limit, error) {
	o := option.Merge(opts)
	switch {
	case ctx == nil:
		return exec.Limit{}, errNilContext
	case s.bound == nil:
		return s.limit(o.Timeout)
	case o.Timeout != nil:
		return exec.Limit{}, errors.New("an operation inside Transact with a timeout cannot have a timeout of its own")
	}
	return *s.bound, nil
}

// Transact runs fn in a transaction of a new session and commits it.
//
//	err := client.Transact(ctx, func(ctx context.Context) error {
//		if _, err := accounts.UpdateOne(ctx, from, debit); err != nil {
//			return err
//		}
//		_, err := accounts.UpdateOne(ctx, to, credit)
//		return err
//	})
//
// fn must pass its context to all operations of the transaction, and must return their errors: the
// server aborts the transaction when an operation in it fails. If fn returns nil nevertheless,
// Transact aborts the transaction and goes on as if fn had returned the first of those errors, also
// if the operation did not reach a server: because its document has no BSON form, no server or
// connection was found in time, or code of the program's panicked in it. A document that does not
// decode, and arguments that are refused before there is an operation, are left to fn. To handle
// errors differently, use StartTransaction.
//
// After an error with the label TransientTransactionError, Transact calls fn again after a short
// wait, so fn must have no side effects outside of the transaction. It retries until the timeout
// or, without one, for 120 seconds, and as long retries commits whose outcome is unknown. The
// timeout also bounds the operations that use fn's context; an operation with its own
// Timeout fails.
//
// Transactions do not nest. Transact returns an error if ctx carries a session of the client with
// an open transaction. To take part in that transaction, run the operations with ctx; to start an
// independent one, pass WithSession(ctx, nil).
//
// If fn returns another error or panics, or if ctx ends, the transaction is aborted. The abort
// takes at most the timeout again or, without one, ten seconds, and at most half a second once ctx
// has ended; then it goes on in the background, as that of Session.End does. If fn itself commits
// or aborts, Transact does neither. If the client is closed while fn runs, the transaction is
// aborted and Transact returns mongoerr.ErrClientClosed.
//
// If time runs out before the transaction succeeds, the error is a *mongoerr.TimeoutError that
// wraps the last failure and has its labels.
func (c *Client) Transact(ctx context.Context, fn func(ctx context.Context) error, opts ...TransactionOptions) error {
	if err := c.checkTransact(ctx, fn); err != nil {
		return err
	}
	s, err := c.StartSession()
	if err != nil {
		return err
	}
	defer s.inner.End() // Transact leaves nothing open
	return s.Transact(ctx, fn, opts...)
}

// checkTransact reports arguments that no transaction can run with.
func (c *Client) checkTransact(ctx context.Context, fn func(ctx context.Context) error) error {
	switch {
	case ctx == nil:
		return errNilContext
	case fn == nil:
		return errors.New("transact: function is nil")
	}
	if outer := SessionFrom(ctx); outer != nil && outer.client == c && outer.inner.Transaction().Running() {
		return errors.New("transact: the context belongs to an open transaction, and transactions do not nest")
	}
	return nil
}

// The limits of the specification Convenient API for Transactions.
const (
	transactTimeout        = 120 * time.Second
	transactBackoffInitial = 5 * time.Millisecond
	transactBackoffMax     = 500 * time.Millisecond
)

// Transact is like Client.Transact on an existing session, which must have no open transaction.
func (s *Session) Transact(ctx context.Context, fn func(ctx context.Context) error, opts ...TransactionOptions) error {
	if err := s.client.checkTransact(ctx, fn); err != nil {
		return err
	}
	o := option.Merge(opts)
	timeout := o.Timeout
	bound, err := s.limit(timeout)
	if err != nil {
		return fmt.Errorf("transact: %w", err)
	}
	o.Timeout = nil
	w := transact{session: s, caller: ctx, opts: o, timeout: timeout, started: time.Now(), limit: transactTimeout,
		source: mongoerr.SourceTransact}
	if bound.Timeout != nil {
		w.limit, w.source = math.MaxInt64, bound.Source
		if d := *bound.Timeout; d > 0 {
			w.limit = d
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, bound.Deadline)
			defer cancel()
		}
		outer := s.bind(&bound)
		defer s.bind(outer)
	}
	return w.run(ctx, fn)
}

// transact is the state of one Transact.
type transact struct {
	session *Session
	caller  context.Context // without the bound of the timeout, which begins anew for an abort
	opts    TransactionOptions
	timeout *time.Duration // that was given to the call
	started time.Time
	limit   time.Duration
	source  mongoerr.Source // of the limit
	aborted bool            // abort was called for this attempt
}

func (w *transact) run(ctx context.Context, fn func(ctx context.Context) error) error {
	s := w.session
	defer w.abort() // if its commit was never sent, and if fn panics
	inTxn := WithSession(ctx, s)
	var last error
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			if err := w.backoff(ctx, attempt, last); err != nil {
				return err
			}
		}
		if err := s.start(w.opts); err != nil {
			return err
		}
		w.aborted = false
		if err := w.call(s.client.exec.InTransaction(inTxn, s.inner), fn); err != nil {
			switch {
			case mongoerr.HasLabel(err, mongoerr.LabelTransientTransaction) && !w.over(ctx):
				last = err
				continue
			case mongoerr.HasLabel(err, mongoerr.LabelTransientTransaction):
				return w.stopped(ctx, err)
			case last != nil && s.bound != nil && failure.OutOfTime(err):
				return w.exhausted(err, last)
			}
			return err
		}
		switch txn := s.inner.Transaction(); {
		case txn.Revoked():
			return fmt.Errorf("transact: %w", mongoerr.ErrClientClosed)
		case !txn.Running():
			return nil // fn has committed or aborted by itself
		}
		if ctx.Err() != nil {
			if first := s.inner.Transaction().Failed(); first != nil {
				last = first
			}
			return w.stopped(ctx, last)
		}
		again, err := w.commit(ctx)
		if !again {
			return err
		}
		last = err
	}
}

// call calls fn, and aborts the transaction if fn returns an error; if it panics, run does. An
// error of an operation that fn has kept to itself is as good as returned.
func (w *transact) call(ctx context.Context, fn func(ctx context.Context) error) error {
	err := fn(ctx)
	if txn := w.session.inner.Transaction(); err == nil && txn.Running() && ctx.Err() == nil {
		if first := txn.Failed(); first != nil {
			err = fmt.Errorf(
				"transact: an operation in the transaction failed, and the function did not return its error: %w",
				first)
		}
	}
	if err != nil {
		w.abort()
	}
	return err
}

// abort aborts the transaction if it is open. An abort that could not be sent is not tried again:
// the caller waits for one only.
func (w *transact) abort() {
	if !w.aborted && w.session.inner.Transaction().State() != session.TransactionAborted {
		w.aborted = true
		w.session.abortOpen(w.caller, w.timeout)
	}
}

// commit commits, and retries as long as the outcome is unknown. again says that the whole
// transaction must be repeated. The first retry waits for nothing; the others wait as repetitions
// of the whole do. The specification asks for no backoff here, since a commit waits for a server;
// but behind a load balancer nothing waits, and it would be tried as fast as it fails.
func (w *transact) commit(ctx context.Context) (again bool, err error) {
	var last error
	for attempt := 0; ; attempt++ {
		if attempt > 1 {
			if err := w.backoff(ctx, attempt-1, last); err != nil {
				return false, w.commitOnceMore(ctx, last, err)
			}
		}
		err := w.session.CommitTransaction(ctx)
		switch {
		case err == nil:
			return false, nil
		case mongoerr.HasLabel(err, mongoerr.LabelUnknownTransactionCommit) &&
			!mongoerr.HasCode(err, errcode.MaxTimeMSExpired):
			switch {
			case last != nil && w.session.bound != nil && failure.OutOfTime(err):
				return false, w.commitOnceMore(ctx, err, w.exhausted(err, last))
			case w.over(ctx):
				return false, w.commitOnceMore(ctx, err, w.stopped(ctx, err))
			}
			last = err
		case mongoerr.HasLabel(err, mongoerr.LabelTransientTransaction):
			return true, err
		default:
			return false, err
		}
	}
}

// commitOnceMore tries a commit once more, for as long as an abort may take, after the context has
// ended: it may have been lost on its way to a server that has the transaction open still, and to
// abort it is not allowed once a commit may have arrived. last is how the last attempt failed. It
// returns nil if the commit succeeds, else err.
func (w *transact) commitOnceMore(ctx context.Context, last, err error) error {
	var (
		t       *mongoerr.TimeoutError
		concern *mongoerr.WriteConcernError
	)
	sent := w.session.inner.Transaction().State() == session.TransactionCommitted && !w.session.InTransaction()
	if ctx.Err() == nil && !failure.OutOfTime(last) || !sent || errors.As(last, &concern) ||
		errors.As(last, &t) && t.Phase == mongoerr.PhaseRead {
		return err // there is time, nothing was sent, or a server is at it
	}
	ctx, cancel := flight.Linger(ctx, abortGrace)
	defer cancel()
	if w.session.client.exec.Commit(ctx, w.session.inner, exec.Limit{}) == nil {
		return nil
	}
	return err
}

// over reports whether there must be no further attempt: time is up, or the context has ended.
func (w *transact) over(ctx context.Context) bool {
	return ctx.Err() != nil || time.Since(w.started) >= w.limit
}

// backoff waits before another attempt of the whole transaction or of its commit. The one before
// ended in the error last.
func (w *transact) backoff(ctx context.Context, attempt int, last error) error {
	d := min(float64(transactBackoffInitial)*math.Pow(1.5, float64(attempt)), float64(transactBackoffMax))
	wait := time.Duration(w.session.client.exec.Jitter() * d)
	if w.over(ctx) || time.Since(w.started)+wait >= w.limit {
		return w.stopped(ctx, last)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return w.stopped(ctx, last)
	}
}

// stopped says that there was no time for another attempt after err, or that the context has ended.
func (w *transact) stopped(ctx context.Context, err error) error {
	if failure.OutOfTime(err) {
		return err
	}
	t := &mongoerr.TimeoutError{Phase: mongoerr.PhaseTransaction, Source: w.source, Elapsed: time.Since(w.started),
		Wrapped: err}
	if ended := ctx.Err(); ended != nil {
		t.Wrapped = failure.Join(ended, err)
		if t.Elapsed < w.limit {
			t.Source = "" // it was the caller's context
		}
	}
	return failure.Cause(ctx, w.wrap(t, err))
}

// exhausted says that time was up in the middle of an attempt, and keeps why there was more than
// one: the error last.
func (w *transact) exhausted(err, last error) error {
	return w.wrap(&mongoerr.TimeoutError{Phase: mongoerr.PhaseTransaction, Source: w.source,
		Elapsed: time.Since(w.started), Wrapped: failure.Join(err, last)}, last)
}

// wrap copies the labels of err to t.
func (w *transact) wrap(t *mongoerr.TimeoutError, err error) error {
	for _, label := range failure.AllLabels(err) {
		failure.AddTo(&t.Labels, label)
	}
	return t
}
