// Package read has the commands that read: find, aggregate with what it needs of the deployment,
// change streams, count, distinct, mapReduce, explain, and those on their cursors.
package read

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

func init() {
	server.Register(&server.Command{
		Name: "find", Help: "query for documents", Needs: server.OnColl("find"), API: server.V1, DataLake: true,
		Where: server.OptIn,
		Txn:   server.TxnOK, Sequences: true, ReadConcern: true, Snapshot: true, Struct: "FindCommandRequest",
		Shape: queryShape, Run: runFind, DefaultMaxTime: server.Always,
	})
}

// findSpec are the arguments of find.
type findSpec struct {
	ns                                         string
	filter, projection, sort, min, max         bson.Raw
	collation, let                             bson.Raw
	hint                                       bson.RawValue
	skip, limit                                int64
	batchSize                                  int64 // -1: not given
	single, tailable, awaitData, noTimeout     bool
	returnKey, showRecordID, resumeToken, back bool
	disk                                       bool // allowDiskUse
	readOnce, oplogReplay, partial, ntoreturn  bool
	hasLimit                                   bool
	returns                                    int64 // ntoreturn: a limit, or 0 for an empty first batch
	resumeAfter                                bson.Raw
	natural                                    bool
	settings                                   *planner.QuerySetting
}

func runFind(r *server.Request, dst []byte) ([]byte, error) {
	q := findSpec{batchSize: -1}
	if err := q.parse(r, r.Body); err != nil {
		r.Routing.Found(server.ByRouter)
		return dst, err
	}
	if r.InTxn() && q.readOnce {
		return dst, srverr.New(srverr.OperationNotSupportedInTransaction,
			"The 'readOnce' option is not supported within a transaction.")
	}
	if r.InTxn() && q.tailable {
		return dst, srverr.New(srverr.InvalidOptions, "It is illegal to open a tailable cursor in a transaction")
	}
	var err error
	if q.settings, err = settingsFor(r, r.Body); err != nil {
		return dst, err
	}
	st, err := r.Snapshot(q.ns)
	if err != nil {
		return dst, err
	}
	return find(r, dst, st, &q)
}

// parse reads the arguments of a find command. Members of old versions look at the collection's
// name after the rest.
func (q *findSpec) parse(r *server.Request, body bson.Raw) (err error) {
	if r.Version().AtLeast(5, 0) {
		if err := q.arguments(r, body); err != nil {
			return err
		}
		q.ns, err = r.Readable(srverr.BadValue)
		return err
	}
	if r.Routing != nil {
		if q.ns, err = r.Readable(srverr.InvalidNamespace); err != nil {
			return err
		}
		return q.arguments(r, body)
	}
	if v := r.Arg(); v.Type != bson.TypeString && v.Type != bson.TypeBinary {
		return wrongFindType("find", v, "string")
	}
	if err := q.arguments(r, body); err != nil {
		return err
	}
	q.ns, err = r.Readable(srverr.InvalidNamespace)
	return err
}

// notOwned is what is said since version 5.0 of a document's place that has something else.
const notOwned = "Expected field %sto be of type object" // sic

