package mongoerr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"

	"allium/event"
)

func TestClasses(t *testing.T) {
	selection := &SelectionError{Criteria: "writing", Wrapped: &ConnectionError{Op: "dial", Wrapped: errors.New("refused")}}
	for _, test := range []struct {
		name    string
		err     error
		timeout bool
		code    int32 // that HasCode finds, besides no other of those here; 0: none
	}{
		{"nil", nil, false, 0},
		{"something else", errors.New("x"), false, 0},
		{"a deadline", &TimeoutError{Wrapped: context.DeadlineExceeded}, true, 0},
		{"time on the server", &TimeoutError{Wrapped: &ServerError{Code: 50}}, true, 50},
		{"cancelled", &TimeoutError{Wrapped: context.Canceled}, false, 0},
		{"cancelled while a server was looked for", &TimeoutError{Wrapped: errors.Join(context.Canceled, selection)}, false, 0},
		{"selection", selection, true, 0},
		{"versions with nothing in common", &SelectionError{Topology: &event.TopologyDescription{CompatibilityErr: errors.New("too old")}}, false, 0},
		{"a connection that broke", &ConnectionError{Wrapped: net.ErrClosed}, false, 0},
		{"a socket", &ConnectionError{Wrapped: os.ErrDeadlineExceeded}, true, 0},
		{"maxTimeMS", &ServerError{Code: 50}, true, 50},
		{"exceeded time limit", &ServerError{Code: 262}, true, 262},
		{"another error of the server's", &ServerError{Code: 26}, false, 26},
		{"an earlier attempt timed out", &ServerError{Code: 26, Wrapped: &ServerError{Code: 50}}, false, 26},
		{"a statement", &WriteError{Code: 11000}, false, 11000},
		{"a statement that timed out", &WriteError{Code: 50}, true, 50},
		{"wtimeout", &WriteConcernError{Code: 64}, true, 64},
		{"an unknown write concern", &WriteConcernError{Code: 79}, false, 79},
		{"one of many", &BulkWriteError{WriteErrors: []*WriteError{{Code: 26}}, WriteConcernErrors: []*WriteConcernError{{Code: 64}}}, true, 0},
		{"the net package's", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, true, 0},
		{"the context's own", context.DeadlineExceeded, true, 0},
	} {
		for _, err := range []error{test.err, wrap(test.err), join(test.err)} {
			if got := IsTimeout(err); got != test.timeout {
				t.Errorf("%s: IsTimeout(%v) is %v", test.name, err, got)
			}
			if test.name == "one of many" {
				if !HasCode(err, 26) || !HasCode(err, 64) || HasCode(err, 50) {
					t.Errorf("%s: the codes are not found", test.name)
				}
				continue
			}
			for _, code := range []int32{26, 50, 64, 79, 262, 11000} {
				if got := HasCode(err, code); got != (code == test.code) {
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
	err := wrap(join(&TimeoutError{Labels: Labels{"a"}, Wrapped: &BulkWriteError{Err: &ServerError{Labels: Labels{"b"}}}}))
	for label, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if got := HasLabel(err, label); got != want {
			t.Errorf("label %s: %v", label, got)
		}
		if got := HasLabel(wrap(join(foreign{"a", "b"})), label); got != want {
			t.Errorf("label %s of another package's error: %v", label, got)
		}
	}
}

// foreign is an error with labels as the official driver has them.
type foreign []string

func (f foreign) Error() string                   { return "foreign" }
func (f foreign) HasErrorLabel(label string) bool { return slices.Contains(f, label) }
