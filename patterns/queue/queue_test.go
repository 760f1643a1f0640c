package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/norace"
	"allium/mongotest"
	"allium/patterns/queue"
)

// job is what the tests send.
type job struct {
	N int `bson:"n"`
}

func connect(t *testing.T, d *mongotest.Deployment) *allium.Client {
	t.Helper()
	c, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// bubble runs a test with a queue in simulated time, on each kind of deployment.
func bubble(t *testing.T, f func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection), o ...mongotest.Option) {
	kinds := map[string][]mongotest.Option{
		"standalone": nil, "replica set": {mongotest.ReplicaSet(1)}, "sharded": {mongotest.Sharded(2, 1)}, "4.2": {mongotest.ReplicaSet(1), mongotest.Version("4.2")}}
	if o != nil {
		kinds = map[string][]mongotest.Option{"one": o}
	}
	for name, options := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, append(options, mongotest.InMemory())...)
				f(t, d, connect(t, d).Database("app").Collection("jobs"))
			})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryMessage lets workers of several programs handle messages while programs die, members
// die, hang, step down and lose replies. Each message that was sent is handled; with a Done in a
// transaction, what belongs to it is written once; no two have a message at once by the server's
// word.
func TestEveryMessage(t *testing.T) {
	for seed := range uint64(4) {
		if norace.Detecting && seed > 1 {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
				r := rand.New(rand.NewPCG(seed, 1))
				options := queue.Options{Visibility: 10 * time.Second, Attempts: -1, MaxBackoff: 10 * time.Second}
				q := queue.Of[job](coll, options)
				must(t, q.Ensure(t.Context()))
				faults, quiet := context.WithTimeout(t.Context(), time.Minute)
				defer quiet()
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
				defer stop()
				var wg sync.WaitGroup
				var sent atomic.Int64
				wg.Go(func() { // the sender
					for n := 1; faults.Err() == nil; n++ {
						id := fmt.Sprint(n)
						for ctx.Err() == nil {
							_, err := q.Send(ctx, job{n}, queue.SendOptions{ID: id, Delay: time.Duration(rand.IntN(2)) * time.Second})
							if err == nil || errors.Is(err, queue.ErrDuplicate) {
								break
							}
							time.Sleep(time.Second)
						}
						sent.Store(int64(n))
						time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
					}
				})
				var holders sync.Map // of each message, those who write
				for program := range 3 {
					wg.Go(func() {
						for ctx.Err() == nil {
							client := connect(t, d)
							db := client.Database("app")
							life, die := context.WithCancel(ctx)
							time.AfterFunc(time.Duration(1+rand.IntN(20))*time.Second, func() {
								if faults.Err() == nil {
									if rand.IntN(2) == 0 {
										client.Close(context.Background()) // it says no more
									}
									die()
								}
							})
							mine := queue.Of[job](db.Collection("jobs"), options)
							_ = mine.Run(life, func(ctx context.Context, m *queue.Message[job]) error {
								if was, loaded := holders.LoadOrStore(m.ID, program); loaded {
									return fmt.Errorf("program %v is at it", was) // it outlives its lock only if it ignores its context
								}
								defer holders.Delete(m.ID)
								switch rand.IntN(8) {
								case 0:
									return errors.New("a failure")
								case 1:
									panic("a panic")
								case 2:
									select {
									case <-time.After(15 * time.Second): // longer than Visibility
									case <-ctx.Done():
									}
								}
								return client.Transact(ctx, func(ctx context.Context) error {
									if err := m.Done(ctx); err != nil {
										return err
									}
									_, err := db.Collection("effects").UpdateOne(ctx, bson.D{{Key: "_id", Value: m.Payload.N}},
										bson.D{{Key: "$inc", Value: bson.D{{Key: "times", Value: 1}}}}, allium.UpdateOptions{Upsert: true})
									return err
								})
							}, queue.RunOptions{Parallel: 3})
							die()
						}
					})
				}
				wg.Go(func() { // the end
					<-faults.Done()
					for ctx.Err() == nil {
						time.Sleep(5 * time.Second)
						if s, err := q.Stats(ctx); err == nil && s == (queue.Stats{}) && sent.Load() > 0 {
							stop()
						}
					}
				})
				for faults.Err() == nil {
					time.Sleep(time.Duration(500+r.IntN(4000)) * time.Millisecond)
					switch n := d.Node(r.IntN(3)); r.IntN(4) {
					case 0:
						d.StepDown()
					case 1:
						n.Kill()
						time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
						must(t, n.Restart())
					case 2:
						n.SetNetFaults(mongotest.NetFaults{DropAfter: 1, Times: 3})
					case 3:
						n.Hang()
						time.Sleep(time.Duration(r.IntN(6000)) * time.Millisecond)
						n.Resume()
					}
				}
				wg.Wait()
				type effect struct {
					ID    int `bson:"_id"`
					Times int `bson:"times"`
				}
				all, err := allium.CollectionOf[effect](connect(t, d).Database("app"), "effects").All(t.Context(), bson.D{})
				must(t, err)
				if n := sent.Load(); int64(len(all)) != n || n < 20 {
					t.Errorf("%d messages were sent, %d handled", n, len(all))
				}
				for _, e := range all {
					if e.Times != 1 {
						t.Errorf("message %d was done %d times", e.ID, e.Times)
					}
				}
			}, mongotest.ReplicaSet(3))
		})
	}
}

