package read

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "mapReduce", Aliases: []string{"mapreduce"},
		Needs: server.NeedsBy("find on the collection; insert and remove or update on the one that it writes",
			needsOfMapReduce), WriteConcern: true,
		NoWriteConcern: mapsInline, Mongos: server.OnMongos{Documents: true}, Run: runMapReduce,
	})
}

// mapsInline reports whether a mapReduce answers with its results.
func mapsInline(r *server.Request) bool {
	return r.Body.Lookup("out", "inline").Type != 0
}

// needsOfMapReduce returns what its pipeline would need.
func needsOfMapReduce(r *server.Request, body bson.Raw) []account.Need {
	list := r.OnTarget(body, "find")
	db, out := r.DB, body.Lookup("out")
	writes := func(coll bson.RawValue, second string) {
		list = append(list, server.Privileges(db+"."+bsondoc.MustString(coll),
			server.Bypassing(body, "insert", second)...)...)
	}
	if out.Type == bson.TypeString {
		writes(out, "remove")
	}
	doc, _ := out.Document()
	if other, ok := doc.Lookup("db").StringValue(); ok {
		db = other
	}
	for mode, v := range doc.All() {
		switch mode {
		case "replace":
			writes(v, "remove")
		case "merge", "reduce":
			writes(v, "update")
		}
	}
	return list
}

// mapReduceSpec are the arguments of mapReduce. Results of jsMode are the same as without it;
// verbose has shown nothing since version 4.4.
type mapReduceSpec struct {
	db                       string
	mapped, reduce, finalize bson.RawValue // code; finalize may be missing
	query, sort, collation   bson.Raw
	scope                    bson.Raw
	limit                    int64 // 0: none
	bypass                   bool

	target  string // where the results go; empty: into the reply
	mode    string // replace, merge or reduce
	hasDB   bool   // the target names its database
	sharded bool
}

// mapReduceArgs are the arguments, of which those without a type have texts of their own.
var mapReduceArgs = &args.Table[mapReduceSpec]{Name: "MapReduce", Required: []string{"map", "reduce", "out"},
	Fields: map[string]args.Field[mapReduceSpec]{
		"map":      code(func(q *mapReduceSpec) *bson.RawValue { return &q.mapped }),
		"reduce":   code(func(q *mapReduceSpec) *bson.RawValue { return &q.reduce }),
		"finalize": code(func(q *mapReduceSpec) *bson.RawValue { return &q.finalize }),
		"out": args.Any[mapReduceSpec](nil).Then(func(q *mapReduceSpec, v args.Value) error {
			return q.out(q.db, v.RawValue)
		}),
		"query": args.Object(func(q *mapReduceSpec) *bson.Raw { return &q.query }),
		"collation": args.Object(func(q *mapReduceSpec) *bson.Raw {
			return &q.collation
		}).Then(func(q *mapReduceSpec, v args.Value) error {
			_, err := query.ParseCollation(v.From.Version(), q.collation)
			return err
		}),
		"sort": args.Object(func(q *mapReduceSpec) *bson.Raw {
			return &q.sort
		}).Then(func(q *mapReduceSpec, v args.Value) error {
			if q.sort.IsEmpty() {
				return srverr.New(15976, "The mapReduce sort option must have at least one sort key")
			}
			return nil
		}),
		"scope": args.Any[mapReduceSpec](nil).Then(func(q *mapReduceSpec, v args.Value) error {
			if v.Type == bson.TypeNull {
				return nil
			}
			ok := false
			if q.scope, ok = v.Document(); !ok {
				return srverr.New(srverr.BadValue, "'scope' must be an object")
			}
			return nil
		}),
		"limit": args.Number[mapReduceSpec](nil).Then(func(q *mapReduceSpec, v args.Value) error {
			if q.limit = args.CastNumber(v.RawValue); q.limit <= 0 {
				return srverr.New(15958, "The limit specified to mapReduce must be positive")
			}
			return nil
		}),
		"bypassDocumentValidation": args.Bool(func(q *mapReduceSpec) *bool { return &q.bypass }),
		"verbose":                  args.Bool[mapReduceSpec](nil), "jsMode": args.Bool[mapReduceSpec](nil),
		"splitInfo": args.Number[mapReduceSpec](nil),
	}}

// code takes a function. The scope that it had before 4.4 is passed over.
func code(to func(*mapReduceSpec) *bson.RawValue) args.Field[mapReduceSpec] {
	return args.Any[mapReduceSpec](nil).Then(func(q *mapReduceSpec, v args.Value) error {
		if v.Type == bson.TypeCodeWithScope && !v.From.Version().AtLeast(4, 4) {
			code, _, _ := v.CodeWithScope()
			v.RawValue = bsondoc.StringValue(code)
		}
		if v.Type == bson.TypeNull && v.Name == "finalize" && v.From.Version().AtLeast(4, 4) {
			return nil // as if it were not there
		}
		if v.Type != bson.TypeString && v.Type != bson.TypeJavaScript {
			return srverr.New(srverr.BadValue, "'%s' must be of string or code type", v.Name)
		}
		*to(q) = v.RawValue
		return nil
	})
}

