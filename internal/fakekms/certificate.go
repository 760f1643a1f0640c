package fakekms

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"
)

// The certificates are valid under the clock of a testing/synctest bubble, too, which starts in the
// year 2000.
var (
	validFrom = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	validTo   = time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC)
	expiredAt = time.Date(1991, 1, 1, 0, 0, 0, 0, time.UTC)
)

// quality says what is wrong with a server's certificate.
type quality int

const (
	valid quality = iota
	expired
	wrongHost
)

// Authority issues the certificates of the servers, for whatever host a client asks for, and one of
// a client. Safe for concurrent use.
type Authority struct {
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
	pem       []byte
	client    tls.Certificate
	clientPEM []byte

	mu     sync.Mutex
	serial int64
	issued map[string]*tls.Certificate
}

// NewAuthority makes an authority with keys of its own.
func NewAuthority() (*Authority, error) {
	a := &Authority{issued: map[string]*tls.Certificate{}, serial: 1}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "fakekms authority"}, NotBefore: validFrom,
		NotAfter: validTo,
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	client, err := a.issue("client", validTo, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	a.client = *client
	keyDER, err := x509.MarshalPKCS8PrivateKey(client.PrivateKey)
	if err != nil {
		return nil, err
	}
	a.clientPEM = append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: client.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
	return a, nil
}

// Files returns the authority's certificate, and that of a client with its key, as files in PEM.
func (a *Authority) Files() (authority, certificateKey []byte) { return a.pem, a.clientPEM }

// Server returns a certificate of a server for a host, always the same one.
func (a *Authority) Server(host string) (*tls.Certificate, error) { return a.server(host, validTo) }

func (a *Authority) server(host string, to time.Time) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := host + to.String()
	if cert := a.issued[name]; cert != nil {
		return cert, nil
	}
	cert, err := a.issue(host, to, x509.ExtKeyUsageServerAuth)
	if err == nil {
		a.issued[name] = cert
	}
	return cert, err
}

// Pool returns the certificates of authorities.
func Pool(all ...*Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range all {
		pool.AddCert(a.cert)
	}
	return pool
}

func (a *Authority) issue(host string, to time.Time, usage x509.ExtKeyUsage) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: host}, NotBefore: validFrom, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	switch ip := net.ParseIP(host); {
	case ip == nil:
		template.DNSNames = []string{host}
	case ip.IsLoopback():
		template.DNSNames = []string{"localhost"}
		fallthrough
	default:
		template.IPAddresses = []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// trust is whose certificates servers show, and whose they accept of clients.
type trust struct {
	shows   *Authority
	clients *x509.CertPool
}

// Use makes the servers show certificates of an authority, and accept those of clients that one of
// the others has issued. Open connections go on; a new one resumes no session of before.
func (s *Server) Use(shows *Authority, clients ...*Authority) {
	s.trust.Store(&trust{shows, Pool(clients...)})
}

// settings returns those of a server, which wants to see a client's certificate or not. A client
// that names no host has dialed 127.0.0.1.
func (s *Server) settings(q quality, wantsClient bool) *tls.Config {
	return &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		now := s.trust.Load()
		host, to := hello.ServerName, validTo
		if host == "" {
			host = "127.0.0.1"
		}
		switch q {
		case expired:
			to = expiredAt
		case wrongHost:
			host = "wronghost.example.com"
		}
		cert, err := now.shows.server(host, to)
		if err != nil {
			return nil, err
		}
		c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*cert},
			SessionTicketsDisabled: true}
		if wantsClient {
			c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, now.clients
		}
		return c, nil
	}}
}
