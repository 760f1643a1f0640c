package session

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
)

func minutes(n int64) *int64 { return &n }

func TestPoolIsLIFO(t *testing.T) {
	var p Pool
	a, b := p.Get(minutes(30)), p.Get(minutes(30))
	p.Put(a, minutes(30))
	p.Put(b, minutes(30))
	if got := p.Get(minutes(30)); got != b {
		t.Error("the session that was returned last is to be used first")
	}
	if got := p.Get(minutes(30)); got != a {
		t.Error("then the one before")
	}
}

func TestPoolDropsExpiredAndDirty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pool
		whole := p.Get(minutes(30))
		p.Put(whole, minutes(30))
		time.Sleep(29 * time.Minute) // it has a minute left, and not less than one
		if p.Get(minutes(30)) != whole {
			t.Error("a session with a minute left is not used")
		}
		old, dirty := p.Get(minutes(30)), p.Get(minutes(30))
		p.Put(old, minutes(30))
		dirty.MarkDirty()
		p.Put(dirty, minutes(30))
		time.Sleep(29*time.Minute + time.Second)
		fresh := p.Get(minutes(30))
		if fresh == old || fresh == dirty {
			t.Error("got a session that is about to expire or dirty")
		}
		p.Put(fresh, minutes(30))
		if ids := p.Drain(); len(ids) != 1 {
			t.Errorf("%d sessions are pooled, want 1", len(ids))
		}
		// The old end goes when one is put back, though nobody asks for it.
		early, busy := p.Get(minutes(30)), p.Get(minutes(30))
		p.Put(early, minutes(30))
		time.Sleep(29*time.Minute + time.Second)
		busy.Touch()
		p.Put(busy, minutes(30))
		if n := p.Stats().Pooled; n != 1 {
			t.Errorf("%d sessions are pooled, want 1: the other has expired", n)
		}
		p.Drain()
		late := p.Get(minutes(30))
		time.Sleep(30 * time.Minute) // in use, without a command
		p.Put(late, minutes(30))
		if ids := p.Drain(); len(ids) != 0 {
			t.Errorf("%d sessions are pooled, though expired when they were returned", len(ids))
		}
		// Behind a load balancer no timeout is known, and nothing expires.
		p.Put(old, nil)
		time.Sleep(time.Hour)
		if p.Get(nil) != old {
			t.Error("a session expired although no timeout is known")
		}
	})
}

func TestServerSessionID(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		id := newServerSession().ID
		if err := id.Validate(); err != nil {
			t.Fatal(err)
		}
		u, ok := id.Lookup("id").Binary()
		if !ok || u.Subtype != bson.BinaryUUID || len(u.Data) != 16 || u.Data[6]>>4 != 4 || u.Data[8]>>6 != 2 {
			t.Fatalf("id is no version 4 UUID: %x", u.Data)
		}
		if seen[string(u.Data)] {
			t.Fatal("id came twice")
		}
		seen[string(u.Data)] = true
	}
}

func clusterTime(sec uint32) bson.Raw {
	start, d := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendTimestamp(d, "clusterTime", bson.Timestamp{T: sec}), start)
}

func TestClockOnlyMovesForward(t *testing.T) {
	var c Clock
	for _, sec := range []uint32{5, 3, 9, 7} {
		c.AdvanceRaw(clusterTime(sec))
	}
	if got := c.Now().Time.T; got != 9 {
		t.Errorf("clock is at %d, want 9", got)
	}
	c.AdvanceRaw(bson.Raw{5, 0, 0, 0, 0})
	c.Advance(nil)
	if got := c.Now().Time.T; got != 9 {
		t.Errorf("clock is at %d after nonsense, want 9", got)
	}
}

