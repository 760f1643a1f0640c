package conn

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// TestHungUp closes a connection at the other end, with and without data that nobody has read.
func TestHungUp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it cannot be told there")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, unread := range []string{"", "data that nobody has read"} {
		if unread != "" && runtime.GOOS != "linux" {
			continue // it cannot be told there
		}
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		peer, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(nc, "server:1", &Config{})
		nc.SetDeadline(time.Unix(1, 0)) // as an operation that was interrupted leaves it
		if _, err := peer.Write([]byte(unread)); err != nil {
			t.Fatal(err)
		}
		if c.HungUp() {
			t.Errorf("%q: the connection is there", unread)
		}
		peer.Close()
		for end := time.Now().Add(10 * time.Second); !c.HungUp(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q: the connection is gone", unread)
			}
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	b.Close()
	if newConn(a, "server:1", &Config{}).HungUp() {
		t.Error("what is no socket cannot be looked at")
	}
}