var findArgs = &args.Table[findSpec]{Name: "find", Struct: args.Since(5, 0, "FindCommandRequest", "find"),
	Fields: map[string]args.Field[findSpec]{
		"filter": args.Object(func(q *findSpec) *bson.Raw { return &q.filter }).Now(srverr.TypeMismatch, notOwned),
		"projection": args.Object(func(q *findSpec) *bson.Raw {
			return &q.projection
		}).Now(srverr.TypeMismatch, notOwned),
		"sort": args.Object(func(q *findSpec) *bson.Raw { return &q.sort }).Now(srverr.TypeMismatch, notOwned),
		"min":  args.Object(func(q *findSpec) *bson.Raw { return &q.min }).Now(srverr.TypeMismatch, notOwned),
		"max":  args.Object(func(q *findSpec) *bson.Raw { return &q.max }).Now(srverr.TypeMismatch, notOwned),
		"collation": args.Object(func(q *findSpec) *bson.Raw {
			return &q.collation
		}).Now(srverr.TypeMismatch, notOwned),
		"let": args.Object(func(q *findSpec) *bson.Raw { return &q.let }).Gated(),
		"hint": args.Hint(func(q *findSpec) *bson.RawValue {
			return &q.hint
		}).Old(srverr.FailedToParse, "hint must be either a string or nested object"),
		"skip": args.Number(func(q *findSpec) *int64 { return &q.skip }).AtLeast(0),
		"limit": args.Number(func(q *findSpec) *int64 {
			return &q.limit
		}).AtLeast(0).Note(func(q *findSpec) *bool { return &q.hasLimit }),
		"batchSize": args.Number(func(q *findSpec) *int64 {
			return &q.batchSize
		}).AtLeast(0).Then(notNegative("BatchSize", func(q *findSpec) int64 { return q.batchSize })),
		"ntoreturn": args.Number(func(q *findSpec) *int64 {
			return &q.returns
		}).AtLeast(0).Note(func(q *findSpec) *bool { return &q.ntoreturn }).
			Then(notNegative("NToReturn", func(q *findSpec) int64 { return q.returns })),
		"singleBatch":              args.SafeBool(func(q *findSpec) *bool { return &q.single }).Flag50(),
		"tailable":                 args.SafeBool(func(q *findSpec) *bool { return &q.tailable }).Flag50(),
		"awaitData":                args.SafeBool(func(q *findSpec) *bool { return &q.awaitData }).Flag50(),
		"noCursorTimeout":          args.SafeBool(func(q *findSpec) *bool { return &q.noTimeout }).Flag50(),
		"returnKey":                args.SafeBool(func(q *findSpec) *bool { return &q.returnKey }).Flag50(),
		"showRecordId":             args.SafeBool(func(q *findSpec) *bool { return &q.showRecordID }).Flag50(),
		"readOnce":                 args.SafeBool(func(q *findSpec) *bool { return &q.readOnce }),
		"oplogReplay":              args.SafeBool(func(q *findSpec) *bool { return &q.oplogReplay }),
		"allowPartialResults":      args.SafeBool(func(q *findSpec) *bool { return &q.partial }).Flag50(),
		"allowDiskUse":             args.SafeBool(func(q *findSpec) *bool { return &q.disk }).Flag50().Gated(),
		"$_requestResumeToken":     args.SafeBool(func(q *findSpec) *bool { return &q.resumeToken }).Flag50(),
		"$_resumeAfter":            args.Object(resumeAfter),
		"$_startAt":                args.Object(resumeAfter),
		"mirrored":                 args.SafeBool[findSpec](nil).Flag50().Since50(),
		"includeQueryStatsMetrics": args.SafeBool[findSpec](nil).Flag50().Since50(),
		"_use44SortKeys":           args.Bool[findSpec](nil).Before50(),
		"encryptionInformation":    args.Object[findSpec](nil).Gated(),
		"runtimeConstants":         args.RuntimeConstants[findSpec]("runtimeConstants", 51202).Before50(),
		"options":                  args.Object[findSpec](nil),
		"term":                     args.Long[findSpec](nil),
		"comment": args.Any[findSpec](nil).Before50().Then(func(_ *findSpec, v args.Value) error {
			// before 4.4 not one of the arguments that all commands take
			if !args.Generic(v.From.Version(), v.Name) && v.Type != bson.TypeString {
				return args.FailedToParse(v.From, "'comment' field must be of BSON type string.")
			}
			return nil
		}),
	}, Old: &args.Old{
		Strict: true, Cast: true, Unknown: args.Unrecognized,
		Wrong: func(from args.Source, k string, v bson.RawValue, want string) error {
			if want != "object" && want != "bool" && want != "long" {
				return args.FailedToParse(from, "'%s' field must be numeric.", k)
			}
			return wrongFindType(k, v, want)
		},
	}}

func resumeAfter(q *findSpec) *bson.Raw { return &q.resumeAfter }

// wrongFindType is the error of the find parser of old versions for a value of a wrong type.
func wrongFindType(k string, v bson.RawValue, want string) error {
	return srverr.New(srverr.FailedToParse, "Failed to parse: %s. '%s' field must be of BSON type %s.",
		bsontext.Element(k, v), k, want)
}

// notNegative checks a number that may not be negative.
func notNegative(what string, n func(q *findSpec) int64) func(*findSpec, args.Value) error {
	return func(q *findSpec, _ args.Value) error {
		if n := n(q); n < 0 {
			return negative(what, n)
		}
		return nil
	}
}

func negative(what string, n int64) error {
	return srverr.New(srverr.BadValue, "%s value must be non-negative, but received: %d", what, n)
}

func (q *findSpec) arguments(r *server.Request, body bson.Raw) error {
	if err := findArgs.ParseBody(r, body, q); err != nil {
		return err
	}
	return q.check(r.Version())
}

