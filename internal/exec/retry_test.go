package exec

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/command"
	"allium/internal/failure"
	"allium/mongoerr"
	"allium/mongotest"
)

var (
	overloaded = []string{mongoerr.LabelRetryable, mongoerr.LabelSystemOverloaded}
	retryable  = []string{mongoerr.LabelRetryableWrite}
	noWrites   = []string{mongoerr.LabelRetryableWrite, mongoerr.LabelNoWritesPerformed}
)

// both is the usual configuration.
var both = Config{RetryReads: true, RetryWrites: true, MaxAdaptiveRetries: DefaultMaxAdaptiveRetries}

// One decision per line: what an attempt met, and how many attempts that makes.
func TestRetryDecisions(t *testing.T) {
	notPrimary := outcome{code: 10107}
	repeat := func(o outcome, n int) []outcome {
		list := make([]outcome, n)
		for i := range list {
			list[i] = o
		}
		return list
	}
	run := func(t testing.TB) *Op { op := find(t); op.Kind, op.Retryable = Run, false; return op }
	updateMany := func(t testing.TB) *Op { op := insert(t); op.Retryable = false; return op }
	getMore := func(t testing.TB) *Op { op := find(t); op.Retryable = false; return op }
	merge := func(t testing.TB) *Op { op := find(t); op.OutputStage = true; return op }
	long := func(f func(testing.TB) *Op) func(testing.TB) *Op {
		return func(t testing.TB) *Op { return within(f(t), time.Hour) }
	}
	with := func(edit func(*Config)) Config { c := both; edit(&c); return c }
	noReads := with(func(c *Config) { c.RetryReads = false })
	noWritesRetried := with(func(c *Config) { c.RetryWrites = false })
	untilSuccess := with(func(c *Config) { c.ReadRetry.UntilSuccess = true })
	for _, tc := range []struct {
		name     string
		cfg      Config
		op       func(testing.TB) *Op
		script   []outcome
		attempts int
		code     int32 // of the error, 0 if it succeeds; -1: an error of the network
	}{
		{"success", both, find, nil, 1, 0},
		{"read, retryable code", both, find, repeat(notPrimary, 1), 2, 0},
		{"read, twice", both, find, repeat(notPrimary, 2), 2, 10107},
		{"read, other code", both, find, repeat(outcome{code: 2}, 1), 1, 2},
		{"read, code of reads only", both, find, repeat(outcome{code: 134}, 1), 2, 0},
		{"read, network", both, find, repeat(outcome{drop: true}, 1), 2, 0},
		{"read, network twice", both, find, repeat(outcome{drop: true}, 2), 2, -1},
		{"read, switched off", noReads, find, repeat(notPrimary, 1), 1, 10107},
		{"read, the label of writes does not count", both, find, repeat(outcome{code: 2, labels: retryable}, 1), 1, 2},
		{"read, timeoutMS", both, long(find), repeat(notPrimary, 7), 8, 0},
		{"read, timeoutMS, other code", both, long(find), append(repeat(notPrimary, 2), outcome{code: 2}), 3, 2},
		{"getMore", both, getMore, repeat(notPrimary, 1), 1, 10107},
		{"getMore, overload", both, getMore, repeat(outcome{code: 462, labels: overloaded}, 1), 2, 0},
		{"runCommand", both, run, repeat(outcome{code: 10107, labels: retryable}, 1), 1, 10107},
		{"runCommand, overload", both, run, repeat(outcome{code: 462, labels: overloaded}, 1), 2, 0},
		{"runCommand, overload, reads off", noReads, run, repeat(outcome{code: 462, labels: overloaded}, 1), 1, 462},
		{"runCommand, overload, writes off", noWritesRetried, run, repeat(outcome{code: 462, labels: overloaded}, 1), 1, 462},

		{"write, label", both, insert, repeat(outcome{code: 10107, labels: retryable}, 1), 2, 0},
		{"write, code without label", both, insert, repeat(notPrimary, 1), 1, 10107},
		{"write, network", both, insert, repeat(outcome{drop: true}, 1), 2, 0},
		{"write, network twice", both, insert, repeat(outcome{drop: true}, 2), 2, -1},
		{"write, switched off", noWritesRetried, insert, repeat(outcome{code: 10107, labels: retryable}, 1), 1, 10107},
		{"write, not a retryable one", both, updateMany, repeat(outcome{drop: true}, 1), 1, -1},
		{"write, not a retryable one, overload", both, updateMany, repeat(outcome{code: 462, labels: overloaded}, 1), 2, 0},
		{"write, timeoutMS", both, long(insert), repeat(outcome{drop: true}, 5), 6, 0},
		{"write concern error, label", both, insert, repeat(outcome{code: 91, concern: true, labels: retryable}, 1), 2, 0},
		{"write concern error, twice", both, insert, repeat(outcome{code: 91, concern: true, labels: retryable}, 2), 2, 91},
		{"write concern error, no label", both, insert, repeat(outcome{code: 64, concern: true}, 1), 1, 64},
		{"write, an earlier error wins over no writes", both, insert, []outcome{{code: 91, labels: retryable}, {code: 10107, labels: noWrites}}, 2, 91},
		{"write, only errors without writes: the first", both, insert, []outcome{{code: 91, labels: noWrites}, {code: 10107, labels: noWrites}}, 2, 91},
		{"write, the last error with writes", both, insert, []outcome{{code: 91, labels: noWrites}, {code: 10107, labels: retryable}}, 2, 10107},

		{"overload", both, find, repeat(outcome{code: 462, labels: overloaded}, 3), 3, 462},
		{"overload of a read that writes its results, writes off", noWritesRetried, merge, repeat(outcome{code: 462, labels: overloaded}, 1), 1, 462},
		{"overload of a read that writes its results, reads off", noReads, merge, repeat(outcome{code: 462, labels: overloaded}, 1), 2, 0},
		{"overload, not retryable", both, find, repeat(outcome{code: 462, labels: overloaded[1:]}, 1), 1, 462},
		{"overload within timeoutMS", both, long(find), repeat(outcome{code: 462, labels: overloaded}, 3), 3, 462},
		{"overload bounds later errors, too", both, long(find), append(repeat(outcome{code: 462, labels: overloaded}, 1), repeat(notPrimary, 5)...), 3, 10107},
		{"overload after other errors", both, long(find), append(repeat(notPrimary, 4), outcome{code: 462, labels: overloaded}), 5, 462},
		{"overload, no retries", with(func(c *Config) { c.MaxAdaptiveRetries = 0 }), find, repeat(outcome{code: 462, labels: overloaded}, 1), 1, 462},
		{"overload, five retries", with(func(c *Config) { c.MaxAdaptiveRetries = 5 }), find, repeat(outcome{code: 462, labels: overloaded}, 9), 6, 462},

		{"until success", untilSuccess, find, repeat(notPrimary, 9), 10, 0},
		{"until success, other code", untilSuccess, find, append(repeat(notPrimary, 3), outcome{code: 2}), 4, 2},
		{"until success, not for writes", untilSuccess, insert, repeat(outcome{drop: true}, 2), 2, -1},
		{"until success, overload", untilSuccess, find, repeat(outcome{code: 462, labels: overloaded}, 9), 3, 462},
		{"until success, second socket timeout", with(func(c *Config) { c.ReadRetry.UntilSuccess, c.SocketTimeout = true, time.Second }), find,
			[]outcome{{delay: 2 * time.Second}, notPrimary, {delay: 2 * time.Second}, notPrimary}, 3, -1},
		{"at most three attempts", with(func(c *Config) { c.ReadRetry.MaxAttempts = 3 }), find, repeat(notPrimary, 9), 3, 10107},
		{"at most one attempt", with(func(c *Config) { c.ReadRetry.MaxAttempts = 1 }), find, repeat(notPrimary, 9), 1, 10107},
		{"at most three attempts until success", with(func(c *Config) { c.ReadRetry = ReadRetryPolicy{UntilSuccess: true, MaxAttempts: 3} }), find, repeat(notPrimary, 9), 3, 10107},
		{"at most three attempts within timeoutMS", with(func(c *Config) { c.ReadRetry.MaxAttempts = 3 }), long(find), repeat(notPrimary, 9), 3, 10107},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tc.cfg)
				sent, err := r.play(t.Context(), tc.op(t), tc.script...)
				if len(sent) != tc.attempts {
					t.Errorf("%d attempts, want %d: %v", len(sent), tc.attempts, err)
				}
				switch {
				case tc.code == 0 && err != nil, tc.code == -1 && !failure.Network(err), tc.code > 0 && !hasCode(err, tc.code):
					t.Errorf("error %v, want code %d", err, tc.code)
				}
				dirty := false
				for _, o := range tc.script[:min(len(sent), len(tc.script))] {
					dirty = dirty || o.drop || o.delay > 0
				}
				if leak := r.leaks(sent, dirty); leak != "" {
					t.Errorf("leaked %s", leak)
				}
			})
		})
	}
}

