package read

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// findView answers a query on a view by the aggregation that it amounts to.
func findView(r *server.Request, dst []byte, q *findSpec) ([]byte, error) {
	if err := checkProjection(r, q); err != nil {
		return dst, err
	}
	a, err := q.aggregation()
	if err != nil {
		return dst, err
	}
	out, err := aggregate(r, dst, a)
	if e := srverr.From(err); e != nil && e.Code == srverr.InvalidPipelineOperator {
		return dst, e.Prefix("Unsupported in view pipeline: ")
	}
	return out, err
}

// checkProjection finds the errors of a projection that find has and the stage $project has not.
func checkProjection(r *server.Request, q *findSpec) error {
	if len(q.projection) <= 5 {
		return nil
	}
	o := r.FullOptions(q.ns, nil, q.let)
	filter, err := query.ParseFilter(bsondoc.OrEmpty(q.filter), o)
	if err != nil {
		return nil // $match says so
	}
	_, err = query.ParseProjection(q.projection, filter, o)
	return err
}

// aggregation returns the aggregation that a query amounts to, or says which of its options has no
// counterpart there.
func (q *findSpec) aggregation() (*aggregateSpec, error) {
	for _, o := range []struct {
		given bool
		text  string
	}{
		{!bsondoc.OrEmpty(q.min).IsEmpty(), "Option min not supported in aggregation."},
		{!bsondoc.OrEmpty(q.max).IsEmpty(), "Option max not supported in aggregation."},
		{q.returnKey, "Option returnKey not supported in aggregation."},
		{q.showRecordID, "Option showRecordId not supported in aggregation."},
		{q.tailable, "Tailable cursors are not supported in aggregation."},
		{q.oplogReplay, "Option oplogReplay not supported in aggregation."},
		{q.noTimeout, "Option noCursorTimeout not supported in aggregation."},
		{q.partial, "Option allowPartialResults not supported in aggregation."},
		{q.ntoreturn, "Cannot convert to an aggregation if ntoreturn is set."},
		{q.single && q.limit != 1, "Option singleBatch not supported in aggregation."},
		{q.readOnce, "Option readOnce not supported in aggregation."},
		{q.resumeToken, "Option requestResumeToken not supported in aggregation."},
		{q.resumeAfter != nil, "Option resumeAfter not supported in aggregation."},
	} {
		if o.given {
			return nil, srverr.New(srverr.InvalidPipelineOperator, "%s", o.text)
		}
	}
	a := &aggregateSpec{ns: q.ns, batchSize: q.batchSize, hint: q.hint, collation: q.collation,
		let: bsondoc.Copy(q.let)}
	add := func(name string, doc bson.Raw) {
		if !bsondoc.OrEmpty(doc).IsEmpty() {
			a.stages = append(a.stages,
				bsondoc.Single(name, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}))
		}
	}
	add("$match", q.filter)
	if !q.natural {
		add("$sort", q.sort)
	}
	if q.skip > 0 {
		a.stages = append(a.stages, bsondoc.Single("$skip", bsondoc.Int64Value(q.skip)))
	}
	if q.limit > 0 {
		a.stages = append(a.stages, bsondoc.Single("$limit", bsondoc.Int64Value(q.limit)))
	}
	add("$project", q.projection)
	return a, nil
}
