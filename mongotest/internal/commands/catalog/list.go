package catalog

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "listCollections", Help: "list collections for this db", Needs: server.OnDB("listCollections"), API: server.V1, DataLake: true,
		Where: server.OptIn, Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, Missing: listsNothing}, Run: runListCollections,
	})
	server.Register(&server.Command{
		Name: "listDatabases", Help: "{ listDatabases:1, [filter: <filterObject>] [, nameOnly: true ] }\nlist databases on this server",
		AdminOnly: true, Needs: server.Free, API: server.V1, DataLake: true, Where: server.OptIn, Run: runListDatabases,
	})
	server.Register(&server.Command{
		Name: "listIndexes", Help: "list indexes for a collection", Needs: server.OnColl("listIndexes"), API: server.V1, Where: server.OptIn,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, Early: server.CheckTarget, Missing: server.RefuseMissing}, Run: runListIndexes,
	})
}

func runListCollections(r *server.Request, dst []byte) ([]byte, error) {
	batchSize := int64(-1)
	var filter bson.Raw
	var nameOnly bool
	first := true
	var err error
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		switch k {
		case "cursor":
			err = server.ParseCursorOption(v, &batchSize)
		case "filter":
			if v.Type == bson.TypeNull && r.Node.Config().Version.AtLeast(5, 0) {
				continue
			}
			if v.Type != bson.TypeEmbeddedDocument {
				return dst, srverr.New(srverr.BadValue, "\"filter\" must be an object")
			}
			filter = v.Value
		case "nameOnly":
			nameOnly = v.AsBool()
		case "includePendingDrops":
			_, err = arg.ExtractBool(r.Body, k, false)
		case "authorizedCollections":
		default:
			if !r.Generic(k) && r.Node.Config().Version.AtLeast(5, 0) {
				return dst, arg.UnknownField("listCollections." + k)
			}
		}
		if err != nil {
			return dst, err
		}
	}
	var f *query.Filter
	if filter != nil {
		if f, err = query.ParseFilter(filter, r.FullOptions(r.DB+".$cmd.listCollections", nil, nil)); err != nil {
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
		all = append(all, describeCollection(c, nameOnly))
		if c.TimeSeries && r.ListsBuckets() {
			all = append(all, server.DescribeBuckets(c, nameOnly))
		}
		return true
	})
	r.Node.DescribeSystemCollections(r.DB, nameOnly, func(doc bson.Raw) { all = append(all, doc) })
	for _, c := range r.AuthColls(st, r.DB) {
		all = append(all, describeCollection(c, nameOnly))
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

// describeCollection returns a collection's entry in listCollections.
func describeCollection(c *store.Coll, nameOnly bool) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "name", c.Name)
	kind := "collection"
	switch {
	case c.View:
		kind = "view"
	case c.TimeSeries:
		kind = "timeseries"
	}
	doc = bson.AppendString(doc, "type", kind)
	if nameOnly {
		return bson.EndDocument(doc, at)
	}
	doc = bson.AppendDocument(doc, "options", bsondoc.OrEmpty(c.Raw))
	info, doc := bson.BeginDocumentElement(doc, "info")
	doc = bson.AppendBool(doc, "readOnly", c.View)
	if !c.View && !c.TimeSeries {
		doc = bson.AppendBinary(doc, "uuid", bson.BinaryUUID, c.UUID[:])
	}
	doc = bson.EndDocument(doc, info)
	if list := c.Indexes(); len(list) > 0 && list[0].IsID {
		doc = bson.AppendDocument(doc, "idIndex", list[0].Spec)
	}
	return bson.EndDocument(doc, at)
}

func runListIndexes(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Readable(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	batchSize := int64(-1)
	first := true
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		switch k {
		case "cursor":
			err = server.ParseCursorOption(v, &batchSize)
		case "includeBuildUUIDs", "includeIndexBuildInfo":
		default:
			if !r.Generic(k) && r.Node.Config().Version.AtLeast(5, 0) {
				return dst, arg.UnknownField("listIndexes." + k)
			}
		}
		if err != nil {
			return dst, err
		}
	}
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
	var docs []bson.Raw
	for i := range c.Indexes() {
		docs = append(docs, c.Indexes()[i].Spec)
	}
	if c.Clustered {
		at, doc := bson.BeginDocument(nil)
		for k, v := range bson.Raw(c.Raw.Lookup("clusteredIndex").Value).All() {
			doc = bson.AppendRawValue(doc, k, v)
		}
		doc = bson.AppendBool(doc, "clustered", true)
		docs = append([]bson.Raw{bson.EndDocument(doc, at)}, docs...)
	}
	return appendList(r, dst, ns, docs, batchSize)
}

var listDatabasesStruct = &idl.Struct{Name: "listDatabases", Fields: map[string]idl.Field{
	"filter": {Kind: idl.Object}, "nameOnly": {Kind: idl.SafeBool}, "authorizedDatabases": {Kind: idl.SafeBool, Strict: idl.Bool},
}}

func runListDatabases(r *server.Request, dst []byte) ([]byte, error) {
	var filter bson.Raw
	var nameOnly bool
	var authorized bson.RawValue
	err := listDatabasesStruct.ParseCommand(r, func(k string, v bson.RawValue) error {
		switch k {
		case "filter":
			filter = v.Value
		case "nameOnly":
			nameOnly = v.AsBool()
		case "authorizedDatabases":
			authorized = v
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	// Who may list databases gets all of them, and others get those that they may read, unless they
	// say which of the two they want.
	all := r.May(account.Need{Action: "listDatabases"})
	if authorized.Type != 0 && authorized.Type != bson.TypeNull {
		if !authorized.AsBool() && !all {
			return dst, srverr.New(srverr.Unauthorized, "Insufficient permissions to list all databases")
		}
		all = !authorized.AsBool() || !r.Node.Config().Auth
	}
	var f *query.Filter
	if filter != nil {
		if f, err = query.ParseFilter(filter, r.FullOptions("", nil, nil)); err != nil {
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
			if r.Node.Config().Version.AtLeast(5, 0) {
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
	case r.Node.Config().Version.AtLeast(5, 0):
		dst = bson.AppendInt64(dst, "totalSize", int64(total))
		dst = bson.AppendInt64(dst, "totalSizeMb", int64(total)>>20)
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
