package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/failure"
	"allium/mongoerr"
	"allium/mongotest"
)

// The error of an operation whose time is up wraps what happened before, and says it
// (specification: Client Side Operations Timeout, "Errors" and "Error Transformations").
func TestTimeoutKeepsItsCause(t *testing.T) {
	const limit = time.Second
	slow := func(o outcome) outcome { o.delay = 600 * time.Millisecond; return o }
	for _, tc := range []struct {
		name   string
		script []outcome
		code   int32 // that is found in the error
	}{
		{"the server's own error", []outcome{{code: 50}}, 50},
		{"the server's own write concern error", []outcome{{code: 50, concern: true}}, 50},
		{"an attempt before", []outcome{slow(outcome{code: 10107, labels: retryable}), slow(outcome{})}, 10107},
		{"no attempt before", []outcome{{delay: 2 * limit}}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, both)
				_, err := r.play(t.Context(), within(insert(t), limit), tc.script...)
				e, ok := errors.AsType[*mongoerr.TimeoutError](err)
				if !ok || !mongoerr.IsTimeout(err) || e.Wrapped == nil {
					t.Fatalf("error %T %[1]v, want a TimeoutError with its cause", err)
				}
				if tc.code != 0 && !mongoerr.HasCode(err, tc.code) {
					t.Errorf("code %d is not in %v", tc.code, err)
				}
				if !strings.Contains(err.Error(), e.Wrapped.Error()) {
					t.Errorf("%q does not contain %q", err, e.Wrapped)
				}
				time.Sleep(time.Minute) // for replies that are late
			})
		})
	}
}

// Only the code says that a server ran out of time, never a name or a message.
func TestMaxTimeExpiredByCode(t *testing.T) {
	reply := func(d bson.D) bson.Raw {
		raw, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	named := bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 1}, {Key: "codeName", Value: "MaxTimeMSExpired"}, {Key: "errmsg", Value: "operation exceeded time limit"}}
	coded := bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 50}, {Key: "errmsg", Value: "anything"}}
	if err := failure.NewServerError("find", "a:1", reply(named)); isMaxTimeExpired(err) {
		t.Errorf("%v counts", err)
	}
	if err := failure.NewServerError("find", "a:1", reply(coded)); !isMaxTimeExpired(err) {
		t.Errorf("%v does not count", err)
	}
	concern := bson.D{{Key: "ok", Value: 1}, {Key: "writeConcernError", Value: coded[1:]}}
	if err := failure.NewWriteConcernError("a:1", reply(concern)); !isMaxTimeExpired(err) {
		t.Errorf("%v does not count", err)
	}
}

// Without a limit the errors are those of old: a selection that finds no server in its time, and a
// server that ran out of the program's maxTimeMS. With one they are timeouts.
func TestNoLimitKeepsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		if _, err := r.play(t.Context(), find(t), outcome{code: 50}); !hasCode(err, 50) || failure.OutOfTime(err) {
			t.Errorf("error %T %[1]v, want the server's", err)
		}
		r.d.Node(0).Kill()
		time.Sleep(time.Minute)
		_, err := r.play(t.Context(), find(t))
		if _, ok := errors.AsType[*mongoerr.SelectionError](err); !ok || failure.OutOfTime(err) {
			t.Errorf("error %T %[1]v, want that of selection", err)
		}
		_, err = r.play(t.Context(), within(find(t), time.Hour))
		e, ok := errors.AsType[*mongoerr.TimeoutError](err)
		if _, sel := errors.AsType[*mongoerr.SelectionError](err); !ok || !sel || e.Source != mongoerr.SourceServerSelection {
			t.Errorf("error %T %[1]v, want a timeout of selection", err)
		}
	})
}

// A retry that finds no server ends in the error that was the reason for it, within a limit beside
// that of time: an operation that failed never succeeds without another answer, and what is known
// of its first attempt is not lost (specifications: Retryable Reads and Retryable Writes,
// "Executing").
func TestRetryFindsNoServer(t *testing.T) {
	for name, op := range map[string]func(testing.TB) *Op{"write": insert, "read": find} {
		for _, first := range []outcome{{drop: true}, {code: 91, labels: retryable}, {code: 91, labels: noWrites}} {
			for _, limit := range []time.Duration{0, 10 * time.Second, time.Hour} {
				t.Run(fmt.Sprintf("%s/%+v/%v", name, first, limit), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newRig(t, both)
						r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
							if c.Name == "insert" || c.Name == "find" {
								c.Node.RefuseConnections()
								c.Node.FailCommand(mongotest.Fail{Commands: []string{"hello", "isMaster", "ismaster"}, CloseConnection: true})
								c.Node.StepDown(time.Hour)
							}
							return r.answer(c)
						})
						o := op(t)
						if limit > 0 {
							o = within(o, limit)
						}
						sent, err := r.play(t.Context(), o, first)
						switch {
						case err == nil:
							t.Error("success")
						case len(sent) != 1:
							t.Errorf("%d attempts", len(sent))
						case failure.OutOfTime(err) != (limit > 0):
							t.Errorf("error %T %[1]v, with a limit of %v", err, limit)
						case first.drop && !failure.Network(err), !first.drop && !hasCode(err, first.code):
							t.Errorf("error %v is not that of the first attempt", err)
						}
					})
				})
			}
		}
	}
}

