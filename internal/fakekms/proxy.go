package fakekms

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Proxy is an HTTP proxy in front of a Server, which clients tell by CONNECT where they want to go.
// It counts connections.
type Proxy struct {
	s        *Server
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex
	count int
	conns map[net.Conn]bool
}

// StartProxy starts a proxy, which clients reach over TLS if secure is true. Close ends it.
func (s *Server) StartProxy(secure bool) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if secure {
		l = tls.NewListener(l, s.settings(valid, false))
	}
	p := &Proxy{s: s, listener: l, conns: map[net.Conn]bool{}}
	p.done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.track(conn, true)
			p.done.Go(func() { p.serve(conn) })
		}
	})
	return p, nil
}

func (p *Proxy) track(conn net.Conn, add bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !add {
		delete(p.conns, conn)
		return
	}
	p.conns[conn] = true
}

func (p *Proxy) serve(conn net.Conn) {
	defer p.track(conn, false)
	defer conn.Close()
	in := bufio.NewReader(conn)
	r, err := http.ReadRequest(in)
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	p.mu.Lock()
	p.count++
	p.mu.Unlock()
	target, err := p.s.Dial(context.Background(), r.Host)
	if err != nil {
		io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	p.track(target, true)
	defer p.track(target, false)
	defer target.Close()
	io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		io.Copy(target, in)
		target.Close()
	}()
	io.Copy(conn, target)
}

// Count returns how many clients have been connected.
func (p *Proxy) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Address returns the proxy's address.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Dial connects to an address through the proxy. settings are those of the client if the proxy
// wants TLS, else nil.
func (p *Proxy) Dial(ctx context.Context, address string, settings *tls.Config) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", p.Address())
	if err != nil {
		return nil, err
	}
	if settings != nil {
		settings = settings.Clone()
		settings.ServerName = "127.0.0.1"
		conn = tls.Client(conn, settings)
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		conn.Close()
		return nil, err
	}
	var line strings.Builder
	for b := make([]byte, 1); !strings.HasSuffix(line.String(), "\r\n\r\n"); line.Write(b) {
		if _, err := io.ReadFull(conn, b); err != nil {
			conn.Close()
			return nil, err
		}
	}
	if !strings.HasPrefix(line.String(), "HTTP/1.1 200") {
		conn.Close()
		return nil, fmt.Errorf("the proxy answered %q", line.String())
	}
	return conn, nil
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.listener.Close()
	p.mu.Lock()
	for conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
}
