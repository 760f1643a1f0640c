package operator

import (
	"allium/bson"
	"allium/mongotest/search/internal/index"
)

// boolean combines queries.
type boolean struct {
	must, should, not, filter []Query
	least                     int // of should
}

func (b *boolean) Score(d *index.Doc) (float32, bool) {
	for _, q := range b.not {
		if _, ok := q.Score(d); ok {
			return 0, false
		}
	}
	for _, q := range b.filter {
		if _, ok := q.Score(d); !ok {
			return 0, false
		}
	}
	var required, optional float64
	for _, q := range b.must {
		s, ok := q.Score(d)
		if !ok {
			return 0, false
		}
		required += float64(s)
	}
	n := 0
	for _, q := range b.should {
		if s, ok := q.Score(d); ok {
			optional += float64(s)
			n++
		}
	}
	if n < b.least {
		return 0, false
	}
	return float32(required) + float32(optional), true
}

func (b *boolean) Explain(d *index.Doc) Details {
	score, _ := b.Score(d)
	e := Details{Value: float64(score), Description: "sum of:"}
	for _, q := range b.filter {
		inner := q.Explain(d)
		e.Parts = append(e.Parts, Details{0, "match on required clause, product of:",
			[]Details{{0, "# clause", nil}, {1, inner.plain(), nil}}})
	}
	for _, list := range [][]Query{b.must, b.should} {
		for _, q := range list {
			if _, ok := q.Score(d); ok {
				e.Parts = append(e.Parts, q.Explain(d))
			}
		}
	}
	return e
}

// plain is the description without what says how the score was made.
func (d Details) plain() string {
	const end = " [BM25Similarity], result of:"
	if n := len(d.Description) - len(end); n > 0 && d.Description[n:] == end {
		return d.Description[:n]
	}
	return d.Description
}

func (b *boolean) Terms(visit func(Term)) {
	for _, list := range [][]Query{b.must, b.should, b.filter} {
		for _, q := range list {
			q.Terms(visit)
		}
	}
}

// oneOf combines queries of which one has to match.
func oneOf(list []Query) Query {
	switch len(list) {
	case 0:
		return nothing{}
	case 1:
		return list[0]
	}
	return &boolean{should: list, least: 1}
}

// allOf combines queries that have to match.
func allOf(list []Query) Query {
	switch len(list) {
	case 0:
		return nothing{}
	case 1:
		return list[0]
	}
	return &boolean{must: list}
}

func (c *compiler) compound(doc bson.Raw) (Query, error) {
	b := &boolean{}
	clauses := 0
	for _, p := range []struct {
		name string
		list *[]Query
	}{{"must", &b.must}, {"mustNot", &b.not}, {"should", &b.should}, {"filter", &b.filter}} {
		v := doc.Lookup(p.name)
		if v.Type == 0 {
			continue
		}
		specs := []bson.RawValue{v}
		if list, ok := v.Array(); ok {
			specs = nil
			for item := range list.Values() {
				specs = append(specs, item)
			}
			if len(specs) == 0 {
				return nil, invalid("\"%s.%s\" cannot be empty", c.where, p.name)
			}
		}
		for i, spec := range specs {
			where := c.where + "." + p.name
			if v.Type == bson.TypeArray {
				where += "[" + itoa(i) + "]"
			}
			q, err := c.one(spec, where)
			if err != nil {
				return nil, err
			}
			*p.list = append(*p.list, q)
			clauses++
		}
	}
	if clauses == 0 {
		return nil, invalid("\"%s\" must have at least one clause", c.where)
	}
	if v := doc.Lookup("minimumShouldMatch"); v.Type != 0 {
		n, ok := v.AsInt64()
		switch {
		case !ok || n < 0:
			return nil, invalid("\"%s.minimumShouldMatch\" cannot be negative", c.where)
		case int(n) > len(b.should):
			return nil, invalid("\"%s.minimumShouldMatch\" cannot be greater than the number of should clauses",
				c.where)
		}
		b.least = int(n)
	}
	if b.least == 0 && len(b.must)+len(b.filter) == 0 && len(b.should) > 0 {
		b.least = 1
	}
	return b, nil
}

// embeddedQuery matches documents by those embedded in them.
type embeddedQuery struct {
	path      string
	inner     Query
	aggregate string
	boost     float32
}

func (c *compiler) embedded(doc bson.Raw) (Query, error) {
	v, err := c.required(doc, "path")
	if err != nil {
		return nil, err
	}
	path, ok := v.StringValue()
	if !ok || path == "" {
		return nil, invalid("\"%s.path\" must be a string", c.where)
	}
	if !c.context.Embedded(path) {
		return nil, invalid("Path '%s' needs to be indexed as embeddedDocuments", path)
	}
	op, err := c.required(doc, "operator")
	if err != nil {
		return nil, err
	}
	inner := *c
	inner.context, inner.boost = c.Index.Def.Context(path), 1
	q := &embeddedQuery{path: path, aggregate: "sum", boost: c.boost}
	if q.inner, err = inner.one(op, c.where+".operator"); err != nil {
		return nil, err
	}
	if embedded, ok := doc.Lookup("score", "embedded").Document(); ok {
		if v := embedded.Lookup("aggregate"); v.Type != 0 {
			q.aggregate, _ = v.StringValue()
		}
		switch q.aggregate {
		case "sum", "maximum", "minimum", "mean":
		default:
			return nil, invalid("\"%s.score.embedded.aggregate\" must be one of [sum, maximum, minimum, mean]", c.where)
		}
	}
	return q, nil
}

// matches calls a function for the embedded documents that match.
func (q *embeddedQuery) matches(d *index.Doc, visit func(child *index.Doc, score float32)) {
	for _, child := range d.Children[q.path] {
		if s, ok := q.inner.Score(child); ok {
			visit(child, s)
		}
	}
}

func (q *embeddedQuery) Score(d *index.Doc) (float32, bool) {
	n := 0
	var score float64
	q.matches(d, func(_ *index.Doc, s float32) {
		v := float64(s)
		switch {
		case n == 0, q.aggregate == "maximum" && v > score, q.aggregate == "minimum" && v < score:
			score = v
		case q.aggregate == "sum" || q.aggregate == "mean":
			score += v
		}
		n++
	})
	if q.aggregate == "mean" && n > 0 {
		score /= float64(n)
	}
	return float32(score) * q.boost, n > 0
}

func (q *embeddedQuery) Explain(d *index.Doc) Details {
	score, _ := q.Score(d)
	n, list := 0, d.Children[q.path]
	var best Details
	q.matches(d, func(child *index.Doc, s float32) {
		if n++; n == 1 || float64(s) > best.Value {
			best = q.inner.Explain(child)
		}
	})
	return Details{float64(score), "Score based on " + itoa(n) + " child docs in range from 0 to " + itoa(len(list)-1) +
		", best match:", []Details{best}}
}

func (q *embeddedQuery) Terms(func(Term)) {}
