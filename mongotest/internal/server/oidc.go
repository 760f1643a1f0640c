package server

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
)

// mechOIDC authenticates with the access token of an identity provider. Here a token is any text:
// whose it is is written down with the user, since nobody signs it.
const mechOIDC = "MONGODB-OIDC"

// oidcStart begins a conversation: with a token, which ends it, or with the name of the user, which
// is answered with the identity provider.
func (r *Request) oidcStart(payload []byte, dst []byte) ([]byte, error) {
	if r.Node.cfg.OIDC == nil {
		return dst, r.errMechanism(mechOIDC)
	}
	step := bson.Raw(payload)
	if step.Validate() != nil {
		return dst, account.ErrAuthentication()
	}
	if !step.Lookup("jwt").IsZero() {
		return r.oidcToken(payload, dst)
	}
	name, named := step.Lookup("n").StringValue()
	idp := account.FindProvider(r.Node.cfg.OIDC, name, named)
	if idp == nil {
		return dst, account.ErrAuthentication()
	}
	r.Conn.sasl = &conversation{last: (*Request).oidcToken}
	return r.appendSASL(dst, false, bsondoc.Build(func(d *bsondoc.Builder) {
		d.Str("issuer", idp.Issuer)
		if idp.ClientID != "" {
			d.Str("clientId", idp.ClientID)
		}
		if idp.RequestScopes != nil {
			d.B = bsondoc.AppendStrings(d.B, "requestScopes", idp.RequestScopes)
		}
	})), nil
}

// oidcToken ends a conversation with a token.
func (r *Request) oidcToken(payload []byte, dst []byte) ([]byte, error) {
	step := bson.Raw(payload)
	if step.Validate() != nil {
		return dst, account.ErrAuthentication()
	}
	token, _ := step.Lookup("jwt").StringValue()
	u := r.Node.data.accounts.TokenUser(token)
	if u == nil {
		return dst, account.ErrAuthentication()
	}
	r.Conn.setUser(u)
	return r.appendSASL(dst, true, nil), nil
}
