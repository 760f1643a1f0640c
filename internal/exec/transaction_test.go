package exec

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/consistency"
	"allium/event"
	"allium/internal/command"
	"allium/internal/failure"
	"allium/internal/session"
	"allium/mongoerr"
	"allium/mongotest"
)

// begin starts a session with a transaction whose write concern is wc.
func (r *rig) begin(t testing.TB, wc *consistency.WriteConcern) *session.Session {
	t.Helper()
	s, err := session.New(&r.sessions, r.x.SessionTimeout, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	opts := session.TransactionOptions{}
	if wc != nil {
		opts.WriteConcern = wc
	}
	if err := s.StartTransaction(opts); err != nil {
		t.Fatal(err)
	}
	return s
}

func in(s *session.Session, op *Op) *Op {
	op.Session = s
	return op
}

var deployments = map[string]struct {
	kind     mongotest.Option
	balanced bool
}{
	"replica set":   {mongotest.ReplicaSet(1), false},
	"sharded":       {mongotest.Sharded(1, 2), false},
	"load balanced": {mongotest.LoadBalanced(2), true},
}

// What a commit meets, with which write concern each attempt is sent, whether the session stays
// pinned after it, and whether its outcome is unknown then.
func TestCommitDecisions(t *testing.T) {
	const first, majority = "two/0", "majority/10000"
	busy := outcome{code: 462, labels: overloaded}
	cut := outcome{drop: true}
	primary := outcome{code: 10107, labels: retryable}
	for _, tc := range []struct {
		name     string
		script   []outcome
		concerns []string
		unknown  bool
		pinned   bool // at its end, where transactions are pinned
	}{
		{"success", nil, []string{first}, false, true},
		{"network", []outcome{cut}, []string{first, majority}, false, false},
		{"network, twice", []outcome{cut, cut}, []string{first, majority}, true, false},
		{"retryable code", []outcome{primary}, []string{first, majority}, false, false},
		{"other code", []outcome{{code: 2}}, []string{first}, false, true},
		{"transient", []outcome{{code: 251, labels: []string{mongoerr.LabelTransientTransaction}}}, []string{first}, false, false},
		{"out of time on the server", []outcome{{code: 50}}, []string{first}, true, false},
		{"write concern, not in time", []outcome{{code: 64, concern: true}}, []string{first}, true, false},
		{"write concern, out of time on the server", []outcome{{code: 50, concern: true}}, []string{first}, true, false},
		{"write concern, unknown", []outcome{{code: 79, concern: true}}, []string{first}, false, true},
		{"write concern, unsatisfiable", []outcome{{code: 100, concern: true}}, []string{first}, false, true},
		{"write concern, retryable", []outcome{{code: 91, concern: true, labels: retryable}}, []string{first, majority}, false, false},
		// What an overloaded server has not begun is not majority's yet, and only the transaction's
		// own mongos can do it.
		{"overload", []outcome{busy}, []string{first, first}, false, true},
		{"overload, to the end", []outcome{busy, busy, busy}, []string{first, first, first}, false, true},
		{"overload, then network", []outcome{busy, cut}, []string{first, first, majority}, false, false},
		{"network, then overload", []outcome{cut, busy}, []string{first, majority, majority}, false, false},
		{"overload, which is not retryable", []outcome{{code: 462, labels: overloaded[1:]}}, []string{first}, false, true},
		{"overload by its one label beside another error", []outcome{{code: 91, labels: []string{mongoerr.LabelSystemOverloaded, mongoerr.LabelRetryableWrite}}},
			[]string{first, majority}, false, false},
		{"overload that leaves the outcome open", []outcome{{code: 91, labels: append(slices.Clone(overloaded), mongoerr.LabelRetryableWrite)}},
			[]string{first, first}, false, false},
	} {
		for name, on := range deployments {
			t.Run(tc.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := both
					cfg.RetryWrites = tc.name == "overload" // what is not overload is retried whatever it says
					if len(tc.script) > 0 && slices.Contains(tc.script[0].labels, mongoerr.LabelRetryable) {
						cfg.RetryWrites = true
					}
					r := newRigOn(t, cfg, on.balanced, on.kind)
					s := r.begin(t, &consistency.WriteConcern{W: "two"})
					opened, err := r.play(t.Context(), in(s, insert(t)))
					if err != nil {
						t.Fatal(err)
					}
					sent, err := r.playing(tc.script, func() error { return r.x.Commit(t.Context(), s, Limit{}) })
					var concerns []string
					for _, c := range sent {
						concerns = append(concerns, c.concern)
						if c.txn != opened[0].txn || c.lsid != opened[0].lsid || !c.token || c.starts {
							t.Errorf("commit %+v of the transaction %+v", c, opened[0])
						}
					}
					if !slices.Equal(concerns, tc.concerns) {
						t.Errorf("write concerns %v, want %v: %v", concerns, tc.concerns, err)
					}
					if unknown := mongoerr.HasLabel(err, mongoerr.LabelUnknownTransactionCommit); unknown != tc.unknown {
						t.Errorf("unknown outcome: %v, want %v: %v", unknown, tc.unknown, err)
					}
					pinned := s.Transaction().Pinned() != nil
					if want := tc.pinned && name != "replica set"; pinned != want {
						t.Errorf("pinned: %v, want %v: %v", pinned, want, err)
					}
					if pinned && !on.balanced {
						for _, c := range sent {
							if c.addr != opened[0].addr {
								t.Errorf("a commit of a pinned transaction went to %s in place of %s", c.addr, opened[0].addr)
							}
						}
					}
					if s.Transaction().State() != session.TransactionCommitted {
						t.Errorf("state %v", s.Transaction().State())
					}
					// The user's own repetition is a majority's, whatever the one before was.
					again, err := r.playing(nil, func() error { return r.x.Commit(t.Context(), s, Limit{}) })
					if err != nil || len(again) != 1 || again[0].concern != majority {
						t.Errorf("repeated: %+v, %v", again, err)
					}
					s.End()
					if leak := r.leaks(sent, true); leak != "" {
						t.Errorf("leaked %s", leak)
					}
				})
			})
		}
	}
}