// A retried write keeps its transaction number and its session; the next one takes a new number.
func TestRetryKeepsTransactionNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		drop := outcome{drop: true}
		first, err := r.play(t.Context(), within(insert(t), time.Hour), drop, drop, drop)
		if err != nil || len(first) != 4 {
			t.Fatalf("%d attempts, %v", len(first), err)
		}
		for _, s := range first {
			if s.txn != first[0].txn || s.txn == 0 || s.lsid != first[0].lsid {
				t.Errorf("attempts %+v differ in their transaction number or session", first)
			}
		}
		second, _ := r.play(t.Context(), insert(t))
		if second[0].lsid == first[0].lsid {
			t.Error("a session that a network error hit is used again")
		}
		third, _ := r.play(t.Context(), insert(t))
		if third[0].lsid != second[0].lsid || third[0].txn != second[0].txn+1 {
			t.Errorf("number %d after %d, want the next one of the same session", third[0].txn, second[0].txn)
		}
	})
}

// A write that may have been applied is not sent to a server that cannot tell: the error of the
// attempt before is returned (specification: Retryable Writes, "Executing Retryable Write
// Commands").
func TestRetryNeedsSupport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both, mongotest.Sharded(1, 2))
		old := r.d.Node(1).Addr()
		r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
			if c.Node.Addr() == old && (c.Name == "hello" || c.Name == "isMaster") { // without logicalSessionTimeoutMinutes
				return bson.Marshal(bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "msg", Value: "isdbgrid"}, {Key: "maxBsonObjectSize", Value: 16 << 20},
					{Key: "maxMessageSizeBytes", Value: 48_000_000}, {Key: "maxWriteBatchSize", Value: 100_000}, {Key: "minWireVersion", Value: 0},
					{Key: "maxWireVersion", Value: 25}, {Key: "ok", Value: 1}})
			}
			return r.answer(c)
		})
		r.d.Node(1).CloseConnections()
		time.Sleep(time.Minute)
		refused := 0
		for range 50 {
			sent, err := r.play(t.Context(), insert(t), outcome{code: 6, labels: retryable})
			if sent[0].addr == old { // no number, and so no retry
				if len(sent) != 1 || sent[0].txn != 0 || !hasCode(err, 6) {
					t.Errorf("sent %+v: %v", sent, err)
				}
				continue
			}
			refused++
			if len(sent) != 1 || sent[0].txn == 0 || !hasCode(err, 6) {
				t.Errorf("sent %+v, want one attempt and its error: %v", sent, err)
			}
		}
		if refused == 0 || refused == 50 {
			t.Errorf("%d of 50 operations began on the server with sessions", refused)
		}
		if leak := r.leaks(nil, true); leak != "" {
			t.Errorf("leaked %s", leak)
		}
	})
}

