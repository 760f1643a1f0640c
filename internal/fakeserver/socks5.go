package fakeserver

import (
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
)

// SOCKS5 is a proxy (RFC 1928, RFC 1929) on loopback. Its fields must be set before Start.
type SOCKS5 struct {
	// Username and Password are what a client must say. Empty: it need not say anything.
	Username, Password string
	// Targets are the addresses that lead elsewhere, by what a client asks for. Others are dialed
	// as they are.
	Targets map[string]string
	// Refuse is the code that answers every request instead of a connection, if it is not 0.
	Refuse byte

	listener net.Listener
	wg       sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	conns    map[net.Conn]struct{}
	requests []SOCKS5Request
}

// SOCKS5Request is what a client said to a proxy.
type SOCKS5Request struct {
	Methods []byte // of authentication, that it offered
	Name    bool   // it asked for a host name, not for an IP address
	Address string // host:port, "" if it did not come to that
}

// Start lets the proxy accept connections.
func (s *SOCKS5) Start() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.listener, s.conns = l, map[net.Conn]struct{}{}
	s.wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() {
				defer s.drop(nc)
				if s.keep(nc) {
					s.serve(nc)
				}
			})
		}
	})
	return nil
}

// Port returns the port on 127.0.0.1.
func (s *SOCKS5) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Requests returns what clients have said so far.
func (s *SOCKS5) Requests() []SOCKS5Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Close closes all connections, and returns when everything has ended.
func (s *SOCKS5) Close() {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for nc := range s.conns {
		nc.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// keep lets Close close nc. It reports false if that is over.
func (s *SOCKS5) keep(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[nc] = struct{}{}
	return !s.closed
}

func (s *SOCKS5) drop(nc net.Conn) {
	nc.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, nc)
}

// The constants of the protocol that are used here.
const (
	socksVersion   = 5
	socksNoAuth    = 0
	socksPassword  = 2
	socksNoMethod  = 0xff
	socksIPv4      = 1
	socksName      = 3
	socksIPv6      = 4
	socksNoRoute   = 4
	passwordMethod = 1 // the version of the negotiation of RFC 1929
)

func (s *SOCKS5) serve(nc net.Conn) {
	var r SOCKS5Request
	target, err := s.negotiate(nc, &r)
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if err != nil {
		return
	}
	code := s.Refuse
	var up net.Conn
	if code == 0 {
		if up, err = net.Dial("tcp", target); err != nil {
			code = socksNoRoute
		} else {
			defer s.drop(up)
		}
	}
	nc.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	if up == nil || !s.keep(up) {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { io.Copy(up, nc); up.Close() })
	wg.Go(func() { io.Copy(nc, up); nc.Close() })
	wg.Wait()
}

var errSOCKS = errors.New("malformed or refused")

// negotiate reads up to the request, which it fills in, and returns where that leads.
func (s *SOCKS5) negotiate(nc net.Conn, r *SOCKS5Request) (target string, err error) {
	read := func(n int) []byte {
		b := make([]byte, n)
		if err == nil {
			_, err = io.ReadFull(nc, b)
		}
		return b
	}
	head := read(2)
	r.Methods = read(int(head[1]))
	method := byte(socksNoAuth)
	if s.Username != "" {
		method = socksPassword
	}
	if err != nil || head[0] != socksVersion || !slices.Contains(r.Methods, method) {
		nc.Write([]byte{socksVersion, socksNoMethod})
		return "", errSOCKS
	}
	nc.Write([]byte{socksVersion, method})
	if method == socksPassword {
		user := string(read(int(read(2)[1])))
		password := string(read(int(read(1)[0])))
		if user != s.Username || password != s.Password {
			nc.Write([]byte{passwordMethod, 1})
			return "", errSOCKS
		}
		nc.Write([]byte{passwordMethod, 0})
	}
	var host string
	switch head := read(4); head[3] {
	case socksIPv4:
		host = net.IP(read(net.IPv4len)).String()
	case socksIPv6:
		host = net.IP(read(net.IPv6len)).String()
	case socksName:
		host, r.Name = string(read(int(read(1)[0]))), true
	default:
		return "", errSOCKS
	}
	port := read(2)
	if err != nil {
		return "", err
	}
	r.Address = net.JoinHostPort(host, strconv.Itoa(int(port[0])<<8|int(port[1])))
	if to, ok := s.Targets[r.Address]; ok {
		return to, nil
	}
	return r.Address, nil
}