// TestOneHolder: a message that was taken is nobody else's until its time is up; then the first
// one's lock is worth nothing.
func TestOneHolder(t *testing.T) {
	bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
		q := queue.Of[job](coll)
		ctx := t.Context()
		id, err := q.Send(ctx, job{1})
		must(t, err)
		m, err := q.TryTake(ctx)
		must(t, err)
		if m.ID != id || m.Payload.N != 1 || m.Attempt != 1 || m.Sent.IsZero() {
			t.Errorf("%+v", m)
		}
		for range 4 { // two minutes
			time.Sleep(29 * time.Second)
			if _, err := q.TryTake(ctx); !errors.Is(err, queue.ErrEmpty) {
				t.Fatalf("somebody else has it: %v", err)
			}
			must(t, m.Extend(ctx))
		}
		time.Sleep(31 * time.Second)
		again, err := q.TryTake(ctx)
		must(t, err)
		if again.ID != id || again.Attempt != 2 {
			t.Errorf("%+v", again)
		}
		for name, f := range map[string]func() error{
			"Done": func() error { return m.Done(ctx) }, "Retry": func() error { return m.Retry(ctx, errors.New("x")) }, "Release": func() error { return m.Release(ctx) },
			"Bury": func() error { return m.Bury(ctx, nil) }, "Extend": func() error { return m.Extend(ctx) },
		} {
			if err := f(); !errors.Is(err, queue.ErrLost) {
				t.Errorf("%s of the first holder: %v", name, err)
			}
		}
		must(t, again.Done(ctx))
		if s, err := q.Stats(ctx); err != nil || s != (queue.Stats{}) {
			t.Errorf("%+v, %v", s, err)
		}
		if err := again.Done(ctx); !errors.Is(err, queue.ErrLost) {
			t.Errorf("done twice: %v", err)
		}
	})
}

// TestTakenOnce: many who take at once get each message once.
func TestTakenOnce(t *testing.T) {
	bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
		q := queue.Of[job](coll)
		must(t, q.Ensure(t.Context()))
		for n := range 40 {
			_, err := q.Send(t.Context(), job{n})
			must(t, err)
		}
		var seen sync.Map
		var n atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for {
					m, err := q.TryTake(t.Context())
					if errors.Is(err, queue.ErrEmpty) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if _, twice := seen.LoadOrStore(m.ID, true); twice {
						t.Errorf("message %d was taken twice", m.Payload.N)
					}
					n.Add(1)
				}
			})
		}
		wg.Wait()
		if n.Load() != 40 {
			t.Errorf("%d of 40 were taken", n.Load())
		}
	})
}

