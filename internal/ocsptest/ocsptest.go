// Package ocsptest is a certificate authority with an OCSP responder, for tests.
package ocsptest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ocsp"
)

// Authority issues certificates, and answers questions about them.
type Authority struct {
	Cert *x509.Certificate
	key  crypto.Signer
	rsa  bool
	last int64

	// Delegate makes responses come from a certificate that is made for that.
	Delegate *tls.Certificate
	// Status is what every certificate is said to be: ocsp.Good, ocsp.Revoked or ocsp.Unknown.
	Status int
	// ThisUpdate and NextUpdate are when responses are of and for how long they hold; the zero
	// NextUpdate is left out.
	ThisUpdate, NextUpdate time.Time

	mu    sync.Mutex // of those fields, while the responder is in use: see Set
	asked atomic.Int64
}

// Set calls change, which may change the authority's fields while its responder is in use.
func (a *Authority) Set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// New returns an authority with an RSA or an ECDSA key. Its responses hold for an hour.
func New(isRSA bool) (*Authority, error) {
	a := &Authority{rsa: isRSA, ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	var err error
	if a.key, err = a.newKey(); err != nil {
		return nil, err
	}
	template := a.template("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true,
		x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	a.Cert, err = x509.ParseCertificate(der)
	return a, err
}

func (a *Authority) newKey() (crypto.Signer, error) {
	if a.rsa {
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func (a *Authority) template(name string) *x509.Certificate {
	a.last++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.last), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
	}
}

// Pool returns the pool that trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return pool
}

// Issue returns the certificate of a server on loopback, whose status responders tells; mustStaple
// demands a stapled response.
func (a *Authority) Issue(mustStaple bool, responders ...string) (tls.Certificate, error) {
	return a.issue("server", func(c *x509.Certificate) {
		c.OCSPServer, c.DNSNames, c.IPAddresses = responders, []string{"localhost"},
			[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if mustStaple {
			value, _ := asn1.Marshal([]int{5})
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: value}}
		}
	})
}

// IssueDelegate returns a certificate for signing responses, or, if it is not fit for that, any
// other.
func (a *Authority) IssueDelegate(fit bool) (tls.Certificate, error) {
	return a.issue("delegate", func(c *x509.Certificate) {
		if c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning}; !fit {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}
	})
}

func (a *Authority) issue(name string, change func(*x509.Certificate)) (tls.Certificate, error) {
	key, err := a.newKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	template := a.template(name)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// Response returns a response about the certificate with a serial number.
func (a *Authority) Response(serial *big.Int) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	template := ocsp.Response{Status: a.Status, SerialNumber: serial, ThisUpdate: a.ThisUpdate,
		NextUpdate: a.NextUpdate}
	if a.Status == ocsp.Revoked {
		template.RevokedAt, template.RevocationReason = a.ThisUpdate, ocsp.KeyCompromise
	}
	if a.Delegate == nil {
		return ocsp.CreateResponse(a.Cert, a.Cert, template, a.key)
	}
	template.Certificate = a.Delegate.Leaf
	return ocsp.CreateResponse(a.Cert, a.Delegate.Leaf, template, a.Delegate.PrivateKey.(crypto.Signer))
}

// ServeHTTP makes the authority a responder.
func (a *Authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	request, err := ocsp.ParseRequest(body)
	if err != nil {
		w.Write(ocsp.MalformedRequestErrorResponse)
		return
	}
	response, err := a.Response(request.SerialNumber)
	if err != nil {
		w.Write(ocsp.InternalErrorErrorResponse)
		return
	}
	w.Header().Set("Content-Type", "application/ocsp-response")
	w.Write(response)
}

// Asked returns how many requests there were.
func (a *Authority) Asked() int64 { return a.asked.Load() }
