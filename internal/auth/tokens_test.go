package auth

import (
	"context"
	"strings"
	"testing"

	"allium/auth"
)

// MONGODB-OIDC has one source of tokens, and hosts are allowed to a person's login alone.
func TestSourcesOfTokens(t *testing.T) {
	callback := func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) { return auth.OIDCCredential{}, nil }
	for _, c := range []struct {
		name string
		o    *auth.OIDC
		want string
	}{
		{"nothing", nil, "neither"},
		{"no callback", &auth.OIDC{}, "neither"},
		{"both", &auth.OIDC{Callback: callback, HumanCallback: callback}, "both"},
		{"hosts for a machine", &auth.OIDC{Callback: callback, AllowedHosts: []string{"a"}}, "HumanCallback only"},
		{"a machine", &auth.OIDC{Callback: callback}, ""},
		{"a person", &auth.OIDC{HumanCallback: callback}, ""},
		{"a person, some hosts", &auth.OIDC{HumanCallback: callback, AllowedHosts: []string{"a"}}, ""},
	} {
		tokens, err := newTokens(&auth.Credential{}, c.o, 0)
		if c.want == "" {
			if err != nil || tokens.human != (c.o.HumanCallback != nil) || tokens.human && len(tokens.allowed) == 0 {
				t.Errorf("%s: %+v, %v", c.name, tokens, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
