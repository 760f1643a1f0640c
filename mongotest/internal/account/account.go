// Package account holds the users and roles of a deployment: who there is, how they prove who they
// are (SCRAM, keys of Amazon Web Services, access tokens), and what their roles allow.
package account

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// Mechanism names.
const (
	ScramSHA1   = "SCRAM-SHA-1"
	ScramSHA256 = "SCRAM-SHA-256"
	Plain       = "PLAIN"
	MechX509    = "MONGODB-X509"
	MechOIDC    = "MONGODB-OIDC"
	MechAWS     = "MONGODB-AWS"
	MechGSSAPI  = "GSSAPI"
)

// ExternalDB is where users are whose credentials the server does not hold.
const ExternalDB = "$external"

// Role is a role and the database that defines it.
type Role struct{ Role, DB string }

// User is somebody who can authenticate. It is not changed once it is in the registry.
type User struct {
	Name, DB   string
	Roles      []Role
	Mechanisms []string
	Tokens     []string // access tokens of MONGODB-OIDC
	AWS        AWSKey   // of MONGODB-AWS

	Id       [16]byte
	Creds    map[string]scramCredentials
	Password string // of $external users that authenticate with PLAIN
	Custom   []byte // customData, a document

	Restrictions bson.Raw // authenticationRestrictions, an array; empty: none
}

// Registry holds the users and roles of a deployment. The zero value is empty. Safe for concurrent
// use.
type Registry struct {
	mu     sync.Mutex
	byName map[Role]*User // Role is the user's name here
	roles  map[Role]*CustomRole
}

// CustomRole is a role that a client made.
type CustomRole struct {
	Name       Role
	Roles      []Role
	Privileges [][]byte

	Restrictions bson.Raw // authenticationRestrictions, an array; empty: none
}

// New makes a user with credentials for the mechanisms, both SCRAM ones if none are given. A user
// of $external gets the password for PLAIN.
func New(name, db, password string, roles []Role, mechanisms []string) (*User, error) {
	u := &User{Name: name, DB: db, Roles: roles, Mechanisms: mechanisms}
	rand.Read(u.Id[:])
	if db == ExternalDB {
		u.Password = password
		return u, nil
	}
	if u.Mechanisms == nil {
		u.Mechanisms = []string{ScramSHA1, ScramSHA256}
	}
	return u, u.SetPassword(password)
}

// SetPassword makes the credentials of the user's mechanisms anew.
func (u *User) SetPassword(password string) error {
	u.Creds = map[string]scramCredentials{}
	for _, m := range u.Mechanisms {
		switch m {
		case ScramSHA1:
			u.Creds[m] = newSCRAMCredentials(sha1Hash, legacyDigest(u.Name, password), 10000)
		case ScramSHA256:
			if password == "" {
				return srverr.New(50687, "Error preflighting UTF-8 conversion: U_STRING_NOT_TERMINATED_WARNING")
			}
			prepared, err := prepare(password)
			if err != nil {
				return srverr.New(50692, "Error preflighting normalization: U_STRINGPREP_PROHIBITED_ERROR")
			}
			u.Creds[m] = newSCRAMCredentials(sha256.New, prepared, 15000)
		}
	}
	return nil
}

// legacyDigest is what SCRAM-SHA-1 uses as the password.
func legacyDigest(user, password string) string {
	sum := md5.Sum([]byte(user + ":mongo:" + password))
	return hex.EncodeToString(sum[:])
}

// HasPlain reports whether any user may log in with PLAIN: then the mechanism is on.
func (g *Registry) HasPlain() bool {
	return len(g.List(func(u *User) bool { return u.DB == ExternalDB && u.Password != "" })) > 0
}

// Add adds or replaces a user.
func (g *Registry) Add(u *User) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byName == nil {
		g.byName = map[Role]*User{}
	}
	g.byName[Role{u.Name, u.DB}] = u
}

// Find returns a user, nil if there is none of this name.
func (g *Registry) Find(name, db string) *User {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byName[Role{name, db}]
}

// Remove removes the matching users and returns how many there were.
func (g *Registry) Remove(match func(*User) bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for k, u := range g.byName {
		if match(u) {
			delete(g.byName, k)
			n++
		}
	}
	return n
}

// List returns the matching users, by database and name.
func (g *Registry) List(match func(*User) bool) []*User {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []*User
	for _, u := range g.byName {
		if match(u) {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b *User) int {
		if a.DB != b.DB {
			if a.DB < b.DB {
				return -1
			}
			return 1
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list
}

// SortedMechanisms returns the mechanisms that the user can use, in alphabetical order.
func (u *User) SortedMechanisms() []string {
	list := slices.Clone(u.Mechanisms)
	slices.Sort(list)
	return list
}

// builtinRoles are the roles that every database has, and those that only admin has.
var (
	builtinRoles = map[string]bool{"read": true, "readWrite": true, "dbAdmin": true, "dbOwner": true, "userAdmin": true,
		"enableSharding": true}
	adminRoles = map[string]bool{"readAnyDatabase": true, "readWriteAnyDatabase": true, "userAdminAnyDatabase": true,
		"dbAdminAnyDatabase": true, "clusterMonitor": true, "hostManager": true, "clusterManager": true,
		"clusterAdmin": true,
		"backup":       true, "restore": true, "root": true, "__system": true, "__queryableBackup": true,
		"directShardOperations": true}
)

// HasRole reports whether the role is built in or was created.
func (g *Registry) HasRole(r Role) bool {
	if builtinRoles[r.Role] || adminRoles[r.Role] && r.DB == "admin" {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.roles[r] != nil
}

// AddRole adds or replaces a role.
func (g *Registry) AddRole(r *CustomRole) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.roles == nil {
		g.roles = map[Role]*CustomRole{}
	}
	g.roles[r.Name] = r
}

// DropRoles removes the matching roles and returns how many there were.
func (g *Registry) DropRoles(match func(Role) bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for rn := range g.roles {
		if match(rn) {
			delete(g.roles, rn)
			g.removeGrantsLocked(rn)
			n++
		}
	}
	return n
}

// ListRoles returns the matching roles that clients made, by name.
func (g *Registry) ListRoles(match func(Role) bool) []*CustomRole {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []*CustomRole
	for rn, def := range g.roles {
		if match(rn) {
			found = append(found, def)
		}
	}
	slices.SortFunc(found, func(a, b *CustomRole) int { return strings.Compare(a.Name.Role, b.Name.Role) })
	return found
}

func sortedNames(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// AppendRoles appends the roles as an array.
func AppendRoles(dst []byte, key string, list []Role) []byte {
	at, dst := bson.BeginArrayElement(dst, key)
	for i, rn := range list {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bsondoc.Append(d, "role", rn.Role, "db", rn.DB)
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, at)
}
