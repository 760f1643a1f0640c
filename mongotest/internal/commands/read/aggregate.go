package read

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "aggregate", Help: "Runs the aggregation command. See http://dochub.mongodb.org/core/aggregation for more details.",
		Needs: needsOfAggregate, API: server.V1, DataLake: true, Where: server.OptIn,
		Txn: server.TxnOK, Sequences: true, ReadConcern: true, CheckConcern: checkAggregateConcern, Snapshot: true,
		WriteConcern: true,
		MaxTime:      server.MaxTime{Of: "aggregate", Positive: true}, DefaultMaxTime: readsOnly,
		Mongos: server.OnMongos{Documents: true, Missing: missingDatabase}, Parse: parseAggregate,
		Shape: queryShape, Run: runAggregate,
	})
}

// aggregateSpec are the arguments of aggregate.
type aggregateSpec struct {
	ns             string
	uuid           []byte // collectionUUID; nil: any
	collectionless bool
	stages         []bson.Raw
	batchSize      int64 // -1: not given
	hasCursor      bool
	explain        bool
	bypass         bool
	disk, hasDisk  bool // allowDiskUse
	collation, let bson.Raw
	hint           bson.RawValue
	settings       *planner.QuerySetting
	explained      bool // its stages become those that the optimizer leaves
}

func parseAggregate(r *server.Request) error {
	q := &aggregateSpec{batchSize: -1}
	r.Pipeline = q
	err := q.parse(r)
	r.ChangeStream = q.changeStream()
	for _, doc := range q.stages {
		if err == nil { // a stage that nobody knows is found before anything else is looked at
			err = pipeline.CheckStage(doc, r.Version())
		}
	}
	return err
}

// parsedAggregate returns what parseAggregate has made of the command.
func parsedAggregate(r *server.Request) *aggregateSpec { return r.Pipeline.(*aggregateSpec) }

// changeStream reports whether the pipeline begins with $changeStream.
func (q *aggregateSpec) changeStream() bool {
	return len(q.stages) > 0 && q.stages[0].Lookup("$changeStream").Type != 0
}

// collStats reports whether the pipeline begins with $collStats, which describes a view itself.
func (q *aggregateSpec) collStats() bool {
	return len(q.stages) > 0 && q.stages[0].Lookup("$collStats").Type != 0
}

// fuses reports whether the pipeline begins with $rankFusion or $scoreFusion, whose input pipelines
// read the collection.
func (q *aggregateSpec) fuses() bool {
	if len(q.stages) == 0 {
		return false
	}
	first := q.stages[0]
	return first.Lookup("$rankFusion").Type != 0 || first.Lookup("$scoreFusion").Type != 0
}

// readsOnly reports whether the aggregation writes no collection.
func readsOnly(r *server.Request) bool {
	q := parsedAggregate(r)
	if len(q.stages) == 0 {
		return true
	}
	last := q.stages[len(q.stages)-1]
	return last.Lookup("$out").Type == 0 && last.Lookup("$merge").Type == 0
}

func checkAggregateConcern(r *server.Request, level string) error {
	q := parsedAggregate(r)
	return pipeline.CheckReadConcern(q.stages, level, q.explain)
}

// missingDatabase answers on a mongos, which opens the pipeline before it looks for the database.
func missingDatabase(r *server.Request, dst []byte) (out []byte, done bool, err error) {
	ns, err := r.Collection(srverr.TypeMismatch)
	if err != nil || r.Arg().Type != bson.TypeString {
		return dst, false, nil
	}
	var q aggregateSpec
	if q.parse(r) != nil || q.changeStream() {
		return dst, false, nil
	}
	if _, _, err = openAggregate(r, &q); err != nil {
		return dst, false, nil
	}
	return server.EmptyResult(dst, ns)
}

