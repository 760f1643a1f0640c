package server

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
)

// SetUser makes u the connection's user; nil logs out. ActiveUsers of other connections shows it.
func (c *Conn) SetUser(u *account.User) {
	c.mu.Lock()
	c.user = u
	c.mu.Unlock()
}

// LogIn makes u the connection's user, unless authentication restrictions forbid it.
func (c *Conn) LogIn(u *account.User) error {
	if !c.node.data.accounts.MayLogIn(u, c.nc.RemoteAddr(), c.nc.LocalAddr()) {
		return account.ErrAuthentication()
	}
	c.SetUser(u)
	return nil
}

// ActiveUsers returns the users of open connections, for $listCachedAndActiveUsers.
func (n *Node) ActiveUsers() []bson.Raw {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := map[string]bool{}
	var list []bson.Raw
	for c := range n.conns {
		c.mu.Lock()
		u := c.user
		c.mu.Unlock()
		if u == nil || seen[u.DB+"."+u.Name] {
			continue
		}
		seen[u.DB+"."+u.Name] = true
		list = append(list, bsondoc.Build(func(b *bsondoc.Builder) {
			b.Str("username", u.Name)
			b.Str("db", u.DB)
			b.B = bson.AppendBool(b.B, "active", true)
		}))
	}
	return list
}

// userDigest returns the digest of the connection's user, which makes sessions of different users
// different.
func (c *Conn) userDigest(given [32]byte) [32]byte {
	if c.user == nil {
		return given
	}
	return UserDigest(c.user.Name, c.user.DB)
}

// HasUser reports whether the user exists.
func (n *Node) HasUser(db, name string) bool { return n.data.accounts.Find(name, db) != nil }
