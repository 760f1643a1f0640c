package read

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

func init() {
	server.Register(&server.Command{
		Name: "distinct", Timeless: true,
		Help:  "{ distinct : 'collection name' , key : 'a.b' , query : {} }",
		Needs: server.OnColl("find"), DataLake: true,
		Where: server.OptIn, Txn: server.TxnOK, Sequences: true, ReadConcern: true, Snapshot: true,
		Mongos: server.OnMongos{Early: server.CheckTarget, Missing: server.RefuseMissing},
		Shape:  queryShape, Run: runDistinct, DefaultMaxTime: server.Always,
	})
}

// distinctSpec are the arguments of distinct.
type distinctSpec struct {
	ns, key           string
	uuid              []byte // collectionUUID; nil: any
	filter, collation bson.Raw
	hint              bson.RawValue
}

var distinctArgs = &args.Table[distinctSpec]{Name: "distinct", Struct: args.Since(8, 1, "distinctCommandRequest",
	"distinct"), Required: []string{"key"}, Fields: map[string]args.Field[distinctSpec]{
	"key":                      args.String(func(q *distinctSpec) *string { return &q.key }),
	"query":                    args.Object(func(q *distinctSpec) *bson.Raw { return &q.filter }),
	"collation":                args.Object(func(q *distinctSpec) *bson.Raw { return &q.collation }),
	"hint":                     args.Hint(func(q *distinctSpec) *bson.RawValue { return &q.hint }).Gated(),
	"encryptionInformation":    args.Object[distinctSpec](nil).Gated(),
	"collectionUUID":           args.UUID("distinct", func(q *distinctSpec) *[]byte { return &q.uuid }).Gated(),
	"includeQueryStatsMetrics": args.SafeBool[distinctSpec](nil).Gated(),
}}

// checkDistinctRouting checks what a mongos before 5.0 reads itself to find the shards.
func checkDistinctRouting(body bson.Raw) error {
	for _, name := range []string{"query", "collation"} {
		v := body.Lookup(name)
		if v.IsZero() || v.Type == bson.TypeEmbeddedDocument || name == "query" && v.Type == bson.TypeNull {
			continue
		}
		return srverr.New(srverr.TypeMismatch, "Illegal type specified for %s %s", name, bsontext.Element(name, v))
	}
	return nil
}

func (q *distinctSpec) parse(r *server.Request) (err error) {
	if q.ns, err = r.Readable(srverr.InvalidNamespace); err != nil {
		return err
	}
	if v := r.Body.Lookup("comment"); !v.IsZero() && v.Type != bson.TypeString && v.Type != bson.TypeNull &&
		v.Type != bson.TypeUndefined && !r.Version().AtLeastPatch(release.At(4, 4, 14)) {
		return args.WrongType("distinct.comment", v.Type, "string")
	}
	if r.Routing != nil && !r.Version().AtLeast(5, 0) {
		if err := checkDistinctRouting(r.Body); err != nil {
			return err
		}
	}
	if err := distinctArgs.ParseCommand(r, q); err != nil {
		return err
	}
	r.Expect(q.ns, q.uuid)
	return checkDistinctKey(r.Version(), q.key)
}

func runDistinct(r *server.Request, dst []byte) ([]byte, error) {
	var q distinctSpec
	if err := q.parse(r); err != nil {
		return dst, err
	}
	settings, err := settingsFor(r, r.Body)
	if err != nil {
		return dst, err
	}
	ns, key, filter, collation, hint := q.ns, q.key, q.filter, q.collation, q.hint
	st, err := r.Snapshot(ns)
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	if r.InTxn() && c != nil && c.Sharded() {
		r.Routing.Found(server.BeforeShard)
		return dst, srverr.New(srverr.OperationNotSupportedInTransaction,
			"Cannot run 'distinct' on a sharded collection in a multi-document transaction. Please see http://dochub.mongodb.org/core/transaction-distinct for a recommended alternative.")
	}
	d := distinctValues{}
	add := func(doc bson.Raw) { extractAlongPath(doc, key, d.add) }
	if c != nil && c.View {
		q := aggregateSpec{ns: ns, batchSize: -1, collation: collation}
		if filter != nil {
			q.stages = append(q.stages,
				bsondoc.Single("$match", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: filter}))
		}
		d.coll = c.Collation
		if err := eachResult(r, &q, func(doc bson.Raw) error { add(doc); return nil }); err != nil {
			return dst, err
		}
		r.IntegerOK = true
		dst, err = d.append(dst)
		return r.AppendAtTime(dst), err
	}
	r.IntegerOK = c != nil && c.TimeSeries && r.Version().AllParsed()
	op := server.Selection{Q: bsondoc.OrEmpty(filter), Collation: collation, Hint: hint, Settings: settings,
		Projection: distinctProjection(key), Distinct: key}
	if err := op.Parse(r, ns, c); err != nil {
		return dst, err
	}
	d.coll, d.work = op.Coll, r.Meter()
	if c != nil {
		err := op.Candidates(r, c, func(_ string, doc bson.Raw, _ int) (bool, error) {
			add(doc)
			return true, nil
		})
		if err != nil {
			return dst, err
		}
	}
	dst, err = d.append(dst)
	return r.AppendAtTime(dst), err
}