// Backoffs: 200 ms, 400 ms and so on up to ten seconds, multiplied by the jitter, from the base
// that the server sets; and none that would end after the deadline.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := both
		cfg.MaxAdaptiveRetries = 9
		r := newRig(t, cfg)
		full := make([]outcome, 10)
		for i := range full {
			full[i] = outcome{code: 462, labels: overloaded}
		}
		sent, _ := r.play(t.Context(), find(t), full...)
		var waits []time.Duration
		for i := 1; i < len(sent); i++ {
			waits = append(waits, sent[i].at.Sub(sent[i-1].at))
		}
		want := []time.Duration{200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000}
		for i := range want {
			if i >= len(waits) || waits[i] != want[i]*time.Millisecond {
				t.Fatalf("waits %v, want %v milliseconds", waits, want)
			}
		}
		start := time.Now()
		sent, err := r.play(t.Context(), within(find(t), time.Second), full...)
		// 200 ms and 400 ms fit in, 800 ms do not: the error comes without waiting for nothing.
		if len(sent) != 3 || time.Since(start) != 600*time.Millisecond || !hasCode(err, 462) {
			t.Errorf("%d attempts in %v: %v", len(sent), time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start = time.Now()
		sent, err = r.play(ctx, find(t), full...)
		if len(sent) != 2 || time.Since(start) > 300*time.Millisecond {
			t.Errorf("with a context's deadline: %d attempts in %v: %v", len(sent), time.Since(start), err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		start = time.Now()
		_, err = r.play(ctx, find(t), full...)
		if !errors.Is(err, context.Canceled) || time.Since(start) != 300*time.Millisecond {
			t.Errorf("cancelled during a backoff: after %v, %v", time.Since(start), err)
		}
		if leak := r.leaks(nil, true); leak != "" {
			t.Errorf("leaked %s", leak)
		}
	})
}

// Any sequence of outcomes, under any settings: the number of attempts is that of a model of the
// specifications, the deadline holds, transaction numbers are kept, and nothing is leaked.
func TestRetryProperties(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 40 {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{RetryReads: rnd.IntN(4) > 0, RetryWrites: rnd.IntN(4) > 0, MaxAdaptiveRetries: rnd.IntN(4),
				OverloadRetargeting: rnd.IntN(2) == 0, ReadRetry: ReadRetryPolicy{UntilSuccess: rnd.IntN(4) == 3, MaxAttempts: max(rnd.IntN(6)-2, 0)}}
			var kind mongotest.Option
			standalone, balanced := false, false
			switch rnd.IntN(5) {
			case 0:
				kind = mongotest.Sharded(1, 2)
			case 1:
				kind, standalone = mongotest.Standalone(), true
			case 2:
				kind, balanced = mongotest.LoadBalanced(1), true
			default:
				kind = mongotest.ReplicaSet(1)
			}
			r := newRigOn(t, cfg, balanced, kind)
			for range 15 {
				m := model{cfg: cfg, standalone: standalone}
				op := find(t)
				if m.write = rnd.IntN(2) == 0; m.write {
					op = insert(t)
				}
				op.Retryable = rnd.IntN(5) > 0
				m.retryable = op.Retryable
				limit := time.Duration(0)
				switch rnd.IntN(3) {
				case 0:
					limit = time.Hour // never reached
				case 1:
					limit = time.Duration(1+rnd.IntN(3000)) * time.Millisecond
				}
				if limit > 0 {
					within(op, limit)
				}
				m.csot = limit > 0
				script := make([]outcome, rnd.IntN(6))
				dirty := false
				for i := range script {
					script[i] = randomOutcome(rnd, m.write)
					dirty = dirty || script[i].drop
				}
				start := time.Now()
				sent, err := r.play(t.Context(), op, script...)
				took := time.Since(start)
				if want := m.attempts(script); limit == 0 || limit == time.Hour {
					if len(sent) != want {
						t.Errorf("seed %d: %d attempts, the model says %d\n%+v\n%+v\n%+v: %v", seed, len(sent), want, cfg, m, script, err)
					}
				} else if len(sent) > want {
					t.Errorf("seed %d: %d attempts, the model says %d at most", seed, len(sent), want)
				}
				if limit > 0 && took > limit {
					t.Errorf("seed %d: it took %v, the limit is %v", seed, took, limit)
				}
				for _, s := range sent {
					if s.txn != sent[0].txn || s.lsid != sent[0].lsid {
						t.Errorf("seed %d: attempts %+v differ in transaction number or session", seed, sent)
					}
					if limit > 0 && (s.max <= 0 || s.max > limit.Milliseconds()) {
						t.Errorf("seed %d: maxTimeMS is %d, the limit %v", seed, s.max, limit)
					}
				}
				var timeout *mongoerr.TimeoutError
				if errors.As(err, &timeout) && limit == 0 {
					t.Errorf("seed %d: a timeout without a limit: %v", seed, err)
				}
				dirty = dirty || timeout != nil
				if leak := r.leaks(sent, dirty); leak != "" {
					t.Errorf("seed %d: leaked %s: %v", seed, leak, err)
				}
			}
		})
	}
}

