package allium

import (
	"bytes"
	"context"
	"iter"
	"reflect"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/option"
)

// ChangeStream iterates over the changes of a collection, a database or a cluster as they happen,
// and decodes their documents as T. When the connection breaks or the server steps down, it resumes
// after the last event: no event is lost, and none is repeated. It is not safe for concurrent use,
// and must be closed.
//
// To continue after a restart of the application, store ResumeToken after each event and after each
// TryNext that found none, and pass it as WatchOptions.ResumeAfter. The token advances even when no
// event matches, so that it does not become too old to resume from.
//
//	for {
//		if stream.TryNext(ctx) {
//			process(stream.Current())
//		} else if err := stream.Err(); err != nil {
//			return err
//		}
//		store(stream.ResumeToken())
//	}
type ChangeStream[T any] struct {
	stream  cursor.Stream
	current ChangeEvent[T]
}

// Next waits for the next event and makes Current return it. It returns false on an error, which
// Err returns, and after an invalidate event, when the server ends the stream.
//
// An event with a document that does not decode as T is a *mongoerr.DecodeError, which holds the
// event and its token. It does not end the stream: call Next again to go on behind it. Until then,
// Current returns the event without the document, and ResumeToken the token behind it.
//
// A timeout (mongoerr.IsTimeout) of any kind, server selection during an outage included, and a
// cancelled context do not end the stream: the next call of Next resumes it. Every other error ends
// the stream. If a stream times out before its first event, close it and open a new one with a
// longer timeout: the server cannot scan the history in time.
func (s *ChangeStream[T]) Next(ctx context.Context) bool { return s.next(ctx, true) }

// TryNext makes at most one round trip, in which the server waits no longer than
// WatchOptions.MaxAwaitTime, by default one second. If there is no event, it returns false and Err
// returns nil.
func (s *ChangeStream[T]) TryNext(ctx context.Context) bool { return s.next(ctx, false) }

func (s *ChangeStream[T]) next(ctx context.Context, block bool) bool {
	if !s.stream.Advance(ctx, block) {
		return false
	}
	s.current = ChangeEvent[T]{}
	err := s.current.decode(s.stream.BSON(), s.stream.Event())
	if sealed := s.stream.Sealed(); sealed != nil {
		err = sealed
	}
	s.stream.Accept() // else a new stream would meet an event again that does not decode
	if err != nil {
		odd := s.stream.Undecoded(err)
		if ns := s.current.Namespace; ns != (Namespace{}) {
			odd.Namespace = ns.String()
		}
		s.stream.Pass(odd)
	}
	return err == nil
}

// Current returns the event that Next or TryNext advanced to.
func (s *ChangeStream[T]) Current() ChangeEvent[T] { return s.current }

// Err returns the error of the last Next or TryNext, nil if there was none.
func (s *ChangeStream[T]) Err() error { return s.stream.Err() }

// ID returns the server's id of the stream's current cursor. It is 0 once the stream has ended, and
// after a resume that timed out.
func (s *ChangeStream[T]) ID() int64 { return s.stream.ID() }

// ResumeToken returns the token from which to resume: that of the last event returned or reported
// in a *mongoerr.DecodeError, or a later one if the server reports that no event follows. It is nil
// until the server or the options have provided a token. It may be called after Close.
func (s *ChangeStream[T]) ResumeToken() bson.Raw { return bytes.Clone(s.stream.Token()) }

// Close ends the stream and frees its cursor on the server. It may be called more than once. It
// takes at most the timeout or, without one, ten seconds. If ctx has ended, the cursor is freed in
// the background; Client.Close waits for that.
func (s *ChangeStream[T]) Close(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	s.stream.Close(ctx)
	return nil
}

// Seq returns an iterator over the events. For an event with a document that does not decode as T
// it yields the event without the document and a *mongoerr.DecodeError, and goes on behind it
// unless the loop is left. Any other error is its last element. It closes the stream, also when the
// loop is left early.
func (s *ChangeStream[T]) Seq(ctx context.Context) iter.Seq2[ChangeEvent[T], error] {
	return sequence(ctx, &s.stream, s.Next, &s.current)
}

// FullDocument says which full documents the events of a change stream contain. The empty
// FullDocument leaves it to the server.
type FullDocument string

// The values of FullDocument. The last two need a collection that keeps document images
// (CreateCollectionOptions.PreAndPostImages).
const (
	FullDocumentDefault       FullDocument = "default"       // none for updates
	FullDocumentOff           FullDocument = "off"           // none, before changes
	FullDocumentUpdateLookup  FullDocument = "updateLookup"  // the document as it is some time after the update
	FullDocumentWhenAvailable FullDocument = "whenAvailable" // as it was at the change, if the server has it
	FullDocumentRequired      FullDocument = "required"      // as it was at the change, else the stream fails
)

