package keyservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"allium/auth"
	"allium/encryption/kms"
	sources "allium/internal/auth"
	"allium/internal/exchange"
	"allium/internal/flight"
)

const (
	// tokenMargin is how long before it expires a token of an identity provider is no longer used,
	// metadataMargin the same for those of a metadata service (specification: Client Side
	// Encryption, "Obtaining an Access Token for Azure Key Vault").
	tokenMargin    = 5 * time.Second
	metadataMargin = time.Minute
	// metadataTimeout bounds a request to a metadata service.
	metadataTimeout = 10 * time.Second
	azureMetadata   = "169.254.169.254"
	gcpMetadata     = "metadata.google.internal"
)

// tokenKey says what a token is for. The scope follows from the master key's endpoint: a token for
// one service must not be shown to a host of another domain.
type tokenKey struct{ provider, scope string }

// token is the access token of one provider and scope. Client.mu guards it.
type token struct {
	value   auth.Secret
	expires time.Time
	request *flight.Flight[fetched] // that many goroutines may wait for; nil if there is none
}

// fetched is a token as a service hands it out.
type fetched struct {
	value   auth.Secret
	expires time.Time // zero: use it only once
}

// tokenLimit bounds a request for a token with all its attempts.
const tokenLimit = time.Minute

// cachedToken returns the token from the cache, or what fetch returns from endpoint; kept says that
// it was there before. Errors are not kept.
func (c *Client) cachedToken(ctx context.Context, key tokenKey, endpoint string,
	fetch func(context.Context) (fetched, error)) (value auth.Secret, kept bool, err error) {
	for {
		c.mu.Lock()
		t := c.tokens[key]
		if t == nil {
			t = &token{}
			c.tokens[key] = t
		}
		if time.Now().Before(t.expires) {
			value = t.value
			c.mu.Unlock()
			return value, true, nil
		}
		request := t.request
		own := request == nil || !request.Join()
		if own {
			request = c.requestToken(ctx, key, t, fetch)
		}
		c.mu.Unlock()
		f, err := request.Wait(ctx)
		if err == nil {
			return f.value, false, nil
		}
		if !own && ctx.Err() == nil && flight.Ended(err) {
			continue // the time of others was up
		}
		if _, ok := errors.AsType[*kms.Error](err); !ok {
			err = c.failed(ctx, key.provider, endpoint, 0, fmt.Errorf("access token: %w", err))
		}
		return "", false, err
	}
}

// requestToken begins a request for a token. c.mu is held.
func (c *Client) requestToken(ctx context.Context, key tokenKey, t *token,
	fetch func(context.Context) (fetched, error)) *flight.Flight[fetched] {
	var request *flight.Flight[fetched]
	request = flight.Start(ctx, tokenLimit, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if t.request == request {
			t.request = nil
		}
		if t.value == "" && t.request == nil && c.tokens[key] == t {
			delete(c.tokens, key) // scopes come from key documents: those that nobody gives a token for are not kept
		}
	}, func(ctx context.Context) (fetched, error) {
		f, err := fetch(ctx)
		if err != nil {
			return fetched{}, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		t.value, t.expires = f.value, f.expires
		return f, nil
	})
	t.request = request
	return request
}

// forgetToken forgets a token that a service has refused, unless there is another one by now.
func (c *Client) forgetToken(key tokenKey, refused auth.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tokens[key]; t != nil && t.value == refused {
		t.expires = time.Time{}
	}
}

// withCredential has send send a request with a credential. If the service refuses one that was
// kept, it is forgotten, and the request sent once more if there is another one.
func withCredential[C comparable](get func() (credential C, kept bool, err error), forget func(C),
	send func(C) error) error {
	credential, kept, err := get()
	if err != nil {
		return err
	}
	err = send(credential)
	if !refusesCredential(err) {
		return err
	}
	forget(credential)
	if !kept {
		return err
	}
	if other, _, failed := get(); failed == nil && other != credential {
		return send(other)
	}
	return err
}

