package server

import "crypto/sha256"

// userDigest returns the digest of the connection's user, which makes sessions of different users different.
func (c *Conn) userDigest(given [32]byte) [32]byte {
	if c.user == nil {
		return given
	}
	return sha256.Sum256([]byte(c.user.Name + "@" + c.user.DB))
}

// hasUser reports whether the user exists.
func (n *Node) hasUser(db, name string) bool { return n.data.accounts.Find(name, db) != nil }
