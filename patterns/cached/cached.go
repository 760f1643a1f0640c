// Package cached keeps documents in memory that are often read. A change stream says which of them
// have changed, so that a program reads its settings, users or prices without asking the server
// each time, and sees a change within milliseconds of the moment in which a majority has it.
//
//	users := cached.New(allium.CollectionOf[User](db, "users"))
//	go users.Run(ctx)
//	...
//	user, err := users.Find(ctx, id) // in each request
//
// # What it promises
//
//   - A document that Find returns was the server's at some moment of the last MaxAge, whatever
//     becomes of the stream. No failover takes back what is kept: it was read with read concern
//     majority.
//   - A change that the stream has delivered is seen by each Find that begins later.
//   - While Run was not called, has ended, or has heard nothing of the server for Silence, Find
//     reads as FindOne does.
//
// It does not promise that Find sees a write that was acknowledged a moment ago, by this program or
// another one: the event is still on its way then. A program that must see its own writes calls
// Forget. Transactions and sessions are read through.
package cached

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/cursor"
	"allium/internal/option"
	"allium/mongoerr"
	"allium/patterns/internal/docid"
	"allium/patterns/internal/settled"
)

// Options are the options of New. The zero value of a field stands for its default.
type Options struct {
	// MaxDocuments is how many documents are kept at most: 10,000 by default. MaxBytes is how many
	// bytes they have at most, as BSON: 64 MiB by default. Those that were not read for the longest
	// time go first.
	MaxDocuments int
	MaxBytes     int64
	// MaxAge is for how long a document is kept after it was read from the server: one minute by
	// default. It bounds what a stream that lags behind can do.
	MaxAge time.Duration
	// Silence is how long the server may say nothing on the stream until documents are read
	// through: five seconds by default. It says something each second.
	Silence time.Duration
	// BSON says how an _id is encoded: by default as bson.MarshalValue does. Documents are decoded
	// with the options of the collection.
	BSON *bson.Options
	// Logger is told of streams that are interrupted. Nil: nobody.
	Logger *slog.Logger
}

// Stats are the figures of a Reader since it was made.
type Stats struct {
	// Hits count the calls of Find that were answered from memory, Reads those that asked the
	// server, and Joined those that waited for the read of another one.
	Hits, Reads, Joined int64
	// Dropped counts the documents that were dropped since they had changed.
	Dropped int64
	// Documents and Bytes are what is kept now.
	Documents int
	Bytes     int64
	// Following reports whether the stream is open and was heard of within Silence.
	Following bool
}

// A Reader reads documents of a collection by their _id, from memory where it can. It is safe for
// concurrent use.
type Reader[T any] struct {
	coll    *allium.Collection[T]
	settled *allium.Collection[bson.Raw]
	o       Options

	mu      sync.Mutex
	running bool
	feed    *feed // nil: nothing is kept
	kept    map[string]*list.Element
	recent  list.List // of *entry, the one that was read last in front
	bytes   int64
	reads   map[string]*read // that are under way, and whose document may be kept
	stats   Stats
}

// A feed is a change stream while it is open.
type feed struct {
	heard time.Time      // when the request was sent that the server answered last
	seen  bson.Timestamp // of the last change that was delivered: no read may be older
}

// An entry is a document that is kept, or was just read.
type entry struct {
	key  string
	doc  bson.Raw      // shared: it is decoded for each caller
	bson *bson.Options // that the collection decodes it with
	read time.Time     // before the read began
}

// A read gets a document from the server for all who ask for it meanwhile.
type read struct {
	feed  *feed
	after bson.Timestamp
	stale bool          // the document has changed since the read began; guarded by Reader.mu
	done  chan struct{} // closed when entry is set, or stays nil
	entry *entry
}

// size is what an entry counts for in MaxBytes, with the map and the list behind it.
func (e *entry) size() int64 { return int64(len(e.key) + len(e.doc) + 200) }

