package allium

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/option"
)

// WatchOptions are the options of Watch. The zero value of a field leaves it to the server.
type WatchOptions struct {
	// FullDocument says what FullDocument of an update is: "default" (nothing), "updateLookup" (the document as it is some time
	// after the update), "whenAvailable" or "required" (as it was right after the update, which the collection must keep:
	// CreateCollectionOptions.PreAndPostImages).
	FullDocument string
	// FullDocumentBeforeChange says whether FullDocumentBeforeChange is set: "off", "whenAvailable" or "required".
	FullDocumentBeforeChange string
	// ResumeAfter begins after the event with this resume token. StartAfter does too, and takes the token of an invalidate event as
	// well. StartAtOperationTime begins with the events at this time. At most one of the three may be set; without any, the
	// stream begins now.
	ResumeAfter          bson.Raw
	StartAfter           bson.Raw
	StartAtOperationTime *bson.Timestamp
	// BatchSize is how many events each reply holds at most.
	BatchSize *int32
	// MaxAwaitTime is how long the server waits for an event before it answers without one, to the millisecond. Zero: the server's
	// default, one second. It must be less than the timeout, if there is one.
	MaxAwaitTime time.Duration
	// Collation says how the pipeline compares strings.
	Collation *Collation
	// Comment is any value that helps to find the operation in logs and profiles.
	Comment any
	// ShowExpandedEvents adds events such as create, modify and createIndexes (server 6.0 and later).
	ShowExpandedEvents *bool
	// SplitLargeEvents lets an event be larger than a document may be (16 MiB), up to what the server can put together: the server
	// sends it in fragments (stage $changeStreamSplitLargeEvent, server 6.0.9 and 7.0 and later), which the stream joins.
	SplitLargeEvents bool
	// Timeout bounds the opening of the stream, and then each Next and TryNext from start to finish; a pointer to 0 means no
	// bound.
	Timeout *time.Duration
}

// Watch opens a change stream over the collection (specification: Change Streams). The pipeline, a slice of stages such as
// []bson.D, filters and changes the events; nil leaves them as they are. A stage must not take _id away.
//
//	stream, err := users.Watch(ctx, nil)
//	if err != nil {
//		return err
//	}
//	for event, err := range stream.Seq(ctx) {
//		...
//	}
//
// It needs a replica set or a sharded cluster, and the read concern "majority" or none: the server refuses others. Prefer it to
// an Aggregate with a $changeStream stage, which does not resume.
func (c *Collection[T]) Watch(ctx context.Context, pipeline any, opts ...WatchOptions) (*ChangeStream[T], error) {
	s := &ChangeStream[T]{}
	if err := s.watch(ctx, c.scope, c.err, target{collection: c.name}, pipeline, opts); err != nil {
		return nil, err
	}
	return s, nil
}

// Watch opens a change stream over all collections of the database, but for the system's. See Collection.Watch.
func (db *Database) Watch(ctx context.Context, pipeline any, opts ...WatchOptions) (*ChangeStream[bson.D], error) {
	s := &ChangeStream[bson.D]{}
	if err := s.watch(ctx, db.scope, db.err, target{}, pipeline, opts); err != nil {
		return nil, err
	}
	return s, nil
}

