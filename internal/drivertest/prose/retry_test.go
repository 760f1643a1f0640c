package prose

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/exec"
	"allium/mongoerr"
	"allium/mongotest"
)

func wantCode(t *testing.T, err error, code int32) *mongoerr.ServerError {
	t.Helper()
	var e *mongoerr.ServerError
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("want a server error %d, got %v", code, err)
	}
	return e
}

// Retryable Reads, prose test 1, and Retryable Writes, prose test 2: an operation is tried again
// after a checkout met a pool that another one's error had cleared.
func TestProseRetryPoolCleared(t *testing.T) {
	for _, command := range []string{"find", "insert"} {
		t.Run(command, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{MaxPoolSize: new(1)}, mongotest.ReplicaSet(1))
				run := r.FindOne
				fail := mongotest.Fail{Commands: []string{command}, Times: 1, Code: 91, Block: time.Second}
				if command == "insert" {
					run, fail.Labels = r.InsertOne, []string{"RetryableWriteError"}
				}
				r.Deployment.FailCommand(fail)
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						if err := run(t); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if n := len(r.Events("started " + command)); n != 3 {
					t.Errorf("%d commands were started, want 3", n)
				}
				got := r.Events("out", "cleared", "refused")
				if len(got) < 3 || got[0] != "out" || got[1] != "cleared" || got[2] != "refused connectionError" {
					t.Errorf("events of the pool: %q", got)
				}
			})
		})
	}
}

// Retryable Reads, prose tests 2.1 and 2.2, and Retryable Writes, 4 and 5: a retry goes to another
// mongos if there is one.
func TestProseRetryOnAnotherMongos(t *testing.T) {
	for _, command := range []string{"find", "insert"} {
		labels := map[string][]string{"insert": {"RetryableWriteError"}}[command]
		run := func(r *rig.Retry) func(*testing.T) error {
			if command == "insert" {
				return r.InsertOne
			}
			return r.FindOne
		}
		t.Run(command+" with another", func(t *testing.T) {
			// The choice is random otherwise: ten times the right one by chance has odds of one in
			// a thousand.
			for range 10 {
				synctest.Test(t, func(t *testing.T) {
					r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.Sharded(1, 2))
					for _, n := range r.Deployment.Nodes() {
						n.FailCommand(mongotest.Fail{Commands: []string{command}, Times: 1, Code: 6, Labels: labels})
					}
					wantCode(t, run(r)(t), 6)
					got := r.Events("failed " + command)
					if len(got) != 2 || got[0] == got[1] {
						t.Errorf("failed: %q, want two on different servers", got)
					}
				})
			}
		})
		t.Run(command+" without another", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.Sharded(1, 1))
				r.Deployment.FailCommand(mongotest.Fail{Commands: []string{command}, Times: 1, Code: 6, Labels: labels, CloseConnection: command == "insert"})
				if err := run(r)(t); err != nil {
					t.Fatal(err)
				}
				addr := r.Deployment.Hosts()[0]
				want := []string{"failed " + command + " " + addr, "succeeded " + command + " " + addr}
				if got := r.Events("failed", "succeeded"); !slices.Equal(got, want) {
					t.Errorf("events: %q, want %q", got, want)
				}
			})
		})
	}
}

// Retryable Reads, prose tests 3.1 to 3.3: which member of a replica set a retry goes to.
func TestProseRetryReadsRetargeting(t *testing.T) {
	for _, tc := range []struct {
		name     string
		retarget bool
		labels   []string
		same     bool
	}{
		{"1 overload, with retargeting", true, rig.OverloadLabels, false},
		{"2 no overload", true, []string{"RetryableError"}, true},
		{"2 no overload, no retargeting", false, []string{"RetryableError"}, true},
		{"3 overload, no retargeting", false, rig.OverloadLabels, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{EnableOverloadRetargeting: &tc.retarget,
					ReadPreference: &consistency.ReadPreference{Mode: consistency.PrimaryPreferred}}, mongotest.ReplicaSet(2))
				r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 1, Code: 6, Labels: tc.labels})
				if err := r.FindOne(t); err != nil {
					t.Fatal(err)
				}
				got := r.Events("failed find", "succeeded find")
				if len(got) != 2 {
					t.Fatalf("events: %q", got)
				}
				if same := strings.TrimPrefix(got[0], "failed") == strings.TrimPrefix(got[1], "succeeded"); same != tc.same {
					t.Errorf("events: %q, want the same server: %v", got, tc.same)
				}
			})
		})
	}
}

