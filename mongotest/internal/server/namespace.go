package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Names of databases and collections. The server checks them in three steps, and what a command
// says to a bad name depends on how far it goes: whether it is a namespace at all, whether a
// command may read it, and whether a client may write to it.

// maxNamespace is how long "db.collection" may be.
const maxNamespace = 255

// Collection returns the command's collection as "db.name". code is that of the errors for what is
// no name: BadValue from generated parsers, InvalidNamespace from the older ones.
func (r *Request) Collection(code int32) (ns string, err error) {
	v := r.Arg()
	if b, ok := v.Binary(); ok && b.Subtype == bson.BinaryUUID {
		return "", srverr.New(code, "Collection name must be provided. UUID is not valid in this context")
	}
	if v.Type != bson.TypeString && v.Type != bson.TypeSymbol {
		return "", srverr.New(code, "collection name has invalid type %s", bsontext.TypeName(v.Type))
	}
	name := string(v.Value[4 : len(v.Value)-1])
	if err := checkNamespace(r.DB, name); err != nil {
		return "", err
	}
	return r.DB + "." + name, nil
}

// readable returns the collection of a command that reads: it may be given by its UUID, and must
// have no dollar in its name.
func (r *Request) readable(code int32) (ns string, err error) {
	if b, ok := r.Arg().Binary(); ok && b.Subtype == bson.BinaryUUID && r.Node.role != Mongos {
		return r.resolve(b.Data)
	}
	if ns, err = r.Collection(code); err != nil {
		return "", err
	}
	return ns, r.checkReadable(ns)
}

// checkReadable refuses the names of what is no collection.
func (r *Request) checkReadable(ns string) error {
	if strings.IndexByte(ns, '$') >= 0 && ns != "local.oplog.$main" && r.Node.role != Mongos {
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

// checkNamespace checks what makes a namespace.
func checkNamespace(db, name string) error {
	switch {
	case name != "" && name[0] == '.':
		return srverr.New(srverr.InvalidNamespace, "Collection names cannot start with '.'")
	case strings.IndexByte(name, 0) >= 0:
		return srverr.New(srverr.InvalidNamespace, "namespaces cannot have embedded null characters")
	case name == "" || !ValidDBName(db):
		return srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s.%s'", db, name)
	}
	return nil
}

// systemCollections are the names below "system." that clients may create.
var systemCollections = map[string]bool{
	"system.js": true, "system.profile": true, "system.users": true, "system.views": true, "system.roles": true, "system.version": true,
	"system.buckets": true,
}

// checkCreatable refuses the namespaces that clients may not create.
func checkCreatable(ns string) error {
	db, name := splitNS(ns)
	switch {
	case strings.IndexByte(name, '$') >= 0:
		return srverr.New(srverr.InvalidNamespace, "invalid collection name")
	case len(ns) > maxNamespace:
		return srverr.New(4862100, "Fully qualified namespace is too long. Namespace: %s Max: %d", ns, maxNamespace)
	case strings.HasPrefix(name, "system.") && db != "config" && db != "local" && !systemCollections[name] && !strings.HasPrefix(name, "system.buckets."):
		return srverr.New(srverr.InvalidNamespace, "cannot write to '%s'", ns)
	}
	return nil
}

// checkWritable refuses the namespaces that clients may not write to.
func checkWritable(ns string) error {
	if strings.HasSuffix(ns, ".system.profile") {
		return srverr.New(srverr.InvalidNamespace, "cannot write to '%s'", ns)
	}
	if _, name := splitNS(ns); strings.Contains(name, ".system.") {
		return srverr.New(srverr.BadValue, "cannot write to '%s'", ns)
	}
	return checkCreatable(ns)
}

// namespace joins the names.
func namespace(db, coll string) string { return db + "." + coll }

// splitNS is the reverse of namespace.
func splitNS(ns string) (db, coll string) {
	db, coll, _ = strings.Cut(ns, ".")
	return db, coll
}

func cutDot(s string) (before, after string, ok bool) {
	for i := range s {
		if s[i] == '.' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}
