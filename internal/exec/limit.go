package exec

import (
	"time"

	"allium/consistency"
	"allium/mongoerr"
)

// Limit is the timeoutMS of an operation (specification: Client Side Operations Timeout). The zero
// Limit says that none is set at any level. The deadline of a context is not one: it ends an
// operation, but changes nothing else about it.
type Limit struct {
	// Timeout is the timeoutMS that applies, nil if none is set. If one is, and be it 0, the older
	// timeouts do not count (socketTimeoutMS, waitQueueTimeoutMS, wTimeoutMS, maxTimeMS), and
	// nothing else bounds the number of retries.
	Timeout *time.Duration
	// Deadline is when it is up, the zero time if it never is, and Source whose it is.
	Deadline time.Time
	Source   mongoerr.Source
}

// NewLimit returns the limit of an operation that begins now. source names whose timeout it is, for
// error messages.
func NewLimit(timeout *time.Duration, source mongoerr.Source) Limit {
	l := Limit{Timeout: timeout, Source: source}
	if timeout != nil && *timeout > 0 {
		l.Deadline = time.Now().Add(*timeout)
	}
	return l
}

// Refreshed returns the limit of an operation that begins now and has the same timeout.
func (l Limit) Refreshed() Limit { return NewLimit(l.Timeout, l.Source) }

// set reports whether a timeoutMS is set.
func (l *Limit) set() bool { return l.Timeout != nil || !l.Deadline.IsZero() }

// concern returns a write concern as it is sent: with a timeoutMS, its own timeout does not count.
func (l *Limit) concern(wc *consistency.WriteConcern) *consistency.WriteConcern {
	if wc == nil || wc.Timeout == 0 || !l.set() {
		return wc
	}
	without := *wc
	without.Timeout = 0
	return &without
}

// Explain returns an error that the caller has read out of an operation's reply: as a
// *mongoerr.TimeoutError if it says that the server ran out of the operation's time (specification:
// Client Side Operations Timeout, "Error Transformations").
func (l *Limit) Explain(err error) error {
	if l.Deadline.IsZero() || !isMaxTimeExpired(err) {
		return err
	}
	t := &mongoerr.TimeoutError{Phase: mongoerr.PhaseCommand, Source: l.Source, Wrapped: err}
	if l.Timeout != nil {
		t.Elapsed = *l.Timeout - time.Until(l.Deadline)
	}
	return t
}
