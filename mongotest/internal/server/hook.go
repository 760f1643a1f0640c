package server

import (
	"allium/bson"
	"allium/internal/wire"
)

// Call is a command as a hook sees it, before it runs. A hook must not keep any of it: it lies in
// the connection's buffer.
type Call struct {
	Node      *Node
	Conn      int32 // the connection's number on the node
	Name      string
	DB        string
	AppName   string
	Body      bson.Raw
	Sequences []wire.Sequence
}

// Hook sees every command before it runs, on the goroutine of its connection: by blocking it delays
// the command. A reply answers the command in the server's place; an error closes the connection
// without an answer.
type Hook func(*Call) (reply bson.Raw, err error)

// SetHook replaces the deployment's hook; nil for none.
func (cfg *Config) SetHook(h Hook) {
	if h == nil {
		cfg.hook.Store(nil)
		return
	}
	cfg.hook.Store(&h)
}

// runHook lets the hook look at the request. It reports whether the hook has answered.
func (r *Request) runHook(h Hook, dst []byte) (out []byte, answered bool) {
	if r.parseDB() != nil {
		r.dbSeen, r.dbTwice = false, false
		return dst, false
	}
	reply, err := h(&Call{Node: r.Node, Conn: r.Conn.id, Name: r.Name, DB: r.DB, AppName: r.Conn.client.appName,
		Body: r.Body, Sequences: r.Sequences})
	if !r.legacy {
		r.dbSeen, r.dbTwice = false, false
	}
	switch {
	case err != nil:
		r.hangUp = true
		return dst, true
	case reply != nil:
		return append(dst, reply...), true
	}
	return dst, false
}
