package exec

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/command"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/mongoerr"
	"allium/mongotest"
)

// A standalone has no cluster times: it gets neither $clusterTime nor afterClusterTime, also if the
// session has been told of some by a user who moves between deployments.
func TestNoClusterTimesOnStandalone(t *testing.T) {
	for name, tc := range map[string]struct {
		kind  mongotest.Option
		times bool
	}{"standalone": {mongotest.Standalone(), false}, "replica set": {mongotest.ReplicaSet(1), true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{}, tc.kind)
				s, err := session.New(&r.sessions, r.x.SessionTimeout, session.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.End()
				s.AdvanceOperationTime(bson.Timestamp{T: 1})
				s.AdvanceClusterTime(session.ParseClusterTime(clusterTime(1)))
				op := NewOp(&command.Find{Collection: "coll", Filter: bson.D{}})
				op.DB, op.Session = "db", s
				op.Retryable = false
				sent := r.bodies(t, "find", func() {
					res, err := r.x.Run(t.Context(), &op)
					if err != nil {
						t.Fatal(err)
					}
					res.Release()
					r.x.PutSession(res.Implicit)
				})
				if len(sent) != 1 {
					t.Fatalf("%d finds", len(sent))
				}
				if after := sent[0].Lookup("readConcern", "afterClusterTime"); after.IsZero() == tc.times {
					t.Errorf("afterClusterTime is %v", after)
				}
				if now := sent[0].Lookup("$clusterTime"); now.IsZero() == tc.times {
					t.Errorf("$clusterTime is %v", now)
				}
			})
		})
	}
}

func clusterTime(t uint32) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendTimestamp(dst, "clusterTime", bson.Timestamp{T: t}), start)
}

// When less time is left than a round trip takes, nothing is sent, and the error is a TimeoutError
// that says whose time it was.
func TestNoTimeLeftIsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		op := find(t)
		op.Limit = Limit{Timeout: new(time.Millisecond), Deadline: time.Now().Add(time.Millisecond / 2), Source: "the timeout of the test"}
		sent, err := r.play(t.Context(), op)
		e, ok := errors.AsType[*mongoerr.TimeoutError](err)
		if !ok || e.Phase != "command" || e.Source != "the timeout of the test" || e.Addr == "" || !errors.Is(err, errNoTimeLeft) {
			t.Errorf("error %#v, want a TimeoutError of the phase command", err)
		}
		if len(sent) != 0 {
			t.Errorf("%d commands were sent, want none", len(sent))
		}
	})
}

// The text says how long there was and would have been needed, and never less than nothing.
func TestNoTimeLeftText(t *testing.T) {
	for left, want := range map[time.Duration]string{
		-time.Second:         "0s is left, and a round trip to the server takes at least 5ms: nothing was sent",
		0:                    "0s is left, and a round trip to the server takes at least 5ms: nothing was sent",
		time.Microsecond:     "1µs is left, and a round trip to the server takes at least 5ms: nothing was sent",
		3 * time.Millisecond: "3ms is left, and a round trip to the server takes at least 5ms: nothing was sent",
	} {
		if got := (&noTimeLeft{left, 5 * time.Millisecond}).Error(); got != want {
			t.Errorf("%v: %s", left, got)
		}
	}
}

// What takes no maxTimeMS, too, is not sent when less than a round trip is left of its time.
func TestLessThanARoundTripIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
			if c.Name == "hello" && c.Body.Lookup("maxAwaitTimeMS").IsZero() {
				time.Sleep(5 * time.Millisecond)
			}
			return r.answer(c)
		})
		time.Sleep(15 * topology.DefaultHeartbeatInterval) // the monitor measures it
		rtt := r.x.Topology.Description().Servers[0].MinRTT
		if rtt < 5*time.Millisecond {
			t.Fatalf("the round trip takes %v", rtt)
		}
		for left, sends := range map[time.Duration]bool{rtt - 1: false, 10 * rtt: true} {
			op := find(t)
			op.NoMaxTime = true
			op.Limit = NewLimit(&left, "the timeout of the test")
			sent, err := r.play(t.Context(), op)
			if (len(sent) == 1) != sends || errors.Is(err, errNoTimeLeft) == sends {
				t.Errorf("%v left: %d commands, error %v", left, len(sent), err)
			}
		}
	})
}

// A retry leaves the caller's operation as it was.
func TestRetryKeepsTheOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		s := r.begin(t, nil)
		defer s.End()
		if _, err := r.play(t.Context(), in(s, insert(t))); err != nil {
			t.Fatal(err)
		}
		s.Transaction().Commit()
		op := NewOp(&command.EndTransaction{Commit: true})
		op.DB, op.Session, op.RetryConcern = "admin", s, retriedCommitConcern(nil)
		before := op
		sent, err := r.play(t.Context(), &op, outcome{code: 91, labels: retryable})
		if err != nil || len(sent) != 2 || sent[0].concern == sent[1].concern {
			t.Errorf("%v: %+v, want two commits with different write concerns", err, sent)
		}
		if !reflect.DeepEqual(op, before) {
			t.Errorf("the operation is %+v, was %+v", op, before)
		}
	})
}

