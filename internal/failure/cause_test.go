package failure

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"allium/mongoerr"
)

type departed struct{ who string }

func (d *departed) Error() string { return d.who + " went away" }

func TestCause(t *testing.T) {
	ada := &departed{"ada"}
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	late, cancel := context.WithDeadlineCause(t.Context(), time.Now().Add(-time.Second), ada)
	defer cancel()
	timeout := func() error {
		return &mongoerr.TimeoutError{Phase: mongoerr.PhaseRead, Source: mongoerr.SourceCancel, Wrapped: context.Canceled}
	}
	for name, tt := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"cancelled":             {ended(ada), timeout(), "read cancelled: context canceled; ada went away"},
		"deadline":              {late, &mongoerr.TimeoutError{Phase: mongoerr.PhaseRead, Wrapped: context.DeadlineExceeded}, "read timed out: context deadline exceeded; ada went away"},
		"no cause":              {ended(nil), timeout(), "read cancelled: context canceled"},
		"not ended":             {t.Context(), timeout(), "read cancelled: context canceled"},
		"no context":            {nil, timeout(), "read cancelled: context canceled"},
		"plain":                 {ended(ada), context.Canceled, "context canceled; ada went away"},
		"another error":         {ended(ada), errors.New("no"), "no"},
		"said already":          {ended(ada), Cause(ended(ada), timeout()), "read cancelled: context canceled; ada went away"},
		"the cause is its own":  {ended(context.DeadlineExceeded), timeout(), "read cancelled: context canceled; context deadline exceeded"},
		"the cause is a server": {ended(&mongoerr.ServerError{Code: 11000, Message: "E11000", Labels: mongoerr.Labels{"TransientTransactionError"}}), timeout(), "read cancelled: context canceled; DuplicateKey (11000): E11000"},
	} {
		err := Cause(tt.ctx, tt.err)
		if err.Error() != tt.want {
			t.Errorf("%s: %q, want %q", name, err, tt.want)
		}
		if wraps := errors.Is(err, ada); wraps != strings.Contains(tt.want, "ada") {
			t.Errorf("%s: errors.Is finds the cause: %v", name, wraps)
		}
		if d, ok := errors.AsType[*departed](err); ok != strings.Contains(tt.want, "ada") || ok && d != ada {
			t.Errorf("%s: errors.As finds %v", name, d)
		}
		if mongoerr.HasLabel(err, mongoerr.LabelTransientTransaction) || mongoerr.HasCode(err, 11000) || errors.As(err, new(*mongoerr.ServerError)) {
			t.Errorf("%s: what failed elsewhere counts for the operation", name)
		}
		if canceled := errors.Is(err, context.Canceled); canceled == strings.Contains(tt.want, "timed out") && name != "another error" {
			t.Errorf("%s: cancelled: %v", name, canceled)
		}
	}
	if Cause(ended(ada), nil) != nil {
		t.Error("no error becomes one")
	}
}