// The checkout has what the selection has left of serverSelectionTimeoutMS, not all of it again
// (specification: Client Side Operations Timeout, "Server Selection").
func TestCheckOutHasWhatSelectionLeft(t *testing.T) {
	for _, away := range []time.Duration{0, 6 * time.Second, 20 * time.Second} {
		t.Run(away.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, both)
				srv := r.x.Topology.Server(r.d.Primary().Addr())
				for range 10 { // as many as the pool has
					c, err := srv.CheckOut(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					defer c.Return()
				}
				if away > 0 {
					r.d.Primary().StepDown(away)
					synctest.Wait()
				}
				start := time.Now()
				sent, err := r.play(t.Context(), within(insert(t), time.Hour))
				if took := time.Since(start); len(sent) != 0 || err == nil || took != r.x.SelectionTimeout {
					t.Errorf("%d attempts in %v, want none in %v: %v", len(sent), took, r.x.SelectionTimeout, err)
				}
			})
		})
	}
}

// TestTimeoutBoundsConnections: a connection that was begun for an operation takes no longer than
// its timeout, also when the operation has left; without one the connect timeout bounds it
// (specification: Client Side Operations Timeout, "Background Connection Pooling").
func TestTimeoutBoundsConnections(t *testing.T) {
	for _, tc := range []struct {
		timeout *time.Duration
		ends    time.Duration // the attempt
	}{
		{new(100 * time.Millisecond), 100 * time.Millisecond}, {new(3 * time.Second), 3 * time.Second}, {new(time.Minute), 10 * time.Second},
		{new(time.Duration(0)), 10 * time.Second}, {nil, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, both)
			synctest.Wait()
			var silent atomic.Bool
			silent.Store(true)
			r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if silent.Load() && !c.Body.Lookup("client").IsZero() { // the first of a connection
					time.Sleep(time.Hour)
				}
				return r.answer(c)
			})
			connecting := func() (n int) {
				pools, _, _ := r.x.Topology.Stats()
				for _, p := range pools {
					n += p.Connecting
				}
				return n
			}
			ctx, cancel := context.WithCancel(t.Context())
			op := find(t)
			if tc.timeout != nil {
				op.Limit = NewLimit(tc.timeout, "the timeout of the test")
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				r.play(ctx, op)
			}()
			time.Sleep(50 * time.Millisecond)
			cancel() // the operation leaves
			<-ended
			if n := connecting(); n != 1 {
				t.Fatalf("timeout %v: %d connections are being made", tc.timeout, n)
			}
			time.Sleep(tc.ends - 51*time.Millisecond)
			if n := connecting(); n != 1 {
				t.Errorf("timeout %v: %d connections are being made shortly before %v", tc.timeout, n, tc.ends)
			}
			time.Sleep(2 * time.Millisecond)
			if n := connecting(); n != 0 {
				t.Errorf("timeout %v: %d connections are being made after %v", tc.timeout, n, tc.ends)
			}
			silent.Store(false)
		})
	}
}

// TestSocketTimeout: without a timeout of the operation's, a reply takes no longer than the socket
// timeout; with one, that counts alone (specification: Client Side Operations Timeout,
// "socketTimeoutMS").
func TestSocketTimeout(t *testing.T) {
	const silence = time.Hour
	for _, tc := range []struct {
		socket  time.Duration
		timeout *time.Duration
		ends    time.Duration
		own     bool // it is the operation's time that was up
	}{
		{socket: time.Second, ends: time.Second},
		{socket: time.Minute, ends: time.Minute},
		{socket: time.Second, timeout: new(5 * time.Second), ends: 5 * time.Second, own: true},
		{socket: time.Minute, timeout: new(5 * time.Second), ends: 5 * time.Second, own: true},
		{timeout: new(5 * time.Second), ends: 5 * time.Second, own: true},
		{socket: time.Second, timeout: new(time.Duration(0)), ends: silence},
		{ends: silence},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{SocketTimeout: tc.socket})
			r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if c.Name == "find" {
					time.Sleep(silence)
				}
				return r.answer(c)
			})
			op := find(t)
			if tc.timeout != nil {
				op.Limit = NewLimit(tc.timeout, "the timeout of the test")
			}
			start := time.Now()
			_, err := r.play(t.Context(), op)
			var own *mongoerr.TimeoutError
			if took := time.Since(start); took != tc.ends || (err != nil) != (tc.ends < silence) || (errors.As(err, &own) && own.Source != "") != tc.own {
				t.Errorf("socket timeout %v, timeout %v: %v after %v", tc.socket, tc.timeout, err, took)
			}
		})
	}
}
