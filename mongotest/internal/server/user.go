package server

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"

	"allium/mongotest/internal/srverr"
)

// Mechanism names.
const (
	scramSHA1   = "SCRAM-SHA-1"
	scramSHA256 = "SCRAM-SHA-256"
	mechPlain   = "PLAIN"
	mechX509    = "MONGODB-X509"
)

// externalDB is where users are whose credentials the server does not hold.
const externalDB = "$external"

// RoleName is a role and the database that defines it.
type RoleName struct{ Role, DB string }

// User is somebody who can authenticate. It is not changed once it is in the registry.
type User struct {
	Name, DB   string
	Roles      []RoleName
	Mechanisms []string
	Tokens     []string // access tokens of MONGODB-OIDC
	AWS        AWSKey   // of MONGODB-AWS

	id       [16]byte
	creds    map[string]scramCredentials
	password string // of $external users that authenticate with PLAIN
	custom   []byte // customData, a document
}

// users is the registry of a data set. Safe for concurrent use.
type users struct {
	mu     sync.Mutex
	byName map[RoleName]*User // Role is the user's name here
	roles  map[RoleName]*role
}

// role is a role that a client made.
type role struct {
	name       RoleName
	roles      []RoleName
	privileges [][]byte
}

// NewUser makes a user with credentials for the mechanisms, both SCRAM ones if none are given. A user of $external gets
// the password for PLAIN.
func NewUser(name, db, password string, roles []RoleName, mechanisms []string) (*User, error) {
	u := &User{Name: name, DB: db, Roles: roles, Mechanisms: mechanisms}
	rand.Read(u.id[:])
	if db == externalDB {
		u.password = password
		return u, nil
	}
	if u.Mechanisms == nil {
		u.Mechanisms = []string{scramSHA1, scramSHA256}
	}
	return u, u.setPassword(password)
}

func (u *User) setPassword(password string) error {
	u.creds = map[string]scramCredentials{}
	for _, m := range u.Mechanisms {
		switch m {
		case scramSHA1:
			u.creds[m] = newSCRAMCredentials(sha1Hash, legacyDigest(u.Name, password), 10000)
		case scramSHA256:
			prepared, err := prepare(password)
			if err != nil {
				return srverr.New(srverr.BadValue, "Error preflighting UTF-8 conversion: %s", err)
			}
			u.creds[m] = newSCRAMCredentials(sha256.New, prepared, 15000)
		}
	}
	return nil
}

// legacyDigest is what SCRAM-SHA-1 uses as the password.
func legacyDigest(user, password string) string {
	sum := md5.Sum([]byte(user + ":mongo:" + password))
	return hex.EncodeToString(sum[:])
}

// AddUser adds or replaces a user.
func (d *Data) AddUser(u *User) {
	d.users.mu.Lock()
	defer d.users.mu.Unlock()
	if d.users.byName == nil {
		d.users.byName = map[RoleName]*User{}
	}
	d.users.byName[RoleName{u.Name, u.DB}] = u
}

func (d *Data) findUser(name, db string) *User {
	d.users.mu.Lock()
	defer d.users.mu.Unlock()
	return d.users.byName[RoleName{name, db}]
}

// removeUsers removes the matching users and returns how many there were.
func (d *Data) removeUsers(match func(*User) bool) int {
	d.users.mu.Lock()
	defer d.users.mu.Unlock()
	n := 0
	for k, u := range d.users.byName {
		if match(u) {
			delete(d.users.byName, k)
			n++
		}
	}
	return n
}

// listUsers returns the matching users, by database and name.
func (d *Data) listUsers(match func(*User) bool) []*User {
	d.users.mu.Lock()
	defer d.users.mu.Unlock()
	var list []*User
	for _, u := range d.users.byName {
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

// mechanisms returns the mechanisms that the user can use, in alphabetical order.
func (u *User) mechanisms() []string {
	list := slices.Clone(u.Mechanisms)
	slices.Sort(list)
	return list
}

// userDigest returns the digest of the connection's user, which makes sessions of different users different.
func (c *Conn) userDigest(given [32]byte) [32]byte {
	if c.user == nil {
		return given
	}
	return sha256.Sum256([]byte(c.user.Name + "@" + c.user.DB))
}

// hasUser reports whether the user exists.
func (n *Node) hasUser(db, name string) bool { return n.data.findUser(name, db) != nil }

// builtinRoles are the roles that every database has, and those that only admin has.
var (
	builtinRoles = map[string]bool{"read": true, "readWrite": true, "dbAdmin": true, "dbOwner": true, "userAdmin": true,
		"enableSharding": true}
	adminRoles = map[string]bool{"readAnyDatabase": true, "readWriteAnyDatabase": true, "userAdminAnyDatabase": true,
		"dbAdminAnyDatabase": true, "clusterMonitor": true, "hostManager": true, "clusterManager": true, "clusterAdmin": true,
		"backup": true, "restore": true, "root": true, "__system": true, "__queryableBackup": true, "directShardOperations": true}
)

// roleExists reports whether the role is built in or was created.
func (d *Data) roleExists(r RoleName) bool {
	if builtinRoles[r.Role] || adminRoles[r.Role] && r.DB == "admin" {
		return true
	}
	d.users.mu.Lock()
	defer d.users.mu.Unlock()
	return d.users.roles[r] != nil
}
