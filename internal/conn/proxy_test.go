package conn

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/auth"
	"allium/internal/fakeserver"
	"allium/internal/uri"
	"allium/mongoerr"
)

func startProxy(t *testing.T, s *fakeserver.SOCKS5) *fakeserver.SOCKS5 {
	t.Helper()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func throughProxy(t *testing.T, p *uri.Proxy, forward Dialer) Dialer {
	t.Helper()
	d, err := NewProxyDialer(p, forward)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// checkProxyError checks that err is one of the network, names the proxy, and is no sign of
// overload.
func checkProxyError(t *testing.T, err error, want string) {
	t.Helper()
	ce, ok := errors.AsType[*mongoerr.ConnectionError](err)
	if !ok || ce.Op != "dial" || !strings.Contains(err.Error(), "SOCKS5 proxy") || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) {
		t.Errorf("%v: counts as overload", err)
	}
}

func TestProxy(t *testing.T) {
	server := fakeServer(t, echo)
	_, refuses, _ := net.SplitHostPort(fakeserver.Refuses)
	unused, _ := strconv.Atoi(refuses)
	long := strings.Repeat("x", 256)
	tests := []struct {
		name       string
		needs      string // user name and password
		refuse     byte
		user, pass string
		port       int
		want       string // "" for success
	}{
		{"open", "", 0, "", "", 0, ""},
		{"password for nothing", "", 0, "u", "p", 0, ""},
		{"password", "up", 0, "up", "up", 0, ""},
		{"wrong password", "up", 0, "up", "wrong-password", 0, "authentication failed"},
		{"no password", "up", 0, "", "", 0, "no acceptable authentication methods"},
		{"password of 256 bytes", "up", 0, "up", long, 0, "invalid username/password"},
		{"refused", "", 5, "", "", 0, "connection refused"},
		{"not there", "", 0, "", "", unused, "connection refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := startProxy(t, &fakeserver.SOCKS5{
				Username: tt.needs, Password: tt.needs, Refuse: tt.refuse, Targets: map[string]string{"server.example:27017": server},
			})
			port := p.Port()
			if tt.port != 0 {
				port = tt.port
			}
			d := throughProxy(t, &uri.Proxy{Host: "127.0.0.1", Port: port, Username: tt.user, Password: auth.Secret(tt.pass)}, nil)
			c, err := Dial(t.Context(), "server.example:27017", &Config{Dialer: d})
			if tt.want != "" {
				checkProxyError(t, err, tt.want)
				if strings.Contains(err.Error(), "wrong-password") || strings.Contains(err.Error(), long) {
					t.Errorf("%v: contains the password", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil {
				t.Error(err)
			}
			if c.Addr() != "server.example:27017" {
				t.Errorf("address %q", c.Addr())
			}
			got := p.Requests()
			want := []byte{0}
			if tt.user != "" {
				want = []byte{0, 2}
			}
			if len(got) != 1 || !bytes.Equal(got[0].Methods, want) {
				t.Errorf("the proxy was offered %+v, want %v", got, want)
			}
		})
	}
}

// The proxy gets the address as it is: names are not resolved.
func TestProxyResolves(t *testing.T) {
	server := fakeServer(t, echo)
	for _, tt := range []struct {
		addr string
		name bool
	}{
		{"no-such-host.invalid:1", true}, {"localhost:27017", true}, {"192.0.2.1:65535", false}, {"[2001:db8::1]:27017", false},
	} {
		p := startProxy(t, &fakeserver.SOCKS5{Targets: map[string]string{tt.addr: server}})
		dial(t, tt.addr, &Config{Dialer: throughProxy(t, &uri.Proxy{Host: "localhost", Port: p.Port()}, nil)})
		got := p.Requests()
		if len(got) != 1 || got[0].Address != tt.addr || got[0].Name != tt.name {
			t.Errorf("%s: the proxy was asked for %+v", tt.addr, got)
		}
	}
}

// TLS is with the server: its certificate must have the server's name, not the proxy's.
func TestProxyTLS(t *testing.T) {
	ca := newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	cert, _ := ca.issue("server.example")
	names := make(chan string, 2)
	server := tlsServer(t, &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		names <- h.ServerName
		return &cert, nil
	}})
	p := startProxy(t, &fakeserver.SOCKS5{Targets: map[string]string{"server.example:1": server, "other.example:1": server}})
	cfg := &Config{
		Dialer: throughProxy(t, &uri.Proxy{Host: "127.0.0.1", Port: p.Port()}, nil),
		TLS:    FixedTLS(&tls.Config{RootCAs: pool}),
	}
	dial(t, "server.example:1", cfg)
	if _, err := Dial(t.Context(), "other.example:1", cfg); err == nil || !strings.Contains(err.Error(), "other.example") {
		t.Errorf("other name: %v", err)
	}
	for _, want := range []string{"server.example", "other.example"} {
		if got := <-names; got != want {
			t.Errorf("the server was asked for %q, want %q", got, want)
		}
	}
}

