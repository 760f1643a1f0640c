// Package memnet is a network in memory: listeners and connections that never leave the process. It
// waits on channels only, so that a testing/synctest bubble sees when everybody is idle.
package memnet

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Network connects dialers with listeners by address. The zero value is ready. Safe for concurrent
// use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
}

// errRefused is what dialing an address without a listener gives.
var errRefused = errors.New("connection refused")

// addr is an address of the network.
type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }

// Listen listens on an address, which nobody else may be listening on.
func (n *Network) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: "memory", Addr: addr(address),
			Err: errors.New("address already in use")}
	}
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{net: n, addr: addr(address), conns: make(chan net.Conn), done: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

// DialContext connects to a listener. The network's name is ignored.
func (n *Network) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: addr(address), Err: err}
	}
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return fail(errRefused)
	}
	client, server := Pipe("client", address)
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return fail(errRefused)
	case <-ctx.Done():
		return fail(ctx.Err())
	}
}

type listener struct {
	net   *Network
	addr  addr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		delete(l.net.listeners, string(l.addr))
		l.net.mu.Unlock()
		close(l.done)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }
