package write

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "applyOps", Roles: server.Mongod, Needs: server.OnCluster("applyOps"), WriteConcern: true,
		Run: runApplyOps,
	})
}

// maxApplyDepth is how deep lists of operations nest at most: as documents do.
const maxApplyDepth = 10

// oplogApplier applies operations in the form that they have in the oplog. What is done already
// does no harm: a restore replays an oplog from a time before the copy was made.
type oplogApplier struct {
	r      *server.Request
	bypass bool // bypassDocumentValidation
	upsert bool // an update makes the document that there is not
	depth  int
}

// runApplyOps applies operations of the oplog one by one, and stops at the first that fails.
func runApplyOps(r *server.Request, dst []byte) ([]byte, error) {
	list, ok := r.Arg().Array()
	if !ok {
		return dst, srverr.New(srverr.TypeMismatch, "Wrong type for 'applyOps'. Expected a array, got a %s.",
			bsontext.TypeName(r.Arg().Type))
	}
	r.KeepStamps = true // an oplog has no timestamps that are still to be filled in
	upsert := r.Body.Lookup("alwaysUpsert")
	a := &oplogApplier{r: r, bypass: r.Body.Lookup("bypassDocumentValidation").AsBool(),
		upsert: upsert.Type == 0 || upsert.AsBool()}
	applied := int32(0)
	for e := range list.Values() {
		doc, ok := e.Document()
		if !ok {
			return dst, srverr.New(srverr.FailedToParse, "op not an object")
		}
		applied++
		if err := a.apply(doc); err != nil {
			if r.Stops(srverr.From(err)) {
				return dst, err
			}
			failed := *srverr.From(err)
			failed.Extra = bsondoc.Build(func(d *bsondoc.Builder) { d.B = appendApplied(d.B, applied, false) })
			return dst, &failed
		}
	}
	return appendApplied(dst, applied, true), nil
}

// appendApplied appends how many operations were done. last tells whether the last one was.
func appendApplied(dst []byte, n int32, last bool) []byte {
	dst = bson.AppendInt32(dst, "applied", n)
	at, dst := bson.BeginArrayElement(dst, "results")
	for i := range n {
		dst = bson.AppendBool(dst, bsondoc.Itoa(i), i < n-1 || last)
	}
	return bson.EndDocument(dst, at)
}

func (a *oplogApplier) apply(doc bson.Raw) error {
	kind, _ := doc.Lookup("op").StringValue()
	ns, _ := doc.Lookup("ns").StringValue()
	o, isDoc := doc.Lookup("o").Document()
	switch v := doc.Lookup("o"); {
	case kind == "n":
		return nil
	case v.Type == 0:
		return args.MissingField("applyOps.o")
	case !isDoc:
		return args.WrongType("applyOps.o", v.Type, "object")
	}
	switch kind {
	case "c":
		return a.command(doc, ns, o)
	case "i", "u", "d":
	default:
		return srverr.New(srverr.BadValue, "Enumeration value '%s' for field 'applyOps.op' is not a valid value.", kind)
	}
	if err := namespace.CheckFull(ns); err != nil {
		return err
	}
	if db, coll := namespace.Split(ns); coll == "system.views" {
		return a.view(db, kind, doc, o)
	}
	if st := a.r.Node.Store().Latest(); st.Coll(ns) == nil && a.r.BucketSource(st, ns) == nil {
		if kind == "d" {
			return nil // it was done before, and then the collection was dropped
		}
		return srverr.New(srverr.NamespaceNotFound,
			"cannot apply insert or update operation on a non-existent namespace %s: %s", ns, bsontext.Document(doc))
	}
	switch kind {
	case "i":
		return a.insert(ns, o)
	case "u":
		return a.update(doc, ns, o)
	}
	op := deleteOp{updateOp: updateOp{Selection: server.Selection{Q: o}}, one: true}
	_, err := op.run(a.r, ns, store.Statement{})
	return err
}

