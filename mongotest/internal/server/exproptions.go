package server

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/js"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// What filters, expressions and pipelines are parsed with.

// CollationOf returns the collation of a statement: its own, or the collection's.
func (r *Request) CollationOf(spec bson.Raw, c *store.Coll) (*query.Collation, error) {
	if spec != nil {
		return query.ParseCollation(r.Version(), spec)
	}
	if c != nil {
		return c.Collation, nil
	}
	return nil, nil
}

// ExprOptions returns what expressions and pipelines are parsed with.
func (r *Request) ExprOptions(ns string, coll *query.Collation, let bson.Raw) *pipeline.Options {
	db, name := namespace.Split(ns)
	v := r.Version()
	t := r.clusterNow()
	return &pipeline.Options{
		NS: pipeline.Namespace{DB: db, Coll: name}, Version: v, Collation: coll, Let: let,
		Now: r.now(), ClusterTime: t, NoClusterTime: t.IsZero() && v.AllParsed(), ReplicaSet: r.Node.set != nil,
		Mongos: r.Routing != nil, InTxn: r.InTxn(),
		CheckChangeStream: func(spec bson.Raw) error {
			return ChangeStreamArgs.Parse(r, spec, &ChangeStreamSpec{})
		},
		CheckSeries: func(path string, spec bson.Raw) error { return series.CheckOption(v, path, spec) },
		Script:      r.scripts(), Search: r.Node.cfg.Search != nil,
		Searches: r.Node.cfg.Search != nil && r.Node.cfg.Search.Engine != nil,
	}
}

// now is $$NOW: the time when the command first asks for it.
func (r *Request) now() bson.DateTime {
	if r.nowIs == nil {
		t := bson.NewDateTime(r.Node.data.Clock.Now())
		r.nowIs = &t
	}
	return *r.nowIs
}

// clusterNow is $$CLUSTER_TIME, zero on a standalone.
func (r *Request) clusterNow() bson.Timestamp {
	if r.Node.role == Standalone {
		return bson.Timestamp{}
	}
	return r.Node.data.Clock.Last()
}

// FullOptions returns what a filter that may contain $expr is parsed with. To parse the filter and
// to use it end with the command.
func (r *Request) FullOptions(ns string, coll *query.Collation, let bson.Raw) *query.Options {
	return r.CheckedOptions(ns, coll, let, r.Meter())
}

// CheckedOptions returns full options for a filter that ends with what m counts: nil for one that
// outlives the command.
func (r *Request) CheckedOptions(ns string, coll *query.Collation, let bson.Raw, m *work.Meter) *query.Options {
	return new(filterContext).set(r, ns, coll, let, m)
}

// filterContext is what a filter's expressions and programs run in, together with the options that
// lead to it.
type filterContext struct {
	query.Options
	r      *Request
	ns     string
	let    bson.Raw
	engine *js.Engine // nil: no $where was seen yet
}

func (c *filterContext) set(r *Request, ns string, coll *query.Collation, let bson.Raw,
	m *work.Meter) *query.Options {
	*c = filterContext{Options: r.queryOptions(coll), r: r, ns: ns, let: let}
	if !r.Node.cfg.NoScripting {
		c.Where = c
	}
	c.Expr, c.Work = c, m
	return &c.Options
}

func (c *filterContext) exprOptions(let bson.Raw) *pipeline.Options {
	o := c.r.ExprOptions(c.ns, c.Collation, let)
	o.Check = c.Work.Check()
	o.NoTimes = o.Version.AllParsed() && c.r.Cmd.Timeless
	return o
}

// ParseExpr parses an expression of the filter.
func (c *filterContext) ParseExpr(v bson.RawValue) (query.Expr, error) {
	return parseExpression(c.exprOptions(c.let), v)
}

// CompileWhere compiles the code of $where.
func (c *filterContext) CompileWhere(code string) (func(bson.Raw) (bool, error), error) {
	if c.engine == nil {
		c.engine = c.r.engine(c.Work.Check(), nil, true)
	}
	f, err := c.engine.Function(code)
	if err != nil {
		return nil, err
	}
	return f.Test, nil
}

// ValidatorOptions returns what a collection's validator is parsed with. To parse the validator and
// to use it end with the command.
func (r *Request) ValidatorOptions(coll *query.Collation) *query.Options {
	o := r.queryOptions(coll)
	o.Work = r.Meter()
	o.NoText, o.NoWhere = true, true
	o.Expr = query.ExprParserFunc(func(v bson.RawValue) (query.Expr, error) {
		eo := r.ExprOptions("", coll, nil)
		eo.Validator = true
		return parseExpression(eo, v)
	})
	return &o
}

func parseExpression(o *pipeline.Options, v bson.RawValue) (query.Expr, error) {
	parse, err := pipeline.ExprParser(o)
	if err != nil {
		return nil, err
	}
	return parse.ParseExpr(v)
}

// ChangeStreamSpec is the specification of $changeStream.
type ChangeStreamSpec struct {
	ResumeAfter, StartAfter bson.Raw
	StartAt                 bson.RawValue // a timestamp
	Lookup, Before          string        // fullDocument, fullDocumentBeforeChange
	Cluster, Expanded       bool
}

// NotInAPI returns a field of a $changeStream that no version of the Stable API has, "" without
// any.
func (*ChangeStreamSpec) NotInAPI(spec bson.Raw) string {
	for k := range spec.All() {
		switch k {
		case "resumeAfter", "startAfter", "startAtOperationTime", "fullDocument", "fullDocumentBeforeChange",
			"allChangesForCluster":
		default:
			return k
		}
	}
	return ""
}

// ChangeStreamArgs are the fields of a ChangeStreamSpec.
var ChangeStreamArgs = &args.Table[ChangeStreamSpec]{Name: "$changeStream",
	Fields: map[string]args.Field[ChangeStreamSpec]{
		"resumeAfter":              args.Object(func(q *ChangeStreamSpec) *bson.Raw { return &q.ResumeAfter }),
		"startAfter":               args.Object(func(q *ChangeStreamSpec) *bson.Raw { return &q.StartAfter }),
		"startAtOperationTime":     args.Timestamp(func(q *ChangeStreamSpec) *bson.RawValue { return &q.StartAt }),
		"fullDocument":             args.String(func(q *ChangeStreamSpec) *string { return &q.Lookup }),
		"fullDocumentBeforeChange": args.String(func(q *ChangeStreamSpec) *string { return &q.Before }),
		"allChangesForCluster":     args.Bool(func(q *ChangeStreamSpec) *bool { return &q.Cluster }).Must(),
		"showExpandedEvents":       args.Bool(func(q *ChangeStreamSpec) *bool { return &q.Expanded }).Gated().Must(),
		"showMigrationEvents":      args.Bool[ChangeStreamSpec](nil),
		"allowToRunOnConfigDB":     args.Bool[ChangeStreamSpec](nil),
		"allowToRunOnSystemNS":     args.Bool[ChangeStreamSpec](nil).Gated(),
		"showSystemEvents":         args.Bool[ChangeStreamSpec](nil).Gated(),
		"showRawUpdateDescription": args.Bool[ChangeStreamSpec](nil).Gated(),
		"showCommitTimestamp":      args.Bool[ChangeStreamSpec](nil).Gated(),
		"version":                  args.Any[ChangeStreamSpec](nil).Gated(),
		"supportedEvents":          args.Any[ChangeStreamSpec](nil).Gated(),
		"ignoreRemovedShards":      args.Bool[ChangeStreamSpec](nil).Gated(),
	}}