func runAggregate(r *server.Request, dst []byte) ([]byte, error) {
	q := parsedAggregate(r)
	if err := r.CheckAPIStages(q.stages); err != nil {
		return dst, err
	}
	if q.explain && r.APIStrict() && r.Version().AllParsed() {
		return dst, server.NotStable("aggregate.explain")
	}
	if q.explain {
		if r.InTxn() {
			return dst, srverr.New(srverr.OperationNotSupportedInTransaction,
				"Operation not permitted in transaction :: caused by :: Explain for the aggregate command cannot run within a multi-document transaction")
		}
		e, err := q.explanation(r)
		if err != nil {
			return dst, err
		}
		e.settings = settingsOf(r, r.Body)
		return explainReply(r, dst, &e, r.Body)
	}
	var err error
	if q.settings, err = settingsFor(r, r.Body); err != nil {
		return dst, err
	}
	return aggregate(r, dst, q)
}

var aggregateArgs = &args.Table[aggregateSpec]{Name: "aggregate", Copy: true, Required: []string{"pipeline"},
	Fields: map[string]args.Field[aggregateSpec]{
		"pipeline": args.Any[aggregateSpec](nil).Kept().Then(func(q *aggregateSpec, v args.Value) (err error) {
			if q.stages == nil {
				q.stages, err = pipeline.StagesOf(v.RawValue)
			}
			return err
		}),
		"cursor": server.CursorOption(args.Any[aggregateSpec](nil).Note(func(q *aggregateSpec) *bool {
			return &q.hasCursor
		}), func(q *aggregateSpec) *int64 { return &q.batchSize }),
		"explain": args.Bool(func(q *aggregateSpec) *bool {
			return &q.explain
		}).Says(srverr.TypeMismatch, "%s must be a boolean, not a %s"),
		"hint": args.Hint(func(q *aggregateSpec) *bson.RawValue { return &q.hint }).
			Says(srverr.FailedToParse, "hint must be specified as a string representing an index name, or an object representing an index's key pattern"),
		"allowDiskUse": args.SafeBool(func(q *aggregateSpec) *bool {
			return &q.disk
		}).Strict().Flag50().Note(func(q *aggregateSpec) *bool { return &q.hasDisk }),
		"bypassDocumentValidation": args.SafeBool(func(q *aggregateSpec) *bool { return &q.bypass }).Loose(),
		"collation":                args.Object(func(q *aggregateSpec) *bson.Raw { return &q.collation }),
		"let":                      args.Object(func(q *aggregateSpec) *bson.Raw { return &q.let }).Since50(),
		"fromMongos":               args.Bool[aggregateSpec](nil),
		"needsMerge":               args.Bool[aggregateSpec](nil),
		"isMapReduceCommand":       args.Bool[aggregateSpec](nil),
		"exchange":                 args.Object[aggregateSpec](nil).Loose().Then(checkExchange),
		"collectionUUID":           args.UUID("aggregate", func(q *aggregateSpec) *[]byte { return &q.uuid }).Gated(),
		"encryptionInformation":    args.Object[aggregateSpec](nil).Gated(),
		"includeQueryStatsMetrics": args.SafeBool[aggregateSpec](nil).Gated(),
		"isHybridSearch":           args.SafeBool[aggregateSpec](nil).Gated(),
		"resumeAfter":              args.Object[aggregateSpec](nil).Gated(),
		"startAt":                  args.Object[aggregateSpec](nil).Gated(),
		"requestResumeToken":       args.SafeBool[aggregateSpec](nil).Gated(),
		"passthroughToShard":       args.Object[aggregateSpec](nil).Gated(),
		"legacyRuntimeConstants":   args.Object[aggregateSpec](nil).Since50(),

		"translatedForViewlessTimeseries": args.SafeBool[aggregateSpec](nil).Gated(),

		"aggregate":     args.Any[aggregateSpec](nil).Before50(), // again
		"mergeByPBRT":   args.Any[aggregateSpec](nil).Before50(),
		"use44SortKeys": args.Bool[aggregateSpec](nil).Before50(),
		"readConcern":   args.Object[aggregateSpec](nil).Before50(),
		"writeConcern": args.Object[aggregateSpec](nil).Before50().Then(func(_ *aggregateSpec, v args.Value) error {
			if bson.Raw(v.Value).IsEmpty() {
				return srverr.New(srverr.FailedToParse, "write concern object cannot be empty")
			}
			return nil
		}),
		"comment": args.Any[aggregateSpec](nil).Before50().Then(func(_ *aggregateSpec, v args.Value) error {
			if !args.Generic(v.From.Version(), v.Name) && v.Type != bson.TypeString {
				return mustBe(v.From, v.Name, v.RawValue, "string")
			}
			return nil
		}),
		"maxTimeMS": args.Any[aggregateSpec](nil).Before50().Then(func(_ *aggregateSpec, v args.Value) error {
			_, err := server.MaxTime{}.Parse(v.RawValue, v.From.Version())
			return err
		}),
		"runtimeConstants": args.AnyObject[aggregateSpec](nil).Before50().Then(func(_ *aggregateSpec,
			v args.Value) error {
			return args.CheckRuntimeConstants("internalRuntimeConstants", v)
		}),
	}, Old: &args.Old{
		Unknown: func(_ args.Source, k string) error {
			return srverr.New(srverr.FailedToParse, "unrecognized field '%s'", k)
		},
		Wrong: mustBe,
	}}

