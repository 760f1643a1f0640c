package session

import "context"

// Carried is what a context carries of a session of the root package: what packages beside it have
// to know, which users need not see.
type Carried struct {
	Session *Session
	// Of is the root package's session.
	Of any
	// Bounded says that a Transact with a timeout is running on the session. Its operations share
	// the remaining time, and cannot have a timeout of their own.
	Bounded bool
}

type carriedKey struct{}

// NewContext returns a context that carries a session; nil: none, whatever ctx carries.
func NewContext(ctx context.Context, c *Carried) context.Context {
	return context.WithValue(ctx, carriedKey{}, c)
}

// FromContext returns what the context carries, nil if that is no session.
func FromContext(ctx context.Context) *Carried {
	c, _ := ctx.Value(carriedKey{}).(*Carried)
	return c
}
