package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

// Job is a document of the queue. It is due from the time Due on: a worker that takes it moves that
// time into the future, and deletes the job when it is done. If the worker dies, the job is due
// again.
type Job struct {
	ID       bson.ObjectID `bson:"_id"`
	File     string        `bson:"file"`
	Due      time.Time     `bson:"due"`
	Attempts int           `bson:"attempts"`
	Holder   bson.ObjectID `bson:"holder,omitempty"` // of the attempt
	Error    string        `bson:"error,omitempty"`  // of the last attempt
}

const (
	lease       = time.Minute // a worker has a job for so long, and renews it while it works
	maxAttempts = 5           // then a job stays as it is, for a person to look at
	idle        = 5 * time.Second
)

type queue struct{ jobs *allium.Collection[Job] }

func newQueue(ctx context.Context, client *allium.Client) (*queue, error) {
	q := &queue{allium.CollectionOf[Job](client.Database("gallery"), "jobs")}
	_, err := q.jobs.CreateIndex(ctx,
		allium.IndexModel{Keys: bson.D{{Key: "due", Value: 1}, {Key: "attempts", Value: 1}}})
	return q, err
}

func (q *queue) add(ctx context.Context, files ...string) error {
	var jobs []Job
	for _, file := range files {
		jobs = append(jobs, Job{ID: bson.NewObjectID(), File: file, Due: time.Now()})
	}
	_, err := q.jobs.InsertMany(ctx, jobs)
	return err
}

// work does jobs until the context ends; the one in hand it finishes. An error of the database ends
// nothing: a worker waits, and goes on when the database is back.
func (q *queue) work(ctx context.Context, do func(context.Context, Job) error) {
	news := make(chan struct{}, 1)
	var watcher sync.WaitGroup
	watcher.Go(func() { q.watch(ctx, news) })
	defer watcher.Wait()
	for ctx.Err() == nil {
		job, err := q.take(ctx)
		if err == nil {
			q.do(context.WithoutCancel(ctx), job, do)
			continue
		}
		if !errors.Is(err, mongoerr.ErrNoDocuments) {
			slog.ErrorContext(ctx, "no job can be taken", "error", err)
		}
		select {
		case <-news:
		case <-time.After(idle): // jobs become due without news, too
		case <-ctx.Done():
		}
	}
}

// watch tells of new jobs. However many there are, one piece of news waits at most.
func (q *queue) watch(ctx context.Context, news chan<- struct{}) {
	for ctx.Err() == nil {
		stream, err := q.jobs.Watch(ctx, []bson.M{{"$match": bson.M{"operationType": "insert"}}},
			allium.WatchOptions{Timeout: new(time.Duration(0))}) // quiet hours are no error
		if err == nil {
			for stream.Next(ctx) {
				select {
				case news <- struct{}{}:
				default:
				}
			}
			err = stream.Err()
			stream.Close(context.WithoutCancel(ctx))
		}
		if ctx.Err() == nil { // until there is a stream again, jobs are found by looking
			slog.WarnContext(ctx, "the change stream ended", "error", err)
			pause(ctx, idle)
		}
	}
}

// take returns the job that is due for longest, which is this worker's for the time of a lease.
func (q *queue) take(ctx context.Context) (Job, error) {
	now := time.Now()
	return q.jobs.FindOneAndUpdate(ctx,
		bson.M{"due": bson.M{"$lte": now}, "attempts": bson.M{"$lt": maxAttempts}},
		bson.M{"$set": bson.M{"due": now.Add(lease), "holder": bson.NewObjectID()}, "$inc": bson.M{"attempts": 1}},
		allium.FindOneAndUpdateOptions{Sort: bson.D{{Key: "due", Value: 1}}, ReturnNew: true})
}

// do does a job, and deletes it or puts it back. It holds it meanwhile: another worker has the job
// if the lease cannot be renewed, and this one stops.
func (q *queue) do(ctx context.Context, job Job, do func(context.Context, Job) error) {
	held, release := context.WithCancelCause(ctx)
	var renewal sync.WaitGroup
	renewal.Go(func() {
		for pause(held, lease/3) {
			if err := q.update(held, job, bson.M{"$set": bson.M{"due": time.Now().Add(lease)}}); err != nil {
				release(err)
			}
		}
	})
	err := do(held, job)
	release(nil)
	renewal.Wait()
	if err == nil {
		_, err = q.jobs.DeleteOne(ctx, mine(job))
	} else {
		err = errors.Join(err, q.update(ctx, job,
			bson.M{"$set": bson.M{"due": time.Now().Add(wait(job)), "error": err.Error()}}))
	}
	if err != nil {
		slog.ErrorContext(ctx, "job", "id", job.ID, "attempt", job.Attempts, "error", err)
	}
}

// wait is the time until the next attempt at a job that failed: 2 s, 4 s, 8 s, 16 s.
func wait(job Job) time.Duration { return time.Second << job.Attempts }

// mine matches a job for as long as it is that of this attempt.
func mine(job Job) bson.M { return bson.M{"_id": job.ID, "holder": job.Holder} }

func (q *queue) update(ctx context.Context, job Job, update bson.M) error {
	res, err := q.jobs.UpdateOne(ctx, mine(job), update)
	if err == nil && res.MatchedCount == 0 {
		err = errors.New("another worker has the job")
	}
	return err
}

// pause waits, and reports whether the context is still there then.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