// view makes, changes or drops the view that an entry of system.views is about.
func (a *oplogApplier) view(db, kind string, doc, o bson.Raw) error {
	id, _ := o.Lookup("_id").StringValue()
	if key, ok := doc.Lookup("o2", "_id").StringValue(); ok && kind == "u" {
		id = key
	}
	_, name := namespace.Split(id)
	definition := func(command string) bson.Raw {
		return bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str(command, name)
			for k, v := range o.All() {
				if k != "_id" && (k != "collation" || command == "create") {
					d.B = bson.AppendRawValue(d.B, k, v)
				}
			}
		})
	}
	if kind == "d" {
		return a.run("drop", db, bsondoc.Of("drop", name), nil, oplogCommands["drop"])
	}
	err := a.run("create", db, definition("create"), nil, nil)
	if err != nil && srverr.From(err).Code == srverr.NamespaceExists {
		err = a.run("collMod", db, definition("collMod"), nil, nil)
	}
	return err
}

// insert puts a document in, or in the place of the one that has its _id.
func (a *oplogApplier) insert(ns string, o bson.Raw) error {
	_, errs, err := insert(a.r, &batch{ns: ns, ordered: true, bypass: a.bypass}, []bson.Raw{o})
	if err == nil && len(errs) > 0 {
		err = errs[0].err
	}
	id := o.Lookup("_id")
	if err == nil || srverr.From(err).Code != srverr.DuplicateKey || id.Type == 0 {
		return err
	}
	return a.replace(ns, bsondoc.Build(func(d *bsondoc.Builder) { d.B = bson.AppendRawValue(d.B, "_id", id) }), o)
}

func (a *oplogApplier) replace(ns string, key, o bson.Raw) error {
	op := updateOp{Selection: server.Selection{Q: key}, u: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: o},
		upsert: true, bypass: a.bypass}
	_, err := op.run(a.r, ns, store.Statement{})
	return err
}

// update applies an update: a new document, operators ({$v: 1, $set: ...}) as before 5.0, or a
// difference ({$v: 2, diff: ...}).
func (a *oplogApplier) update(doc bson.Raw, ns string, o bson.Raw) error {
	key, _ := doc.Lookup("o2").Document()
	key = bsondoc.OrEmpty(key)
	version := o.Lookup("$v")
	if version.Type == 0 && !hasOperators(o) {
		return a.replace(ns, key, o)
	}
	op := updateOp{Selection: server.Selection{Q: key}, bypass: a.bypass, upsert: a.upsert || doc.Lookup("b").AsBool()}
	if n, _ := version.AsInt64(); n == 2 {
		diff, ok := o.Lookup("diff").Document()
		if !ok {
			return srverr.New(4772600, "Expected 'diff' field to be present and to be an object: %s",
				bsontext.Document(o))
		}
		op.diff, op.upsert = query.NewDelta(diff), false
	} else {
		operators := bsondoc.Build(func(d *bsondoc.Builder) {
			for k, v := range o.All() {
				if k != "$v" {
					d.B = bson.AppendRawValue(d.B, k, v)
				}
			}
		})
		op.u = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: operators}
	}
	res, err := op.run(a.r, ns, store.Statement{})
	if err == nil && res.n == 0 {
		err = srverr.New(srverr.UpdateOperationFailed, "failed to apply update: %s", bsontext.Document(doc))
	}
	return err
}

// oplogCommands are the commands that are in the oplog, with the errors that say of each that there
// is nothing left to do.
var oplogCommands = map[string][]int32{
	"create":           {srverr.NamespaceExists},
	"createIndexes":    {srverr.NamespaceNotFound, srverr.IndexAlreadyExists},
	"commitIndexBuild": {srverr.NamespaceNotFound, srverr.IndexAlreadyExists},
	"collMod":          {srverr.NamespaceNotFound, srverr.IndexNotFound},
	"dropDatabase":     {srverr.NamespaceNotFound},
	"drop":             {srverr.NamespaceNotFound},
	"dropIndexes":      {srverr.NamespaceNotFound, srverr.IndexNotFound},
	"deleteIndexes":    {srverr.NamespaceNotFound, srverr.IndexNotFound},
	"deleteIndex":      {srverr.NamespaceNotFound, srverr.IndexNotFound},
	"dropIndex":        {srverr.NamespaceNotFound, srverr.IndexNotFound},
	"renameCollection": {srverr.NamespaceNotFound, srverr.NamespaceExists},
}

