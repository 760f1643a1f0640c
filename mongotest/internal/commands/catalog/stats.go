package catalog

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "collStats", Aliases: []string{"collstats"},
		Help:  "{ collStats:\"blog.posts\" , scale : 1 } scale divides sizes e.g. for KB use 1024\n    avgObjSize - in bytes",
		Needs: server.OnColl("collStats"), Where: server.Anywhere,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, Reply: (*server.Request).StatsOfShards},
		Run:    runCollStats,
	})
	server.Register(&server.Command{
		Name: "dbStats", Aliases: []string{"dbstats"},
		Help:  "Get stats on a database. Not instantaneous. Slower for databases with large .ns files.\nExample: { dbStats:1, scale:1 }",
		Needs: server.OnDB("dbStats"), Where: server.Anywhere,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace, Reply: dbStatsOfShards},
		Run:    runDBStats,
	})
	server.Register(&server.Command{
		Name: "dataSize", Aliases: []string{"datasize"}, Needs: server.OnNamespace("find"), Where: server.Anywhere,
		Run: runDataSize,
	})
	server.Register(&server.Command{
		Name: "validate", Needs: server.OnColl("validate"), Where: server.Anywhere,
		Mongos: server.OnMongos{Catalog: (*server.Request).Namespace},
		Run:    runValidate,
	})
}

// scaleArgs are the arguments that collStats and dbStats have, from 5.0 on.
var scaleArgs = func(command string, bound func(v release.Version, n int64) error) *args.Table[int64] {
	return &args.Table[int64]{Name: command, Lax: true, Fields: map[string]args.Field[int64]{
		"scale": args.Number(func(q *int64) *int64 {
			return q
		}).Then(func(q *int64, v args.Value) error { return bound(v.From.Version(), *q) }),
	}}
}

var (
	collStatsArgs = scaleArgs("collStats", func(v release.Version, n int64) error {
		if n < 1 {
			return args.TooSmall(v, "scale", 1, max(n, math.MinInt32))
		}
		return nil
	})
	dbStatsArgs = scaleArgs("dbStats", func(_ release.Version, n int64) error {
		if n < 1 {
			return srverr.New(srverr.BadValue, "Scale factor must be greater than zero")
		}
		return nil
	})
)

// scale reads the unit that sizes are shown in. least is how servers before 5.0 word the bound, to
// which a value that is none is no value at all.
func scale(r *server.Request, t *args.Table[int64], least string) (int64, error) {
	n := int64(1)
	if r.Version().AtLeast(5, 0) {
		return n, t.ParseCommand(r, &n)
	}
	v := r.Body.Lookup("scale")
	if !v.IsNumber() {
		if v.Type != 0 && v.AsBool() {
			return 0, &srverr.Error{Msg: "scale has to be a number " + least}
		}
		return 1, nil
	}
	if n, _ = args.NumberOf(v); n < 1 {
		return 0, &srverr.Error{Msg: "scale has to be " + least}
	}
	return n, nil
}

