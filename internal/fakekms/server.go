// Package fakekms is a local stand-in for the key services of in-use encryption: Amazon's,
// Microsoft's and Google's over HTTPS, a KMIP server, and the proxies and failing servers that the
// specification's tests ask for ("Client Side Encryption Tests"). It checks what it is sent as the
// real ones do: signatures, assertions, tokens and client certificates.
//
// A client reaches it by Server.Dial, which takes the place of the network: requests keep the names
// of the true hosts. The package is part of the tests; nothing else imports it.
package fakekms

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// The credentials that the servers accept.
const (
	AWSAccessKeyID     = "fake-access-key-id"
	AWSSecretAccessKey = "fake-secret-access-key"
	AWSSessionToken    = "fake-session-token"

	AzureTenantID     = "fake-tenant"
	AzureClientID     = "fake-client"
	AzureClientSecret = "fake-client-secret"

	GCPEmail = "fake@example.iam.gserviceaccount.com"
)

// The ports of the servers in the specification's tests. Dial knows them; the servers listen
// elsewhere.
const (
	portHTTPS      = "443"
	portExpired    = "9000" // its certificate has expired
	portWrongHost  = "9001" // its certificate is for another host
	portClientCert = "9002" // wants a client certificate, and knows no path
	portFailing    = "9003" // fails on demand
	portKMIP       = "5698"
	portKMIPUsual  = "5696"
)

// Request is what a server was asked.
type Request struct {
	Host string // without a port
	Path string // for KMIP the number of the operation
}

// Server is a set of key services on loopback. Safe for concurrent use.
type Server struct {
	ca       *Authority // at first
	trust    atomic.Pointer[trust]
	gcpKey   *rsa.PrivateKey
	gcpDER   []byte
	wrapping cipher.AEAD // wraps new keys
	material material

	addresses map[string]string // by port
	listeners []net.Listener
	servers   []*http.Server
	open      atomic.Int64 // connections
	done      sync.WaitGroup

	mu       sync.Mutex
	requests []Request
	failHTTP int // so many requests are answered by 429
	failConn int // so many connections are closed
	answer   func(r *http.Request) (status int, body string)
	objects  map[string]object // of KMIP, by identifier
	nextID   int
	conns    map[net.Conn]bool // of KMIP and Serve
	closed   bool
}

// material is the key material that the specification's tests hold wrapped.
type material struct {
	AWS []struct {
		SHA1      string `json:"sha1Prefix"`
		Plaintext string `json:"plaintextHex"`
	} `json:"awsCiphertextBlobs"`
	KMIP map[string]struct {
		Type string `json:"type"`
		Hex  string `json:"hex"`
	} `json:"kmipObjects"`
}

//go:embed testdata/kms-material.json
var materialJSON []byte

// Start starts the servers. Close ends them.
func Start() (*Server, error) {
	s := &Server{addresses: map[string]string{}, objects: map[string]object{}, nextID: 1000, conns: map[net.Conn]bool{}}
	if err := json.Unmarshal(materialJSON, &s.material); err != nil {
		return nil, err
	}
	for id, o := range s.material.KMIP {
		data, err := hex.DecodeString(o.Hex)
		if err != nil {
			return nil, err
		}
		s.objects[id] = object{data: data, symmetric: o.Type == "SymmetricKey"}
	}
	var err error
	if s.ca, err = NewAuthority(); err != nil {
		return nil, err
	}
	s.Use(s.ca, s.ca)
	if s.gcpKey, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return nil, err
	}
	if s.gcpDER, err = x509.MarshalPKCS8PrivateKey(s.gcpKey); err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if s.wrapping, err = cipher.NewGCM(block); err != nil {
		return nil, err
	}
	for _, start := range []func() error{
		func() error { return s.serveHTTP(portHTTPS, s.settings(valid, false), http.HandlerFunc(s.clouds)) },
		func() error { return s.serveHTTP(portFailing, s.settings(valid, false), http.HandlerFunc(s.failing)) },
		func() error { return s.serveHTTP(portExpired, s.settings(expired, false), http.HandlerFunc(nowhere)) },
		func() error {
			return s.serveHTTP(portWrongHost, s.settings(wrongHost, false), http.HandlerFunc(nowhere))
		},
		func() error {
			return s.serveHTTP(portClientCert, s.settings(valid, true), http.HandlerFunc(nowhere))
		},
		s.serveKMIP,
	} {
		if err := start(); err != nil {
			s.Close()
			return nil, err
		}
	}
	s.addresses[portKMIPUsual] = s.addresses[portKMIP]
	return s, nil
}

// Close ends the servers and their connections.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		conn.Close()
	}
	listeners := s.listeners
	s.mu.Unlock()
	for _, server := range s.servers {
		server.Close()
	}
	for _, l := range listeners {
		l.Close()
	}
	s.done.Wait()
}