// The time that the server gets is what is left without a round trip to it, and not more than a
// server takes.
func TestMaxTime(t *testing.T) {
	const rtt = 30 * time.Millisecond
	day := 24 * time.Hour
	for _, tc := range []struct {
		name        string
		left, await time.Duration
		op          Op
		cryptd      bool
		want        int64 // 0: none
		refused     bool
	}{
		{name: "what is left without a round trip", left: 100 * time.Millisecond, want: 70},
		{name: "a millisecond", left: rtt + time.Millisecond, want: 1},
		{name: "less than a millisecond", left: rtt + time.Millisecond - 1, refused: true},
		{name: "less than a round trip", left: rtt - 1, refused: true},
		{name: "no limit"},
		{name: "none wanted", left: time.Second, op: Op{NoMaxTime: true}},
		{name: "mongocryptd", left: time.Second, cryptd: true},
		{name: "longer than a server takes", left: 30 * day},
		{name: "the longest", left: command.LongestMaxTime + rtt, want: 1<<31 - 1},
		{name: "waiting", await: time.Second, want: 1000},
		{name: "waiting, with little left", left: 100 * time.Millisecond, await: time.Second, want: 70},
		{name: "waiting, with much left", left: 10 * time.Second, await: time.Second, want: 1000},
		{name: "waiting for very long", await: 30 * day, want: 1<<31 - 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				op := tc.op
				op.MaxAwait = tc.await
				r := &run{op: &op, selected: &event.ServerDescription{MinRTT: rtt}}
				if tc.left > 0 {
					op.Limit = NewLimit(&tc.left, "the timeout of the test")
					r.deadline = op.Deadline
				}
				m := &message{run: r, hello: &event.ServerDescription{Cryptd: tc.cryptd}}
				start, dst := bson.BeginDocument(nil)
				dst, err := m.appendMaxTime(dst)
				if refused := errors.Is(err, errNoTimeLeft); refused != tc.refused || err != nil && !refused {
					t.Fatalf("error %v", err)
				}
				got, _ := bson.Raw(bson.EndDocument(dst, start)).Lookup("maxTimeMS").AsInt64()
				if got != tc.want {
					t.Errorf("maxTimeMS is %d, want %d", got, tc.want)
				}
			})
		})
	}
}

// A write concern is the program's or its collection's: what is sent without its timeout is a copy.
func TestConcernIsCopied(t *testing.T) {
	wc := &consistency.WriteConcern{Timeout: time.Second}
	l := NewLimit(new(time.Minute), "timeoutMS")
	if got := l.concern(wc); got.Timeout != 0 || wc.Timeout != time.Second {
		t.Errorf("%v is sent, and %v is left", got.Timeout, wc.Timeout)
	}
	if got := new(Limit).concern(wc); got != wc {
		t.Errorf("without a limit: %v", got)
	}
}

// A message whose common fields are larger than what is set aside for them is whole nevertheless:
// the documents stay, in one piece (specification: OP_MSG).
func TestLargeCommonFields(t *testing.T) {
	for _, size := range []int{0, 900, 1100, 5000, 100_000} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, both)
			signed, err := bson.Marshal(bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 1 << 31}}, {Key: "signature", Value: make([]byte, size)}})
			if err != nil {
				t.Fatal(err)
			}
			r.x.Clock.AdvanceRaw(signed)
			const n = 5
			op := NewOp(insertOf(n))
			op.DB = "db"
			arrived, documents, signature := 0, 0, 0
			r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if c.Name == "insert" {
					arrived++
					for _, s := range c.Sequences {
						for rest := s.Docs; len(rest) > 0; documents++ {
							doc, after, err := bson.ReadDocument(rest)
							if v, ok := doc.Lookup("_id").AsInt64(); err != nil || !ok || v != int64(documents) {
								t.Errorf("%d bytes: document %d is %v", size, documents, doc)
							}
							rest = after
						}
					}
					data, _ := c.Body.Lookup("$clusterTime", "signature").Binary()
					signature = len(data.Data)
				}
				return r.answer(c)
			})
			if _, err := r.play(t.Context(), &op); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
			if arrived != 1 || documents != n || signature != size {
				t.Errorf("%d bytes: %d messages with %d documents and a signature of %d bytes arrived", size, arrived, documents, signature)
			}
		})
	}
}

// What all commands have is not in the text of a query: it would make each one another text.
func TestQueryTextLeavesOut(t *testing.T) {
	command := bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "lsid", Value: 1}}}}
	common := bson.D{{Key: "lsid", Value: 1}, {Key: "$db", Value: "d"}, {Key: "$clusterTime", Value: 1}, {Key: "signature", Value: 1}}
	want, err := bson.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	for i := range common {
		doc, err := bson.Marshal(append(append(command[:1:1], common[i:]...), command[1]))
		if err != nil {
			t.Fatal(err)
		}
		if got := withoutCommon(doc); !bytes.Equal(got, want) {
			t.Errorf("%s, want %s", got, bson.Raw(want))
		}
	}
}
