package read

// The shape of a command that reads: what query settings are for, and what $queryStats groups by.

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/work"
)

// shapedFields are the fields of a command that are part of its shape, in the order that a shape
// has them in.
var shapedFields = []struct {
	name string
	as   shaping
}{
	{"filter", byFilter}, {"query", byFilter}, {"pipeline", byPipeline}, {"key", asWritten}, {"sort", asWritten},
	{"projection", byProjection}, {"skip", byType}, {"limit", byType}, {"singleBatch", byType}, {"max", byType},
	{"min", byType}, {"returnKey", byType}, {"showRecordId", byType}, {"tailable", byType}, {"oplogReplay", byType},
	{"awaitData", byType}, {"mirrored", byType}, {"collation", asWritten}, {"allowDiskUse", byType}, {"let", byType},
}

// shaping is what of a field is part of a shape.
type shaping uint8

const (
	asWritten shaping = iota
	byType            // an expression with types in the place of its values
	byFilter
	byPipeline
	byProjection
)

// shapeOf returns the shape of a find, distinct, count or aggregate. It ends with the command,
// after which the profiler and the statistics ask for it, too: a filter that took all the time of
// one has no shape.
func shapeOf(r *server.Request, body bson.Raw) (shape bson.Raw, err error) {
	defer work.Catch(&err)
	name, coll := bsondoc.FirstElement(body)
	let, _ := body.Lookup("let").Document()
	o := r.FullOptions(r.DB+".$cmd", nil, let)
	filter := func(v bson.RawValue) (bson.Raw, error) {
		doc, _ := v.Document()
		f, err := query.ParseFilter(bsondoc.OrEmpty(doc), o)
		if err != nil {
			return nil, err
		}
		return f.DebugShape(), nil
	}
	at, shape := bson.BeginDocument(nil)
	ns, _ := coll.StringValue()
	if coll.Type != bson.TypeString {
		ns = "$cmd.aggregate"
	}
	shape = bsondoc.Append(shape, "cmdNs", bsondoc.Of("db", r.DB, "coll", ns), "command", name)
	for _, f := range shapedFields {
		v := body.Lookup(f.name)
		switch {
		case v.Type == 0 && f.name == "filter" && name == "find":
			shape = bson.AppendDocument(shape, f.name, bsondoc.OrEmpty(nil))
		case v.Type == 0:
		case f.as == byFilter:
			doc, err := filter(v)
			if err != nil {
				return nil, err
			}
			shape = bson.AppendDocument(shape, f.name, doc)
		case f.as == byPipeline:
			stages, err := stagesShape(pipeline.StagesIn(v), filter)
			if err != nil {
				return nil, err
			}
			shape = bson.AppendRawValue(shape, f.name, arrayOf(stages))
		case f.as == byProjection:
			shape = bson.AppendRawValue(shape, f.name, projectionShape(v))
		case f.as == byType:
			shape = bson.AppendRawValue(shape, f.name, query.ExpressionShape(v))
		default:
			shape = bson.AppendRawValue(shape, f.name, v)
		}
	}
	return bson.EndDocument(shape, at), nil
}

// stagesShape returns the shape of a pipeline, with those of the pipelines in it.
func stagesShape(stages []bson.Raw, filter func(v bson.RawValue) (bson.Raw, error)) ([]bson.Raw, error) {
	list := make([]bson.Raw, len(stages))
	for i, doc := range stages {
		s := pipeline.StageOf(pipeline.Namespace{}, doc)
		v := projectionShape(s.Spec)
		if s.Name != "$project" {
			var err error
			v, err = s.Rewrite(pipeline.Parts{
				Pipeline: func(stages []bson.Raw) ([]bson.Raw, error) { return stagesShape(stages, filter) },
				Filter: func(doc bson.Raw) (bson.Raw, error) {
					return filter(bsondoc.DocumentValue(doc))
				},
				Expression: func(v bson.RawValue) (bson.RawValue, error) { return query.ExpressionShape(v), nil },
				Name:       func(v bson.RawValue) (bson.RawValue, error) { return v, nil },
			})
			if err != nil {
				return nil, err
			}
		}
		list[i] = bsondoc.Single(s.Name, v)
	}
	return list, nil
}

// projectionShape returns the shape of a projection: whether it takes a field is part of it.
func projectionShape(v bson.RawValue) bson.RawValue {
	doc, ok := v.Document()
	if !ok {
		return v
	}
	return bsondoc.DocumentValue(bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range doc.All() {
			switch {
			case v.IsNumber() || v.Type == bson.TypeBoolean:
				d.Flag(k, v.AsBool())
			default:
				d.B = bson.AppendRawValue(d.B, k, query.ExpressionShape(v))
			}
		}
	}))
}

func arrayOf(docs []bson.Raw) bson.RawValue {
	items := make([]bson.RawValue, len(docs))
	for i, doc := range docs {
		items[i] = bsondoc.DocumentValue(doc)
	}
	return bsondoc.ArrayValue(items...)
}

// queryShape returns the shape of the query that a command is.
func queryShape(r *server.Request) (shape bson.Raw, ok bool) {
	shape, err := shapeOf(r, r.Body)
	return shape, err == nil
}

// countShape is queryShape for count, which has a shape since version 9.0.
func countShape(r *server.Request) (shape bson.Raw, ok bool) {
	if !r.Version().AtLeast(9, 0) {
		return nil, false
	}
	return queryShape(r)
}
