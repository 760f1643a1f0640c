package read

import (
	"runtime"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/commands/write"
	"allium/mongotest/internal/expr"
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
		Name: "explain", Help: "explain database reads and writes",
		Needs: server.NeedsBy("those of the command that it explains", needsOfExplain),
		API:   server.V1, DataLake: true, Where: server.OptIn, Sequences: true, ReadConcern: true, Run: runExplain,
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
	write  *write.Explained
	key    string // of distinct
	// settings are those for queries of the command's shape, nil if there are none.
	settings *planner.QuerySetting
	// Of a pipeline: the stages that the query stands for, and the others.
	pipeline bool
	front    []bson.Raw
	rest     []bson.Raw
	absorbed bool   // the query stands for the whole pipeline
	nested   bool   // it is a sub-pipeline, which is shown as stages whatever the query does
	nearest  bool   // it is that of a $geoNear in front
	grouped  string // the field by whose values the rest groups, and does nothing else
	first    bool   // of each group it takes values of the first document
	counts   bool   // the rest reads nothing of the documents
	detail   string
	// The query's projection, if it computes fields: as it is shown, and the paths that it reads.
	computed bson.Raw
	paths    []string
	// engine is the shape of the stage behind the query that the engine which reads the collection
	// takes along; empty for none.
	engine string
}

