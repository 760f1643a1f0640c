package failure

import (
	"errors"
	"testing"

	"allium/mongoerr"
)

func TestName(t *testing.T) {
	inner := &mongoerr.ServerError{Command: "saslStart", Addr: "a:1", Code: 18}
	for want, err := range map[string]error{
		"find d.c on a:1: BadValue (2): x":     &mongoerr.ServerError{Addr: "a:1", Code: 2, Message: "x"},
		"getMore d.c on a:1: BadValue (2): x":  &mongoerr.ServerError{Command: "getMore", Namespace: "d.c", Addr: "a:1", Code: 2, Message: "x"},
		"find d.c: connection to a:1: read: x": &mongoerr.ConnectionError{Addr: "a:1", Op: "read", Wrapped: errors.New("x")},
		"find d.c: authentication: saslStart on a:1: AuthenticationFailed (18): server sent no message": &mongoerr.AuthError{Addr: "a:1", Wrapped: inner},
		"x": errors.New("x"),
	} {
		Name(err, "find", "d.c")
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if inner.Namespace != "" {
		t.Error("an error that is wrapped was named")
	}
}