func newSession(t *testing.T, opts Options) *Session {
	t.Helper()
	s, err := New(new(Pool), func() *int64 { return minutes(30) }, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSessionMisuse(t *testing.T) {
	s := newSession(t, Options{})
	if err := s.Enter(); err != nil {
		t.Fatal(err)
	}
	if err := s.Enter(); !errors.Is(err, ErrConcurrent) {
		t.Errorf("second operation at once: %v", err)
	}
	s.Leave()
	s.End()
	s.End()
	if err := s.Enter(); !errors.Is(err, ErrEnded) {
		t.Errorf("operation on an ended session: %v", err)
	}
	for _, o := range []Options{{Snapshot: true, CausalConsistency: new(true)}, {SnapshotTime: &bson.Timestamp{T: 1}}} {
		if _, err := New(new(Pool), nil, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	at := &bson.Timestamp{T: 1}
	for _, o := range []Options{{}, {CausalConsistency: new(false)}, {Snapshot: true}, {Snapshot: true, SnapshotTime: at}, {Snapshot: true, CausalConsistency: new(false), SnapshotTime: at}} {
		if _, err := New(new(Pool), nil, o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestTransactionStates walks through the table of the specification Transactions: what each method
// does in each state.
func TestTransactionStates(t *testing.T) {
	type outcome struct {
		err   error
		send  bool
		state TransactionState
	}
	begun := func(s *Session) *Transaction {
		s.StartTransaction(TransactionOptions{})
		s.txn.Sending()
		return &s.txn
	}
	in := map[TransactionState]func(s *Session){
		NoTransaction:         func(s *Session) {},
		StartingTransaction:   func(s *Session) { s.StartTransaction(TransactionOptions{}) },
		TransactionInProgress: func(s *Session) { begun(s) },
		TransactionCommitted:  func(s *Session) { begun(s).Commit(); s.txn.Sending() },
		TransactionAborted:    func(s *Session) { begun(s).Abort(); s.txn.Sending() },
		commitUnsent:          func(s *Session) { begun(s).Commit(); s.txn.Sending(); s.txn.NotSent() },
		abortUnsent:           func(s *Session) { begun(s).Abort() },
	}
	start := func(s *Session) (bool, error) { return false, s.StartTransaction(TransactionOptions{}) }
	commit := func(s *Session) (bool, error) { send, _, err := s.txn.Commit(); return send, err }
	abort := func(s *Session) (bool, error) { return s.txn.Abort() }
	for _, tc := range []struct {
		name string
		do   func(*Session) (bool, error)
		want map[TransactionState]outcome
	}{
		{"start", start, map[TransactionState]outcome{
			NoTransaction:         {nil, false, StartingTransaction},
			StartingTransaction:   {ErrTransactionInProgress, false, StartingTransaction},
			TransactionInProgress: {ErrTransactionInProgress, false, TransactionInProgress},
			TransactionCommitted:  {nil, false, StartingTransaction},
			TransactionAborted:    {nil, false, StartingTransaction},
			commitUnsent:          {nil, false, StartingTransaction},
			abortUnsent:           {nil, false, StartingTransaction},
		}},
		{"commit", commit, map[TransactionState]outcome{
			NoTransaction:         {ErrNoTransaction, false, NoTransaction},
			StartingTransaction:   {nil, false, TransactionCommitted},
			TransactionInProgress: {nil, true, commitUnsent},
			TransactionCommitted:  {nil, true, TransactionCommitted},
			TransactionAborted:    {ErrCommitAfterAbort, false, TransactionAborted},
			commitUnsent:          {nil, true, commitUnsent},
			abortUnsent:           {ErrCommitAfterAbort, false, abortUnsent},
		}},
		{"abort", abort, map[TransactionState]outcome{
			NoTransaction:         {ErrNoTransaction, false, NoTransaction},
			StartingTransaction:   {nil, false, TransactionAborted},
			TransactionInProgress: {nil, true, abortUnsent},
			TransactionCommitted:  {ErrAbortAfterCommit, false, TransactionCommitted},
			TransactionAborted:    {ErrAbortTwice, false, TransactionAborted},
			commitUnsent:          {nil, true, abortUnsent},
			abortUnsent:           {nil, true, abortUnsent},
		}},
	} {
		for state, want := range tc.want {
			s := newSession(t, Options{})
			in[state](s)
			if s.txn.now() != state {
				t.Fatalf("could not get into %v", state)
			}
			send, err := tc.do(s)
			if !errors.Is(err, want.err) || send != want.send || s.txn.now() != want.state {
				t.Errorf("%s in %q (%d): send %v, state %d, error %v; want %+v", tc.name, state, state, send, s.txn.now(), err, want)
			}
			open := want.state != NoTransaction && want.state != TransactionCommitted && want.state != TransactionAborted
			if known := len(s.pool.Open()) == 1; known != open || s.txn.Open() != open {
				t.Errorf("%s in %q (%d): the pool knows it as open: %v, open: %v, want %v", tc.name, state, state, known, s.txn.Open(), open)
			}
			if s.End(); len(s.pool.Open()) != 0 {
				t.Errorf("%s in %q (%d): the pool knows a transaction of a session that has ended", tc.name, state, state)
			}
		}
	}
}

// A transaction without an operation is unknown to every server: committing it sends nothing, and
// committing it again sends nothing either.
func TestEmptyTransactionIsNeverSent(t *testing.T) {
	s := newSession(t, Options{})
	s.StartTransaction(TransactionOptions{})
	for i := range 3 {
		send, again, err := s.txn.Commit()
		if send || again != (i > 0) || err != nil {
			t.Errorf("commit %d: send %v, again %v, error %v", i+1, send, again, err)
		}
	}
	if _, err := s.txn.Abort(); !errors.Is(err, ErrAbortAfterCommit) {
		t.Errorf("abort after it: %v", err)
	}
}

// A session that ends while an operation runs gives its server session back when that leaves, and
// who waits for the operation learns that the session has ended.
func TestEndOfBusySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, Options{})
		s.Enter()
		s.Server()
		entered := make(chan bool, 2)
		for range 2 {
			go func() { entered <- s.Await(t.Context()) }()
		}
		synctest.Wait()
		s.End()
		if n := s.pool.Stats().Pooled; n != 0 {
			t.Errorf("%d server sessions were given back under their operation", n)
		}
		s.Leave()
		if first, second := <-entered, <-entered; first || second {
			t.Errorf("a session that has ended was entered: %v, %v", first, second)
		}
		if n := s.pool.Stats(); n.Pooled != 1 || n.InUse != 0 {
			t.Errorf("sessions %+v, want one in the pool", n)
		}
		// The end of the client does not wait for a session that has been given back.
		if s.AwaitLast(t.Context()) {
			t.Error("a session that has been given back was entered")
		}
	})
}

// Await enters one after the other, and leaves with its context.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, Options{})
		inside, entered := 0, 0
		for range 20 {
			go func() {
				if !s.Await(t.Context()) {
					t.Error("not entered")
					return
				}
				if inside++; inside != 1 {
					t.Errorf("%d are inside", inside)
				}
				time.Sleep(time.Second)
				inside--
				entered++
				s.Leave()
			}()
		}
		synctest.Wait() // all but one wait
		soon, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if s.Await(soon) {
			t.Error("entered beside another")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if entered != 20 {
			t.Errorf("%d were inside, want 20", entered)
		}
	})
}

func TestTransactionNumbersGrow(t *testing.T) {
	s := newSession(t, Options{})
	for want := int64(1); want <= 3; want++ {
		if err := s.StartTransaction(TransactionOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := s.Server().TxnNumber; got != want {
			t.Errorf("transaction number %d, want %d", got, want)
		}
		s.txn.Abort()
	}
	snap := newSession(t, Options{Snapshot: true})
	if err := snap.StartTransaction(TransactionOptions{}); !errors.Is(err, ErrSnapshotTransaction) {
		t.Errorf("transaction in a snapshot session: %v", err)
	}
}

func TestEmptyCommitStaysEmpty(t *testing.T) {
	s := newSession(t, Options{})
	s.StartTransaction(TransactionOptions{})
	for i := range 2 {
		if send, _, err := s.txn.Commit(); send || err != nil {
			t.Errorf("commit %d of nothing: send %v, %v", i+1, send, err)
		}
	}
	s.txn.BeforeCommand()
	if s.txn.State() != NoTransaction {
		t.Errorf("a command after a commit leaves the session in %q", s.txn.State())
	}
}

// What can be asked of a session that has ended takes nothing out of the pool, and is not that of
// the pool's next user.
func TestEndedSession(t *testing.T) {
	var p Pool
	timeout := func() *int64 { return nil }
	first, err := New(&p, timeout, Options{})
	if err != nil {
		t.Fatal(err)
	}
	id := first.ID()
	first.End()
	first.End()
	unused, err := New(&p, timeout, Options{})
	if err != nil {
		t.Fatal(err)
	}
	unused.End()
	if unused.ID() != nil || unused.Server().Dirty() {
		t.Errorf("a session that was never used has the id %v", unused.ID())
	}
	next := p.Get(nil)
	if !bytes.Equal(next.ID, id) || len(p.stack) != 0 {
		t.Errorf("the pool gave %v, then has %d sessions; want %v", next.ID, len(p.stack), id)
	}
	next.MarkDirty()
	if !bytes.Equal(first.ID(), id) || first.Server().Dirty() {
		t.Error("a session that has ended is the one that uses its server session now")
	}
}

// The times that a session has seen never go back, whichever reply comes last.
func TestObserveNeverGoesBack(t *testing.T) {
	s := newSession(t, Options{})
	for _, seen := range []uint32{5, 9, 7} {
		s.Observe(ReplyTimes{OperationTime: bson.Timestamp{T: seen}})
	}
	if got := s.OperationTime(); got == nil || got.T != 9 {
		t.Errorf("operation time %v, want 9", got)
	}
	s.AdvanceOperationTime(bson.Timestamp{T: 8})
	if got := s.OperationTime(); got.T != 9 {
		t.Errorf("operation time %v after an older one, want 9", got)
	}
	s.AdvanceOperationTime(bson.Timestamp{T: 9, I: 1})
	if got := s.OperationTime(); got.T != 9 || got.I != 1 {
		t.Errorf("operation time %v, want 9, 1", got)
	}
	s.Observe(ReplyTimes{}) // a reply without it
	if got := s.OperationTime(); got == nil || got.I != 1 {
		t.Errorf("operation time %v after a reply without one", got)
	}
}

// What ends a pin besides a decision of the executor: another transaction, the command after a
// transaction, and the session's end. A commit may be repeated, and so stays where it was.
func TestUnpinnedByTheSession(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(s *Session)
		want bool // still pinned
	}{
		"another command in the transaction": {func(s *Session) { s.txn.BeforeCommand() }, true},
		"commit":                             {func(s *Session) { s.txn.Commit() }, true},
		"the command after a commit":         {func(s *Session) { s.txn.Commit(); s.txn.BeforeCommand() }, false},
		"the command after an abort":         {func(s *Session) { s.txn.Abort(); s.txn.BeforeCommand() }, false},
		"a transaction after a commit":       {func(s *Session) { s.txn.Commit(); s.StartTransaction(TransactionOptions{}) }, false},
		"the session's end":                  {func(s *Session) { s.End() }, false},
	} {
		s := newSession(t, Options{})
		if err := s.StartTransaction(TransactionOptions{}); err != nil {
			t.Fatal(err)
		}
		s.txn.Sending()
		s.txn.PinTo(Pin{Mongos: "a:1"})
		s.Observe(ReplyTimes{RecoveryToken: bson.Raw{5, 0, 0, 0, 0}})
		c.do(s)
		if got := s.txn.Pinned() != nil; got != c.want {
			t.Errorf("%s: pinned is %v, want %v", name, got, c.want)
		}
		if name == "the command after a commit" && (s.txn.State() != NoTransaction || s.txn.RecoveryToken() != nil) {
			t.Errorf("%s: %v with a recovery token %v", name, s.txn.State(), s.txn.RecoveryToken())
		}
	}
}

// The first error of a transaction is kept, and not beyond it: the first of all, and the first that
// a server may have answered.
func TestFailure(t *testing.T) {
	s := newSession(t, Options{})
	want := func(what string, failed, answered error) {
		t.Helper()
		if got := s.txn.Failed(); got != failed {
			t.Errorf("%s: the first error is %v, want %v", what, got, failed)
		}
		if got := s.txn.Failure(); got != answered {
			t.Errorf("%s: the first answer is %v, want %v", what, got, answered)
		}
	}
	first, second := errors.New("first"), errors.New("second")
	s.txn.Fail(first)
	want("without a transaction", nil, nil)
	s.StartTransaction(TransactionOptions{})
	s.txn.Fail(first)
	s.txn.Answered(second)
	s.txn.Answered(errors.New("third"))
	want("two answers", first, second)
	s.txn.Sending()
	s.txn.Abort()
	s.txn.Fail(second)
	want("aborted", first, second)
	s.StartTransaction(TransactionOptions{})
	want("the next one", nil, nil)
	s.txn.Answered(second)
	want("an answer", second, second)
}

// A reply with a later time costs one allocation, every other one none.
func TestClockAllocations(t *testing.T) {
	var c Clock
	var docs []bson.Raw
	for sec := range uint32(300) {
		docs = append(docs, clusterTime(sec+1))
	}
	n := 0
	if got := testing.AllocsPerRun(200, func() { c.AdvanceRaw(docs[n]); n++ }); got != 1 {
		t.Errorf("a later time: %v allocations, want 1", got)
	}
	if got := testing.AllocsPerRun(200, func() { c.AdvanceRaw(docs[0]) }); got != 0 {
		t.Errorf("an earlier time: %v allocations, want 0", got)
	}
}

// The clock owns what it holds, however long that is.
func TestClockCopies(t *testing.T) {
	for _, extra := range []int{0, 1, 20, 30, 40, 200} {
		doc, err := bson.Marshal(bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 7}}, {Key: "x", Value: make([]byte, extra)}})
		if err != nil {
			t.Fatal(err)
		}
		want := string(doc)
		var c Clock
		c.AdvanceRaw(doc)
		clear(doc)
		if got := c.Now(); got == nil || string(got.Doc) != want || got.Time.T != 7 {
			t.Errorf("%d bytes: got %v", len(doc), got)
		}
	}
}

