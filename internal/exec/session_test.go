package exec

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/session"
	"allium/mongotest"
)

// A server session is dirty, and not used again, exactly if a command of it was sent and its reply
// did not come, for whatever reason: a timeout is a network error like a connection that breaks
// (specification: Driver Sessions, "Server session pool").
func TestDirtySessions(t *testing.T) {
	const slow = time.Minute
	for _, tc := range []struct {
		name  string
		reply outcome
		ends  func(ctx context.Context) (context.Context, context.CancelFunc)
		limit time.Duration // timeoutMS
		idle  time.Duration // socketTimeoutMS
		dirty bool
	}{
		{name: "success"},
		{name: "server error", reply: outcome{code: 8000}},
		{name: "write concern error", reply: outcome{code: 64, concern: true}},
		{name: "slow, but in time", reply: outcome{delay: time.Second}, limit: slow},
		{name: "connection breaks", reply: outcome{drop: true}, dirty: true},
		{name: "deadline of the context", reply: outcome{delay: slow}, dirty: true, ends: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}},
		{name: "cancelled", reply: outcome{delay: slow}, dirty: true, ends: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}},
		{name: "timeoutMS", reply: outcome{delay: slow}, limit: time.Second, dirty: true},
		{name: "socketTimeoutMS", reply: outcome{delay: slow}, idle: time.Second, dirty: true},
	} {
		for _, how := range []string{"implicit", "explicit", "transaction", "commit"} {
			t.Run(tc.name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, Config{SocketTimeout: tc.idle})
					ctx := t.Context()
					if tc.ends != nil {
						var cancel context.CancelFunc
						ctx, cancel = tc.ends(ctx)
						defer cancel()
					}
					op := insert(t)
					op.Retryable = false // so that one command meets the script
					if tc.limit > 0 {
						op = within(op, tc.limit)
					}
					script := []outcome{tc.reply}
					var s *session.Session
					switch how {
					case "explicit":
						var err error
						if s, err = session.New(&r.sessions, r.x.SessionTimeout, session.Options{}); err != nil {
							t.Fatal(err)
						}
						op.Session = s
					case "transaction":
						s = r.begin(t, nil)
						op.Session = s
					case "commit":
						s = r.begin(t, nil)
						if _, err := r.play(t.Context(), in(s, insert(t))); err != nil {
							t.Fatal(err)
						}
						if tc.dirty {
							script = append(script, tc.reply) // a commit is tried twice
						}
					}
					sent, _ := r.playing(script, func() error {
						if how == "commit" {
							return r.x.Commit(ctx, s, op.Limit)
						}
						res, err := r.x.Run(ctx, op)
						res.Release()
						return err
					})
					if len(sent) == 0 || sent[0].lsid == "" {
						t.Fatalf("sent %+v", sent)
					}
					if s != nil {
						s.Transaction().BeforeCommand()
						s.End()
					}
					pooled := r.sessions.Drain()
					if kept := len(pooled) > 0; kept == tc.dirty {
						t.Errorf("the session is kept: %v, want %v", kept, !tc.dirty)
					}
					if !tc.dirty && string(pooled[0]) != sent[0].lsid {
						t.Error("another session is kept")
					}
				})
			})
		}
	}
}

// Each reply moves the clock, and the times of the operation's session, on: also one that is an
// error (specifications: Driver Sessions, "Gossipping the cluster time", and Causal Consistency).
func TestTimesOfReplies(t *testing.T) {
	at := bson.Timestamp{T: 1 << 30}
	for name, reply := range map[string]bson.D{
		"success":             {{Key: "ok", Value: 1}},
		"server error":        {{Key: "ok", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "scripted"}},
		"retryable error":     {{Key: "ok", Value: 0}, {Key: "code", Value: 10107}, {Key: "errmsg", Value: "scripted"}},
		"error without code":  {{Key: "ok", Value: 0}, {Key: "errmsg", Value: "scripted"}},
		"write error":         {{Key: "ok", Value: 1}, {Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}}}}},
		"write concern error": {{Key: "ok", Value: 1}, {Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "scripted"}}}},
	} {
		for _, explicit := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/explicit %v", name, explicit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, Config{})
					before := r.x.Clock.Now()
					if before != nil && before.Time.Compare(at) >= 0 {
						t.Fatalf("it is %v already", before.Time)
					}
					doc, err := bson.Marshal(append(bson.D{{Key: "operationTime", Value: at}, {Key: "$clusterTime", Value: clusterTime(at.T)}}, reply...))
					if err != nil {
						t.Fatal(err)
					}
					r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
						if c.Name == "insert" {
							return doc, nil
						}
						return nil, nil
					})
					op := insert(t)
					op.Retryable = false
					var s *session.Session
					if explicit {
						if s, err = session.New(&r.sessions, r.x.SessionTimeout, session.Options{}); err != nil {
							t.Fatal(err)
						}
						defer s.End()
						op.Session = s
					}
					res, _ := r.x.Run(t.Context(), op)
					res.Release()
					if now := r.x.Clock.Now(); now == nil || now.Time != at {
						t.Errorf("the clock is at %v, want %v", now, at)
					}
					if s == nil {
						return
					}
					if now := s.ClusterTime(); now == nil || now.Time != at {
						t.Errorf("the session's cluster time is %v, want %v", now, at)
					}
					if now := s.OperationTime(); now == nil || *now != at {
						t.Errorf("the session's operation time is %v, want %v", now, at)
					}
				})
			})
		}
	}
}
