package allium

import (
	"context"
	"reflect"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/option"
)

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

// Watched is what a change stream can be opened over: a *Client, a *Database or a *Collection.
type Watched interface {
	watched() (scope, target, error)
}

func (c *Collection[T]) watched() (scope, target, error) {
	return c.scope, target{collection: c.name}, c.err
}

func (db *Database) watched() (scope, target, error) { return db.scope, target{}, db.err }

func (c *Client) watched() (scope, target, error) {
	s := c.scope()
	s.db = "admin"
	return s, target{cluster: true}, nil
}

// Watch opens a change stream over a client's whole deployment, a database or a collection, and
// decodes the documents of its events as V. See Collection.Watch.
//
//	stream, err := allium.Watch[bson.Raw](ctx, client.Database("app"), nil)
func Watch[V any](ctx context.Context, over Watched, pipeline any, opts ...WatchOptions) (*ChangeStream[V], error) {
	scope, t, err := over.watched()
	s := &ChangeStream[V]{}
	if err := scope.watch(ctx, &s.stream, err, t, pipeline, opts); err != nil {
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
func (s *scope) watch(ctx context.Context, stream *cursor.Stream, scopeErr error, t target, pipeline any, opts []WatchOptions) error {
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
func (s *scope) watchOptions(ctx context.Context, op *exec.Op, t target, pipeline any, opts []WatchOptions) (so cursor.StreamOptions, err error) {
	o := option.Merge(opts)
	if err := s.inherits(ctx, op, o.Timeout); err != nil {
		return so, err
	}
	if err := cursor.CheckAwait(op, o.MaxAwaitTime); err != nil {
		return so, err
	}
	o = option.Copy(o) // the stream keeps them, to resume
	so = cursor.StreamOptions{
		Collection: t.collection, Cluster: t.cluster, FullDocument: string(o.FullDocument), FullDocumentBeforeChange: string(o.FullDocumentBeforeChange),
		ResumeAfter: o.ResumeAfter, StartAfter: o.StartAfter, StartAtOperationTime: o.StartAtOperationTime, BatchSize: o.BatchSize,
		MaxAwait: o.MaxAwaitTime, Collation: o.Collation.raw(), Comment: o.Comment, ShowExpandedEvents: o.ShowExpandedEvents,
		SplitLargeEvents: o.SplitLargeEvents,
	}
	if v := reflect.ValueOf(pipeline); v.IsValid() && !(v.Kind() == reflect.Slice && v.IsNil()) {
		stages, err := encodePipeline(s.bson, pipeline)
		if err != nil {
			return so, err
		}
		so.Stages = bson.Raw(stages.Value)
	}
	return so, nil
}
