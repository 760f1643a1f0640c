package mongoerr_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"

	"allium/event"
	"allium/mongoerr"
)

func TestClasses(t *testing.T) {
	selection := &mongoerr.SelectionError{Criteria: "writing", Wrapped: &mongoerr.ConnectionError{Op: "dial", Wrapped: errors.New("refused")}}
	for _, test := range []struct {
		name    string
		err     error
		timeout bool
		code    int32 // that HasCode finds, besides no other of those here; 0: none
	}{
		{"nil", nil, false, 0},
		{"something else", errors.New("x"), false, 0},
		{"a deadline", &mongoerr.TimeoutError{Wrapped: context.DeadlineExceeded}, true, 0},
		{"time on the server", &mongoerr.TimeoutError{Wrapped: &mongoerr.ServerError{Code: 50}}, true, 50},
		{"cancelled", &mongoerr.TimeoutError{Wrapped: context.Canceled}, false, 0},
		{"cancelled while a server was looked for", &mongoerr.TimeoutError{Wrapped: errors.Join(context.Canceled, selection)}, false, 0},
		{"selection", selection, true, 0},
		{"versions with nothing in common", &mongoerr.SelectionError{Topology: &event.TopologyDescription{CompatibilityErr: errors.New("too old")}}, false, 0},
		{"a connection that broke", &mongoerr.ConnectionError{Wrapped: net.ErrClosed}, false, 0},
		{"a socket", &mongoerr.ConnectionError{Wrapped: os.ErrDeadlineExceeded}, true, 0},
		{"maxTimeMS", &mongoerr.ServerError{Code: 50}, true, 50},
		{"exceeded time limit", &mongoerr.ServerError{Code: 262}, true, 262},
		{"another error of the server's", &mongoerr.ServerError{Code: 26}, false, 26},
		{"an earlier attempt timed out", &mongoerr.ServerError{Code: 26, Wrapped: &mongoerr.ServerError{Code: 50}}, false, 26},
		{"a statement", &mongoerr.WriteError{Code: 11000}, false, 11000},
		{"a statement that timed out", &mongoerr.WriteError{Code: 50}, true, 50},
		{"wtimeout", &mongoerr.WriteConcernError{Code: 64}, true, 64},
		{"an unknown write concern", &mongoerr.WriteConcernError{Code: 79}, false, 79},
		{"one of many", &mongoerr.BulkWriteError{WriteErrors: []*mongoerr.WriteError{{Code: 26}}, WriteConcernErrors: []*mongoerr.WriteConcernError{{Code: 64}}}, true, 0},
		{"the net package's", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, true, 0},
		{"the context's own", context.DeadlineExceeded, true, 0},
	} {
		for _, err := range []error{test.err, wrap(test.err), join(test.err)} {
			if got := mongoerr.IsTimeout(err); got != test.timeout {
				t.Errorf("%s: IsTimeout(%v) is %v", test.name, err, got)
			}
			if test.name == "one of many" {
				if !mongoerr.HasCode(err, 26) || !mongoerr.HasCode(err, 64) || mongoerr.HasCode(err, 50) {
					t.Errorf("%s: the codes are not found", test.name)
				}
				continue
			}
			for _, code := range []int32{26, 50, 64, 79, 262, 11000} {
				if got := mongoerr.HasCode(err, code); got != (code == test.code) {
					t.Errorf("%s: HasCode(%v, %d) is %v", test.name, err, code, got)
				}
			}
		}
	}
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("wrapped: %w", err)
}

func join(err error) error { return errors.Join(errors.New("first"), err) }

func TestHasLabel(t *testing.T) {
	err := wrap(join(&mongoerr.TimeoutError{Labels: mongoerr.Labels{"a"}, Wrapped: &mongoerr.BulkWriteError{Err: &mongoerr.ServerError{Labels: mongoerr.Labels{"b"}}}}))
	for label, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if got := mongoerr.HasLabel(err, label); got != want {
			t.Errorf("label %s: %v", label, got)
		}
		if got := mongoerr.HasLabel(wrap(join(foreign{"a", "b"})), label); got != want {
			t.Errorf("label %s of another package's error: %v", label, got)
		}
	}
}

// foreign is an error with labels as the official driver has them.
type foreign []string

func (f foreign) Error() string                   { return "foreign" }
func (f foreign) HasErrorLabel(label string) bool { return slices.Contains(f, label) }
