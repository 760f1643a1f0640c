package server

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	Register(&Command{Name: "listCollections", Where: OptIn, Run: runListCollections})
	Register(&Command{Name: "listDatabases", Where: OptIn, AdminOnly: true, Run: runListDatabases})
	Register(&Command{Name: "listIndexes", Where: OptIn, Run: runListIndexes})
}

func runListCollections(r *Request, dst []byte) ([]byte, error) {
	q := aggregateSpec{batchSize: -1}
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
			err = q.cursor(r, v)
		case "filter":
			if v.Type == bson.TypeNull && r.Node.cfg.Version.AtLeast(5, 0) {
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
			if !r.Generic(k) && r.Node.cfg.Version.AtLeast(5, 0) {
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
		if c.TimeSeries && r.listsBuckets() {
			all = append(all, describeBuckets(c, nameOnly))
		}
		return true
	})
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
	return r.appendList(dst, r.DB+".$cmd.listCollections", docs, q.batchSize)
}

// appendList appends a cursor over documents that the command has made.
func (r *Request) appendList(dst []byte, ns string, docs []bson.Raw, batchSize int64) ([]byte, error) {
	limit := batchSize
	if limit < 0 {
		limit = int64(len(docs))
	}
	n, size := 0, 0
	for n < len(docs) && int64(n) < limit && (n == 0 || size+len(docs[n]) <= MaxBSONObjectSize) {
		size += len(docs[n])
		n++
	}
	id := int64(0)
	if n < len(docs) {
		c := r.newCursor(ns, pipeline.FromSlice(docs[n:]), &running{})
		if err := r.keepCursor(c); err != nil {
			return dst, err
		}
		id = c.id
	}
	return appendListCursor(dst, ns, id, func(dst []byte) []byte {
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

func runListIndexes(r *Request, dst []byte) ([]byte, error) {
	ns, err := r.readable(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	q := aggregateSpec{batchSize: -1}
	first := true
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		switch k {
		case "cursor":
			err = q.cursor(r, v)
		case "includeBuildUUIDs", "includeIndexBuildInfo":
		default:
			if !r.Generic(k) && r.Node.cfg.Version.AtLeast(5, 0) {
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
	return r.appendList(dst, ns, docs, q.batchSize)
}

var listDatabasesStruct = &idl.Struct{Name: "listDatabases", Fields: map[string]idl.Field{
	"filter": {Kind: idl.Object}, "nameOnly": {Kind: idl.SafeBool}, "authorizedDatabases": {Kind: idl.SafeBool, Strict: idl.Bool},
}}

func runListDatabases(r *Request, dst []byte) ([]byte, error) {
	var filter bson.Raw
	var nameOnly bool
	err := listDatabasesStruct.ParseCommand(r, func(k string, v bson.RawValue) error {
		switch k {
		case "filter":
			filter = v.Value
		case "nameOnly":
			nameOnly = v.AsBool()
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	var f *query.Filter
	if filter != nil {
		if f, err = query.ParseFilter(filter, r.FullOptions("", nil, nil)); err != nil {
			return dst, err
		}
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
	all := !r.Node.cfg.Auth || r.may(account.Need{Action: "listDatabases"})
	for _, name := range names {
		if !all && !r.may(need("find", name, "")) {
			continue
		}
		size := databaseSize(st, name)
		one, doc := bson.BeginDocument(nil)
		doc = bson.AppendString(doc, "name", name)
		if !nameOnly {
			if r.Node.cfg.Version.AtLeast(5, 0) {
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
	case r.Node.cfg.Version.AtLeast(5, 0):
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

// pageSize is the least that a file on disk takes.
const pageSize = 4096

// databaseSize returns what a database would take on disk, roughly.
func databaseSize(st *store.State, db string) float64 {
	size := 0.0
	st.Colls(db, func(c *store.Coll) bool {
		size += diskSize(c.Bytes())
		for range c.Indexes() {
			size += pageSize
		}
		return true
	})
	return max(size, 2*pageSize)
}

func diskSize(bytes int64) float64 { return float64((bytes/pageSize + 1) * pageSize) }
