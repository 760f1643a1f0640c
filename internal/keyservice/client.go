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
	// Dial makes the connections on top of which TLS runs, in place of net.Dialer.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Observe is told of each request when it has ended, if it is not nil.
	Observe func(Request)
	// Random is where random bytes come from. Nil: crypto/rand.
	Random io.Reader
}

// Request is what Config.Observe gets to see of a request.
type Request struct {
	Provider, Endpoint string
	Duration           time.Duration
	Attempt            int // from 1 on
	Err                error
}

// Client talks to key services. Safe for concurrent use.
type Client struct {
	config Config
	aws    *sources.AWSKeys // of the provider "aws", if its credentials come on demand
	meta   *http.Client     // asks the metadata services
	// backoff is how long to wait before the attempt after the n-th.
	backoff func(n int) time.Duration

	mu     sync.Mutex
	tokens map[string]*token // by provider
}

// New returns a client for the key services of a configuration, or what is wrong with it. It does
// no I/O.
func New(c Config) (*Client, error) {
	if err := c.Providers.Check(); err != nil {
		return nil, err
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
	client := &Client{config: c, tokens: map[string]*token{}, meta: sources.MetadataClient, backoff: backoff}
	if p, ok := c.Providers["aws"].(kms.AWS); ok && p.OnDemand() {
		client.aws = sources.NewAWSKeys(p.Credentials, attemptTimeout)
	}
	return client, nil
}

// Wrap wraps the material of a data key with a master key of the named provider. It returns the
// master key as it is to be stored with the result: a KMIP server may have made it just now.
func (c *Client) Wrap(ctx context.Context, provider string, key kms.MasterKey, material []byte) (kms.MasterKey, []byte, error) {
	p, err := c.provider(provider)
	if err != nil {
		return nil, nil, err
	}
	if err := kms.CheckMasterKey(provider, key); err != nil {
		return nil, nil, err
	}
	if len(material) != KeySize {
		return nil, nil, fmt.Errorf("key material has %d bytes instead of %d", len(material), KeySize)
	}
	var wrapped []byte
	switch p := p.(type) {
	case kms.Local:
		wrapped, err = c.wrapHere(p.Key, material)
	case kms.AWS:
		wrapped, err = c.awsEncrypt(ctx, provider, p, key.(kms.AWSKey), material)
	case kms.Azure:
		wrapped, err = c.azureWrap(ctx, provider, p, key.(kms.AzureKey), material)
	case kms.GCP:
		wrapped, err = c.gcpEncrypt(ctx, provider, p, key.(kms.GCPKey), material)
	case kms.KMIP:
		key, wrapped, err = c.kmipWrap(ctx, provider, p, key.(kms.KMIPKey), material)
	}
	if err != nil {
		return nil, nil, err
	}
	return key, wrapped, nil
}

// Unwrap returns the material of a data key that a master key of the named provider wraps.
func (c *Client) Unwrap(ctx context.Context, provider string, key kms.MasterKey, wrapped []byte) ([]byte, error) {
	p, err := c.provider(provider)
	if err != nil {
		return nil, err
	}
	if err := kms.CheckMasterKey(provider, key); err != nil {
		return nil, err
	}
	var material []byte
	switch p := p.(type) {
	case kms.Local:
		material, err = fle.UnwrapKey(p.Key, wrapped)
	case kms.AWS:
		material, err = c.awsDecrypt(ctx, provider, p, key.(kms.AWSKey), wrapped)
	case kms.Azure:
		material, err = c.azureUnwrap(ctx, provider, p, key.(kms.AzureKey), wrapped)
	case kms.GCP:
		material, err = c.gcpDecrypt(ctx, provider, p, key.(kms.GCPKey), wrapped)
	case kms.KMIP:
		material, err = c.kmipUnwrap(ctx, provider, p, key.(kms.KMIPKey), wrapped)
	}
	if err != nil {
		return nil, err
	}
	if len(material) != KeySize {
		clear(material)
		return nil, fmt.Errorf("decrypted key is incorrect length, expected: %d, got: %d", KeySize, len(material))
	}
	return material, nil
}

func (c *Client) provider(name string) (kms.Provider, error) {
	p, ok := c.config.Providers[name]
	if !ok {
		return nil, fmt.Errorf("requested kms provider not configured: `%s`", name)
	}
	return p, nil
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
	if t := c.config.TLS[provider]; t != nil {
		settings = t.Clone()
	}
	if settings.ServerName == "" {
		settings.ServerName = host
	}
	settings.NextProtos = nil
	secure := tls.Client(conn, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// withPort returns the address with its port, which is the given one if it has none.
func withPort(endpoint, port string) string {
	if _, _, err := net.SplitHostPort(endpoint); err == nil {
		return endpoint
	}
	return net.JoinHostPort(strings.Trim(endpoint, "[]"), port)
}
