package auth

import (
	"cmp"
	"fmt"
)

// The authentication mechanisms.
const (
	MechanismScramSHA1   = "SCRAM-SHA-1"
	MechanismScramSHA256 = "SCRAM-SHA-256"
	MechanismX509        = "MONGODB-X509"
	MechanismPlain       = "PLAIN"
	MechanismGSSAPI      = "GSSAPI"
	MechanismAWS         = "MONGODB-AWS"
	MechanismOIDC        = "MONGODB-OIDC"
)

// A Credential is who the client is and how it authenticates.
type Credential struct {
	Username string
	Password Secret
	// PasswordSet says that an empty Password is a password, not the lack of one.
	PasswordSet bool
	// Source is the database that the user is defined in. Empty: the default of the mechanism,
	// mostly "admin".
	Source string
	// Mechanism is the authentication mechanism. Empty: SCRAM, negotiated with the server.
	Mechanism string
	// Properties are those of the mechanism, with names in any case. Those of MONGODB-OIDC are
	// ENVIRONMENT ("azure", "gcp" or "k8s", which provide access tokens by themselves) and, for the
	// first two, TOKEN_RESOURCE, the resource that the tokens are for.
	Properties map[string]string
}

// Format prints the credential without its secrets, whatever the verb.
func (c Credential) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "user %q of %q, mechanism %q", c.Username, c.Source, cmp.Or(c.Mechanism, "default"))
}