func (a *oplogApplier) command(doc bson.Raw, ns string, o bson.Raw) error {
	db, coll := namespace.Split(ns)
	if coll != "$cmd" {
		return srverr.New(srverr.InvalidNamespace, "Invalid namespace for a command operation: %s", ns)
	}
	name, first := bsondoc.FirstElement(o)
	if name == "applyOps" {
		return a.list(first)
	}
	harmless, known := oplogCommands[name]
	if !known {
		return srverr.New(srverr.BadValue, "applyOps: cannot apply the command '%s'", name)
	}
	cmd, body := commandOf(name, o)
	if cmd == "renameCollection" {
		db = "admin"
	}
	var uuid *[16]byte
	if id, ok := doc.Lookup("ui").Binary(); ok && cmd == "create" && len(id.Data) == 16 {
		uuid = (*[16]byte)(id.Data)
	}
	return a.run(cmd, db, body, uuid, harmless)
}

// run runs a command. uuid is that of the collection that it makes, nil for any; harmless are the
// errors that say that there is nothing left to do.
func (a *oplogApplier) run(cmd, db string, body bson.Raw, uuid *[16]byte, harmless []int32) error {
	inner, err := a.r.Inner(cmd, db, body)
	if err == nil {
		inner.NewUUID = uuid
		_, err = inner.Cmd.Run(inner, nil)
		a.r.Ran(inner)
	}
	if err != nil && slices.Contains(harmless, srverr.From(err).Code) {
		return nil
	}
	return err
}

// list applies a list of operations: those of a transaction.
func (a *oplogApplier) list(v bson.RawValue) error {
	list, ok := v.Array()
	if !ok {
		return srverr.New(srverr.TypeMismatch, "Wrong type for 'applyOps'. Expected a array, got a %s.",
			bsontext.TypeName(v.Type))
	}
	if a.depth++; a.depth > maxApplyDepth {
		return srverr.New(srverr.FailedToParse, "Too many nested applyOps")
	}
	defer func() { a.depth-- }()
	for e := range list.Values() {
		doc, ok := e.Document()
		if !ok {
			return srverr.New(srverr.FailedToParse, "op not an object")
		}
		if err := a.apply(doc); err != nil {
			return err
		}
	}
	return nil
}

// commandOf makes the command of an entry that can be run: of an index, an entry has the definition
// beside the collection's name.
func commandOf(name string, o bson.Raw) (string, bson.Raw) {
	switch {
	case name == "commitIndexBuild":
		return "createIndexes", bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendRawValue(d.B, "createIndexes", o.Lookup(name))
			d.B = bson.AppendRawValue(d.B, "indexes", o.Lookup("indexes"))
		})
	case name == "createIndexes" && o.Lookup("indexes").Type == 0:
		spec := bsondoc.Build(func(d *bsondoc.Builder) {
			for k, v := range o.All() {
				if k != name {
					d.B = bson.AppendRawValue(d.B, k, v)
				}
			}
		})
		return name, bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = bson.AppendRawValue(d.B, name, o.Lookup(name))
			at, b := bson.BeginArrayElement(d.B, "indexes")
			d.B = bson.EndDocument(bson.AppendDocument(b, "0", spec), at)
		})
	case strings.HasPrefix(name, "deleteIndex") || name == "dropIndex":
		return "dropIndexes", bsondoc.Build(func(d *bsondoc.Builder) {
			for k, v := range o.All() {
				if k == name {
					k = "dropIndexes"
				}
				d.B = bson.AppendRawValue(d.B, k, v)
			}
		})
	case name == "renameCollection":
		return name, bsondoc.Build(func(d *bsondoc.Builder) {
			for k, v := range o.All() {
				if k == "dropTarget" { // the UUID of the collection that was dropped
					d.Flag(k, v.Type == bson.TypeBinary || v.AsBool())
					continue
				}
				d.B = bson.AppendRawValue(d.B, k, v)
			}
		})
	}
	return name, o
}
