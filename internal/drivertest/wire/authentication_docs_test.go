package wire

import (
	"os"
	"strings"
	"testing"

	"allium"
	"allium/mongotest"
)

// TestAuthenticationMessages compares what docs/authentication.md says of errors that Open returns
// with what it returns.
func TestAuthenticationMessages(t *testing.T) {
	page, err := os.ReadFile("../../../docs/authentication.md")
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

// TestAuthenticationMessagesOfServers does so with what a client sees when it talks to a server.
func TestAuthenticationMessagesOfServers(t *testing.T) {
	page, err := os.ReadFile("../../../docs/authentication.md")
	if err != nil {
		t.Fatal(err)
	}
	d := mongotest.Start(t, mongotest.TLS(), mongotest.Auth("ada", "secret"))
	ca, certKey, err := d.WriteTLSFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tls := "tlsCAFile=" + ca
	for _, tt := range []struct{ name, userInfo, options, want string }{
		{"wrong password", "ada:other@", tls, "Authentication failed."},
		{"wrong user", "eve:secret@", tls, "Authentication failed."},
		{"wrong source", "ada:secret@", tls + "&authSource=shop", "Authentication failed."},
		{"unescaped password", "ada:se@cret@", tls, "user name and password must be percent-encoded UTF-8, as url.UserPassword writes them"},
		{"certificate of nobody", "", tls + "&authMechanism=MONGODB-X509&tlsCertificateKeyFile=" + certKey, `Could not find user "` + d.ClientSubject()},
		{"no certificate", "", tls + "&authMechanism=MONGODB-X509", "No verified subject name available from client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, err := allium.Open("mongodb://" + tt.userInfo + d.Hosts()[0] + "/?" + tt.options)
			if err == nil {
				defer client.Close(t.Context())
				err = client.Ping(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want %q", err, tt.want)
			}
			text := strings.Replace(tt.want, d.ClientSubject(), "CN=…", 1)
			if !strings.Contains(string(page), text) {
				t.Errorf("docs/authentication.md does not have %q", text)
			}
		})
	}
}
