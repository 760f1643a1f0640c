package exec

import (
	"errors"
	"testing"
	"testing/synctest"

	"allium/bson"
	"allium/consistency"
	"allium/internal/command"
	"allium/internal/session"
)

// Rules of the specification Transactions, one by one.

// A read in a transaction needs the primary, by the transaction's read preference, or by the one
// that the program gave its own command. Writes are not looked at.
func TestReadsNeedThePrimary(t *testing.T) {
	secondary := &consistency.ReadPreference{Mode: consistency.Secondary}
	primary := &consistency.ReadPreference{Mode: consistency.Primary}
	for _, tc := range []struct {
		name     string
		txn, own *consistency.ReadPreference
		kind     Kind
		refused  bool
	}{
		{"read", secondary, nil, Read, true},
		{"read, its collection's does not count", primary, secondary, Read, false},
		{"read, nothing set", nil, secondary, Read, false},
		{"read, its collection's does not help", secondary, primary, Read, true},
		{"write", secondary, nil, Write, false},
		{"the program's own", secondary, nil, Run, true},
		{"the program's own, with a read preference", primary, secondary, Run, true},
		{"the program's own, with the primary", secondary, primary, Run, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, both)
				s, err := session.New(&r.sessions, r.x.SessionTimeout, session.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.End()
				if err := s.StartTransaction(session.TransactionOptions{ReadPreference: tc.txn}); err != nil {
					t.Fatal(err)
				}
				op := in(s, find(t))
				op.Kind, op.ReadPreference = tc.kind, tc.own
				sent, err := r.play(t.Context(), op)
				if (err != nil) != tc.refused || len(sent) > 0 == tc.refused {
					t.Errorf("%d commands: %v", len(sent), err)
				}
			})
		})
	}
}

// What is refused before anything is sent leaves a transaction as it is: the next command is still
// its first one, or one of it.
func TestClientErrorsKeepTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		s := r.begin(t, nil)
		defer s.End()
		refused := func(want session.TransactionState) {
			t.Helper()
			op := NewOp(&command.Find{Collection: "coll", Filter: bson.D{{Key: "x", Value: make(chan int)}}})
			op.DB, op.Session = "db", s
			if _, err := r.x.Run(t.Context(), &op); err == nil || s.Transaction().State() != want {
				t.Errorf("%v: %v", s.Transaction().State(), err)
			}
		}
		sends := func(op *Op, first bool) {
			t.Helper()
			sent := r.bodies(t, op.Command.Name(), func() {
				if _, err := r.x.Run(t.Context(), in(s, op)); err != nil {
					t.Fatal(err)
				}
			})
			starts, _ := sent[0].Lookup("startTransaction").Boolean()
			auto, ok := sent[0].Lookup("autocommit").Boolean()
			if starts != first || !ok || auto || sent[0].Lookup("lsid").IsZero() || sent[0].Lookup("txnNumber").Type != bson.TypeInt64 {
				t.Errorf("sent %v", sent[0])
			}
			if !first && !sent[0].Lookup("startTransaction").IsZero() {
				t.Errorf("startTransaction in a later command: %v", sent[0])
			}
		}
		refused(session.StartingTransaction)
		sends(insert(t), true)
		refused(session.TransactionInProgress)
		own := find(t)
		own.Kind, own.Retryable = Run, false
		sends(own, false)
		refused(session.TransactionInProgress)
		sends(insert(t), false)
	})
}

// The ends of a transaction go to the database admin, in their transaction.
func TestEndsGoToAdmin(t *testing.T) {
	for _, name := range []string{"commitTransaction", "abortTransaction"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, both)
			s := r.begin(t, nil)
			defer s.End()
			if _, err := r.play(t.Context(), in(s, insert(t))); err != nil {
				t.Fatal(err)
			}
			sent := r.bodies(t, name, func() {
				end := r.x.Commit
				if name == "abortTransaction" {
					end = r.x.Abort
				}
				if err := end(t.Context(), s, Limit{}); err != nil {
					t.Error(err)
				}
			})
			db, _ := sent[0].Lookup("$db").StringValue()
			auto, ok := sent[0].Lookup("autocommit").Boolean()
			if db != "admin" || !ok || auto || !sent[0].Lookup("startTransaction").IsZero() {
				t.Errorf("%s is %v", name, sent[0])
			}
		})
	}
}

// Behind a load balancer each transaction has a connection of its own, however they take turns:
// nobody else gets it until the transaction has ended (specification: Load Balancers, "Behaviour
// With Transactions").
func TestTransactionsHaveTheirOwnConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRigOn(t, both, true, deployments["load balanced"].kind)
		first, second := r.begin(t, nil), r.begin(t, nil)
		defer first.End()
		defer second.End()
		for range 3 {
			for _, s := range []*session.Session{first, second} {
				if _, err := r.play(t.Context(), in(s, insert(t))); err != nil {
					t.Fatal(err)
				}
				if _, err := r.play(t.Context(), find(t)); err != nil {
					t.Fatal(err)
				}
			}
			a, b := first.Transaction().Pinned(), second.Transaction().Pinned()
			if a == nil || b == nil || a.Conn == nil || a.Conn == b.Conn || a.Conn.ID == b.Conn.ID {
				t.Fatalf("pinned to %+v and %+v", a, b)
			}
		}
		srv := r.x.Topology.Server(r.x.Topology.Description().Servers[0].Addr)
		others := map[int64]bool{}
		for range 3 {
			c, err := srv.CheckOut(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Return()
			others[c.ID] = true
		}
		for _, s := range []*session.Session{first, second} {
			if others[s.Transaction().Pinned().Conn.ID] {
				t.Error("the connection of a transaction was checked out by another operation")
			}
		}
		if err := errors.Join(r.x.Commit(t.Context(), first, Limit{}), r.x.Abort(t.Context(), second, Limit{})); err != nil {
			t.Error(err)
		}
	})
}

// The errors of a commit are the program's, also those of its write concern; those of an abort are
// nobody's.
func TestErrorsOfEndsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		for _, o := range []outcome{{code: 2}, {code: 64, concern: true}, {code: 79, concern: true}} {
			s := r.begin(t, nil)
			if _, err := r.play(t.Context(), in(s, insert(t))); err != nil {
				t.Fatal(err)
			}
			_, err := r.playing([]outcome{o}, func() error { return r.x.Commit(t.Context(), s, Limit{}) })
			if !hasCode(err, o.code) {
				t.Errorf("commit: %v, want code %d", err, o.code)
			}
			s.End()
			s = r.begin(t, nil)
			if _, err := r.play(t.Context(), in(s, insert(t))); err != nil {
				t.Fatal(err)
			}
			_, err = r.playing([]outcome{o}, func() error { return r.x.Abort(t.Context(), s, Limit{}) })
			if err != nil {
				t.Errorf("abort: %v, want none", err)
			}
			s.End()
		}
	})
}