// A snapshot session reads at the time of its first read, whatever later replies say; others have
// no such time.
func TestSnapshotTimeStays(t *testing.T) {
	for _, first := range []*bson.Timestamp{nil, {T: 4}} {
		s := newSession(t, Options{Snapshot: true, SnapshotTime: first})
		want := uint32(5)
		if first != nil {
			want = first.T
		}
		for _, at := range []uint32{0, 5, 9, 3} {
			s.Observe(ReplyTimes{SnapshotTime: bson.Timestamp{T: at}})
		}
		if got := s.SnapshotTime(); got == nil || got.T != want {
			t.Errorf("reads at %v, want %d", got, want)
		}
	}
	s := newSession(t, Options{})
	s.Observe(ReplyTimes{SnapshotTime: bson.Timestamp{T: 5}})
	if got := s.SnapshotTime(); got != nil {
		t.Errorf("a session without snapshot reads at %v", got)
	}
}

// What is at the back of the pool is looked at when a session is returned, up to the first one that
// is not about to expire (specification: Driver Sessions, "Algorithm to return a ServerSession").
func TestPutStopsAtTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pool
		a, b, c, d := p.Get(minutes(30)), p.Get(minutes(30)), p.Get(minutes(30)), p.Get(minutes(30))
		p.Put(a, minutes(30))
		time.Sleep(25 * time.Minute)
		b.Touch()
		p.Put(b, minutes(30))
		p.Put(c, minutes(30)) // used less recently than b, before which it is taken
		time.Sleep(10 * time.Minute)
		d.Touch()
		p.Put(d, minutes(30))
		ids := p.Drain()
		if len(ids) != 3 || !bytes.Equal(ids[0], b.ID) || !bytes.Equal(ids[1], c.ID) || !bytes.Equal(ids[2], d.ID) {
			t.Errorf("%d sessions are pooled, want b, c and d: only a was at the back and expired", len(ids))
		}
	})
}

