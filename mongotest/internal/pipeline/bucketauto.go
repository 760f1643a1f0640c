package pipeline

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&stageDef{name: "$bucketAuto", shown: showBucketAuto, parse: one(parseBucketAuto), keyed: "output"})
}

// bucketAutoStage is $bucketAuto: the sorted input in buckets of about the same size.
type bucketAutoStage struct {
	rt      *runtime
	by      expr.Expr
	buckets int
	names   []string
	fields  []*expr.AccumulatorSpec
	rounder rounder
}

func parseBucketAuto(p *parser, _ string, v bson.RawValue) (*bucketAutoStage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(40240, "The argument to $bucketAuto must be an object, but found type: %s", typeName(v))
	}
	b := &bucketAutoStage{rt: p.rt}
	g := &groupStage{rt: p.rt}
	haveOutput := false
	for key, item := range doc.All() {
		switch key {
		case "groupBy":
			if !isPathOrExpression(item) {
				return nil, srverr.New(
					40239, "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but found: %s", bsontext.Value(item))
			}
			e, err := expr.Parse(item, p.scope)
			if err != nil {
				return nil, err
			}
			b.by = e
		case "buckets":
			if !item.IsNumber() {
				return nil, srverr.New(40241,
					"The $bucketAuto 'buckets' field must be a numeric value, but found type: %s", typeName(item))
			}
			n, ok := expr.Int32(item)
			if !ok {
				return nil, srverr.New(
					40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found %s",
					expr.Text(item))
			}
			if n <= 0 {
				return nil,
					srverr.New(40243, "The $bucketAuto 'buckets' field must be greater than 0, but found: %d", n)
			}
			b.buckets = int(n)
		case "output":
			fields, ok := item.Document()
			if !ok {
				return nil, srverr.New(40244, "The $bucketAuto 'output' field must be an object, but found type: %s",
					typeName(item))
			}
			haveOutput = !fields.IsEmpty()
			for name, spec := range fields.All() {
				if err := g.addField(name, spec, p.scope); err != nil {
					return nil, err
				}
			}
		case "granularity":
			name, ok := item.StringValue()
			if !ok {
				return nil, srverr.New(40261,
					"The $bucketAuto 'granularity' field must be a string, but found type: %s", typeName(item))
			}
			if b.rounder = findRounder(name); b.rounder == nil {
				return nil, srverr.New(40257, "Unknown rounding granularity '%s'", name)
			}
		default:
			return nil, srverr.New(40245, "Unrecognized option to $bucketAuto: %s", key)
		}
	}
	if b.by == nil || b.buckets == 0 {
		return nil, srverr.New(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified")
	}
	if !haveOutput {
		if err := g.addField("count", countSpec(), p.scope); err != nil {
			return nil, err
		}
	}
	b.names, b.fields = g.names, g.fields
	return b, nil
}

func (b *bucketAutoStage) optimize(env *expr.Env) (err error) {
	if b.by, err = expr.Optimize(b.by, env); err != nil {
		return err
	}
	for _, f := range b.fields {
		if err := f.Optimize(env); err != nil {
			return err
		}
	}
	return nil
}

type keyedDocument struct {
	key bson.RawValue
	hit
}

func (b *bucketAutoStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) { return b.run(src) }}, nil
}

func (b *bucketAutoStage) run(src Iterator) ([]bson.Raw, error) {
	docs, err := b.rt.hits(src)
	if err != nil {
		return nil, err
	}
	defer func() { b.rt.env.Meta = nil }()
	size := 0
	rows := make([]keyedDocument, len(docs))
	for i, found := range docs {
		doc := found.doc
		b.rt.env.Meta = found.meta
		key, err := expr.Eval(b.by, b.rt.state.WithRoot(doc))
		if err != nil {
			return nil, err
		}
		if key.Type == 0 {
			key = bson.RawValue{Type: bson.TypeNull}
		}
		if b.rounder != nil {
			if err := checkRoundable(key); err != nil {
				return nil, err
			}
		}
		rows[i] = keyedDocument{key, found}
		if size += len(doc); size > stageLimit && !b.rt.o.AllowDiskUse {
			return nil, sortMemoryExceeded()
		}
	}
	compare := b.rt.compare()
	keyOf := func(r *keyedDocument) bson.RawValue { return r.key }
	query.SortByValue(rows, keyOf, b.rt.query.Collation, b.rt.query.Work)
	depth := max(1, int(float64(len(rows))/float64(b.buckets)+0.5))
	var out []bson.Raw
	var last bson.RawValue // upper bound of the bucket before
	for i := 0; len(rows) > 0; i++ {
		n := min(depth, len(rows))
		if i == b.buckets-1 {
			n = len(rows)
		}
		low, high := rows[0].key, rows[n-1].key
		if b.rounder != nil {
			low = last
			if i == 0 {
				low = b.rounder.down(rows[0].key)
			}
			high = b.rounder.up(high)
			for n < len(rows) && compare(high, rows[n].key) > 0 {
				n++
			}
			switch {
			case n == len(rows):
				high = b.rounder.up(rows[n-1].key)
			case isZero(high): // a zero does not round up: the bound is before the next value
				high = b.rounder.down(rows[n].key)
			}
		} else {
			for n < len(rows) && compare(high, rows[n].key) == 0 {
				n++
			}
			if n < len(rows) {
				high = rows[n].key
			}
		}
		last = high
		doc, err := b.bucket(low, high, rows[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, doc)
		rows = rows[n:]
	}
	return out, nil
}

func isZero(v bson.RawValue) bool { return v.IsNumber() && query.Float(v) == 0 }

func (b *bucketAutoStage) bucket(low, high bson.RawValue, rows []keyedDocument) (bson.Raw, error) {
	start, dst := bson.BeginDocument(nil)
	id, dst := bson.BeginDocumentElement(dst, "_id")
	dst = bson.AppendRawValue(dst, "min", low)
	dst = bson.AppendRawValue(dst, "max", high)
	dst = bson.EndDocument(dst, id)
	accs, err := newAccumulators(b.rt, b.fields, bsondoc.DocumentValue(emptyDocument))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		b.rt.env.Meta = row.meta
		if _, err := accumulate(b.rt, b.fields, accs, row.doc); err != nil {
			return nil, err
		}
	}
	if dst, err = appendResults(dst, b.names, accs, nil); err != nil {
		return nil, err
	}
	return bson.EndDocument(dst, start), nil
}
