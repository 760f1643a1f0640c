package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	register(&Command{Name: "renameCollection", AdminOnly: true, WriteConcern: true, Run: runRename})
}

func runRename(r *Request, dst []byte) ([]byte, error) {
	from, ok := r.Arg().StringValue()
	if !ok {
		return dst, srverr.New(srverr.BadValue, "collection name has invalid type %s", typeOf(r.Arg()))
	}
	var to string
	hasTo, dropTarget := false, false
	first := true
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
			continue
		}
		var err error
		switch k {
		case "to":
			to, err = stringArg("renameCollection.to", v)
			hasTo = true
		case "dropTarget":
			dropTarget = v.AsBool()
		case "stayTemp", "collectionUUID":
		default:
			if !r.generic(k) {
				err = unknownField("renameCollection." + k)
			}
		}
		if err != nil {
			return dst, err
		}
	}
	if !hasTo {
		return dst, missingField("renameCollection.to")
	}
	fromDB, fromName := splitNS(from)
	if fromName == "" {
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", from)
	}
	toDB, toName := splitNS(to)
	if toName == "" || !ValidDBName(toDB) {
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid target namespace: %s", to)
	}
	switch {
	case from == "admin.system.version":
		return dst, srverr.New(srverr.IllegalOperation, "renaming the server configuration collection (admin.system.version) is not allowed")
	case strings.HasPrefix(toName, "$"):
		return dst, srverr.New(srverr.IllegalOperation, "error with target namespace: invalid collection name")
	case strings.HasPrefix(toName, "system.") && !systemCollections[toName]:
		return dst, srverr.New(srverr.IllegalOperation, "error with target namespace: cannot write to '%s'", to)
	case len(to) > 255:
		return dst, srverr.New(4862100, "Fully qualified namespace is too long. Namespace: %s Max: 255", to)
	case (fromDB == "local") != (toDB == "local"):
		return dst, srverr.New(srverr.IllegalOperation, "Cannot rename collections between a replicated and an unreplicated database")
	}
	return dst, r.write(func(tx *store.Tx) error {
		c, target := tx.Coll(from), tx.Coll(to)
		switch {
		case c == nil:
			return srverr.New(srverr.NamespaceNotFound, "Source collection %s does not exist", from)
		case c.View:
			return srverr.New(srverr.CommandNotSupportedOnView, "cannot rename view: %s", from)
		case target != nil && target.View:
			return srverr.New(srverr.NamespaceExists, "a view already exists with that name: %s", to)
		case target != nil && (!dropTarget || from == to):
			return srverr.New(srverr.NamespaceExists, "target namespace exists")
		}
		if err := checkDatabaseCase(tx.State(), toDB); err != nil {
			return err
		}
		return tx.Rename(c, to)
	})
}
