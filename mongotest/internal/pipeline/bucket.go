package pipeline

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(
		&stageDef{name: "$bucket", expand: expandBucket, made: "$group", parse: parseBucket, keyed: "output"},
		&stageDef{name: "$sortByCount", expand: expandSortByCount, made: "$group", parse: parseSortByCount},
	)
}

func elementText(key string, v bson.RawValue) string { return bsontext.Element(key, v) }

// isPathOrExpression reports whether v is "$field" or a document with an operator.
func isPathOrExpression(v bson.RawValue) bool {
	if s, ok := v.StringValue(); ok {
		return strings.HasPrefix(s, "$")
	}
	if doc, ok := v.Document(); ok {
		for key := range doc.All() {
			return strings.HasPrefix(key, "$")
		}
	}
	return false
}

// sortBy returns a stage that sorts by a single field.
func sortBy(p *parser, field string, direction int32) (*sortStage, error) {
	start, dst := bson.BeginDocument(nil)
	s, err := query.ParseSort(bson.EndDocument(bson.AppendInt32(dst, field, direction), start), p.rt.query)
	return &sortStage{rt: p.rt, sort: s}, err
}

// countSpec is {$sum: 1}.
func countSpec() bson.RawValue {
	start, dst := bson.BeginDocument(nil)
	return bsondoc.DocumentValue(bson.EndDocument(bson.AppendInt32(dst, "$sum", 1), start))
}

