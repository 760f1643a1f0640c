package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
)

// Errors of using a session wrongly.
var (
	ErrEnded      = errors.New("session has ended: start another one")
	ErrConcurrent = errors.New(
		"session is used by two operations at once: a session belongs to one goroutine at a time")
)

// Options are the options of an explicit session.
type Options struct {
	// CausalConsistency makes each operation see the session's earlier ones. Nil means true, unless
	// Snapshot is set.
	CausalConsistency *bool
	// Snapshot makes all reads of the session see the data of one point in time.
	Snapshot bool
	// SnapshotTime sets that point; nil lets the first read choose it. Only with Snapshot.
	SnapshotTime *bson.Timestamp
	// Transaction holds defaults for the session's transactions.
	Transaction TransactionOptions
	// Timeout is the session's default for commit, abort, withTransaction and end. Nil: the
	// client's.
	Timeout *time.Duration
}

// Session is an explicit client session. One operation at a time may use it; a second one gets
// ErrConcurrent.
type Session struct {
	pool    *Pool
	opts    Options
	causal  bool
	timeout func() *int64 // the deployment's session timeout, in minutes

	busy    atomic.Bool
	waiting atomic.Pointer[chan struct{}] // closed by who leaves next
	left    atomic.Bool                   // nobody will enter any more
	mu      sync.Mutex                    // guards what the user may read while an operation runs
	ended   atomic.Bool
	gone    bool           // the server session was given back
	sess    *ServerSession // taken with the first command

	clusterTime   *ClusterTime
	operationTime *bson.Timestamp
	snapshotTime  *bson.Timestamp

	txn Transaction
}

// New starts a session. timeout returns the deployment's logicalSessionTimeoutMinutes.
func New(pool *Pool, timeout func() *int64, opts Options) (*Session, error) {
	causal := !opts.Snapshot
	if opts.CausalConsistency != nil {
		causal = *opts.CausalConsistency
	}
	if opts.Snapshot && causal {
		return nil, errors.New("start session: Snapshot and CausalConsistency exclude each other")
	}
	if opts.SnapshotTime != nil && !opts.Snapshot {
		return nil, errors.New("start session: SnapshotTime needs Snapshot")
	}
	s := &Session{pool: pool, timeout: timeout, opts: opts, causal: causal, snapshotTime: copyTime(opts.SnapshotTime)}
	s.txn.session = s
	return s, nil
}

// Options returns what was given to New.
func (s *Session) Options() Options { return s.opts }

// Causal reports whether the session is causally consistent.
func (s *Session) Causal() bool { return s.causal }

// Enter begins an operation on the session; Leave ends it.
func (s *Session) Enter() error {
	if s.ended.Load() {
		return ErrEnded
	}
	if !s.busy.CompareAndSwap(false, true) {
		if s.ended.Load() {
			return ErrEnded
		}
		return ErrConcurrent
	}
	return nil
}

// Await is Enter for what ends a transaction beside the user's operations: it waits for the one
// that runs. It reports false if the session has ended, or if ctx ends first.
func (s *Session) Await(ctx context.Context) bool { return s.await(ctx, false) }

// AwaitLast is Await for the end of the client: it also waits for an operation that has outlived
// the session. It reports false if the session has been given back, or left to the pool's Left.
func (s *Session) AwaitLast(ctx context.Context) bool { return s.await(ctx, true) }

func (s *Session) await(ctx context.Context, ended bool) bool {
	for {
		switch {
		case s.left.Load(), s.ended.Load() && !ended:
			return false
		case s.busy.CompareAndSwap(false, true):
			return true
		}
		left := make(chan struct{})
		if other := s.waiting.Load(); other != nil {
			left = *other
		} else if !s.waiting.CompareAndSwap(nil, &left) {
			continue
		}
		if !s.busy.Load() || s.left.Load() {
			continue // it left before it could see who waits
		}
		select {
		case <-left:
		case <-ctx.Done():
			return false
		}
	}
}

// Leave ends what Enter began.
func (s *Session) Leave() {
	s.busy.Store(false)
	s.wake()
	if s.ended.Load() {
		s.giveBack() // it ended meanwhile
	}
}

// wake lets those who wait in await look again.
func (s *Session) wake() {
	if s.waiting.Load() != nil {
		if left := s.waiting.Swap(nil); left != nil {
			close(*left)
		}
	}
}

// Server returns the server session, taking one from the pool if there is none yet.
func (s *Session) Server() *ServerSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server()
}

func (s *Session) server() *ServerSession {
	if s.sess == nil {
		s.sess = s.pool.Get(s.timeout())
	}
	return s.sess
}

