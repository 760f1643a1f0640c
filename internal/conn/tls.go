package conn

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"strings"
	"sync"

	"allium/internal/flight"
	"allium/internal/ocsp"
	"allium/internal/uri"
)

// sessionCacheSize is how many servers a client remembers TLS sessions of, so that further
// connections to them are established with a shorter handshake.
const sessionCacheSize = 128

// A TLS is what the connections of a client do TLS with. It is safe for concurrent use.
type TLS struct {
	fixed   *tls.Config     // the program's; nil with files
	options *uri.TLSOptions // else
	warn    func(string)

	mu      sync.Mutex
	roots   watched[*x509.CertPool]
	own     watched[tls.Certificate]
	current *tls.Config
}

// FixedTLS uses a configuration of the program's as it is.
func FixedTLS(cfg *tls.Config) *TLS { return &TLS{fixed: cfg} }

// NewTLS returns what the options of a connection string describe. It reads the files, and reads
// them again for each connection: what replaces them on disk counts from the next connection on.
// While a file cannot be read or has no use, because it is only half written for example, its
// last good content counts, and warn, which may be nil, is told once of each reason. The least
// version is TLS 1.2. Errors name the option and the file, never the password.
//
// tlsInsecure and tlsAllowInvalidCertificates accept every certificate, for whatever host: a
// certificate that nobody vouches for proves nothing about its host either.
// tlsAllowInvalidHostnames still checks who signed the certificate.
func NewTLS(o *uri.TLSOptions, warn func(string)) (*TLS, error) {
	password := string(o.CertificateKeyFilePassword)
	t := &TLS{options: o, warn: warn,
		roots: watched[*x509.CertPool]{option: "tlsCAFile", name: o.CAFile, parse: parseAuthorities},
		own: watched[tls.Certificate]{option: "tlsCertificateKeyFile", name: o.CertificateKeyFile,
			parse: func(data []byte) (tls.Certificate, error) { return parseCertificateKey(data, password) }},
	}
	t.roots.read()
	t.own.read()
	if err := cmp.Or(t.roots.err, t.own.err); err != nil {
		return nil, err
	}
	t.current = t.build()
	return t, nil
}

// Config returns the configuration for a new connection. It must not be changed.
func (t *TLS) Config() *tls.Config {
	if t.fixed != nil {
		return t.fixed
	}
	cfg, news := t.read()
	for _, reason := range news {
		if reason != "" && t.warn != nil {
			t.warn(reason)
		}
	}
	return cfg
}

// read looks at the files. What is to be told of them is told without the lock.
func (t *TLS) read() (cfg *tls.Config, news [2]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	roots, own := t.roots.read(), t.own.read()
	if roots || own {
		t.current = t.build()
	}
	return t.current, [2]string{t.roots.news(), t.own.news()}
}

// build makes a configuration of what was read. Its sessions are new: one of before would go on
// with the old certificate.
func (t *TLS) build() *tls.Config {
	o := t.options
	cfg := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(sessionCacheSize),
		RootCAs:            t.roots.value,
	}
	if o.CertificateKeyFile != "" {
		cfg.Certificates = []tls.Certificate{t.own.value}
	}
	switch {
	case isSet(o.Insecure) || isSet(o.AllowInvalidCertificates):
		cfg.InsecureSkipVerify = true
	case isSet(o.AllowInvalidHostnames):
		cfg.InsecureSkipVerify = true // what the standard library checks includes the name
		cfg.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(&state, cfg.RootCAs) }
	}
	return cfg
}

// Advise adds to an error of making a connection what advice says.
func (t *TLS) Advise(err error) error {
	if text := t.advice(err); text != "" {
		return &advised{err, text}
	}
	return err
}

// advice says what may have to be done about a certificate that was refused, as things are now: ""
// if that is not known.
func (t *TLS) advice(err error) string {
	_, unknownAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	refused := isAlert(err) && strings.Contains(err.Error(), "certificate")
	if t == nil || !unknownAuthority && !refused {
		return ""
	}
	if t.fixed != nil {
		switch {
		case refused && len(t.fixed.Certificates) == 0 && t.fixed.GetClientCertificate == nil:
			return "the TLS configuration has no certificate to show to the server"
		case unknownAuthority && t.fixed.RootCAs != nil:
			return "the RootCAs of the TLS configuration lack the authority that signed the server's certificate"
		case unknownAuthority:
			return "set RootCAs of the TLS configuration to the authority that signed the server's certificate"
		}
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case refused && t.own.name == "":
		return "the server wants to see a certificate: set tlsCertificateKeyFile"
	case refused && t.own.err != nil:
		return t.own.stale()
	case refused:
		return "the server refuses the certificate in tlsCertificateKeyFile " + t.own.name
	case t.roots.name == "":
		return "set tlsCAFile to the certificate of the authority that signed the server's"
	case t.roots.err != nil:
		return t.roots.stale()
	}
	return "tlsCAFile " + t.roots.name + " lacks the authority that signed the server's certificate"
}

