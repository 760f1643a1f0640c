package server

import (
	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// Inner returns a command of its own that r runs as a part of itself, parsed and ready for its Run.
// It has the session, the concerns and the deadline of r. A caller that has run it calls
// [Request.Ran]. No command of a mongos runs one: its Routing would be that of r.
func (r *Request) Inner(name, db string, body bson.Raw) (*Request, error) {
	inner := r.Nested()
	inner.Name, inner.DB, inner.Body, inner.Sequences, inner.parsed, inner.outcome = name, db, body, nil, parsed{},
		outcome{}
	if inner.Cmd = r.Node.Lookup(name); inner.Cmd == nil {
		return nil, srverr.New(srverr.CommandNotFound, "no such command: '%s'", name)
	}
	if err := inner.parse(); err != nil {
		return nil, err
	}
	return inner, nil
}

// Nested returns a copy of r for a command that is a part of it. It ends when r does: only r
// watches its client.
func (r *Request) Nested() *Request {
	inner := *r
	inner.within, inner.meter = r, nil
	return &inner
}

// Ran takes over what the inner command has written: the write concern of r waits for it.
func (r *Request) Ran(inner *Request) { r.wrote = r.wrote || inner.wrote }