// Retryable Reads, prose tests 4 and 5, and Retryable Writes, 6 cases 4 and 5: once there was
// overload, all policies share its bound, and only errors of overload are waited after.
func TestProseRetryAfterMixedErrors(t *testing.T) {
	for _, command := range []string{"find", "insert"} {
		for _, jitter := range []float64{0, 1} {
			t.Run(fmt.Sprintf("%s with jitter %v", command, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rig.NewRetry(t, allium.ClientOptions{HeartbeatInterval: new(500 * time.Millisecond)}, mongotest.ReplicaSet(1))
					setJitter(r.Client, jitter)
					r.Deployment.FailCommand(mongotest.Fail{Commands: []string{command}, Times: 1, Code: 262, Labels: rig.OverloadLabels})
					labels, run := []string{"RetryableError"}, r.FindOne
					if command == "insert" {
						labels, run = append(labels, "RetryableWriteError"), r.InsertOne
					}
					r.AfterFirstFailure(func() {
						// The tests' code is 91, after which a selection waits for the next check
						// of the server; 262 is as retryable.
						r.Deployment.FailCommand(mongotest.Fail{Commands: []string{command}, Code: 262, Labels: labels})
					})
					start := time.Now()
					wantCode(t, run(t), 262)
					if n := len(r.Events("started " + command)); n != 3 {
						t.Errorf("%d attempts, want MAX_RETRIES + 1", n)
					}
					if got, want := time.Since(start), time.Duration(jitter*200)*time.Millisecond; got != want {
						t.Errorf("it took %v, want one backoff of %v", got, want)
					}
				})
			})
		}
	}
}

// Retryable Writes, prose test 1: an error of a storage engine without retryable writes says what
// to do.
func TestProseRetryWritesMMAPv1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		r.Deployment.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
			if c.Name != "insert" {
				return nil, nil
			}
			return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 20}, {Key: "codeName", Value: "IllegalOperation"},
				{Key: "errmsg", Value: "Transaction numbers are only allowed on a replica set member or mongos"}})
		})
		e := wantCode(t, r.InsertOne(t), 20)
		const want = "This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."
		if !strings.HasPrefix(e.Message, want) {
			t.Errorf("message is %q, want %q", e.Message, want)
		}
	})
}

// Servers of others refuse retryable writes with words of their own, and the error says what to do,
// once.
func TestRetryWritesElsewhere(t *testing.T) {
	for message, told := range map[string]bool{
		"Retryable writes are not supported":                                                                           true,
		"Error: retryable writes are not supported by this account":                                                    true,
		"Retryable writes are not supported. Please disable retryable writes by specifying \"retrywrites=false\" in …": false,
		"something else": false,
	} {
		for _, code := range []int32{301, 20} {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				r.Deployment.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
					if c.Name != "insert" {
						return nil, nil
					}
					return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: code}, {Key: "errmsg", Value: message}})
				})
				want := message
				if told {
					want += "; add retryWrites=false to the connection string"
				}
				if e := wantCode(t, r.InsertOne(t), code); e.Message != want {
					t.Errorf("message is %q, want %q", e.Message, want)
				}
			})
		}
	}
}

// Retryable Writes, prose test 3: a write concern error wins over an error that says that no write
// was performed.
func TestProseRetryWritesConcernErrorIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Labels: []string{"RetryableWriteError"},
			WriteConcernError: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "shutting down"}}})
		var once sync.Once
		r.OnDone = func(*event.CommandSucceeded) {
			once.Do(func() {
				r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Code: 10107, Labels: []string{"RetryableWriteError", "NoWritesPerformed"}})
			})
		}
		err := r.InsertOne(t)
		var wc *mongoerr.WriteConcernError
		if !errors.As(err, &wc) || wc.Code != 91 {
			t.Errorf("want the write concern error 91, got %v", err)
		}
		if got := r.Events("succeeded insert", "failed insert"); len(got) != 2 || !strings.HasPrefix(got[1], "failed") {
			t.Errorf("events: %q", got)
		}
	})
}

// Retryable Writes, prose test 6, cases 1 to 3: which of several errors is returned.
func TestProseRetryWritesErrorPropagation(t *testing.T) {
	none := append([]string{"NoWritesPerformed"}, rig.OverloadLabels...)
	for _, tc := range []struct {
		name          string
		first, second mongotest.Fail
		code          int32
	}{
		{"1 writes may have been performed", mongotest.Fail{Code: 91, Labels: rig.OverloadLabels}, mongotest.Fail{Code: 10107, Labels: rig.OverloadLabels}, 10107},
		{"2 none was performed", mongotest.Fail{Code: 91, Labels: none}, mongotest.Fail{Code: 10107, Labels: none}, 91},
		{"3 the first may have been", mongotest.Fail{Code: 91, Labels: rig.OverloadLabels}, mongotest.Fail{Code: 91, Labels: none}, 91},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				tc.first.Commands, tc.first.Times = []string{"insert"}, 1
				tc.second.Commands = []string{"insert"}
				r.Deployment.FailCommand(tc.first)
				r.AfterFirstFailure(func() { r.Deployment.FailCommand(tc.second) })
				err := r.InsertOne(t)
				wantCode(t, err, tc.code)
				if tc.first.Labels[0] != "NoWritesPerformed" && mongoerr.HasLabel(err, "NoWritesPerformed") {
					t.Errorf("the error has the label NoWritesPerformed: %v", err)
				}
				if n := len(r.Events("started insert")); n != 3 {
					t.Errorf("%d attempts, want 3", n)
				}
			})
		})
	}
}