// mustBe is the error of an argument of a wrong type, as parsers written by hand word it.
func mustBe(_ args.Source, k string, v bson.RawValue, want string) error {
	want = map[string]string{"bool": "a boolean", "object": "an object", "string": "a string"}[want]
	return srverr.New(srverr.TypeMismatch, "%s must be %s, not a %s", k, want, bsontext.TypeName(v.Type))
}

// exchangeArgs are how a mongos asks for several cursors at once.
var exchangeArgs = &args.Table[args.None]{Name: "internalExchange", Required: []string{"policy", "consumers"},
	Fields: map[string]args.Field[args.None]{
		"policy": args.String[args.None](nil), "consumers": args.Int[args.None](nil),
		"orderPreserving": args.Bool[args.None](nil),
		"bufferSize":      args.Int[args.None](nil), "key": args.Object[args.None](nil),
		"boundaries": args.Objects[args.None](nil), "consumerIds": args.Ints[args.None](nil),
	}}

func checkExchange(_ *aggregateSpec, v args.Value) error {
	switch {
	case v.From.Version().AtLeast(5, 0):
		return nil
	case v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray:
		return args.NoObject(v.Name)
	}
	return exchangeArgs.Parse(v.From, v.Value, nil)
}

// refuseRouterArguments refuses what only a mongos says to a shard.
func refuseRouterArguments(r *server.Request) error {
	switch {
	case !r.Body.Lookup("exchange").IsZero():
		return srverr.New(51028, "Cannot specify exchange option to a mongos")
	case !r.Body.Lookup("runtimeConstants").IsZero() && !r.Version().AtLeast(5, 0):
		return srverr.New(51143, "Cannot specify runtime constants option to a mongos")
	case r.Body.Lookup("needsMerge").AsBool() || r.Body.Lookup("fromMongos").AsBool():
		return srverr.New(51089,
			"Internal parameter(s) [needsMerge, fromMongos] cannot be set to 'true' when sent to mongos")
	}
	return nil
}

