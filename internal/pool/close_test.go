package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/ocsptest"
	"allium/mongoerr"
)

// A server that does not read holds up the goodbye of TLS, which waits for seconds. Neither closing
// the pool nor those who return connections meanwhile wait for one after the other.
func TestCloseWithoutGoodbye(t *testing.T) { synctest.Test(t, testCloseWithoutGoodbye) }

func testCloseWithoutGoodbye(t *testing.T) {
	const conns = 20
	authority, err := ocsptest.New(false)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := authority.Issue(false)
	if err != nil {
		t.Fatal(err)
	}
	hung := make(chan struct{})
	p := newPool(t, &fakeserver.Server{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}, Handle: func(r *fakeserver.Request) {
		echo(r)
		if !r.IsHello() {
			<-hung
		}
	}}, Config{MaxPoolSize: conns, Conn: &conn.Config{TLS: conn.FixedTLS(&tls.Config{InsecureSkipVerify: true})}})
	defer close(hung)
	var all []*Conn
	for range conns {
		c, err := p.CheckOut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reply, err := c.RoundTrip(t.Context(), fakeserver.Message("ping"))
		if err != nil {
			t.Fatal(err)
		}
		reply.Release()
		all = append(all, c)
	}
	for _, c := range all[:conns/2] {
		c.Return()
	}
	began := time.Now()
	closed := make(chan time.Duration)
	go func() {
		p.Close()
		closed <- time.Since(began)
	}()
	synctest.Wait()
	free := make(chan struct{})
	go func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(free)
	}()
	synctest.Wait()
	select {
	case <-free:
		for _, c := range all[conns/2:] {
			c.Return()
		}
	default:
		t.Error("the lock is held while a server is waited for")
	}
	if d := time.Since(began); d != 0 {
		t.Errorf("returning connections to a pool that closes took %v", d)
	}
	if d := <-closed; d > 5*time.Second {
		t.Errorf("closing took %v, want that the goodbyes are said at the same time", d)
	}
}

// After Close, Interrupt ends operations that wait for a server. Their connections are checked in
// once.
func TestInterruptClosed(t *testing.T) { synctest.Test(t, testInterruptClosed) }

func testInterruptClosed(t *testing.T) {
	hung := make(chan struct{})
	rec := &recorder{}
	p := newPool(t, &fakeserver.Server{Handle: func(r *fakeserver.Request) {
		if r.IsHello() {
			echo(r)
		} else {
			<-hung
		}
	}}, Config{Monitor: rec.monitor()})
	defer close(hung)
	c, err := p.CheckOut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		_, err := c.RoundTrip(context.Background(), fakeserver.Message("ping"))
		c.Return()
		failed <- err
	}()
	synctest.Wait()
	p.Close()
	p.Interrupt()
	if err := <-failed; !errors.Is(err, mongoerr.ErrClientClosed) {
		t.Errorf("%v, want that the client is closed", err)
	}
	rec.expect(t, "ConnectionPoolCreated ConnectionPoolReady ConnectionCheckOutStarted ConnectionCreated ConnectionReady ConnectionCheckedOut"+
		" ConnectionPoolClosed ConnectionCheckedIn ConnectionClosed")
}
