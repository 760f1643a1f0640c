package wire

import (
	"crypto/ed25519"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"allium"
	"allium/auth"
)

// No verb of package fmt, no encoder and no logger shows a secret, wherever the value with it is.
func TestSecretsAreNotPrinted(t *testing.T) {
	const secret = "open-sesame"
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	inBytes := strings.Trim(fmt.Sprint([]byte(key)[:8]), "[]") // as %v prints a key
	values := map[string]any{
		"Secret":         auth.Secret(secret),
		"Credential":     auth.Credential{Username: "u", Password: secret},
		"Proxy":          allium.Proxy{Host: "h", Username: "u", Password: secret},
		"TLSFiles":       allium.TLSFiles{CertificateKeyFile: "f", CertificateKeyFilePassword: secret},
		"OIDCCredential": auth.OIDCCredential{AccessToken: secret, RefreshToken: secret},
		"OIDCParams":     auth.OIDCParams{Username: "u", IDP: &auth.IDPInfo{ClientID: "c"}, RefreshToken: secret},
		"AWSCredentials": auth.AWSCredentials{AccessKeyID: "id", SecretAccessKey: secret, SessionToken: secret},
		"ClientOptions": allium.ClientOptions{
			AppName: "shop", Credential: &auth.Credential{Username: "u", Password: secret}, Proxy: &allium.Proxy{Host: "h", Password: secret},
			TLSFiles: &allium.TLSFiles{CertificateKeyFilePassword: secret}, MaxPoolSize: new(7),
			TLS: &tls.Config{Certificates: []tls.Certificate{{PrivateKey: key}}},
		},
	}
	holds := func(text string) bool { return strings.Contains(text, secret) || strings.Contains(text, inBytes) }
	for name, v := range values {
		// As it is, behind a pointer, and in structs and lists of the program's own.
		for where, v := range map[string]any{"plain": v, "field": struct{ F any }{v}, "list": []any{v}, "pointer field": struct{ F any }{pointer(v)}, "pointer": pointer(v)} {
			// Not %p and %w: package fmt does not ask methods about those, and vet refuses them.
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%e", "%U", "%c", "%b", "%o", "%-20s", "%+q"} {
				if text := fmt.Sprintf(verb, v); holds(text) || strings.Contains(text, fmt.Sprintf("%x", secret)) || strings.Contains(text, fmt.Sprintf("%X", secret)) {
					t.Errorf("%s, %s, %s: %s", name, where, verb, text)
				}
			}
			if text, err := json.Marshal(v); holds(string(text)) || err != nil && !strings.HasPrefix(name, "ClientOptions") {
				t.Errorf("%s, %s as JSON: %s, error %v", name, where, text, err)
			}
			var log strings.Builder
			slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
			slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
			if holds(log.String()) {
				t.Errorf("%s, %s in a log: %s", name, where, log.String())
			}
		}
	}
	want := "{AppName:shop Credential:user \"u\" of \"\", mechanism \"default\" MaxPoolSize:7 TLS:set TLSFiles:{CertificateKeyFilePassword:***} Proxy:{Host:h Port:0 Username: Password:***}}"
	if got := fmt.Sprint(values["ClientOptions"]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// pointer returns a pointer to what v holds.
func pointer(v any) any {
	switch v := v.(type) {
	case auth.Secret:
		return &v
	case auth.Credential:
		return &v
	case allium.Proxy:
		return &v
	case allium.TLSFiles:
		return &v
	case auth.OIDCCredential:
		return &v
	case auth.OIDCParams:
		return &v
	case auth.AWSCredentials:
		return &v
	case allium.ClientOptions:
		return &v
	}
	panic(fmt.Sprintf("%T", v))
}
