package server

import (
	"runtime"

	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	register(&Command{Name: "explain", Where: OptIn, ReadConcern: true, Run: runExplain})
}

// explained says where a command that can be explained has its filter, and what it does with the documents.
var explained = map[string]struct{ filter, stage string }{
	"find": {"filter", ""}, "count": {"query", "COUNT"}, "distinct": {"query", ""}, "findAndModify": {"query", "UPDATE"},
	"findandmodify": {"query", "UPDATE"}, "update": {"updates", "UPDATE"}, "delete": {"deletes", "DELETE"}, "aggregate": {"pipeline", ""},
}

func runExplain(r *Request, dst []byte) ([]byte, error) {
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
	name, v := firstElement(cmd)
	what, ok := explained[name]
	if !ok && r.Node.lookup(name) != nil {
		return dst, srverr.New(srverr.IllegalOperation, "Cannot explain cmd: %s", name)
	}
	if !ok {
		return dst, srverr.New(srverr.CommandNotFound, "Explain failed due to unknown command: %s", name)
	}
	coll, ok := v.StringValue()
	if !ok {
		return dst, srverr.New(srverr.InvalidNamespace, "collection name has invalid type %s", typeOf(v))
	}
	if err := checkNamespace(r.DB, coll); err != nil {
		return dst, err
	}
	if err := r.checkReadable(namespace(r.DB, coll)); err != nil && what.filter != "pipeline" {
		return dst, err
	}
	filter, sort := explainedQuery(cmd, what.filter)
	return r.explain(dst, namespace(r.DB, coll), filter, sort, cmd.Lookup("hint"), what.stage, verbosity != "queryPlanner")
}

func firstElement(doc bson.Raw) (string, bson.RawValue) {
	for k, v := range doc.All() {
		return k, v
	}
	return "", bson.RawValue{}
}

// explainedQuery returns the filter and the sort of a command.
func explainedQuery(cmd bson.Raw, field string) (filter, sort bson.Raw) {
	v := cmd.Lookup(field)
	switch {
	case v.Type == bson.TypeEmbeddedDocument:
		filter = v.Value
	case v.Type == bson.TypeArray:
		for e := range bson.Raw(v.Value).Values() {
			first := bson.Raw(e.Value)
			if field == "pipeline" {
				filter, _ = first.Lookup("$match").Document()
			} else {
				filter, _ = first.Lookup("q").Document()
			}
			break
		}
	}
	sort, _ = cmd.Lookup("sort").Document()
	return filter, sort
}

// explain appends how a query would be run, and with execute what running it costs.
func (r *Request) explain(dst []byte, ns string, filter, sort bson.Raw, hint bson.RawValue, stage string, execute bool) ([]byte, error) {
	st, err := r.snapshot(ns)
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	op := updateOp{q: orEmpty(filter)}
	if err := op.parse(r, ns, c); err != nil {
		return dst, err
	}
	var order *query.Sort
	natural, back, err := query.Natural(sort)
	if err != nil {
		return dst, err
	}
	if len(sort) > 5 && !natural {
		if order, err = query.ParseSort(sort, r.queryOptions(op.coll)); err != nil {
			return dst, err
		}
	}
	var p *plan
	byID := false
	if c != nil {
		a := &access{coll: c, filter: op.filter, sort: order, natural: natural, back: back, hint: hint, collation: op.coll}
		if p, err = a.plan(); err != nil {
			return dst, err
		}
		_, byID = op.filter.IDEquality()
		byID = byID && order == nil && hint.Type == 0
	}
	if s := shardingOf(c); s != nil {
		shards, _ := s.target(op.filter, op.coll == nil)
		r.targeted(shards)
	}
	at, dst := bson.BeginDocumentElement(dst, "queryPlanner")
	if !r.Node.cfg.Version.AtLeast(5, 0) {
		dst = bson.AppendInt32(dst, "plannerVersion", 1)
	}
	dst = bson.AppendString(dst, "namespace", ns)
	dst = bson.AppendBool(dst, "indexFilterSet", false)
	dst = bson.AppendDocument(dst, "parsedQuery", orEmpty(filter))
	one, dst := bson.BeginDocumentElement(dst, "winningPlan")
	dst = bson.EndDocument(appendPlan(dst, p, filter, sort, stage, byID), one)
	list, dst := bson.BeginArrayElement(dst, "rejectedPlans")
	dst = bson.EndDocument(dst, list)
	dst = bson.EndDocument(dst, at)
	if execute {
		if dst, err = r.appendExecution(dst, p, filter, sort, stage, byID); err != nil {
			return dst, err
		}
	}
	at, dst = bson.BeginDocumentElement(dst, "serverInfo")
	dst = bson.AppendString(dst, "host", r.Node.addr)
	dst = bson.AppendInt32(dst, "port", 0)
	dst = bson.AppendString(dst, "version", r.Node.cfg.Version.String())
	dst = bson.AppendString(dst, "gitVersion", runtime.Version())
	return bson.EndDocument(dst, at), nil
}