// explainers read the commands that can be explained, as these do themselves.
var explainers = map[string]func(r *server.Request) (explainTarget, error){
	"find": func(r *server.Request) (e explainTarget, err error) {
		if v := r.Arg(); v.Type != bson.TypeString {
			if r.Version().AtLeast(7, 0) {
				return e, srverr.New(srverr.InvalidNamespace, "Failed to parse namespace element")
			}
			return e, srverr.New(srverr.InvalidNamespace, "collection name has invalid type %s",
				bsontext.TypeName(v.Type))
		}
		e.q.batchSize = -1
		return e, e.q.parse(r, r.Body)
	},
	"count": func(r *server.Request) (explainTarget, error) {
		var q countSpec
		err := q.parse(r)
		return explainTarget{q: findSpec{ns: q.ns, filter: q.filter, collation: q.collation, hint: q.hint,
			limit: q.limit, skip: q.skip}, stage: "COUNT"}, err
	},
	"distinct": func(r *server.Request) (explainTarget, error) {
		var q distinctSpec
		err := q.parse(r)
		return explainTarget{q: findSpec{ns: q.ns, filter: q.filter, collation: q.collation, hint: q.hint}, key: q.key},
			err
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
		if !r.Version().AtLeast(4, 4) { // before, it was no aggregation
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
	if db, _ := namespace.Split(op.NS); r.Cmd.Name == "findAndModify" && !slices.Contains(st.Databases(), db) {
		return explainTarget{}, srverr.New(srverr.NamespaceNotFound, "database %s does not exist", db)
	}
	if err := op.Parse(r, st.Coll(op.NS)); err != nil {
		return explainTarget{}, err
	}
	return explainTarget{q: findSpec{ns: op.NS, filter: op.Q, sort: op.Sort, collation: op.Collation, let: op.Let,
		hint: op.Hint}, stage: op.Stage, one: op.One, writes: r.Cmd.Name != "findAndModify", write: &op}, nil
}

// explanation checks the pipeline and splits it into a query and what is left.
func (q *aggregateSpec) explanation(r *server.Request) (explainTarget, error) {
	q.explained = true
	it, _, err := openAggregate(r, q)
	if err != nil {
		return explainTarget{}, err
	}
	it.Close()
	return explainTarget{q: findSpec{ns: q.ns, collation: q.collation, let: q.let, hint: q.hint}, pipeline: true,
		rest: q.stages}, nil
}

// pushDown gives the query what it does for the pipeline. On a sharded collection the shards'
// results are merged.
func (e *explainTarget) pushDown(r *server.Request, sharded bool) {
	if e.takeNear(r) {
		return
	}
	p := pushDown(r.Version(), e.rest, sharded)
	e.front = e.rest[:len(e.rest)-len(p.rest)]
	e.q.filter, e.q.sort, e.q.projection, e.q.skip, e.q.limit = p.filter, p.sort, p.projection, p.skip, p.limit
	e.rest, e.grouped, e.first, e.counts, e.paths = p.rest, p.distinct, p.first, p.counts, p.paths
	if p.computed != nil {
		_, shown := bsondoc.FirstElement(e.shower(r).Stages([]bson.Raw{p.computed})[0].Doc)
		e.computed = shown.Value
	}
	e.absorbed = len(e.rest) == 0 && !sharded && !e.nested
	if len(e.rest) > 0 && r.Version().AllParsed() {
		switch name, spec := bsondoc.FirstElement(e.rest[0]); name {
		case "$lookup", "$count", "$densify", "$setWindowFields":
			e.engine = name + query.ExpressionShape(spec).String()
		}
	}
}

// explainSpec are the arguments of explain.
type explainSpec struct {
	cmd       bson.Raw
	verbosity string
}

var explainArgs = &args.Table[explainSpec]{
	Name: "explain",
	Value: args.Object(func(q *explainSpec) *bson.Raw {
		return &q.cmd
	}).Old(srverr.FailedToParse, "explain command requires a nested object"),
	Fields: map[string]args.Field[explainSpec]{
		"verbosity": args.String(func(q *explainSpec) *string {
			return &q.verbosity
		}).Old(srverr.FailedToParse, "explain verbosity must be a string").
			Then(func(q *explainSpec, v args.Value) error {
				switch {
				case q.verbosity == "queryPlanner" || q.verbosity == "executionStats" ||
					q.verbosity == "allPlansExecution":
					return nil
				case v.From.Version().AtLeast(5, 0):
					return srverr.New(srverr.BadValue,
						"Enumeration value '%s' for field 'explain.verbosity' is not a valid value.", q.verbosity)
				}
				return srverr.New(srverr.FailedToParse,
					"verbosity string must be one of {'queryPlanner', 'executionStats', 'allPlansExecution'}")
			}),
	},
	Old: &args.Old{},
}

func runExplain(r *server.Request, dst []byte) ([]byte, error) {
	q := explainSpec{verbosity: "allPlansExecution"}
	if err := explainArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	cmd, verbosity := q.cmd, q.verbosity
	name, _ := bsondoc.FirstElement(cmd)
	inner := r.Nested()
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
			if err := new(getMoreSpec).parse(inner); err != nil {
				return dst, err
			}
		}
		return dst, cannotExplain(name)
	}
	if db, ok := cmd.Lookup("$db").StringValue(); ok && db != r.DB {
		return dst, srverr.New(srverr.InvalidNamespace, "Mismatched $db in explain command. Expected %s but got %s",
			r.DB, db)
	}
	inner.Body, inner.Sequences, inner.Name = explainedBody(cmd, r.DB), nil, name
	if inner.Arg().Type == bson.TypeBinary { // nothing is explained by a UUID
		code := int32(srverr.InvalidNamespace)
		switch inner.Cmd.Name {
		case "aggregate":
			code = srverr.TypeMismatch
		case "update", "delete":
			code = srverr.BadValue
		}
		return dst, srverr.New(code, "collection name has invalid type binData")
	}
	e, err := read(inner)
	if err != nil {
		return dst, err
	}
	e.detail = verbosity
	e.settings = settingsOf(inner, inner.Body)
	return explainReply(r, dst, &e, inner.Body)
}