// What is said to a proxy is bounded by connectTimeoutMS and by the context.
func TestProxyTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := &Config{Dialer: throughProxy(t, &uri.Proxy{Host: "proxy"}, pipeDialer(func(p *peer) { io.Copy(io.Discard, p) })), ConnectTimeout: time.Second}
		start := time.Now()
		_, err := Dial(t.Context(), "server:1", cfg)
		checkProxyError(t, err, "proxy:1080")
		if d := time.Since(start); d != time.Second {
			t.Errorf("gave up after %v", d)
		}
		if _, err = Dial(shortContext(t), "server:1", cfg); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deadline: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		_, err = Dial(ctx, "server:1", cfg)
		if te, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || te.Phase != "connect (dial)" || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// Whatever a proxy answers, there is an error and the connection is closed.
func TestProxyAnswersNonsense(t *testing.T) {
	for _, answer := range []string{
		"", "\x05", "\x04\x00", "\x05\x01", "\x05\x00", "\x05\x00\x05", "\x05\x00\x04\x00\x00\x01", "\x05\x00\x05\x00\x00\x09",
		"\x05\x00\x05\x00\x00\x03\xffshort", "\x05\x00\x05\x09\x00\x01\x00\x00\x00\x00\x00\x00", "HTTP/1.1 400 Bad Request\r\n\r\n",
	} {
		addr := fakeServer(t, func(p *peer) {
			io.WriteString(p, answer)
			p.Conn.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, p) // until the client closes
		})
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		number, err := net.LookupPort("tcp", port)
		if err != nil {
			t.Fatal(err)
		}
		for _, user := range []string{"", "u"} {
			_, err := Dial(t.Context(), "server.example:1", &Config{
				Dialer: throughProxy(t, &uri.Proxy{Host: host, Port: number, Username: user, Password: auth.Secret(user)}, nil),
			})
			checkProxyError(t, err, "")
		}
	}
}

func TestUnixSocketsNeedNoProxy(t *testing.T) {
	p := startProxy(t, &fakeserver.SOCKS5{Refuse: 1})
	path := t.TempDir() + "/mongo.sock"
	serveOn(t, "unix", path, echo)
	dial(t, path, &Config{Dialer: throughProxy(t, &uri.Proxy{Host: "127.0.0.1", Port: p.Port()}, nil)})
	if got := p.Requests(); len(got) != 0 {
		t.Errorf("the proxy was asked: %+v", got)
	}
}

// asked notes what is dialled.
type asked struct{ addr string }

func (a *asked) DialContext(_ context.Context, _, addr string) (net.Conn, error) {
	a.addr = addr
	return nil, errors.New("no")
}

// A proxy listens on port 1080 unless another one is said.
func TestProxyPort(t *testing.T) {
	for port, want := range map[int]string{0: "p.example:1080", 9: "p.example:9"} {
		forward := new(asked)
		d, err := NewProxyDialer(&uri.Proxy{Host: "p.example", Port: port}, forward)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.DialContext(t.Context(), "tcp", "server.example:27017"); err == nil || forward.addr != want {
			t.Errorf("port %d: dialled %q, want %q; %v", port, forward.addr, want, err)
		}
	}
}
