package exec

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/command"
	"allium/internal/session"
	"allium/mongotest"
)

// Which read concern each command has: in sessions that are causally consistent or read a snapshot,
// and in transactions (specifications: Causal Consistency, Snapshot Reads, Transactions,
// "Constructing the first command within a transaction").
func TestReadConcernSent(t *testing.T) {
	const (
		after    = `"afterClusterTime":{"$timestamp":{"t":5,"i":1}}`
		snapshot = `"level":"snapshot"`
		at       = snapshot + `,"atClusterTime":{"$timestamp":{"t":3,"i":1}}`
		majority = `"level":"majority"`
	)
	causal, plain := session.Options{}, session.Options{CausalConsistency: new(false)}
	local := &consistency.ReadConcern{Level: "local"}
	find := func() Op { return NewOp(&command.Find{Collection: "c", Filter: bson.D{}}) }
	level := func() Op { op := find(); op.ReadConcern = "majority"; return op }
	insert := func() Op { return NewOp(&command.Insert{Collection: "c"}) }
	rename := func() Op { return NewOp(&command.Named{Command: "renameCollection"}) }
	getMore := func() Op { return NewOp(&command.GetMore{ID: 1, Collection: "c"}) }
	own := func() Op { return NewOp(&command.Run{}) }
	for _, tc := range []struct {
		name    string
		options *session.Options // nil: no session
		txn     *consistency.ReadConcern
		inTxn   int // 1: its first command, 2: another one
		op      func() Op
		kind    event.ServerKind
		want    string
	}{
		{"no session", nil, nil, 0, find, event.RSPrimary, ""},
		{"no session, level", nil, nil, 0, level, event.RSPrimary, majority},
		{"no session, standalone, level", nil, nil, 0, level, event.Standalone, majority},
		{"causal, read", &causal, nil, 0, find, event.RSPrimary, after},
		{"causal, level", &causal, nil, 0, level, event.RSPrimary, majority + "," + after},
		{"causal, mongos", &causal, nil, 0, find, event.Mongos, after},
		{"causal, standalone", &causal, nil, 0, find, event.Standalone, ""},
		{"causal, standalone, level", &causal, nil, 0, level, event.Standalone, majority},
		{"causal, write", &causal, nil, 0, insert, event.RSPrimary, after},
		{"causal, write that takes none", &causal, nil, 0, rename, event.RSPrimary, ""},
		{"causal, getMore", &causal, nil, 0, getMore, event.RSPrimary, ""},
		{"causal, the program's own", &causal, nil, 0, own, event.RSPrimary, ""},
		{"not causal, read", &plain, nil, 0, find, event.RSPrimary, ""},
		{"not causal, level", &plain, nil, 0, level, event.RSPrimary, majority},
		{"not causal, write", &plain, nil, 0, insert, event.RSPrimary, ""},
		{"snapshot, first", &session.Options{Snapshot: true}, nil, 0, find, event.RSPrimary, snapshot},
		{"snapshot, later", &session.Options{Snapshot: true, SnapshotTime: &bson.Timestamp{T: 3, I: 1}}, nil, 0, find, event.RSPrimary, at},
		{"snapshot, level", &session.Options{Snapshot: true, SnapshotTime: &bson.Timestamp{T: 3, I: 1}}, nil, 0, level, event.RSPrimary, at},
		{"snapshot, write", &session.Options{Snapshot: true, SnapshotTime: &bson.Timestamp{T: 3, I: 1}}, nil, 0, insert, event.RSPrimary, at},
		{"transaction, first", &plain, nil, 1, find, event.RSPrimary, ""},
		{"transaction, first, level", &plain, local, 1, find, event.RSPrimary, `"level":"local"`},
		{"transaction, first, not the collection's level", &plain, nil, 1, level, event.RSPrimary, ""},
		{"transaction, first, its own wins", &plain, local, 1, level, event.RSPrimary, `"level":"local"`},
		{"transaction, first, write", &plain, local, 1, insert, event.RSPrimary, `"level":"local"`},
		{"transaction, first, the program's own", &plain, local, 1, own, event.RSPrimary, `"level":"local"`},
		{"transaction, first, causal", &causal, nil, 1, find, event.RSPrimary, after},
		{"transaction, first, causal, level", &causal, local, 1, insert, event.RSPrimary, `"level":"local",` + after},
		{"transaction, first, causal, write that takes none", &causal, nil, 1, rename, event.RSPrimary, after},
		{"transaction, later", &causal, local, 2, find, event.RSPrimary, ""},
		{"transaction, later, level", &causal, local, 2, level, event.RSPrimary, ""},
		{"transaction, later, write", &causal, local, 2, insert, event.RSPrimary, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			op := tc.op()
			r := &run{op: &op, inTxn: tc.inTxn > 0, startsTxn: tc.inTxn == 1}
			if tc.options != nil {
				s, err := session.New(&session.Pool{}, func() *int64 { return nil }, *tc.options)
				if err != nil {
					t.Fatal(err)
				}
				defer s.End()
				s.AdvanceOperationTime(bson.Timestamp{T: 5, I: 1})
				if tc.inTxn > 0 {
					if err := s.StartTransaction(session.TransactionOptions{ReadConcern: tc.txn}); err != nil {
						t.Fatal(err)
					}
				}
				op.Session = s
			}
			m := &message{run: r, hello: &event.ServerDescription{Kind: tc.kind}}
			start, dst := bson.BeginDocument(nil)
			got := fmt.Sprint(bson.Raw(bson.EndDocument(m.appendReadConcern(dst), start)))
			want := "{}"
			if tc.want != "" {
				want = `{"readConcern":{` + tc.want + `}}`
			}
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}

	// Neither commit nor abort has one.
	s, _ := session.New(&session.Pool{}, func() *int64 { return nil }, causal)
	defer s.End()
	s.AdvanceOperationTime(bson.Timestamp{T: 5, I: 1})
	op := NewOp(&command.EndTransaction{Commit: true})
	op.Session = s
	m := &message{run: &run{op: &op}, hello: &event.ServerDescription{Kind: event.RSPrimary}}
	if got := m.appendReadConcern(nil); len(got) > 0 {
		t.Errorf("a commit has %x", got)
	}
}

// A session's cluster time counts for its own operations, if it is greater than the client's, and
// not for others: only what servers say moves the client's (specification: Driver Sessions, "How to
// compute the $clusterTime to send to a server").
func TestClusterTimeOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		later := session.ParseClusterTime(clusterTime(1 << 31))
		ahead, err := session.New(&r.sessions, r.x.SessionTimeout, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer ahead.End()
		ahead.AdvanceClusterTime(later)
		now := func(s *session.Session) bson.Timestamp {
			sent := r.bodies(t, "find", func() {
				op := find(t)
				op.Session = s
				res, err := r.x.Run(t.Context(), op)
				if err != nil {
					t.Fatal(err)
				}
				res.Release()
			})
			ts, _ := sent[0].Lookup("$clusterTime", "clusterTime").Timestamp()
			return ts
		}
		if ts := now(ahead); ts != later.Time {
			t.Errorf("the session that is ahead sends %v", ts)
		}
		if ts := now(nil); ts.Compare(later.Time) >= 0 {
			t.Errorf("an operation without it sends %v", ts)
		}
		r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
			if c.Name == "insert" {
				return bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: "$clusterTime", Value: clusterTime(1 << 30)}})
			}
			return r.answer(c)
		})
		if _, err := r.play(t.Context(), insert(t)); err != nil {
			t.Fatal(err)
		}
		if ts := now(nil); ts.T != 1<<30 {
			t.Errorf("after a reply with a time the client sends %v", ts)
		}
		r.x.Clock.Advance(session.ParseClusterTime(clusterTime(1<<31 + 1)))
		if ts := now(ahead); ts.T != 1<<31+1 {
			t.Errorf("the session that is behind sends %v", ts)
		}
	})
}

