package exec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/consistency"
	"allium/internal/command"
	"allium/internal/errcode"
	"allium/internal/failure"
	"allium/internal/session"
	"allium/mongoerr"
)

// commitTimeout is the wtimeout of a commit that is tried again without one (specification:
// Transactions).
const commitTimeout = 10 * time.Second

// Commit commits the session's transaction (specification: Transactions, commitTransaction). It may
// be called again after an error labelled UnknownTransactionCommitResult.
//
// Commit and Abort enter the session by themselves, before they look at its transaction.
func (x *Executor) Commit(ctx context.Context, s *session.Session, limit Limit) error {
	if err := s.Enter(); err != nil {
		return err
	}
	defer s.Leave()
	txn := s.Transaction()
	send, again, err := txn.Commit()
	if err == nil {
		defer x.endTransactionSpan(ctx, txn)
	}
	if err != nil || !send {
		return err
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
	if err == nil {
		res.Release()
		return nil
	}
	if commitUnknown(err) {
		failure.AddLabel(err, mongoerr.LabelUnknownTransactionCommit)
	}
	if first := txn.Failure(); first != nil && mongoerr.HasCode(err, errcode.NoSuchTransaction) {
		err = fmt.Errorf("%w; the server aborted the transaction when an operation in it failed: %w", err, first)
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

// commitUnknown reports whether err leaves open if the transaction was committed.
func commitUnknown(err error) bool {
	var (
		sel *mongoerr.SelectionError
		wc  *mongoerr.WriteConcernError
		t   *mongoerr.TimeoutError
	)
	switch {
	case errors.As(err, &wc):
		return !errcode.Is(wc.Code, errcode.NeverSatisfied) // that says nothing of the commit's fate
	case errors.As(err, &sel), errors.As(err, &t), isNetworkError(err), isMaxTimeExpired(err):
		return true
	}
	return mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite)
}

// Abort aborts the session's transaction (specification: Transactions, abortTransaction). It
// returns an error only if there is nothing to abort.
func (x *Executor) Abort(ctx context.Context, s *session.Session, limit Limit) error {
	if err := s.Enter(); err != nil {
		return err
	}
	defer s.Leave()
	txn := s.Transaction()
	send, err := txn.Abort()
	if err != nil {
		return err
	}
	defer x.endTransactionSpan(ctx, txn)
	if send {
		op := NewOp(&command.EndTransaction{RecoveryToken: txn.RecoveryToken()})
		op.DB, op.Session, op.Limit, op.WriteConcern = "admin", s, limit, limit.concern(txn.Options().WriteConcern)
		if res, err := x.Run(ctx, &op); err == nil {
			res.Release()
		}
	}
	return nil
}
