package account

import (
	"regexp"
	"slices"
)

// IdentityProvider is one that users of MONGODB-OIDC may have tokens of.
type IdentityProvider struct {
	Issuer, ClientID string
	RequestScopes    []string
	Match            *regexp.Regexp // of the names of its users; nil: all
}

// FindProvider returns the identity provider of a user. Who does not say a name has to have the
// only one.
func FindProvider(list []IdentityProvider, name string, named bool) *IdentityProvider {
	if !named {
		if len(list) != 1 {
			return nil
		}
		return &list[0]
	}
	for i := range list {
		if p := &list[i]; p.Match == nil || p.Match.MatchString(name) {
			return p
		}
	}
	return nil
}

// TokenUser returns the user who has an access token.
func (g *Registry) TokenUser(token string) *User {
	if token == "" {
		return nil
	}
	list := g.List(func(u *User) bool { return slices.Contains(u.Tokens, token) })
	if len(list) == 0 {
		return nil
	}
	return list[0]
}
