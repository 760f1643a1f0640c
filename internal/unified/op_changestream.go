package unified

import (
	"context"

	"allium"
	"allium/bson"
)

// changeStream is a change stream over whatever it watches; event returns the event that it is at.
type changeStream struct {
	watched interface {
		Next(ctx context.Context) bool
		TryNext(ctx context.Context) bool
		Err() error
		Close(ctx context.Context) error
	}
	event func() bson.Raw
}

// Close ends the stream.
func (s *changeStream) Close(ctx context.Context) error { return s.watched.Close(ctx) }

func init() {
	register(map[string]operation[*clientEntity]{"createChangeStream": createChangeStream[*clientEntity]})
	register(map[string]operation[*allium.Database]{"createChangeStream": createChangeStream[*allium.Database]})
	register(map[string]operation[*collection]{"createChangeStream": createChangeStream[*collection]})
	register(map[string]operation[*changeStream]{
		"close": func(ctx context.Context, _ *runner, s *changeStream, _ *arguments) (result, error) {
			return result{}, s.Close(ctx)
		},
		"iterateOnce": func(ctx context.Context, _ *runner, s *changeStream, _ *arguments) (result, error) {
			if s.watched.TryNext(ctx) {
				return doc(s.event(), nil)
			}
			return result{}, s.watched.Err()
		},
		"iterateUntilDocumentOrError": func(ctx context.Context, _ *runner, s *changeStream, _ *arguments) (result,
			error) {
			if s.watched.Next(ctx) {
				return doc(s.event(), nil)
			}
			if err := s.watched.Err(); err != nil {
				return result{}, err
			}
			return result{}, broken("the change stream is at its end")
		},
	})
}

func createChangeStream[T any](ctx context.Context, _ *runner, object T, a *arguments) (result, error) {
	pipeline := a.any("pipeline")
	o := allium.WatchOptions{FullDocument: allium.FullDocument(a.string("fullDocument")),
		FullDocumentBeforeChange: allium.FullDocument(a.string("fullDocumentBeforeChange")),
		ResumeAfter:              a.document("resumeAfter"), StartAfter: a.document("startAfter"),
		BatchSize:    a.intp("batchSize"),
		MaxAwaitTime: a.millis("maxAwaitTimeMS"), Collation: a.collation(), Comment: a.any("comment"),
		ShowExpandedEvents: a.is("showExpandedEvents"), Timeout: a.timeout()}
	if v := a.raw("startAtOperationTime"); !v.IsZero() {
		ts, ok := v.Timestamp()
		if !ok {
			a.fail("startAtOperationTime", v, "a timestamp")
		}
		o.StartAtOperationTime = &ts
	}
	switch object := any(object).(type) {
	case *clientEntity:
		return watched(object.Watch(ctx, pipeline, o))
	case *allium.Database:
		return watched(object.Watch(ctx, pipeline, o))
	case *collection:
		return watched(object.Watch(ctx, pipeline, o))
	}
	return result{}, broken("a %T cannot be watched", object)
}

func watched[T any](s *allium.ChangeStream[T], err error) (result, error) {
	return entity(&changeStream{watched: s, event: func() bson.Raw { return s.Current().Raw }}, err)
}
