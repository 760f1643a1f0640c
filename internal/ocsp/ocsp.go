// Package ocsp finds out whether a server's certificate was revoked (specification: OCSP Support):
// from the response that is stapled to the TLS handshake, from a cache, or from the responders that
// the certificate names.
package ocsp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"

	"allium/internal/exchange"
)

// A Checker checks the certificates of one client's servers. It is safe for concurrent use. Nil
// checks nothing.
type Checker struct {
	// Roots returns who may vouch for a server, for connections whose TLS configuration does not
	// verify the chain by itself; nil: the system's.
	Roots func() *x509.CertPool
	// Verify makes the Checker build the chains of such connections. Without it they are not
	// checked.
	Verify bool
	// Responders says that responders are asked.
	Responders bool
	// Dial reaches responders. Nil: a net.Dialer.
	Dial DialFunc

	cache cache

	mu     sync.Mutex
	asked  map[certIdentifier]*question // under way
	closed bool
}

const (
	// skew is by how much the clock of a responder may be ahead.
	skew = 5 * time.Minute
	// freshness is how old a response may be that does not say when the next one is due.
	freshness = 24 * time.Hour
)

var (
	errMustStaple = errors.New("its issuer demands a stapled OCSP response, and there is none")
	errDelegate   = errors.New("signed by a certificate that its issuer has not made for that")
)

// Check returns an error if the certificate that a server has presented is revoked, or if what it
// says about it is not valid. A certificate whose status cannot be found out is accepted, as the
// specification asks ("soft fail"). Responders have Timeout to answer, but Check waits for patience
// and half of what is left of ctx at most, and not at all for those that said nothing the last
// time. If they answer later that the certificate is revoked, late is called with the error, by
// another goroutine; nil is not called. Errors are *tls.CertificateVerificationError.
func (c *Checker) Check(ctx context.Context, state *tls.ConnectionState, late func(error)) error {
	if c == nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	leaf := state.PeerCertificates[0]
	issuer := c.issuer(state)
	if issuer == nil {
		return nil
	}
	refusal := func(err error) error {
		if err == nil {
			return nil
		}
		return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates,
			Err: fmt.Errorf("certificate %s of %s: %w",
				leaf.SerialNumber.Text(16), exchange.Text([]byte(leaf.Subject.String())), err)}
	}
	return refusal(c.check(ctx, state, leaf, issuer, func(r *ocsp.Response) {
		if err := refusal(verdict(r)); err != nil && late != nil {
			late(err)
		}
	}))
}

// check follows the steps of "Suggested OCSP Behavior".
func (c *Checker) check(ctx context.Context, state *tls.ConnectionState, leaf, issuer *x509.Certificate,
	late func(*ocsp.Response)) error {
	id := certID(leaf, issuer)
	// A resumed session repeats what was stapled when it began, and was looked at then.
	switch {
	case state.DidResume:
	case len(state.OCSPResponse) > 0:
		r, err := parse(state.OCSPResponse, leaf, issuer, time.Now())
		if err != nil {
			return fmt.Errorf("stapled OCSP response: %w", exchange.Clean(err))
		}
		if conclusive(r) {
			c.cache.put(id, r)
			return verdict(r)
		}
	case mustStaple(leaf):
		return errMustStaple
	}
	if r := c.cache.get(id, time.Now()); r != nil {
		return verdict(r)
	}
	if !c.Responders || len(leaf.OCSPServer) == 0 {
		return nil
	}
	if r := c.ask(ctx, id, leaf, issuer, late); r != nil {
		return verdict(r)
	}
	return nil
}

// issuer returns the certificate of who has issued the server's, nil if the server is an authority
// itself or its chain is not verified: then there is nobody whose word on revocation counts.
func (c *Checker) issuer(state *tls.ConnectionState) *x509.Certificate {
	chains := state.VerifiedChains
	if len(chains) == 0 && c.Verify {
		chains, _ = Chains(state, c.Roots())
	}
	for _, chain := range chains {
		if len(chain) > 1 {
			return chain[1]
		}
	}
	return nil
}

// Chains verifies who has signed the server's certificate, but not for which host, and returns the
// chains that lead to roots.
func Chains(state *tls.ConnectionState, roots *x509.CertPool) ([][]*x509.Certificate, error) {
	intermediates := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	return state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})
}

var tlsFeature = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}

const statusRequest = 5

// mustStaple reports whether a certificate is to be accepted with a stapled response only (RFC
// 7633).
func mustStaple(cert *x509.Certificate) bool {
	for _, ext := range cert.Extensions {
		var features []int
		if ext.Id.Equal(tlsFeature) {
			if _, err := asn1.Unmarshal(ext.Value, &features); err == nil && slices.Contains(features, statusRequest) {
				return true
			}
		}
	}
	return false
}

// parse reads a response and holds it against RFC 6960, section 3.2.
func parse(der []byte, leaf, issuer *x509.Certificate, now time.Time) (*ocsp.Response, error) {
	r, err := ocsp.ParseResponseForCert(der, leaf, issuer) // checks the signature, and that it is about the certificate
	if err != nil {
		return nil, err
	}
	if signer := r.Certificate; signer != nil && !bytes.Equal(signer.Raw, issuer.Raw) {
		if !slices.Contains(signer.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning) || now.Before(signer.NotBefore) ||
			now.After(signer.NotAfter) {
			return nil, errDelegate
		}
	}
	switch {
	case r.ThisUpdate.After(now.Add(skew)):
		return nil, fmt.Errorf("it is of %v, which is to come", r.ThisUpdate)
	case r.NextUpdate.IsZero() && now.Sub(r.ThisUpdate) > freshness,
		!r.NextUpdate.IsZero() && !now.Before(r.NextUpdate):
		return nil, fmt.Errorf("it is of %v and out of date", r.ThisUpdate)
	}
	return r, nil
}

// conclusive reports whether a response settles the matter.
func conclusive(r *ocsp.Response) bool { return r.Status == ocsp.Good || r.Status == ocsp.Revoked }

func verdict(r *ocsp.Response) error {
	if r.Status == ocsp.Revoked {
		return fmt.Errorf("revoked on %s", r.RevokedAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// certID is what RFC 6960, section 4.1.1 identifies a certificate by.
type certIdentifier struct {
	issuerName, issuerKey [sha256.Size]byte
	serial                string
}

func certID(cert, issuer *x509.Certificate) certIdentifier {
	return certIdentifier{sha256.Sum256(issuer.RawSubject), sha256.Sum256(issuer.RawSubjectPublicKeyInfo),
		cert.SerialNumber.String()}
}