// refusesCredential reports whether an answer says that a credential is not, or no longer, good.
// That one may not use a key is another thing.
func refusesCredential(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return false
	}
	switch r.status {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden, http.StatusBadRequest:
		return slices.ContainsFunc(expiredCodes, func(code string) bool { return strings.Contains(r.said, code) }) ||
			r.status == http.StatusForbidden && strings.Contains(strings.ToLower(r.said), "expired")
	}
	return false
}

// expiredCodes are those of Amazon's services, which say by them what 401 says elsewhere.
var expiredCodes = []string{"ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId", "InvalidToken",
	"TokenRefreshRequired"}

// postForm asks an identity provider for a token.
func (c *Client) postForm(ctx context.Context, provider, endpoint, path string, form url.Values) (fetched, error) {
	var out struct {
		AccessToken auth.Secret `json:"access_token"`
		ExpiresIn   json.Number `json:"expires_in"`
	}
	body := []byte(form.Encode())
	defer clear(body)
	secrets := []string{form.Get("client_secret"), url.QueryEscape(form.Get("client_secret")), form.Get("assertion")}
	start := time.Now()
	err := c.post(ctx, &request{provider: provider, endpoint: endpoint, path: path, body: body, secrets: secrets,
		header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}},
		&out)
	if err != nil {
		return fetched{}, err
	}
	if out.AccessToken == "" {
		return fetched{}, c.failed(ctx, provider, endpoint, http.StatusOK, missingField("access_token"))
	}
	return expiring(out.AccessToken, out.ExpiresIn.String(), start, tokenMargin), nil
}

// expiring returns a token that is valid for so many seconds from start on.
func expiring(value auth.Secret, seconds string, start time.Time, margin time.Duration) fetched {
	n, err := strconv.ParseFloat(seconds, 64)
	if err != nil || n < 0 || n > 1e9 {
		n = 0
	}
	return fetched{value, start.Add(time.Duration(n*float64(time.Second)) - margin)}
}

// azureMachineToken asks the metadata service of a virtual machine of Microsoft's.
func (c *Client) azureMachineToken(ctx context.Context) (fetched, error) {
	start := time.Now()
	body, err := c.askMetadata(ctx, "http://"+azureMetadata+
		"/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fvault.azure.net",
		http.Header{"Metadata": {"true"}, "Accept": {"application/json"}})
	if err != nil {
		return fetched{}, err
	}
	var out struct {
		AccessToken auth.Secret     `json:"access_token"`
		ExpiresIn   json.RawMessage `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return fetched{}, fmt.Errorf("metadata service's answer: %w", exchange.Clean(err))
	}
	seconds := string(out.ExpiresIn)
	if quoted, err := strconv.Unquote(seconds); err == nil {
		seconds = quoted
	}
	if _, err := strconv.ParseUint(seconds, 10, 32); err != nil {
		return fetched{}, errors.New("metadata service's answer: expires_in is missing or is not a number")
	}
	if out.AccessToken == "" {
		return fetched{}, errors.New("metadata service's answer: access_token is missing")
	}
	return expiring(out.AccessToken, seconds, start, metadataMargin), nil
}

// gcpMachineToken asks the metadata service of a virtual machine of Google's. Its tokens are not
// kept: the service keeps them.
func (c *Client) gcpMachineToken(ctx context.Context) (fetched, error) {
	body, err := c.askMetadata(ctx, "http://"+gcpMetadataHost()+
		"/computeMetadata/v1/instance/service-accounts/default/token", http.Header{"Metadata-Flavor": {"Google"}})
	if err != nil {
		return fetched{}, err
	}
	var out struct {
		AccessToken auth.Secret `json:"access_token"`
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return fetched{}, fmt.Errorf("metadata service's answer: %w", exchange.Clean(err))
	}
	if out.AccessToken == "" {
		return fetched{}, errors.New("metadata service's answer: access_token is missing")
	}
	return fetched{value: out.AccessToken}, nil
}

// gcpMetadataHost returns where Google's metadata service is.
func gcpMetadataHost() string {
	if host := os.Getenv("GCE_METADATA_HOST"); host != "" {
		return host
	}
	return gcpMetadata
}

// askMetadata asks the service of the machine that the program runs on.
func (c *Client) askMetadata(ctx context.Context, address string, header http.Header) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	return sources.Ask(ctx, c.meta, http.MethodGet, address, nil, header)
}