// TestAttempts: a message that fails comes again later each time, and is dead in the end, with the
// reason, however its attempts end; Revive begins anew.
func TestAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		fail   func(ctx context.Context, m *queue.Message[job]) error
		takes  int
		reason string
	}{
		"retry": {func(ctx context.Context, m *queue.Message[job]) error {
			return m.Retry(ctx, fmt.Errorf("failure %d", m.Attempt))
		}, 3, "failure 3"},
		"bury":    {func(ctx context.Context, m *queue.Message[job]) error { return m.Bury(ctx, errors.New("no")) }, 1, "no"},
		"silence": {func(ctx context.Context, m *queue.Message[job]) error { return nil }, 3, "nobody has said that it is done, or why not"},
		"long": {func(ctx context.Context, m *queue.Message[job]) error {
			return m.Bury(ctx, errors.New(strings.Repeat("ü", 3000)))
		}, 1, strings.Repeat("ü", 2048) + " …"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
				q := queue.Of[job](coll, queue.Options{Attempts: 3, Visibility: time.Minute})
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				id, err := q.Send(ctx, job{7})
				must(t, err)
				for n := range c.takes {
					m, err := q.Take(ctx)
					must(t, err)
					if m.Attempt != n+1 {
						t.Errorf("take %d: %+v", n+1, m)
					}
					must(t, c.fail(ctx, m))
				}
				time.Sleep(time.Hour)
				if m, err := q.TryTake(ctx); !errors.Is(err, queue.ErrEmpty) {
					t.Fatalf("take %d: %+v, %v", c.takes+1, m, err)
				}
				found := 0
				for d, err := range q.Dead(ctx) {
					must(t, err)
					found++
					if d.ID != id || d.Reason != c.reason || d.Attempts != c.takes || d.Payload.String() != `{"n":7}` {
						t.Errorf("%+v", d)
					}
				}
				if found != 1 {
					t.Fatalf("%d are dead", found)
				}
				if _, err := q.Send(ctx, job{8}, queue.SendOptions{ID: id}); !errors.Is(err, queue.ErrDuplicate) {
					t.Errorf("the ID of a dead message: %v", err)
				}
				if n, err := q.Revive(ctx, "another"); err != nil || n != 0 {
					t.Errorf("%d, %v", n, err)
				}
				if n, err := q.Revive(ctx, id); err != nil || n != 1 {
					t.Errorf("%d, %v", n, err)
				}
				m, err := q.TryTake(ctx)
				if err != nil || m.Attempt != 1 || m.Payload.N != 7 {
					t.Errorf("%+v, %v", m, err)
				}
			}, mongotest.ReplicaSet(1))
		})
	}
}

// TestBackoff: the pause after a failure doubles and is bounded.
func TestBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
		q := queue.Of[job](coll, queue.Options{Backoff: 4 * time.Second, MaxBackoff: 20 * time.Second, Attempts: -1})
		_, err := q.Send(t.Context(), job{})
		must(t, err)
		for _, most := range []time.Duration{4, 8, 16, 20, 20, 20} {
			m, err := q.Take(t.Context())
			must(t, err)
			must(t, m.Retry(t.Context(), nil))
			began := time.Now()
			next, err := q.Take(t.Context())
			must(t, err)
			if took := time.Since(began); took < most*time.Second/2-time.Second || took > most*time.Second+time.Second {
				t.Errorf("attempt %d came after %v, want at most %v s", next.Attempt, took, int(most))
			}
			must(t, next.Release(t.Context())) // does not count
		}
	}, mongotest.ReplicaSet(1))
}

