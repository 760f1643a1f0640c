package keyservice

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"allium/auth"
	"allium/encryption/kms"
)

const (
	gcpLogin = "oauth2.googleapis.com"
	gcpKeys  = "cloudkms.googleapis.com"
	// assertionLife is how long the claim is valid that is exchanged for a token.
	assertionLife = 5 * time.Minute
)

//lint:ignore ST1005 the text is that of other drivers
var errBase64 = errors.New("Failed to base64 decode the answer")

// gcpService is Google's key service.
type gcpService struct {
	c    *Client
	name string
	p    kms.GCP
}

func (s *gcpService) token(ctx context.Context, key kms.GCPKey) (value auth.Secret, kept bool, err error) {
	c, p := s.c, &s.p
	if p.AccessToken != "" {
		return p.AccessToken, false, nil
	}
	if p.OnDemand() {
		f, err := c.gcpMachineToken(ctx)
		return f.value, false, c.failed(ctx, s.name, withPort(gcpMetadataHost(), httpPort), 0, err)
	}
	endpoint := p.Endpoint
	if endpoint == "" {
		endpoint = gcpLogin
	}
	endpoint = withPort(endpoint, httpsPort)
	scope := s.scope(key)
	return c.cachedToken(ctx, scope, endpoint, func(ctx context.Context) (fetched, error) {
		assertion, err := c.gcpAssertion(p, endpoint, scope.scope, time.Now())
		if err != nil {
			return fetched{}, c.failed(ctx, s.name, endpoint, 0, err)
		}
		return c.postForm(ctx, s.name, endpoint, "/token", url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion},
		})
	})
}

// scope returns what a token for a key is for.
func (s *gcpService) scope(key kms.GCPKey) tokenKey {
	return tokenKey{s.name, gcpDomain(key.Endpoint)}
}

// gcpDomain returns the domain that the service is in, which is part of the token's scope.
func gcpDomain(endpoint string) string {
	host, _, _ := strings.Cut(bare(endpoint), ":")
	if _, domain, ok := strings.Cut(host, "."); ok && domain != "" {
		return domain
	}
	return "googleapis.com"
}

// gcpAssertion signs the claim of a service account (RFC 7523): a JSON web token with RS256.
func (c *Client) gcpAssertion(p *kms.GCP, endpoint, domain string, now time.Time) (string, error) {
	key, err := parseRSAKey(p.PrivateKey)
	if err != nil {
		return "", err
	}
	host, _, _ := strings.Cut(bare(endpoint), ":")
	claims, err := json.Marshal(struct {
		Issuer   string `json:"iss"`
		Audience string `json:"aud"`
		Scope    string `json:"scope"`
		IssuedAt int64  `json:"iat"`
		Expires  int64  `json:"exp"`
	}{p.Email, "https://" + host + "/token", "https://www." + domain + "/auth/cloudkms", now.Unix(),
		now.Add(assertionLife).Unix()})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("GCP private key: %w", err)
	}
	return signed + "." + encode(signature), nil
}

func parseRSAKey(data []byte) (*rsa.PrivateKey, error) {
	if block, _ := pem.Decode(data); block != nil {
		data = block.Bytes
	}
	key, err := x509.ParsePKCS8PrivateKey(data)
	if err != nil {
		return nil, errors.New("GCP private key: it is not in PKCS #8") // the cause may quote the key
	}
	private, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("GCP private key: expected an RSA key, got %T", key)
	}
	return private, nil
}

// gcpRequest builds the request to encrypt or to decrypt a key. A request to decrypt names no
// version: the service knows it.
func gcpRequest(provider string, key kms.GCPKey, operation, field string, value []byte,
	token auth.Secret) (*request, error) {
	path := "/v1"
	add := func(kind, name string) error {
		for _, char := range []byte(name) {
			if !('a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || '0' <= char && char <= '9' ||
				strings.IndexByte("-._~", char) >= 0) {
				//lint:ignore ST1005 the text is that of other drivers
				return fmt.Errorf("Invalid character in GCP KMS key identifier: %q", char)
			}
		}
		path += "/" + kind + "/" + name
		return nil
	}
	err := errors.Join(add("projects", key.ProjectID), add("locations", key.Location), add("keyRings", key.KeyRing),
		add("cryptoKeys", key.Name))
	if key.Version != "" && operation == "encrypt" {
		err = errors.Join(err, add("cryptoKeyVersions", key.Version))
	}
	if err != nil {
		return nil, err
	}
	encoded := base64.StdEncoding.EncodeToString(value)
	return &request{
		provider: provider, endpoint: gcpEndpoint(key), path: path + ":" + operation,
		header: http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"},
			"Authorization": {"Bearer " + string(token)}},
		body:    fmt.Appendf(nil, `{"%s": "%s"}`, field, encoded),
		secrets: []string{string(token), encoded},
	}, nil
}

// gcpEndpoint returns where the key is.
func gcpEndpoint(key kms.GCPKey) string {
	if key.Endpoint != "" {
		return withPort(key.Endpoint, httpsPort)
	}
	return withPort(gcpKeys, httpsPort)
}

// ask has the service encrypt or decrypt a key.
func (s *gcpService) ask(ctx context.Context, key kms.GCPKey, operation, from string, value []byte, out any) error {
	return withCredential(
		func() (auth.Secret, bool, error) { return s.token(ctx, key) },
		func(token auth.Secret) { s.c.forgetToken(s.scope(key), token) },
		func(token auth.Secret) error {
			r, err := gcpRequest(s.name, key, operation, from, value, token)
			if err != nil {
				return s.c.failed(ctx, s.name, gcpEndpoint(key), 0, err)
			}
			defer clear(r.body)
			return s.c.post(ctx, r, out)
		})
}

func (s *gcpService) wrap(ctx context.Context, key kms.MasterKey, material []byte) (kms.MasterKey, []byte, error) {
	var out struct {
		Ciphertext []byte `json:"ciphertext"`
	}
	err := s.ask(ctx, key.(kms.GCPKey), "encrypt", "plaintext", material, &out)
	if err == nil && len(out.Ciphertext) == 0 {
		err = s.c.failed(ctx, s.name, gcpEndpoint(key.(kms.GCPKey)), http.StatusOK, missingField("ciphertext"))
	}
	return key, out.Ciphertext, err
}

func (s *gcpService) unwrap(ctx context.Context, key kms.MasterKey, wrapped []byte) ([]byte, error) {
	var out struct {
		Plaintext []byte `json:"plaintext"`
	}
	err := s.ask(ctx, key.(kms.GCPKey), "decrypt", "ciphertext", wrapped, &out)
	if err == nil && len(out.Plaintext) == 0 {
		err = s.c.failed(ctx, s.name, gcpEndpoint(key.(kms.GCPKey)), http.StatusOK, missingField("plaintext"))
	}
	return out.Plaintext, err
}
