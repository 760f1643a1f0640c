package conn

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/net/proxy"

	"allium/internal/uri"
)

const defaultProxyPort = 1080

// NewProxyDialer returns a dialer that connects through a SOCKS5 proxy (specification: SOCKS5
// Support), which it reaches by dialing with forward; nil is the driver's own dialer. The proxy
// resolves the servers' names. Unix domain sockets are dialed without it.
func NewProxyDialer(p *uri.Proxy, forward Dialer) (Dialer, error) {
	if forward == nil {
		forward = dialer(&Config{})
	}
	addr := net.JoinHostPort(p.Host, strconv.Itoa(cmp.Or(p.Port, defaultProxyPort)))
	var credential *proxy.Auth
	if p.Username != "" {
		credential = &proxy.Auth{User: p.Username, Password: string(p.Password)}
	}
	socks, err := proxy.SOCKS5("tcp", addr, credential, forwarder{forward})
	if err != nil {
		return nil, fmt.Errorf("proxyHost: %w", err)
	}
	return &proxyDialer{addr: addr, socks: socks.(proxy.ContextDialer), forward: forward}, nil
}

// forwarder is a Dialer as package proxy wants it.
type forwarder struct{ Dialer }

func (f forwarder) Dial(network, address string) (net.Conn, error) {
	return f.DialContext(context.Background(), network, address)
}

type proxyDialer struct {
	addr    string
	socks   proxy.ContextDialer
	forward Dialer
}

func (d *proxyDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network == "unix" {
		return d.forward.DialContext(ctx, network, address)
	}
	nc, err := d.socks.DialContext(ctx, network, address)
	if err != nil {
		return nil, &proxyError{addr: d.addr, err: err}
	}
	return nc, nil
}

// proxyError is a failure of the proxy, or of the way to it: no sign that the server is overloaded.
type proxyError struct {
	addr string
	err  error
}

func (e *proxyError) Error() string { return "SOCKS5 proxy " + e.addr + ": " + e.err.Error() }
func (e *proxyError) Unwrap() error { return e.err }
