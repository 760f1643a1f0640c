package read

// What explain shows of a plan: the query, its stages, and what they did.

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// explained is a planned query.
type explained struct {
	*explainTarget
	plan   *planner.Plan // nil: there is no collection
	access *planner.Access
	filter bson.Raw // as explain shows it
	// What running it came to: the stages as they ran, with what the command does with the
	// documents.
	ran *planner.Stage
	n   int64 // documents that come out
}

// appendPlanner appends queryPlanner and, if it is to be run, executionStats.
func appendPlanner(r *server.Request, dst []byte, x *explained, execute bool) ([]byte, error) {
	at, dst := bson.BeginDocumentElement(dst, "queryPlanner")
	dst = bson.EndDocument(x.appendPlan(r, dst), at)
	if !execute {
		return dst, nil
	}
	failed := x.run(r)
	if failed != nil && !reported(failed) {
		return dst, failed
	}
	at, dst = bson.BeginDocumentElement(dst, "executionStats")
	dst = bson.AppendBool(dst, "executionSuccess", failed == nil)
	if failed != nil {
		e := srverr.From(failed)
		dst = bsondoc.Append(dst, "errorMessage", e.Msg, "errorCode", e.Code)
	}
	dst = x.appendFigures(dst)
	one, dst := bson.BeginDocumentElement(dst, "executionStages")
	dst = bson.EndDocument(x.ran.Append(appendCached(r, dst, x.plan.Trial, 0), sortLimit(r), true), one)
	if x.detail == "allPlansExecution" {
		dst = x.appendTrial(r, dst)
	}
	return bson.EndDocument(dst, at), nil
}

// reported reports whether an error of running a plan is part of the explanation: not if the
// command itself was ended.
func reported(err error) bool { return srverr.From(err).Code != srverr.Interrupted }

// appendTrial appends what each of several plans did while they were tried.
func (x *explained) appendTrial(r *server.Request, dst []byte) []byte {
	list, dst := bson.BeginArrayElement(dst, "allPlansExecution")
	if t := x.plan.Trial; t != nil {
		for i, k := range t.Best {
			s := t.Plans[k]
			keys, docs := s.Examined()
			at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
			d = bsondoc.Append(d, "nReturned", int32(s.Advanced), "executionTimeMillisEstimate", int32(0),
				"totalKeysExamined", int32(keys), "totalDocsExamined", int32(docs))
			if r.Version().AtLeast(5, 0) {
				d = bson.AppendDouble(d, "score", t.Scores[k])
			}
			one, d := bson.BeginDocumentElement(d, "executionStages")
			d = appendCached(r, d, t, i)
			dst = bson.EndDocument(bson.EndDocument(s.Append(d, sortLimit(r), true), one), at)
		}
	}
	return bson.EndDocument(dst, list)
}

// appendPlan appends what queryPlanner has.
func (x *explained) appendPlan(r *server.Request, dst []byte) []byte {
	v := r.Version()
	if !v.AtLeast(5, 0) {
		dst = bson.AppendInt32(dst, "plannerVersion", 1)
	}
	dst = bson.AppendString(dst, "namespace", x.q.ns)
	if v.AtLeast(8, 0) {
		dst = bsondoc.Append(dst, "parsedQuery", x.filter, "indexFilterSet", x.plan.Filtered)
	} else {
		dst = bsondoc.Append(dst, "indexFilterSet", x.plan.Filtered, "parsedQuery", x.filter)
	}
	if x.access.Collation != nil {
		dst = bsondoc.Append(dst, "collation", x.access.Collation.Spec())
	}
	if x.cacheable() || v.AtLeast(8, 0) && x.access.Coll != nil {
		dst = bson.AppendString(dst, "queryHash", x.access.QueryHash())
		if v.AtLeast(8, 0) { // the new name of the same
			dst = bson.AppendString(dst, "planCacheShapeHash", x.access.QueryHash())
		}
		dst = bson.AppendString(dst, "planCacheKey", x.access.PlanCacheKey())
	}
	if p := x.settings; p != nil {
		dst = bson.AppendDocument(dst, "querySettings", p.Settings)
	}
	if v.AtLeast(8, 0) {
		dst = bson.AppendInt32(dst, "optimizationTimeMillis", 0)
	}
	if v.AtLeast(5, 0) {
		dst = bsondoc.Append(dst, "maxIndexedOrSolutionsReached", false, "maxIndexedAndSolutionsReached", false,
			"maxScansToExplodeReached", false)
	}
	if v.AtLeast(8, 0) {
		dst = bson.AppendBool(dst, "prunedSimilarIndexes", false)
	}
	if x.absorbed {
		dst = bson.AppendBool(dst, "optimizedPipeline", true)
	}
	one, dst := bson.BeginDocumentElement(dst, "winningPlan")
	dst = bson.EndDocument(x.whole().Append(appendCached(r, dst, x.plan.Trial, 0), sortLimit(r), false), one)
	list, dst := bson.BeginArrayElement(dst, "rejectedPlans")
	for i, s := range x.plan.Rejected {
		at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = appendCached(r, d, x.plan.Trial, i+1)
		dst = bson.EndDocument(s.Append(d, sortLimit(r), false), at)
	}
	return bson.EndDocument(dst, list)
}

