package catalog

import (
	"maps"
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
	// stayTemp leaves a temporary collection one, which is gone with the next start.
	stayTemp bool
	source   []byte // collectionUUID, that the collection must have; nil: any
	target   []byte // dropTarget as the UUID of the collection that is dropped; nil: it has none
}

var renameArgs = &args.Table[renameSpec]{Name: "renameCollection", Required: []string{"to"},
	Fields: map[string]args.Field[renameSpec]{
		"to":             args.String(func(q *renameSpec) *string { return &q.to }),
		"dropTarget":     args.SafeBool(func(q *renameSpec) *bool { return &q.drop }).Strict().TypedBool(),
		"stayTemp":       args.SafeBool(func(q *renameSpec) *bool { return &q.stayTemp }).Strict().TypedBool(),
		"collectionUUID": args.UUID("renameCollection", func(q *renameSpec) *[]byte { return &q.source }).Gated(),
	}}

// renameArgs81 are those since version 8.1: what is dropped may be named by its UUID.
var renameArgs81 = func() *args.Table[renameSpec] {
	t := *renameArgs
	t.Fields = maps.Clone(t.Fields)
	t.Fields["dropTarget"] = args.Any[renameSpec](nil).Must().Then(dropTarget)
	return &t
}()

// dropTarget reads a dropTarget that may be a UUID.
func dropTarget(q *renameSpec, v args.Value) error {
	b, ok := v.Binary()
	switch {
	case ok && (b.Subtype != bson.BinaryUUID || len(b.Data) != 16):
		return srverr.New(srverr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
	case ok:
		q.drop, q.target = true, b.Data
	case v.Type != bson.TypeBoolean:
		return args.WrongTypes("renameCollection.dropTarget", v.Type, "[bool, binData]'")
	default:
		q.drop = v.AsBool()
	}
	return nil
}

// checkTargets checks the names of a rename since version 8.1, and the UUIDs that it gives.
func (q *renameSpec) checkTargets(st *store.State, from string, c, target *store.Coll) error {
	fromDB, fromName := namespace.Split(from)
	toDB, toName := namespace.Split(q.to)
	for _, name := range []string{fromName, toName} {
		if name == "system.users" || name == "system.js" || toDB == "local" && strings.HasPrefix(name, "oplog.") {
			return srverr.New(srverr.IllegalOperation, "renaming system collection %s is not allowed", name)
		}
	}
	if q.target != nil && fromDB != toDB {
		return srverr.New(srverr.InvalidOptions, "dropTarget cannot be a UUID when renaming between databases")
	}
	if q.source != nil && c != nil {
		if err := server.CheckUUID(st, from, q.source); err != nil {
			return err
		}
	}
	if q.target != nil {
		if err := server.CheckUUID(st, q.to, q.target); err != nil {
			return err
		}
	}
	switch {
	case c == nil:
	case from == q.to:
		return srverr.New(srverr.IllegalOperation, "Can't rename a collection to itself")
	case c.TimeSeries:
		return srverr.New(srverr.CommandNotSupportedOnView, "cannot rename time-series collection: %s", from)
	case target != nil && target.TimeSeries:
		return srverr.New(srverr.NamespaceExists, "a view already exists with that name: %s", q.to)
	}
	return nil
}

func runRename(r *server.Request, dst []byte) ([]byte, error) {
	from, ok := r.Arg().StringValue()
	parsed := r.Version().AllParsed()
	if parsed && args.IsNull(r.Arg()) {
		return dst, args.MissingField("renameCollection.renameCollection")
	}
	if !ok && parsed {
		return dst, args.WrongType("renameCollection.renameCollection", r.Arg().Type, "string")
	}
	if !ok {
		return dst, srverr.New(srverr.BadValue, "collection name has invalid type %s", typeOf(r.Arg()))
	}
	var q renameSpec
	table := renameArgs
	if parsed {
		table = renameArgs81
	}
	if err := table.ParseCommand(r, &q); err != nil {
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
	if parsed {
		_, fromName := namespace.Split(from)
		if strings.HasPrefix(fromName, ".") || strings.HasPrefix(toName, ".") {
			return dst, srverr.New(srverr.InvalidNamespace, "Collection names cannot start with '.': %s to %s", from, to)
		}
		if strings.Contains(fromDB, "$") || strings.Contains(toDB, "$") {
			return dst, srverr.New(srverr.IllegalOperation, "Cannot rename collections of a database with '$' in its name")
		}
	}
	if (fromDB == "local") != (toDB == "local") && !(parsed && r.Node.Role() == server.Standalone) {
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
		if parsed {
			if err := q.checkTargets(tx.State(), from, c, target); err != nil {
				return err
			}
		}
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
		options := c.Raw
		if !q.stayTemp && options.Lookup("temp").AsBool() {
			options = bsondoc.Without(options, "temp")
		}
		return tx.Rename(c, to, options)
	})
}
