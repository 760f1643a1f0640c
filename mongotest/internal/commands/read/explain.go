package read

import (
	"runtime"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/commands/write"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "explain", Help: "explain database reads and writes", Needs: server.NeedsBy("those of the command that it explains", needsOfExplain),
		API: server.V1, DataLake: true, Where: server.OptIn, Sequences: true, ReadConcern: true, Run: runExplain,
	})
}

// needsOfExplain returns what the explained command needs.
func needsOfExplain(r *server.Request, body bson.Raw) []account.Need {
	inner, _ := body.Lookup("explain").Document()
	name, _ := bsondoc.FirstElement(inner)
	if c := r.Node.Lookup(name); c != nil {
		return r.NeedsOf(c, inner)
	}
	return r.OnTarget(body, "find")
}

// explainTarget is what there is to explain of a command.
type explainTarget struct {
	q      findSpec // which documents it asks for
	stage  string   // what it does with them: COUNT, UPDATE, DELETE; empty: it returns them
	writes bool     // update or delete
	one    bool     // it is done with the first document
	// Of a pipeline: the stages that the query does not stand for.
	pipeline bool
	rest     []bson.Raw
	absorbed bool // the query stands for the whole pipeline
}

// explainers read the commands that can be explained, as these do themselves.
var explainers = map[string]func(r *server.Request) (explainTarget, error){
	"find": func(r *server.Request) (e explainTarget, err error) {
		if v := r.Arg(); v.Type != bson.TypeString {
			return e, srverr.New(srverr.InvalidNamespace, "collection name has invalid type %s", bsontext.TypeName(v.Type))
		}
		e.q.batchSize = -1
		return e, e.q.parse(r, r.Body)
	},
	"count": func(r *server.Request) (explainTarget, error) {
		var q countSpec
		err := q.parse(r)
		return explainTarget{q: findSpec{ns: q.ns, filter: q.filter, collation: q.collation, hint: q.hint, limit: q.limit, skip: q.skip}, stage: "COUNT"}, err
	},
	"distinct": func(r *server.Request) (explainTarget, error) {
		var q distinctSpec
		err := q.parse(r)
		return explainTarget{q: findSpec{ns: q.ns, filter: q.filter, collation: q.collation, hint: q.hint}}, err
	},
	"findAndModify": explainWrite,
	"update":        explainWrite,
	"delete":        explainWrite,
	"aggregate": func(r *server.Request) (explainTarget, error) {
		if err := r.Cmd.Parse(r); err != nil {
			return explainTarget{}, err
		}
		if r.Body.Lookup("writeConcern").Type != 0 {
			return explainTarget{}, explainedConcern()
		}
		return parsedAggregate(r).explanation(r)
	},
	"mapReduce": func(r *server.Request) (explainTarget, error) {
		if !r.Node.Config().Version.AtLeast(4, 4) { // before, it was no aggregation
			return explainTarget{}, cannotExplain(r.Name)
		}
		_, q, err := readMapReduce(r)
		if err != nil {
			return explainTarget{}, err
		}
		return q.explanation(r)
	},
}

func cannotExplain(name string) error {
	return srverr.New(srverr.IllegalOperation, "Cannot explain cmd: %s", name)
}

// explainedConcern refuses the write concern of an aggregation that is explained, whichever of the
// two ways it asks for that.
func explainedConcern() error {
	return srverr.New(srverr.FailedToParse, "Aggregation explain does not support the'writeConcern' option") // sic
}

// explainWrite reads a command that writes: what is explained is how it finds its documents.
func explainWrite(r *server.Request) (explainTarget, error) {
	op, err := write.ToExplain(r)
	if err != nil {
		return explainTarget{}, err
	}
	st, err := r.Snapshot(op.NS)
	if err != nil {
		return explainTarget{}, err
	}
	if err := op.Parse(r, st.Coll(op.NS)); err != nil {
		return explainTarget{}, err
	}
	return explainTarget{q: findSpec{ns: op.NS, filter: op.Q, sort: op.Sort, collation: op.Collation, let: op.Let, hint: op.Hint}, stage: op.Stage, one: op.One, writes: r.Cmd.Name != "findAndModify"}, nil
}