// NewRevocation returns what checks the certificates of a client's servers, nil if the options
// switch that off (specification: OCSP Support, "How OCSP interacts with existing configuration
// options"). Responders are reached through d; nil: directly.
func NewRevocation(o *uri.TLSOptions, t *TLS, d Dialer) *ocsp.Checker {
	if isSet(o.Insecure) || isSet(o.AllowInvalidCertificates) || isSet(o.DisableCertificateRevocationCheck) {
		return nil
	}
	c := &ocsp.Checker{Roots: t.authorities, Verify: isSet(o.AllowInvalidHostnames),
		Responders: !isSet(o.DisableOCSPEndpointCheck)}
	if d != nil {
		c.Dial = func(ctx context.Context, network, address string) (nc net.Conn, err error) {
			err = flight.Apart(func() (err error) { // it runs on a goroutine of package http
				nc, err = d.DialContext(ctx, network, address)
				return err
			})
			return nc, err
		}
	}
	return c
}

// NewServiceRevocation returns what checks the certificates of services beside the servers, for a
// client with the options and what checks those of its servers. It is the same, for it has the
// answers and knows how responders are reached. Where servers are not checked, because there is no
// TLS or it is insecure, services are (specification: Client Side Encryption, "KMS provider TLS
// options"); but responders are asked only if the options allow that.
func NewServiceRevocation(o *uri.TLSOptions, servers *ocsp.Checker, d Dialer) *ocsp.Checker {
	if servers != nil {
		return servers
	}
	c := &ocsp.Checker{Responders: !isSet(o.DisableOCSPEndpointCheck) && !isSet(o.DisableCertificateRevocationCheck)}
	if d != nil {
		c.Dial = d.DialContext
	}
	return c
}

// authorities returns the roots that were read last.
func (t *TLS) authorities() *x509.CertPool {
	if t.fixed != nil {
		return t.fixed.RootCAs
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.roots.value
}

func isSet(b *bool) bool { return b != nil && *b }

// verifyChain checks that the server's certificate was signed by somebody trusted, but not for
// which host.
func verifyChain(state *tls.ConnectionState, roots *x509.CertPool) error {
	_, err := ocsp.Chains(state, roots)
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
	}
	return nil
}

// parseAuthorities reads certificates in PEM.
func parseAuthorities(data []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("there is no certificate in it")
	}
	return pool, whole(data)
}

// parseCertificateKey reads a certificate, with those of its issuers if they are there, and its
// private key out of one PEM file, in any order. The key may be encrypted.
func parseCertificateKey(data []byte, password string) (tls.Certificate, error) {
	var certs, key bytes.Buffer
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch {
		case block.Type == "CERTIFICATE":
			pem.Encode(&certs, block)
		case key.Len() == 0:
			plain, err := decryptKey(block, password)
			if err != nil {
				return tls.Certificate{}, err
			}
			if plain != nil {
				pem.Encode(&key, plain)
			}
		}
	}
	switch {
	case certs.Len() == 0:
		return tls.Certificate{}, errors.New("there is no certificate in it")
	case key.Len() == 0:
		return tls.Certificate{}, errors.New("there is no private key in it")
	}
	cert, err := tls.X509KeyPair(certs.Bytes(), key.Bytes())
	if err == nil {
		err = whole(data)
	}
	return cert, err
}

// whole refuses a file that ends within a block, because it is being written.
func whole(data []byte) error {
	if begin := bytes.LastIndex(data, []byte("-----BEGIN ")); begin >= 0 &&
		!bytes.Contains(data[begin:], []byte("-----END ")) {
		return errors.New("it ends in the middle of a block")
	}
	return nil
}

// pathReason returns the reason alone, since the caller names the file.
func pathReason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