// check checks what the arguments mean together.
func (q *findSpec) check(v release.Version) error {
	switch {
	case q.skip < 0:
		return negative("Skip", q.skip)
	case q.limit < 0:
		return negative("Limit", q.limit)
	case q.ntoreturn && (q.hasLimit || q.batchSize >= 0):
		return srverr.New(srverr.BadValue, "'limit' or 'batchSize' fields can not be set with 'ntoreturn' field.")
	case q.awaitData && !q.tailable:
		return srverr.New(srverr.FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'")
	}
	if q.ntoreturn && q.returns == 0 {
		q.batchSize = 0
	} else if q.ntoreturn {
		q.limit = q.returns
	}
	var err error
	if q.natural, q.back, err = query.Natural(q.sort); err != nil {
		return err
	}
	if err := query.CheckHint(v, q.hint); err != nil {
		return err
	}
	if q.tailable {
		if len(q.sort) > 5 && !(q.natural && !q.back) {
			return srverr.New(srverr.BadValue, "cannot use tailable option with a sort other than {$natural: 1}")
		}
		if q.single {
			return srverr.New(srverr.BadValue, "cannot use tailable option with the 'singleBatch' option")
		}
	}
	if q.max != nil && q.min != nil && !sameNames(q.min, q.max) {
		return srverr.New(51176, "min and max must have the same field names")
	}
	switch {
	case q.resumeToken && !q.naturalHint():
		return srverr.New(srverr.BadValue, "hint must be {$natural:1} if 'requestResumeToken' is enabled")
	case q.resumeToken && len(q.sort) > 5 && !(q.natural && !q.back):
		return srverr.New(srverr.BadValue, "sort must be unset or {$natural:1} if 'requestResumeToken' is enabled")
	case len(q.resumeAfter) > 5 && !q.resumeToken:
		return srverr.New(srverr.BadValue, "'requestResumeToken' must be true if 'resumeAfter' is specified")
	case len(q.resumeAfter) > 5 && !validRecordToken(q.resumeAfter):
		return srverr.New(
			srverr.BadValue, "Malformed resume token: the '_resumeAfter' object must contain exactly one field named '$recordId', of type NumberLong.")
	}
	return nil
}

// A record token tells where a scan of a collection stands: {$recordId: ...}.

func validRecordToken(doc bson.Raw) bool {
	k, v := bsondoc.FirstElement(doc)
	return k == "$recordId" && (v.Type == bson.TypeInt64 || v.Type == bson.TypeInt32 || v.Type == bson.TypeNull)
}

func recordToken(s *planner.ScanIter) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	if rid := s.RID(); rid == "" {
		doc = bson.AppendNull(doc, "$recordId")
	} else {
		doc = bson.AppendInt64(doc, "$recordId", store.RecordNumber(rid))
	}
	return bson.EndDocument(doc, at)
}

func (q *findSpec) naturalHint() bool {
	if q.hint.Type != bson.TypeEmbeddedDocument {
		return false
	}
	ok, _, _ := query.Natural(q.hint.Value)
	return ok
}

func sameNames(a, b bson.Raw) bool {
	var names []string
	for k := range a.All() {
		names = append(names, k)
	}
	i := 0
	for k := range b.All() {
		if i >= len(names) || names[i] != k {
			return false
		}
		i++
	}
	return i == len(names)
}

// find answers a query.
func find(r *server.Request, dst []byte, st *store.State, q *findSpec) ([]byte, error) {
	c := st.Coll(q.ns)
	if c != nil && c.View {
		return findView(r, dst, q)
	}
	it, run, err := openFind(r, st, c, q)
	if err != nil {
		return dst, err
	}
	if c == nil {
		if docs, ok := r.Node.SystemDocuments(q.ns); ok {
			return findSystem(r, dst, q, docs)
		}
		return r.AppendEmptyCursor(dst, q.ns), nil
	}
	cur := r.NewCursor(q.ns, it, run)
	cur.Tailable, cur.AwaitData, cur.NoTimeout = q.tailable, q.awaitData, q.noTimeout
	if q.tailable {
		cur.Wait = r.Node.Store().Changed
	}
	if q.resumeToken && len(run.Scans) > 0 {
		cur.Place = func() bson.Raw { return recordToken(run.Scans[0]) }
	}
	// A tailable cursor on an empty collection is dead from the start.
	dst, err = r.AppendCursor(dst, cur, q.batchSize, q.single || q.tailable && c.Count() == 0)
	return dst, remote(r, r.Failed(err, "Executor error during find command", q.ns))
}

