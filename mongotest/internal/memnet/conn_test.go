package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe("a", "b")
		big := bytes.Repeat([]byte("x"), 3*window)
		go func() {
			a.Write(big)
			a.Close()
		}()
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, big) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		if _, err := b.Write([]byte("y")); err == nil {
			t.Error("write to a closed connection succeeds")
		}
		b.Close()
	})
}

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe("a", "b")
		defer a.Close()
		defer b.Close()
		start := time.Now()
		a.SetReadDeadline(start.Add(time.Minute))
		_, err := a.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("read ends with %v after %v", err, time.Since(start))
		}
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("%v is no timeout", err)
		}
		// A deadline that is set while a read waits counts for it.
		a.SetReadDeadline(time.Time{})
		done := make(chan error)
		go func() {
			_, err := a.Read(make([]byte, 1))
			done <- err
		}()
		synctest.Wait()
		a.SetReadDeadline(time.Unix(1, 0))
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("waiting read ends with %v", err)
		}
		a.SetReadDeadline(time.Time{})
		b.Write([]byte("z"))
		if n, err := a.Read(make([]byte, 4)); n != 1 || err != nil {
			t.Errorf("read after a timeout: %d, %v", n, err)
		}
	})
}

func TestNetwork(t *testing.T) {
	var n Network
	if _, err := n.DialContext(t.Context(), "tcp", "a:1"); err == nil {
		t.Error("dialing nobody succeeds")
	}
	l, err := n.Listen("a:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen("a:1"); err == nil {
		t.Error("two listeners on one address")
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			c.Write([]byte("hi"))
			c.Close()
		}
	}()
	c, err := n.DialContext(t.Context(), "tcp", "a:1")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(c); string(got) != "hi" {
		t.Errorf("got %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.DialContext(ctx, "tcp", "a:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("dial with a cancelled context: %v", err)
	}
	l.Close()
	if _, err := n.DialContext(t.Context(), "tcp", "a:1"); err == nil {
		t.Error("dialing a closed listener succeeds")
	}
}
