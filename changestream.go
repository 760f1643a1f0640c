package allium

import (
	"bytes"
	"context"
	"iter"

	"allium/bson"
	"allium/internal/cursor"
)

// ChangeStream iterates over the changes of a collection, a database or a cluster, as they happen,
// whose documents are read as T. When the connection breaks, or the server steps down, it resumes
// where it was: no event is missed, and none comes twice. It is not safe for concurrent use, and
// must be closed.
//
// To go on after a restart of the application, store ResumeToken after each event, and after each
// TryNext that found none: it moves on even when no event matches, so that it does not grow too
// old. Pass it as WatchOptions.ResumeAfter then.
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

// Next waits for the next event, which Current returns then. It returns false on an error, which
// Err returns, and after an invalidate event, when the server ends the stream.
//
// An error of time that was up (IsTimeout), be it the timeout's, the context's, a socket's, the
// server's, or that of looking for a server during an outage, leaves the stream as it is, and so
// does a context that is cancelled: Next may be called again and resumes, or the stream may be
// closed. Every other error ends the stream. If time is up before there was any event, close it and
// open a new one with a longer timeout: the server does not get through the history in time.
func (s *ChangeStream[T]) Next(ctx context.Context) bool { return s.next(ctx, true) }

// TryNext is Next for those who do other things in between: it asks the server once and waits no
// longer than WatchOptions.MaxAwaitTime, or one second. If there is no event, it returns false and
// Err returns nil.
func (s *ChangeStream[T]) TryNext(ctx context.Context) bool { return s.next(ctx, false) }

func (s *ChangeStream[T]) next(ctx context.Context, block bool) bool {
	if !s.stream.Advance(ctx, block) {
		return false
	}
	var e ChangeEvent[T]
	if err := e.decode(s.stream.BSON(), s.stream.Event()); err != nil {
		s.stream.End(ctx, err) // the token stays before the event
		return false
	}
	s.current = e
	s.stream.Accept()
	return true
}

// Current returns the event that Next or TryNext moved to.
func (s *ChangeStream[T]) Current() ChangeEvent[T] { return s.current }

// Err returns the error of the last Next or TryNext, nil if there was none.
func (s *ChangeStream[T]) Err() error { return s.stream.Err() }

// ID returns the server's id of the cursor that the stream reads from at the moment. It is 0 once
// the stream has ended, and after a resume that timed out.
func (s *ChangeStream[T]) ID() int64 { return s.stream.ID() }

// ResumeToken returns the token to resume with after the last event that was returned, or later if
// the server has found that no event follows. It is nil as long as neither the server nor the
// options have named a point to resume at. The stream may be closed already.
func (s *ChangeStream[T]) ResumeToken() bson.Raw { return bytes.Clone(s.stream.Token()) }

// Close ends the stream and frees its cursor on the server. It may be called more than once. It
// takes as long as the timeout or, without one, ten seconds at the most. Once ctx has ended, the
// cursor is freed in the background, which Client.Close waits for.
func (s *ChangeStream[T]) Close(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	s.stream.Close(ctx)
	return nil
}

// Seq returns an iterator over the events. It yields an error at most once, at its end, and closes
// the stream, also when the loop is left early.
func (s *ChangeStream[T]) Seq(ctx context.Context) iter.Seq2[ChangeEvent[T], error] {
	return sequence(ctx, &s.stream, s.Next, &s.current)
}
