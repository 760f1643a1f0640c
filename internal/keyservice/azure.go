package keyservice

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"allium/auth"
	"allium/encryption/kms"
)

const (
	azureLogin = "login.microsoftonline.com"
	// azureVaults is the domain of the vaults that a token is for if the vault's address does not
	// say.
	azureVaults = "vault.azure.net"
)

// azureService is Microsoft's key service.
type azureService struct {
	c    *Client
	name string
	p    kms.Azure
}

// scope returns what a token for a key is for.
func (s *azureService) scope(key kms.AzureKey) tokenKey {
	if s.p.OnDemand() {
		return tokenKey{provider: s.name}
	}
	return tokenKey{s.name, "https://" + vaultDomain(key.VaultEndpoint) + "/.default"}
}

func (s *azureService) token(ctx context.Context, key kms.AzureKey) (value auth.Secret, kept bool, err error) {
	c, p := s.c, &s.p
	if p.AccessToken != "" {
		return p.AccessToken, false, nil
	}
	scope := s.scope(key)
	if p.OnDemand() {
		return c.cachedToken(ctx, scope, withPort(azureMetadata, httpPort), func(ctx context.Context) (fetched, error) {
			f, err := c.azureMachineToken(ctx)
			return f, c.failed(ctx, s.name, withPort(azureMetadata, httpPort), 0, err)
		})
	}
	endpoint := p.IdentityPlatformEndpoint
	if endpoint == "" {
		endpoint = azureLogin
	}
	endpoint = withPort(endpoint, httpsPort)
	return c.cachedToken(ctx, scope, endpoint, func(ctx context.Context) (fetched, error) {
		return c.postForm(ctx, s.name, endpoint, "/"+url.PathEscape(p.TenantID)+"/oauth2/v2.0/token", url.Values{
			"client_id": {p.ClientID}, "client_secret": {string(p.ClientSecret)}, "grant_type": {"client_credentials"},
			"scope": {scope.scope},
		})
	})
}

// vaultDomain returns the domain that the vault is in: its host without the first label.
func vaultDomain(endpoint string) string {
	host, _, _ := strings.Cut(bare(endpoint), ":")
	if _, domain, ok := strings.Cut(host, "."); ok && domain != "" {
		return domain
	}
	return azureVaults
}

// azureRequest builds the request to wrap or to unwrap a key.
func azureRequest(provider string, key kms.AzureKey, operation string, value []byte, token auth.Secret) *request {
	// The path has a place for the version even if there is none.
	path := "/keys/" + url.PathEscape(key.Name) + "/" + url.PathEscape(key.Version)
	encoded := base64.RawURLEncoding.EncodeToString(value)
	return &request{
		provider: provider, endpoint: key.VaultEndpoint, path: path + "/" + operation + "?api-version=7.1",
		header: http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"},
			"Authorization": {"Bearer " + string(token)}},
		body:    fmt.Appendf(nil, `{"alg": "RSA-OAEP-256", "value": "%s"}`, encoded),
		secrets: []string{string(token), encoded},
	}
}

// ask has the service wrap or unwrap a key.
func (s *azureService) ask(ctx context.Context, key kms.AzureKey, operation string, value []byte) ([]byte, error) {
	var out struct {
		Value string `json:"value"`
	}
	err := withCredential(
		func() (auth.Secret, bool, error) { return s.token(ctx, key) },
		func(token auth.Secret) { s.c.forgetToken(s.scope(key), token) },
		func(token auth.Secret) error {
			r := azureRequest(s.name, key, operation, value, token)
			defer clear(r.body)
			return s.c.post(ctx, r, &out)
		})
	if err != nil {
		return nil, err
	}
	if out.Value == "" {
		return nil, s.c.failed(ctx, s.name, withPort(key.VaultEndpoint, httpsPort), http.StatusOK,
			missingField("value"))
	}
	result, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(out.Value, "="))
	if err != nil {
		return nil, s.c.failed(ctx, s.name, withPort(key.VaultEndpoint, httpsPort), http.StatusOK, errBase64)
	}
	return result, nil
}

func (s *azureService) wrap(ctx context.Context, key kms.MasterKey, material []byte) (kms.MasterKey, []byte, error) {
	wrapped, err := s.ask(ctx, key.(kms.AzureKey), "wrapkey", material)
	return key, wrapped, err
}

func (s *azureService) unwrap(ctx context.Context, key kms.MasterKey, wrapped []byte) ([]byte, error) {
	return s.ask(ctx, key.(kms.AzureKey), "unwrapkey", wrapped)
}
