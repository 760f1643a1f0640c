package failure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"allium/mongoerr"
)

// Each error is of the kinds that its phase and its cause make it, wrapped or not.
func TestKinds(t *testing.T) {
	for _, test := range []struct {
		name                            string
		err                             error
		time, connection, network, late bool
	}{
		{name: "nothing"},
		{name: "another error", err: errors.New("x")},
		{name: "broken", err: &mongoerr.ConnectionError{Wrapped: errors.New("reset")}, connection: true, network: true},
		{name: "socket timeout", err: &mongoerr.ConnectionError{Wrapped: os.ErrDeadlineExceeded}, connection: true, network: true, late: true},
		{name: "time is up in a read", err: &mongoerr.TimeoutError{Phase: mongoerr.PhaseRead, Wrapped: context.DeadlineExceeded}, time: true, network: true},
		{name: "time is up in a write", err: &mongoerr.TimeoutError{Phase: mongoerr.PhaseWrite, Wrapped: context.DeadlineExceeded}, time: true, network: true},
		{name: "time is up in the queue", err: &mongoerr.TimeoutError{Phase: mongoerr.PhaseCheckout, Wrapped: context.DeadlineExceeded}, time: true},
		{name: "time is up in a handshake", err: &mongoerr.TimeoutError{Phase: mongoerr.PhaseCheckout, Wrapped: &mongoerr.ConnectionError{Wrapped: errors.New("x")}}, time: true, connection: true, network: true},
		{name: "the server's error", err: &mongoerr.ServerError{Code: 50}},
		{name: "a cleared pool", err: &mongoerr.PoolClearedError{Cause: errors.New("x")}},
	} {
		for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err), errors.Join(errors.New("y"), test.err)} {
			if test.err == nil {
				err = nil
			}
			if got := OutOfTime(err); got != test.time {
				t.Errorf("%s: OutOfTime is %v", test.name, got)
			}
			if got := Connection(err); got != test.connection {
				t.Errorf("%s: Connection is %v", test.name, got)
			}
			if got := Network(err); got != test.network {
				t.Errorf("%s: Network is %v", test.name, got)
			}
			if got := SocketTimeout(err); got != test.late {
				t.Errorf("%s: SocketTimeout is %v", test.name, got)
			}
		}
	}
}

func TestApplied(t *testing.T) {
	concern, write, server := &mongoerr.WriteConcernError{Code: 64}, &mongoerr.WriteError{Code: 11000}, &mongoerr.ServerError{Code: 50}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{concern, true},
		{write, false},
		{server, false},
		{errors.New("x"), false},
		{errors.Join(errors.New("x"), concern), true},
		{errors.Join(concern, write), false},
		{errors.Join(server, concern), false},
		{&mongoerr.SelectionError{Wrapped: Others(concern)}, false},
	} {
		if got := Applied(test.err); got != test.want {
			t.Errorf("%v: %v", test.err, got)
		}
	}
}