// distinctProjection returns the projection that the server plans with for the values of a key.
func distinctProjection(key string) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	if key != "_id" && !strings.HasPrefix(key, "_id.") {
		doc = bson.AppendInt32(doc, "_id", 0)
	}
	return bson.EndDocument(bson.AppendInt32(doc, key, 1), at)
}

// checkDistinctKey refuses keys that are no paths. Since version 8.1 such a key leads to nothing.
func checkDistinctKey(v release.Version, key string) error {
	switch {
	case strings.IndexByte(key, 0) >= 0:
		return srverr.New(31032, "Key field cannot contain an embedded null byte")
	case v.AllParsed():
		return nil
	case key == "":
		return srverr.New(40352, "FieldPath cannot be constructed with empty string")
	case strings.HasSuffix(key, "."):
		return srverr.New(40353, "FieldPath must not end with a '.'.")
	}
	for part := range strings.SplitSeq(key, ".") {
		switch {
		case part == "":
			return srverr.New(15998, "FieldPath field names may not be empty strings.")
		case part[0] == '$' && (part != "$" || key[0] == '$'):
			return srverr.New(16410, "FieldPath field names may not start with '$'.")
		}
	}
	return nil
}

// extractAlongPath calls f with every value that the path leads to: through arrays by index if the
// next part is a number, else by each element; an array at the end is taken apart.
func extractAlongPath(doc bson.Raw, path string, f func(bson.RawValue)) {
	left, next, dotted := strings.Cut(path, ".")
	v := doc.Lookup(left)
	if !dotted {
		switch v.Type {
		case 0:
		case bson.TypeArray:
			for e := range bson.Raw(v.Value).Values() {
				f(e)
			}
		default:
			f(v)
		}
		return
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		extractAlongPath(v.Value, next, f)
	case bson.TypeArray:
		part, _, _ := strings.Cut(next, ".")
		if part != "" && strings.Trim(part, "0123456789") == "" {
			extractAlongPath(v.Value, next, f)
			return
		}
		for e := range bson.Raw(v.Value).Values() {
			if e.Type == bson.TypeEmbeddedDocument || e.Type == bson.TypeArray {
				extractAlongPath(e.Value, next, f)
			}
		}
	}
}

// distinctValues is a set of values in their order.
type distinctValues struct {
	coll *query.Collation
	list []bson.RawValue
	seen map[string]struct{}
	work *work.Meter
}

func (d *distinctValues) add(v bson.RawValue) {
	d.work.Do(1 + len(v.Value)>>10)
	var buf [64]byte
	var coll store.Collation
	if d.coll != nil {
		coll = d.coll
	}
	key := store.AppendKey(buf[:0], v, coll, false)
	if _, ok := d.seen[string(key)]; ok {
		return
	}
	if d.seen == nil {
		d.seen = map[string]struct{}{}
	}
	d.seen[string(key)] = struct{}{}
	d.list = append(d.list, v)
}

func (d *distinctValues) append(dst []byte) ([]byte, error) {
	slices.SortStableFunc(d.list,
		work.Counting(d.work, func(a, b bson.RawValue) int { return query.Compare(a, b, d.coll) }))
	at, dst := bson.BeginArrayElement(dst, "values")
	start := len(dst)
	for i, v := range d.list {
		dst = append(bson.AppendIndexHeader(dst, v.Type, i), v.Value...)
		if len(dst)-start > server.MaxBSONObjectSize {
			return dst, srverr.New(17217, "distinct too big, 16mb cap")
		}
	}
	return bson.EndDocument(dst, at), nil
}
