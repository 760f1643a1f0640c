package allium

import (
	"bytes"
	"context"
	"iter"

	"allium/bson"
	"allium/internal/cursor"
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