// explainReply appends the explanation of a command, with what the process tells of itself.
func explainReply(r *server.Request, dst []byte, e *explainTarget, command bson.Raw) ([]byte, error) {
	var err error
	at := len(dst)
	if r.Version().AtLeast(5, 0) {
		dst = bson.AppendString(dst, "explainVersion", "1")
	}
	if dst, err = explain(r, dst, e, e.detail != "" && e.detail != "queryPlanner"); err != nil {
		return dst[:at], err
	}
	if name, _ := bsondoc.FirstElement(command); r.Version().AtLeast(8, 0) && slices.Contains(settableCommands, name) {
		if shape, err := shapeOf(r, command); err == nil {
			dst = bson.AppendString(dst, "queryShapeHash", query.ShapeHash(shape))
		}
	}
	if r.Version().AtLeast(5, 0) {
		dst = bson.AppendDocument(dst, "command", command)
	}
	return appendServerParameters(r, appendServerInfo(r, dst)), nil
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
	if e.pipeline {
		e.pushDown(r, sharding.Of(c) != nil)
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
	if e.key != "" {
		e.q.projection = distinctProjection(e.key)
	}
	if len(e.q.projection) > 5 {
		if p.proj, err = query.ParseProjection(e.q.projection, op.Filter, o); err != nil {
			if e.key == "" && !e.pipeline {
				return dst, err
			}
			e.q.projection = nil // a key that no projection can name is read from the documents
		}
	}
	if r.Routing != nil {
		return p.onShards(r, dst, execute)
	}
	return p.append(r, dst, execute)
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
	x = &explained{explainTarget: p.explainTarget, filter: p.op.Filter.Document()}
	q := &p.q
	x.access = &planner.Access{Coll: p.coll, Settings: p.settings, Filter: p.op.Filter, Sort: p.order,
		Natural: p.natural, Back: p.back, Hint: q.hint, Min: q.min, Max: q.max,
		Collation: p.op.Coll, Only: shards, Memory: &r.Node.Memory, Explains: true, OnShard: len(shards) > 0,
		Version: r.Version()}
	x.access.NoScan = func() bool { return r.NoTableScan(q.ns) }
	x.access.Text = func() string { return planner.Describe(q.ns, p.op.Filter, q.sort, q.projection, q.collation) }
	w := &x.access.Wants
	w.Skip, w.Limit, w.Projection, w.Projected, w.SortSpec, w.ReturnKey = q.skip, q.limit, p.proj, q.projection, q.sort,
		q.returnKey
	if w.Paths = p.paths; p.computed != nil {
		w.Projected = p.computed
	} else if p.proj != nil && p.proj.Computes() {
		w.Paths = projectionPaths(q.projection)
	}
	if p.key != "" && r.Version().AtLeast(8, 1) {
		w.Projected = nil // it is no part of the shape any more
	}
	w.Collated, w.Engine = q.collation, p.engine
	w.Count, w.Distinct, w.Tailable, w.Keyless = p.stage == "COUNT", p.key, q.tailable, p.counts
	if !p.pipeline {
		w.SortMemory = q.sortMemory(r)
	}
	w.TextStage = !r.Version().AtLeast(5, 0)
	w.Express = r.Version().AtLeast(8, 0) && p.stage == "" && len(shards) == 0
	if p.grouped != "" {
		w.Distinct, w.Grouped, w.First = p.grouped, true, p.first
	}
	w.Meta = func(doc bson.Raw, name string) bson.RawValue {
		return (&description{filter: p.op.Filter, doc: doc}).meta(name)
	}
	if p.coll == nil {
		x.plan = x.access.NoPlan()
		return x, nil
	}
	route, err := r.Route(p.coll, p.coll.NS)
	if err != nil {
		return nil, err
	}
	x.access.Table, x.access.Reach = route.Table, route.Reacher()
	x.plan, err = x.access.Plan()
	if p.op.Filter != nil && p.op.Filter.NeedsTextIndex() { // now it has the index's language
		x.filter = p.op.Filter.Document()
	}
	return x, err
}

// append appends what a process explains that has the documents: the query's plan, or that of a
// pipeline with its stages.
func (p *explanation) append(r *server.Request, dst []byte, execute bool, shards ...int) ([]byte, error) {
	x, err := p.plan(r, shards...)
	if err != nil {
		return dst, err
	}
	if len(p.rest) == 0 && !p.nearest && !p.nested {
		return appendPlanner(r, dst, x, execute)
	}
	if err := p.checkSearch(r); err != nil {
		return dst, err
	}
	if execute {
		return p.appendRun(r, dst, x)
	}
	shown, err := p.shownStages(r, x)
	if err != nil {
		return dst, err
	}
	list, dst := bson.BeginArrayElement(dst, "stages")
	if p.searches() { // which no query goes before
		for i, stage := range shown {
			dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), stage.Doc...)
		}
		return bson.EndDocument(dst, list), nil
	}
	first, dst := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, 0))
	cursor, dst := bson.BeginDocumentElement(dst, p.cursorName())
	if dst, err = appendPlanner(r, dst, x, execute); err != nil {
		return dst, err
	}
	dst = bson.EndDocument(bson.EndDocument(dst, cursor), first)
	for i, stage := range shown {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i+1), stage.Doc...)
	}
	return bson.EndDocument(dst, list), nil
}

