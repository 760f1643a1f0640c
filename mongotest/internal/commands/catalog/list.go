package catalog

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "listCollections", Timeless: true,
		Help: "list collections for this db", Needs: server.OnDB("listCollections"),
		API: server.V1, DataLake: true,
		Where: server.OptIn, Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, Missing: listsNothing},
		Run: runListCollections,
	})
	server.Register(&server.Command{
		Name: "listDatabases", Timeless: true,
		Help:      "{ listDatabases:1, [filter: <filterObject>] [, nameOnly: true ] }\nlist databases on this server",
		AdminOnly: true, Needs: server.Free, API: server.V1, DataLake: true, Where: server.OptIn, Run: runListDatabases,
	})
	server.Register(&server.Command{
		Name: "listIndexes", Help: "list indexes for a collection", Needs: server.OnColl("listIndexes"), API: server.V1,
		Where: server.OptIn,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, Early: server.CheckTarget,
			Missing: server.RefuseMissing}, Run: runListIndexes,
	})
}

// listSpec are the arguments of the commands that list.
type listSpec struct {
	batchSize                 int64 // -1: not given
	filter                    bson.Raw
	nameOnly                  bool
	authorized, hasAuthorized bool // authorizedDatabases
	buildUUIDs, buildInfo     bool // includeBuildUUIDs, includeIndexBuildInfo
}

var (
	listCursor          = server.CursorOption(args.Any[listSpec](nil), func(q *listSpec) *int64 { return &q.batchSize })
	listFilter          = args.Object(func(q *listSpec) *bson.Raw { return &q.filter })
	listCollectionsArgs = &args.Table[listSpec]{Name: "listCollections", Fields: map[string]args.Field[listSpec]{
		"cursor": listCursor.TypedObject(), "authorizedCollections": args.Truth[listSpec](nil).TypedBool(),
		"includePendingDrops": args.Flag[listSpec](nil),
		"filter":              listFilter.Says(srverr.BadValue, "\"%s\" must be an object").Optional().Typed(),
		"nameOnly":            args.Truth(func(q *listSpec) *bool { return &q.nameOnly }).TypedBool(),
	}, Old: &args.Old{}}
	listIndexesArgs = &args.Table[listSpec]{Name: "listIndexes", Fields: map[string]args.Field[listSpec]{
		"cursor":                listCursor.TypedObject(),
		"includeBuildUUIDs":     args.Truth(func(q *listSpec) *bool { return &q.buildUUIDs }).TypedBool(),
		"includeIndexBuildInfo": args.Truth(func(q *listSpec) *bool { return &q.buildInfo }).TypedBool(),
	}, Old: &args.Old{}}
	listDatabasesArgs = &args.Table[listSpec]{Name: "listDatabases", Fields: map[string]args.Field[listSpec]{
		"filter": listFilter, "nameOnly": args.SafeBool(func(q *listSpec) *bool { return &q.nameOnly }),
		"authorizedDatabases": args.SafeBool(func(q *listSpec) *bool {
			return &q.authorized
		}).Strict().TypedBool().Note(func(q *listSpec) *bool { return &q.hasAuthorized }),
	}}
)

func runListCollections(r *server.Request, dst []byte) ([]byte, error) {
	q := listSpec{batchSize: -1}
	if err := listCollectionsArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	batchSize, nameOnly := q.batchSize, q.nameOnly
	var err error
	var f *query.Filter
	if q.filter != nil {
		o := r.FullOptions(r.DB+".$cmd.listCollections", nil, nil)
		o.NoText, o.NoWhere = true, true
		if f, err = query.ParseFilter(q.filter, o); err != nil {
			return dst, err
		}
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	var docs []bson.Raw
	var all []bson.Raw
	st.Colls(r.DB, func(c *store.Coll) bool {
		all = append(all, server.DescribeCollection(c, nameOnly))
		if c.TimeSeries && series.ListsBuckets(r.Version()) {
			all = append(all, series.DescribeBuckets(c, nameOnly))
		}
		return true
	})
	r.Node.DescribeSystemCollections(r.DB, nameOnly, func(doc bson.Raw) { all = append(all, doc) })
	for _, c := range r.AuthColls(st, r.DB) {
		all = append(all, server.DescribeCollection(c, nameOnly))
	}
	for _, doc := range all {
		if f != nil {
			ok, err := f.Match(doc)
			if err != nil {
				return dst, err
			}
			if !ok {
				continue
			}
		}
		docs = append(docs, doc)
	}
	return appendList(r, dst, r.DB+".$cmd.listCollections", docs, batchSize)
}

// appendList appends a cursor over documents that the command has made.
func appendList(r *server.Request, dst []byte, ns string, docs []bson.Raw, batchSize int64) ([]byte, error) {
	limit := batchSize
	if limit < 0 {
		limit = int64(len(docs))
	}
	n, size := 0, 0
	for n < len(docs) && int64(n) < limit && (n == 0 || size+len(docs[n]) <= server.MaxBSONObjectSize) {
		size += len(docs[n])
		n++
	}
	id := int64(0)
	if n < len(docs) {
		var err error
		if id, err = r.KeepDocuments(ns, docs[n:]); err != nil {
			return dst, err
		}
	}
	return server.AppendListCursor(dst, ns, id, func(dst []byte) []byte {
		for i, doc := range docs[:n] {
			dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), doc...)
		}
		return dst
	}), nil
}