func randomOutcome(rnd *rand.Rand, write bool) outcome {
	o := outcome{delay: time.Duration(rnd.IntN(3)*rnd.IntN(200)) * time.Millisecond}
	switch rnd.IntN(5) {
	case 0:
		o.drop = true
	case 1:
		o.code = 2
	case 2:
		o.code, o.labels = 462, overloaded
	case 3:
		o.code = 6
		o.concern = write && rnd.IntN(2) == 0
		if write && rnd.IntN(3) > 0 {
			o.labels = retryable
		}
	case 4: // success
	}
	return o
}

// model is Retryable Reads, Retryable Writes and Client Backpressure in their own words, for one
// operation.
type model struct {
	cfg                                Config
	write, retryable, csot, standalone bool
}

func (m *model) attempts(script []outcome) int {
	allowed := 1
	if m.csot {
		allowed = unlimited
	}
	if p := m.cfg.ReadRetry; !m.write {
		if p.UntilSuccess {
			allowed = unlimited
		}
		if p.MaxAttempts > 0 {
			allowed = p.MaxAttempts - 1
		}
	}
	retries := 0
	overload := false
	for _, o := range script {
		if !o.drop && o.code == 0 {
			break
		}
		isOverload := o.code == 462
		switch {
		case isOverload && (m.write && m.cfg.RetryWrites || !m.write && m.cfg.RetryReads):
		case isOverload:
			return retries + 1
		case m.write && m.retryable && m.cfg.RetryWrites && !m.standalone && (o.drop || len(o.labels) > 0):
		case !m.write && m.retryable && m.cfg.RetryReads && (o.drop || o.code == 6):
		default:
			return retries + 1
		}
		bound := allowed
		if overload = overload || isOverload; overload {
			bound = m.cfg.MaxAdaptiveRetries
		} else if !m.write && !m.retryable {
			bound = 1
		}
		if retries >= bound {
			return retries + 1
		}
		retries++
	}
	return retries + 1
}