// appendCached appends whether a plan, one of several in the order of their scores, is what the
// plan cache has for the query. Versions from 8.0 on show it.
func appendCached(r *server.Request, dst []byte, t *planner.Trial, i int) []byte {
	if !r.Version().AtLeast(8, 0) {
		return dst
	}
	return bson.AppendBool(dst, "isCached", t != nil && i < len(t.Best) && t.Best[i] == t.Remembered)
}

// sortLimit is how many bytes a sort may hold.
func sortLimit(r *server.Request) int64 {
	if n := r.Node.IntParameter("internalQueryMaxBlockingSortMemoryUsageBytes"); n > 0 {
		return n
	}
	return 100 << 20
}

// cacheable reports whether the plan cache may keep a plan for the query.
func (x *explained) cacheable() bool {
	if x.plan.AtOnce() || x.plan.Root.Name == "EOF" || x.q.hint.Type != 0 ||
		len(x.q.min)+len(x.q.max) > 0 {
		return false
	}
	return !x.op().MatchesAll() || len(x.q.sort) > 5
}

func (x *explained) op() *query.Filter { return x.access.Filter }

// whole returns the plan with what the command does with the documents, of which nothing has run.
func (x *explained) whole() *planner.Stage {
	s := x.plan.Whole()
	if x.write == nil || x.access.Coll == nil {
		return s
	}
	s = &planner.Stage{Name: x.stage, Inputs: []*planner.Stage{s}}
	if len(x.write.Fields) > 5 {
		s = &planner.Stage{Name: "PROJECTION_DEFAULT", Spec: x.write.Fields, Inputs: []*planner.Stage{s}}
	}
	return s
}

// run runs the plan to see what it costs.
func (x *explained) run(r *server.Request) error {
	run := &server.Running{Request: r}
	if x.write == nil || x.access.Coll == nil {
		x.ran = x.plan.Whole()
		err := x.plan.Run(x.ran, run, 0, func(bson.Raw) error { x.n++; return nil })
		return err
	}
	most := int64(0)
	if x.one {
		most = 1
	}
	s := x.plan.Whole()
	top := &planner.Stage{Name: x.stage, Inputs: []*planner.Stage{s}}
	err := x.plan.Run(s, run, most, func(doc bson.Raw) error {
		top.Matched++
		if x.stage != "UPDATE" {
			return nil
		}
		modified, err := x.write.Modifies(r, doc)
		if modified {
			top.Modified++
		}
		return err
	})
	if top.Matched == 0 && x.stage == "UPDATE" && x.write.Upserts() {
		top.Upserted = 1
	}
	top.Works, top.EOF = s.Works+1, true
	if !x.writes { // findAndModify returns the document
		top.Advanced = top.Matched
		if x.write.ReturnsNew() {
			top.Advanced += top.Upserted
		}
	}
	x.n = top.Advanced
	top.NeedTime = top.Works - 1 - top.Advanced
	x.ran = top
	if len(x.write.Fields) > 5 {
		x.ran = &planner.Stage{Name: "PROJECTION_DEFAULT", Spec: x.write.Fields, Inputs: []*planner.Stage{top},
			Figures: top.Figures}
	}
	return err
}

// appendFigures appends what a run cost.
func (x *explained) appendFigures(dst []byte) []byte {
	keys, docs := x.ran.Examined()
	return bsondoc.Append(dst, "nReturned", int32(x.n), "executionTimeMillis", int32(0),
		"totalKeysExamined", int32(keys), "totalDocsExamined", int32(docs))
}