// searches reports whether the pipeline begins with a search.
func (p *explanation) searches() bool {
	if len(p.rest) == 0 {
		return false
	}
	first := pipeline.StageOf(pipeline.Namespace{}, p.rest[0])
	return first.Searches()
}

// checkSearch asks the engine what is wrong with the search that the pipeline begins with.
func (p *explanation) checkSearch(r *server.Request) error {
	if !p.searches() || r.Node.Config().Search == nil {
		return nil
	}
	name, v := bsondoc.FirstElement(p.rest[0])
	return r.Node.Config().Search.Check(name, v.Value)
}

// shownStages are the stages behind the query. A $group is another stage if the query finds one
// document for each group.
func (p *explanation) shownStages(r *server.Request, x *explained) ([]pipeline.ShownStage, error) {
	list := p.shower(r).Stages(p.rest)
	for i, shown := range list {
		if name, spec := bsondoc.FirstElement(shown.Doc); name == "$unionWith" {
			doc, err := p.explainUnion(r, spec.Value, p.rest[shown.Last])
			if err != nil {
				return nil, err
			}
			list[i].Doc = doc
		}
	}
	if p.grouped != "" && x.plan.Scans("DISTINCT_SCAN") {
		_, group := bsondoc.FirstElement(list[0].Doc)
		root := bsondoc.Build(func(d *bsondoc.Builder) {
			for k, v := range bson.Raw(group.Value).All() {
				if k != "_id" { // the argument of $first
					_, v = bsondoc.FirstElement(v.Value)
				}
				d.B = bson.AppendRawValue(d.B, k, v)
			}
		})
		list[0].Doc = bsondoc.Of("$groupByDistinctScan", bsondoc.Of("newRoot", root))
	}
	return list, nil
}

// explainUnion shows a $unionWith with the explanation of its own pipeline.
func (p *explanation) explainUnion(r *server.Request, shown, stage bson.Raw) (bson.Raw, error) {
	whole := bsondoc.Single("$unionWith", bsondoc.DocumentValue(shown))
	coll, ok := shown.Lookup("coll").StringValue()
	if !ok || r.Routing != nil { // it has documents of its own, or its collection may be on another shard
		return whole, nil
	}
	_, spec := bsondoc.FirstElement(stage)
	var stages []bson.Raw
	if doc, ok := spec.Document(); ok {
		stages = pipeline.StagesIn(doc.Lookup("pipeline"))
	}
	db, _ := namespace.Split(p.q.ns)
	q := aggregateSpec{ns: namespace.Join(db, coll), stages: stages, batchSize: -1, collation: p.q.collation,
		let: p.q.let}
	e, err := q.explanation(r)
	if err != nil {
		return nil, err
	}
	e.detail, e.nested = p.detail, true
	start, dst := bson.BeginDocument(nil)
	if dst, err = explain(r, dst, &e, p.detail != "" && p.detail != "queryPlanner"); err != nil {
		return nil, err
	}
	inner := bson.Raw(bson.EndDocument(dst, start))
	return bsondoc.Of("$unionWith", bsondoc.Of("coll", coll, "pipeline", inner.Lookup("stages"))), nil
}

