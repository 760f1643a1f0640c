package conn

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// TestAheadHungUp: a connection that the server has closed before anybody took it is dialed again.
func TestAheadHungUp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it cannot be told there")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, gone := range []bool{false, true} {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		peer, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		c := newConn(nc, "server:1", &Config{})
		if gone {
			peer.Close()
			for end := time.Now().Add(10 * time.Second); !c.HungUp() && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		}
		a := &Ahead{end: func() {}, made: make(chan *Conn, 1)}
		a.made <- c
		own := &Config{ConnectTimeout: time.Second}
		got, err := a.take(t.Context(), "server:1", own)
		if err != nil || (got == nil) != gone || c.Alive() == gone {
			t.Errorf("gone: %v; %v, %v", gone, got, err)
		}
		if got != nil && got.cfg != own {
			t.Error("the connection has the configuration of whoever dialed it")
		}
	}
}