// newRun returns an operation that is about to make its first attempt.
func (r *rig) newRun(t *testing.T, op *Op) *run {
	t.Helper()
	run := &run{x: r.x, op: op, started: time.Now(), flight: r.x.flights.begin(op.Command, op.DB, time.Now())}
	t.Cleanup(func() { r.x.flights.end(run.flight) })
	if err := run.encode(); err != nil {
		t.Fatal(err)
	}
	return run
}

// A batch with a statement that nobody may retry is not retried after a checkout that failed
// either, although no message was built.
func TestMixedBatchAtCheckOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		addr := r.x.Topology.Description().Servers[0].Addr
		srv := r.x.Topology.Server(addr)
		r.d.Stop()
		time.Sleep(time.Minute)
		for _, multi := range []bool{false, true} {
			doc := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
			list := []command.UpdateStatement{{Filter: bson.D{}, Update: doc}, {Filter: bson.D{}, Update: doc, Multi: multi}}
			op := &Op{Command: &command.Update{Collection: "c", Statements: list, Ordered: true}, DB: "db", Kind: Write, Retryable: true, Server: srv}
			run := r.newRun(t, op)
			run.attempts = 1
			_, stage, err := run.attempt(t.Context())
			if stage != stageCheckOut || !errors.Is(err, mongoerr.ErrPoolCleared) {
				t.Fatalf("the attempt ends in stage %d with %v", stage, err)
			}
			run.selected = &event.ServerDescription{Addr: addr, Kind: event.RSPrimary}
			run.label(err, stage)
			if got := run.retries(t.Context(), err, stage); got == multi {
				t.Errorf("multi %v: retried %v", multi, got)
			}
		}
	})
}

// Whether anything was sent is told of all attempts together: one that wrote nothing changes
// nothing about the next.
func TestSentIsOfAnyAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both)
		srv := r.x.Topology.Server(r.x.Topology.Description().Servers[0].Addr)
		broken, err := srv.CheckOut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		broken.Abandon()
		op := find(t)
		op.Server, op.Conn = srv, broken
		run := r.newRun(t, op)
		if _, _, err := run.attempt(t.Context()); !failure.Network(err) || run.sent {
			t.Fatalf("on a broken connection: %v, sent %v", err, run.sent)
		}
		broken.Return()
		op.Conn = nil
		time.Sleep(time.Minute) // until the server is known again
		res, _, err := run.attempt(t.Context())
		if err != nil || !run.sent {
			t.Errorf("on another one: %v, sent %v", err, run.sent)
		}
		res.Release()
	})
}

// Servers before 4.4 do not label their errors, and a write concern error of theirs can be retried
// by its code; not one that a mongos hands on (specification: Retryable Writes).
func TestOldWriteConcernErrors(t *testing.T) {
	for attempts, kind := range map[int]mongotest.Option{2: mongotest.ReplicaSet(1), 1: mongotest.Sharded(1, 1)} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, both, kind, mongotest.Version("4.2"))
			sent, err := r.play(t.Context(), insert(t), outcome{code: 91, concern: true})
			if len(sent) != attempts || (err == nil) != (attempts == 2) {
				t.Errorf("%d attempts, want %d: %v", len(sent), attempts, err)
			}
		})
	}
}

