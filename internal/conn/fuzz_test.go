package conn

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"allium/internal/uri"
	"allium/internal/wire"
	"allium/mongoerr"
)

// tape is a connection that plays bytes in pieces of a given size, and forgets what is written.
type tape struct {
	data  []byte
	piece int
}

func (t *tape) Read(b []byte) (int, error) {
	if len(t.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), t.piece)], t.data)
	t.data = t.data[n:]
	return n, nil
}

func (*tape) Write(b []byte) (int, error)      { return len(b), nil }
func (*tape) Close() error                     { return nil }
func (*tape) LocalAddr() net.Addr              { return nil }
func (*tape) RemoteAddr() net.Addr             { return nil }
func (*tape) SetDeadline(time.Time) error      { return nil }
func (*tape) SetReadDeadline(time.Time) error  { return nil }
func (*tape) SetWriteDeadline(time.Time) error { return nil }

// Whatever a server sends, in whatever pieces: a round trip returns a reply, or a connection error
// on a closed connection.
func FuzzServer(f *testing.F) {
	const id = 7
	good := message(99, id, 0, helloReply())
	packed, _ := wire.AppendCompressed(nil, good, wire.Zstd, -1)
	stream := append(message(99, id, wire.MoreToCome, okReply()), message(100, 99, 0, okReply())...)
	for _, seed := range [][]byte{good, good[:20], packed, stream, {}, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")} {
		f.Add(seed, byte(255))
		f.Add(seed, byte(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, piece byte) {
		for _, handshake := range []bool{true, false} {
			c := newConn(&tape{data: data, piece: max(1, int(piece))}, "fuzz:27017", &Config{})
			var err error
			if handshake {
				_, err = c.Handshake(context.Background())
			} else {
				c.maxMessage = 1 << 20
				var r *Reply
				r, err = c.RoundTrip(context.Background(), message(id, 0, wire.ExhaustAllowed, okReply()))
				for err == nil {
					r.Release()
					if !c.Streaming() {
						break
					}
					r, err = c.Receive(context.Background())
				}
			}
			if err == nil {
				continue
			}
			_, isServer := errors.AsType[*mongoerr.ServerError](err)
			_, isConn := errors.AsType[*mongoerr.ConnectionError](err)
			if !isServer && !isConn || isConn && c.Alive() {
				t.Fatalf("error %T %v, alive %v", err, err, c.Alive())
			}
		}
	})
}

// FuzzSocks lets a SOCKS5 proxy answer with any bytes, in whatever pieces: there is a connection,
// or an error that names the proxy and shows no password. It never waits for ever, since the proxy
// closes the connection after what it has said.
func FuzzSocks(f *testing.F) {
	f.Add([]byte{5, 0, 5, 0, 0, 1, 127, 0, 0, 1, 0, 80}, byte(255))
	f.Add([]byte{5, 2, 1, 0, 5, 0, 0, 3, 3, 'a', '.', 'b', 0, 80}, byte(1))
	f.Add([]byte{5, 2, 1, 1}, byte(3))
	f.Add([]byte{5, 255}, byte(3))
	f.Add([]byte{5, 0, 5, 1, 0, 4}, byte(3))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), byte(7))
	f.Fuzz(func(t *testing.T, data []byte, piece byte) {
		for _, p := range []*uri.Proxy{{Host: "proxy.example"}, {Host: "proxy.example", Username: "user", Password: "planted-password"}} {
			forward := dialFunc(func(context.Context, string, string) (net.Conn, error) {
				return &tape{data: data, piece: max(1, int(piece))}, nil
			})
			d, err := NewProxyDialer(p, forward)
			if err != nil {
				t.Fatal(err)
			}
			nc, err := d.DialContext(t.Context(), "tcp", "db.example:27017")
			if (nc == nil) == (err == nil) {
				t.Fatalf("%v, %v", nc, err)
			}
			if err != nil && (!strings.Contains(err.Error(), "proxy.example:1080") || strings.Contains(err.Error(), "planted-password")) {
				t.Errorf("the error is %q", err)
			}
		}
	})
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func (f dialFunc) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return f(ctx, network, address)
}

// FuzzKeyFile reads any bytes as a file with a certificate and its key: there is a pair that fits
// together, or an error that does not show the password.
func FuzzKeyFile(f *testing.F) {
	cert, err := os.ReadFile("testdata/keys/cert.pem")
	if err != nil {
		f.Fatal(err)
	}
	files, err := filepath.Glob("testdata/keys/*.pem")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		key, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(key, true)
		f.Add(append(key, cert...), false)
	}
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, withCert bool) {
		if len(data) > 10_000 || bytes.Contains(data, []byte("ENCRYPTED PRIVATE")) {
			return // what derives a key takes long: FuzzDecryptPKCS8 is about that
		}
		if withCert {
			data = append(data, cert...)
		}
		pair, err := parseCertificateKey(data, "planted-password")
		if err == nil && (len(pair.Certificate) == 0 || pair.PrivateKey == nil) {
			t.Error("no certificate, no key and no error")
		}
		if err != nil && strings.Contains(err.Error(), "planted-password") {
			t.Errorf("the error shows the password: %v", err)
		}
		if pool, err := parseAuthorities(data); pool == nil && err == nil {
			t.Errorf("authorities %v, %v", pool, err)
		}
	})
}
