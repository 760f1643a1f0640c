package exec

import (
	"fmt"

	"allium/bson"
	"allium/internal/failure"
	"allium/mongoerr"
)

// WriteErrors returns the statements that the server refused, of a command that need not be one of
// the driver's own: those in writeErrors, which insert, update and delete answer, and those in the
// first batch of results of a bulkWrite.
func (r *Result) WriteErrors(op *Op) ([]*mongoerr.WriteError, error) {
	return writeErrors(r.Reply, op, r.Server.Addr())
}

func writeErrors(reply bson.Raw, op *Op, addr string) ([]*mongoerr.WriteError, error) {
	var list []*mongoerr.WriteError
	for key, v := range reply.All() {
		switch key {
		case "writeErrors":
			refused, ok := v.Array()
			if !ok {
				return nil, malformed(key, v, "an array")
			}
			for el := range refused.Values() {
				doc, ok := el.Document()
				if !ok {
					return nil, malformed("write error", el, "a document")
				}
				list = append(list, op.WriteError(doc, 0, addr))
			}
		case "nErrors":
			if n, _ := v.AsInt64(); n == 0 {
				continue
			}
			results, _ := reply.Lookup("cursor", "firstBatch").Array()
			for el := range results.Values() {
				doc, ok := el.Document()
				if !ok {
					return nil, malformed("result", el, "a document")
				}
				if !doc.Lookup("ok").AsBool() {
					e := op.WriteError(doc, 0, addr)
					n, _ := doc.Lookup("idx").AsInt64()
					e.Index = int(n)
					list = append(list, e)
				}
			}
		}
	}
	return list, nil
}

// WriteError copies one element of the writeErrors that the server at addr answered; base is added
// to its index.
func (op *Op) WriteError(raw bson.Raw, base int, addr string) *mongoerr.WriteError {
	e := failure.NewWriteError(raw, base)
	e.Command, e.Namespace, e.Addr = op.Command.Name(), op.Namespace(), addr
	return e
}

func malformed(what string, v bson.RawValue, want string) error {
	return fmt.Errorf("server's reply has a %s that is a %s, want %s", what, v.Type, want)
}
