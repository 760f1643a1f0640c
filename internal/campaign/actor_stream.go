package campaign

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"allium"
	"allium/bson"
	"allium/patterns/lease"
	streams "allium/patterns/stream"
)

// keysOfChanges is how many documents the producers change.
const keysOfChanges = 4

// numbered is the nth change of a document.
type numbered struct {
	key int
	n   int64
}

// consumption is what the copies of a consumer have handled of the changes of "changing", whose
// documents count theirs: each has to be handled or parked, those of a document in their order.
type consumption struct {
	handled, refused, passed map[numbered]bool // passed over: handled after the one behind them began
	tries                    map[numbered]int
	busy                     map[int]bool
	holder                   int64 // the highest number of a lease that was seen
}

func newConsumption() consumption {
	return consumption{map[numbered]bool{}, map[numbered]bool{}, map[numbered]bool{}, map[numbered]int{},
		map[int]bool{}, 0}
}

// produce changes a document, of which consumers are told.
func (a *actor) produce() {
	_ = a.do("update", func(ctx context.Context) error {
		_, err := a.coll("changing").UpdateOne(ctx, byID(a.r.IntN(keysOfChanges)),
			bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}})
		return err
	})
}

// consumer returns the options of a copy of the consumer.
func (w *world) consumer(c *allium.Client) streams.Options[bson.D] {
	db := c.Database(dbName)
	o := streams.Options[bson.D]{Name: "campaign", Store: db.Collection("positions"), Park: db.Collection("parked"),
		Attempts: 3, Begin: func(context.Context) error {
			w.violation("consumer: the stream begins anew, although its position was stored")
			return nil
		}}
	if w.plan.Real {
		o.Lease.TTL, o.StoreEvery = 2*time.Second, 100*time.Millisecond
	}
	return o
}

// consume is a copy of the consumer, for a while.
func (a *actor) consume() {
	o := a.world.consumer(a.client())
	o.Parallel = 1 + a.r.IntN(3)
	seed := a.r.Uint64()
	o.Handle = func(ctx context.Context, ev allium.ChangeEvent[bson.D]) error {
		// Where pauses are long, a handler that took as long would never end before its copy does,
		// and the server would forget what the position needs.
		return a.world.consumed(ctx, ev, seed, min(a.world.plan.Think/4, time.Second))
	}
	limit := pick(a.r, []time.Duration{5 * time.Second, 20 * time.Second, time.Minute})
	if a.world.plan.Real {
		limit /= 10
	}
	_ = a.within("stream", limit, a.r.IntN(2) == 0, func(ctx context.Context) error {
		return ended(ctx, streams.Run(ctx, a.coll("changing"), o))
	})
}

// ended returns the error of a pattern, nil if it says only that the context has ended or that
// somebody else has the lease, which is documented.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrHeld) ||
		ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// consumed handles an event, after a while, or refuses to. The seed says which.
func (w *world) consumed(ctx context.Context, ev allium.ChangeEvent[bson.D], seed uint64, slow time.Duration) error {
	id, _ := ev.DocumentKey.Lookup("_id").AsInt64()
	if ev.UpdateDescription == nil {
		w.violation("consumer: an event %s of document %d that nobody caused", ev.OperationType, id)
		return nil
	}
	n, _ := ev.UpdateDescription.UpdatedFields.Lookup("n").AsInt64()
	e := numbered{int(id), n}
	w.mu.Lock()
	c := &w.hist.consumption
	c.tries[e]++
	r := rand.New(rand.NewPCG(seed, uint64(e.key)<<48|uint64(n)<<8|uint64(c.tries[e])))
	late := ctx.Err() == nil && streams.Token(ctx) < c.holder
	c.holder = max(c.holder, streams.Token(ctx))
	twice := ctx.Err() == nil && c.busy[e.key]
	c.busy[e.key] = true
	for m := n - 1; m > 0; m-- {
		if before := (numbered{e.key, m}); !c.handled[before] && !c.refused[before] {
			c.passed[before] = true // unless it was parked after its attempts: see drainChanges
		}
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		c.busy[e.key] = false
		w.mu.Unlock()
	}()
	if !w.plan.Real { // in real time one that is held up may go on for a moment
		if late {
			w.violation("consumer: an event is handled by who had the lease before another one")
		}
		if twice {
			w.violation("consumer: two events of document %d are handled at once", e.key)
		}
	}
	rest(ctx, about(r, slow))
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r.IntN(12) {
	case 0:
		return errors.New("not now")
	case 1:
		panic("a consumer panics")
	case 2:
		c.refused[e] = true
		return streams.Refuse(errors.New("not this one"))
	}
	c.handled[e] = true
	return nil
}

