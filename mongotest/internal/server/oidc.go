package server

import (
	"regexp"
	"slices"

	"allium/bson"
)

// mechOIDC authenticates with the access token of an identity provider. Here a token is any text: whose it is is written down with
// the user, since nobody signs it.
const mechOIDC = "MONGODB-OIDC"

// IdentityProvider is one that users of MONGODB-OIDC may have tokens of.
type IdentityProvider struct {
	Issuer, ClientID string
	RequestScopes    []string
	Match            *regexp.Regexp // of the names of its users; nil: all
}

// oidcStart begins a conversation: with a token, which ends it, or with the name of the user, which is answered with the identity
// provider.
func (r *Request) oidcStart(payload []byte, dst []byte) ([]byte, error) {
	if r.Node.cfg.OIDC == nil {
		return dst, errMechanism(mechOIDC)
	}
	step := bson.Raw(payload)
	if step.Validate() != nil {
		return dst, errAuthentication()
	}
	if !step.Lookup("jwt").IsZero() {
		return r.oidcToken(payload, dst)
	}
	name, named := step.Lookup("n").StringValue()
	idp := r.Node.cfg.provider(name, named)
	if idp == nil {
		return dst, errAuthentication()
	}
	r.Conn.sasl = &conversation{last: (*Request).oidcToken}
	return appendSASL(dst, false, build(func(d *docBuilder) {
		d.str("issuer", idp.Issuer)
		if idp.ClientID != "" {
			d.str("clientId", idp.ClientID)
		}
		if idp.RequestScopes != nil {
			d.b = appendStrings(d.b, "requestScopes", idp.RequestScopes)
		}
	})), nil
}

// provider returns the identity provider of a user. Who does not say a name has to have the only one.
func (c *Config) provider(name string, named bool) *IdentityProvider {
	if !named {
		if len(c.OIDC) != 1 {
			return nil
		}
		return &c.OIDC[0]
	}
	for i := range c.OIDC {
		if p := &c.OIDC[i]; p.Match == nil || p.Match.MatchString(name) {
			return p
		}
	}
	return nil
}

// oidcToken ends a conversation with a token.
func (r *Request) oidcToken(payload []byte, dst []byte) ([]byte, error) {
	step := bson.Raw(payload)
	if step.Validate() != nil {
		return dst, errAuthentication()
	}
	token, _ := step.Lookup("jwt").StringValue()
	u := r.Node.data.tokenUser(token)
	if u == nil {
		return dst, errAuthentication()
	}
	r.Conn.user = u
	return appendSASL(dst, true, nil), nil
}

// tokenUser returns the user who has an access token.
func (d *Data) tokenUser(token string) *User {
	if token == "" {
		return nil
	}
	list := d.listUsers(func(u *User) bool { return slices.Contains(u.Tokens, token) })
	if len(list) == 0 {
		return nil
	}
	return list[0]
}
