package conn

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"

	"allium/internal/flight"
	"allium/internal/ocsp"
	"allium/internal/uri"
)

// sessionCacheSize is how many servers a client remembers TLS sessions of, so that further
// connections to them are established with a shorter handshake.
const sessionCacheSize = 128

// NewTLSConfig returns the TLS configuration that the options of a connection string describe, for
// all connections of a client. It reads the files. The least version is TLS 1.2. Errors name the
// option and the file, never the password.
//
// tlsInsecure and tlsAllowInvalidCertificates accept every certificate, for whatever host: a
// certificate that nobody vouches for proves nothing about its host either.
// tlsAllowInvalidHostnames still checks who signed the certificate.
func NewTLSConfig(o *uri.TLSOptions) (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(sessionCacheSize),
	}
	if o.CAFile != "" {
		pool, err := readCAFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tlsCAFile %s: %w", o.CAFile, err)
		}
		cfg.RootCAs = pool
	}
	if o.CertificateKeyFile != "" {
		cert, err := readCertificateKeyFile(o.CertificateKeyFile, string(o.CertificateKeyFilePassword))
		if err != nil {
			return nil, fmt.Errorf("tlsCertificateKeyFile %s: %w", o.CertificateKeyFile, err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	switch {
	case isSet(o.Insecure) || isSet(o.AllowInvalidCertificates):
		cfg.InsecureSkipVerify = true
	case isSet(o.AllowInvalidHostnames):
		cfg.InsecureSkipVerify = true // what the standard library checks includes the name
		cfg.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(&state, cfg.RootCAs) }
	}
	return cfg, nil
}

// NewRevocation returns what checks the certificates of a client's servers, nil if the options
// switch that off (specification: OCSP Support, "How OCSP interacts with existing configuration
// options"). Responders are reached through d; nil: directly.
func NewRevocation(o *uri.TLSOptions, cfg *tls.Config, d Dialer) *ocsp.Checker {
	if isSet(o.Insecure) || isSet(o.AllowInvalidCertificates) || isSet(o.DisableCertificateRevocationCheck) {
		return nil
	}
	c := &ocsp.Checker{Roots: cfg.RootCAs, Verify: isSet(o.AllowInvalidHostnames), Responders: !isSet(o.DisableOCSPEndpointCheck)}
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

func readCAFile(name string) (*x509.CertPool, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, pathReason(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("there is no certificate in it")
	}
	return pool, nil
}

// readCertificateKeyFile reads a certificate, with those of its issuers if they are there, and its
// private key out of one PEM file, in any order. The key may be encrypted.
func readCertificateKeyFile(name, password string) (tls.Certificate, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return tls.Certificate{}, pathReason(err)
	}
	var certs, key bytes.Buffer
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
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
	return tls.X509KeyPair(certs.Bytes(), key.Bytes())
}

// pathReason returns the reason alone, since the caller names the file.
func pathReason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