// The recovery token of the last reply is kept as it came, and ends with its transaction
// (specification: Transactions, "recoveryToken field").
func TestRecoveryTokenEnds(t *testing.T) {
	first, last := bson.Raw("\x0c\x00\x00\x00\x10a\x00\x01\x00\x00\x00\x00"), bson.Raw("\x0c\x00\x00\x00\x10b\x00\x02\x00\x00\x00\x00")
	for name, next := range map[string]func(s *Session) error{
		"another transaction": func(s *Session) error { return s.StartTransaction(TransactionOptions{}) },
		"another command":     func(s *Session) error { s.txn.BeforeCommand(); return nil },
	} {
		s := newSession(t, Options{})
		if err := s.StartTransaction(TransactionOptions{}); err != nil {
			t.Fatal(err)
		}
		s.txn.Sending()
		for _, token := range []bson.Raw{first, last} {
			sent := bytes.Clone(token)
			s.Observe(ReplyTimes{RecoveryToken: sent})
			clear(sent) // the reply's memory is used again
		}
		s.Observe(ReplyTimes{}) // a reply without one
		if got := s.txn.RecoveryToken(); !bytes.Equal(got, last) {
			t.Errorf("%s: token %v, want that of the last reply with one", name, got)
		}
		s.txn.Commit()
		s.txn.Sending()
		if !bytes.Equal(s.txn.RecoveryToken(), last) {
			t.Errorf("%s: the commit has no token", name)
		}
		if err := next(s); err != nil || s.txn.RecoveryToken() != nil {
			t.Errorf("%s: token %v, %v", name, s.txn.RecoveryToken(), err)
		}
	}
}