// New returns a Reader of a collection. It does no I/O. Documents are read from the primary where
// they are kept. The collection's scope holds; what its filter says of a document must depend on
// the document alone, and not on the time. A view, and a time series, are not for it.
func New[T any](coll *allium.Collection[T], opts ...Options) *Reader[T] {
	o := option.Merge(opts)
	if o.MaxDocuments <= 0 {
		o.MaxDocuments = 10_000
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	if o.MaxAge <= 0 {
		o.MaxAge = time.Minute
	}
	if o.Silence <= 0 {
		o.Silence = 5 * time.Second
	}
	if o.BSON = option.Copy(o.BSON); o.BSON == nil {
		o.BSON = &bson.Options{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Reader[T]{coll: coll, settled: settled.Values[bson.Raw](coll), o: o,
		kept: map[string]*list.Element{}, reads: map[string]*read{}}
}

// Find returns the document with an _id. Its errors are those of FindOne: mongoerr.ErrNoDocuments
// if there is none. That there is none is not kept. Nor is a document whose _id is a document, an
// array, a regular expression, a decimal or a fraction.
//
// Calls that ask for the same document while it is read share that read.
func (r *Reader[T]) Find(ctx context.Context, id any) (doc T, err error) {
	v, err := r.o.BSON.MarshalValue(id)
	if err != nil {
		return doc, err
	}
	key, ok := docid.Key(v)
	if !ok || allium.SessionFrom(ctx) != nil {
		return r.through(ctx, v)
	}
	e, under, first := r.look(key)
	switch {
	case e != nil:
	case under == nil:
		return r.through(ctx, v)
	case first:
		e, err = r.read(ctx, v, key, under)
		if err != nil {
			return doc, err
		}
	default:
		select {
		case <-under.done:
			e = under.entry
		case <-ctx.Done():
		}
		if e == nil { // it failed, or ctx has ended: then the driver says what FindOne says
			return r.through(ctx, v)
		}
	}
	return r.decode(e)
}

// decode decodes a document for one caller: what its methods do then is nobody else's.
func (r *Reader[T]) decode(e *entry) (doc T, err error) {
	if err := e.bson.Unmarshal(e.doc, &doc); err != nil {
		return doc, &mongoerr.DecodeError{Command: "find", Namespace: r.coll.Database().Name() + "." + r.coll.Name(),
			Index: -1, Document: bytes.Clone(e.doc), Wrapped: err}
	}
	return doc, nil
}

// through reads as if nothing was kept.
func (r *Reader[T]) through(ctx context.Context, id bson.RawValue) (T, error) {
	r.mu.Lock()
	r.stats.Reads++
	r.mu.Unlock()
	return r.coll.FindOne(ctx, byID(id))
}

func byID(id bson.RawValue) bson.D {
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}}
}

// look returns the document that is kept, or the read that is under way, and whether the caller is
// the one to do it, or nothing if no document may be kept now.
func (r *Reader[T]) look(key string) (e *entry, under *read, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.following() {
		return nil, nil, false
	}
	if at := r.kept[key]; at != nil {
		if e := at.Value.(*entry); time.Since(e.read) <= r.o.MaxAge {
			r.recent.MoveToFront(at)
			r.stats.Hits++
			return e, nil, false
		}
		r.drop(at)
	}
	if under := r.reads[key]; under != nil {
		r.stats.Joined++
		return nil, under, false
	}
	r.stats.Reads++
	under = &read{feed: r.feed, after: r.feed.seen, done: make(chan struct{})}
	r.reads[key] = under
	return nil, under, true
}

// following reports whether the stream is open and the server was heard of. The caller holds mu.
func (r *Reader[T]) following() bool {
	return r.feed != nil && time.Since(r.feed.heard) <= r.o.Silence
}

// read reads a document and keeps it, unless it has changed meanwhile. It is causally behind all
// changes that were delivered when it began: what it returns is not older than one of them, whose
// event will not come again. The other way round, a change that it does not know is delivered while
// it runs, or later.
func (r *Reader[T]) read(ctx context.Context, id bson.RawValue, key string, under *read) (e *entry, err error) {
	began := time.Now()
	// Deferred, since a listener of the program may panic or end the goroutine.
	defer func() { r.finish(key, under, e) }()
	s, err := r.coll.Database().Client().StartSession()
	if err != nil {
		return nil, err
	}
	defer s.End(ctx)
	s.AdvanceOperationTime(under.after)
	ctx = allium.WithSession(ctx, s)
	cur, err := r.settled.Find(ctx, byID(id), allium.FindOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	options := cursor.Inside(cur).BSON()
	if options == nil {
		options = &bson.Options{}
	}
	for doc, err := range cur.Seq(ctx) {
		if err != nil {
			return nil, err
		}
		return &entry{key: key, doc: bytes.Clone(doc), bson: options, read: began}, nil
	}
	return nil, mongoerr.ErrNoDocuments
}

// finish hands what was read to those who wait for it, and keeps it.
func (r *Reader[T]) finish(key string, under *read, e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	under.entry = e
	close(under.done)
	if r.reads[key] == under {
		delete(r.reads, key)
	}
	if e == nil || under.stale || under.feed != r.feed {
		return
	}
	// Where a collation makes another _id equal, its events do not name the one that was asked for.
	if own, _ := docid.Key(e.doc.Lookup("_id")); own != key {
		return
	}
	r.kept[key] = r.recent.PushFront(e)
	r.bytes += e.size()
	for r.recent.Len() > r.o.MaxDocuments || r.bytes > r.o.MaxBytes {
		r.drop(r.recent.Back())
	}
}

// drop forgets a document. The caller holds mu.
func (r *Reader[T]) drop(at *list.Element) {
	e := r.recent.Remove(at).(*entry)
	delete(r.kept, e.key)
	r.bytes -= e.size()
}

// Forget drops documents, so that a later Find reads them anew: the program has just changed them,
// with write concern majority, and cannot wait for the event. Its error is that an _id cannot be
// encoded; the other ones are forgotten all the same.
func (r *Reader[T]) Forget(ids ...any) error {
	var failed []error
	for _, id := range ids {
		v, err := r.o.BSON.MarshalValue(id)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		r.mu.Lock()
		r.changed(v)
		r.mu.Unlock()
	}
	return errors.Join(failed...)
}

// changed drops what is known of a document that has changed. The caller holds mu.
func (r *Reader[T]) changed(id bson.RawValue) {
	key, ok := docid.Key(id)
	if !ok {
		return
	}
	if at := r.kept[key]; at != nil {
		r.drop(at)
		r.stats.Dropped++
	}
	if under := r.reads[key]; under != nil {
		under.stale = true
		delete(r.reads, key) // who asks from now on gets what is newer
	}
}

// Stats returns the figures.
func (r *Reader[T]) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Documents, s.Bytes, s.Following = r.recent.Len(), r.bytes, r.following()
	return s
}