// The write concern of a repeated commit keeps what it has, but for w, and gets a bound on the wait
// only if it has none.
func TestRetriedCommitConcern(t *testing.T) {
	journal := true
	for _, tc := range []struct{ from, want *consistency.WriteConcern }{
		{nil, &consistency.WriteConcern{W: "majority", Timeout: 10 * time.Second}},
		{&consistency.WriteConcern{W: 3, Journal: &journal}, &consistency.WriteConcern{W: "majority", Journal: &journal, Timeout: 10 * time.Second}},
		{&consistency.WriteConcern{W: "majority", Timeout: time.Second}, &consistency.WriteConcern{W: "majority", Timeout: time.Second}},
	} {
		if got := retriedCommitConcern(tc.from); *got != *tc.want {
			t.Errorf("%+v became %+v, want %+v", tc.from, got, tc.want)
		}
	}
}

// Any sequence of outcomes for an operation in a transaction and for the transaction's end: only
// overload is retried, startTransaction is in every attempt of the first command and in no other,
// labels say what became of the transaction, an abort tells of no error, and nothing is leaked.
func TestTransactionProperties(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 2))
	for name, on := range deployments {
		synctest.Test(t, func(t *testing.T) {
			r := newRigOn(t, both, on.balanced, on.kind)
			for range 40 {
				s := r.begin(t, nil)
				op := func() *Op {
					if rnd.IntN(2) == 0 {
						return in(s, find(t))
					}
					return in(s, insert(t))
				}
				script := func() []outcome {
					list := make([]outcome, rnd.IntN(4))
					for i := range list {
						list[i] = randomOutcome(rnd, false)
					}
					return list
				}
				overloads := func(list []outcome) int {
					n := 0
					for n < len(list) && list[n].code == 462 {
						n++
					}
					return n
				}
				fail := func(format string, args ...any) {
					t.Helper()
					t.Errorf("%s, seed %d: "+format, append([]any{name, seed}, args...)...)
				}
				dirty := false
				var all []sentCommand
				for i := range 1 + rnd.IntN(3) {
					before := s.Transaction().State()
					list := script()
					sent, err := r.play(t.Context(), op(), list...)
					all = append(all, sent...)
					n := overloads(list)
					if want := min(n, 2) + 1; len(sent) != want {
						fail("%d attempts, want %d: %+v: %v", len(sent), want, list, err)
					}
					var last outcome
					if len(sent) <= len(list) {
						last = list[len(sent)-1]
					}
					if (err != nil) != (last.drop || last.code != 0) {
						fail("error %v after %+v", err, last)
					}
					dirty = dirty || last.drop
					if transient := mongoerr.HasLabel(err, mongoerr.LabelTransientTransaction); transient != last.drop {
						fail("transient: %v: %v", transient, err)
					}
					if mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite) {
						fail("an operation in a transaction has the label of retryable writes: %v", err)
					}
					for _, c := range sent {
						if c.starts != (i == 0) || c.starts != (before == session.StartingTransaction) {
							fail("command %d has startTransaction: %v in state %v", i, c.starts, before)
						}
						if !on.balanced && c.addr != sent[0].addr {
							fail("the retry of an operation went from %s to %s", sent[0].addr, c.addr)
						}
					}
					if s.Transaction().State() != session.TransactionInProgress {
						fail("state %v after a command: %v", s.Transaction().State(), err)
					}
					if pinned, want := s.Transaction().Pinned() != nil, name != "replica set" && !last.drop; pinned != want {
						fail("pinned: %v, want %v: %v", pinned, want, err)
					}
					if last.drop {
						break
					}
				}
				list := script()
				aborts := rnd.IntN(2) == 0
				sent, err := r.playing(list, func() error {
					if aborts {
						return r.x.Abort(t.Context(), s, Limit{})
					}
					return r.x.Commit(t.Context(), s, Limit{})
				})
				all = append(all, sent...)
				for _, o := range list[:min(len(sent), len(list))] {
					dirty = dirty || o.drop
				}
				if aborts && (err != nil || s.Transaction().Pinned() != nil || s.Transaction().State() != session.TransactionAborted) {
					fail("aborted: %v, pinned to %v, state %v", err, s.Transaction().Pinned(), s.Transaction().State())
				}
				for _, c := range all {
					if c.txn != all[0].txn || c.lsid != all[0].lsid {
						fail("commands %+v differ in transaction number or session", all)
					}
				}
				s.End()
				if leak := r.leaks(all, dirty); leak != "" {
					fail("leaked %s", leak)
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// An operation that is tried again stays where its transaction is, even if its server says that
// another try of the whole transaction may help; when no further try of it is left, the transaction
// is given up.
func TestRetryInTransactionStays(t *testing.T) {
	busy := outcome{code: 462, labels: append(slices.Clone(overloaded), mongoerr.LabelTransientTransaction)}
	for name, on := range deployments {
		for attempts := 1; attempts <= 3; attempts++ {
			synctest.Test(t, func(t *testing.T) {
				r := newRigOn(t, both, on.balanced, on.kind)
				s := r.begin(t, nil)
				defer s.End()
				first, err := r.play(t.Context(), in(s, insert(t)))
				if err != nil {
					t.Fatal(err)
				}
				sent, err := r.play(t.Context(), in(s, insert(t)), slices.Repeat([]outcome{busy}, attempts)...)
				if want := min(attempts+1, 3); len(sent) != want || (err != nil) != (attempts == 3) {
					t.Errorf("%s: %d attempts, want %d: %v", name, len(sent), want, err)
				}
				for _, c := range sent {
					if c.addr != first[0].addr && !on.balanced {
						t.Errorf("%s: the transaction is on %s, a retry went to %s", name, first[0].addr, c.addr)
					}
				}
				if pinned, want := s.Transaction().Pinned() != nil, name != "replica set" && attempts < 3; pinned != want {
					t.Errorf("%s: pinned after %d failures: %v, want %v", name, attempts, pinned, want)
				}
			})
		}
	}
}

// In a transaction, an operation that is not its end is sent once, whatever the error's labels say,
// unless the server is overloaded (specification: Transactions, "Interaction with Retryable
// Writes").
func TestOnceInTransaction(t *testing.T) {
	for name, on := range deployments {
		for op, make := range map[string]func(testing.TB) *Op{"insert": insert, "find": find} {
			for _, first := range []outcome{{drop: true}, {code: 91, labels: retryable}, {code: 7, labels: retryable}, {code: 10107, labels: retryable}} {
				for _, position := range []int{0, 1} {
					synctest.Test(t, func(t *testing.T) {
						r := newRigOn(t, both, on.balanced, on.kind)
						s := r.begin(t, nil)
						defer s.End()
						for range position {
							if _, err := r.play(t.Context(), in(s, insert(t))); err != nil {
								t.Fatal(err)
							}
						}
						if sent, err := r.play(t.Context(), in(s, make(t)), first); len(sent) != 1 || err == nil {
							t.Errorf("%s: operation %d, %s, after %+v: %d attempts, %v", name, position+1, op, first, len(sent), err)
						}
					})
				}
			}
		}
	}
}

// What nobody may retry, though nothing was sent: Retryable Writes does not apply to it, and the
// failure was not overload.
func TestCheckOutIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		replicaSet := r.x.Topology.Description().Servers[0]
		for _, tc := range []struct {
			name     string
			selected *event.ServerDescription
			edit     func(*Op)
			retried  bool
		}{
			{"retryable write", replicaSet, func(*Op) {}, true},
			{"on a standalone", &event.ServerDescription{Kind: event.Standalone}, func(*Op) {}, false},
			{"unacknowledged", replicaSet, func(op *Op) { op.WriteConcern = consistency.Unacknowledged() }, false},
			{"read", &event.ServerDescription{Kind: event.Standalone}, func(op *Op) { *op = *find(t) }, true},
		} {
			op := insert(t)
			tc.edit(op)
			run := run{x: r.x, op: op, selected: tc.selected, addr: tc.selected.Addr, attempts: 1}
			err := &mongoerr.PoolClearedError{Addr: tc.selected.Addr}
			run.label(err, stageCheckOut)
			if got := run.retries(t.Context(), err, stageCheckOut); got != tc.retried {
				t.Errorf("%s: retried: %v, want %v", tc.name, got, tc.retried)
			}
			if op.Kind == Write && err.HasLabel(mongoerr.LabelRetryableWrite) != tc.retried {
				t.Errorf("%s: labels %v", tc.name, err.ErrorLabels())
			}
		}
	})
}

// A transaction that fails since nobody could log in is not worth another try.
func TestTransientErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		for _, tc := range []struct {
			err   error
			stage stage
			want  bool
		}{
			{&mongoerr.AuthError{Wrapped: &mongoerr.ServerError{Code: 18}}, stageCheckOut, false},
			{&mongoerr.ConnectionError{Op: "dial"}, stageCheckOut, true},
			{&mongoerr.TimeoutError{Phase: "connection checkout"}, stageCheckOut, true},
			{&mongoerr.PoolClearedError{}, stageCheckOut, true},
			{&mongoerr.SelectionError{}, stageSelect, true},
			{&mongoerr.SelectionError{Topology: &event.TopologyDescription{}}, stageSelect, true},
			{&mongoerr.SelectionError{Topology: &event.TopologyDescription{CompatibilityErr: errors.New("too old")}}, stageSelect, false},
			{&mongoerr.ServerError{Code: 251}, stageSent, false},
			{&mongoerr.ConnectionError{Op: "read"}, stageSent, true},
		} {
			s := r.begin(t, nil)
			run := run{x: r.x, op: in(s, insert(t)), inTxn: true}
			run.label(tc.err, tc.stage)
			if got := mongoerr.HasLabel(tc.err, mongoerr.LabelTransientTransaction); got != tc.want {
				t.Errorf("%T at stage %v: transient: %v", tc.err, tc.stage.phase(), got)
			}
			s.End()
		}
	})
}