// Client Backpressure, prose tests 1 and 5: the wait grows, from a base that the server may set.
func TestProseBackpressureBackoff(t *testing.T) {
	for _, tc := range []struct {
		name   string
		jitter float64
		base   int // the server's, in milliseconds; 0: none
		want   time.Duration
	}{
		{"1 without jitter", 0, 0, 0},
		{"1 with jitter", 1, 0, 600 * time.Millisecond},
		{"5 baseBackoffMS", 1, 50, 300 * time.Millisecond},
		{"5 baseBackoffMS that is not positive", 1, -5, 600 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				setJitter(r.Client, tc.jitter)
				r.Deployment.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
					if c.Name != "insert" {
						return nil, nil
					}
					reply := bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 462}, {Key: "errmsg", Value: "rate exceeded"}, {Key: "errorLabels", Value: rig.OverloadLabels}}
					if tc.base != 0 {
						reply = append(reply, bson.E{Key: "baseBackoffMS", Value: tc.base})
					}
					return bson.Marshal(reply)
				})
				start := time.Now()
				wantCode(t, r.InsertOne(t), 462)
				if got := time.Since(start); got != tc.want {
					t.Errorf("it took %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// Client Backpressure, prose test 5 as its text has it: the server attaches what its parameter
// externalClientBaseBackoffMS says to the errors of the fail point.
func TestProseBackpressureServersBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1), mongotest.Version("9.0"))
		setJitter(r.Client, 1)
		r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Code: 462, Labels: rig.OverloadLabels})
		insert := func() (time.Duration, bson.Raw) {
			t.Helper()
			start := time.Now()
			err := r.InsertOne(t)
			wantCode(t, err, 462)
			e, _ := errors.AsType[*mongoerr.ServerError](err)
			return time.Since(start), e.Raw
		}
		set := func(ms int) {
			t.Helper()
			if _, err := r.Client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "setParameter", Value: 1}, {Key: "externalClientBaseBackoffMS", Value: ms}}); err != nil {
				t.Fatal(err)
			}
		}
		if took, raw := insert(); took != 600*time.Millisecond || !raw.Lookup("baseBackoffMS").IsZero() {
			t.Errorf("without a base of the server's it took %v: %v", took, raw)
		}
		set(50)
		took, raw := insert()
		if base, _ := raw.Lookup("baseBackoffMS").AsInt64(); took != 300*time.Millisecond || base != 50 {
			t.Errorf("with the server's base it took %v: %v", took, raw)
		}
		set(0)
		if took, raw := insert(); took != 600*time.Millisecond || !raw.Lookup("baseBackoffMS").IsZero() {
			t.Errorf("with the parameter off again it took %v: %v", took, raw)
		}
	})
}

// Client Backpressure, prose tests 3 and 4: how often an operation is tried again.
func TestProseBackpressureMaxRetries(t *testing.T) {
	for _, tc := range []struct {
		name     string
		max      *int
		attempts int
	}{{"3 by default", nil, 3}, {"4 maxAdaptiveRetries is 1", new(1), 2}, {"none", new(0), 1}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{MaxAdaptiveRetries: tc.max, Timeout: new(time.Hour)}, mongotest.ReplicaSet(1))
				r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"find"}, Code: 462, Labels: rig.OverloadLabels})
				err := r.FindOne(t)
				wantCode(t, err, 462)
				for _, l := range rig.OverloadLabels {
					if !mongoerr.HasLabel(err, l) {
						t.Errorf("the error lacks the label %s: %v", l, err)
					}
				}
				if n := len(r.Events("started find")); n != tc.attempts {
					t.Errorf("%d attempts, want %d", n, tc.attempts)
				}
			})
		})
	}
}

// setJitter replaces the random factor of a client's backoffs.
func setJitter(c *allium.Client, jitter float64) {
	exec.Inside(c).Jitter = func() float64 { return jitter }
}