// remote is an error of a query that comes from a shard.
func remote(r *server.Request, err error) error {
	return r.Routing.FromShard(err, "Encountered non-retryable error during query")
}

// openFind parses what the query is made of and opens it.
func openFind(r *server.Request, st *store.State, c *store.Coll,
	q *findSpec) (pipeline.Iterator, *server.Running, error) {
	var collation *query.Collation
	var err error
	if q.collation != nil {
		if collation, err = query.ParseCollation(r.Version(), q.collation); err != nil {
			return nil, nil, err
		}
	} else if c != nil {
		collation = c.Collation
	}
	run := &server.Running{Request: r, State: st}
	o := r.CheckedOptions(q.ns, collation, q.let, work.New(run.Interrupted))
	if q.filter, err = r.RevealFilter(st, q.filter); err != nil {
		return nil, nil, err
	}
	var filter *query.Filter
	if len(q.filter) > 5 {
		if filter, err = query.ParseFilter(q.filter, o); err != nil {
			r.Routing.Found(server.ByRouter) // it reads the query before it sends it on
			return nil, nil, err
		}
		if id, ok := filter.IDEquality(); ok && c != nil && !c.Sharded() && c.HasIDs() && q.simple() &&
			collation.Same(c.Collation) {
			it := &oneDoc{}
			found := int64(0)
			if _, doc, ok := c.ByID(id); ok {
				it.doc, found = doc, 1
			}
			r.QuickByID(found)
			*run = server.Running{} // the command needs no more of it
			return it, run, nil
		}
	}
	// What outlives the command must not lie in the connection's buffer.
	q.filter, q.sort, q.projection = bsondoc.Copy(q.filter), bsondoc.Copy(q.sort), bsondoc.Copy(q.projection)
	if filter != nil {
		if filter, err = query.ParseFilter(q.filter, o); err != nil {
			return nil, nil, err
		}
	}
	var sort *query.Sort
	if !q.natural && len(q.sort) > 5 {
		if sort, err = query.ParseSort(q.sort, o); err != nil {
			r.Routing.Found(server.ByRouter)
			return nil, nil, err
		}
	}
	var proj *query.Projection
	if len(q.projection) > 5 {
		f := filter
		if f == nil {
			f, _ = query.ParseFilter(bsondoc.OrEmpty(nil), o)
		}
		if proj, err = query.ParseProjection(q.projection, f, o); err != nil {
			return nil, nil, err
		}
	}
	if err := query.CheckMeta(filter, sort, proj); err != nil {
		return nil, nil, err
	}
	if c == nil {
		return nil, nil, nil
	}
	if c.TimeSeries && r.Version().AllParsed() { // which is a view of its buckets
		if _, err := q.aggregation(); err != nil {
			return nil, nil, err
		}
		if filter != nil && filter.NeedsGeoIndex() {
			return nil, nil, query.NearNotAllowed(r.Version())
		}
	}
	route, err := r.Route(c, c.NS)
	if err != nil {
		return nil, nil, err
	}
	a := &planner.Access{Coll: c, Table: route.Table, Reach: route.Reacher(), Filter: filter, Sort: sort,
		Natural: q.natural, Back: q.back, Hint: q.hint, Min: q.min, Max: q.max, Collation: collation,
		Memory: &r.Node.Memory, Settings: q.settings, Version: r.Version()}
	a.Wants = planner.Wants{Skip: q.skip, Limit: q.limit, Projection: proj, Projected: q.projection, SortSpec: q.sort,
		Collated: q.collation, ReturnKey: q.returnKey, Tailable: q.tailable, Express: r.Version().AtLeast(8, 0)}
	a.NoScan = func() bool { return r.NoTableScan(q.ns) }
	if proj != nil && proj.Computes() {
		a.Wants.Paths = projectionPaths(q.projection)
	}
	a.Text = func() string { return planner.Describe(q.ns, filter, q.sort, q.projection, q.collation) }
	if filter != nil && filter.NeedsGeoIndex() && sort == nil && r.Routing != nil {
		shown := bsondoc.Build(func(d *bsondoc.Builder) { // a mongos asks for what it merges by
			d.B = append(d.B, bsondoc.OrEmpty(q.projection).Elements()...)
			d.Doc("$sortKey", bsondoc.Build(func(d *bsondoc.Builder) { d.Str("$meta", "geoNearDistance") }))
		})
		a.Text = func() string { return planner.Describe(q.ns, filter, q.sort, shown, q.collation) }
	}
	if q.tailable && !c.Capped {
		return nil, nil, remote(r, srverr.New(srverr.BadValue,
			"error processing query: %s tailable cursor requested on non capped collection", a.Text()))
	}
	p, err := a.Plan()
	if err != nil {
		return nil, nil, remote(r, err)
	}
	if len(q.resumeAfter) > 5 {
		n, _ := q.resumeAfter.Lookup("$recordId").AsInt64()
		key, ok := c.RecordAt(n)
		if !ok {
			return nil, nil, srverr.New(srverr.KeyNotFound,
				"Failed to resume collection scan: the recordId from which we are attempting to resume no longer exists in the collection: RecordId(%d)", n)
		}
		p.Resume(key)
	}
	src := run.Open(p, c.NS)
	it := &findIter{src: src, skip: q.skip, limit: q.limit, limited: q.limit > 0, tailable: q.tailable, proj: proj,
		filter: filter, sort: sort, returnKey: q.returnKey, showRecordID: q.showRecordID}
	switch s := src.(type) {
	case *planner.SortIter:
		s.Context = "Executor error during find command"
		s.Meta = it.meta
		s.Most = q.sortMemory(r)
		if q.limit > 0 {
			s.Limit = q.limit + q.skip
		}
		it.found = s
	case *planner.ScanIter:
		it.found = s
		if filter != nil && filter.NeedsGeoIndex() && sort == nil && !p.ByDistance() {
			it.src = &nearIter{src: src, near: filter.Near()}
		}
	}
	return it, run, nil
}

