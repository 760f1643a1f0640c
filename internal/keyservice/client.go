// Package keyservice wraps and unwraps data keys of in-use encryption with the master keys of key
// services: Amazon's, Microsoft's, Google's, those of KMIP servers, and keys that the program holds
// itself (specification: Client Side Encryption, "KMSProviders"). Package encryption/kms has the
// types by which a program names them.
//
// A Client sends requests over TLS connections of its own, one for each request, and repeats those
// that failed for a passing reason. Nothing that it returns or logs holds key material or a
// credential.
package keyservice

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"allium/encryption/kms"
	sources "allium/internal/auth"
	"allium/internal/fle"
)

// KeySize is the size of a data key, in bytes.
const KeySize = 96

const (
	// attemptTimeout bounds one request with its connection.
	attemptTimeout = 10 * time.Second
	httpPort       = "80"
	httpsPort      = "443"
	kmipPort       = "5696"
)

// past is a deadline that ends whatever a connection is doing.
var past = time.Unix(1, 0)

// Config says which key services there are and how they are reached.
type Config struct {
	Providers kms.Providers
	// TLS has the settings of single providers, by name. Others trust the authorities of the
	// system.
	TLS map[string]*tls.Config
	// TLSFiles has those of providers whose certificates are in files, which may be replaced.
	TLSFiles map[string]TLSSource
	// Dial makes the connections on top of which TLS runs, in place of net.Dialer.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Revocation checks whether the certificate of a key service was revoked, and may tell so
	// later; nil checks nothing (specification: OCSP Support).
	Revocation func(ctx context.Context, state *tls.ConnectionState, late func(error)) error
	// Observe is told of each request when it has ended, if it is not nil.
	Observe func(context.Context, Request)
	// Random is where random bytes come from. Nil: crypto/rand.
	Random io.Reader
}

// A TLSSource says for each connection how to do TLS.
type TLSSource interface {
	// Config returns the settings, which are not changed.
	Config() *tls.Config
	// Advise adds to an error what may have to be done about it.
	Advise(error) error
}

// Request is what Config.Observe gets to see of a request.
type Request struct {
	Provider, Endpoint string
	Duration           time.Duration
	Attempt            int // from 1 on
	Err                error
}

// service is one configured key service.
type service interface {
	// check returns an error if a master key, of the service's kind, names a host that is not to be
	// trusted with a credential.
	check(key kms.MasterKey) error
	// wrap wraps the material of a data key with a master key of the service's kind. It returns the
	// master key as it is to be stored.
	wrap(ctx context.Context, key kms.MasterKey, material []byte) (kms.MasterKey, []byte, error)
	// unwrap returns the material, of any length.
	unwrap(ctx context.Context, key kms.MasterKey, wrapped []byte) ([]byte, error)
}

// Client talks to key services. Safe for concurrent use.
type Client struct {
	config   Config
	services map[string]service // by name
	aws      *sources.AWSKeys   // of the provider "aws", if its credentials come on demand
	meta     *http.Client       // asks the metadata services
	// backoff is how long to wait before the attempt after the n-th.
	backoff func(n int) time.Duration

	mu     sync.Mutex
	tokens map[tokenKey]*token
}