// A commit or an abort beside another operation of the session is refused and changes nothing.
func TestEndOfBusySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		s := r.begin(t, nil)
		defer s.End()
		done := make(chan error)
		go func() {
			_, err := r.play(t.Context(), in(s, insert(t)), outcome{delay: time.Second})
			done <- err
		}()
		synctest.Wait()
		for what, end := range map[string]func(context.Context, *session.Session, Limit) error{"commit": r.x.Commit, "abort": r.x.Abort} {
			if err := end(t.Context(), s, Limit{}); !errors.Is(err, session.ErrConcurrent) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if state := s.Transaction().State(); state != session.TransactionInProgress {
			t.Errorf("state %v", state)
		}
		if err := r.x.Commit(t.Context(), s, Limit{}); err != nil {
			t.Error(err)
		}
	})
}

// The backoff's base is what the server asks for, up to the greatest backoff.
func TestBaseBackoff(t *testing.T) {
	for _, tc := range []struct {
		asked any
		want  time.Duration // of the first retry
	}{
		{nil, 200 * time.Millisecond},
		{50, 100 * time.Millisecond},
		{int64(50), 100 * time.Millisecond},
		{50.0, 100 * time.Millisecond},
		{0.5, time.Millisecond},
		{0, 200 * time.Millisecond},
		{-7, 200 * time.Millisecond},
		{"50", 200 * time.Millisecond},
		{5000, 10 * time.Second},
		{int64(1) << 62, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, both)
			sent, err := r.play(t.Context(), find(t), outcome{code: 462, labels: overloaded, base: tc.asked})
			if err != nil || len(sent) != 2 {
				t.Fatalf("%d attempts: %v", len(sent), err)
			}
			if got := sent[1].at.Sub(sent[0].at); got != tc.want {
				t.Errorf("base %v: waited %v, want %v", tc.asked, got, tc.want)
			}
		})
	}
}

// What an attempt to end a transaction must do before the next one selects a server ("When to
// unpin", 1 and 3): a commit stays where it is after overload, an abort does not.
func TestUnpinBeforeRetry(t *testing.T) {
	for what, commits := range map[string]bool{"commit": true, "abort": false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRigOn(t, both, false, mongotest.Sharded(1, 2))
			s := r.begin(t, nil)
			if _, err := r.play(t.Context(), in(s, insert(t))); err != nil {
				t.Fatal(err)
			}
			op := NewOp(&command.EndTransaction{Commit: commits})
			op.Session = s
			err := &mongoerr.ServerError{Code: 462}
			failure.AddTo(&err.Labels, mongoerr.LabelSystemOverloaded)
			failure.AddTo(&err.Labels, mongoerr.LabelRetryable)
			if unpins := (&run{x: r.x, op: &op}).unpins(err, nil, true); unpins == commits {
				t.Errorf("%s after overload: unpins %v", what, unpins)
			}
			s.Transaction().Unpin()
			s.End()
		})
	}
}
