package cursor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/mongoerr"
)

// StreamOptions are what a change stream is opened with, now and whenever it resumes.
type StreamOptions struct {
	Collection string   // "": all of the database
	Cluster    bool     // all of the cluster
	Stages     bson.Raw // the user's pipeline, an array; nil: none

	FullDocument, FullDocumentBeforeChange string
	ResumeAfter, StartAfter                bson.Raw
	StartAtOperationTime                   *bson.Timestamp
	BatchSize                              *int32
	MaxAwait                               time.Duration
	Collation                              bson.Raw
	Comment                                any
	ShowExpandedEvents                     bool
	SplitLargeEvents                       bool
}

// Stream iterates over the events of a change stream, without decoding them. Its cursor is another
// one after each resume. It belongs to one goroutine at a time, and must be closed.
type Stream struct {
	Cursor
	op   exec.Op // what every aggregate of the stream has in common
	opts StreamOptions

	token         bson.Raw        // where a resume begins
	operationTime *bson.Timestamp // where it begins as long as there is no token
	opened        bool            // the first aggregate has succeeded
	returned      bool            // an event has been returned
	lost          bool            // the last call timed out: the next one must resume first
	resumed       int             // how often, since a getMore succeeded or an event was found

	odd      error    // why a part of the event that is about to be returned cannot be decrypted
	event    bson.Raw // the event that is about to be returned; nobody else uses its memory
	eventEnd bson.Raw // the token that is right once it has been returned
	split    splitEvent
}

