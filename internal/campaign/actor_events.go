package campaign

import (
	"context"
	"fmt"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/leaks"
	"allium/mongoerr"
)

// last is the document that ends the followers' work.
const last = "zz-last"

// insert inserts documents that followers wait for: one, many at once, or by a bulk write.
func (a *actor) insert() {
	n := []int{1, 1, 3, 8}[a.r.IntN(4)]
	how := a.r.IntN(4)
	var ids []string
	var docs []bson.D
	a.mu.Lock()
	for i := range n {
		id := fmt.Sprintf("w-%02d-%06d-%d", a.plan.ID, a.seq, i)
		ids = append(ids, id)
		doc := bson.D{{Key: "_id", Value: id}, {Key: "text", Value: id + leaks.Document}}
		if a.r.IntN(6) == 0 {
			// poison for a follower with a type
			doc = append(doc, bson.E{Key: "n", Value: misfits[a.r.IntN(len(misfits))]})
		}
		docs = append(docs, doc)
		a.hist.inserted[id] = &inserted{outcome: unknown, actor: a.plan.ID, seq: a.seq*10 + i}
	}
	a.mu.Unlock()
	err := a.do("insert", func(ctx context.Context) (err error) {
		events := a.coll("events")
		var models []allium.WriteModel
		for _, d := range docs {
			models = append(models, events.InsertOneModel(d))
		}
		switch {
		case n == 1:
			_, err = events.InsertOne(ctx, docs[0])
		case how == 0:
			_, err = events.BulkWrite(ctx, models)
		case how == 1:
			_, err = a.client().BulkWrite(ctx, models)
		default:
			_, err = events.InsertMany(ctx, docs)
		}
		return err
	})
	// Nobody else inserts this document: it can only be there because the driver has inserted it
	// before.
	if mongoerr.HasCode(err, 11000) {
		a.violation("inserter: a document was inserted twice: %v", err)
	}
	for _, id := range ids {
		a.mu.Lock()
		if err == nil {
			a.hist.inserted[id].outcome = acked
		}
		a.mu.Unlock()
		if err == nil {
			a.wrote(acked)
		} else {
			a.wrote(unknown)
		}
	}
}

// follow receives the events of all inserts until the last one, and opens its stream again where
// it was whenever it breaks.
func (a *actor) follow() {
	f := &followed{name: fmt.Sprintf("follower %d", a.plan.ID)}
	a.mu.Lock()
	a.hist.followers = append(a.hist.followers, f)
	a.mu.Unlock()
	var token bson.Raw
	var watch stopwatch // once all is quiet
	for ; !f.ended; a.seq++ {
		a.begin()
		a.mu.Lock()
		most := 3*len(a.hist.inserted) + 1000
		a.mu.Unlock()
		if len(f.events) > most {
			a.violation("follower: it receives the same events again and again")
			return
		}
		select {
		case <-a.quiet:
			limit := 20 * time.Minute
			if a.world.plan.Real {
				limit = time.Minute
			}
			if watch.w == nil {
				watch = a.stopwatch()
			}
			if watch.took() > limit+min(10*watch.waited(), 5*limit) {
				return
			}
		default:
		}
		opts := allium.WatchOptions{ResumeAfter: token}
		if token == nil {
			opts.StartAtOperationTime = &bson.Timestamp{T: uint32(a.start.Unix()), I: 1}
		}
		if a.r.IntN(2) == 0 {
			opts.BatchSize = new(int32(1 + a.r.IntN(3)))
		}
		open := open[bson.D]
		if a.r.IntN(2) == 0 {
			open = openTyped
		}
		opts.SplitLargeEvents = a.r.IntN(2) == 0
		var s eventStream
		var current func() (bson.Raw, bson.Timestamp)
		if err := a.do("watch", func(ctx context.Context) (err error) {
			s, current, err = open(ctx, a, opts)
			return err
		}); err != nil {
			f.failed = err
			time.Sleep(time.Second / 10)
			continue
		}
		for n := 1 + a.r.IntN(200); n > 0 && !f.ended; n-- {
			limit := pick(a.r, []time.Duration{100 * time.Millisecond, 5 * time.Second, time.Minute, a.world.plan.Think,
				2 * a.world.plan.Think})
			if a.world.plan.Real {
				limit = min(limit, 2*time.Second)
			}
			more := false
			err := a.within("next", limit, a.r.IntN(4) == 0, func(ctx context.Context) error {
				more = s.Next(ctx)
				return s.Err()
			})
			if more {
				key, at := current()
				a.event(f, key.Lookup("_id"), at)
				continue
			}
			if odd, ok := err.(*mongoerr.DecodeError); ok { // an event like others, and the stream goes on behind it
				at, _ := odd.Document.Lookup("clusterTime").Timestamp()
				a.event(f, odd.Document.Lookup("documentKey", "_id"), at)
				continue
			}
			if err != nil {
				f.failed = err
			}
			if !mongoerr.IsTimeout(err) && !isCanceled(err) {
				break
			}
			select {
			case <-a.quiet:
				n = min(n, 20)
			default:
			}
		}
		token = s.ResumeToken()
		_ = a.within("close", 5*time.Second, false, func(ctx context.Context) error { _ = s.Close(ctx); return nil })
	}
}

func (a *actor) event(f *followed, key bson.RawValue, at bson.Timestamp) {
	id, _ := key.StringValue()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Events++
	f.events = append(f.events, id)
	f.times = append(f.times, at)
	f.ended = id == last
}

func isCanceled(err error) bool {
	var t *mongoerr.TimeoutError
	return asInto(err, &t) && t.Canceled()
}
