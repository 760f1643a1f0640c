package exec

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"allium/consistency"
	"allium/internal/command"
	"allium/internal/errcode"
	"allium/internal/failure"
	guard "allium/internal/flight"
	"allium/internal/session"
	"allium/mongoerr"
)

// commitTimeout is the wtimeout of a commit that is tried again without one (specification:
// Transactions).
const commitTimeout = 10 * time.Second

// Commit commits the session's transaction (specification: Transactions, commitTransaction). It may
// be called again after an error labelled UnknownTransactionCommitResult, and after one that kept
// the commit from being sent: then the transaction is still open, and may be aborted, too.
//
// Commit and Abort enter the session by themselves, before they look at its transaction.
func (x *Executor) Commit(ctx context.Context, s *session.Session, limit Limit) error {
	if err := x.enter(s); err != nil {
		return named("commitTransaction", "admin", err)
	}
	defer s.Leave()
	txn := s.Transaction()
	send, again, err := txn.Commit()
	if err != nil {
		return unended(txn, err, "commitTransaction")
	}
	defer x.endTransactionSpan(ctx, txn)
	if !send {
		return nil
	}
	opts := txn.Options()
	wc := limit.concern(opts.WriteConcern)
	if again {
		wc = retriedCommitConcern(wc)
	}
	cmd := &command.EndTransaction{Commit: true, RecoveryToken: txn.RecoveryToken()}
	if d := opts.MaxCommitTime; d > 0 && !limit.set() {
		cmd.MaxTimeMS = command.MaxTimeMS(d)
	}
	op := NewOp(cmd)
	op.DB, op.Session, op.Limit, op.NoMaxTime = "admin", s, limit, cmd.MaxTimeMS != 0
	op.WriteConcern, op.RetryConcern = wc, retriedCommitConcern(wc)
	res, err := x.Run(ctx, &op)
	if !txn.Pending() {
		if refused(err) {
			x.abortRefused(ctx, s, limit)
		}
		txn.DropLate() // there is nothing to abort any more
	}
	if err == nil {
		res.Release()
		return nil
	}
	if !res.Unsent && commitUnknown(err) {
		failure.AddLabel(err, mongoerr.LabelUnknownTransactionCommit)
	}
	if first := txn.Failure(); first != nil && mongoerr.HasCode(err, errcode.NoSuchTransaction) {
		err = fmt.Errorf("%w; the server aborted the transaction when an operation in it failed: %w", err, first)
	}
	return err
}

// unended explains why there is no transaction to end: Close has aborted it, and not the program.
func unended(txn *session.Transaction, err error, command string) error {
	if txn.Revoked() {
		return named(command, "admin", mongoerr.ErrClientClosed)
	}
	return err
}

// retriedCommitConcern makes a write concern one of majority with a bound on the wait.
func retriedCommitConcern(wc *consistency.WriteConcern) *consistency.WriteConcern {
	out := consistency.WriteConcern{Timeout: commitTimeout}
	if wc != nil {
		out = *wc
		if out.Timeout == 0 {
			out.Timeout = commitTimeout
		}
	}
	out.W = "majority"
	return &out
}

// commitUnknown reports whether err leaves open if the transaction was committed. It does not if
// the caller's time was up before anything was sent (Result.Unsent), although the specification has
// the label for all errors of server selection.
func commitUnknown(err error) bool {
	var (
		sel *mongoerr.SelectionError
		wc  *mongoerr.WriteConcernError
		t   *mongoerr.TimeoutError
	)
	switch {
	case errors.As(err, &wc):
		return !errcode.Is(wc.Code, errcode.NeverSatisfied) // that says nothing of the commit's fate
	case errors.As(err, &sel), errors.As(err, &t), failure.Network(err), isMaxTimeExpired(err):
		return true
	}
	return mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite)
}

// Abort aborts the session's transaction (specification: Transactions, abortTransaction). It
// returns an error only if there is nothing to abort.
func (x *Executor) Abort(ctx context.Context, s *session.Session, limit Limit) error {
	if err := x.enter(s); err != nil {
		return named("abortTransaction", "admin", err)
	}
	defer s.Leave()
	return x.abort(ctx, s, limit)
}

// AbortOpen aborts the session's transaction if one is open. It is for the end of a session, which
// may come while an operation runs: AbortOpen waits for it, at most until ctx ends.
func (x *Executor) AbortOpen(ctx context.Context, s *session.Session, limit Limit) {
	if s.Await(ctx) {
		x.abortEntered(ctx, s, limit)
	}
}