// boundsInDoubles returns the definition of an index with the bounds of its plane as doubles, which
// is how the reply of listIndexes has them.
func boundsInDoubles(spec bson.Raw) bson.Raw {
	if spec.Lookup("min").IsZero() && spec.Lookup("max").IsZero() {
		return spec
	}
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range spec.All() {
			if (k == "min" || k == "max") && v.IsNumber() {
				v = bsondoc.DoubleValue(query.Float(v))
			}
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	})
}

func runListIndexes(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Readable(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	q := listSpec{batchSize: -1}
	if err := listIndexesArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	batchSize := q.batchSize
	st, err := r.Snapshot(ns)
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	switch {
	case c == nil:
		if specs, ok := r.Node.SystemIndexes(ns); ok {
			return appendList(r, dst, ns, specs, batchSize)
		}
		return dst, srverr.New(srverr.NamespaceNotFound, "ns does not exist: %s", ns)
	case c.View:
		return dst, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	wrap := q.buildInfo && r.Version().AllParsed()
	if wrap && q.buildUUIDs {
		return dst, srverr.New(srverr.InvalidOptions,
			"The includeBuildUUIDs flag and includeIndexBuildInfo flag cannot both be set to true")
	}
	var docs []bson.Raw
	for i := range c.Indexes() {
		doc := c.Indexes()[i].Spec
		if r.Version().AllParsed() {
			doc = boundsInDoubles(doc)
		}
		if wrap {
			doc = bsondoc.Single("spec", bsondoc.DocumentValue(doc))
		}
		docs = append(docs, doc)
	}
	if spec, ok := c.Raw.Lookup("clusteredIndex").Document(); ok && c.Clustered {
		at, doc := bson.BeginDocument(nil)
		for k, v := range spec.All() {
			doc = bson.AppendRawValue(doc, k, v)
		}
		doc = bson.AppendBool(doc, "clustered", true)
		docs = append([]bson.Raw{bson.EndDocument(doc, at)}, docs...)
	}
	return appendList(r, dst, ns, docs, batchSize)
}

func runListDatabases(r *server.Request, dst []byte) ([]byte, error) {
	var q listSpec
	err := listDatabasesArgs.ParseCommand(r, &q)
	if err != nil {
		return dst, err
	}
	nameOnly := q.nameOnly
	// Who may list databases gets all of them, and others get those that they may read, unless they
	// say which of the two they want.
	all := r.May(account.Need{Action: "listDatabases"})
	if q.hasAuthorized {
		if !q.authorized && !all {
			return dst, srverr.New(srverr.Unauthorized, "Insufficient permissions to list all databases")
		}
		all = !q.authorized || !r.Node.Config().Auth
	}
	var f *query.Filter
	if q.filter != nil {
		o := r.FullOptions("", nil, nil)
		o.NoText, o.NoWhere = true, true
		if f, err = query.ParseFilter(q.filter, o); err != nil {
			return dst, err
		}
	}
	if err := r.ShowConfig(); err != nil {
		return dst, err
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	names := st.Databases()
	for _, name := range []string{"admin", "config", "local"} {
		names = insertName(names, name)
	}
	at, dst := bson.BeginArrayElement(dst, "databases")
	total, n := 0.0, 0
	for _, name := range names {
		if !all && !r.May(account.Need{Action: "find", DB: name}) {
			continue
		}
		size := server.DatabaseSize(st, name)
		one, doc := bson.BeginDocument(nil)
		doc = bson.AppendString(doc, "name", name)
		if !nameOnly {
			if r.Version().AtLeast(5, 0) {
				doc = bson.AppendInt64(doc, "sizeOnDisk", int64(size))
			} else {
				doc = bson.AppendDouble(doc, "sizeOnDisk", size)
			}
			doc = bson.AppendBool(doc, "empty", false)
		}
		doc = bson.EndDocument(doc, one)
		if f != nil {
			ok, err := f.Match(doc)
			if err != nil {
				return dst, err
			}
			if !ok {
				continue
			}
		}
		total += size
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n), doc...)
		n++
	}
	dst = bson.EndDocument(dst, at)
	switch {
	case nameOnly:
	case r.Version().AtLeast(5, 0):
		dst = bsondoc.Append(dst, "totalSize", int64(total), "totalSizeMb", int64(total)>>20)
	default:
		dst = bson.AppendDouble(dst, "totalSize", total)
	}
	return dst, nil
}

// insertName adds a name to a sorted list that may have it already.
func insertName(names []string, name string) []string {
	i := 0
	for i < len(names) && names[i] < name {
		i++
	}
	if i < len(names) && names[i] == name {
		return names
	}
	return append(names[:i:i], append([]string{name}, names[i:]...)...)
}

func listsNothing(r *server.Request, dst []byte) (out []byte, done bool, err error) {
	return server.EmptyResult(dst, r.DB+".$cmd.listCollections")
}
