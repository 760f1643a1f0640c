package catalog

import (
	"crypto/md5"
	"encoding/hex"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// Commands that look after collections, and those that old servers had.

func init() {
	server.Register(&server.Command{Name: "compact", Needs: server.OnColl("compact"), Where: server.Anywhere,
		Mongos: server.OnMongos{Run: refuseCompact}, Run: runCompact})
	server.Register(&server.Command{Name: "reIndex", Needs: server.OnColl("reIndex"), Roles: server.Mongod,
		Run: runReIndex})
	server.Register(&server.Command{
		Name: "dbHash", Aliases: []string{"dbhash"}, Roles: server.Mongod, Needs: server.OnDB("dbHash"),
		Where: server.Anywhere, DefaultMaxTime: server.Always, Run: runDBHash,
	})
	server.Register(&server.Command{
		Name: "geoSearch", Roles: server.Mongod, Needs: server.OnColl("find"), Where: server.OptIn, Txn: server.TxnOK,
		ReadConcern: true, Run: runGeoSearch,
	})
}

func refuseCompact(_ *server.Request, dst []byte) ([]byte, error) {
	return dst, srverr.New(srverr.CommandNotSupported, "compact not allowed through mongos")
}

// compactSpec are the arguments of compact.
type compactSpec struct {
	force, dry bool
	freeSpace  int64 // in MB
}

var compactArgs = &args.Table[compactSpec]{Name: "compact", Fields: map[string]args.Field[compactSpec]{
	"force":             args.Bool(func(q *compactSpec) *bool { return &q.force }),
	"dryRun":            args.Bool(func(q *compactSpec) *bool { return &q.dry }),
	"freeSpaceTargetMB": args.Number(func(q *compactSpec) *int64 { return &q.freeSpace }).AtLeast(1),
}}

func runCompact(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	q := compactSpec{}
	if r.Version().AllParsed() { // older ones look at force alone
		if err := compactArgs.ParseCommand(r, &q); err != nil {
			return dst, err
		}
	}
	if r.Node.Set() != nil && r.Node.IsPrimary() && !r.Body.Lookup("force").AsBool() {
		return dst, &srverr.Error{Msg: "will not run compact on an active replica set primary as this is a slow blocking operation. use force:true to force"}
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	if source := r.BucketSource(st, ns); c == nil && source != nil && r.Version().AllParsed() {
		c = source
	}
	switch {
	case c == nil && !hasDatabase(st, r.DB):
		return dst, srverr.New(srverr.NamespaceNotFound, "database does not exist")
	case c == nil:
		return dst, srverr.New(srverr.NamespaceNotFound, "collection does not exist")
	case c.View:
		return dst, srverr.New(srverr.CommandNotSupportedOnView, "can't compact a view")
	}
	if q.dry {
		return bson.AppendInt32(dst, "estimatedBytesFreed", 0), nil
	}
	return bson.AppendInt32(dst, "bytesFreed", 0), nil
}

func runReIndex(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	if r.Node.Set() != nil && r.Version().AtLeast(5, 0) {
		return dst, srverr.New(srverr.IllegalOperation, "reIndex is only allowed on a standalone mongod instance.")
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	switch {
	case c == nil:
		return dst, srverr.New(srverr.NamespaceNotFound, "collection does not exist")
	case c.View:
		return dst, srverr.New(srverr.CommandNotSupportedOnView, "can't re-index a view")
	}
	r.Node.Memory.Forget(c, nil)
	n := int32(len(c.Indexes()))
	dst = bsondoc.Append(dst, "nIndexesWas", n, "nIndexes", n)
	at, dst := bson.BeginArrayElement(dst, "indexes")
	for i := range c.Indexes() {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), c.Indexes()[i].Spec...)
	}
	return bson.EndDocument(dst, at), nil
}

// runDBHash answers with a digest of every collection: that of its documents in the order of _id.
func runDBHash(r *server.Request, dst []byte) ([]byte, error) {
	if s, ok := r.Arg().StringValue(); ok && !r.Version().AllParsed() {
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid db name: %s.%s", r.DB, s)
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	wanted := map[string]bool{}
	if list, ok := r.Body.Lookup("collections").Array(); ok {
		for e := range list.Values() {
			s, isText := e.StringValue()
			if !isText {
				return dst, srverr.New(srverr.BadValue, "collections entries have to be strings")
			}
			wanted[s] = true
		}
	}
	all, steps := md5.New(), r.Meter()
	var capped []string
	at, hashes := bson.BeginDocumentElement(nil, "collections")
	ids, uuids := bson.BeginDocumentElement(nil, "uuids")
	st.Colls(r.DB, func(c *store.Coll) bool {
		name, uuid := c.Name, c.UUID
		if c.TimeSeries && series.ListsBuckets(r.Version()) { // the series is a view
			name, uuid = series.BucketsName(c), series.BucketsUUID(c)
		}
		if c.View || len(wanted) > 0 && !wanted[name] ||
			len(c.Name) > 7 && c.Name[:7] == "system." && c.Name != "system.views" && c.Name != "system.js" {
			return true
		}
		if c.Capped {
			capped = append(capped, name)
		}
		var docs []bson.Raw
		for s := store.NewScan(c, false, nil); ; {
			_, doc, ok := s.Next()
			if !ok {
				break
			}
			steps.Do(1 + len(doc)>>10)
			docs = append(docs, doc)
		}
		slices.SortStableFunc(docs, work.Counting(steps, func(a, b bson.Raw) int {
			return query.Compare(a.Lookup("_id"), b.Lookup("_id"), nil)
		}))
		one := md5.New()
		for _, doc := range docs {
			steps.Do(1 + len(doc)>>8)
			one.Write(doc)
		}
		sum := hex.EncodeToString(one.Sum(nil))
		all.Write([]byte(name))
		all.Write([]byte(sum))
		hashes = bson.AppendString(hashes, name, sum)
		uuids = bson.AppendBinary(uuids, name, bson.BinaryUUID, uuid[:])
		return true
	})
	dst = bson.AppendString(dst, "host", r.Node.Addr())
	dst = append(dst, bson.EndDocument(hashes, at)...)
	dst = bsondoc.AppendStrings(dst, "capped", capped)
	dst = append(dst, bson.EndDocument(uuids, ids)...)
	return bsondoc.Append(dst, "md5", hex.EncodeToString(all.Sum(nil)), "timeMillis", int32(0)), nil
}

// runGeoSearch answers as without a geoHaystack index, which this server cannot use.
func runGeoSearch(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Readable(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	st, err := r.Snapshot(ns)
	if err != nil {
		return dst, err
	}
	if st.Coll(ns) == nil {
		return dst, &srverr.Error{Msg: "can't find ns"}
	}
	return dst, &srverr.Error{Msg: "no geoSearch index"}
}
