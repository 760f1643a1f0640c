package conn

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"allium/internal/mongoerr"
	"allium/internal/uri"
)

// socksServer is a SOCKS5 proxy (RFC 1928, RFC 1929) that leads every name to target. It wants user "u" with password "p"
// if auth is set, and refuses connections with code if that is not 0.
func socksServer(t *testing.T, target string, auth bool, code byte, names chan<- string) (host string, port int) {
	addr := fakeServer(t, func(p *peer) {
		read := func(n int) []byte {
			b := make([]byte, n)
			if _, err := io.ReadFull(p, b); err != nil {
				return make([]byte, n)
			}
			return b
		}
		methods := read(int(read(2)[1]))
		if auth {
			if !strings.Contains(string(methods), "\x02") {
				p.Write([]byte{5, 0xff})
				return
			}
			p.Write([]byte{5, 2})
			user := read(int(read(2)[1]))
			password := read(int(read(1)[0]))
			if string(user) != "u" || string(password) != "p" {
				p.Write([]byte{1, 1})
				return
			}
			p.Write([]byte{1, 0})
		} else {
			p.Write([]byte{5, 0})
		}
		if kind := read(4)[3]; kind != 3 {
			t.Errorf("address of type %d, want a name", kind)
		}
		name := read(int(read(1)[0]))
		read(2)
		names <- string(name)
		p.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0})
		if code != 0 {
			return
		}
		up, err := net.Dial("tcp", target)
		if err != nil {
			t.Error(err)
			return
		}
		var wg sync.WaitGroup
		wg.Go(func() { io.Copy(up, p.Conn); up.Close() })
		wg.Go(func() { io.Copy(p.Conn, up); p.Close() })
		wg.Wait()
	})
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return tcp.IP.String(), tcp.Port
}

func TestProxy(t *testing.T) {
	server := fakeServer(t, echo)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := l.Addr().(*net.TCPAddr).Port
	l.Close()
	tests := []struct {
		name       string
		auth       bool
		code       byte
		user, pass string
		port       int
		want       string // "" for success
	}{
		{"open", false, 0, "", "", 0, ""},
		{"password for nothing", false, 0, "u", "p", 0, ""},
		{"password", true, 0, "u", "p", 0, ""},
		{"wrong password", true, 0, "u", "wrong-password", 0, "SOCKS5 proxy"},
		{"no password", true, 0, "", "", 0, "SOCKS5 proxy"},
		{"refused", false, 5, "", "", 0, "connection refused"},
		{"not there", false, 0, "", "", unused, "connection refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			names := make(chan string, 1)
			host, port := socksServer(t, server, tt.auth, tt.code, names)
			if tt.port != 0 {
				port = tt.port
			}
			d, err := NewProxyDialer(&uri.Proxy{Host: host, Port: port, Username: tt.user, Password: uri.Secret(tt.pass)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Dial(t.Context(), "server.example:27017", &Config{Dialer: d})
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil {
					t.Error(err)
				}
				if name := <-names; name != "server.example" {
					t.Errorf("the proxy was asked for %q", name)
				}
				return
			}
			ce, ok := errors.AsType[*mongoerr.ConnectionError](err)
			if !ok || ce.Op != "dial" || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "wrong-password") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) {
				t.Errorf("%v: counts as overload", err)
			}
		})
	}
}