// TestOrder: messages come in the order in which they are due, delayed ones not before.
func TestOrder(t *testing.T) {
	bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
		q := queue.Of[job](coll)
		began := time.Now()
		for n, delay := range []time.Duration{30, 10, 20, 0} {
			_, err := q.Send(t.Context(), job{n}, queue.SendOptions{Delay: delay * time.Second})
			must(t, err)
			time.Sleep(time.Second)
		}
		if s, err := q.Stats(t.Context()); err != nil || s != (queue.Stats{Due: 1, Delayed: 3, Late: time.Second}) {
			t.Errorf("%+v, %v", s, err)
		}
		for i, want := range []int{3, 1, 2, 0} {
			m, err := q.Take(t.Context())
			must(t, err)
			at := []time.Duration{3, 11, 22, 30}[i] * time.Second
			if m.Payload.N != want || time.Since(began) < at || time.Since(began) > at+2*time.Second {
				t.Errorf("message %d after %v, want %d after %v", m.Payload.N, time.Since(began), want, at)
			}
		}
	})
}

// TestWaiting: who waits hears of a message at once where there are change streams, and does not
// ask again and again; elsewhere it asks.
func TestWaiting(t *testing.T) {
	const poll = time.Minute
	for _, c := range []struct {
		options []mongotest.Option
		within  time.Duration
		asks    int64 // in an hour
	}{
		{[]mongotest.Option{mongotest.ReplicaSet(1)}, 50 * time.Millisecond, 20},
		{[]mongotest.Option{mongotest.Standalone()}, poll, 200},
	} {
		bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
			var asks atomic.Int64
			client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, CommandMonitor: &event.CommandMonitor{
				Started: func(_ context.Context, e *event.CommandStarted) {
					if e.CommandName == "findAndModify" {
						asks.Add(1)
					}
				}}})
			must(t, err)
			defer client.Close(context.Background())
			q, sender := queue.Of[job](client.Database("app").Collection("jobs"), queue.Options{Poll: poll}), queue.Of[job](coll)
			got, ended := make(chan time.Time), make(chan struct{})
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				defer close(ended)
				for {
					m, err := q.Take(ctx)
					if err != nil {
						return
					}
					got <- time.Now()
					if err := m.Done(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}()
			for range 3 {
				asks.Store(0)
				time.Sleep(time.Hour)
				if n := asks.Load(); n > c.asks {
					t.Errorf("it asked %d times in an hour", n)
				}
				sent := time.Now()
				_, err := sender.Send(ctx, job{})
				must(t, err)
				if took := (<-got).Sub(sent); took > c.within {
					t.Errorf("it was taken after %v", took)
				}
			}
			stop()
			<-ended
		}, c.options...)
	}
}

// TestDuplicate: a message whose ID is in the queue is not sent, nor changed, also by two at once.
func TestDuplicate(t *testing.T) {
	bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
		q := queue.Of[job](coll)
		var wg sync.WaitGroup
		var sent atomic.Int64
		for n := range 10 {
			wg.Go(func() {
				id, err := q.Send(t.Context(), job{n}, queue.SendOptions{ID: "$x"})
				if err == nil {
					sent.Add(1)
				} else if !errors.Is(err, queue.ErrDuplicate) || id != "$x" {
					t.Error(id, err)
				}
			})
		}
		wg.Wait()
		if s, err := q.Stats(t.Context()); err != nil || s.Due != 1 || sent.Load() != 1 {
			t.Errorf("%d were sent: %+v, %v", sent.Load(), s, err)
		}
		m, err := q.TryTake(t.Context())
		must(t, err)
		if _, err := q.Send(t.Context(), job{}, queue.SendOptions{ID: "$x"}); !errors.Is(err, queue.ErrDuplicate) {
			t.Error(err)
		}
		must(t, m.Done(t.Context()))
		_, err = q.Send(t.Context(), job{}, queue.SendOptions{ID: "$x"})
		must(t, err)
	})
}

