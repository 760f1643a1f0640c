package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// bubble runs a test with a queue in simulated time.
func bubble(t *testing.T, f func(t *testing.T, d *mongotest.Deployment, q *queue)) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, Timeout: new(15 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(context.Background())
		q, err := newQueue(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		f(t, d, q)
	})
}

// empty waits until no job is left.
func (q *queue) empty(t *testing.T) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 10*time.Minute; time.Sleep(100 * time.Millisecond) {
		if n, err := q.jobs.CountDocuments(t.Context(), bson.D{}); n == 0 && err == nil {
			return
		}
	}
	t.Error("jobs are left after ten minutes")
}

// Each job is done once, by several workers, with an election between.
func TestEachJobOnce(t *testing.T) {
	bubble(t, func(t *testing.T, d *mongotest.Deployment, q *queue) {
		ctx, end := context.WithCancel(t.Context())
		var mu sync.Mutex
		done := map[string]int{}
		var workers sync.WaitGroup
		for range 3 {
			workers.Go(func() {
				q.work(ctx, func(_ context.Context, job Job) error {
					time.Sleep(10 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					done[job.File]++
					return nil
				})
			})
		}
		for i := range 60 {
			if i == 30 {
				d.StepDown()
			}
			if err := q.add(ctx, strconv.Itoa(i)); err != nil {
				t.Error(err)
			}
		}
		q.empty(t)
		end()
		workers.Wait()
		for i := range 60 {
			if n := done[strconv.Itoa(i)]; n != 1 {
				t.Errorf("job %d was done %d times", i, n)
			}
		}
	})
}

// A worker that waits learns of a new job by the change stream, before it looks by itself.
func TestNews(t *testing.T) {
	bubble(t, func(t *testing.T, _ *mongotest.Deployment, q *queue) {
		ctx, end := context.WithCancel(t.Context())
		begun := make(chan time.Time, 1)
		var worker sync.WaitGroup
		worker.Go(func() { q.work(ctx, func(context.Context, Job) error { begun <- time.Now(); return nil }) })
		time.Sleep(idle + idle/2)
		added := time.Now()
		if err := q.add(ctx, "cat.jpg"); err != nil {
			t.Error(err)
		}
		if took := (<-begun).Sub(added); took >= idle/2 {
			t.Errorf("a new job waited for %v", took)
		}
		end()
		worker.Wait()
	})
}

// A job whose worker died is due again when the lease is over, and not before.
func TestDeadWorker(t *testing.T) {
	bubble(t, func(t *testing.T, _ *mongotest.Deployment, q *queue) {
		if err := q.add(t.Context(), "cat.jpg"); err != nil {
			t.Fatal(err)
		}
		taken := time.Now()
		if _, err := q.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		q.work(ctx, func(_ context.Context, job Job) error {
			if waited := time.Since(taken); waited < lease || waited > lease+2*idle || job.Attempts != 2 {
				t.Errorf("attempt %d after %v", job.Attempts, waited)
			}
			end() // it still finishes this job
			return nil
		})
		q.empty(t)
	})
}

// A job that takes longer than its lease stays with its worker, until somebody else has taken it.
func TestLongJob(t *testing.T) {
	bubble(t, func(t *testing.T, _ *mongotest.Deployment, q *queue) {
		if err := q.add(t.Context(), "cat.jpg"); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		q.work(ctx, func(held context.Context, job Job) error {
			end()
			time.Sleep(3 * lease)
			if _, err := q.take(t.Context()); err == nil || held.Err() != nil {
				t.Errorf("while it is held: taken with %v, %v", err, held.Err())
			}
			theirs := bson.M{"$set": bson.M{"holder": bson.NewObjectID()}}
			if _, err := q.jobs.UpdateOne(t.Context(), mine(job), theirs); err != nil {
				t.Error(err)
			}
			<-held.Done()
			return context.Cause(held)
		})
		if n, err := q.jobs.CountDocuments(t.Context(), bson.M{"error": bson.M{"$exists": false}}); n != 1 || err != nil {
			t.Errorf("the job of the other worker was touched: %d, %v", n, err)
		}
	})
}

// A job that fails is tried again, later each time, and then left for a person to look at.
func TestFailures(t *testing.T) {
	bubble(t, func(t *testing.T, _ *mongotest.Deployment, q *queue) {
		if err := q.add(t.Context(), "cat.jpg"); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		attempts, last := 0, time.Time{}
		q.work(ctx, func(_ context.Context, job Job) error {
			if attempts++; attempts > 1 && time.Since(last) < wait(Job{Attempts: attempts - 1}) {
				t.Errorf("attempt %d after %v", attempts, time.Since(last))
			}
			last = time.Now()
			return errors.New("no cat")
		})
		left, err := q.jobs.FindOne(t.Context(), bson.D{})
		if attempts != maxAttempts || left.Error != "no cat" || err != nil {
			t.Errorf("%d attempts, left: %+v, %v", attempts, left, err)
		}
	})
}

func TestRun(t *testing.T) {
	t.Setenv("MONGODB_URI", mongotest.Start(t, mongotest.ReplicaSet(1)).URI())
	if err := run(t.Context(), []string{"add", "cat.jpg"}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := run(ctx, nil); !errors.Is(err, context.Canceled) { // making the index
		t.Error(err)
	}
	if err := thumbnail(t.Context(), Job{}); err == nil {
		t.Error("a job without a file is done")
	}
}
