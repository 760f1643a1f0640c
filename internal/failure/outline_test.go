package failure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"allium/mongoerr"
)

func TestOutline(t *testing.T) {
	const planted = "planted"
	server := &mongoerr.ServerError{Code: 11000, Name: planted, Message: "E11000 dup key: { _id: \"" + planted + "\" }", Command: "insert"}
	refused := &mongoerr.ConnectionError{Addr: "a:1", Op: "dial", Wrapped: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	for want, err := range map[string]error{
		"":                          nil,
		"DuplicateKey (11000)":      fmt.Errorf("%s: %w", planted, server),
		"error 12345 of the server": &mongoerr.ServerError{Code: 12345, Name: planted},
		"authentication failed: AuthenticationFailed (18)": &mongoerr.ConnectionError{Op: "authenticate", Wrapped: &mongoerr.AuthError{Username: planted, Source: planted,
			Wrapped: &mongoerr.ServerError{Code: 18, Message: planted}}},
		"authentication failed":                 &mongoerr.AuthError{Username: planted, Wrapped: errors.New(planted)},
		"authenticate: failed":                  &mongoerr.ConnectionError{Op: "authenticate", Wrapped: errors.New("token " + planted)},
		"dial: " + syscall.ECONNREFUSED.Error(): refused,
		"dial: failed":                          &mongoerr.ConnectionError{Op: "dial", Wrapped: errors.New("proxy with password " + planted)},
		"dial: look up a: no such host":         &mongoerr.ConnectionError{Op: "dial", Wrapped: &net.DNSError{Name: "a", Err: "no such host"}},
		"read: timeout":                         &mongoerr.ConnectionError{Op: "read", Wrapped: context.DeadlineExceeded},
		"read: EOF":                             &mongoerr.ConnectionError{Op: "read", Wrapped: io.EOF},
		"timeout: connection checkout":          &mongoerr.TimeoutError{Phase: "connection checkout", Wrapped: errors.Join(context.DeadlineExceeded, server)},
		"canceled: command":                     &mongoerr.TimeoutError{Phase: "command", Wrapped: context.Canceled},
		"pool cleared: dial: " + syscall.ECONNREFUSED.Error():       &mongoerr.PoolClearedError{Cause: refused},
		"no suitable server: dial: " + syscall.ECONNREFUSED.Error(): &mongoerr.SelectionError{Criteria: planted, Wrapped: refused},
		"client closed": mongoerr.ErrClientClosed,
		"error":         errors.New(planted),
	} {
		if got := Outline(err); got != want || strings.Contains(got, planted) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
