package mongo

import (
	"context"
	"errors"
	"reflect"

	"allium"
	abson "allium/bson"
	"allium/mongoerr"
	"allium/stats/batch"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A StreamType says what a change stream is about.
type StreamType uint8

// The types.
const (
	CollectionStream StreamType = iota
	DatabaseStream
	ClientStream
)

// A ChangeStream iterates over changes as they happen. It is not safe for concurrent use.
type ChangeStream struct {
	// Current is the event that Next advanced to. It is valid until the next call of Next or
	// TryNext.
	Current bson.Raw

	coder
	inner *allium.ChangeStream[coding.View]
	err   error
	over  bool // there is nothing more to come: a stream that has failed does not go on
	asked bool // TryNext or Next was called
	shut  bool // Close was called
}

// watch opens a change stream.
func watch(ctx context.Context, client *Client, c coder, over allium.Watched, pipeline any,
	opts []options.Lister[options.ChangeStreamOptions]) (*ChangeStream, error) {
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	if ctx, err = client.context(ctx); err != nil {
		return nil, err
	}
	if kind := reflect.ValueOf(pipeline).Kind(); kind != reflect.Slice && kind != reflect.Array {
		return nil, errors.New("can only marshal slices and arrays into aggregation pipelines, but got invalid")
	}
	stages, _, err := c.pipeline(pipeline)
	if err != nil {
		return nil, err
	}
	if len(o.Custom) > 0 || len(o.CustomPipeline) > 0 {
		return nil, errors.New("change streams with custom fields are not supported")
	}
	a := arguments{coder: c}
	token := func(val any) abson.Raw {
		doc, _ := a.optional(val).(abson.Raw)
		return doc
	}
	settings := allium.WatchOptions{
		FullDocument:             allium.FullDocument(set(o.FullDocument)),
		FullDocumentBeforeChange: allium.FullDocument(set(o.FullDocumentBeforeChange)),
		ResumeAfter:              token(o.ResumeAfter), StartAfter: token(o.StartAfter), BatchSize: o.BatchSize,
		MaxAwaitTime: set(o.MaxAwaitTime),
		Collation:    collated(o.Collation), Comment: a.comment(o.Comment),
		ShowExpandedEvents: set(o.ShowExpandedEvents),
	}
	if settings.FullDocument == allium.FullDocumentDefault {
		settings.FullDocument = ""
	}
	if t := o.StartAtOperationTime; t != nil {
		at := abson.Timestamp(*t)
		settings.StartAtOperationTime = &at
	}
	if a.err != nil {
		return nil, a.err
	}
	inner, err := allium.Watch[coding.View](ctx, over, stages, settings)
	if err != nil {
		return nil, commandFailed(err)
	}
	return &ChangeStream{inner: inner, coder: c}, nil
}

// ID returns the server's id of the stream's cursor, 0 once it has ended.
func (cs *ChangeStream) ID() int64 {
	if cs == nil || cs.inner == nil || cs.over {
		return 0
	}
	return cs.inner.ID()
}

// Next waits for the next event.
func (cs *ChangeStream) Next(ctx context.Context) bool {
	return cs.next(ctx, (*allium.ChangeStream[coding.View]).Next)
}

// TryNext is Next, and asks the server once at the most.
func (cs *ChangeStream) TryNext(ctx context.Context) bool {
	if cs != nil && cs.inner != nil && !cs.asked && !cs.over && cs.RemainingBatchLength() == 0 {
		// The first call looks at the batch that opened the stream, and asks for no other.
		cs.asked, cs.err = true, nil
		return false
	}
	return cs.next(ctx, (*allium.ChangeStream[coding.View]).TryNext)
}

func (cs *ChangeStream) next(ctx context.Context,
	next func(*allium.ChangeStream[coding.View], context.Context) bool) bool {
	if cs == nil || cs.inner == nil || cs.over {
		return false
	}
	if ctx == nil {
		ctx = context.Background()
	}
	cs.asked, cs.err = true, nil
	ended := ctx.Err()
	if next(cs.inner, ctx) {
		cs.Current = bson.Raw(cs.inner.Current().Raw)
		return true
	}
	err := cs.inner.Err()
	var odd *mongoerr.DecodeError
	if errors.As(err, &odd) && odd.Document != nil { // a stage has changed a field that Allium decodes
		cs.Current = bson.Raw(odd.Document)
		return true
	}
	cs.err = moreFailed(err)
	if err != nil && ended != nil {
		cs.err = ended
	}
	cs.over = err != nil || cs.inner.ID() == 0
	return false
}

// Err returns the error of the last call.
func (cs *ChangeStream) Err() error {
	if cs == nil {
		return nil
	}
	return cs.err
}

// Decode decodes the current event into the variable that val points to.
func (cs *ChangeStream) Decode(val any) error {
	if cs == nil || cs.inner == nil || cs.shut {
		return ErrNilCursor
	}
	return cs.way().Unmarshal(abson.TypeEmbeddedDocument, cs.Current, val)
}

// ResumeToken returns the token behind the events that were read.
func (cs *ChangeStream) ResumeToken() bson.Raw { return bson.Raw(cs.inner.ResumeToken()) }

// Close ends the stream.
func (cs *ChangeStream) Close(ctx context.Context) error {
	if cs == nil || cs.inner == nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	cs.over, cs.shut = true, true
	cs.err = failure(cs.inner.Close(ctx))
	return cs.err
}

// RemainingBatchLength returns how many events are left of the current batch.
func (cs *ChangeStream) RemainingBatchLength() int { return batch.Of(cs.inner).Left() }

// SetBatchSize says how many events the next batches have at most.
func (cs *ChangeStream) SetBatchSize(size int32) { batch.Of(cs.inner).SetSize(size) }
