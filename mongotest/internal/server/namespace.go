package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Collection returns the command's collection as "db.name". code is the error code for an
// invalid name: BadValue from generated parsers, InvalidNamespace from the older ones.
func (r *Request) Collection(code int32) (ns string, err error) {
	v := r.Arg()
	if r.Version().AllParsed() {
		code = srverr.InvalidNamespace
	}
	if b, ok := v.Binary(); ok && b.Subtype == bson.BinaryUUID {
		return "", srverr.New(code, "Collection name must be provided. UUID is not valid in this context")
	}
	if v.Type != bson.TypeString && v.Type != bson.TypeSymbol {
		return "", srverr.New(code, "collection name has invalid type %s", bsontext.TypeName(v.Type))
	}
	name := string(v.Value[4 : len(v.Value)-1])
	if strings.HasPrefix(name, ".") && r.Version().AtLeast(7, 0) {
		return "", srverr.New(srverr.InvalidNamespace, "Collection names cannot start with '.': %s", name)
	}
	if err := namespace.Check(r.DB, name); err != nil {
		return "", err
	}
	return r.join(name), nil
}

// join returns the namespace of a collection of the command's database. Connections mostly name
// the collection that they have just named: one string does for them.
func (r *Request) join(name string) string {
	if db, coll, ok := strings.Cut(r.ns, "."); !ok || db != r.DB || coll != name {
		r.ns = namespace.Join(r.DB, name)
	}
	return r.ns
}

// Readable returns the collection of a command that reads: it may be given by its UUID, and must
// have no dollar in its name.
func (r *Request) Readable(code int32) (ns string, err error) {
	if b, ok := r.Arg().Binary(); ok && b.Subtype == bson.BinaryUUID && r.Routing == nil {
		return r.resolve(b.Data)
	}
	if v := r.Arg(); v.Type != bson.TypeString && v.Type != bson.TypeSymbol && r.Version().AtLeast(7, 0) {
		return "", srverr.New(srverr.InvalidNamespace, "Failed to parse namespace element")
	}
	if ns, err = r.Collection(code); err != nil {
		return "", err
	}
	return ns, r.checkReadable(ns)
}

// checkReadable rejects names that no collection can have.
func (r *Request) checkReadable(ns string) error {
	if strings.IndexByte(ns, '$') >= 0 && ns != "local.oplog.$main" && r.Routing == nil {
		return srverr.New(srverr.InvalidNamespace, "Invalid collection name specified '%s", ns) // sic
	}
	return nil
}

// resolve returns the namespace of the collection with this UUID.
func (r *Request) resolve(uuid []byte) (ns string, err error) {
	st, err := r.Snapshot()
	if err != nil {
		return "", err
	}
	st.Colls(r.DB, func(c *store.Coll) bool {
		if string(c.UUID[:]) == string(uuid) {
			ns = c.NS
		}
		return ns == ""
	})
	if ns == "" {
		var id [16]byte
		copy(id[:], uuid)
		return "", srverr.New(srverr.NamespaceNotFound, "Unable to resolve %s", bsondoc.UUIDString(id))
	}
	return ns, nil
}

// Expect says which UUID the collection must have that the request goes to; nil: any.
func (r *Request) Expect(ns string, uuid []byte) { r.expectedNS, r.expectedUUID = ns, uuid }

// checkExpected refuses the collection if it does not have the UUID that the request names.
func (r *Request) checkExpected(st *store.State, ns string) error {
	if r.expectedUUID == nil || ns != r.expectedNS {
		return nil
	}
	return CheckUUID(st, ns, r.expectedUUID)
}

// CheckUUID returns the error of a collection that does not have the UUID which a command says, and
// names the one of the database that has it.
func CheckUUID(st *store.State, ns string, want []byte) error {
	if c := st.Coll(ns); c != nil && !c.View && string(c.UUID[:]) == string(want) {
		return nil
	}
	db, name := namespace.Split(ns)
	actual := bson.RawValue{Type: bson.TypeNull}
	st.Colls(db, func(c *store.Coll) bool {
		found := !c.View && string(c.UUID[:]) == string(want)
		if found {
			actual = bsondoc.StringValue(c.Name)
		}
		return !found
	})
	e := srverr.New(srverr.CollectionUUIDMismatch, "Collection UUID does not match that specified")
	at, extra := bson.BeginDocument(nil)
	extra = bson.AppendBinary(bson.AppendString(extra, "db", db), "collectionUUID", bson.BinaryUUID, want)
	extra = bson.AppendString(extra, "expectedCollection", name)
	e.Extra = bson.EndDocument(bson.AppendRawValue(extra, "actualCollection", actual), at)
	return e
}

// ShardedNS reads the full name of the collection that a command of sharding is about.
func (r *Request) ShardedNS() (db, ns string, err error) {
	ns, ok := r.Arg().StringValue()
	if !ok {
		return "", "", srverr.New(srverr.BadValue, "collection name has invalid type %s",
			bsontext.TypeName(r.Arg().Type))
	}
	db, coll, ok := strings.Cut(ns, ".")
	if !ok || coll == "" || !namespace.ValidDB(db) {
		return "", "", srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", ns)
	}
	return db, ns, nil
}