func (q *aggregateSpec) parse(r *server.Request) (err error) {
	if err := q.namespace(r, r.Arg()); err != nil {
		return err
	}
	body := r.Body
	if !r.Version().AtLeast(5, 0) { // the pipeline comes first, wherever it stands
		if q.stages, err = pipeline.StagesOf(bsondoc.CopyValue(body.Lookup("pipeline"))); err != nil {
			return err
		}
	}
	if err := aggregateArgs.ParseCommand(r, q); err != nil {
		return err
	}
	r.Expect(q.ns, q.uuid)
	if !q.hasCursor && !q.explain && (body.Lookup("explain").IsZero() || r.Version().AllParsed()) {
		return srverr.New(srverr.FailedToParse,
			"The 'cursor' option is required, except for aggregate with the explain argument")
	}
	if q.explain && !body.Lookup("writeConcern").IsZero() {
		return explainedConcern()
	}
	if !body.Lookup("needsMerge").IsZero() && body.Lookup("fromMongos").IsZero() {
		return srverr.New(srverr.FailedToParse, "Cannot specify 'needsMerge' without 'fromMongos'")
	}
	if r.Routing != nil {
		if err := refuseRouterArguments(r); err != nil {
			return err
		}
	}
	return q.checkHint(r.Version())
}

// checkHint refuses hints that the pipeline, or the version, does not go with.
func (q *aggregateSpec) checkHint(v release.Version) error {
	if err := query.CheckHint(v, q.hint); err != nil || len(q.stages) == 0 {
		return err
	}
	hint, _ := q.hint.Document()
	if !hint.Lookup("$natural").IsZero() && !q.stages[0].Lookup("$geoNear").IsZero() {
		return srverr.New(srverr.BadValue, "geoNear expression not allowed with $natural hint")
	}
	return nil
}

// namespace reads the command's value: a collection, or 1 for a pipeline that needs none.
func (q *aggregateSpec) namespace(r *server.Request, v bson.RawValue) (err error) {
	if v.IsNumber() {
		if query.Float(v) != 1 && r.Version().AllParsed() {
			return srverr.New(srverr.BadValue,
				"Invalid command format: the 'aggregate' field must specify a collection name or 1")
		}
		if query.Float(v) != 1 {
			return srverr.New(srverr.FailedToParse,
				"Invalid command format: the 'aggregate' field must specify a collection name or 1")
		}
		q.ns, q.collectionless = r.DB+".$cmd.aggregate", true
		return nil
	}
	if v.Type != bson.TypeString && r.Version().AllParsed() {
		return srverr.New(srverr.InvalidNamespace, "Failed to parse namespace element")
	}
	if v.Type != bson.TypeString {
		return srverr.New(srverr.TypeMismatch, "collection name has invalid type: %s", bsontext.TypeName(v.Type))
	}
	if q.ns, err = r.Collection(srverr.TypeMismatch); err == nil && strings.HasSuffix(q.ns, ".$cmd.aggregate") {
		err = srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", q.ns)
	}
	return err
}

// aggregate runs a pipeline and appends its cursor.
func aggregate(r *server.Request, dst []byte, q *aggregateSpec) ([]byte, error) {
	it, run, err := openAggregate(r, q)
	if err != nil {
		return dst, err
	}
	c := r.NewCursor(q.ns, it, run)
	if !q.collectionless && run.Stream == nil {
		c.Relay = run.Relay
	}
	if r.Routing == nil && run.Stream == nil {
		c.Pipeline = &server.PipelineOutput{Iterator: it, Left: run.Limit, Plain: run.Plain}
		c.Iterator = c.Pipeline
	}
	if s, ok := run.Stream.(*changeStream); ok {
		c.Iterator = &streamOutput{Iterator: it, s: s, split: run.Splits}
		c.Tailable, c.AwaitData = true, true
		c.Wait = r.Node.Store().Changed
		c.Token = func() bson.Raw { return s.token(c.Stash != nil) }
		if r.Routing != nil {
			q.batchSize = 0 // a mongos opens the streams of the shards and reads from them later
		}
	}
	return r.AppendCursor(dst, c, q.batchSize, false)
}