// explanation checks the pipeline and splits it into a query and what is left.
func (q *aggregateSpec) explanation(r *server.Request) (explainTarget, error) {
	it, _, err := openAggregate(r, q)
	if err != nil {
		return explainTarget{}, err
	}
	it.Close()
	e := explainTarget{q: findSpec{ns: q.ns, collation: q.collation, let: q.let, hint: q.hint}, pipeline: true, rest: q.stages}
	if len(e.rest) > 0 {
		if filter, ok := e.rest[0].Lookup("$match").Document(); ok {
			e.q.filter, e.rest = filter, e.rest[1:]
		}
	}
	return e, nil
}

// absorb takes a $sort that ends the pipeline into the query.
func (e *explainTarget) absorb() {
	if len(e.rest) == 1 {
		if sort, ok := e.rest[0].Lookup("$sort").Document(); ok {
			e.q.sort, e.rest = sort, nil
		}
	}
	e.absorbed = len(e.rest) == 0
}

func runExplain(r *server.Request, dst []byte) ([]byte, error) {
	cmd, ok := r.Arg().Document()
	if !ok {
		return dst, srverr.New(srverr.FailedToParse, "explain command requires a nested object")
	}
	verbosity := "allPlansExecution"
	if v := r.Body.Lookup("verbosity"); v.Type != 0 {
		s, ok := v.StringValue()
		if !ok {
			return dst, srverr.New(srverr.FailedToParse, "explain verbosity must be a string")
		}
		if s != "queryPlanner" && s != "executionStats" && s != "allPlansExecution" {
			return dst, srverr.New(srverr.FailedToParse, "verbosity string must be one of {'queryPlanner', 'executionStats', 'allPlansExecution'}")
		}
		verbosity = s
	}
	name, _ := bsondoc.FirstElement(cmd)
	inner := *r
	inner.Cmd = r.Node.Lookup(name)
	if inner.Cmd == nil {
		return dst, srverr.New(srverr.CommandNotFound, "Explain failed due to unknown command: %s", name)
	}
	read := explainers[inner.Cmd.Name]
	if inner.Cmd.Name == "explain" {
		return dst, srverr.New(srverr.IllegalOperation, "Explain cannot explain itself.")
	}
	if read == nil {
		if inner.Cmd.Name == "getMore" { // it is parsed before one sees that there is nothing to explain
			inner.Body = explainedBody(cmd, r.DB)
			if err := new(getMoreSpec).parse(&inner); err != nil {
				return dst, err
			}
		}
		return dst, cannotExplain(name)
	}
	if db, ok := cmd.Lookup("$db").StringValue(); ok && db != r.DB {
		return dst, srverr.New(srverr.InvalidNamespace, "Mismatched $db in explain command. Expected %s but got %s", r.DB, db)
	}
	inner.Body, inner.Sequences, inner.Name = explainedBody(cmd, r.DB), nil, name
	e, err := read(&inner)
	if err != nil {
		return dst, err
	}
	return explain(r, dst, &e, verbosity != "queryPlanner")
}

// explainedBody returns the explained command as if it had come by itself. An aggregate needs no
// cursor to be explained.
func explainedBody(cmd bson.Raw, db string) bson.Raw {
	at, body := bson.BeginDocument(nil)
	body = append(body, cmd.Elements()...)
	if name, _ := bsondoc.FirstElement(cmd); name == "aggregate" && cmd.Lookup("cursor").Type == 0 {
		body = bson.AppendDocument(body, "cursor", bsondoc.OrEmpty(nil))
	}
	if cmd.Lookup("$db").Type == 0 {
		body = bson.AppendString(body, "$db", db)
	}
	return bson.EndDocument(body, at)
}

// explained is a planned query.
type explained struct {
	*explainTarget
	plan   *planner.Plan // nil: there is no collection
	byID   bool
	filter bson.Raw // as explain shows it
	proj   *query.Projection
	stats  bool // the plan was run, with these figures
	n      int64
	keys   int64
	docs   int64
	// sharded tells that the plan leaves out what a shard has only left of a migration.
	sharded bool
}

