package exec

import (
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
					return nil, malformed("element of writeErrors", el, "a document")
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
					return nil, malformed("element of cursor.firstBatch", el, "a document")
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

// refusal is the error of a command that is no write of its caller's, but whose reply reports
// errors of writes.
func (r *run) refusal(reply bson.Raw) error {
	list, err := writeErrors(reply, r.op, r.addr)
	if err != nil {
		return r.op.Named(err)
	}
	return Refusal(list, reply, failure.NewWriteConcernError(r.addr, reply))
}

// Refusal is the error of a reply with errors of writes, nil if there are none. The error of the
// write concern is nil if there is none.
func Refusal(list []*mongoerr.WriteError, reply bson.Raw, concern *mongoerr.WriteConcernError) error {
	if len(list) == 0 {
		return nil
	}
	whole := append(bson.Raw(nil), reply...)
	for _, e := range list {
		e.Reply = whole
	}
	bulk := &mongoerr.BulkWriteError{WriteErrors: list, Labels: failure.Strings(reply.Lookup("errorLabels"))}
	if concern != nil {
		bulk.WriteConcernErrors = append(bulk.WriteConcernErrors, concern)
		for _, l := range concern.Labels {
			failure.AddTo(&bulk.Labels, l)
		}
	}
	return bulk
}

// WriteError copies one element of the writeErrors that the server at addr answered; base is added
// to its index.
func (op *Op) WriteError(raw bson.Raw, base int, addr string) *mongoerr.WriteError {
	e := failure.NewWriteError(raw, base)
	e.Command, e.Namespace, e.Addr = op.Command.Name(), op.Namespace(), addr
	return e
}

func malformed(what string, v bson.RawValue, want string) error {
	return &mongoerr.ReplyError{Field: what, Type: v.Type, Want: want}
}