// TestPayloads: what is sent comes back, documents that look like expressions included; what does
// not decode is dead, and hides nothing.
func TestPayloads(t *testing.T) {
	bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
		texts := queue.Of[any](coll)
		sent := []any{"$$ROOT", "text", int64(7), bson.D{{Key: "add", Value: bson.A{int32(1), "$state"}}}, bson.A{"$lock"}, nil}
		for _, v := range sent {
			_, err := texts.Send(t.Context(), v)
			must(t, err)
			time.Sleep(time.Millisecond)
		}
		for _, want := range sent {
			m, err := texts.TryTake(t.Context())
			must(t, err)
			if fmt.Sprintf("%T %v", m.Payload, m.Payload) != fmt.Sprintf("%T %v", want, want) {
				t.Errorf("%T %v was sent, %T %v taken", want, want, m.Payload, m.Payload)
			}
			must(t, m.Done(t.Context()))
		}
		_, err := texts.Send(t.Context(), "no job")
		must(t, err)
		time.Sleep(time.Millisecond)
		jobs := queue.Of[job](coll)
		_, err = jobs.Send(t.Context(), job{5})
		must(t, err)
		m, err := jobs.TryTake(t.Context())
		if err != nil || m.Payload.N != 5 {
			t.Errorf("%+v, %v", m, err)
		}
		for d, err := range jobs.Dead(t.Context()) {
			if text, _ := d.Payload.StringValue(); err != nil || text != "no job" || d.Reason == "" {
				t.Errorf("%+v, %v", d, err)
			}
		}
		if s, err := jobs.Stats(t.Context()); err != nil || s.Dead != 1 || s.Taken != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// TestRunEnds: when its context ends, handlers have as long as Grace; what they do not finish is
// there for others at once, and the attempt does not count.
func TestRunEnds(t *testing.T) {
	for _, c := range []struct{ grace, works time.Duration }{{0, time.Minute}, {10 * time.Second, time.Minute}, {time.Hour, time.Minute}} {
		bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
			q := queue.Of[job](coll)
			for n := range 3 {
				_, err := q.Send(t.Context(), job{n})
				must(t, err)
			}
			ctx, stop := context.WithCancelCause(t.Context())
			why := errors.New("shutdown")
			ended := time.AfterFunc(time.Second, func() { stop(why) })
			defer ended.Stop()
			began := time.Now()
			err := q.Run(ctx, func(ctx context.Context, m *queue.Message[job]) error {
				select {
				case <-time.After(c.works):
					return nil
				case <-ctx.Done():
					if !errors.Is(context.Cause(ctx), why) {
						t.Errorf("the handler's context ends with %v", context.Cause(ctx))
					}
					return ctx.Err()
				}
			}, queue.RunOptions{Parallel: 2, Grace: c.grace})
			if !errors.Is(err, why) {
				t.Error(err)
			}
			want, left := time.Second+c.grace, int64(3)
			if c.grace > c.works {
				want, left = c.works, 1
			}
			if took := time.Since(began); took < want || took > want+time.Second {
				t.Errorf("grace %v: it ended after %v", c.grace, took)
			}
			if s, err := q.Stats(t.Context()); err != nil || s.Due != left || s.Taken != 0 {
				t.Errorf("grace %v: %+v, %v", c.grace, s, err)
			}
			for range left {
				if m, err := q.TryTake(t.Context()); err != nil || m.Attempt != 1 {
					t.Errorf("%+v, %v", m, err)
				}
			}
		}, mongotest.ReplicaSet(1))
	}
}

