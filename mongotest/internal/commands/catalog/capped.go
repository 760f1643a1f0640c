package catalog

import (
	"math"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Commands that make capped collections of others, or empty them.

func init() {
	server.Register(&server.Command{
		Name: "convertToCapped", Needs: server.OnColl("convertToCapped"), WriteConcern: true,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace}, Run: runConvertToCapped,
	})
	server.Register(&server.Command{
		Name: "cloneCollectionAsCapped", Roles: server.Mongod,
		Needs: server.NeedsBy("find on the collection; insert, createIndex, convertToCapped on the new one",
			needsOfClone), WriteConcern: true,
		Run: runCloneAsCapped,
	})
	server.Register(&server.Command{
		Name: "emptycapped", Roles: server.Mongod, Needs: server.OnColl("emptycapped"), WriteConcern: true,
		Run: runEmptyCapped,
	})
	server.Register(&server.Command{Name: "godinsert", Needs: server.Free, Roles: server.Mongod, Run: runGodInsert})
}

// cappedSize reads the size that both commands need.
func cappedSize(r *server.Request) (int64, error) {
	v := r.Body.Lookup("size")
	n, _ := args.NumberOf(v)
	nan := false
	if f, ok := v.Double(); ok && r.Cmd.Name == "cloneCollectionAsCapped" {
		nan = math.IsNaN(f) // which is not zero
	}
	switch {
	case r.Version().AllParsed() && (!v.IsNumber() || n <= 0):
		return 0, srverr.New(srverr.InvalidOptions, "Capped collection size must be greater than zero")
	case !v.IsNumber() || n == 0 && !nan:
		return 0, &srverr.Error{Msg: "invalid command spec"}
	case n < 0 || nan:
		return 0, srverr.New(srverr.BadValue, "size has to be >= 0")
	case n > maxSize:
		return 0, srverr.New(srverr.BadValue, "size cannot exceed 1 PB")
	}
	return n, nil
}

func runConvertToCapped(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	size, err := cappedSize(r)
	if err != nil {
		return dst, err
	}
	parsed := r.Version().AllParsed()
	if parsed && strings.HasSuffix(ns, ".system.views") {
		return dst, srverr.New(srverr.BadValue, "cannot convert system.views to a capped collection")
	}
	return dst, r.Write(func(tx *store.Tx) error {
		if tx.Coll(ns) != nil && parsed && len(ns)+len(temporaryName) > 255 {
			return srverr.New(srverr.InvalidNamespace, "Fully qualified namespace is too long. Namespace: %s%s Max: 255",
				ns, temporaryName)
		}
		if c := tx.Coll(ns); c != nil && c.Sharded() {
			return srverr.New(srverr.IllegalOperation, "You can't convertToCapped a sharded collection")
		}
		return cloneCapped(r, tx, ns, ns, size)
	})
}

func runCloneAsCapped(r *server.Request, dst []byte) ([]byte, error) {
	from, ok := r.Arg().StringValue()
	to, toOK := r.Body.Lookup("toCollection").StringValue()
	switch {
	case !ok:
		return dst, srverr.New(srverr.TypeMismatch, "'cloneCollectionAsCapped' must be of type String")
	case from == "":
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid source collection name: %s", from)
	case !toOK:
		return dst, srverr.New(srverr.TypeMismatch, "'toCollection' must be of type String")
	case to == "":
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid target collection name: %s", to)
	}
	size, err := cappedSize(r)
	if err != nil {
		return dst, err
	}
	if r.Version().AtLeast(7, 0) {
		if err := namespace.Check(r.DB, from); err != nil {
			return dst, err
		}
		if r.Version().AllParsed() && strings.ContainsAny(from+to, "$\x00") {
			return dst, srverr.New(srverr.InvalidNamespace, "Invalid source collection name: %s", from)
		}
		if err := namespace.CheckCreatable(r.Version(), namespace.Join(r.DB, to)); err != nil {
			return dst, err
		}
		if from == to {
			return dst, srverr.New(srverr.NamespaceExists,
				"cloneCollectionAsCapped failed - destination collection %s already exists. source collection: %s", to,
				from)
		}
	}
	return dst, r.Write(func(tx *store.Tx) error {
		return cloneCapped(r, tx, namespace.Join(r.DB, from), namespace.Join(r.DB, to), size)
	})
}

