package catalog

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "renameCollection", Help: " example: { renameCollection: foo.a, to: bar.b }", AdminOnly: true,
		Needs: server.NeedsBy(
			"renameCollectionSameDB on the collection; find, dropCollection there and insert on the new one in another database", needsOfRename),
		WriteConcern: true, Mongos: server.OnMongos{Config: true, Catalog: renamed, Forgets: forgetsRenamed},
		Run: runRename,
	})
}

// needsOfRename: what moves to another database is read, dropped and inserted there.
func needsOfRename(_ *server.Request, body bson.Raw) []account.Need {
	_, v := bsondoc.FirstElement(body)
	from, to := bsondoc.MustString(v), bsondoc.MustString(body.Lookup("to"))
	fromDB, _ := namespace.Split(from)
	if toDB, _ := namespace.Split(to); fromDB == toDB {
		return server.Privileges(from, "renameCollectionSameDB")
	}
	return append(server.Privileges(from, "find", "dropCollection"), server.Privileges(to, "insert")...)
}

// renamed returns the collection that gets another name.
func renamed(r *server.Request) string { return bsondoc.MustString(r.Arg()) }

func forgetsRenamed(r *server.Request) []string {
	return []string{renamed(r), bsondoc.MustString(r.Body.Lookup("to"))}
}

// renameSpec are the arguments of renameCollection.
type renameSpec struct {
	to   string
	drop bool // dropTarget
}

var renameArgs = &args.Table[renameSpec]{Name: "renameCollection", Required: []string{"to"},
	Fields: map[string]args.Field[renameSpec]{
		"to":             args.String(func(q *renameSpec) *string { return &q.to }),
		"dropTarget":     args.SafeBool(func(q *renameSpec) *bool { return &q.drop }).Strict().TypedBool(),
		"stayTemp":       args.SafeBool[renameSpec](nil).Strict().TypedBool(),
		"collectionUUID": args.Any[renameSpec](nil).Gated().Then(checkUUID),
	}}

// checkUUID checks the collectionUUID of a rename.
func checkUUID(_ *renameSpec, v args.Value) error {
	switch b, ok := v.Binary(); {
	case !v.From.Version().AllParsed() || v.Type == bson.TypeNull:
	case !ok:
		return args.WrongType("renameCollection.collectionUUID", v.Type, "binData")
	case b.Subtype != bson.BinaryUUID:
		return args.WrongType("renameCollection.collectionUUID", v.Type, "UUID")
	case len(b.Data) != 16:
		return srverr.New(srverr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
	}
	return nil
}

func runRename(r *server.Request, dst []byte) ([]byte, error) {
	from, ok := r.Arg().StringValue()
	if !ok && r.Version().AllParsed() {
		return dst, args.WrongType("renameCollection.renameCollection", r.Arg().Type, "string")
	}
	if !ok {
		return dst, srverr.New(srverr.BadValue, "collection name has invalid type %s", typeOf(r.Arg()))
	}
	var q renameSpec
	if err := renameArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	to, dropTarget := q.to, q.drop
	if err := namespace.CheckFull(from); err != nil {
		return dst, err
	}
	fromDB, _ := namespace.Split(from)
	toDB, toName := namespace.Split(to)
	if strings.IndexByte(to, 0) >= 0 {
		return dst, namespace.CheckFull(to)
	}
	if toName == "" || !namespace.ValidDB(toDB) {
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid target namespace: %s", to)
	}
	if (fromDB == "local") != (toDB == "local") {
		return dst, srverr.New(srverr.IllegalOperation,
			"Cannot rename collections between a replicated and an unreplicated database")
	}
	if err := namespace.CheckRenamable(r.Version(), from, "source"); err != nil {
		return dst, err
	}
	if err := namespace.CheckRenamable(r.Version(), to, "target"); err != nil {
		return dst, err
	}
	if from == "admin.system.version" || to == "admin.system.version" {
		return dst, srverr.New(srverr.IllegalOperation,
			"renaming the server configuration collection (admin.system.version) is not allowed")
	}
	return dst, r.Write(func(tx *store.Tx) error {
		c, target := tx.Coll(from), tx.Coll(to)
		switch {
		case c == nil && !hasDatabase(tx.State(), fromDB) && !r.Version().AtLeast(5, 0):
			return srverr.New(srverr.NamespaceNotFound, "source namespace does not exist")
		case c == nil:
			return srverr.New(srverr.NamespaceNotFound, "Source collection %s does not exist", from)
		case !r.Version().AtLeast(5, 0) && c.Sharded():
			return srverr.New(13138, "You can't rename a sharded collection")
		case !r.Version().AtLeast(5, 0) && target != nil && target.Sharded():
			return srverr.New(13139, "You can't rename to a sharded collection")
		case c.View:
			return srverr.New(srverr.CommandNotSupportedOnView, "cannot rename view: %s", from)
		case target != nil && target.View:
			return srverr.New(srverr.NamespaceExists, "a view already exists with that name: %s", to)
		case target != nil && (!dropTarget || from == to):
			return srverr.New(srverr.NamespaceExists, "target namespace exists")
		}
		if err := server.CheckDatabaseCase(tx.State(), toDB); err != nil {
			return err
		}
		return tx.Rename(c, to)
	})
}