// openAggregate resolves views, parses the pipeline and connects it with its collection.
func openAggregate(r *server.Request, q *aggregateSpec) (pipeline.Iterator, *server.Running, error) {
	st, err := r.Snapshot(q.ns)
	if err != nil {
		return nil, nil, err
	}
	if r.Routing != nil {
		if err := r.CheckStages(st, r.DB, q.stages); err != nil {
			return nil, nil, err
		}
	}
	run := &server.Running{Request: r, State: st}
	env := &pipelineEnv{run: run, bypass: q.bypass}
	ns := q.ns
	if q.stages, err = r.RevealStages(st, q.stages); err != nil {
		return nil, nil, err
	}
	stages := q.stages
	var collation *query.Collation
	given := q.collation != nil && !(q.collation.IsEmpty() && r.Version().AllParsed())
	if given {
		if collation, err = query.ParseCollation(r.Version(), q.collation); err != nil {
			return nil, nil, err
		}
	}
	if c := st.Coll(ns); c != nil && !q.collectionless {
		switch {
		case c.TimeSeries && q.changeStream():
			return nil, nil, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a timeseries collection", ns)
		case c.TimeSeries && len(q.stages) > 0 && q.stages[0].Lookup("$planCacheStats").Type != 0 &&
			r.Version().AllParsed(): // behind the stage that unpacks buckets
			return nil, nil, srverr.New(40602, "$planCacheStats is only valid as the first stage in a pipeline")
		case (c.TimeSeries || series.NamesBuckets(c.Name)) && q.fuses():
			return nil, nil, srverr.New(10557301, "$rankFusion and $scoreFusion are not supported on time series collections")
		case c.View && q.changeStream():
			return nil, nil,
				srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
		case c.View && !q.collStats():
			if given && !collation.Same(c.Collation) {
				return nil, nil,
					srverr.New(srverr.OptionNotSupportedOnView, "Cannot override a view's default collation")
			}
			db, name := namespace.Split(ns)
			base, view, err := env.Resolve(pipeline.Namespace{DB: db, Coll: name})
			if err != nil {
				return nil, nil, err
			}
			collation, given = c.Collation, true
			if q.fuses() && len(view) > 0 { // its input pipelines are on the view
				break
			}
			ns, stages = base.String(), append(append([]bson.Raw(nil), view...), stages...)
		case !given && !q.changeStream():
			collation = c.Collation
		}
	}
	o := r.ExprOptions(ns, collation, q.let)
	if q.collectionless {
		o.NS = pipeline.Namespace{DB: r.DB}
	}
	env.coll, env.strict, env.hint, env.hinted = collation, true, q.hint, o.NS
	if err := env.checkViews(o.NS, stages); err != nil {
		return nil, nil, err
	}
	views := 0
	if ns != q.ns {
		views = 1
	}
	if err := pipeline.CheckNesting(o.NS, stages, views, env.Resolve); err != nil {
		return nil, nil, err
	}
	o.Env, o.BypassValidation, o.Check = env, q.bypass, run.Interrupted
	byDefault, _ := r.Node.Parameter("allowDiskUseByDefault")
	o.AllowDiskUse = q.disk || !q.hasDisk && byDefault.AsBool()
	if r.MapReduce && !o.Version.AtLeast(4, 4) {
		// the first version that has the stages which the command is made of
		o.Version = expr.Version{Major: 4, Minor: 4}
	}
	p, err := pipeline.Parse(stages, o)
	if err != nil {
		return nil, nil, err
	}
	if q.explained && ns == q.ns { // a view's are explained with what it stands for
		q.stages = p.Moved()
	}
	if r.Routing != nil {
		_, writes := p.Writes()
		if run.Relay, err = relay(r, st.Coll(ns), ns, stages, collation, q.let, writes); err != nil {
			return nil, nil, err
		}
	}
	if _, ok := p.Writes(); !ok {
		r.NoWrite = true
	} else if r.Node.Set() != nil && !r.Node.IsPrimary() && !r.Version().AtLeast(4, 4) {
		return nil, nil, srverr.New(srverr.NotWritablePrimary, "not master") // newer secondaries let the primary write
	}
	var src pipeline.Iterator
	if docs, ok := r.Node.SystemDocuments(ns); ok && p.NeedsSource() && st.Coll(ns) == nil {
		src = pipeline.FromSlice(docs)
	} else if p.NeedsSource() {
		if src, err = pipelineSource(r, run, st.Coll(ns), p, q, collation); err != nil {
			return nil, nil, err
		}
	}
	run.Splits = p.SplitsLargeEvents()
	start := p.Run
	if r.MapReduce {
		start = p.RunBare
	}
	it, err := start(src)
	return it, run, err
}

