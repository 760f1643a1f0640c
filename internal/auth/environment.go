package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"allium/auth"
	"allium/internal/exchange"
)

// The addresses of the metadata services, which virtual machines reach without leaving their host.
const (
	azureTokens = "http://169.254.169.254/metadata/identity/oauth2/token"
	gcpTokens   = "http://metadata/computeMetadata/v1/instance/service-accounts/default/identity"
)

const kubernetesTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// MetadataClient keeps no connections, since it is used once in an hour or so, and knows no
// proxies.
var MetadataClient = &http.Client{Transport: exchange.NewTransport(nil)}

// environmentCallback returns the callback of an environment that provides tokens by itself, nil if
// there is no such environment (specification: Authentication, "Built-in OIDC Environment
// Integrations"). resource is who the tokens are for.
func environmentCallback(name, resource string, client *http.Client) auth.OIDCCallback {
	switch name {
	case "azure":
		return func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
			query := url.Values{"api-version": {"2018-02-01"}, "resource": {resource}}
			if p.Username != "" {
				query.Set("client_id", p.Username)
			}
			body, err := Ask(ctx, client, http.MethodGet, azureTokens+"?"+query.Encode(), nil, http.Header{"Accept": {"application/json"}, "Metadata": {"true"}})
			if err != nil {
				return auth.OIDCCredential{}, err
			}
			var reply struct {
				AccessToken string `json:"access_token"`
			}
			if err := json.Unmarshal(body, &reply); err != nil {
				return auth.OIDCCredential{}, fmt.Errorf("metadata service's reply: %w", exchange.Clean(err))
			}
			return auth.OIDCCredential{AccessToken: reply.AccessToken}, nil
		}
	case "gcp":
		return func(ctx context.Context, _ auth.OIDCParams) (auth.OIDCCredential, error) {
			query := url.Values{"audience": {resource}}
			body, err := Ask(ctx, client, http.MethodGet, gcpTokens+"?"+query.Encode(), nil, http.Header{"Metadata-Flavor": {"Google"}})
			return auth.OIDCCredential{AccessToken: strings.TrimSpace(string(body))}, err
		}
	case "k8s":
		return func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			return tokenFromFile(cmp.Or(os.Getenv("AZURE_FEDERATED_TOKEN_FILE"), os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), kubernetesTokenFile))
		}
	case "test": // of the specification's own tests
		return func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			return tokenFromFile(os.Getenv("OIDC_TOKEN_FILE"))
		}
	}
	return nil
}

func tokenFromFile(name string) (auth.OIDCCredential, error) {
	text, err := os.ReadFile(name)
	return auth.OIDCCredential{AccessToken: strings.TrimSpace(string(text))}, err
}