// drainChanges lets a consumer handle what is left when all is quiet, and compares what was handled
// with what is there.
func (w *world) drainChanges(ctx context.Context, cl *allium.Client) error {
	docs, err := allium.CollectionOf[bson.D](cl.Database(dbName), "changing").All(ctx, bson.D{})
	if err != nil {
		return err
	}
	left := func(parked map[numbered]bool) (rest []numbered) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, d := range docs {
			for n := number(d, "n"); n > 0; n-- {
				e := numbered{int(number(d, "_id")), n}
				if !parked[e] && !w.hist.consumption.handled[e] {
					rest = append(rest, e)
				}
			}
		}
		return rest
	}
	patience := 10 * time.Minute
	if w.plan.Real {
		patience = 30 * time.Second
	}
	work, end := context.WithTimeout(ctx, patience)
	defer end()
	o := w.consumer(cl)
	o.Handle = func(ctx context.Context, ev allium.ChangeEvent[bson.D]) error {
		return w.consumed(ctx, ev, w.plan.Seed, 0)
	}
	o.Observe = func(p streams.Progress) {
		if p.Pending > 0 {
			return
		}
		if parked, err := w.parked(ctx, cl); err == nil && len(left(parked)) == 0 {
			end()
		}
	}
	err = ended(work, streams.Run(work, cl.Database(dbName).Collection("changing"), o))
	if err != nil {
		return err
	}
	parked, err := w.parked(ctx, cl)
	if err != nil {
		return err
	}
	if lost := left(parked); len(lost) > 0 {
		w.violation("consumer: %d changes were neither handled nor parked, such as number %d of document %d", len(lost),
			lost[0].n, lost[0].key)
	}
	w.mu.Lock()
	passed := w.hist.consumption.passed
	for _, d := range docs {
		w.stats.Handled += int(number(d, "n"))
	}
	w.mu.Unlock()
	for e := range passed {
		if !parked[e] {
			w.violation("consumer: a change of document %d was handled before the one in front of it", e.key)
		}
	}
	return nil
}

// parked returns the changes that were parked.
func (w *world) parked(ctx context.Context, cl *allium.Client) (map[numbered]bool, error) {
	docs, err := allium.CollectionOf[streams.Parked](cl.Database(dbName), "parked").All(ctx, bson.D{})
	out := map[numbered]bool{}
	for _, d := range docs {
		id, _ := d.Event.Lookup("documentKey", "_id").AsInt64()
		n, _ := d.Event.Lookup("updateDescription", "updatedFields", "n").AsInt64()
		out[numbered{int(id), n}] = true
	}
	return out, err
}

// prepareChanges creates the documents, and has the consumer store its first position.
func (w *world) prepareChanges(ctx context.Context, cl *allium.Client) error {
	changing := cl.Database(dbName).Collection("changing")
	for i := range keysOfChanges {
		if _, err := changing.InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: int64(0)}}); err != nil {
			return err
		}
	}
	work, end := context.WithCancel(ctx)
	defer end()
	o := w.consumer(cl)
	o.Handle = func(context.Context, allium.ChangeEvent[bson.D]) error { return nil }
	o.Begin = func(context.Context) error { // it is stored none the less
		end()
		return nil
	}
	return ended(work, streams.Run(work, changing, o))
}