// New returns a client for the key services of a configuration, or what is wrong with it. It does
// no I/O.
func New(c Config) (*Client, error) {
	if err := c.Providers.Check(); err != nil {
		return nil, err
	}
	for name := range c.TLSFiles {
		if _, ok := c.Providers[name]; !ok {
			return nil, fmt.Errorf("TLS settings for the key service %q, which is not configured", name)
		}
		if _, ok := c.TLS[name]; ok {
			return nil, fmt.Errorf("key service %q: TLS and TLSFiles exclude each other", name)
		}
	}
	for name, t := range c.TLS {
		if _, ok := c.Providers[name]; !ok {
			return nil, fmt.Errorf("TLS settings for the key service %q, which is not configured", name)
		}
		// Specification: Client Side Encryption, "KMS provider TLS options": insecure ones are
		// prohibited.
		if t != nil && t.InsecureSkipVerify {
			return nil, fmt.Errorf("key service %q: insecure TLS options prohibited: InsecureSkipVerify", name)
		}
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	client := &Client{config: c, services: map[string]service{}, tokens: map[tokenKey]*token{},
		meta: sources.MetadataClient, backoff: backoff}
	if p, ok := c.Providers["aws"].(kms.AWS); ok && p.OnDemand() {
		client.aws = sources.NewAWSKeys(p.Credentials, attemptTimeout)
	}
	for name, p := range c.Providers {
		client.services[name] = client.service(name, p)
	}
	return client, nil
}

// service returns the key service of a provider.
func (c *Client) service(name string, p kms.Provider) service {
	switch p := p.(type) {
	case kms.AWS:
		return &awsService{c, name, p}
	case kms.Azure:
		return &azureService{c, name, p}
	case kms.GCP:
		return &gcpService{c, name, p}
	case kms.KMIP:
		return &kmipService{c, name, p}
	}
	return &localService{c, p.(kms.Local)} // Providers.Check knows no other
}

// Wrap wraps the material of a data key with a master key of the named provider. It returns the
// master key as it is to be stored with the result: a KMIP server may have made it just now.
func (c *Client) Wrap(ctx context.Context, provider string, key kms.MasterKey,
	material []byte) (kms.MasterKey, []byte, error) {
	s, err := c.find(provider, key)
	if err != nil {
		return nil, nil, err
	}
	if len(material) != KeySize {
		return nil, nil, fmt.Errorf("key material has %d bytes instead of %d", len(material), KeySize)
	}
	return s.wrap(ctx, key, material)
}

// Unwrap returns the material of a data key that a master key of the named provider wraps.
func (c *Client) Unwrap(ctx context.Context, provider string, key kms.MasterKey, wrapped []byte) ([]byte, error) {
	s, err := c.find(provider, key)
	if err != nil {
		return nil, err
	}
	material, err := s.unwrap(ctx, key, wrapped)
	if err != nil {
		return nil, err
	}
	if len(material) != KeySize {
		clear(material)
		return nil, fmt.Errorf("decrypted key is incorrect length, expected: %d, got: %d", KeySize, len(material))
	}
	return material, nil
}

// find returns the key service of a name, if the master key is of its kind.
func (c *Client) find(name string, key kms.MasterKey) (service, error) {
	s, ok := c.services[name]
	if !ok {
		return nil, fmt.Errorf("requested kms provider not configured: `%s`", name)
	}
	if err := kms.CheckMasterKey(name, key); err != nil {
		return nil, err
	}
	return s, s.check(key)
}

// localService wraps with a master key that the program holds itself.
type localService struct {
	c *Client
	p kms.Local
}

func (s *localService) wrap(_ context.Context, key kms.MasterKey, material []byte) (kms.MasterKey, []byte, error) {
	wrapped, err := s.c.wrapHere(s.p.Key, material)
	return key, wrapped, err
}

func (s *localService) unwrap(_ context.Context, _ kms.MasterKey, wrapped []byte) ([]byte, error) {
	return fle.UnwrapKey(s.p.Key, wrapped)
}

// wrapHere wraps with a master key that is at hand.
func (c *Client) wrapHere(master, material []byte) ([]byte, error) {
	return fle.WrapKey(master, material, c.config.Random)
}

// dial makes a TLS connection to a key service. The name that is verified is the service's,
// whatever Config.Dial connects to.
func (c *Client) dial(ctx context.Context, provider, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dial := c.config.Dial
	if dial == nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	if conn == nil {
		return nil, errors.New("the connect callback returned no connection")
	}
	settings := &tls.Config{}
	files := c.config.TLSFiles[provider]
	if files != nil {
		settings = files.Config().Clone()
	} else if t := c.config.TLS[provider]; t != nil {
		settings = t.Clone()
	}
	if settings.ServerName == "" {
		settings.ServerName = host
	}
	settings.NextProtos = nil
	secure := tls.Client(conn, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		if files != nil {
			err = files.Advise(err)
		}
		return nil, err
	}
	if c.config.Revocation != nil {
		state := secure.ConnectionState()
		if err := c.config.Revocation(ctx, &state, func(error) { conn.Close() }); err != nil {
			conn.Close()
			return nil, &permanentError{err}
		}
	}
	return secure, nil
}

// bare returns an address without what a URL has around it.
func bare(endpoint string) string {
	if rest, ok := strings.CutPrefix(endpoint, "https://"); ok {
		endpoint, _, _ = strings.Cut(rest, "/")
	}
	return endpoint
}

// withPort returns the address with its port, which is the given one if it has none.
func withPort(endpoint, port string) string {
	endpoint = bare(endpoint)
	if _, _, err := net.SplitHostPort(endpoint); err == nil {
		return endpoint
	}
	return net.JoinHostPort(strings.Trim(endpoint, "[]"), port)
}
