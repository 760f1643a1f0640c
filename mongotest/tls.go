package mongotest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync/atomic"
	"time"
)

// certificates are what a deployment with TLS makes for itself when it starts.
type certificates struct {
	authority *authority
	pool      *x509.CertPool
	clientTLS tls.Certificate
	clientPEM []byte
	subject   string

	serial atomic.Int64               // of the newest certificate of a server
	now    atomic.Pointer[tls.Config] // of new connections
	config *tls.Config                // of the servers, which leads to now
}

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// template returns what all certificates have in common. They are valid for ten years.
func template(serial int64, name pkix.Name) *x509.Certificate {
	from := time.Now().Add(-time.Hour)
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: name, NotBefore: from, NotAfter: from.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := template(1, pkix.Name{CommonName: "mongotest authority", Organization: []string{"mongotest"}})
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if ca, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return &authority{ca, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// issue makes a key and a certificate for it; the second result is both as PEM.
func (a *authority) issue(t *x509.Certificate) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, both, nil
}

func newCertificates() (*certificates, error) {
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	c := &certificates{authority: a, pool: x509.NewCertPool()}
	c.pool.AddCert(a.cert)
	client := template(3, pkix.Name{CommonName: "client", Organization: []string{"mongotest"},
		OrganizationalUnit: []string{"users"}})
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if c.clientTLS, c.clientPEM, err = a.issue(client); err != nil {
		return nil, err
	}
	c.subject = client.Subject.String()
	c.serial.Store(100)
	c.config = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return c.now.Load(), nil
	}}
	return c, c.replace(ValidCertificate)
}

// ServerCertificate is a kind of certificate that servers show; see
// [Deployment.ReplaceCertificate].
type ServerCertificate int

// The kinds of certificates of servers.
const (
	ValidCertificate   ServerCertificate = iota // from the deployment's authority, for localhost
	ExpiredCertificate                          // from the deployment's authority, past its time
	ForeignCertificate                          // from an authority that clients do not trust
)

// replace makes the servers show a new certificate.
func (c *certificates) replace(with ServerCertificate) error {
	a := c.authority
	server := template(c.serial.Add(1), pkix.Name{CommonName: "localhost", Organization: []string{"mongotest"},
		OrganizationalUnit: []string{"server"}})
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames = []string{"localhost"}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	switch with {
	case ValidCertificate:
	case ExpiredCertificate:
		server.NotAfter = time.Now().Add(-time.Minute)
	case ForeignCertificate:
		var err error
		if a, err = newAuthority(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("there is no kind %d of certificates", with)
	}
	cert, _, err := a.issue(server)
	if err != nil {
		return err
	}
	c.use(&cert, nil)
	return nil
}

// use makes the servers show a certificate, and want one of each client that one of the authorities
// has issued; nil: clients may show one of the deployment's own authority.
func (c *certificates) use(shows *tls.Certificate, clients *x509.CertPool) {
	config := &tls.Config{Certificates: []tls.Certificate{*shows}, ClientCAs: c.pool,
		ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12}
	if clients != nil {
		config.ClientCAs, config.ClientAuth = clients, tls.RequireAndVerifyClientCert
	}
	// A client that resumed a session would not see the certificate, nor show its own.
	var tickets [32]byte
	rand.Read(tickets[:])
	config.SetSessionTicketKeys([][32]byte{tickets})
	c.now.Store(config)
}

// ReplaceCertificate gives the servers a certificate of the kind, with a new key and serial number.
// Open connections go on; new ones get the new certificate, and none resumes an earlier TLS
// session. Clients may show a certificate of the deployment's authority, and need not. It returns
// an error if the deployment has no TLS. It may be called at any time, by several goroutines at
// once.
func (d *Deployment) ReplaceCertificate(with ServerCertificate) error {
	if d.tls == nil {
		return errors.New("mongotest: the deployment has no TLS")
	}
	if err := d.tls.replace(with); err != nil {
		return fmt.Errorf("mongotest: replace the certificate: %w", err)
	}
	return nil
}

// UseCertificate gives the servers a certificate of the caller's authority, for localhost. With
// clients, each new connection must show a certificate that one of those authorities has issued;
// with nil, as after [Deployment.ReplaceCertificate]. Open connections go on, and no new one
// resumes an earlier TLS session, so that a program can be tested through a rotation of all
// certificates. The deployment's own, in [Deployment.TLSConfig] and [Deployment.WriteTLSFiles],
// stay what they are. It returns an error if the deployment has no TLS. It may be called at any
// time, by several goroutines at once.
func (d *Deployment) UseCertificate(shows tls.Certificate, clients *x509.CertPool) error {
	if d.tls == nil {
		return errors.New("mongotest: the deployment has no TLS")
	}
	if clients != nil {
		clients = clients.Clone()
	}
	d.tls.use(&shows, clients)
	return nil
}

func (c *certificates) client() *tls.Config {
	return &tls.Config{RootCAs: c.pool, Certificates: []tls.Certificate{c.clientTLS}, MinVersion: tls.VersionTLS12}
}

// ClientSubject returns the subject of the client certificate in TLSConfig, which is the name of
// its user for MONGODB-X509: add it with AddUser on "$external". It is empty without TLS.
func (d *Deployment) ClientSubject() string {
	if d.tls == nil {
		return ""
	}
	return d.tls.subject
}
