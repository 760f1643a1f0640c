package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

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