// sortMemory returns how many bytes of documents the query may hold to sort them, 0 for any number:
// what does not fit goes to a file.
func (q *findSpec) sortMemory(r *server.Request) int64 {
	if q.disk || r.Version().AtLeast(6, 0) {
		return 0
	}
	return r.Node.IntParameter("internalQueryMaxBlockingSortMemoryUsageBytes")
}

// simple reports whether the query is a filter and nothing that the fast path to one document does
// not know.
func (q *findSpec) simple() bool {
	return q.sort == nil && q.projection == nil && q.min == nil && q.max == nil && q.hint.Type == 0 && q.skip == 0 &&
		!q.returnKey && !q.showRecordID && !q.tailable && !q.resumeToken
}

// oneDoc yields one document, or none.
type oneDoc struct {
	doc  bson.Raw
	done bool
}

// Ended reports whether the document is gone.
func (o *oneDoc) Ended() bool { return o.done }

func (o *oneDoc) Next() (bson.Raw, error) {
	doc := o.doc
	o.doc, o.done = nil, true
	return doc, nil
}

func (o *oneDoc) Close() {}

// findIter does what find does with the documents: skip, limit, projection.
type findIter struct {
	src         pipeline.Iterator
	skip, limit int64
	limited     bool
	tailable    bool
	proj        *query.Projection

	filter                  *query.Filter
	sort                    *query.Sort
	found                   found // tells how the last document was found
	returnKey, showRecordID bool
}

// found tells how the last document of a plan was found.
type found interface {
	RID() string
	IndexKey() bson.Raw
	// Covered returns what the index tells of the document, nil if the plan has looked at that.
	Covered() bson.Raw
}

// description is what is known of a document beside its fields.
type description struct {
	filter *query.Filter
	sort   *query.Sort // nil: it has no sort key
	found  found       // nil: nobody knows
	doc    bson.Raw
}

// meta returns metadata by the names of $meta.
func (d *description) meta(name string) bson.RawValue {
	switch name {
	case "recordId":
		if d.found != nil {
			return bson.RawValue{Type: bson.TypeInt64,
				Value: bson.AppendInt64Value(nil, store.RecordNumber(d.found.RID()))}
		}
	case "indexKey":
		if d.found == nil {
			break
		}
		if key := d.found.IndexKey(); !key.IsEmpty() {
			return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: key}
		}
	case "sortKey":
		if d.sort == nil {
			break
		}
		key, err := d.sort.Key(d.doc, nil)
		if err != nil {
			break
		}
		start, b := bson.BeginDocument(nil)
		for i, v := range key {
			b = append(bson.AppendIndexHeader(b, v.Type, i), v.Value...)
		}
		return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(b, start)}
	case "textScore":
		if d.filter != nil && d.filter.NeedsTextIndex() {
			return bsondoc.DoubleValue(d.filter.TextScore(d.doc))
		}
	case "geoNearDistance", "geoNearPoint":
		if d.filter == nil || d.filter.Near() == nil {
			break
		}
		near := d.filter.Near()
		distance, place, ok := near.Distance(d.doc)
		if !ok {
			break
		}
		if name == "geoNearPoint" {
			return place
		}
		return bsondoc.DoubleValue(near.Exact(distance, place))
	}
	return bson.RawValue{}
}

