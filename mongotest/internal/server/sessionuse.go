package server

import (
	"crypto/sha256"
	"slices"

	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

// OwnSession returns the id of the session as the connection's user has it: the sessions of
// different users are different.
func (r *Request) OwnSession(id session.ID) session.ID {
	if r.Node.cfg.Auth {
		id.UID = r.Conn.userDigest(id.UID)
	}
	return id
}

// ownDigest stands for the connection's user, if users log in.
func (r *Request) ownDigest() (none [32]byte) {
	if !r.Node.cfg.Auth {
		return none
	}
	return r.Conn.userDigest(none)
}

// Owns refuses a cursor of another session, with authentication, and one that another user has
// made.
func (r *Request) Owns(c *Cursor) error {
	if r.Node.cfg.Auth && c.Session != r.Session {
		id := func(s *session.Session) string {
			if s == nil {
				return "none"
			}
			if r.Version().AtLeast(7, 0) { // with the transaction that an internal session would have
				return s.ID.String() + " -  - "
			}
			return s.ID.String()
		}
		return srverr.New(
			srverr.Unauthorized, "Cursor session id (%s) is not the same as the operation context's session id (%s)",
			id(c.Session), id(r.Session))
	}
	if c.owner != r.ownDigest() {
		return srverr.New(srverr.Unauthorized, "cursor id %d was not created by the authenticated user", c.ID)
	}
	return nil
}

// OwnSessions reports which sessions are those of the connection's user: all of them where nobody
// logs in.
func (r *Request) OwnSessions(id session.ID) bool {
	return !r.Node.cfg.Auth || id.UID == r.Conn.userDigest(id.UID)
}

// UserDigest returns what the sessions of a user have in their ids. Those of nobody, where nobody
// logs in, are those of a user without a name.
func UserDigest(name, db string) [32]byte {
	if name == "" && db == "" {
		return sha256.Sum256(nil)
	}
	return sha256.Sum256([]byte(name + "@" + db))
}

// UseSession returns the session with this id for a command. The cursors of those that have ended
// or expired end.
func (r *Request) UseSession(id session.ID) (*session.Session, error) {
	s, gone, err := r.Node.data.sessions.Use(id, r.Node.data.Clock.Now())
	if len(gone) > 0 {
		r.Node.cursors.Kill(func(c *Cursor) bool { return slices.Contains(gone, c.Session) })
	}
	return s, err
}

// KillSessions ends what the matching sessions do: operations, transactions and cursors.
func (r *Request) KillSessions(match func(session.ID) bool) {
	n := r.Node
	n.killOperations(func(o *opInfo) bool { return o.session != nil && o.op != r.op && match(o.session.ID) },
		srverr.New(srverr.Interrupted, "operation was interrupted"))
	for _, s := range n.data.sessions.All(match) {
		s.Mu.Lock()
		s.Abort()
		s.Mu.Unlock()
	}
	n.cursors.killSessions(match)
}
