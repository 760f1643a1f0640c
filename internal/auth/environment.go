package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
			body, err := Ask(ctx, client, http.MethodGet, azureTokens+"?"+query.Encode(), nil,
				http.Header{"Accept": {"application/json"}, "Metadata": {"true"}})
			if err != nil {
				return auth.OIDCCredential{}, err
			}
			var reply struct {
				AccessToken string `json:"access_token"`
			}
			if err := json.Unmarshal(body, &reply); err != nil {
				return auth.OIDCCredential{}, fmt.Errorf("metadata service's reply: %w", exchange.Clean(err))
			}
			return credential(reply.AccessToken)
		}
	case "gcp":
		return func(ctx context.Context, _ auth.OIDCParams) (auth.OIDCCredential, error) {
			query := url.Values{"audience": {resource}}
			body, err := Ask(ctx, client, http.MethodGet, gcpTokens+"?"+query.Encode(), nil,
				http.Header{"Metadata-Flavor": {"Google"}})
			if err != nil {
				return auth.OIDCCredential{}, err
			}
			return credential(string(body))
		}
	case "k8s":
		return func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			return tokenFromFile(cmp.Or(os.Getenv("AZURE_FEDERATED_TOKEN_FILE"),
				os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), kubernetesTokenFile))
		}
	case "test": // of the specification's own tests
		return func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			return tokenFromFile(os.Getenv("OIDC_TOKEN_FILE"))
		}
	}
	return nil
}

func tokenFromFile(name string) (auth.OIDCCredential, error) {
	token, err := readToken(name)
	return auth.OIDCCredential{AccessToken: token}, err
}

func credential(text string) (auth.OIDCCredential, error) {
	token, err := parseToken(text)
	return auth.OIDCCredential{AccessToken: token}, err
}

// maxToken bounds a token in bytes. The largest that are in use, those of Azure with many groups,
// have a few thousand.
const maxToken = 64 << 10

// readToken returns the token that a file holds. Its errors show nothing of the file, which may be
// another than was meant, with a key in it.
func readToken(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", err
	}
	token, err := parseToken(string(text))
	if err != nil {
		return "", fmt.Errorf("file %s: %w", name, err)
	}
	return token, nil
}

// parseToken returns an access token without the space around it. It is an error if that is none:
// printable ASCII (RFC 6749, appendix A.12) of at most maxToken bytes.
func parseToken(text string) (string, error) {
	if len(text) > maxToken {
		return "", fmt.Errorf("a token has at most %d bytes", maxToken)
	}
	token := strings.TrimSpace(text)
	if token == "" {
		return "", errors.New("there is no token")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errors.New(
			"what is there is no token: it has more than one line, or other characters than those of ASCII")
	}
	return token, nil
}