// TestHandlers: what a handler does decides what becomes of the message.
func TestHandlers(t *testing.T) {
	for name, c := range map[string]struct {
		handle func(ctx context.Context, m *queue.Message[job]) error
		want   queue.Stats
	}{
		"nil":     {func(context.Context, *queue.Message[job]) error { return nil }, queue.Stats{}},
		"error":   {func(context.Context, *queue.Message[job]) error { return errors.New("x") }, queue.Stats{Delayed: 1}},
		"panic":   {func(context.Context, *queue.Message[job]) error { panic("x") }, queue.Stats{Delayed: 1}},
		"refused": {func(context.Context, *queue.Message[job]) error { return queue.Refuse(errors.New("x")) }, queue.Stats{Dead: 1}},
		"done and error": {func(ctx context.Context, m *queue.Message[job]) error {
			return errors.Join(m.Done(ctx), errors.New("x"))
		}, queue.Stats{}},
		"own retry": {func(ctx context.Context, m *queue.Message[job]) error { return m.Retry(ctx, errors.New("x")) }, queue.Stats{Delayed: 1}},
		"long": {func(ctx context.Context, m *queue.Message[job]) error {
			select {
			case <-time.After(5 * time.Minute): // ten times Visibility
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			return nil
		}, queue.Stats{}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
				q := queue.Of[job](coll, queue.Options{Backoff: 10 * time.Hour, MaxBackoff: 10 * time.Hour})
				_, err := q.Send(t.Context(), job{})
				must(t, err)
				ctx, stop := context.WithCancel(t.Context())
				var calls int
				done := make(chan error)
				go func() {
					done <- q.Run(ctx, func(ctx context.Context, m *queue.Message[job]) error {
						calls++
						return c.handle(ctx, m)
					}, queue.RunOptions{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
				}()
				time.Sleep(6 * time.Minute)
				stop()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				s, err := q.Stats(t.Context())
				if err != nil || s != c.want || calls != 1 {
					t.Errorf("%+v, %v after %d calls, want %+v", s, err, calls, c.want)
				}
			})
		})
	}
}

// TestTransaction: a message that a transaction sends or ends is sent or ended with it.
func TestTransaction(t *testing.T) {
	bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
		client := allium.As[bson.Raw](coll).Database().Client()
		q := queue.Of[job](coll)
		ctx := t.Context()
		must(t, q.Ensure(ctx))
		no := errors.New("no")
		for _, end := range []error{no, nil} {
			err := client.Transact(ctx, func(ctx context.Context) error {
				_, err := q.Send(ctx, job{1}, queue.SendOptions{ID: "one"})
				return errors.Join(err, end)
			})
			if !errors.Is(err, end) {
				t.Fatal(err)
			}
			if s, err := q.Stats(ctx); err != nil || (s.Due == 1) != (end == nil) {
				t.Errorf("%+v, %v", s, err)
			}
		}
		m, err := q.TryTake(ctx)
		must(t, err)
		for _, end := range []error{no, nil} {
			err := client.Transact(ctx, func(ctx context.Context) error { return errors.Join(m.Done(ctx), end) })
			if !errors.Is(err, end) {
				t.Fatal(err)
			}
			if s, err := q.Stats(ctx); err != nil || (s.Taken == 0) != (end == nil) {
				t.Errorf("%+v, %v", s, err)
			}
		}
	}, mongotest.ReplicaSet(1))
}

// TestListenersThatLeave: a listener of the program panics, or ends the goroutine, at each command
// of a program that works. The program goes on without its queue, which says why, and another copy
// takes over.
func TestListenersThatLeave(t *testing.T) {
	own := errors.New("a listener's own")
	for _, exits := range []bool{false, true} {
		for at := int64(1); at <= 12; at++ {
			if norace.Detecting && at%3 != 1 {
				continue
			}
			bubble(t, func(t *testing.T, d *mongotest.Deployment, coll allium.AnyCollection) {
				q := queue.Of[int](coll)
				must(t, q.Ensure(t.Context()))
				for n := range 3 {
					_, err := q.Send(t.Context(), n)
					must(t, err)
				}
				var commands atomic.Int64
				client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d,
					CommandMonitor: &event.CommandMonitor{Started: func(context.Context, *event.CommandStarted) {
						if commands.Add(1) == at {
							if exits {
								runtime.Goexit()
							}
							panic(own)
						}
					}}})
				must(t, err)
				defer client.Close(context.Background())
				work := func(c allium.AnyCollection) error {
					ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
					defer stop()
					return queue.Of[int](c).Run(ctx, func(context.Context, *queue.Message[int]) error { return nil })
				}
				err = work(client.Database("app").Collection("jobs"))
				if err == nil || !exits && !errors.Is(err, own) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a queue that ended says %v", err)
				}
				if err := work(coll); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if s, err := q.Stats(t.Context()); err != nil || s.Due+s.Taken+s.Delayed > 0 {
					t.Errorf("left: %+v, %v", s, err)
				}
			}, mongotest.ReplicaSet(1))
		}
	}
}
