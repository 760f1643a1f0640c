package server

import (
	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// parseWrite returns what the server checks of a write command while it parses it, before anything else about it: the
// collection, and that there are operations. field is the array or document sequence that they are in.
func parseWrite(field string) func(r *Request) error {
	return func(r *Request) error {
		name, ok := r.Arg().StringBytes()
		if !ok {
			if r.Arg().Type == bson.TypeSymbol {
				return nil
			}
			return srverr.New(srverr.BadValue, "collection name has invalid type %s", bsontext.TypeName(r.Arg().Type))
		}
		if len(name) == 0 || name[0] == '.' || !ValidDBName(r.DB) {
			return srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s.%s'", r.DB, name)
		}
		empty := func(b []byte) error {
			if len(b) == 0 {
				return srverr.New(srverr.InvalidLength, "Write batch sizes must be between 1 and %d. Got 0 operations.", MaxWriteBatchSize)
			}
			return nil
		}
		if docs, ok := r.Sequence(field); ok {
			return empty(docs)
		}
		v := r.Body.Lookup(field)
		if len(r.Sequences) > 0 {
			return nil
		}
		switch {
		case v.IsZero():
			return missingField(r.Cmd.Name + "." + field)
		case v.Type == bson.TypeArray:
			return empty(v.Value[4 : len(v.Value)-1])
		}
		return nil
	}
}