// A client that closes waits in AwaitLast until the transaction of a session that has ended is left
// to it: were it told before, nobody would abort the transaction.
func TestLeftBeforeItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told, left bool
		p := &Pool{}
		s, err := New(p, func() *int64 { return nil }, Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.Left = func(s *Session) {
			left = true
			synctest.Wait()
			if told {
				t.Error("who waits is told before the session is left")
			}
			s.Finish()
		}
		if err := s.StartTransaction(TransactionOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Enter(); err != nil {
			t.Fatal(err)
		}
		s.txn.Sending()
		go func() {
			if s.AwaitLast(t.Context()) {
				t.Error("AwaitLast has entered a session that was left")
			}
			told = true
		}()
		synctest.Wait()
		s.End()
		s.busy.Store(false) // Leave, whose caller gives the session back before who waits can have it
		s.giveBack()
		synctest.Wait()
		if !left || !told {
			t.Errorf("left: %v, told: %v", left, told)
		}
	})
}

// Only the message that begins a transaction, or first tells a server to end it, changes the state,
// and can take that back if nothing of it was written (specification: Transactions).
func TestSendingChangesTheStateOnce(t *testing.T) {
	s := newSession(t, Options{})
	if s.txn.Sending() {
		t.Error("a message without a transaction changes the state")
	}
	if err := s.StartTransaction(TransactionOptions{}); err != nil {
		t.Fatal(err)
	}
	steps := func(from, to TransactionState) {
		t.Helper()
		if got := s.txn.now(); got != from {
			t.Fatalf("state %v, want %v", got, from)
		}
		if !s.txn.Sending() || s.txn.now() != to {
			t.Errorf("the first message from %v leads to %v, want %v", from, s.txn.now(), to)
		}
		if s.txn.NotSent(); s.txn.now() != from {
			t.Errorf("taken back, it leads to %v, want %v", s.txn.now(), from)
		}
		if !s.txn.Sending() || s.txn.Sending() || s.txn.Sending() || s.txn.now() != to {
			t.Errorf("further messages change the state %v, which is %v", to, s.txn.now())
		}
	}
	steps(StartingTransaction, TransactionInProgress)
	if _, _, err := s.txn.Commit(); err != nil {
		t.Fatal(err)
	}
	steps(commitUnsent, TransactionCommitted)
	if err := s.StartTransaction(TransactionOptions{}); err != nil {
		t.Fatal(err)
	}
	s.txn.Sending()
	if _, err := s.txn.Abort(); err != nil {
		t.Fatal(err)
	}
	steps(abortUnsent, TransactionAborted)
}