// explain appends how a query would be run, and with execute what running it costs.
func explain(r *server.Request, dst []byte, e *explainTarget, execute bool) ([]byte, error) {
	ns := e.q.ns
	st, err := r.Snapshot(ns)
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	if c != nil && c.View {
		return explainView(r, dst, e, execute)
	}
	if e.pipeline && sharding.Of(c) == nil {
		e.absorb()
	}
	op := server.Selection{Q: bsondoc.OrEmpty(e.q.filter), Collation: e.q.collation, Let: e.q.let}
	if err := op.Parse(r, ns, c); err != nil {
		return dst, err
	}
	var order *query.Sort
	natural, back, err := query.Natural(e.q.sort)
	if err != nil {
		return dst, err
	}
	o := r.FullOptions(ns, op.Coll, e.q.let)
	if len(e.q.sort) > 5 && !natural {
		if order, err = query.ParseSort(e.q.sort, o); err != nil {
			return dst, err
		}
	}
	p := &explanation{explainTarget: e, op: &op, coll: c, order: order, natural: natural, back: back}
	if len(e.q.projection) > 5 {
		if p.proj, err = query.ParseProjection(e.q.projection, op.Filter, o); err != nil {
			return dst, err
		}
	}
	if r.Routing != nil {
		return p.onShards(r, dst, execute)
	}
	if dst, err = p.append(r, dst, execute); err != nil {
		return dst, err
	}
	return appendServerInfo(r, dst), nil
}

// explanation is a command that is about to be explained.
type explanation struct {
	*explainTarget
	op            *server.Selection
	coll          *store.Coll // nil: there is none
	order         *query.Sort
	natural, back bool
	proj          *query.Projection
}

// plan plans the query, on some shards only if they are given.
func (p *explanation) plan(r *server.Request, shards ...int) (x *explained, err error) {
	x = &explained{explainTarget: p.explainTarget, filter: p.op.Filter.Document(), proj: p.proj}
	if p.coll == nil {
		return x, nil
	}
	q := &p.q
	route, err := r.Route(p.coll, p.coll.NS)
	if err != nil {
		return nil, err
	}
	a := &planner.Access{Coll: p.coll, Table: route.Table, Reach: route.Reacher(), Filter: p.op.Filter, Sort: p.order, Natural: p.natural, Back: p.back, Hint: q.hint, Min: q.min, Max: q.max, Collation: p.op.Coll, Only: shards}
	if x.plan, err = a.Plan(); err != nil {
		return nil, err
	}
	_, byID := p.op.Filter.IDEquality()
	x.byID = byID && p.order == nil && q.hint.Type == 0
	x.sharded = len(shards) > 0 && p.coll.Sharded()
	return x, nil
}

// append appends what a process explains that has the documents: the query's plan, or that of a
// pipeline with its stages.
func (p *explanation) append(r *server.Request, dst []byte, execute bool, shards ...int) ([]byte, error) {
	x, err := p.plan(r, shards...)
	if err != nil {
		return dst, err
	}
	if len(p.rest) == 0 {
		return appendPlanner(r, dst, x, execute)
	}
	list, dst := bson.BeginArrayElement(dst, "stages")
	first, dst := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, 0))
	cursor, dst := bson.BeginDocumentElement(dst, "$cursor")
	if dst, err = appendPlanner(r, dst, x, execute); err != nil {
		return dst, err
	}
	dst = bson.EndDocument(bson.EndDocument(dst, cursor), first)
	for i, stage := range p.rest {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i+1), stage...)
	}
	return bson.EndDocument(dst, list), nil
}

func appendServerInfo(r *server.Request, dst []byte) []byte {
	at, dst := bson.BeginDocumentElement(dst, "serverInfo")
	dst = bsondoc.Append(dst, "host", r.Node.Addr(), "port", int32(0),
		"version", r.Node.Config().Version.String(), "gitVersion", runtime.Version())
	return bson.EndDocument(dst, at)
}

