package allium_test

import (
	"os"
	"strings"
	"testing"

	"allium"
)

// TestAuthenticationMessages compares what docs/authentication.md says of errors that Open returns
// with what it returns.
func TestAuthenticationMessages(t *testing.T) {
	page, err := os.ReadFile("docs/authentication.md")
	if err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		"mongodb://ada:secret@h/?authMechanism=MONGODB-X509&tls=true": "mechanism MONGODB-X509: there must be no password",
		"mongodb://ada:secret@h/?authMechanism=PLAIN":                 "the password would be sent in clear: switch TLS on, or set ClientOptions.AllowPlainWithoutTLS",
		"mongodb://ada@h/?authMechanism=GSSAPI":                       `mechanism GSSAPI needs an implementation of Kerberos: import "allium/kerberos" and set ClientOptions.GSSAPI to kerberos.New()`,
		"mongodb://ada:secret@h/?authMechanism=MONGODB-AWS":           "mechanism MONGODB-AWS: its keys come from the environment, there must be no user name, password or session token",
		"mongodb://h/?authMechanism=MONGODB-OIDC":                     "there is neither an ENVIRONMENT nor a callback",
	} {
		_, err := allium.Open(uri)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", uri, err, want)
		}
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/authentication.md does not have %q", want)
		}
	}
}
