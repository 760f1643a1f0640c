package mongotest

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
	"time"
)

// certificates are what a deployment with TLS makes for itself when it starts.
type certificates struct {
	pool      *x509.CertPool
	caPEM     []byte
	serverTLS tls.Certificate
	clientTLS tls.Certificate
	clientPEM []byte
	subject   string
}

func newCertificates() (*certificates, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	from := time.Now().Add(-time.Hour)
	template := func(serial int64, name pkix.Name) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: name, NotBefore: from, NotAfter: from.AddDate(10, 0, 0),
			KeyUsage: x509.KeyUsageDigitalSignature,
		}
	}
	ca := template(1, pkix.Name{CommonName: "mongotest authority", Organization: []string{"mongotest"}})
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	c := &certificates{pool: x509.NewCertPool(), caPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})}
	if ca, err = x509.ParseCertificate(caDER); err != nil {
		return nil, err
	}
	c.pool.AddCert(ca)
	issue := func(t *x509.Certificate) (tls.Certificate, []byte, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return tls.Certificate{}, nil, err
		}
		der, err := x509.CreateCertificate(rand.Reader, t, ca, &key.PublicKey, caKey)
		if err != nil {
			return tls.Certificate{}, nil, err
		}
		keyDER, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return tls.Certificate{}, nil, err
		}
		both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, both, nil
	}
	server := template(2, pkix.Name{CommonName: "localhost", Organization: []string{"mongotest"}, OrganizationalUnit: []string{"server"}})
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames = []string{"localhost"}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if c.serverTLS, _, err = issue(server); err != nil {
		return nil, err
	}
	client := template(3, pkix.Name{CommonName: "client", Organization: []string{"mongotest"}, OrganizationalUnit: []string{"users"}})
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if c.clientTLS, c.clientPEM, err = issue(client); err != nil {
		return nil, err
	}
	c.subject = client.Subject.String()
	return c, nil
}

func (c *certificates) server() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{c.serverTLS}, ClientCAs: c.pool, ClientAuth: tls.VerifyClientCertIfGiven,
		MinVersion: tls.VersionTLS12,
	}
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
