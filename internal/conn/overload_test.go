package conn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"allium/mongoerr"
)

// Which errors of making a connection may come of overload, and have labels that say so
// (specification: Connection Monitoring and Pooling, "Backpressure-enabled").
func TestMayBeOverload(t *testing.T) {
	for _, tc := range []struct {
		op   string
		err  error
		want bool
	}{
		{stepDial, syscall.ECONNREFUSED, true},
		{stepDial, os.ErrDeadlineExceeded, true},
		{stepDial, fmt.Errorf("dial: %w", &net.DNSError{Err: "no such host"}), false},
		{stepDial, &proxyError{addr: "p:1", err: io.EOF}, false},
		{stepTLS, io.EOF, true},
		{stepTLS, syscall.ECONNRESET, true},
		{stepTLS, os.ErrDeadlineExceeded, true},
		{stepTLS, x509.UnknownAuthorityError{}, false},
		{stepTLS, &tls.CertificateVerificationError{Err: x509.HostnameError{}}, false},
		{stepTLS, tls.RecordHeaderError{Msg: "no TLS"}, false},
		{stepTLS, &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, false},
		{stepAuth, io.EOF, false},
		{stepAuth, syscall.ECONNRESET, false},
		{stepHello, io.EOF, true},
		{stepHello, io.ErrUnexpectedEOF, true},
		{stepHello, syscall.ECONNRESET, true},
		{stepHello, &protocolError{io.EOF}, false},
		{stepHello, &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, false},
	} {
		err := label(&mongoerr.ConnectionError{Addr: "a:1", Op: tc.op, Wrapped: tc.err})
		for _, l := range []string{mongoerr.LabelSystemOverloaded, mongoerr.LabelRetryable} {
			if mongoerr.HasLabel(err, l) != tc.want {
				t.Errorf("%s: %T %[2]v: label %s: %v", tc.op, tc.err, l, !tc.want)
			}
		}
	}
	for _, err := range []error{&mongoerr.AuthError{Addr: "a:1", Wrapped: errors.New("refused")}, &mongoerr.ServerError{Code: 91}, &mongoerr.TimeoutError{Phase: mongoerr.PhaseConnect}} {
		if got := label(err); mongoerr.HasLabel(got, mongoerr.LabelSystemOverloaded) {
			t.Errorf("%T has the label", err)
		}
	}
}