// ID returns the session's lsid document, nil if it has ended without ever being asked for one.
func (s *Session) ID() bson.Raw { return s.Server().ID }

// End gives the server session back, as soon as no operation runs on it. It may be called more than
// once. A transaction that a server still has open then is the pool's Left to end.
func (s *Session) End() {
	if !s.ended.Swap(true) {
		s.giveBack()
	}
}

// giveBack gives the server session back unless an operation runs, which does it when it leaves.
func (s *Session) giveBack() {
	if !s.busy.CompareAndSwap(false, true) { // and busy for ever
		return
	}
	// Who waits in AwaitLast hears of it only then: a client that closes must find the transaction
	// among what was left to it.
	defer func() {
		s.left.Store(true)
		s.wake()
	}()
	if s.pool.Left != nil && s.txn.begun() {
		s.pool.Left(s)
		return
	}
	s.Finish()
}

// LeaveTransaction takes the transaction out of the session if its end is Pending, and leaves it to
// the pool's Left: the session goes on to something else, and the server has the transaction open
// still. The caller holds the session.
func (s *Session) LeaveTransaction() {
	if !s.txn.Pending() {
		return
	}
	old := &Session{pool: s.pool, opts: s.opts, causal: s.causal, timeout: s.timeout, clusterTime: s.ClusterTime(),
		sess: s.pool.lend(s.Server())}
	old.ended.Store(true)
	old.busy.Store(true)
	old.left.Store(true)
	s.txn.handOver(&old.txn, old)
	if s.pool.Left != nil {
		s.pool.Left(old)
	} else {
		old.Finish()
	}
}

// Finish gives the server session of a session back that Left was called with.
func (s *Session) Finish() {
	used, gone := s.leaveServer()
	if gone {
		return
	}
	// Listeners hear of the connections that are returned, and may fail.
	if used != nil {
		defer func() { s.pool.Put(used, s.timeout()) }()
	}
	defer s.txn.forget()
	defer s.txn.DropLate()
	s.txn.Unpin()
}

// leaveServer takes the server session, nil if there is none, out of a session that has ended and
// is busy for ever now. gone says that it has been taken before.
func (s *Session) leaveServer() (used *ServerSession, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, true
	}
	s.gone = true
	used = s.sess
	s.sess = &ServerSession{} // what can still be asked of it; the server's session may soon be another's
	if used != nil {
		*s.sess = *used
	}
	return used, false
}

// Ended reports whether End was called.
func (s *Session) Ended() bool { return s.ended.Load() }

// ClusterTime returns the newest cluster time that the session has seen, or nil.
func (s *Session) ClusterTime() *ClusterTime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clusterTime
}

// AdvanceClusterTime moves the session's cluster time forward; it never moves it back.
func (s *Session) AdvanceClusterTime(t *ClusterTime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusterTime = Newest(s.clusterTime, t)
}

// OperationTime returns the time of the session's last operation, or nil. It is a copy.
func (s *Session) OperationTime() *bson.Timestamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	return copyTime(s.operationTime)
}

// AdvanceOperationTime moves the session's operation time forward; it never moves it back.
func (s *Session) AdvanceOperationTime(t bson.Timestamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.operationTime == nil || s.operationTime.Compare(t) < 0 {
		s.operationTime = &t
	}
}

// SnapshotTime returns the point in time that a snapshot session reads at, or nil before it is
// known. It is a copy.
func (s *Session) SnapshotTime() *bson.Timestamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	return copyTime(s.snapshotTime)
}

func copyTime(t *bson.Timestamp) *bson.Timestamp {
	if t == nil {
		return nil
	}
	c := *t
	return &c
}

// Observe records what a reply says: cluster time, operation time, snapshot time and recovery
// token.
func (s *Session) Observe(r ReplyTimes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ClusterTime != nil {
		if t := later(s.clusterTime, r.ClusterTime); t != nil {
			s.clusterTime = t
		}
	}
	if !r.OperationTime.IsZero() && (s.operationTime == nil || s.operationTime.Compare(r.OperationTime) < 0) {
		t := r.OperationTime
		s.operationTime = &t
	}
	if s.opts.Snapshot && s.snapshotTime == nil && !r.SnapshotTime.IsZero() {
		t := r.SnapshotTime
		s.snapshotTime = &t
	}
	if r.RecoveryToken != nil {
		s.txn.recoveryToken = append(bson.Raw(nil), r.RecoveryToken...)
	}
}

// ReplyTimes is what the executor reads out of a reply for the session. The documents share the
// reply's memory.
type ReplyTimes struct {
	ClusterTime   bson.Raw
	OperationTime bson.Timestamp
	SnapshotTime  bson.Timestamp
	RecoveryToken bson.Raw
}