func runCollStats(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	scale, err := scale(r, collStatsArgs, ">= 1")
	if err != nil && r.Version().AtLeast(5, 0) {
		return dst, err
	}
	if err != nil {
		at, extra := bson.BeginDocument(nil)
		e := *srverr.From(err)
		e.Extra = bson.EndDocument(bson.AppendString(extra, "ns", ns), at)
		return dst, &e
	}
	st, err := r.Snapshot(ns)
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	if c != nil && c.View {
		return dst, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	dst = bson.AppendString(dst, "ns", ns)
	if c == nil {
		if dst, ok := r.AppendSystemStats(dst, ns, scale); ok {
			return dst, nil
		}
		for _, f := range []string{"size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes",
			"totalIndexSize"} {
			if f != "numOrphanDocs" || r.Version().AtLeast(5, 0) {
				dst = bson.AppendInt32(dst, f, 0)
			}
		}
		for _, f := range []string{"indexDetails", "indexSizes"} {
			dst = bson.AppendDocument(dst, f, bsondoc.OrEmpty(nil))
		}
		return server.AppendScale(dst, scale), nil
	}
	return r.AppendCollStats(dst, c, scale), nil
}

// The disk that dbStats tells of: what it has without data, and its size.
const (
	emptyDisk = 1 << 30
	wholeDisk = 1 << 40
)

func runDBStats(r *server.Request, dst []byte) ([]byte, error) {
	if s, ok := r.Arg().StringValue(); ok && !r.Version().AllParsed() {
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid db name: %s.%s", r.DB, s)
	}
	if err := args.CheckParsed(r, r.Cmd.Name, "scale", "freeStorage"); err != nil {
		return dst, err
	}
	if v := r.Body.Lookup("freeStorage"); r.Version().AllParsed() && v.Type != 0 && v.Type != bson.TypeNull &&
		v.Type != bson.TypeBoolean && !v.IsNumber() {
		return dst, args.WrongFlag(r.Version(), r.Cmd.Name, "freeStorage", v)
	}
	scale, err := scale(r, dbStatsArgs, "> 0")
	if err != nil {
		return dst, err
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	var colls, views, objects, bytes, storage, indexes, indexSize int64
	st.Colls(r.DB, func(c *store.Coll) bool {
		if c.View {
			views++
			return true
		}
		colls++
		objects += c.Count()
		bytes += c.Bytes()
		storage += int64(server.DiskSize(c.Bytes()))
		indexes += int64(len(c.Indexes()))
		for i := range c.Indexes() {
			indexSize += int64(server.DiskSize(int64(c.Indexes()[i].Keys()) * 32))
		}
		return true
	})
	average := 0.0
	if objects > 0 {
		average = float64(bytes) / float64(objects)
	}
	old := !r.Version().AtLeast(5, 0)
	size := func(key string, n int64) {
		switch {
		case colls == 0 && old:
			dst = bson.AppendInt32(dst, key, 0)
		default:
			dst = bson.AppendDouble(dst, key, float64(n)/float64(scale))
		}
	}
	count := func(key string, n int64) { dst = appendCount(r, dst, key, n) }
	dst = bson.AppendString(dst, "db", r.DB)
	count("collections", colls)
	count("views", views)
	count("objects", objects)
	if colls == 0 && old {
		dst = bson.AppendInt32(dst, "avgObjSize", 0)
	} else {
		dst = bson.AppendDouble(dst, "avgObjSize", average)
	}
	size("dataSize", bytes)
	size("storageSize", storage)
	if colls == 0 && old {
		size("totalSize", 0)
	}
	count("indexes", indexes)
	size("indexSize", indexSize)
	if colls > 0 || !old {
		size("totalSize", storage+indexSize)
	}
	if !old && r.Body.Lookup("freeStorage").AsBool() { // nothing is free
		size("freeStorageSize", 0)
		size("indexFreeStorageSize", 0)
		size("totalFreeStorageSize", 0)
	}
	switch {
	case !old:
		dst = bson.AppendInt64(dst, "scaleFactor", scale)
	case colls == 0:
		dst = bson.AppendInt32(dst, "scaleFactor", int32(scale))
	default:
		dst = bson.AppendDouble(dst, "scaleFactor", float64(scale))
	}
	if colls == 0 && old {
		dst = bson.AppendInt32(dst, "fileSize", 0)
	}
	disk := [...]int64{0, 0} // there is none: later versions tell of one that is large enough
	if !old && colls > 0 {
		disk = [...]int64{emptyDisk + storage + indexSize, wholeDisk}
	}
	size("fsUsedSize", disk[0])
	size("fsTotalSize", disk[1])
	return dst, nil
}

// appendCount appends a number that servers since version 5.0 give as a long.
func appendCount(r *server.Request, dst []byte, key string, n int64) []byte {
	if r.Version().AtLeast(5, 0) {
		return bson.AppendInt64(dst, key, n)
	}
	return bsondoc.AppendShortest(dst, key, n)
}

// dataSizeSpec are the arguments of dataSize.
type dataSizeSpec struct {
	pattern, min, max bson.Raw
	estimate          bool
}

var dataSizeArgs = &args.Table[dataSizeSpec]{Name: "dataSize", Fields: map[string]args.Field[dataSizeSpec]{
	"keyPattern": oldObject(func(q *dataSizeSpec) *bson.Raw { return &q.pattern }),
	"min":        oldObject(func(q *dataSizeSpec) *bson.Raw { return &q.min }),
	"max":        oldObject(func(q *dataSizeSpec) *bson.Raw { return &q.max }),
	"estimate":   args.SafeBool(func(q *dataSizeSpec) *bool { return &q.estimate }).Loose(),
	"maxSize":    args.Number[dataSizeSpec](nil).Loose(), "maxObjects": args.Number[dataSizeSpec](nil).Loose(),
}, Old: &args.Old{}}

// oldObject takes a document. Before version 5.0 what is none was taken for an empty one.
func oldObject(to func(*dataSizeSpec) *bson.Raw) args.Field[dataSizeSpec] {
	return args.Object[dataSizeSpec](nil).Loose().Then(func(q *dataSizeSpec, v args.Value) error {
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			*to(q) = v.Value
		}
		return nil
	})
}

// checkValidateOptions refuses the options of validate that do not go together, since version 8.1.
func checkValidateOptions(r *server.Request, set func(name string) bool) error {
	both := func(one, other string) error {
		if set(one) && set(other) {
			return srverr.New(srverr.InvalidOptions,
				"Running the validate command with both { %s: true } and { %s: true } is not supported.", one, other)
		}
		return nil
	}
	for _, name := range []string{"full", "repair", "background", "checkBSONConformance"} {
		if err := both("metadata", name); err != nil {
			return err
		}
	}
	if err := both("checkBSONConformance", "repair"); err != nil {
		return err
	}
	if r.Node.Role() == server.Standalone && set("background") && !set("full") {
		return srverr.New(srverr.CommandNotSupported,
			"Running validate on a standalone with { background: true } is not supported.")
	}
	return nil
}

func runDataSize(r *server.Request, dst []byte) ([]byte, error) {
	ns, ok := r.Arg().StringValue()
	switch old := !r.Version().AtLeast(5, 0); {
	case ok:
	case args.IsNull(r.Arg()) && r.Version().AllParsed():
		return dst, args.MissingField("dataSize.dataSize")
	case old:
		return dst, srverr.New(srverr.BadValue, "collection name has invalid type %s", typeOf(r.Arg()))
	default:
		return dst, args.WrongType("dataSize.dataSize", r.Arg().Type, "string")
	}
	if _, name := namespace.Split(ns); name == "" && r.Version().AtLeast(7, 0) {
		return dst, srverr.New(srverr.InvalidNamespace, "Namespace %s is not a valid collection name", ns)
	}
	if _, name := namespace.Split(ns); name == "" && r.Routing != nil {
		return dst, srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", ns)
	}
	if err := namespace.CheckFull(ns); err != nil {
		return dst, err
	}
	var q dataSizeSpec
	if err := dataSizeArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	pattern, lo, hi, estimate := q.pattern, q.min, q.max, q.estimate
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	parsed := r.Version().AllParsed()
	if c != nil && (c.View || c.TimeSeries && parsed) {
		return dst, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	// Since 8.1 what is wrong with a range has a code.
	wrong := func(code int32, msg string) error {
		if !parsed {
			code = 0
		}
		e := badRange(msg, estimate)
		e.Code = code
		return e
	}
	var size, count int64
	old := !r.Version().AtLeast(5, 0)
	if c != nil {
		size, count = c.Bytes(), c.Count()
		if old {
			dst = bson.AppendBool(dst, "estimate", estimate)
		}
	}
	if c != nil && len(lo) > 5 && len(hi) > 5 {
		if len(pattern) <= 5 {
			pattern = inferPattern(lo)
		}
		empty := parsed && bson.Compare(bsondoc.DocumentValue(lo), bsondoc.DocumentValue(hi)) >= 0
		hint, ok := planner.RangeIndex(c, pattern)
		if !ok {
			return dst, wrong(srverr.OperationFailed, "couldn't find valid index containing key pattern")
		}
		size, count = 0, 0
		var scan *store.Scan
		if !empty {
			if scan, err = planner.ScanRange(c, hint, lo, hi); err != nil {
				return dst, wrong(srverr.OperationFailed, "couldn't find valid index containing key pattern")
			}
		}
		for steps := r.Meter(); scan != nil; {
			steps.Do(1)
			_, doc, ok := scan.Next()
			if !ok {
				break
			}
			size += int64(len(doc))
			count++
		}
	} else if len(lo) > 5 || len(hi) > 5 {
		return dst, wrong(srverr.BadValue, "only one of min or max specified")
	}
	dst = appendCount(r, dst, "size", size)
	dst = appendCount(r, dst, "numObjects", count)
	if old {
		return bson.AppendInt32(dst, "millis", 0), nil
	}
	if dst = bson.AppendInt64(dst, "millis", 0); c != nil {
		dst = bson.AppendBool(dst, "estimate", estimate)
	}
	return dst, nil
}

// badRange is the error of a range that has no size. The reply has the estimate, too.
func badRange(msg string, estimate bool) *srverr.Error {
	return &srverr.Error{Msg: msg, Extra: bsondoc.Build(func(d *bsondoc.Builder) { d.Flag("estimate", estimate) })}
}

// inferPattern returns an ascending pattern of a bound's fields.
func inferPattern(bound bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k := range bound.All() {
			d.B = bson.AppendInt32(d.B, k, 1)
		}
	})
}