// out reads where the results go.
func (q *mapReduceSpec) out(db string, v bson.RawValue) error {
	bad := func(format string, args ...any) error { return srverr.New(srverr.BadValue, format, args...) }
	name, named := v.StringValue()
	doc, ok := v.Document()
	switch {
	case named:
		q.mode = "replace"
	case !ok:
		return bad("'out' must be either a string or an object")
	}
	for k, v := range doc.All() {
		switch k {
		case "inline":
			if !v.IsNumber() || query.Float(v) != 1 {
				return bad("'inline' takes only numeric '1'")
			}
			return nil
		case "replace", "merge", "reduce":
			if q.mode != "" {
				return bad("'out' supports only output type with collection name, optional 'sharded' and optional 'db'")
			}
			if q.mode = k; v.Type != bson.TypeString {
				return bad("'%s' supports only string consisting of output collection name", k)
			}
			name, _ = v.StringValue()
		}
	}
	if q.mode == "" {
		return bad("'out' requires 'replace', 'merge' or 'reduce'")
	}
	for k, v := range doc.All() {
		switch k {
		case "replace", "merge", "reduce":
		case "db":
			if db, q.hasDB = v.StringValue(); !q.hasDB {
				return bad("db field value must be string")
			}
		case "sharded", "nonAtomic":
			yes, ok := v.Boolean()
			switch {
			case !ok:
				return bad("%s field value must be boolean", k)
			case !yes:
				return bad("%s field value must be true", k)
			}
			q.sharded = q.sharded || k == "sharded"
		default:
			return bad("'out' supports only output type with collection name, optional 'sharded' and optional 'db'")
		}
	}
	if q.target = namespace.Join(db, name); name == "" || namespace.Check(db, name) != nil {
		return srverr.New(srverr.InvalidNamespace, "Invalid output namespace %s for MapReduce", q.target)
	}
	return nil
}

// runMapReduce runs the pipeline that the command stands for since version 4.4.
// readMapReduce reads the command, and returns it with the aggregation that it amounts to.
func readMapReduce(r *server.Request) (*mapReduceSpec, *aggregateSpec, error) {
	body := bsondoc.Copy(r.Body)
	q := &mapReduceSpec{db: r.DB}
	if err := mapReduceArgs.ParseBody(r, body, q); err != nil {
		return nil, nil, err
	}
	ns, err := r.Collection(srverr.BadValue)
	if err != nil {
		return nil, nil, err
	}
	st, err := r.Snapshot(ns)
	if err != nil {
		return nil, nil, err
	}
	if c := st.Coll(ns); c != nil && c.View {
		return nil, nil, srverr.New(srverr.CommandNotSupportedOnView, "mapReduce on a view is not supported")
	} else if c != nil && c.TimeSeries {
		return nil, nil, srverr.New(srverr.CommandNotSupportedOnView,
			"mapReduce on a timeseries collection is not supported")
	}
	if q.mode == "replace" && q.sharded {
		return nil, nil, srverr.New(srverr.InvalidOptions,
			"MapReduce internal error :: caused by :: Combination of 'out.sharded' and 'replace' output mode is not supported. "+
				"Cannot replace an existing sharded collection or create a new sharded collection. Please create the sharded collection first and use a different "+
				"output mode or consider using an unsharded collection.")
	}
	r.MapReduce, r.Scope = true, q.scope
	return q, &aggregateSpec{ns: ns, stages: q.stages(), bypass: q.bypass, collation: q.collation, disk: true,
		hasDisk: true}, nil
}

func runMapReduce(r *server.Request, dst []byte) ([]byte, error) {
	start := time.Now()
	q, pipeline, err := readMapReduce(r)
	if err != nil {
		return dst, err
	}
	results, err := mapAndReduce(r, pipeline)
	if err != nil {
		return dst, srverr.From(err).Prefix("MapReduce internal error :: caused by :: ")
	}
	db, name := namespace.Split(q.target)
	switch {
	case q.target == "":
		at, list := bson.BeginArrayElement(dst, "results")
		for i, doc := range results {
			if list = append(bson.AppendIndexHeader(list, bson.TypeEmbeddedDocument, i),
				doc...); len(list)-len(dst) > server.MaxBSONObjectSize {
				return dst, srverr.New(srverr.BSONObjectTooLarge,
					"MapReduce internal error :: caused by :: BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)",
					len(list)-len(dst), len(list)-len(dst), server.MaxBSONObjectSize+16<<10)
			}
		}
		dst = bson.EndDocument(list, at)
	case q.hasDB:
		at, d := bson.BeginDocumentElement(dst, "result")
		d = bson.AppendString(d, "db", db)
		dst = bson.EndDocument(bson.AppendString(d, "collection", name), at)
	default:
		dst = bson.AppendString(dst, "result", name)
	}
	if r.Version().Has(release.Reply, "mapReduce.timeMillis") {
		dst = bson.AppendInt32(dst, "timeMillis", int32(time.Since(start).Milliseconds()))
	}
	return dst, nil
}

