package server

import (
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

// UseSession returns the session with this id for a command. The cursors of one that has expired
// end.
func (r *Request) UseSession(id session.ID) (*session.Session, error) {
	s, old, err := r.Node.data.sessions.Use(id, r.Node.data.Clock.Now())
	if old != nil {
		r.Node.cursors.kill(func(c *cursor) bool { return c.session == old })
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