// Watch opens the stream. op is that of an aggregate, with its limit, its session and its read
// preference; its pipeline follows, each time the stream is opened.
func (s *Stream) Watch(ctx context.Context, reg *Registry, op *exec.Op, o StreamOptions) error {
	comment, err := freeze(op.BSON, o.Comment)
	if err != nil {
		return fmt.Errorf("comment: %w", err)
	}
	o.Comment = comment
	if op.Timeout != nil {
		op.Timeout = new(*op.Timeout)
	}
	s.op, s.opts = *op, o
	s.registry, s.exec, s.session = reg, reg.exec, op.Session
	s.comment, s.maxAwait, s.awaits = o.Comment, o.MaxAwait, true
	if o.BatchSize != nil {
		s.batchSize = *o.BatchSize
	}
	s.token = bytes.Clone(o.ResumeAfter)
	if o.StartAfter != nil {
		s.token = bytes.Clone(o.StartAfter)
	}
	s.operationTime = o.StartAtOperationTime
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

// Event returns the event that Advance moved to, which is the caller's.
func (s *Stream) Event() bson.Raw { return s.event }

// Sealed returns why the event that Advance moved to cannot be decrypted, nil if it is in plain.
func (s *Stream) Sealed() error { return s.odd }

// Undecoded makes the error of the current event, which the program cannot decode.
func (s *Stream) Undecoded(err error) *mongoerr.DecodeError {
	e := s.Cursor.Undecoded(err)
	e.Index, e.Document = -1, s.event
	e.ResumeToken, _ = s.event.Lookup("_id").Document()
	return e
}

// Accept moves the token behind the event that Advance moved to: it has been returned, or the error
// that says that it does not decode has.
func (s *Stream) Accept() { s.token, s.returned = s.eventEnd, true }

// Token returns where a resume begins, nil if nobody has named a point. It must not be changed.
func (s *Stream) Token() bson.Raw { return s.token }

// Advance moves to the next event. Without block, it sends one getMore at most. It returns false if
// there is no event, for which s.err may be the reason.
func (s *Stream) Advance(ctx context.Context, block bool) bool {
	switch {
	case ctx == nil:
		s.err = s.Named(failure.ErrNilContext)
		return false
	case s.closed && (s.lost || s.goesOn):
		s.err, s.lost, s.goesOn = s.Named(errStreamClosed), false, false
		return false
	case s.closed || s.err != nil && !s.lost && !s.goesOn:
		return false
	}
	s.err, s.goesOn = nil, false
	s.within = s.op.Refreshed()
	s.op.Limit, s.op.Began = s.within, time.Now()
	if s.lost && !s.resume(ctx) {
		return false
	}
	for asked := false; ; asked = true {
		if found, err := s.scan(); found || err != nil {
			s.resumed = 0
			if err != nil {
				s.End(ctx, err)
			}
			return found
		}
		if s.id == 0 { // an invalidate event was the last one
			s.Close(ctx)
			return false
		}
		if asked && !block {
			return false
		}
		if err := s.getMore(ctx, s.op.Began); err == nil {
			s.resumed = 0
			s.observeBatch()
		} else if !s.recover(ctx, err) {
			return false
		}
	}
}

// End ends the stream with an error, unlike a cursor's, which Close ends: what can be resumed has
// been resumed.
func (s *Stream) End(ctx context.Context, err error) {
	s.Cursor.Fail(err)
	s.Close(ctx)
}

// recover deals with an error of a getMore. It reports whether the stream has resumed.
func (s *Stream) recover(ctx context.Context, err error) bool {
	switch {
	case failure.OutOfTime(err): // there is no time for more
	case resumes(err, s.wireVersion):
		s.backoff(ctx)
		return s.resume(ctx)
	}
	s.interrupt(ctx, err)
	return false
}

// What a stream waits for at most before it resumes once more without having got anywhere.
const (
	resumeBackoff    = 100 * time.Millisecond // doubled each time
	maxResumeBackoff = time.Second
)

// backoff waits before a stream resumes again whose last resume was of no use: the aggregate
// succeeded, and the getMore after it failed. Without it, the stream would ask as fast as the
// server answers. The first resume waits for nothing, since a failover should cost no more than it
// must. The specification Change Streams says nothing about it; the formula is that of Client
// Backpressure, with a lower bound, since each attempt is an operation of its own. Half of the time
// that is left stays for the resume.
func (s *Stream) backoff(ctx context.Context) {
	n := s.resumed
	s.resumed++
	if n == 0 {
		return
	}
	d := min(resumeBackoff<<min(n-1, 8), maxResumeBackoff)
	d = time.Duration(s.exec.Jitter() * float64(d))
	if !s.within.Deadline.IsZero() {
		d = max(min(d, time.Until(s.within.Deadline)/2), time.Millisecond)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// interrupt ends a call with an error. Time that was up, whoever measured it, does not end the
// stream: the next call resumes (specification: Client Side Operations Timeout, "Change Streams").
func (s *Stream) interrupt(ctx context.Context, err error) {
	if s.lost = failure.OutOfTime(err) || mongoerr.IsTimeout(err); s.lost {
		s.err = err
		return
	}
	s.End(ctx, err)
}

// resumeKillTimeout bounds how long a stream that resumes tries to free the cursor that it gives
// up: its server may be gone.
const resumeKillTimeout = 2 * time.Second

// resume opens the stream again where it is (specification: Change Streams, "Resume Process").
func (s *Stream) resume(ctx context.Context) bool {
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
func (s *Stream) late(ctx context.Context, ended error) error {
	e := &mongoerr.TimeoutError{Phase: mongoerr.PhaseResume, Addr: s.server.Addr(), Elapsed: time.Since(s.op.Began),
		Wrapped: ended}
	if ctx.Err() == nil {
		e.Source = s.within.Source
	} else if !errors.Is(ended, context.Canceled) {
		e.Source = mongoerr.SourceContext
	}
	return failure.Cause(ctx, e)
}

var errStreamClosed = errors.New("change stream is closed")

var errNoResumeToken = fmt.Errorf("%w: a stage of the pipeline takes _id away", mongoerr.ErrNoResumeToken)

// scan looks for an event in what is left of the batch. The fragments of a large event are joined.
func (s *Stream) scan() (found bool, err error) {
	for len(s.batch) > 0 {
		if err := s.read(); err != nil {
			return false, err
		}
		id, ok := s.raw.Lookup("_id").Document()
		if !ok {
			return false, errNoResumeToken
		}
		if s.split.next == 0 {
			s.odd = nil
		}
		if s.odd == nil {
			s.odd = s.sealed
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

// observeBatch moves the token on if the server has looked at its log and found nothing
// (specification: Change Streams, "Updating the Cached Resume Token"). While an event is not whole,
// a resume must begin before it.
func (s *Stream) observeBatch() {
	if len(s.batch) == 0 && s.postBatch != nil && s.split.next == 0 {
		s.token = bytes.Clone(s.postBatch)
	}
}

// aggregate opens the cursor of the stream, at first or to resume.
func (s *Stream) aggregate(ctx context.Context) error {
	pipeline := bson.RawValue{Type: bson.TypeArray, Value: s.pipeline()}
	op := s.op
	op.Command = &command.Aggregate{Collection: s.opts.Collection, Pipeline: pipeline, BatchSize: s.opts.BatchSize,
		Collation: s.opts.Collation, Comment: s.opts.Comment}
	op.Implicit = s.implicit // a stream that resumes goes on in its session
	op.NoMaxTime = op.Deadline.IsZero()
	res, err := s.exec.Run(ctx, &op)
	if err != nil {
		return err
	}
	if err := s.Open(ctx, s.registry, &op, res); err != nil {
		return err
	}
	s.opened = true
	s.observeBatch()
	return nil
}
