package auth

import (
	"allium/internal/redact"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// OIDC says where the access tokens of MONGODB-OIDC come from, if not from the property
// ENVIRONMENT. Set one of the callbacks. A callback is never called by two goroutines at once.
type OIDC struct {
	// Callback is for services: it returns an access token without human interaction. Its context
	// ends after ConnectTimeout or Timeout, whichever is shorter, and after a minute without a
	// Timeout.
	Callback OIDCCallback
	// HumanCallback lets a person log in at the identity provider that the server names. Its
	// context ends after five minutes, whatever the timeouts. Operations that wait for the login
	// end by their own timeouts, with an error that says so; the login goes on, and later ones use
	// it.
	HumanCallback OIDCCallback
	// AllowedHosts are the hosts that may receive the tokens of HumanCallback: names, "*." and a
	// domain for all names in it, or IP addresses, without ports. Nil: DefaultOIDCHosts. It is for
	// HumanCallback only.
	AllowedHosts []string
}

// DefaultOIDCHosts returns the hosts that may receive the tokens of OIDC.HumanCallback if
// OIDC.AllowedHosts is nil.
func DefaultOIDCHosts() []string {
	return []string{"*.mongodb.net", "*.mongodb-qa.net", "*.mongodb-dev.net", "*.mongodbgov.net", "localhost",
		"127.0.0.1", "::1", "*.mongo.com"}
}

// OIDCCallback returns an access token. It must return when ctx ends.
type OIDCCallback func(ctx context.Context, p OIDCParams) (OIDCCredential, error)

// OIDCParams are the parameters of a callback.
type OIDCParams struct {
	Version  int    // of these parameters and of what is returned: OIDCVersion
	Username string // of the credential, "" if it has none
	// IDP is the identity provider that the server names, and RefreshToken the one that the last
	// call returned, if it can still be used. Both are for HumanCallback.
	IDP          *IDPInfo
	RefreshToken string
}

// OIDCVersion is the version of the parameters of callbacks. It grows when the parameters change.
const OIDCVersion = 1

// IDPInfo describes an identity provider.
type IDPInfo struct {
	Issuer        string   `bson:"issuer"`        // its URL, where its metadata are found (RFC 8414)
	ClientID      string   `bson:"clientId"`      // the OIDC client's id; "" if the provider is for machines
	RequestScopes []string `bson:"requestScopes"` // further scopes to request
}

// OIDCCredential is the result of a callback.
type OIDCCredential struct {
	// AccessToken is sent to servers as it is. The client caches it until a server rejects it.
	AccessToken string
	// ExpiresIn is how long AccessToken is valid. Zero: it is not known. It must not be negative.
	ExpiresIn time.Duration
	// RefreshToken is for the next call of HumanCallback. Empty: none.
	RefreshToken string
}

// Format prints the parameters without the refresh token, whatever the verb.
func (p OIDCParams) Format(f fmt.State, _ rune) { redact.Fields(f, p.shown()) }

// MarshalJSON returns the parameters without the refresh token.
func (p OIDCParams) MarshalJSON() ([]byte, error) { return json.Marshal(p.shown()) }

// shownParams and shownCredential are what may be printed of OIDCParams and OIDCCredential.
type (
	shownParams struct {
		Version      int
		Username     string
		IDP          *IDPInfo
		RefreshToken Secret
	}
	shownCredential struct {
		AccessToken  Secret
		ExpiresIn    time.Duration
		RefreshToken Secret
	}
)

func (p OIDCParams) shown() shownParams {
	return shownParams{p.Version, p.Username, p.IDP, Secret(p.RefreshToken)}
}

// Format prints the credential without its tokens, whatever the verb.
func (c OIDCCredential) Format(f fmt.State, _ rune) { redact.Fields(f, c.shown()) }

// MarshalJSON returns the credential without its tokens.
func (c OIDCCredential) MarshalJSON() ([]byte, error) { return json.Marshal(c.shown()) }

func (c OIDCCredential) shown() shownCredential {
	return shownCredential{Secret(c.AccessToken), c.ExpiresIn, Secret(c.RefreshToken)}
}
