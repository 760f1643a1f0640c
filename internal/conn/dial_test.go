package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/fakeserver"
	"allium/mongoerr"
)

func TestDialErrors(t *testing.T) {
	closing := fakeServer(t, func(p *peer) {})
	failing := fakeServer(t, func(p *peer) {
		id, _, _ := p.read()
		p.reply(id, document(func(dst []byte) []byte {
			dst = bson.AppendInt32(dst, "code", 91)
			return bson.AppendDouble(bson.AppendString(dst, "errmsg", "going down"), "ok", 0)
		}))
	})
	tests := []struct {
		name, addr string
		cfg        Config
		want       string
		overload   bool
	}{
		{"refused", fakeserver.Refuses, Config{}, "dial", true},
		{"unknown name", "host.invalid:27017", Config{Dialer: noSuchHost{}}, "dial", false},
		{"no such socket", "/nonexistent/mongodb.sock", Config{}, "dial", true},
		{"closing", closing, Config{}, "hello", true},
		{"error reply", failing, Config{}, "going down", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Dial(t.Context(), tt.addr, &tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.addr) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if got := mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded); got != tt.overload {
				t.Errorf("%v: overload label %v, want %v", err, got, tt.overload)
			}
		})
	}
}

type noSuchHost struct{}

func (noSuchHost) DialContext(_ context.Context, _, address string) (net.Conn, error) {
	return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
}

func TestUnixSocket(t *testing.T) {
	addr := serveOn(t, "unix", filepath.Join(t.TempDir(), "mongodb-27017.sock"), echo)
	c := dial(t, addr, &Config{})
	if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil {
		t.Fatal(err)
	}
	if c.Hello().Addr != addr {
		t.Errorf("address %q", c.Hello().Addr)
	}
}

// pipeDialer connects over net.Pipe.
type pipeDialer func(*peer)

func (d pipeDialer) DialContext(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		d(&peer{Conn: server})
	}()
	return client, nil
}

// A server that is silent while TLS begins holds up nobody for longer than connectTimeoutMS, be the
// connection for operations or a monitor's (specification: Server Monitoring, "connectTimeoutMS").
func TestSilenceBeforeTLSIsBounded(t *testing.T) {
	for name, dial := range map[string]func(ctx context.Context, addr string, cfg *Config) (*Conn, error){"for operations": Dial, "for a monitor": DialMonitor} {
		synctest.Test(t, func(t *testing.T) {
			silent := pipeDialer(func(p *peer) { io.Copy(io.Discard, p.Conn) })
			start := time.Now()
			c, err := dial(t.Context(), "a:27017", &Config{Dialer: silent, ConnectTimeout: 3 * time.Second, TLS: FixedTLS(&tls.Config{InsecureSkipVerify: true})})
			if err == nil {
				c.Close()
			}
			if took := time.Since(start); err == nil || took != 3*time.Second {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		})
	}
}

func TestUsersDialer(t *testing.T) {
	c := dial(t, "nowhere:27017", &Config{Dialer: pipeDialer(echo)})
	if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := c.RoundTrip(t.Context(), command("ping")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
