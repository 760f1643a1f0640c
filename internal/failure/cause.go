package failure

import (
	"context"
	"errors"
	"reflect"
	"time"

	"allium/mongoerr"
)

// Cause adds to the error of an operation why its context ended, if who ended it said so
// (context.WithCancelCause and its like). It is for errors that go to the program: the driver's own
// decisions must not depend on what happened elsewhere.
func Cause(ctx context.Context, err error) error {
	if err == nil || ctx == nil || !ended(ctx, err) {
		return err
	}
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(ctx.Err(), cause) || errors.Is(err, cause) {
		return err
	}
	if t, ok := errors.AsType[*mongoerr.TimeoutError](err); ok {
		t.Wrapped = Join(t.Wrapped, reason{cause})
		return err
	}
	if errors.Is(err, ctx.Err()) {
		return Join(err, reason{cause})
	}
	return err
}

// SourceOf returns whose limit the end of ctx is, for the TimeoutError of who waited.
func SourceOf(ctx context.Context) mongoerr.Source {
	if errors.Is(ctx.Err(), context.Canceled) {
		return mongoerr.SourceCancel
	}
	return mongoerr.SourceContext
}

// ended reports whether ctx has ended. Its timer may be a moment behind that of the socket, which
// ended the operation by the same deadline.
func ended(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	if d, ok := ctx.Deadline(); !ok || time.Now().Before(d) || !errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	moment := time.NewTimer(10 * time.Millisecond) // some contexts have a deadline and never end
	defer moment.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-moment.C:
		return false
	}
}

// reason is why a context ended. It is found by errors.Is and errors.As, but says nothing about the
// operation: its labels and codes, and those kinds of errors that the driver returns, are of
// whatever it is that failed elsewhere.
type reason struct{ cause error }

func (r reason) Error() string { return r.cause.Error() }

// Is leaves it to the context's own error whether it was cancelled or timed out.
func (r reason) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(r.cause, target)
}

var ours = reflect.TypeFor[mongoerr.TimeoutError]().PkgPath()

func (r reason) As(target any) bool {
	t := reflect.TypeOf(target).Elem()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() != ours && errors.As(r.cause, target)
}

// Encoding is the error of an encoder of the program's that ran apart from an operation's own. That
// of one which gave up because ctx had ended is a TimeoutError, as it is within an operation.
func Encoding(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended == nil || !errors.Is(err, ended) {
		return err
	}
	e := &mongoerr.TimeoutError{Phase: mongoerr.PhaseEncoding, Wrapped: err}
	if !e.Canceled() {
		e.Source = mongoerr.SourceContext
	}
	return Cause(ctx, e)
}