// WatchOptions are the options of Watch. The zero value of a field leaves it to the server.
type WatchOptions struct {
	// FullDocument says which document the event of an update contains.
	FullDocument FullDocument
	// FullDocumentBeforeChange says whether events contain the document as it was before the
	// change: FullDocumentOff, FullDocumentWhenAvailable or FullDocumentRequired.
	FullDocumentBeforeChange FullDocument
	// ResumeAfter starts after the event with this resume token. So does StartAfter, which also
	// accepts the token of an invalidate event. StartAtOperationTime starts with the events at this
	// time. At most one of the three may be set; with none, the stream starts now.
	ResumeAfter          bson.Raw
	StartAfter           bson.Raw
	StartAtOperationTime *bson.Timestamp
	// BatchSize is the maximum number of events in each reply.
	BatchSize *int32
	// MaxAwaitTime is how long the server waits for an event before it sends an empty batch, to the
	// millisecond. Zero: the server's default, one second. It must be less than the timeout.
	MaxAwaitTime time.Duration
	// Collation says how the pipeline compares strings.
	Collation *Collation
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// ShowExpandedEvents adds events such as create, modify and createIndexes (server 6.0 and
	// later).
	ShowExpandedEvents bool
	// SplitLargeEvents allows events larger than the limit of a document (16 MiB), up to 128 MiB:
	// the server sends them in fragments (stage $changeStreamSplitLargeEvent, server 6.0.9 and 7.0
	// and later), which the stream joins.
	SplitLargeEvents bool
	// Timeout bounds the opening of the stream, and then each Next and TryNext from start to
	// finish; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// Watch opens a change stream over the collection. The pipeline, a slice of stages such as
// []bson.D, filters and transforms the events; nil leaves them unchanged. It must keep the field
// _id.
//
//	stream, err := users.Watch(ctx, nil)
//	if err != nil {
//		return err
//	}
//	for event, err := range stream.Seq(ctx) {
//		...
//	}
//
// It requires a replica set or a sharded cluster, and the read concern "majority" or none. Unlike
// an Aggregate with a $changeStream stage, it resumes after errors.
func (c *Collection[T]) Watch(ctx context.Context, pipeline any, opts ...WatchOptions) (*ChangeStream[T], error) {
	return Watch[T](ctx, c, pipeline, opts...)
}

// Watch opens a change stream over all collections of the database except system collections. See
// Collection.Watch, and the function Watch for events of another type.
func (db *Database) Watch(ctx context.Context, pipeline any, opts ...WatchOptions) (*ChangeStream[bson.D], error) {
	return Watch[bson.D](ctx, db, pipeline, opts...)
}

// Watch opens a change stream over all collections of all databases except system collections and
// those of admin, config and local. See Collection.Watch, and the function Watch for events of
// another type.
func (c *Client) Watch(ctx context.Context, pipeline any, opts ...WatchOptions) (*ChangeStream[bson.D], error) {
	return Watch[bson.D](ctx, c, pipeline, opts...)
}

// Watched is what a change stream can be opened over: a *Client, a *Database or any
// collection.
type Watched interface {
	watched() (inherited, target, error)
}

func (c *Collection[T]) watched() (inherited, target, error) {
	return c.inherited, target{collection: c.name}, c.err
}

func (db *Database) watched() (inherited, target, error) { return db.inherited, target{}, db.err }

func (c *Client) watched() (inherited, target, error) {
	s := c.inherited()
	s.db = "admin"
	return s, target{cluster: true}, nil
}

// Watch opens a change stream over a client's whole deployment, a database or a collection, and
// decodes the documents of its events as V. See Collection.Watch.
//
//	stream, err := allium.Watch[bson.Raw](ctx, client.Database("app"), nil)
func Watch[V any](ctx context.Context, over Watched, pipeline any, opts ...WatchOptions) (*ChangeStream[V], error) {
	inherited, t, err := over.watched()
	s := &ChangeStream[V]{}
	if err := inherited.watch(ctx, &s.stream, err, t, pipeline, opts); err != nil {
		return nil, err
	}
	return s, nil
}

// target is what a change stream watches: a collection, all of its database, or all of the cluster.
type target struct {
	collection string
	cluster    bool
}

// watch opens the stream.
func (s *inherited) watch(ctx context.Context, stream *cursor.Stream, scopeErr error, t target, pipeline any,
	opts []WatchOptions) error {
	op, o, err := exec.NewOp(&command.Aggregate{}), cursor.StreamOptions{}, scopeErr
	if err == nil {
		o, err = s.watchOptions(ctx, &op, t, pipeline, opts)
	}
	if err != nil {
		return s.failed(ctx, "aggregate", t.collection, err)
	}
	return stream.Watch(ctx, s.client.cursors, &op, o)
}

// watchOptions checks the options, and returns them as the stream takes them.
func (s *inherited) watchOptions(ctx context.Context, op *exec.Op, t target, pipeline any,
	opts []WatchOptions) (so cursor.StreamOptions, err error) {
	o := option.Merge(opts)
	if err := s.inherits(ctx, op, o.Timeout); err != nil {
		return so, err
	}
	if err := cursor.CheckAwait(op, o.MaxAwaitTime); err != nil {
		return so, err
	}
	o = option.Copy(o) // the stream keeps them, to resume
	so = cursor.StreamOptions{
		Collection: t.collection, Cluster: t.cluster, FullDocument: string(o.FullDocument),
		FullDocumentBeforeChange: string(o.FullDocumentBeforeChange),
		ResumeAfter:              o.ResumeAfter, StartAfter: o.StartAfter, StartAtOperationTime: o.StartAtOperationTime,
		BatchSize: o.BatchSize,
		MaxAwait:  o.MaxAwaitTime, Collation: o.Collation.raw(), Comment: o.Comment,
		ShowExpandedEvents: o.ShowExpandedEvents,
		SplitLargeEvents:   o.SplitLargeEvents,
	}
	if v := reflect.ValueOf(pipeline); v.IsValid() && !(v.Kind() == reflect.Slice && v.IsNil()) {
		stages, err := encodePipeline(s.bson, pipeline)
		if err != nil {
			return so, err
		}
		so.Stages = bson.Raw(stages.Value)
	}
	if s.scopes != nil {
		so.Stages, so.FullDocument,
			err = s.scopes.Watch(so.Stages, so.FullDocument, so.FullDocumentBeforeChange, so.Collation)
	}
	return so, err
}
