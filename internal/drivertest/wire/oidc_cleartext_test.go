package wire

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"allium"
	"allium/auth"
)

// TestOIDCWithoutTLS: an access token that would travel in clear draws a warning, and connects.
func TestOIDCWithoutTLS(t *testing.T) {
	const want = "the access token of MONGODB-OIDC is sent to db.example:27017 in clear: switch TLS on with tls=true"
	for uri, warns := range map[string]bool{
		"mongodb://db.example/?authMechanism=MONGODB-OIDC":                                       true,
		"mongodb://localhost,db.example,other.example/?authMechanism=MONGODB-OIDC&replicaSet=rs": true,
		"mongodb://db.example/?authMechanism=MONGODB-OIDC&tls=true":                              false,
		"mongodb://localhost,127.0.0.1/?authMechanism=MONGODB-OIDC&replicaSet=rs":                false,
	} {
		var log bytes.Buffer
		client, err := allium.Open(uri, allium.ClientOptions{
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
			OIDC: &auth.OIDC{Callback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
				return auth.OIDCCredential{AccessToken: "token"}, nil
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		client.Close(context.Background())
		if n := strings.Count(log.String(), want); n != map[bool]int{true: 1}[warns] {
			t.Errorf("%s: %d warnings in %q", uri, n, log.String())
		}
	}
}
