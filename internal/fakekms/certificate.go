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

// authority issues the certificates of the servers, for whatever host a client asks for, and one of
// a client.
type authority struct {
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
	pool      *x509.CertPool
	pem       []byte
	client    tls.Certificate
	clientPEM []byte

	mu     sync.Mutex
	serial int64
	issued map[string]*tls.Certificate
}

func newAuthority() (*authority, error) {
	a := &authority{pool: x509.NewCertPool(), issued: map[string]*tls.Certificate{}, serial: 1}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "fakekms authority"}, NotBefore: validFrom, NotAfter: validTo,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pool.AddCert(a.cert)
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

func (a *authority) issue(host string, to time.Time, usage x509.ExtKeyUsage) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: host}, NotBefore: validFrom, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// server returns the settings of a server. A client that names no host has dialed 127.0.0.1.
func (a *authority) server(q quality) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
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
		},
	}
}

func (a *authority) requireClient(c *tls.Config) *tls.Config {
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, a.pool
	return c
}