// shower shows the stages of a pipeline as it is parsed.
func (e *explainTarget) shower(r *server.Request) *pipeline.Shower {
	db, _ := namespace.Split(e.q.ns)
	o := r.FullOptions(e.q.ns, nil, e.q.let)
	filter := func(doc bson.Raw) bson.Raw {
		f, err := query.ParseFilter(doc, o)
		if err != nil { // of variables that only the pipeline has
			return doc
		}
		return f.Document()
	}
	return &pipeline.Shower{DB: db, Scope: expr.NewScope(&expr.Env{Version: r.Version()}), Filter: filter}
}

func appendServerInfo(r *server.Request, dst []byte) []byte {
	at, dst := bson.BeginDocumentElement(dst, "serverInfo")
	dst = bsondoc.Append(dst, "host", r.Node.Addr(), "port", int32(0),
		"version", r.Version().String(), "gitVersion", runtime.Version())
	return bson.EndDocument(dst, at)
}

// explainedParameters are the server parameters that an explanation shows, besides those that came
// later.
var explainedParameters = []string{"internalQueryFacetBufferSizeBytes", "internalQueryFacetMaxOutputDocSizeBytes",
	"internalLookupStageIntermediateDocumentMaxSizeBytes", "internalDocumentSourceGroupMaxMemoryBytes",
	"internalQueryMaxBlockingSortMemoryUsageBytes", "internalQueryProhibitBlockingMergeOnMongoS",
	"internalQueryMaxAddToSetBytes", "internalDocumentSourceSetWindowFieldsMaxMemoryBytes",
	"internalQueryFrameworkControl", "internalQueryPlannerIgnoreIndexWithCollationForRegex"}

// appendServerParameters appends what the planner and the pipeline go by, from 5.0 on.
func appendServerParameters(r *server.Request, dst []byte) []byte {
	if !r.Version().AtLeast(5, 0) {
		return dst
	}
	at, dst := bson.BeginDocumentElement(dst, "serverParameters")
	for _, name := range explainedParameters {
		v, ok := r.Node.Parameter(name)
		if !ok {
			continue
		}
		if v.Type == bson.TypeBoolean {
			v = bsondoc.Int32Value(0)
			if yes, _ := r.Node.Parameter(name); yes.AsBool() {
				v = bsondoc.Int32Value(1)
			}
		}
		dst = bson.AppendRawValue(dst, name, v)
	}
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
	view := st.Coll(e.q.ns)
	if len(e.q.collation) > 0 && !e.q.collation.IsEmpty() {
		given, err := query.ParseCollation(r.Version(), e.q.collation)
		if err != nil {
			return dst, err
		}
		if !given.Same(view.Collation) {
			return dst, srverr.New(srverr.OptionNotSupportedOnView, "Cannot override a view's default collation")
		}
	}
	switch {
	case e.stage == "COUNT":
		q.stages = append(q.stages, bsondoc.Of("$count", "count"))
	case e.key != "":
		q.stages = append(q.stages, distinctStages(e.key)...)
	}
	db, name := namespace.Split(e.q.ns)
	base, stages, err := (&pipelineEnv{run: &server.Running{Request: r, State: st}}).Resolve(pipeline.Namespace{DB: db,
		Coll: name})
	if err != nil {
		return dst, err
	}
	resolved := aggregateSpec{ns: base.String(), stages: append(append(append([]bson.Raw(nil), stages...), q.stages...),
		e.rest...), batchSize: -1, let: q.let, hint: e.q.hint}
	if view.Collation != nil {
		resolved.collation = view.Collation.Spec()
	}
	inner, err := resolved.explanation(r)
	if err != nil {
		return dst, err
	}
	inner.detail, inner.nested = e.detail, e.nested
	return explain(r, dst, &inner, execute)
}