// Every attempt is a message of its own, with events of its own: another request id, the newest
// cluster time, the same operation id, session and transaction number, which is an int64; and each
// beginning has an end (specifications: Retryable Reads and Retryable Writes, "Command
// Monitoring").
func TestAttemptsAreMessages(t *testing.T) {
	for name, op := range map[string]func(testing.TB) *Op{"read": find, "write": insert} {
		for _, first := range []outcome{{drop: true}, {code: 7, labels: retryable}, {code: 462, labels: overloaded}} {
			t.Run(fmt.Sprintf("%s/%+v", name, first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var events []string
					var infos []event.CommandInfo
					var bodies []bson.Raw
					cfg := both
					cfg.Monitor = &event.CommandMonitor{
						Started: func(_ context.Context, e *event.CommandStarted) {
							events, infos, bodies = append(events, "started"), append(infos, e.CommandInfo), append(bodies, append(bson.Raw(nil), e.Command...))
						},
						Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
							events, infos = append(events, "succeeded"), append(infos, e.CommandInfo)
						},
						Failed: func(_ context.Context, e *event.CommandFailed) {
							events, infos = append(events, "failed"), append(infos, e.CommandInfo)
						},
					}
					r := newRig(t, cfg)
					r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
						if c.Name == "find" || c.Name == "insert" {
							now := bson.Timestamp{T: 1 << 31, I: uint32(len(bodies))}
							doc, _ := bson.Marshal(bson.D{{Key: "clusterTime", Value: now}})
							r.x.Clock.AdvanceRaw(doc) // another operation has learned of it
						}
						return r.answer(c)
					})
					o := op(t)
					if name == "read" && first.code == 7 {
						first.code = 91
					}
					if _, err := r.play(t.Context(), o, first); err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(events, []string{"started", "failed", "started", "succeeded"}) {
						t.Fatalf("events %v", events)
					}
					if infos[0].RequestID != infos[1].RequestID || infos[2].RequestID != infos[3].RequestID || infos[0].RequestID == infos[2].RequestID {
						t.Errorf("request ids of %+v", infos)
					}
					for _, i := range infos {
						if i.OperationID != infos[0].OperationID || i.OperationID == 0 {
							t.Errorf("operation ids of %+v", infos)
						}
					}
					for _, key := range []string{"lsid", "txnNumber"} {
						if !bodies[0].Lookup(key).Equal(bodies[1].Lookup(key)) {
							t.Errorf("%s differs: %v, %v", key, bodies[0], bodies[1])
						}
					}
					if txn := bodies[0].Lookup("txnNumber"); name == "write" && txn.Type != bson.TypeInt64 || name == "read" && !txn.IsZero() {
						t.Errorf("txnNumber is %v", txn)
					}
					if ts, _ := bodies[1].Lookup("$clusterTime", "clusterTime").Timestamp(); ts != (bson.Timestamp{T: 1 << 31, I: 1}) {
						t.Errorf("the retry has the cluster time %v", ts)
					}
				})
			})
		}
	}
}

// An error names the server that it comes from, also if it is not that of the last attempt
// (specifications: Retryable Reads, "If a retry attempt fails", and Retryable Writes).
func TestErrorNamesItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both, mongotest.Sharded(1, 2))
		for range 5 {
			sent, err := r.play(t.Context(), insert(t), outcome{code: 7, labels: retryable}, outcome{code: 91, labels: noWrites})
			e, ok := errors.AsType[*mongoerr.ServerError](err)
			if len(sent) != 2 || sent[0].addr == sent[1].addr || !ok || e.Code != 7 {
				t.Fatalf("sent %+v: %v", sent, err)
			}
			if e.Addr != sent[0].addr {
				t.Errorf("error of %s names %s", sent[0].addr, e.Addr)
			}
			time.Sleep(time.Minute)
		}
	})
}

