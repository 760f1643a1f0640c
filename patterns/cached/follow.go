package cached

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"

	"allium"
	"allium/bson"
	"allium/mongoerr"
	"allium/patterns/internal/again"
)

// Run follows the changes of the collection until the context ends, or until something fails that
// does not mend itself, such as a deployment without change streams: Find goes on without it then.
// The error is the context's cause or the server's. Only one Run of a Reader works at a time.
//
// It needs a replica set or a sharded cluster, and the right to read the collection by a change
// stream. On a sharded cluster events wait for the slowest shard: one that is idle makes them up to
// ten seconds late, unless the server's periodicNoopIntervalSecs says otherwise.
func (r *Reader[T]) Run(ctx context.Context) error {
	r.mu.Lock()
	busy := r.running
	r.running = true
	r.mu.Unlock()
	if busy {
		return errors.New("cached: Run is called while it runs")
	}
	defer func() {
		r.mu.Lock()
		r.running = false
		r.mu.Unlock()
	}()
	for n := 1; ; n++ {
		began := time.Now()
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// Behind events that the server no longer has, the next stream begins where it is: nothing
		// is kept that they were about.
		if err != nil && !again.Transient(err) && !again.Lost(err) {
			return fmt.Errorf("cached %s.%s: %w", r.coll.Database().Name(), r.coll.Name(), err)
		}
		r.o.Logger.WarnContext(ctx, "stream is interrupted", "collection", r.coll.Name(), "error", err)
		if time.Since(began) > time.Minute {
			n = 1
		}
		if !again.Pause(ctx, again.Backoff(100*time.Millisecond, 10*time.Second, n)) {
			return context.Cause(ctx)
		}
	}
}

// follow follows one change stream to its end.
func (r *Reader[T]) follow(ctx context.Context) error {
	start, err := r.now(ctx)
	if err != nil {
		return err
	}
	// Through the client, and so without the collection's scope: the event of a document that
	// leaves the scope is not in it. No documents come this way, only their _ids.
	db := r.coll.Database()
	over := db.Client().Database(db.Name()).Collection(r.coll.Name())
	fields := bson.D{{Key: "operationType", Value: 1}, {Key: "documentKey", Value: 1}, {Key: "clusterTime", Value: 1}}
	stream, err := allium.Watch[bson.Raw](ctx, over, []bson.D{{{Key: "$project", Value: fields}}}, allium.WatchOptions{
		StartAtOperationTime: start, MaxAwaitTime: min(time.Second, r.o.Silence/2), Timeout: &r.o.Silence})
	if err != nil {
		return err
	}
	defer again.Lastly(ctx, stream.Close)
	feed := &feed{heard: time.Now()}
	if start != nil {
		feed.seen = *start
	}
	r.follows(feed)
	defer r.follows(nil)
	for ctx.Err() == nil {
		asked := time.Now()
		if stream.TryNext(ctx) {
			if ended := r.deliver(feed, asked, stream.Current()); ended {
				return nil
			}
			continue
		}
		switch err := stream.Err(); {
		case err == nil:
			r.heard(feed, asked)
		case !mongoerr.IsTimeout(err): // behind that the stream resumes, and what is kept is good again
			return err
		}
	}
	return nil
}

// now returns the time of the deployment. A read behind it misses no change that comes before the
// stream, which begins there.
func (r *Reader[T]) now(ctx context.Context) (*bson.Timestamp, error) {
	client := r.coll.Database().Client()
	s, err := client.StartSession()
	if err != nil {
		return nil, err
	}
	defer s.End(ctx)
	ctx = allium.WithSession(ctx, s)
	if _, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}); err != nil {
		return nil, err
	}
	return s.OperationTime(), nil
}

// follows says which stream is open. Nothing is known of what happened between two of them.
func (r *Reader[T]) follows(f *feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feed = f
	r.recent.Init()
	r.kept, r.reads, r.bytes = map[string]*list.Element{}, map[string]*read{}, 0
}

// heard notes that the server has answered.
func (r *Reader[T]) heard(f *feed, asked time.Time) {
	r.mu.Lock()
	f.heard = asked
	r.mu.Unlock()
}

// deliver drops what an event is about, and reports whether it is the last one.
func (r *Reader[T]) deliver(f *feed, asked time.Time, ev allium.ChangeEvent[bson.Raw]) (ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.heard = asked
	if ev.ClusterTime.After(f.seen) {
		f.seen = ev.ClusterTime
	}
	r.changed(ev.DocumentKey.Lookup("_id")) // a drop has none, but ends the stream
	return ev.OperationType == allium.ChangeInvalidate
}
