package write

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{Name: "applyOps", Roles: []server.Role{server.Standalone, server.Member}, WriteConcern: true, Run: runApplyOps})
}

// runApplyOps applies inserts, updates and deletes in the form that they have in the oplog.
func runApplyOps(r *server.Request, dst []byte) ([]byte, error) {
	list, ok := r.Arg().Array()
	if !ok {
		return dst, srverr.New(srverr.TypeMismatch, "Wrong type for 'applyOps'. Expected a array, got a %s.", bsontext.TypeName(r.Arg().Type))
	}
	applied := 0
	for e := range list.Values() {
		doc, ok := e.Document()
		if !ok {
			return dst, srverr.New(srverr.FailedToParse, "op not an object")
		}
		if err := applyOp(r, doc); err != nil {
			return dst, err
		}
		applied++
	}
	dst = bson.AppendInt32(dst, "applied", int32(applied))
	at, dst := bson.BeginArrayElement(dst, "results")
	for i := range applied {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeBoolean, i), 1)
	}
	return bson.EndDocument(dst, at), nil
}

func applyOp(r *server.Request, doc bson.Raw) error {
	kind, _ := doc.Lookup("op").StringValue()
	ns, _ := doc.Lookup("ns").StringValue()
	o, _ := doc.Lookup("o").Document()
	key, _ := doc.Lookup("o2").Document()
	switch kind {
	case "n":
		return nil
	case "i":
		_, errs, err := insert(r, &batch{ns: ns, ordered: true}, []bson.Raw{bsondoc.OrEmpty(o)})
		if err == nil && len(errs) > 0 {
			err = errs[0].err
		}
		return err
	case "u":
		op := updateOp{Selection: server.Selection{Q: bsondoc.OrEmpty(key)}, u: doc.Lookup("o")}
		_, err := op.run(r, ns, store.Statement{})
		return err
	case "d":
		op := deleteOp{updateOp: updateOp{Selection: server.Selection{Q: bsondoc.OrEmpty(o)}}, one: true}
		_, err := op.run(r, ns, store.Statement{})
		return err
	}
	return srverr.New(srverr.BadValue, "applyOps of '%s' operations is not supported here", kind)
}