// meta returns the metadata of a document that a projection asks for.
func (f *findIter) meta(doc bson.Raw, name string) bson.RawValue {
	if name == "randVal" {
		return bsondoc.DoubleValue(rand.Float64())
	}
	return (&description{f.filter, f.sort, f.found, doc}).meta(name)
}

// shape makes of a document what the query returns of it.
func (f *findIter) shape(doc bson.Raw) (out bson.Raw, err error) {
	out = doc
	switch {
	case f.returnKey:
		out = f.found.IndexKey()
		if f.proj != nil {
			for _, path := range f.proj.SortKeys() {
				out = bsondoc.SetPath(out, path, f.meta(doc, "sortKey"))
			}
		}
		return out, nil
	case f.proj != nil:
		if f.found != nil {
			if covered := f.found.Covered(); covered != nil {
				out = covered
			}
		}
		if out, err = f.proj.Apply(out, func(name string) bson.RawValue { return f.meta(doc, name) }); err != nil {
			return nil, err
		}
	}
	if f.showRecordID {
		start, b := bson.BeginDocument(make([]byte, 0, len(out)+20))
		b = append(b, out.Elements()...)
		out = bson.EndDocument(bson.AppendInt64(b, "$recordId", store.RecordNumber(f.found.RID())), start)
	}
	return out, nil
}

// nearIter yields its source's documents by distance.
type nearIter struct {
	src    pipeline.Iterator
	near   *query.Near
	loaded bool
	docs   []bson.Raw
}

func (n *nearIter) Next() (bson.Raw, error) {
	if !n.loaded {
		n.loaded = true
		distances := map[*byte]float64{}
		for {
			doc, err := n.src.Next()
			if err != nil {
				return nil, err
			}
			if doc == nil {
				break
			}
			if d, _, ok := n.near.Distance(doc); ok {
				distances[&doc[0]] = d
				n.docs = append(n.docs, doc)
			}
		}
		slices.SortStableFunc(n.docs, func(a, b bson.Raw) int {
			return cmp.Compare(distances[&a[0]], distances[&b[0]])
		})
	}
	if len(n.docs) == 0 {
		return nil, nil
	}
	doc := n.docs[0]
	n.docs = n.docs[1:]
	return doc, nil
}

func (n *nearIter) Close() { n.src.Close() }

// Ended reports whether the limit is reached.
func (f *findIter) Ended() bool { return f.limited && f.limit == 0 }

func (f *findIter) Next() (bson.Raw, error) {
	if f.limited && f.limit == 0 {
		return nil, nil
	}
	for {
		doc, err := f.src.Next()
		if err != nil {
			return nil, err
		}
		if doc == nil {
			if f.tailable {
				return nil, pipeline.ErrWait
			}
			return nil, nil
		}
		if f.skip > 0 {
			f.skip--
			continue
		}
		f.limit--
		if f.proj != nil || f.returnKey || f.showRecordID {
			return f.shape(doc)
		}
		return doc, nil
	}
}

func (f *findIter) Close() { f.src.Close() }

// findSystem answers a query on a collection that is not stored.
func findSystem(r *server.Request, dst []byte, q *findSpec, docs []bson.Raw) ([]byte, error) {
	if q.natural && q.back {
		slices.Reverse(docs)
	}
	plain := *q
	plain.tailable, plain.noTimeout, plain.oplogReplay = false, false, false
	a, err := plain.aggregation()
	if err != nil {
		return dst, err
	}
	run := &server.Running{Request: r}
	o := r.ExprOptions(q.ns, nil, q.let)
	o.Check = run.Interrupted
	p, err := pipeline.Parse(a.stages, o)
	if err != nil {
		return dst, err
	}
	it, err := p.Run(pipeline.FromSlice(docs))
	if err != nil {
		return dst, err
	}
	return r.AppendCursor(dst, r.NewCursor(q.ns, it, run), q.batchSize, q.single)
}