// explainView explains a query on a view as the pipeline that it amounts to.
func explainView(r *server.Request, dst []byte, e *explainTarget, execute bool) ([]byte, error) {
	if e.stage == "UPDATE" || e.stage == "DELETE" {
		return dst, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", e.q.ns)
	}
	st, err := r.Snapshot(e.q.ns)
	if err != nil {
		return dst, err
	}
	q, err := e.q.aggregation()
	if err != nil {
		return dst, err
	}
	db, name := namespace.Split(e.q.ns)
	base, stages, err := (&pipelineEnv{run: &server.Running{Request: r, State: st}}).Resolve(pipeline.Namespace{DB: db, Coll: name})
	if err != nil {
		return dst, err
	}
	resolved := aggregateSpec{ns: base.String(), stages: append(append(append([]bson.Raw(nil), stages...), q.stages...), e.rest...), batchSize: -1, collation: q.collation, let: q.let}
	inner, err := resolved.explanation(r)
	if err != nil {
		return dst, err
	}
	return explain(r, dst, &inner, execute)
}

// appendPlanner appends queryPlanner and, if it is to be run, executionStats.
func appendPlanner(r *server.Request, dst []byte, x *explained, execute bool) ([]byte, error) {
	at, dst := bson.BeginDocumentElement(dst, "queryPlanner")
	dst = bson.EndDocument(x.appendPlan(r, dst), at)
	if !execute {
		return dst, nil
	}
	if err := x.run(r); err != nil {
		return dst, err
	}
	at, dst = bson.BeginDocumentElement(dst, "executionStats")
	dst = bson.AppendBool(dst, "executionSuccess", true)
	dst = x.appendFigures(dst)
	one, dst := bson.BeginDocumentElement(dst, "executionStages")
	dst = bson.EndDocument(x.append(dst), one)
	return bson.EndDocument(dst, at), nil
}

// appendPlan appends what queryPlanner has.
func (x *explained) appendPlan(r *server.Request, dst []byte) []byte {
	if !r.Node.Config().Version.AtLeast(5, 0) {
		dst = bson.AppendInt32(dst, "plannerVersion", 1)
	}
	dst = bsondoc.Append(dst, "namespace", x.q.ns, "indexFilterSet", false, "parsedQuery", x.filter)
	if shape, ok := x.shape(); ok && !r.Node.Config().Version.AtLeast(5, 0) {
		dst = bson.AppendString(dst, "queryHash", shape)
		dst = bson.AppendString(dst, "planCacheKey", shape) // no index is left out because of the query's values
	}
	if x.absorbed {
		dst = bson.AppendBool(dst, "optimizedPipeline", true)
	}
	one, dst := bson.BeginDocumentElement(dst, "winningPlan")
	dst = bson.EndDocument(x.append(dst), one)
	list, dst := bson.BeginArrayElement(dst, "rejectedPlans")
	return bson.EndDocument(dst, list)
}

// run runs the plan to see what it costs.
func (x *explained) run(r *server.Request) error {
	x.stats = true
	p := x.plan
	if p == nil {
		return nil
	}
	it := (&server.Running{Request: r}).Open(p, "")
	defer it.Close()
	for !x.one || x.n == 0 {
		doc, err := it.Next()
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		x.n++
	}
	x.keys, x.docs = p.Scan.KeysSeen, p.Scan.DocsSeen
	if x.byID {
		x.keys, x.docs = x.n, x.n
	}
	return nil
}

// appendFigures appends what a run cost.
func (x *explained) appendFigures(dst []byte) []byte {
	return bsondoc.Append(dst, "nReturned", int32(x.returned()), "executionTimeMillis", int32(0),
		"totalKeysExamined", int32(x.keys), "totalDocsExamined", int32(x.docs))
}

// returned is how many documents come out at the end.
func (x *explained) returned() int64 {
	if x.stage != "" {
		return 0
	}
	n := max(0, x.n-x.q.skip)
	if x.q.limit > 0 {
		n = min(n, x.q.limit)
	}
	return n
}

// append appends the stages of the plan, the outermost first.
func (x *explained) append(dst []byte) []byte {
	stages := x.stages()
	var open []int
	for i, s := range stages {
		if i > 0 {
			var at int
			at, dst = bson.BeginDocumentElement(dst, "inputStage")
			open = append(open, at)
		}
		dst = bson.AppendString(dst, "stage", s.name)
		if x.stats {
			dst = bsondoc.Append(dst, "nReturned", int32(s.returned), "executionTimeMillisEstimate", int32(0))
		}
		if s.fields != nil {
			dst = s.fields(dst)
		}
	}
	for i := len(open) - 1; i >= 0; i-- {
		dst = bson.EndDocument(dst, open[i])
	}
	return dst
}

