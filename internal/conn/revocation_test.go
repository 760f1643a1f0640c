package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"allium/internal/ocsp"
	"allium/internal/ocsptest"
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
