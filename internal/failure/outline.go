package failure

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"allium/internal/errcode"
	"allium/mongoerr"
)

// Outline returns what kind of error err is, in a few words that can be shown to anybody who may
// look at the program: without the text of a server, which may quote values, without the name of a
// user, and without what a program's own code said while it authenticated. It is empty for nil.
func Outline(err error) string {
	if err == nil {
		return ""
	}
	// What an error wraps may say more than it is allowed to here, so that the most telling kind
	// comes first.
	if e, ok := errors.AsType[*mongoerr.AuthError](err); ok {
		return after("authentication failed", code(e.Wrapped))
	}
	if e, ok := errors.AsType[*mongoerr.TimeoutError](err); ok {
		if e.Canceled() {
			return "canceled: " + string(e.Phase)
		}
		return "timeout: " + string(e.Phase)
	}
	if e, ok := errors.AsType[*mongoerr.SelectionError](err); ok {
		return after("no suitable server", Outline(e.Wrapped))
	}
	if e, ok := errors.AsType[*mongoerr.PoolClearedError](err); ok {
		return after("pool cleared", Outline(e.Cause))
	}
	if s := code(err); s != "" {
		return s
	}
	if e, ok := errors.AsType[*mongoerr.ConnectionError](err); ok {
		if e.Op == "authenticate" {
			return "authenticate: failed"
		}
		return e.Op + ": " + network(e)
	}
	switch {
	case errors.Is(err, mongoerr.ErrClientClosed):
		return "client closed"
	}
	return "error"
}

func after(what, detail string) string {
	if detail == "" {
		return what
	}
	return what + ": " + detail
}

// code returns the code of a server's error, with its name.
func code(err error) string {
	var n int32
	if e, ok := errors.AsType[*mongoerr.ServerError](err); ok {
		n = e.Code
	} else if e, ok := errors.AsType[*mongoerr.WriteConcernError](err); ok {
		n = e.Code
	} else {
		return ""
	}
	if name := errcode.Name(n); name != "" {
		return fmt.Sprintf("%s (%d)", name, n)
	}
	return fmt.Sprintf("error %d of the server", n)
}

// network returns why a connection failed, as the system or package crypto/tls says it. A dialer of
// the program's own may say anything, of which only the kind is told.
func network(e *mongoerr.ConnectionError) string {
	if e.Timeout() {
		return "timeout"
	}
	if d, ok := errors.AsType[*net.DNSError](e.Wrapped); ok {
		return "look up " + d.Name + ": " + d.Err
	}
	if text := system(e.Wrapped); text != "" {
		return text
	}
	return "failed"
}

// system returns the text of an error of the system, or of a kind whose text is known to hold
// nothing but what the peer is.
func system(err error) string {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e.Error()
	}
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if e, ok := errors.AsType[tls.AlertError](err); ok {
		return e.Error()
	}
	if errors.As(err, new(tls.RecordHeaderError)) {
		return "the server does not speak TLS"
	}
	return ""
}