func runValidate(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	set := func(name string) bool { return r.Body.Lookup(name).AsBool() }
	parsed := r.Version().AllParsed()
	if parsed {
		if err := checkValidateOptions(r, set); err != nil {
			return dst, err
		}
	}
	if set("background") && set("full") {
		code := srverr.CommandNotSupported
		if r.Version().AtLeast(5, 0) {
			code = srverr.InvalidOptions
		}
		return dst, srverr.New(
			code, "Running the validate command with both { background: true } and { full: true } is not supported.")
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	switch {
	case c == nil:
		return dst, srverr.New(srverr.NamespaceNotFound, "Collection '%s' does not exist to validate.", ns)
	case c.View:
		return dst, srverr.New(srverr.CommandNotSupportedOnView, "Cannot validate a view")
	}
	since50, since70 := r.Version().AtLeast(5, 0), r.Version().AtLeast(7, 0)
	dst = bson.AppendString(dst, "ns", ns)
	if since70 {
		dst = bson.AppendBinary(dst, "uuid", bson.BinaryUUID, c.UUID[:])
	}
	if counts := !parsed || !set("metadata"); counts {
		dst = bson.AppendInt32(dst, "nInvalidDocuments", 0)
		if since70 {
			dst = bson.AppendInt32(dst, "nNonCompliantDocuments", 0)
		}
		dst = bsondoc.AppendShortest(dst, "nrecords", c.Count())
	}
	dst = bson.AppendInt32(dst, "nIndexes", int32(len(c.Indexes())))
	at, dst := bson.BeginDocumentElement(dst, "keysPerIndex")
	for i := range c.Indexes() {
		dst = bsondoc.AppendShortest(dst, c.Indexes()[i].Name, int64(c.Indexes()[i].Keys()))
	}
	dst = bson.EndDocument(dst, at)
	if r.Body.Lookup("full").AsBool() || since50 {
		at, dst = bson.BeginDocumentElement(dst, "indexDetails")
		for i := range c.Indexes() {
			one, d := bson.BeginDocumentElement(dst, c.Indexes()[i].Name)
			if d = bson.AppendBool(d, "valid", true); parsed {
				d = bson.AppendDocument(d, "spec", c.Indexes()[i].Spec)
			}
			dst = bson.EndDocument(d, one)
		}
		dst = bson.EndDocument(dst, at)
	}
	dst = bson.AppendBool(dst, "valid", true)
	if since50 {
		dst = bson.AppendBool(dst, "repaired", false)
	}
	if parsed {
		mode := "None"
		switch {
		case set("repair"):
			mode = "FixErrors"
		case set("fixMultikey"):
			mode = "AdjustMultikey"
		}
		dst = bson.AppendString(dst, "repairMode", mode)
	}
	for _, f := range []string{"warnings", "errors", "extraIndexEntries", "missingIndexEntries"} {
		dst = bsondoc.AppendStrings(dst, f, nil)
	}
	if since50 {
		dst = bsondoc.AppendStrings(dst, "corruptRecords", nil)
	}
	return dst, nil
}

// dbStatsOfShards sums up what the shards say. Sizes are integers in the sum.
func dbStatsOfShards(r *server.Request, reply bson.Raw, dst []byte) []byte {
	dst = r.AppendRaw(reply, dst)
	for _, k := range []string{"objects", "avgObjSize", "dataSize", "storageSize", "totalSize", "indexes", "indexSize",
		"scaleFactor", "fileSize"} {
		v := reply.Lookup(k)
		if k == "avgObjSize" {
			f, _ := v.Double()
			dst = bson.AppendDouble(dst, k, f)
			continue
		}
		n, _ := args.NumberOf(v)
		dst = bsondoc.AppendShortest(dst, k, n)
	}
	return dst
}