// Watch opens a change stream over all collections of all databases, but for the system's and those of admin, config and
// local. See Collection.Watch.
func (c *Client) Watch(ctx context.Context, pipeline any, opts ...WatchOptions) (*ChangeStream[bson.D], error) {
	s := &ChangeStream[bson.D]{}
	scope := c.scope()
	scope.db = "admin"
	if err := s.watch(ctx, scope, nil, target{cluster: true}, pipeline, opts); err != nil {
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
func (s *changeStream) watch(ctx context.Context, sc scope, scopeErr error, t target, pipeline any, opts []WatchOptions) error {
	err := scopeErr
	if err == nil {
		err = s.prepare(ctx, sc, t, pipeline, opts)
	}
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if err := s.aggregate(ctx); err != nil {
		return err
	}
	if s.token == nil && s.operationTime == nil && len(s.batch) == 0 && s.postBatch == nil {
		if t, ok := s.result.Reply.Lookup("operationTime").Timestamp(); ok {
			s.operationTime = &t
		}
	}
	return nil
}

// prepare checks and keeps what the stream is opened with, now and whenever it resumes.
func (s *changeStream) prepare(ctx context.Context, sc scope, t target, pipeline any, opts []WatchOptions) (err error) {
	if s.opts, err = option.One(opts); err != nil {
		return err
	}
	o := &s.opts
	if s.op, err = sc.op(ctx, &command.Aggregate{}, o.Timeout); err != nil { // the pipeline follows, each time the stream is opened
		return err
	}
	if o.MaxAwaitTime < 0 {
		return negative("MaxAwaitTime", o.MaxAwaitTime)
	}
	if t := s.op.Timeout; t != nil && *t > 0 && o.MaxAwaitTime >= *t {
		return fmt.Errorf("MaxAwaitTime is %v, want less than %s, %v", o.MaxAwaitTime, s.op.Source, *t)
	}
	if v := reflect.ValueOf(pipeline); v.IsValid() && !(v.Kind() == reflect.Slice && v.IsNil()) {
		stages, err := encodePipeline(sc.bson, pipeline)
		if err != nil {
			return err
		}
		s.stages = bson.Raw(stages.Value)
	}
	s.target, s.client, s.exec = t, sc.client, sc.client.exec
	s.session = s.op.Session
	s.comment, s.maxAwait = o.Comment, o.MaxAwaitTime
	if o.BatchSize != nil {
		s.batchSize = *o.BatchSize
	}
	s.token = bytes.Clone(o.ResumeAfter)
	if o.StartAfter != nil {
		s.token = bytes.Clone(o.StartAfter)
	}
	s.operationTime = o.StartAtOperationTime
	return nil
}

// aggregate opens the cursor of the stream, at first or to resume.
func (s *changeStream) aggregate(ctx context.Context) error {
	pipeline := bson.RawValue{Type: bson.TypeArray, Value: s.pipeline()}
	op := s.op
	op.Command = &command.Aggregate{Collection: s.target.collection, Pipeline: pipeline, BatchSize: s.opts.BatchSize,
		Collation: s.opts.Collation.raw(), Comment: s.opts.Comment}
	op.Implicit = s.implicit // a stream that resumes goes on in its session
	op.NoMaxTime = op.Deadline.IsZero()
	res, err := s.exec.Run(ctx, &op)
	if err != nil {
		return err
	}
	if err := s.open(s.client, &op, res); err != nil {
		return err
	}
	s.opened = true
	s.observeBatch()
	return nil
}

// pipeline returns the array of stages: $changeStream with the point that the stream begins at, the user's stages, and the
// splitting of large events.
func (s *changeStream) pipeline() []byte {
	start, dst := bson.BeginDocument(nil)
	n := 0
	stage := func(name string, fields func(dst []byte) []byte) {
		at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n))
		inner, d := bson.BeginDocumentElement(d, name)
		dst = bson.EndDocument(bson.EndDocument(fields(d), inner), at)
		n++
	}
	stage("$changeStream", s.appendOptions)
	for v := range s.stages.Values() {
		dst = append(bson.AppendIndexHeader(dst, v.Type, n), v.Value...)
		n++
	}
	if s.opts.SplitLargeEvents {
		stage("$changeStreamSplitLargeEvent", func(dst []byte) []byte { return dst })
	}
	return bson.EndDocument(dst, start)
}

// appendOptions appends the fields of the $changeStream stage. What was asked for at first is sent as it was; a stream that
// resumes begins where it is (specification: Change Streams, "Resume Process").
func (s *changeStream) appendOptions(dst []byte) []byte {
	o := &s.opts
	if o.FullDocument != "" {
		dst = bson.AppendString(dst, "fullDocument", o.FullDocument)
	}
	if o.FullDocumentBeforeChange != "" {
		dst = bson.AppendString(dst, "fullDocumentBeforeChange", o.FullDocumentBeforeChange)
	}
	resumeAfter, startAfter, at := o.ResumeAfter, o.StartAfter, o.StartAtOperationTime
	if s.opened {
		resumeAfter, startAfter, at = nil, nil, nil
		switch {
		case s.token != nil && o.StartAfter != nil && !s.returned:
			startAfter = s.token
		case s.token != nil:
			resumeAfter = s.token
		default:
			at = s.operationTime
		}
	}
	if resumeAfter != nil {
		dst = bson.AppendDocument(dst, "resumeAfter", resumeAfter)
	}
	if startAfter != nil {
		dst = bson.AppendDocument(dst, "startAfter", startAfter)
	}
	if at != nil {
		dst = bson.AppendTimestamp(dst, "startAtOperationTime", *at)
	}
	if s.target.cluster {
		dst = bson.AppendBool(dst, "allChangesForCluster", true)
	}
	if o.ShowExpandedEvents != nil {
		dst = bson.AppendBool(dst, "showExpandedEvents", *o.ShowExpandedEvents)
	}
	return dst
}
