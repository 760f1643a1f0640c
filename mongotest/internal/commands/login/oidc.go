package login

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
)

// MONGODB-OIDC authenticates with the access token of an identity provider. Here a token is any
// text: the registry says whose it is, since nobody signs it.

// oidcStart begins a conversation: with a token, which ends it, or with the name of the user, which
// is answered with the identity provider.
func oidcStart(r *server.Request, payload []byte, dst []byte) ([]byte, error) {
	if r.Node.Config().OIDC == nil {
		return dst, errMechanism(r, account.MechOIDC)
	}
	step := bson.Raw(payload)
	if step.Validate() != nil {
		return dst, account.ErrAuthentication()
	}
	if !step.Lookup("jwt").IsZero() {
		return oidcToken(r, payload, dst)
	}
	name, named := step.Lookup("n").StringValue()
	idp := account.FindProvider(r.Node.Config().OIDC, name, named)
	if idp == nil {
		return dst, account.ErrAuthentication()
	}
	r.Conn.SASL = &conversation{last: oidcToken}
	return appendSASL(r, dst, false, bsondoc.Build(func(d *bsondoc.Builder) {
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
func oidcToken(r *server.Request, payload []byte, dst []byte) ([]byte, error) {
	step := bson.Raw(payload)
	if step.Validate() != nil {
		return dst, account.ErrAuthentication()
	}
	token, _ := step.Lookup("jwt").StringValue()
	u := r.Node.Data().Accounts().TokenUser(token)
	if u == nil {
		return dst, account.ErrAuthentication()
	}
	if err := r.Conn.LogIn(u); err != nil {
		return dst, err
	}
	return appendSASL(r, dst, true, nil), nil
}
