// Package joined reads documents by _id for many callers in fewer round trips. While enough finds
// are under way, the calls that come are joined into one find with $in: a busy service that reads
// by _id in each of its requests needs a fraction of the processor time and of the connections, and
// nothing changes when it is idle.
//
//	users := joined.New(allium.CollectionOf[User](db, "users"))
//	...
//	user, err := users.Find(ctx, id) // in each request
//
// Find means what FindOne with a filter by _id means. A joined find is sent when all calls that are
// joined in it have begun, so none of them reads what is older than its own FindOne would. It runs
// on the goroutine and with the context of one of the callers: no goroutine stands behind a Reader,
// and nothing has to be closed.
//
// What a joined find cannot answer for sure is read alone: in sessions, everything; outside of them
// each _id that is a document, an array, a regular expression, a decimal or a fraction, and a
// string that was not found, since the collection may have a collation.
package joined

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"allium"
	"allium/bson"
	"allium/internal/cursor"
	"allium/internal/option"
	"allium/mongoerr"
	"allium/patterns/internal/docid"
)

// Options are the options of New. The zero value of a field stands for its default.
type Options struct {
	// Finds is how many finds of the Reader are under way at most before calls are joined: 4 by
	// default. More than the pool's MaxPoolSize is of no use.
	Finds int
	// MaxIDs is how many _ids a joined find asks for at most: 500 by default.
	MaxIDs int
	// BSON says how an _id is encoded: by default as bson.MarshalValue does. Documents are decoded
	// with the options of the collection.
	BSON *bson.Options
}

// A Reader reads documents of a collection by their _id. It is safe for concurrent use.
type Reader[T any] struct {
	coll *allium.Collection[T]
	raw  *allium.Collection[bson.Raw]
	o    Options

	mu      sync.Mutex
	running int
	waiting []*call // in the order in which they came
}

// A call waits for the finds under way.
type call struct {
	id   bson.RawValue
	key  string
	turn chan turn     // has room for one
	left bool          // nobody waits for its turn; guarded by Reader.mu
	doc  bson.Raw      // its own
	bson *bson.Options // that the collection decodes it with
	err  error
}

// turn says what a call that has waited does.
type turn uint8

const (
	turnLead  turn = iota // find for itself and for all who wait
	turnDone              // decode what was found, or return the error
	turnAlone             // read for itself
)

// New returns a Reader of a collection, with its read preference, read concern, scope and options
// for documents. It does no I/O. A collection with read concern linearizable, and a view or time
// series in which an _id stands for several documents, are not for it.
func New[T any](coll *allium.Collection[T], opts ...Options) *Reader[T] {
	o := option.Merge(opts)
	if o.Finds <= 0 {
		o.Finds = 4
	}
	if o.MaxIDs <= 0 {
		o.MaxIDs = 500
	}
	if o.BSON = option.Copy(o.BSON); o.BSON == nil {
		o.BSON = &bson.Options{}
	}
	return &Reader[T]{coll: coll, raw: allium.As[bson.Raw](coll), o: o}
}

// Find returns the document with an _id. Its errors are those of FindOne: mongoerr.ErrNoDocuments
// if there is none. The error of a joined find that failed is the error of all its calls. While a
// call waits for others, only ctx bounds it; the collection's timeout bounds each find.
func (r *Reader[T]) Find(ctx context.Context, id any) (T, error) {
	v, err := r.o.BSON.MarshalValue(id)
	if err != nil {
		return *new(T), err
	}
	key, ok := docid.Key(v)
	if !ok || allium.SessionFrom(ctx) != nil {
		return r.alone(ctx, v)
	}
	c := r.enter(v, key)
	if c == nil {
		defer r.leave()
		return r.alone(ctx, v)
	}
	select {
	case t := <-c.turn:
		if t == turnLead {
			t = r.lead(ctx, c)
		}
		if t == turnDone {
			return r.result(c)
		}
	case <-ctx.Done():
		r.giveUp(c) // and the driver says what FindOne says of a context that has ended
	}
	return r.alone(ctx, v)
}

// result returns what a joined find found. Each caller decodes its document itself: what a method
// of the document does then is nobody else's.
func (r *Reader[T]) result(c *call) (doc T, err error) {
	if c.err != nil {
		return doc, c.err
	}
	o := c.bson
	if o == nil {
		o = &bson.Options{}
	}
	if err := o.Unmarshal(c.doc, &doc); err != nil {
		return doc, &mongoerr.DecodeError{Command: "find", Namespace: r.coll.Database().Name() + "." + r.coll.Name(),
			Index: -1, Document: c.doc, Wrapped: err}
	}
	return doc, nil
}

