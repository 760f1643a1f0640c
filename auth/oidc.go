package auth

import (
	"allium/internal/redact"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// OIDC says where the access tokens of MONGODB-OIDC come from, if not from the property ENVIRONMENT. One of
// the callbacks is set. No callback is called by two goroutines at once.
type OIDC struct {
	// Callback is for services: it returns an access token without anybody's help, within the context's time, which is that of
	// ConnectTimeout or Timeout, whichever is shorter, and a minute without a Timeout.
	Callback OIDCCallback
	// HumanCallback has a person log in at the identity provider that the server names. It has five minutes, whatever the timeouts.
	HumanCallback OIDCCallback
	// AllowedHosts are the hosts that what HumanCallback returns may be sent to: names, "*." and a domain for all names in it, or IP
	// addresses, without ports. Nil: DefaultOIDCHosts. It goes with HumanCallback only.
	AllowedHosts []string
}

// DefaultOIDCHosts returns the hosts that the token of a person may be sent to if OIDC.AllowedHosts does not say.
func DefaultOIDCHosts() []string {
	return []string{"*.mongodb.net", "*.mongodb-qa.net", "*.mongodb-dev.net", "*.mongodbgov.net", "localhost", "127.0.0.1", "::1", "*.mongo.com"}
}

// OIDCCallback returns an access token. When ctx ends, it must return.
type OIDCCallback func(ctx context.Context, p OIDCParams) (OIDCCredential, error)

// OIDCParams are what a callback gets.
type OIDCParams struct {
	Version  int    // of these parameters and of what is returned: OIDCVersion
	Username string // of the credential, "" if it has none
	// IDP is the identity provider that the server names, and RefreshToken what the last call returned, if that can still be used.
	// Both are for HumanCallback.
	IDP          *IDPInfo
	RefreshToken string
}

// OIDCVersion is the version of the parameters of callbacks. It will grow when something changes that a callback may want to
// know about.
const OIDCVersion = 1

// IDPInfo is an identity provider.
type IDPInfo struct {
	Issuer        string   `bson:"issuer"`        // its URL, where its metadata are found (RFC 8414)
	ClientID      string   `bson:"clientId"`      // the OIDC client's id; "" if the provider is for machines
	RequestScopes []string `bson:"requestScopes"` // to ask for besides
}

// OIDCCredential is what a callback returns.
type OIDCCredential struct {
	// AccessToken is sent to servers as it is. The client keeps it until a server refuses it.
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