// Every command that carries a session's id is a use of it: a session that was used in time is kept
// (specification: Driver Sessions, "lastUse").
func TestSessionsAreTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		s, err := session.New(&r.sessions, r.x.SessionTimeout, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			op := find(t)
			op.Session = s
			if _, err := r.play(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Minute)
		}
		s.End()
		if kept := r.sessions.Stats().Pooled; kept != 1 {
			t.Errorf("%d sessions are kept, want the one that was used 20 minutes ago", kept)
		}
	})
}

// An unacknowledged write has no session: an explicit one is an error before anything is sent, an
// implicit one is not taken (specification: Driver Sessions, "When using unacknowledged writes").
func TestUnacknowledgedHasNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both, mongotest.ReplicaSet(1))
		s, err := session.New(&r.sessions, r.x.SessionTimeout, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.End()
		before := r.sessions.Stats()
		for _, explicit := range []bool{true, false} {
			sent := r.bodies(t, "insert", func() {
				op := insert(t)
				op.WriteConcern = consistency.Unacknowledged()
				if explicit {
					op.Session = s
				}
				if _, err := r.x.Run(t.Context(), op); (err != nil) != explicit {
					t.Errorf("explicit %v: %v", explicit, err)
				}
				synctest.Wait()
			})
			if explicit && len(sent) > 0 || !explicit && (len(sent) != 1 || !sent[0].Lookup("lsid").IsZero() || !sent[0].Lookup("txnNumber").IsZero()) {
				t.Errorf("explicit %v: sent %v", explicit, sent)
			}
		}
		if after := r.sessions.Stats(); after != before {
			t.Errorf("sessions %+v, before %+v", after, before)
		}
	})
}
