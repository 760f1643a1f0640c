package server

import (
	"allium/bson"
	"allium/mongotest/internal/flavour"
)

// refuseInFlavour refuses what the server or service does not have that the deployment is like. The
// deployment's own connections, which fill it, may do everything.
func (r *Request) refuseInFlavour() error {
	f := r.Node.cfg.Like
	if f == nil || r.Conn.trusted {
		return nil
	}
	return f.Check(flavour.Command{Name: r.Cmd.Name, Body: r.Body, Sequences: r.sequenced})
}

// sequenced yields the documents beside the body, with the field that each belongs to.
func (r *Request) sequenced(yield func(field string, doc bson.Raw) bool) {
	for _, s := range r.Sequences {
		for rest := s.Docs; len(rest) > 0; {
			doc, next, err := bson.ReadDocument(rest)
			if err != nil || !yield(s.ID, doc) {
				return
			}
			rest = next
		}
	}
}