// What has no transaction number is sent once, unless a server is overloaded: writes on standalone
// servers, without an answer, with statements of many documents, of the program's own, and all if
// the option is off (specification: Retryable Writes, "Supported Server Versions" and "Unsupported
// Write Operations").
func TestWritesWithoutNumber(t *testing.T) {
	off := both
	off.RetryWrites = false
	for _, tc := range []struct {
		name   string
		cfg    Config
		kind   mongotest.Option
		edit   func(*Op)
		number bool
	}{
		{"replica set", both, mongotest.ReplicaSet(1), func(*Op) {}, true},
		{"mongos", both, mongotest.Sharded(1, 1), func(*Op) {}, true},
		{"standalone", both, mongotest.Standalone(), func(*Op) {}, false},
		{"switched off", off, mongotest.ReplicaSet(1), func(*Op) {}, false},
		{"unacknowledged", both, mongotest.ReplicaSet(1), func(op *Op) { op.WriteConcern = consistency.Unacknowledged() }, false},
		{"many documents", both, mongotest.ReplicaSet(1), func(op *Op) { op.Retryable = false }, false},
		{"the program's own", both, mongotest.ReplicaSet(1), func(op *Op) { op.Kind, op.Retryable = Run, false }, false},
		{"read", both, mongotest.ReplicaSet(1), func(op *Op) { op.Kind, op.Retryable = Read, false }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tc.cfg, tc.kind)
				for _, first := range []outcome{{drop: true}, {code: 7, labels: retryable}} {
					op := insert(t)
					tc.edit(op)
					if op.unacknowledged() {
						first = outcome{} // nobody would learn of it
					}
					_, err := r.play(t.Context(), op, first)
					synctest.Wait() // also what asks for no answer arrives
					r.mu.Lock()
					sent := slices.Clone(r.seen)
					r.mu.Unlock()
					attempts := 1
					if tc.number {
						attempts = 2
					}
					if len(sent) != attempts || (err == nil) != (tc.number || op.unacknowledged()) {
						t.Errorf("%d attempts, want %d: %v", len(sent), attempts, err)
					}
					for _, s := range sent {
						if (s.txn > 0) != tc.number {
							t.Errorf("transaction number %d", s.txn)
						}
					}
				}
			})
		})
	}
}

// Which errors of a write the driver labels, and which it leaves to the servers (specification:
// Retryable Writes, "RetryableWriteError Labels"; Transactions, "Error Labels").
func TestLabelsOfWrites(t *testing.T) {
	network := func() error { return &mongoerr.ConnectionError{Addr: "a:1", Op: "read", Wrapped: errDrop} }
	cleared := func() error { return &mongoerr.PoolClearedError{Addr: "a:1", Cause: errDrop} }
	server := func() error { return &mongoerr.ServerError{Code: 91, Addr: "a:1"} }
	concern := func() error { return &mongoerr.WriteConcernError{Code: 91, Addr: "a:1"} }
	off := both
	off.RetryWrites = false
	write := func(op *Op) {}
	for _, tc := range []struct {
		name  string
		err   func() error
		stage stage
		cfg   Config
		edit  func(*Op)
		inTxn bool
		want  string
	}{
		{"connection broke", network, stageSent, both, write, false, mongoerr.LabelRetryableWrite},
		{"no connection", network, stageCheckOut, both, write, false, mongoerr.LabelRetryableWrite},
		{"pool cleared", cleared, stageCheckOut, both, write, false, mongoerr.LabelRetryableWrite},
		{"server", server, stageSent, both, write, false, ""},
		{"write concern", concern, stageSent, both, write, false, ""},
		{"switched off", network, stageSent, off, write, false, ""},
		{"pool cleared, switched off", cleared, stageCheckOut, off, write, false, ""},
		{"many documents", network, stageSent, both, func(op *Op) { op.Retryable = false }, false, ""},
		{"unacknowledged", network, stageSent, both, func(op *Op) { op.WriteConcern = consistency.Unacknowledged() }, false, ""},
		{"read", network, stageSent, both, func(op *Op) { op.Kind = Read }, false, ""},
		{"in a transaction", network, stageSent, both, write, true, mongoerr.LabelTransientTransaction},
		{"read in a transaction", network, stageSent, both, func(op *Op) { op.Kind = Read }, true, mongoerr.LabelTransientTransaction},
		{"pool cleared in a transaction", cleared, stageCheckOut, both, write, true, mongoerr.LabelTransientTransaction},
		{"server in a transaction", server, stageSent, both, write, true, ""},
		{"end of a transaction", network, stageSent, off, func(op *Op) { op.EndsTransaction = true }, false, mongoerr.LabelRetryableWrite},
		{"end of a transaction, server", server, stageSent, off, func(op *Op) { op.EndsTransaction = true }, false, ""},
	} {
		op := insert(t)
		tc.edit(op)
		r := &run{x: New(tc.cfg), op: op, inTxn: tc.inTxn, selected: &event.ServerDescription{Kind: event.RSPrimary}}
		err := tc.err()
		r.label(err, tc.stage)
		for _, label := range []string{mongoerr.LabelRetryableWrite, mongoerr.LabelTransientTransaction} {
			if mongoerr.HasLabel(err, label) != (label == tc.want) {
				t.Errorf("%s: label %s: %v", tc.name, label, mongoerr.HasLabel(err, label))
			}
		}
	}

	// What servers before 4.4 answer is labelled by its code.
	for version, labelled := range map[int32]bool{6: true, 8: true, 9: false, 25: false} {
		for code, listed := range map[int32]bool{91: true, 10107: true, 11600: true, 2: false, 11000: false} {
			r := &run{x: New(both), op: insert(t), selected: &event.ServerDescription{Kind: event.RSPrimary}}
			var got mongoerr.Labels
			r.serverLabels(&got, code, &message{run: r, hello: &event.ServerDescription{MaxWireVersion: version}})
			if (len(got) > 0) != (labelled && listed) {
				t.Errorf("wire version %d, code %d: labels %v", version, code, got)
			}
		}
	}
}

