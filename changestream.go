package allium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"allium/bson"
	"allium/internal/exec"
	"allium/internal/wire"
	"allium/mongoerr"
)

// ChangeStream iterates over the changes of a collection, a database or a cluster, as they happen, whose documents are read as
// T. When the connection breaks, or the server steps down, it resumes where it was: no event is missed, and none comes twice.
// It is not safe for concurrent use, and must be closed.
//
// To go on after a restart of the application, store ResumeToken after each event, and after each TryNext that found none: it
// moves on even when no event matches, so that it does not grow too old. Pass it as WatchOptions.ResumeAfter then.
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
	changeStream
	current ChangeEvent[T]
}

// changeStream is the part of a ChangeStream that does not depend on the type of its documents. Its cursor is another one after
// each resume.
type changeStream struct {
	cursor
	op     exec.Op // what every aggregate of the stream has in common
	target target
	stages bson.Raw // the user's, nil if there are none
	opts   WatchOptions

	token         bson.Raw        // where a resume begins
	operationTime *bson.Timestamp // where it begins as long as there is no token
	opened        bool            // the first aggregate has succeeded
	returned      bool            // an event has been returned
	lost          bool            // the last call timed out: the next one must resume first

	event    bson.Raw // the event that is about to be returned; nobody else uses its memory
	eventEnd bson.Raw // the token that is right once it has been returned
	split    splitEvent
}

// Next waits for the next event, which Current returns then. It returns false on an error, which Err returns, and after an
// invalidate event, when the server ends the stream.
//
// An error of time that was up (IsTimeout), be it the timeout's, the context's, a socket's, the server's, or that of looking for a
// server during an outage, leaves the stream as it is, and so does a context that is cancelled: Next may be called again and
// resumes, or the stream may be closed. Every other error ends the stream. If time is up before there was any event, close it and open a new one with a longer timeout: the server
// does not get through the history in time.
func (s *ChangeStream[T]) Next(ctx context.Context) bool { return s.next(ctx, true) }

// TryNext is Next for those who do other things in between: it asks the server once and waits no longer than
// WatchOptions.MaxAwaitTime, or one second. If there is no event, it returns false and Err returns nil.
func (s *ChangeStream[T]) TryNext(ctx context.Context) bool { return s.next(ctx, false) }

func (s *ChangeStream[T]) next(ctx context.Context, block bool) bool {
	if !s.advance(ctx, block) {
		return false
	}
	var e ChangeEvent[T]
	if err := e.decode(s.op.BSON, s.event); err != nil {
		s.fail(ctx, err) // the token stays before the event
		return false
	}
	s.current = e
	s.token, s.returned = s.eventEnd, true
	return true
}

// Current returns the event that Next or TryNext moved to.
func (s *ChangeStream[T]) Current() ChangeEvent[T] { return s.current }

// Err returns the error of the last Next or TryNext, nil if there was none.
func (s *ChangeStream[T]) Err() error { return s.err }

// ID returns the server's id of the cursor that the stream reads from at the moment. It is 0 once the stream has ended, and after a
// resume that timed out.
func (s *ChangeStream[T]) ID() int64 { return s.id }

// ResumeToken returns the token to resume with after the last event that was returned, or later if the server has found that no
// event follows. It is nil as long as neither the server nor the options have named a point to resume at. The stream may be
// closed already.
func (s *ChangeStream[T]) ResumeToken() bson.Raw { return bytes.Clone(s.token) }

// Close ends the stream and frees its cursor on the server. It may be called more than once. It takes as long as the timeout or,
// without one, ten seconds at the most. Once ctx has ended, the cursor is freed in the background, which Client.Close waits for.
func (s *ChangeStream[T]) Close(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	s.close(ctx)
	return nil
}

// Seq returns an iterator over the events. It yields an error at most once, at its end, and closes the stream, also when the
// loop is left early.
func (s *ChangeStream[T]) Seq(ctx context.Context) iter.Seq2[ChangeEvent[T], error] {
	return sequence(ctx, &s.cursor, s.Next, &s.current)
}

// advance moves to the next event. Without block, it sends one getMore at most. It returns false if there is no event, for which
// s.err may be the reason.
func (s *changeStream) advance(ctx context.Context, block bool) bool {
	switch {
	case ctx == nil:
		s.err = errNilContext
		return false
	case s.closed && s.lost:
		s.err, s.lost = errStreamClosed, false
		return false
	case s.closed || s.err != nil && !s.lost:
		return false
	}
	s.err = nil
	s.within = s.op.Refreshed()
	s.op.Limit, s.op.Began = s.within, time.Now()
	if s.lost && !s.resume(ctx) {
		return false
	}
	for asked := false; ; asked = true {
		if found, err := s.scan(); found || err != nil {
			if err != nil {
				s.fail(ctx, err)
			}
			return found
		}
		if s.id == 0 { // an invalidate event was the last one
			s.close(ctx)
			return false
		}
		if asked && !block {
			return false
		}
		if err := s.getMore(ctx, s.op.Began); err == nil {
			s.observeBatch()
		} else if !s.recover(ctx, err) {
			return false
		}
	}
}

// fail ends the stream with an error, unlike a cursor's, which Close ends: what can be resumed has been resumed.
func (s *changeStream) fail(ctx context.Context, err error) {
	s.cursor.fail(err)
	s.close(ctx)
}