// planStage is a stage of a plan as explain shows it.
type planStage struct {
	name     string
	returned int64
	fields   func(dst []byte) []byte
}

func (x *explained) stages() (out []planStage) {
	add := func(name string, returned int64, fields func(dst []byte) []byte) {
		out = append(out, planStage{name, returned, fields})
	}
	p, q := x.plan, &x.q
	if x.stage != "" {
		add(x.stage, 0, nil)
	}
	if p == nil {
		add("EOF", 0, nil)
		return out
	}
	if x.stage == "" {
		if q.limit > 0 && p.Sort == nil {
			add("LIMIT", x.returned(), func(d []byte) []byte { return bson.AppendInt32(d, "limitAmount", int32(q.limit)) })
		}
		if q.skip > 0 {
			add("SKIP", max(0, x.n-q.skip), func(d []byte) []byte { return bson.AppendInt32(d, "skipAmount", int32(q.skip)) })
		}
	}
	if x.proj != nil {
		name := "PROJECTION_DEFAULT"
		if _, simple := x.proj.Fields(); simple {
			name = "PROJECTION_SIMPLE"
		}
		add(name, x.returned(), func(d []byte) []byte { return bson.AppendDocument(d, "transformBy", q.projection) })
	}
	if p.Sort != nil {
		add("SORT", x.n, func(d []byte) []byte {
			d = bsondoc.Append(d, "sortPattern", q.sort, "memLimit", int32(100<<20))
			if q.limit > 0 {
				d = bson.AppendInt32(d, "limitAmount", int32(q.limit+q.skip))
			}
			return bson.AppendString(d, "type", "simple")
		})
	}
	filter := func(d []byte) []byte {
		if p.Filter != nil {
			d = bson.AppendDocument(d, "filter", x.filter)
		}
		return d
	}
	examined := func(d []byte, name string, n int64) []byte {
		if x.stats {
			d = bson.AppendInt32(d, name, int32(n))
		}
		return d
	}
	if x.sharded {
		add("SHARDING_FILTER", x.n, nil)
	}
	switch {
	case x.byID:
		add("IDHACK", x.n, func(d []byte) []byte { return examined(examined(d, "keysExamined", x.keys), "docsExamined", x.docs) })
	case p.Index == nil:
		add("COLLSCAN", x.n, func(d []byte) []byte {
			return examined(bson.AppendString(filter(d), "direction", direction(p.Back)), "docsExamined", x.docs)
		})
	default:
		add("FETCH", x.n, func(d []byte) []byte { return examined(filter(d), "docsExamined", x.docs) })
		add("IXSCAN", x.docs, func(d []byte) []byte { return examined(appendIndexScan(d, p), "keysExamined", x.keys) })
	}
	return out
}

func direction(back bool) string {
	if back {
		return "backward"
	}
	return "forward"
}

func appendIndexScan(dst []byte, p *planner.Plan) []byte {
	ix := p.Index
	dst = bsondoc.Append(dst, "keyPattern", ix.Pattern, "indexName", ix.Name, "isMultiKey", ix.Multikey)
	if !ix.Multikey {
		at, paths := bson.BeginDocumentElement(dst, "multiKeyPaths")
		for k := range ix.Pattern.All() {
			paths = bsondoc.AppendStrings(paths, k, nil)
		}
		dst = bson.EndDocument(paths, at)
	}
	dst = bsondoc.Append(dst, "isUnique", ix.Unique || ix.IsID, "isSparse", ix.Sparse,
		"isPartial", ix.Partial != nil, "indexVersion", int32(2), "direction", direction(p.Back))
	if !p.WholeIndex() {
		return dst
	}
	at, bounds := bson.BeginDocumentElement(dst, "indexBounds")
	for k, v := range ix.Pattern.All() {
		all := "[MinKey, MaxKey]"
		if n, _ := args.NumberOf(v); n < 0 != p.Back {
			all = "[MaxKey, MinKey]"
		}
		bounds = bsondoc.AppendStrings(bounds, k, []string{all})
	}
	return bson.EndDocument(bounds, at)
}