// A retry is the same command, but for the cluster time and what is left of the time
// (specifications: Retryable Reads, "Executing Retryable Read Commands", and Retryable Writes).
// Options that old servers do not know stay as well.
func TestRetryIsTheSameCommand(t *testing.T) {
	for version, old := range map[string]bool{"8.0": true, "9.0": false} {
		t.Run(version, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { retryIsTheSame(t, version, old) }) })
	}
}

// retryIsTheSame runs against a server that is too old for the option RawData, or not.
func retryIsTheSame(t *testing.T, version string, old bool) {
	r := newRig(t, both, mongotest.ReplicaSet(1), mongotest.Version(version))
	filter, err := bson.Marshal(bson.D{{Key: "x", Value: bson.D{{Key: "$gt", Value: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	reading := NewOp(&command.Find{Collection: "coll", Filter: bson.Raw(filter), Sort: bson.D{{Key: "x", Value: 1}}, Skip: 3, RawData: true, Comment: "c"})
	reading.DB, reading.ReadConcern, reading.ReadPreference = "db", "majority", &consistency.ReadPreference{Mode: consistency.Nearest}
	writing := insert(t)
	writing.WriteConcern = consistency.Majority()
	for name, op := range map[string]*Op{"find": &reading, "insert": writing} {
		for _, first := range []outcome{{drop: true}, {code: 91, labels: retryable}} {
			sent := r.bodies(t, name, func() {
				if _, err := r.play(t.Context(), op, first); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			})
			if len(sent) != 2 {
				t.Fatalf("%s: sent %v", name, sent)
			}
			if name == "find" && (sent[0].Lookup("rawData").IsZero()) != old {
				t.Errorf("to a server of %s: %v", version, sent[0])
			}
			if before, after := withoutTime(sent[0]), withoutTime(sent[1]); before != after {
				t.Errorf("%s: the retry is\n%s, the first was\n%s", name, after, before)
			}
		}
	}
}

// withoutTime prints a command without the fields that each message has anew.
func withoutTime(body bson.Raw) string {
	var b strings.Builder
	for key, v := range body.All() {
		if key != "$clusterTime" && key != "maxTimeMS" {
			fmt.Fprintf(&b, "%s: %v ", key, v)
		}
	}
	return b.String()
}

// The program's own command goes where its read preference says, also when that is none of the
// primary's (specification: Run Command, "Read Preference").
func TestRunSelectsByReadPreference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, both, mongotest.ReplicaSet(3))
		primary := r.d.Primary().Addr()
		for mode, onPrimary := range map[consistency.ReadMode]bool{consistency.Primary: true, consistency.Secondary: false, consistency.SecondaryPreferred: false} {
			for _, kind := range []Kind{Run, Read} {
				op := find(t)
				op.Kind, op.ReadPreference = kind, &consistency.ReadPreference{Mode: mode}
				for range 5 {
					sent, err := r.play(t.Context(), op)
					if err != nil || len(sent) != 1 || (sent[0].addr == primary) != onPrimary {
						t.Errorf("%v, kind %v: %v, sent %+v; the primary is %s", mode, kind, err, sent, primary)
					}
				}
			}
		}
	})
}