// temporaryName is how the collection is called as long as convertToCapped fills it.
const temporaryName = "tmpXXXXX.convertToCapped."

// cloneCapped makes a capped collection with the documents of another one, or in its place.
func cloneCapped(r *server.Request, tx *store.Tx, from, to string, size int64) error {
	c := tx.Coll(from)
	parsed := r.Version().AllParsed()
	_, fromName := namespace.Split(from)
	_, toName := namespace.Split(to)
	switch {
	case parsed && (series.NamesBuckets(fromName) || series.NamesBuckets(toName)):
		return srverr.New(srverr.IllegalOperation, "Cannot make a capped collection of the buckets of a time-series one")
	case parsed && from != to && tx.Coll(to) != nil && tx.Coll(to).View:
		return srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", to)
	case c == nil && !hasDatabase(tx.State(), r.DB):
		return srverr.New(srverr.NamespaceNotFound, "database %s not found", r.DB)
	case c == nil:
		return srverr.New(srverr.NamespaceNotFound, "source collection %s does not exist", from)
	case c.View || c.TimeSeries:
		return srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", from)
	case from != to && tx.Coll(to) != nil:
		return srverr.New(
			srverr.NamespaceExists, "cloneCollectionAsCapped failed - destination collection %s already exists. source collection: %s", to, from)
	}
	q := createSpec{ns: to, capped: true, size: size, temp: from != to && r.Body.Lookup("temp").AsBool()}
	if c.Collation != nil {
		q.collation = c.Collation.Spec()
	}
	set, err := q.settings(r)
	if err != nil {
		return err
	}
	docs := store.NewScan(c, false, nil)
	if from == to {
		if err := tx.Drop(c); err != nil {
			return err
		}
	}
	target, err := tx.Create(to, set, q.idIndexFor(set))
	for err == nil {
		_, doc, ok := docs.Next()
		if !ok {
			break
		}
		target, err = tx.Insert(target, doc)
	}
	return err
}

func runEmptyCapped(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	return dst, r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		switch {
		case c == nil && !hasDatabase(tx.State(), r.DB):
			return srverr.New(srverr.NamespaceNotFound, "no such database")
		case c == nil:
			return srverr.New(srverr.NamespaceNotFound, "no such collection")
		case c.View:
			return srverr.New(srverr.CommandNotSupportedOnView, "emptycapped not supported on view: %s", ns)
		}
		_, err := tx.Truncate(c)
		return err
	})
}

// runGodInsert inserts a document without looking at it: the server's own tests use it.
func runGodInsert(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	obj := r.Body.Lookup("obj")
	doc, ok := obj.Document()
	if !ok {
		field := "obj"
		if obj.IsZero() {
			field = ""
		}
		return dst, srverr.New(10065, "invalid parameter: expected an object (%s)", field)
	}
	doc, err = r.Prepare(doc)
	if err != nil {
		return dst, err
	}
	return dst, r.Write(func(tx *store.Tx) error {
		c, err := r.Writable(tx, ns, true)
		if err != nil {
			return err
		}
		_, err = tx.Insert(c, doc)
		return err
	})
}

// hasDatabase reports whether a database has any collection.
func hasDatabase(st *store.State, db string) (has bool) {
	if db == "admin" || db == "config" || db == "local" {
		return true
	}
	st.Colls(db, func(*store.Coll) bool {
		has = true
		return false
	})
	return has
}

func needsOfClone(r *server.Request, body bson.Raw) []account.Need {
	to := r.DB + "." + bsondoc.MustString(body.Lookup("toCollection"))
	return append(r.OnTarget(body, "find"), server.Privileges(to, "insert", "createIndex", "convertToCapped")...)
}