// appendPlan appends the stages of a plan, the outermost first.
func appendPlan(dst []byte, p *plan, filter, sort bson.Raw, stage string, byID bool) []byte {
	input := func(f func([]byte) []byte) {
		at, d := bson.BeginDocumentElement(dst, "inputStage")
		dst = bson.EndDocument(f(d), at)
	}
	switch {
	case stage != "":
		dst = bson.AppendString(dst, "stage", stage)
		input(func(d []byte) []byte { return appendPlan(d, p, filter, sort, "", byID) })
	case p == nil:
		dst = bson.AppendString(dst, "stage", "EOF")
	case byID:
		dst = bson.AppendString(dst, "stage", "IDHACK")
	case p.sort != nil:
		dst = bson.AppendString(dst, "stage", "SORT")
		dst = bson.AppendDocument(dst, "sortPattern", orEmpty(sort))
		input(func(d []byte) []byte {
			q := *p
			q.sort = nil
			return appendPlan(d, &q, filter, nil, "", false)
		})
	case p.index == nil:
		dst = bson.AppendString(dst, "stage", "COLLSCAN")
		if len(filter) > 5 {
			dst = bson.AppendDocument(dst, "filter", filter)
		}
		dst = bson.AppendString(dst, "direction", direction(p.back))
	default:
		dst = bson.AppendString(dst, "stage", "FETCH")
		if len(filter) > 5 {
			dst = bson.AppendDocument(dst, "filter", filter)
		}
		input(func(d []byte) []byte { return appendIndexScan(d, p.index, p.back) })
	}
	return dst
}

func direction(back bool) string {
	if back {
		return "backward"
	}
	return "forward"
}

func appendIndexScan(dst []byte, ix *store.Index, back bool) []byte {
	dst = bson.AppendString(dst, "stage", "IXSCAN")
	dst = bson.AppendDocument(dst, "keyPattern", ix.Pattern)
	dst = bson.AppendString(dst, "indexName", ix.Name)
	dst = bson.AppendBool(dst, "isMultiKey", ix.Multikey)
	dst = bson.AppendBool(dst, "isUnique", ix.Unique)
	dst = bson.AppendBool(dst, "isSparse", ix.Sparse)
	dst = bson.AppendBool(dst, "isPartial", ix.Partial != nil)
	dst = bson.AppendInt32(dst, "indexVersion", 2)
	return bson.AppendString(dst, "direction", direction(back))
}

// appendExecution runs the query and appends what it took.
func (r *Request) appendExecution(dst []byte, p *plan, filter, sort bson.Raw, stage string, byID bool) ([]byte, error) {
	var n, keys, docs int64
	if p != nil {
		it := p.open(&running{r: r}, "")
		if err := drain(it, func(bson.Raw) error { n++; return nil }); err != nil {
			return dst, err
		}
		keys, docs = p.scan.KeysSeen, p.scan.DocsSeen
		if byID {
			keys, docs = n, n
		}
	}
	at, dst := bson.BeginDocumentElement(dst, "executionStats")
	dst = bson.AppendBool(dst, "executionSuccess", true)
	dst = bson.AppendInt32(dst, "nReturned", int32(n))
	dst = bson.AppendInt32(dst, "executionTimeMillis", 0)
	dst = bson.AppendInt32(dst, "totalKeysExamined", int32(keys))
	dst = bson.AppendInt32(dst, "totalDocsExamined", int32(docs))
	one, dst := bson.BeginDocumentElement(dst, "executionStages")
	dst = bson.EndDocument(appendPlan(dst, p, filter, sort, stage, byID), one)
	return bson.EndDocument(dst, at), nil
}
