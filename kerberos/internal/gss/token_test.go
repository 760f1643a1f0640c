package gss

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/types"
)

func sides() (client, server *Side) {
	key := types.EncryptionKey{KeyType: 18, KeyValue: bytes.Repeat([]byte{7}, 32)}
	return &Side{Key: key, AcceptorSubkey: true, Send: 5, Receive: 9}, &Side{Acceptor: true, Key: key, AcceptorSubkey: true, Send: 9, Receive: 5}
}

func TestWrap(t *testing.T) {
	client, server := sides()
	for _, text := range []string{"one", "", "three"} {
		token, err := client.Wrap([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := server.Unwrap(token); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	token, err := server.Wrap([]byte("answer"))
	if err != nil {
		t.Fatal(err)
	}
	// Windows rotates its messages.
	body, n := token[gssapi.HdrLen:], 12
	rotated := append(append(bytes.Clone(token[:gssapi.HdrLen]), body[len(body)-n:]...), body[:len(body)-n]...)
	binary.BigEndian.PutUint16(rotated[6:], uint16(n))
	if got, err := client.Unwrap(rotated); err != nil || string(got) != "answer" {
		t.Errorf("rotated: %q, %v", got, err)
	}
}

func TestUnwrapRefuses(t *testing.T) {
	message := func(change func(s *Side, token []byte)) []byte {
		_, server := sides()
		token, err := server.Wrap([]byte("answer"))
		if err != nil {
			t.Fatal(err)
		}
		change(server, token)
		return token
	}
	for _, tt := range []struct {
		name, want string
		token      []byte
	}{
		{"changed text", "checksum is wrong", message(func(_ *Side, b []byte) { b[gssapi.HdrLen]++ })},
		{"changed checksum", "checksum is wrong", message(func(_ *Side, b []byte) { b[len(b)-1]++ })},
		{"another number", "out of order", message(func(_ *Side, b []byte) { b[15]++ })},
		{"encrypted", "is encrypted", message(func(_ *Side, b []byte) { b[2] |= flagSealed })},
		{"another key", "flags", message(func(_ *Side, b []byte) { b[2] &^= flagAcceptorSubkey })},
		{"its own message", "acceptor flag", message(func(_ *Side, b []byte) { b[2] &^= flagAcceptor })},
		{"nothing", "shorter than header", nil},
		{"a header", "inconsistent checksum", message(func(*Side, []byte) {})[:gssapi.HdrLen]},
	} {
		client, _ := sides()
		if got, err := client.Unwrap(tt.token); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestFrame(t *testing.T) {
	for _, n := range []int{0, 1, 200, 70_000} {
		m := bytes.Repeat([]byte{1}, n)
		id, got, err := Unframe(Frame(APReq, m))
		if id != APReq || !bytes.Equal(got, m) || err != nil {
			t.Errorf("%d bytes: %#x, %d bytes, %v", n, id, len(got), err)
		}
	}
	for _, bad := range []string{"", "\x60", "\x60\x03\x06\x01\x2a", "\x30\x0d" + string(Frame(APReq, nil)[2:]), string(Frame(APReq, nil)) + "x"} {
		if _, _, err := Unframe([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestSupportedKey(t *testing.T) {
	for kind, ok := range map[int32]bool{17: true, 18: true, 19: true, 20: true, 16: false, 23: false} {
		if err := SupportedKey(types.EncryptionKey{KeyType: kind}); (err == nil) != ok {
			t.Errorf("type %d: %v", kind, err)
		}
	}
}

// FuzzTokens: nothing that a server sends makes the client panic, and no message is taken that was
// not made with the key.
func FuzzTokens(f *testing.F) {
	client, server := sides()
	token, err := server.Wrap([]byte("answer"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add(Frame(APRep, []byte("x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		Unframe(b)
		client, _ = sides()
		if got, err := client.Unwrap(b); err == nil && string(got) != "answer" {
			t.Errorf("took %q", b)
		}
	})
}
