package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	xocsp "golang.org/x/crypto/ocsp"

	"allium/internal/ocsp"
	"allium/internal/ocsptest"
	"allium/internal/uri"
	"allium/mongoerr"
)

// A context that ends while a responder is asked whether the server's certificate was revoked ends
// the connection there.
func TestContextEndsInRevocationCheck(t *testing.T) {
	a, err := ocsptest.New(false)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := a.Issue(false, "http://responder.invalid")
	if err != nil {
		t.Fatal(err)
	}
	addr := fakeServer(t, func(p *peer) {
		tls.Server(p.Conn, &tls.Config{Certificates: []tls.Certificate{cert}}).Handshake()
		io.Copy(io.Discard, p.Conn)
	})
	for name, dial := range map[string]func(ctx context.Context, addr string, cfg *Config) (*Conn, error){"for operations": Dial, "for a monitor": DialMonitor} {
		for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
			ctx, cancel := context.WithCancel(t.Context())
			if want == context.DeadlineExceeded {
				// Its end is that of a deadline, and comes when the responder is asked.
				ctx, cancel = deadlineOnDemand(ctx)
			}
			over := make(chan struct{})
			checker := &ocsp.Checker{Responders: true, Dial: func(context.Context, string, string) (net.Conn, error) {
				cancel()
				<-over
				return nil, net.ErrClosed
			}}
			c, err := dial(ctx, addr, &Config{TLS: FixedTLS(&tls.Config{RootCAs: a.Pool(), ServerName: "localhost"}), Revocation: checker})
			var e *mongoerr.TimeoutError
			if !errors.As(err, &e) || e.Phase != mongoerr.PhaseRevocation || !errors.Is(err, want) {
				t.Errorf("%s, %v: %v", name, want, err)
			}
			if err == nil {
				c.Close()
			}
			cancel()
			close(over)
			checker.Close()
		}
	}
}

// onDemand is a context whose deadline passes when it is told to.
type onDemand struct{ context.Context }

func (c onDemand) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

func deadlineOnDemand(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(ctx)
	return onDemand{inner}, cancel
}

// TestRevokedUnderOptions: a certificate whose stapled response says that it was revoked is refused
// under all options that do not switch the check off, also when the authority in tlsCAFile was
// replaced since the client was opened.
func TestRevokedUnderOptions(t *testing.T) {
	on := new(true)
	for name, tt := range map[string]struct {
		o        uri.TLSOptions
		accepted bool
	}{
		"none":                                 {},
		"tlsDisableOCSPEndpointCheck":          {o: uri.TLSOptions{DisableOCSPEndpointCheck: on}},
		"tlsAllowInvalidHostnames":             {o: uri.TLSOptions{AllowInvalidHostnames: on}},
		"both":                                 {o: uri.TLSOptions{AllowInvalidHostnames: on, DisableOCSPEndpointCheck: on}},
		"tlsDisableCertificateRevocationCheck": {uri.TLSOptions{DisableCertificateRevocationCheck: on}, true},
		"tlsAllowInvalidCertificates":          {uri.TLSOptions{AllowInvalidCertificates: on}, true},
		"tlsInsecure":                          {uri.TLSOptions{Insecure: on}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.o.CAFile = filepath.Join(t.TempDir(), "ca.pem")
			var secure *TLS
			var checker *ocsp.Checker
			for range 3 { // authorities, one after the other
				a, err := ocsptest.New(false)
				if err != nil {
					t.Fatal(err)
				}
				replace(t, tt.o.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Cert.Raw}))
				if secure == nil {
					if secure, err = NewTLS(&tt.o, nil); err != nil {
						t.Fatal(err)
					}
					if checker = NewRevocation(&tt.o, secure, nil); checker != nil {
						defer checker.Close()
					}
				}
				for _, status := range []int{xocsp.Good, xocsp.Revoked} {
					a.Set(func() { a.Status = status })
					cert, err := a.Issue(false)
					if err != nil {
						t.Fatal(err)
					}
					leaf, err := x509.ParseCertificate(cert.Certificate[0])
					if err != nil {
						t.Fatal(err)
					}
					if cert.OCSPStaple, err = a.Response(leaf.SerialNumber); err != nil {
						t.Fatal(err)
					}
					c, err := Dial(t.Context(), tlsServer(t, &tls.Config{Certificates: []tls.Certificate{cert}}),
						&Config{TLS: secure, Revocation: checker, ConnectTimeout: 10 * time.Second})
					if err == nil {
						c.Close()
					}
					if want := status == xocsp.Good || tt.accepted; (err == nil) != want || err != nil && !strings.Contains(err.Error(), "revoked") {
						t.Errorf("revoked: %v, the error is %v", status == xocsp.Revoked, err)
					}
				}
			}
		})
	}
}
