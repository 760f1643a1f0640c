package exec

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"allium/event"
	"allium/internal/errcode"
	"allium/internal/failure"
	"allium/mongoerr"
)

// label adds the labels that the driver must add to an error (Retryable Writes, Transactions).
func (r *run) label(err error, stage stage) {
	lost := failure.Network(err) || errors.Is(err, mongoerr.ErrPoolCleared)
	if r.retryableWrite() && lost {
		failure.AddLabel(err, mongoerr.LabelRetryableWrite)
	}
	if r.inTxn && (lost || stage == stageSelect && !isIncompatible(err) ||
		stage == stageCheckOut && failure.OutOfTime(err)) {
		failure.AddLabel(err, mongoerr.LabelTransientTransaction)
	}
}

// retryableWrite reports whether Retryable Writes applies to the operation and to the server that
// was selected for it.
func (r *run) retryableWrite() bool {
	return r.op.EndsTransaction || r.x.RetryWrites && r.op.Kind == Write && r.op.Retryable && !r.mixed && !r.inTxn &&
		!r.op.unacknowledged() &&
		(r.selected == nil || r.selected.Kind != event.Standalone)
}

// retries decides whether a further attempt is allowed after err, and notes which server it should
// avoid.
func (r *run) retries(ctx context.Context, err error, stage stage) bool {
	if ctx.Err() != nil || stage == stageBuild || stage == stageSelect || r.op.Behind {
		return false // a selection error says that no server could be found in the time that there was
	}
	if failure.OutOfTime(err) {
		return false // there is no time left, or there was none to wait any longer for a connection
	}
	if failure.Network(err) && r.pinnedConn() != nil && !r.op.EndsTransaction {
		return false // the cursor or transaction is gone with its connection
	}
	allowed := 1
	if r.op.set() {
		allowed = math.MaxInt
	}
	overload := mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded)
	switch {
	case isRetryableOverload(err) && r.retriesOverload():
	case r.op.Kind == Read && r.op.Retryable && r.x.RetryReads && !r.inTxn && isRetryableRead(err):
		policy := r.x.ReadRetry
		if policy.UntilSuccess {
			allowed = math.MaxInt
			if failure.SocketTimeout(err) {
				if r.socketTimeouts++; r.socketTimeouts >= 2 {
					return false
				}
			}
		}
		if policy.MaxAttempts > 0 {
			allowed = policy.MaxAttempts - 1
		}
	case r.retryableWrite() && (stage == stageCheckOut || r.txnNumber != 0 || r.op.EndsTransaction) &&
		mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite):
	default:
		return false
	}
	if r.overloaded = r.overloaded || overload; r.overloaded {
		// Once a server is overloaded, all policies share this bound (Client Backpressure).
		allowed = r.x.MaxAdaptiveRetries
	}
	if r.attempts > allowed {
		return false
	}
	sharded := r.x.Topology.Description().Kind == event.Sharded
	if (sharded || overload && r.x.OverloadRetargeting) && r.addr != "" && !slices.Contains(r.avoid, r.addr) {
		r.avoid = append(r.avoid, r.addr)
	}
	return true
}

// retriesOverload reports whether the client's options let the operation be tried again after
// overload.
func (r *run) retriesOverload() bool {
	switch {
	case r.op.EndsTransaction:
		return true
	case r.op.Kind == Write || r.op.OutputStage:
		return r.x.RetryWrites
	case r.op.Kind == Read:
		return r.x.RetryReads
	}
	return r.x.RetryReads && r.x.RetryWrites
}

// The backoff of the specification Client Backpressure.
const (
	baseBackoff = 100 * time.Millisecond
	maxBackoff  = 10 * time.Second
)

// backoff waits before a retry if the cause is overload. It reports false if there is no time left
// for a retry.
func (r *run) backoff(ctx context.Context, cause error) bool {
	if !mongoerr.HasLabel(cause, mongoerr.LabelSystemOverloaded) {
		return true
	}
	base := baseBackoff
	if asked := baseBackoffOf(cause); asked > 0 {
		base = asked
	}
	d := maxBackoff
	if r.attempts < 16 && base < maxBackoff>>r.attempts {
		d = base << r.attempts
	}
	d = time.Duration(r.x.Jitter() * float64(d))
	if !r.deadline.IsZero() && time.Until(r.deadline) <= d {
		return false
	}
	r.flight.phase.Store(&phaseBackoff)
	start := time.Now()
	defer func() { r.tells.backoff += time.Since(start) }()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// What an operation waits for behind a load balancer before it asks for a connection once more.
const (
	reconnectPause    = 100 * time.Millisecond // doubled each time
	maxReconnectPause = time.Second
)

// pause waits before another attempt after no connection could be made behind a load balancer.
// Elsewhere the pool is paused then, and the selection waits for a check of the server. Nothing
// checks a load balancer, and its pool is never paused: without a pause, an operation with a
// timeout would dial as fast as it is refused. The first retry waits for nothing. The specification
// Client Side Operations Timeout wants as many retries as possible, and finds backoffs unnecessary
// because maxConnecting bounds how many connections are made at a time; it does not bound how fast.
// Half of the time that is left stays for the attempt. It reports false if the context has ended.
func (r *run) pause(ctx context.Context, stage stage) bool {
	if stage != stageCheckOut || r.attempts < 2 || r.selected == nil || r.selected.Kind != event.LoadBalancer {
		return true
	}
	d := min(reconnectPause<<min(r.attempts-2, 8), maxReconnectPause)
	d = time.Duration(r.x.Jitter() * float64(d))
	if !r.deadline.IsZero() {
		d = max(min(d, time.Until(r.deadline)/2), time.Millisecond)
	}
	r.flight.phase.Store(&phaseBackoff)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// baseBackoffOf returns the base that an overloaded server asked for, or 0.
func baseBackoffOf(err error) time.Duration {
	var e *mongoerr.ServerError
	if !errors.As(err, &e) {
		return 0
	}
	v := e.Raw.Lookup("baseBackoffMS")
	ms, ok := v.Double()
	if !ok {
		n, _ := v.AsInt64()
		ms = float64(n)
	}
	if !(ms > 0) { // also if it is no number at all
		return 0
	}
	return time.Duration(min(ms*float64(time.Millisecond), float64(maxBackoff)))
}

// isRetryableOverload reports whether err says that the server was too busy to begin with the
// command (specification: Client Backpressure).
func isRetryableOverload(err error) bool {
	return mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) && mongoerr.HasLabel(err, mongoerr.LabelRetryable)
}

// isIncompatible reports whether no server was selected because the driver and the deployment have
// no version in common, which another try does not change.
func isIncompatible(err error) bool {
	e, ok := errors.AsType[*mongoerr.SelectionError](err)
	return ok && e.Topology != nil && e.Topology.CompatibilityErr != nil
}

// isMaxTimeExpired reports whether err, or an error that it wraps, is the server's
// MaxTimeMSExpired.
func isMaxTimeExpired(err error) bool { return mongoerr.HasCode(err, errcode.MaxTimeMSExpired) }

// isRetryableRead reports whether Retryable Reads lets a read be tried again after err.
func isRetryableRead(err error) bool {
	if failure.Network(err) || errors.Is(err, mongoerr.ErrPoolCleared) {
		return true
	}
	var e *mongoerr.ServerError
	return errors.As(err, &e) && errcode.Is(e.Code, errcode.RetryableRead)
}