// recover deals with an error of a getMore. It reports whether the stream has resumed.
func (s *changeStream) recover(ctx context.Context, err error) bool {
	switch {
	case timedOut(err): // there is no time for more
	case exec.Resumes(err, s.wireVersion):
		return s.resume(ctx)
	}
	s.interrupt(ctx, err)
	return false
}

// interrupt ends a call with an error. Time that was up, whoever measured it, does not end the stream: the next call resumes
// (specification: Client Side Operations Timeout, "Change Streams").
func (s *changeStream) interrupt(ctx context.Context, err error) {
	if s.lost = timedOut(err) || mongoerr.IsTimeout(err); s.lost {
		s.err = err
		return
	}
	s.fail(ctx, err)
}

// resumeKillTimeout bounds how long a stream that resumes tries to free the cursor that it gives up: its server may be gone.
const resumeKillTimeout = 2 * time.Second

// resume opens the stream again where it is (specification: Change Streams, "Resume Process").
func (s *changeStream) resume(ctx context.Context) bool {
	s.lost = true // until it has succeeded
	limit := resumeKillTimeout
	ended := ctx.Err()
	if !s.within.Deadline.IsZero() {
		left := time.Until(s.within.Deadline)
		if limit = min(limit, left/2); left <= 0 && ended == nil {
			ended = context.DeadlineExceeded
		}
	}
	if ended != nil {
		s.err = s.late(ctx, ended)
		return false
	}
	s.free(ctx, exec.Limit{}, limit, true)
	s.batch, s.split = nil, splitEvent{}
	if err := s.aggregate(ctx); err != nil {
		s.interrupt(ctx, err)
		return false
	}
	s.lost = false
	return true
}

// late is the error of a call whose time is up before it could resume.
func (s *changeStream) late(ctx context.Context, ended error) error {
	e := &mongoerr.TimeoutError{Phase: "resume", Addr: s.server.Addr(), Elapsed: time.Since(s.op.Began), Wrapped: ended}
	if ctx.Err() == nil {
		e.Source = s.within.Source
	} else if !errors.Is(ended, context.Canceled) {
		e.Source = "the context's deadline"
	}
	return e
}

// timedOut reports whether an operation ended because its time was up, or because its context was cancelled.
func timedOut(err error) bool {
	var t *mongoerr.TimeoutError
	return errors.As(err, &t)
}

var errStreamClosed = errors.New("change stream is closed")

var errNoResumeToken = errors.New("cannot provide resume functionality when the resume token is missing: a stage of the pipeline takes _id away")

// scan looks for an event in what is left of the batch. The fragments of a large event are joined.
func (s *changeStream) scan() (found bool, err error) {
	for len(s.batch) > 0 {
		if err := s.read(); err != nil {
			return false, err
		}
		id, ok := s.raw.Lookup("_id").Document()
		if !ok {
			return false, errNoResumeToken
		}
		s.event = bytes.Clone(s.raw)
		if s.opts.SplitLargeEvents {
			if s.event, err = s.split.join(s.event); err != nil {
				return false, err
			}
			if s.event == nil {
				continue
			}
		}
		s.eventEnd = bytes.Clone(id)
		if len(s.batch) == 0 && s.postBatch != nil {
			s.eventEnd = bytes.Clone(s.postBatch)
		}
		return true, nil
	}
	return false, nil
}

// observeBatch moves the token on if the server has looked at its log and found nothing (specification: Change Streams, "Updating
// the Cached Resume Token"). While an event is not whole, a resume must begin before it.
func (s *changeStream) observeBatch() {
	if len(s.batch) == 0 && s.postBatch != nil && s.split.next == 0 {
		s.token = bytes.Clone(s.postBatch)
	}
}

// splitEvent is an event of which some fragments have come.
type splitEvent struct {
	doc  []byte // the elements so far, behind room for the length
	next int64  // the fragments that have come
}

// join adds a fragment. It returns the event when it is whole, at once if raw was not split, and else nil.
func (e *splitEvent) join(raw bson.Raw) (bson.Raw, error) {
	fragment, ok := raw.Lookup("splitEvent").Document()
	if !ok {
		if e.next != 0 {
			return nil, fmt.Errorf("server sent %d fragments of an event and not the rest", e.next)
		}
		return raw, nil
	}
	n, _ := fragment.Lookup("fragment").AsInt64()
	of, _ := fragment.Lookup("of").AsInt64()
	if n != e.next+1 || n > of {
		return nil, fmt.Errorf("server sent fragment %d of %d of an event after fragment %d", n, of, e.next)
	}
	if e.next == 0 {
		_, e.doc = bson.BeginDocument(nil)
	}
	e.next = n
	if err := wire.CheckDocument(raw, 1); err != nil {
		return nil, fmt.Errorf("fragment of an event is malformed: %w", err)
	}
	for key, v := range raw.All() {
		if key == "splitEvent" || key == "_id" && n < of {
			continue
		}
		e.doc = bson.AppendRawValue(e.doc, key, v)
	}
	if n < of {
		return nil, nil
	}
	whole := bson.EndDocument(e.doc, 0)
	*e = splitEvent{}
	return whole, nil
}