func parseSortByCount(p *parser, _ string, v bson.RawValue) ([]stage, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		if !isPathOrExpression(v) {
			return nil, srverr.New(
				40147, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
		}
	case bson.TypeString:
		if !isPathOrExpression(v) {
			return nil, srverr.New(
				40148, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
		}
	default:
		return nil, srverr.New(40149, "the sortByCount field must be specified as a string or as an object")
	}
	g := &groupStage{rt: p.rt}
	if err := g.parseID(v, p.scope); err != nil {
		return nil, err
	}
	if err := g.addField("count", countSpec(), p.scope); err != nil {
		return nil, err
	}
	s, err := sortBy(p, "count", -1)
	if err != nil {
		return nil, err
	}
	return []stage{g, s}, nil
}

// parseBucket makes $bucket of a $group whose _id is found by the boundaries, and a $sort.
func parseBucket(p *parser, _ string, v bson.RawValue) ([]stage, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, srverr.New(40201, "Argument to $bucket stage must be an object, but found type: %s.", typeName(v))
	}
	b := &bucketKey{rt: p.rt}
	g := &groupStage{rt: p.rt}
	var haveBoundaries, haveOutput bool
	var output bson.Raw
	for key, item := range doc.All() {
		switch key {
		case "groupBy":
			if !isPathOrExpression(item) {
				return nil, srverr.New(
					40202, "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: %s.", bsontext.Value(item))
			}
			e, err := expr.Parse(item, p.scope)
			if err != nil {
				return nil, err
			}
			b.by = e
		case "boundaries":
			haveBoundaries = true
			if err := b.parseBoundaries(p, item); err != nil {
				return nil, err
			}
		case "default":
			c, err := p.constant(item)
			if err != nil {
				return nil, err
			}
			if c == nil {
				return nil, srverr.New(
					40195, "The $bucket 'default' field must be a constant expression, but found: %s.",
					bsontext.Value(item))
			}
			b.other = c
		case "output":
			haveOutput = true
			fields, ok := item.Document()
			if !ok {
				return nil, srverr.New(40196, "The $bucket 'output' field must be an object, but found type: %s.",
					typeName(item))
			}
			output = fields
		default:
			return nil, srverr.New(40197, "Unrecognized option to $bucket: %s.", key)
		}
	}
	if b.by == nil || !haveBoundaries {
		return nil, srverr.New(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.")
	}
	if b.other != nil && p.compare(*b.other, b.bounds[0]) >= 0 && p.compare(*b.other, b.bounds[len(b.bounds)-1]) < 0 {
		return nil, srverr.New(
			40199, "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.")
	}
	for name, spec := range output.All() { // parsed when the rest is found to be right
		if name == "_id" && p.rt.o.Version.AllParsed() {
			return nil, srverr.New(15948, "a group's _id may only be specified once")
		}
		if err := g.addField(name, spec, p.scope); err != nil {
			return nil, err
		}
	}
	if !haveOutput {
		if err := g.addField("count", countSpec(), p.scope); err != nil {
			return nil, err
		}
	}
	s, err := sortBy(p, "_id", 1)
	if err != nil {
		return nil, err
	}
	return []stage{&bucketStage{g, b}, s}, nil
}

func (p *parser) compare(a, b bson.RawValue) int {
	if p.rt.env.Compare != nil {
		return p.rt.env.Compare(a, b)
	}
	return bson.Compare(a, b)
}

// constant evaluates an expression that does not depend on anything; nil if it does.
func (p *parser) constant(v bson.RawValue) (*bson.RawValue, error) {
	e, err := expr.Parse(v, p.scope)
	if err != nil {
		return nil, err
	}
	if e, err = expr.Optimize(e, p.rt.env); err != nil {
		return nil, err
	}
	c, ok := expr.Constant(e)
	if !ok {
		return nil, nil
	}
	return &c, nil
}

// bucketKey finds the lower boundary of a value's bucket.
type bucketKey struct {
	rt     *runtime
	by     expr.Expr
	bounds []bson.RawValue
	other  *bson.RawValue
}

func (b *bucketKey) parseBoundaries(p *parser, v bson.RawValue) error {
	array, ok := v.Array()
	if !ok {
		return srverr.New(40200, "The $bucket 'boundaries' field must be an array, but found type: %s.", typeName(v))
	}
	for item := range array.Values() {
		c, err := p.constant(item)
		if err != nil {
			return err
		}
		if c == nil {
			return srverr.New(
				40191, "The $bucket 'boundaries' field must be an array of constant values, but found value: %s.",
				bsontext.Value(item))
		}
		b.bounds = append(b.bounds, *c)
	}
	if len(b.bounds) < 2 {
		return srverr.New(40192, "The $bucket 'boundaries' field must have at least 2 values, but found %d value(s).",
			len(b.bounds))
	}
	for i := 1; i < len(b.bounds); i++ {
		low, high := b.bounds[i-1], b.bounds[i]
		sameType := low.Type == high.Type || low.IsNumber() && high.IsNumber() ||
			(low.Type == bson.TypeString || low.Type == bson.TypeSymbol) &&
				(high.Type == bson.TypeString || high.Type == bson.TypeSymbol)
		if !sameType {
			return srverr.New(
				40193, "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types %s and %s.", typeName(low), typeName(high))
		}
		if p.compare(low, high) >= 0 {
			return srverr.New(
				40194, "The 'boundaries' option to $bucket must be sorted, but elements %d and %d are not in ascending order (%s is not less than %s).",
				i-1, i, expr.Text(low), expr.Text(high))
		}
	}
	return nil
}

// bucketStage is the $group of $bucket.
type bucketStage struct {
	*groupStage
	key *bucketKey
}

func (b *bucketStage) optimize(env *expr.Env) (err error) {
	if b.key.by, err = expr.Optimize(b.key.by, env); err != nil {
		return err
	}
	b.groupStage.id = expr.NewConstant(bson.RawValue{Type: bson.TypeNull})
	return b.groupStage.optimize(env)
}

func (b *bucketStage) open(src Iterator) (Iterator, error) {
	return &lazy{src: src, fill: func() ([]bson.Raw, error) {
		docs, err := b.groupStage.run(src, b.key.find)
		b.rt.env.Meta = nil
		return docs, err
	}}, nil
}

func (b *bucketKey) find(doc bson.Raw) (bson.RawValue, error) {
	v, err := expr.Eval(b.by, b.rt.state.WithRoot(doc))
	if err != nil {
		return v, err
	}
	compare := bson.Compare
	if b.rt.env.Compare != nil {
		compare = b.rt.env.Compare
	}
	for i := 1; i < len(b.bounds); i++ {
		if compare(v, b.bounds[i-1]) >= 0 && compare(v, b.bounds[i]) < 0 {
			return b.bounds[i-1], nil
		}
	}
	if b.other == nil {
		return v, srverr.New(40066,
			"$switch could not find a matching branch for an input, and no default was specified.")
	}
	return *b.other, nil
}
