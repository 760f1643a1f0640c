package auth

import (
	"cmp"
	"fmt"
)

// A Mechanism is an authentication mechanism, by the name that connection strings and servers use.
type Mechanism string

// The authentication mechanisms.
const (
	MechanismScramSHA1   Mechanism = "SCRAM-SHA-1"
	MechanismScramSHA256 Mechanism = "SCRAM-SHA-256"
	MechanismX509        Mechanism = "MONGODB-X509"
	MechanismPlain       Mechanism = "PLAIN"
	MechanismGSSAPI      Mechanism = "GSSAPI"
	MechanismAWS         Mechanism = "MONGODB-AWS"
	MechanismOIDC        Mechanism = "MONGODB-OIDC"
)

// A Credential is who the client is and how it authenticates.
type Credential struct {
	// Username and Password are those of a user of the database, or of the directory that servers
	// ask.
	Username string
	Password Secret
	// PasswordSet says that an empty Password is a password, not the lack of one.
	PasswordSet bool
	// Source is the database that the user is defined in. Empty: the default of the mechanism,
	// mostly "admin".
	Source string
	// Mechanism is the authentication mechanism. Empty: SCRAM, negotiated with the server.
	Mechanism Mechanism
	// Properties are those of the mechanism, with names in any case. Those of MONGODB-OIDC are
	// ENVIRONMENT ("azure", "gcp" or "k8s", which provide access tokens by themselves) and, for the
	// first two, TOKEN_RESOURCE, the resource that the tokens are for.
	Properties map[string]string
}

// Format prints the credential without its secrets, whatever the verb.
func (c Credential) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "user %q of %q, mechanism %q", c.Username, c.Source, cmp.Or(c.Mechanism, "default"))
}