func (s *Server) listen(port string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l = countingListener{l, &s.open}
	s.listeners = append(s.listeners, l)
	s.addresses[port] = l.Addr().String()
	return l, nil
}

func (s *Server) serveHTTP(port string, settings *tls.Config, h http.Handler) error {
	l, err := s.listen(port)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	s.servers = append(s.servers, server)
	s.done.Go(func() { server.Serve(tls.NewListener(failingListener{l, s, port}, settings)) })
	return nil
}

// failingListener closes connections as often as FailConnections says.
type failingListener struct {
	net.Listener
	s    *Server
	port string
}

func (l failingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.port != portFailing || !l.s.take(&l.s.failConn) {
			return conn, err
		}
		conn.Close()
	}
}

// Serve calls the function with each connection to a new port, which it returns. The certificate is
// valid for every host.
func (s *Server) Serve(handle func(net.Conn)) (port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.addresses[port] = l.Addr().String()
	s.mu.Unlock()
	s.done.Go(func() { s.accept(tls.NewListener(l, s.settings(valid, false)), handle) })
	return port, nil
}

// accept serves connections until the listener is closed.
func (s *Server) accept(l net.Listener, handle func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			conn.Close()
			return
		}
		s.conns[conn] = true
		s.mu.Unlock()
		s.done.Go(func() {
			handle(conn)
			conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

// take reports whether the counter is above zero, and takes one off.
func (s *Server) take(counter *int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *counter == 0 {
		return false
	}
	*counter--
	return true
}

// Dial connects to the server that stands in for an address, which it finds by the port. Hosts in
// the domain "invalid" are not found.
func (s *Server) Dial(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(host, ".invalid") {
		return nil, &net.OpError{Op: "dial", Net: "tcp",
			Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
	s.mu.Lock()
	real, ok := s.addresses[port]
	s.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", real)
}

// TLS returns settings of a client that trusts the servers and has no certificate of its own.
func (s *Server) TLS() *tls.Config {
	return &tls.Config{RootCAs: Pool(s.ca), MinVersion: tls.VersionTLS12}
}

// ClientTLS returns settings of a client that trusts the servers and has a certificate that they
// trust.
func (s *Server) ClientTLS() *tls.Config {
	c := s.TLS()
	c.Certificates = []tls.Certificate{s.ca.client}
	return c
}

// Files returns what ClientTLS says as files in PEM: the authority, and the certificate with its
// key.
func (s *Server) Files() (authority, certificateKey []byte) { return s.ca.Files() }

// Connections returns how many connections are open.
func (s *Server) Connections() int { return int(s.open.Load()) }

// counted counts a connection while it is open.
type counted struct {
	net.Conn
	close func() error
}

func (c counted) Close() error { return c.close() }

// countingListener counts connections.
type countingListener struct {
	net.Listener
	open *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return counted{conn, sync.OnceValue(func() error {
		defer l.open.Add(-1)
		return conn.Close()
	})}, nil
}

// GCPPrivateKey returns the key of the account GCPEmail in PKCS #8.
func (s *Server) GCPPrivateKey() []byte { return s.gcpDER }

// Requests returns what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// FailHTTP makes the failing server, at port 9003, answer the next n requests with status 429.
func (s *Server) FailHTTP(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failHTTP = n
}

// FailConnections makes the failing server, at port 9003, close the next n connections.
func (s *Server) FailConnections(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failConn = n
}

// Answer makes f answer all requests over HTTPS until Answer is called with nil. With status 0 the
// server handles the request as usual.
func (s *Server) Answer(f func(r *http.Request) (status int, body string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

func (s *Server) saw(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// wrap encrypts material under a key of the process.
func (s *Server) wrap(material []byte) []byte {
	nonce := make([]byte, s.wrapping.NonceSize())
	rand.Read(nonce)
	return s.wrapping.Seal(nonce, nonce, material, nil)
}

func (s *Server) unwrap(wrapped []byte) ([]byte, error) {
	n := s.wrapping.NonceSize()
	if len(wrapped) < n {
		return nil, errors.New("the ciphertext is invalid")
	}
	return s.wrapping.Open(nil, wrapped[:n], wrapped[n:], nil)
}

// known returns the material of a key that the specification's tests hold wrapped by Amazon's
// service. One of them is not public; no test looks at what it encrypts.
func (s *Server) known(wrapped []byte) ([]byte, bool) {
	sum := fmt.Sprintf("%x", sha1.Sum(wrapped))
	for _, blob := range s.material.AWS {
		if !strings.HasPrefix(sum, blob.SHA1) {
			continue
		}
		if blob.Plaintext == "" {
			return []byte(strings.Repeat("a", 96)), true
		}
		data, err := hex.DecodeString(blob.Plaintext)
		return data, err == nil
	}
	return nil, false
}