func mapAndReduce(r *server.Request, q *aggregateSpec) (results []bson.Raw, err error) {
	it, _, err := openAggregate(r, q)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for {
		doc, err := it.Next()
		if doc == nil || err != nil {
			return results, err
		}
		results = append(results, bsondoc.Copy(doc))
	}
}

// stages returns the pipeline: what the map function emits is grouped by the keys and reduced.
func (q *mapReduceSpec) stages() []bson.Raw {
	var list []bson.Raw
	stage := func(name string, v bson.RawValue) { list = append(list, bsondoc.Single(name, v)) }
	if len(q.query) > 5 {
		stage("$match", bsondoc.DocumentValue(q.query))
	}
	if q.sort != nil {
		stage("$sort", bsondoc.DocumentValue(q.sort))
	}
	if q.limit > 0 {
		stage("$limit", bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, q.limit)})
	}
	stage("$project", bsondoc.DocumentValue(bsondoc.Build(func(b *bsondoc.Builder) {
		b.Flag("_id", false)
		b.Doc("emits", bsondoc.Single("$_internalJsEmit", bsondoc.DocumentValue(bsondoc.Build(func(b *bsondoc.Builder) {
			b.Str("this", "$$ROOT")
			b.Value("eval", q.mapped.Type, q.mapped.Value)
		}))))
	})))
	stage("$unwind", bsondoc.DocumentValue(bsondoc.Single("path", bsondoc.StringValue("$emits"))))
	stage("$group", bsondoc.DocumentValue(bsondoc.Build(func(b *bsondoc.Builder) {
		b.Str("_id", "$emits.k")
		b.Doc("value", bsondoc.Single("$_internalJsReduce",
			bsondoc.DocumentValue(bsondoc.Build(func(b *bsondoc.Builder) {
				b.Str("data", "$emits")
				b.Value("eval", q.reduce.Type, q.reduce.Value)
			}))))
	})))
	finalize := func() bson.Raw {
		return callOf(q.finalize, bsondoc.StringValue("$_id"), bsondoc.StringValue("$value"))
	}
	if q.finalize.Type != 0 {
		stage("$project", bsondoc.DocumentValue(bsondoc.Single("value", bsondoc.DocumentValue(finalize()))))
	}
	db, name := namespace.Split(q.target)
	switch q.mode {
	case "replace":
		stage("$out", bsondoc.DocumentValue(bsondoc.Build(func(b *bsondoc.Builder) {
			b.Str("db", db)
			b.Str("coll", name)
		})))
	case "merge", "reduce":
		matched := bsondoc.StringValue("replace")
		if q.mode == "reduce" {
			pair := bsondoc.ArrayValue(bsondoc.StringValue("$value"), bsondoc.StringValue("$$new.value"))
			merged := []bson.RawValue{bsondoc.DocumentValue(bsondoc.Single("$project",
				bsondoc.DocumentValue(bsondoc.Single("value",
					bsondoc.DocumentValue(callOf(q.reduce, bsondoc.StringValue("$_id"), pair))))))}
			if q.finalize.Type != 0 {
				merged = append(merged, bsondoc.DocumentValue(bsondoc.Single("$project",
					bsondoc.DocumentValue(bsondoc.Single("value", bsondoc.DocumentValue(finalize()))))))
			}
			matched = bsondoc.ArrayValue(merged...)
		}
		stage("$merge", bsondoc.DocumentValue(bsondoc.Build(func(b *bsondoc.Builder) {
			b.Doc("into", bsondoc.Build(func(b *bsondoc.Builder) {
				b.Str("db", db)
				b.Str("coll", name)
			}))
			b.Value("whenMatched", matched.Type, matched.Value)
			b.Str("whenNotMatched", "insert")
		})))
	}
	return list
}

// callOf returns the expression that calls code.
func callOf(code bson.RawValue, args ...bson.RawValue) bson.Raw {
	return bsondoc.Single("$function", bsondoc.DocumentValue(bsondoc.Build(func(b *bsondoc.Builder) {
		b.Value("body", code.Type, code.Value)
		b.Value("args", bson.TypeArray, bsondoc.ArrayValue(args...).Value)
		b.Str("lang", "js")
	})))
}
