package server

import (
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
