package mongotest

import (
	"fmt"
	"slices"

	"allium/mongotest/internal/account"
)

// User is a user of the deployment.
type User struct {
	Name     string
	Password string
	// DB is the database that the user is defined on; empty: "admin". A user on "$external"
	// authenticates with PLAIN, with the certificate whose subject is the name (see
	// [Deployment.ClientSubject]), with one of AccessTokens, with the key AWS, or with
	// GSSAPI as the principal of this name.
	DB         string
	Roles      []string // roles of the user's database, of "admin" for a user on "$external"; nil: none
	Mechanisms []string // "SCRAM-SHA-1", "SCRAM-SHA-256"; nil: both
	// AccessTokens are the tokens with which a user on "$external" authenticates by MONGODB-OIDC,
	// any strings (see OIDC). Adding the user again with others invalidates these.
	AccessTokens []string
	// AWS is the key that a user on "$external" authenticates with by MONGODB-AWS.
	AWS AWSKey
}

// AWSKey is a key of Amazon Web Services: its id and its secret, and the session token of a
// temporary one. They can be any strings.
type AWSKey struct{ ID, Secret, Token string }

// AddUser adds a user, or replaces the one with the same name and database.
func (d *Deployment) AddUser(u User) error {
	if u.DB == "" {
		u.DB = "admin"
	}
	var roles []account.Role
	db := u.DB
	if db == "$external" {
		db = "admin"
	}
	for _, r := range u.Roles {
		roles = append(roles, account.Role{Role: r, DB: db})
	}
	su, err := account.New(u.Name, u.DB, u.Password, roles, u.Mechanisms)
	if err != nil {
		return fmt.Errorf("mongotest: add user %q: %w", u.Name, err)
	}
	su.Tokens, su.AWS = slices.Clone(u.AccessTokens), account.AWSKey(u.AWS)
	d.data.AddUser(su)
	return nil
}