func (r *Reader[T]) alone(ctx context.Context, id bson.RawValue) (T, error) {
	return r.coll.FindOne(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}})
}

// enter returns nil if a find may begin at once, else the call that has to wait.
func (r *Reader[T]) enter(id bson.RawValue, key string) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running < r.o.Finds {
		r.running++
		return nil
	}
	c := &call{id: id, key: key, turn: make(chan turn, 1)}
	r.waiting = append(r.waiting, c)
	return c
}

// leave gives the place of a find that has ended to the first who waits.
func (r *Reader[T]) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.running--
		return
	}
	r.waiting[0].turn <- turnLead
	r.waiting = slices.Delete(r.waiting, 0, 1)
}

// giveUp ends the waiting of a call whose context has ended. If it was just given a place, that
// passes to the next; if a find is under way for it, nobody waits for the document.
func (r *Reader[T]) giveUp(c *call) {
	r.mu.Lock()
	c.left = true
	if at := slices.Index(r.waiting, c); at >= 0 {
		r.waiting = slices.Delete(r.waiting, at, at+1)
	}
	r.mu.Unlock()
	select {
	case t := <-c.turn:
		if t == turnLead {
			r.leave()
		}
	default:
	}
}

// lead finds for a call whose turn it is and for those who wait, and returns what the call does
// then. If its context ends, the others wait on, before all who came later. If a listener of the
// program panics or ends the goroutine, the others read alone.
func (r *Reader[T]) lead(ctx context.Context, c *call) turn {
	defer r.leave()
	r.mu.Lock()
	n := min(len(r.waiting), r.o.MaxIDs-1)
	calls := append([]*call{c}, r.waiting[:n]...)
	r.waiting = slices.Delete(r.waiting, 0, n)
	r.mu.Unlock()
	turns := make([]turn, len(calls))
	for i := range turns {
		turns[i] = turnAlone
	}
	again := false
	defer func() {
		if again {
			r.mu.Lock()
			defer r.mu.Unlock()
			others := slices.DeleteFunc(calls[1:], func(c *call) bool { return c.left })
			r.waiting = append(others, r.waiting...)
			return
		}
		for i, c := range calls[1:] {
			c.turn <- turns[1+i]
		}
	}()
	unknown, err := r.find(ctx, calls)
	if again = err != nil && ctx.Err() != nil; again {
		return turnAlone
	}
	for i, c := range calls {
		switch {
		case err != nil:
			c.err = err
		case c.doc == nil && !unknown && c.id.Type != bson.TypeString:
			c.err = mongoerr.ErrNoDocuments
		case c.doc == nil:
			continue
		}
		turns[i] = turnDone
	}
	return turns[0]
}

// find finds the documents of calls. It reports whether there are some that it cannot assign.
func (r *Reader[T]) find(ctx context.Context, calls []*call) (unknown bool, err error) {
	byKey := make(map[string][]*call, len(calls))
	ids := make([]bson.RawValue, 0, len(calls))
	for _, c := range calls {
		same := byKey[c.key]
		if same == nil {
			ids = append(ids, c.id)
		}
		byKey[c.key] = append(same, c)
	}
	// One batch, if it is not more than a reply holds: a lost connection then is what it is for
	// FindOne, a reason to read again.
	size := int32(len(ids) + 1)
	cur, err := r.raw.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}},
		allium.FindOptions{BatchSize: &size})
	if err != nil {
		return false, err
	}
	options := cursor.Inside(cur).BSON()
	for doc, err := range cur.Seq(ctx) {
		odd, isOdd := errors.AsType[*mongoerr.DecodeError](err)
		switch {
		case isOdd: // it cannot be decrypted, which is the error of those who have asked for it
			doc = odd.Document
			one := *odd
			one.Index, odd = -1, &one
		case err != nil:
			return false, err
		}
		key, _ := docid.Key(doc.Lookup("_id"))
		same := byKey[key]
		unknown = unknown || len(same) == 0
		for _, c := range same {
			if isOdd {
				c.err = odd
			}
			c.doc, c.bson = bytes.Clone(doc), options
		}
	}
	return unknown, nil
}