// wantOfPipeline tells the planner what the stages read that it leaves to the pipeline, so that it
// may look at keys alone.
func wantOfPipeline(r *server.Request, a *planner.Access, stages []bson.Raw) (err error) {
	f := fields{}
	if !r.Version().AtLeast(4, 4) || !f.ofStages(stages) || len(f.paths) == 0 {
		return nil
	}
	w := &a.Wants
	w.Projected = f.projection()
	w.Projection, err = query.ParseProjection(w.Projected, nil, r.FullOptions(a.Coll.NS, a.Collation, nil))
	return err
}

// coveredIter yields what an index tells of the documents, and those that the plan has looked at as
// they are.
type coveredIter struct{ *planner.ScanIter }

func (c coveredIter) Next() (bson.Raw, error) {
	doc, err := c.ScanIter.Next()
	if doc == nil || err != nil {
		return nil, err
	}
	if covered := c.Covered(); covered != nil {
		return covered, nil
	}
	return doc, nil
}

// pipelineSource opens the collection that a pipeline reads, with an index for a $match or $sort at
// its front.
func pipelineSource(r *server.Request, run *server.Running, c *store.Coll, p *pipeline.Pipeline, q *aggregateSpec,
	collation *query.Collation) (pipeline.Iterator, error) {
	if c == nil {
		return pipeline.FromSlice(nil), nil
	}
	route, err := r.Route(c, c.NS)
	if err == nil {
		err = route.ReachUnsharded(c)
	}
	if err != nil {
		return nil, err
	}
	a := &planner.Access{Coll: c, Table: route.Table, Reach: route.Reacher(), Filter: p.TakeMatch(), Hint: q.hint,
		Collation: collation, Memory: &r.Node.Memory, Settings: q.settings, Version: r.Version()}
	a.Wants.Express = r.Version().AtLeast(8, 0)
	spec, err := p.FrontSort()
	if err != nil {
		return nil, err
	}
	if spec != nil {
		if a.Sort, err = query.ParseSort(spec, r.FullOptions(c.NS, collation, nil)); err != nil {
			return nil, err
		}
	}
	if len(c.Indexes()) > 1 && !c.Sharded() && !c.Derived() { // or there are no keys to take for documents
		if err := wantOfPipeline(r, a, p.Moved()); err != nil {
			return nil, err
		}
	}
	a.NoScan = func() bool { return r.NoTableScan(c.NS) }
	a.Text = func() string { return planner.Describe(c.NS, a.Filter, spec, nil, server.ExplicitCollation(collation)) }
	pl, err := a.Plan()
	if err != nil {
		return nil, err
	}
	run.Limit, run.Plain = p.Plain()
	if pl.Sorted {
		p.DropSort()
	}
	pl.Sort = nil // if it is left, the stage does it
	src := run.Open(pl, c.NS)
	scan, _ := src.(*planner.ScanIter)
	if scan != nil && a.Wants.Projection != nil {
		src = coveredIter{scan}
	}
	return p.WithMeta(src, func(doc bson.Raw) func(string) bson.RawValue {
		d := &description{filter: a.Filter, doc: doc}
		if scan != nil {
			d.found = scan
		}
		if pl.Sorted {
			d.sort = a.Sort
		}
		return d.meta
	}), nil
}