// abortEntered is AbortOpen in a session that the caller has entered, and leaves it.
func (x *Executor) abortEntered(ctx context.Context, s *session.Session, limit Limit) {
	defer s.Leave()
	if s.Transaction().Open() {
		_ = x.abort(ctx, s, limit) // errors of an abort are of no use to anybody
	}
}

// revoke is AbortOpen for the end of the client.
func (x *Executor) revoke(ctx context.Context, s *session.Session) {
	if s.AwaitLast(ctx) {
		if s.Transaction().Open() {
			s.Transaction().Revoke()
		}
		x.abortEntered(ctx, s, Limit{})
	}
}

// AbortLeft aborts the transaction of a session that has ended (session.Pool.Left).
func (x *Executor) AbortLeft(ctx context.Context, s *session.Session) {
	_ = x.abort(ctx, s, Limit{})
}

// AbortAll aborts the open transactions of a client that is being closed. One in which an operation
// runs has until patience ends; then the operation is interrupted.
func (x *Executor) AbortAll(ctx, patience context.Context) {
	var all sync.WaitGroup
	for _, s := range x.Sessions.Open() {
		all.Go(func() {
			stop := context.AfterFunc(patience, s.Transaction().Interrupt)
			defer stop()
			_ = guard.Apart(func() error { x.revoke(ctx, s); return nil })
		})
	}
	all.Wait()
}

// abort is Abort in a session that the caller has entered. It also runs while the client closes,
// which ends what is open.
func (x *Executor) abort(ctx context.Context, s *session.Session, limit Limit) error {
	txn := s.Transaction()
	send, err := txn.Abort()
	if err != nil {
		return unended(txn, err, "abortTransaction")
	}
	defer x.endTransactionSpan(ctx, txn)
	if !send {
		return nil
	}
	op := abortOp(s, limit)
	if x.abortBehind(ctx, txn, op) {
		return nil
	}
	res, err := x.RunClosing(ctx, &op)
	unanswered(txn, err)
	if err == nil {
		res.Release()
	}
	return nil
}

// unanswered takes an abort back whose time was up before the reply came. The server may be late
// with a command of the transaction, and never read what came behind it: the pool closes a
// connection that owes replies when another operation needs its place.
func unanswered(txn *session.Transaction, err error) {
	if failure.OutOfTime(err) {
		txn.NotSent()
	}
}

// refused reports whether a server has answered a commit by saying that there is none.
func refused(err error) bool {
	_, answered := err.(*mongoerr.ServerError)
	return answered && !commitUnknown(err)
}

// abortRefused aborts a transaction whose commit was refused, and of which a command may run still:
// the program went on after that command's context had ended, and the commit came to a server that
// did not know the transaction. When the command comes to run, it begins the transaction.
func (x *Executor) abortRefused(ctx context.Context, s *session.Session, limit Limit) {
	txn := s.Transaction()
	ctx, cancel := context.WithTimeout(ctx, AbortTimeout)
	defer cancel()
	x.abortBehind(ctx, txn, abortOp(s, limit))
}

// AbortTimeout bounds an abort for which the program has set no time, with its wait for a command
// of the transaction that runs still.
const AbortTimeout = 10 * time.Second

// abortOp returns the abort of the session's transaction.
func abortOp(s *session.Session, limit Limit) Op {
	txn := s.Transaction()
	op := NewOp(&command.EndTransaction{RecoveryToken: txn.RecoveryToken()})
	op.DB, op.Session, op.Limit, op.WriteConcern = "admin", s, limit, limit.concern(txn.Options().WriteConcern)
	return op
}

// abortBehind sends an abort behind a command of the transaction that the server may not have run
// yet. It reports false if there is none, or if the abort may be sent elsewhere.
func (x *Executor) abortBehind(ctx context.Context, txn *session.Transaction, op Op) bool {
	c := txn.TakeLate()
	if c == nil {
		return false
	}
	defer c.Return()
	op.Server, op.Conn, op.Behind = x.Topology.Server(c.Addr()), c, true
	if op.Server == nil || !c.Alive() || ctx.Err() != nil {
		return false
	}
	res, err := x.RunClosing(ctx, &op)
	unanswered(txn, err)
	if err == nil {
		res.Release()
	}
	return !failure.Connection(err)
}
