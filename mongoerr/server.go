package mongoerr

import (
	"fmt"
	"strings"

	"allium/bson"
	"allium/internal/errcode"
)

// A ServerError is a server's reply to a command that failed: its ok field is not 1.
type ServerError struct {
	Code    int32    // the server's error code, 0 if it sent none
	Name    string   // its codeName, for example "NotWritablePrimary"
	Message string   // its errmsg
	Labels           // its errorLabels, and those that the specifications make the driver add
	Command string   // the name of the command that failed
	Addr    string   // the server that answered
	Raw     bson.Raw // the whole reply
	// Wrapped is a further cause, if the driver knows one, for example the errors of earlier
	// attempts.
	Wrapped error
}

// Error returns the command, the server and the error on one line, for example
//
//	find on localhost:27017: NotWritablePrimary (10107): not primary
//
// Line breaks and control characters that the server sent are escaped; the fields hold them as they
// came.
func (e *ServerError) Error() string {
	var b strings.Builder
	if e.Command != "" {
		b.WriteString(e.Command)
		if e.Addr != "" {
			b.WriteString(" on ")
			b.WriteString(e.Addr)
		}
		b.WriteString(": ")
	}
	switch {
	case e.Name != "" && e.Code != 0:
		fmt.Fprintf(&b, "%s (%d): ", e.Name, e.Code)
	case e.Name != "":
		b.WriteString(e.Name + ": ")
	case e.Code != 0:
		fmt.Fprintf(&b, "error %d: ", e.Code)
	}
	if e.Message == "" {
		b.WriteString("server sent no message")
	} else {
		b.WriteString(e.Message)
	}
	return oneLine(b.String())
}

// Unwrap returns e.Wrapped.
func (e *ServerError) Unwrap() error { return e.Wrapped }

// Is makes errors.Is(err, ErrDuplicateKey) true for the codes of a duplicate key.
func (e *ServerError) Is(target error) bool {
	return target == ErrDuplicateKey && isDuplicateKey(e.Code)
}

// isDuplicateKey reports whether a server uses this code for a duplicate key.
func isDuplicateKey(code int32) bool { return errcode.Is(code, errcode.Duplicate) }
