// Package namespace checks the names of databases and collections. The server does so in three
// steps, and what a command says to a bad name depends on how far it goes: whether it is a
// namespace at all, whether a command may read it, and whether a client may write to it.
package namespace

import (
	"strings"

	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// maxLength is how long "db.collection" may be.
const maxLength = 255

// Check refuses what is no namespace.
func Check(db, name string) error {
	switch {
	case name != "" && name[0] == '.':
		return srverr.New(srverr.InvalidNamespace, "Collection names cannot start with '.'")
	case strings.IndexByte(name, 0) >= 0:
		return srverr.New(srverr.InvalidNamespace, "namespaces cannot have embedded null characters")
	case name == "" || !ValidDB(db):
		return srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s.%s'", db, name)
	}
	return nil
}

// CheckFull refuses a string that is not the full name of a collection.
func CheckFull(ns string) error {
	if strings.IndexByte(ns, 0) >= 0 {
		return srverr.New(srverr.InvalidNamespace, "namespaces cannot have embedded null characters")
	}
	if db, coll := Split(ns); coll == "" || !ValidDB(db) {
		return srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", ns)
	}
	return nil
}

// systemCollections are the names below "system." that clients may create, and adminCollections
// those that they may in database "admin" only.
var (
	systemCollections = map[string]bool{
		"system.js": true, "system.profile": true, "system.users": true, "system.views": true, "system.buckets": true,
	}
	adminCollections = map[string]bool{
		"system.roles": true, "system.version": true, "system.new_users": true, "system.backup_users": true,
	}
)

func creatableSystem(db, name string) bool {
	return db == "config" || db == "local" || systemCollections[name] || db == "admin" && adminCollections[name] ||
		strings.HasPrefix(name, "system.buckets.")
}

// CheckCreatable refuses the namespaces that clients may not create.
func CheckCreatable(version release.Version, ns string) error {
	db, name := Split(ns)
	switch {
	case strings.IndexByte(name, '$') >= 0 || strings.HasPrefix(name, "."):
		if version.AtLeast(7, 0) {
			return srverr.New(srverr.InvalidNamespace, "Invalid collection name: %s", name)
		}
		return srverr.New(srverr.InvalidNamespace, "invalid collection name")
	case len(ns) > maxLength:
		code := int32(4862100)
		if version.AtLeast(7, 0) {
			code = srverr.InvalidNamespace
		}
		return srverr.New(code, "Fully qualified namespace is too long. Namespace: %s Max: %d", ns, maxLength)
	case strings.HasPrefix(name, "system."):
		if !creatableSystem(db, name) {
			return srverr.New(srverr.InvalidNamespace, "cannot write to '%s'", ns)
		}
	case strings.Contains(name, ".system.") && !strings.Contains(name, ".system.sessions"):
		return srverr.New(srverr.BadValue, "cannot write to '%s'", ns)
	}
	return nil
}

// CheckWritable refuses the namespaces that clients may not write to: from 5.0 on also what a
// database knows of its views.
func CheckWritable(version release.Version, ns string) error {
	switch {
	case strings.HasSuffix(ns, ".system.profile"):
		return srverr.New(srverr.InvalidNamespace, "cannot write to '%s'", ns)
	case strings.HasSuffix(ns, ".system.views") && version.AtLeast(5, 0):
		return srverr.New(srverr.InvalidNamespace, "cannot write to %s", ns)
	}
	return CheckCreatable(version, ns)
}

// CheckRenamable refuses the namespaces that a collection may not get by a new name, or have
// before. side is "source" or "target".
func CheckRenamable(version release.Version, ns, side string) error {
	err := CheckWritable(version, ns)
	if err == nil {
		return nil
	}
	if e := srverr.From(err); e.Code == srverr.InvalidNamespace || e.Code == srverr.BadValue {
		return srverr.New(srverr.IllegalOperation, "error with %s namespace: %s", side, e.Msg)
	}
	return err
}

// Join returns "db.coll".
func Join(db, coll string) string { return db + "." + coll }

// Split is the reverse of Join.
func Split(ns string) (db, coll string) {
	db, coll, _ = strings.Cut(ns, ".")
	return db, coll
}

// ValidDB reports whether a database can have this name.
func ValidDB(db string) bool {
	return db != "" && len(db) < 64 && !strings.ContainsAny(db, "/\\. \"\x00")
}

// CheckDB refuses what is no name of a database.
func CheckDB(db string) error {
	if !ValidDB(db) {
		return srverr.New(srverr.InvalidNamespace, "Invalid database name: '%s'", db)
	}
	return nil
}