// distinctStages are the stages that the values of a field of a view are found by.
func distinctStages(key string) (stages []bson.Raw) {
	parts := strings.Split(key, ".")
	for i := range parts {
		prefix := strings.Join(parts[:i+1], ".")
		if i > 0 { // what is an array within an array has no fields
			parent := strings.Join(parts[:i], ".")
			object := bsondoc.Of("$_internalSchemaType", "object")
			stages = append(stages, bsondoc.Of("$match", bsondoc.Of(parent, object)))
		}
		unwind := bsondoc.Of("path", "$"+prefix, "preserveNullAndEmptyArrays", true)
		stages = append(stages, bsondoc.Of("$unwind", unwind))
	}
	return append(stages, bsondoc.Of("$group", bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendNull(d.B, "_id")
		d.Doc("distinct", bsondoc.Of("$addToSet", "$"+key))
	})))
}

// appendRun appends the stages of a pipeline with what each of them yielded.
func (p *explanation) appendRun(r *server.Request, dst []byte, x *explained) ([]byte, error) {
	counts, err := p.stageCounts(r)
	if err != nil {
		return dst, err
	}
	shown, err := p.shownStages(r, x)
	if err != nil {
		return dst, err
	}
	figures := func(dst []byte, n int64) []byte {
		return bsondoc.Append(dst, "nReturned", n, "executionTimeMillisEstimate", int64(0))
	}
	list, dst := bson.BeginArrayElement(dst, "stages")
	before := 0        // how many stages stand before those that are left
	if !p.searches() { // no query goes before a search
		first, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, 0))
		cursor, d := bson.BeginDocumentElement(d, p.cursorName())
		if d, err = appendPlanner(r, d, x, true); err != nil {
			return d, err
		}
		d = bson.EndDocument(d, cursor)
		if r.Version().AtLeast(4, 4) {
			d = figures(d, x.ran.Advanced)
		}
		dst, before = bson.EndDocument(d, first), 1
	}
	for i, stage := range shown {
		at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i+before))
		d = append(d, stage.Doc.Elements()...)
		if r.Version().AtLeast(4, 4) {
			d = figures(d, counts[stage.Last])
		}
		dst = bson.EndDocument(d, at)
	}
	return bson.EndDocument(dst, list), nil
}

// ran returns the stages up to one as they are run: a search without what is for explain alone.
func (p *explanation) ran(last int) []bson.Raw {
	stages := p.rest[:last+1]
	if !p.searches() {
		return stages
	}
	name, v := bsondoc.FirstElement(stages[0])
	spec := bsondoc.Build(func(d *bsondoc.Builder) {
		for key, v := range bson.Raw(v.Value).All() {
			if key != "explainOptions" {
				d.Value(key, v.Type, v.Value)
			}
		}
	})
	return append([]bson.Raw{bsondoc.Of(name, spec)}, stages[1:]...)
}

// stageCounts runs the pipeline as far as each of its stages, and returns how many documents each
// yields. What writes is not run.
func (p *explanation) stageCounts(r *server.Request) ([]int64, error) {
	counts := make([]int64, len(p.rest))
	for i := range p.rest {
		name, _ := bsondoc.FirstElement(p.rest[i])
		if name == "$out" || name == "$merge" {
			continue
		}
		q := aggregateSpec{ns: p.q.ns, stages: slices.Concat(p.front, p.ran(i)), batchSize: -1,
			collation: p.q.collation, let: p.q.let, hint: p.q.hint}
		n, err := countResults(r, &q)
		if err != nil {
			return nil, err
		}
		counts[i] = n
	}
	return counts, nil
}
