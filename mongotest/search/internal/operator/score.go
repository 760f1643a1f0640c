package operator

import (
	"math"
	"strconv"

	"allium/bson"
	"allium/mongotest/search/internal/index"
)

// scored makes a query with the score that its options ask for.
func (c *compiler) scored(doc bson.Raw, make func(c *compiler, doc bson.Raw) (Query, error)) (Query, error) {
	v := doc.Lookup("score")
	if v.Type == 0 {
		return make(c, doc)
	}
	options, ok := v.Document()
	if !ok {
		return nil, invalid("\"%s.score\" must be a document", c.where)
	}
	return c.option(options, c.where+".score", func(c *compiler) (Query, error) { return make(c, doc) })
}

// option makes a query and changes its score by one option.
func (c *compiler) option(options bson.Raw, where string, make func(c *compiler) (Query, error)) (Query, error) {
	n, name, v := 0, "", bson.RawValue{}
	for key, item := range options.All() {
		n, name, v = n+1, key, item
	}
	if n != 1 {
		return nil, invalid("\"%s\" must have one of [boost, constant, embedded, function]", where)
	}
	where += "." + name
	spec, ok := v.Document()
	if !ok {
		return nil, invalid("\"%s\" must be a document", where)
	}
	switch name {
	case "boost":
		return c.boosted(spec, where, make)
	case "constant":
		value := spec.Lookup("value")
		if !value.IsNumber() || index.Float(value) < 0 {
			return nil, invalid("\"%s.value\" must be a number that is not negative", where)
		}
		q, err := make(c.unboosted())
		return &constant{q, float32(index.Float(value)) * c.boost}, err
	case "function":
		f, err := c.function(v, where, 0)
		if err != nil {
			return nil, err
		}
		q, err := make(c.unboosted())
		return &functionScore{q, f, c.boost}, err
	case "embedded":
		for key := range spec.All() {
			if key != "aggregate" && key != "outerScore" {
				return nil, invalid("unrecognized field \"%s.%s\"", where, key)
			}
		}
		outer := spec.Lookup("outerScore")
		if outer.Type == 0 {
			return make(c)
		}
		inner, ok := outer.Document()
		if !ok {
			return nil, invalid("\"%s.outerScore\" must be a document", where)
		}
		return c.option(inner, where+".outerScore", make)
	}
	return nil, invalid("unrecognized field \"%s\"", where)
}

func (c *compiler) unboosted() *compiler {
	inner := *c
	inner.boost = 1
	return &inner
}

func (c *compiler) boosted(spec bson.Raw, where string, make func(c *compiler) (Query, error)) (Query, error) {
	value, path := spec.Lookup("value"), spec.Lookup("path")
	switch {
	case (value.Type == 0) == (path.Type == 0):
		return nil, invalid("\"%s\" must have one of [value, path]", where)
	case value.Type == 0:
		p, ok := path.StringValue()
		if !ok || p == "" {
			return nil, invalid("\"%s.path\" must be a string", where)
		}
		f := multiply{&pathValue{p, index.Float(spec.Lookup("undefined"))}, relevance{}}
		q, err := make(c.unboosted())
		return &functionScore{q, f, c.boost}, err
	case !value.IsNumber() || !(index.Float(value) > 0):
		return nil, invalid("\"%s.value\" must be positive", where)
	}
	inner := *c
	inner.boost *= float32(index.Float(value))
	return make(&inner)
}

// constant replaces a score.
type constant struct {
	Query
	value float32
}

func (q *constant) Score(d *index.Doc) (float32, bool) {
	_, ok := q.Query.Score(d)
	return q.value, ok
}

func (q *constant) Explain(d *index.Doc) Details {
	return Details{float64(q.value), "ConstantScore(" + name(q.Query, d) + ")", nil}
}

// name is what a query is called in the explanation of another.
func name(q Query, d *index.Doc) string {
	e := q.Explain(d)
	return e.plain()
}

// functionScore replaces a score by what a function makes of it.
type functionScore struct {
	Query
	f     function
	boost float32
}

func (q *functionScore) Score(d *index.Doc) (float32, bool) {
	s, ok := q.Query.Score(d)
	if !ok {
		return 0, false
	}
	v, defined := q.f.value(d, s)
	if !defined || math.IsNaN(v) || v < 0 {
		return 0, true
	}
	return float32(v * float64(q.boost)), true
}

func (q *functionScore) Explain(d *index.Doc) Details {
	s, _ := q.Score(d)
	inner := q.Query.Explain(d)
	e := Details{float64(s), "FunctionScoreQuery(" + inner.plain() + ", scored by " + q.f.String() + ")", nil}
	if inner.plain() != inner.Description {
		e.Description += " [BM25Similarity], result of:"
	} else {
		e.Description += ", result of:"
	}
	if _, plain := q.f.(relevance); plain {
		e.Parts = []Details{{float64(s), "weight(" + inner.plain() + " in " + itoa(d.Seq) +
			") [BM25Similarity], result of:", inner.Parts}}
	} else {
		e.Parts = []Details{{float64(s), q.f.String(), nil}}
	}
	return e
}

// function is an expression of the function option. It may be undefined.
type function interface {
	value(d *index.Doc, score float32) (v float64, ok bool)
	String() string
}

func (c *compiler) function(v bson.RawValue, where string, depth int) (function, error) {
	doc, ok := v.Document()
	if !ok || depth > maxDepth {
		return nil, invalid("\"%s\" must be a document", where)
	}
	n, name, arg := 0, "", bson.RawValue{}
	for key, item := range doc.All() {
		n, name, arg = n+1, key, item
	}
	if n != 1 {
		return nil, invalid("\"%s\" must have one of [add, constant, gauss, log, log1p, multiply, path, score]", where)
	}
	where += "." + name
	switch name {
	case "constant":
		if !arg.IsNumber() {
			return nil, invalid("\"%s\" must be a number", where)
		}
		return number64(index.Float(arg)), nil
	case "path":
		return pathOf(arg, where)
	case "score":
		if s, _ := arg.StringValue(); s != "relevance" {
			return nil, invalid("\"%s\" must be \"relevance\"", where)
		}
		return relevance{}, nil
	case "add", "multiply":
		list, ok := arg.Array()
		var parts []function
		for item := range list.Values() {
			f, err := c.function(item, where, depth+1)
			if err != nil {
				return nil, err
			}
			parts = append(parts, f)
		}
		if !ok || len(parts) < 2 {
			return nil, invalid("\"%s\" must have at least two expressions", where)
		}
		if name == "add" {
			return add(parts), nil
		}
		return multiply(parts), nil
	case "log", "log1p":
		f, err := c.function(arg, where, depth+1)
		if err != nil {
			return nil, err
		}
		return &logarithm{f, name == "log1p"}, nil
	case "gauss":
		return gaussOf(arg, where)
	}
	return nil, invalid("unrecognized field \"%s\"", where)
}

func pathOf(v bson.RawValue, where string) (*pathValue, error) {
	if s, ok := v.StringValue(); ok && s != "" {
		return &pathValue{s, 0}, nil
	}
	doc, _ := v.Document()
	s, ok := doc.Lookup("value").StringValue()
	undefined := doc.Lookup("undefined")
	if !ok || s == "" || undefined.Type != 0 && !undefined.IsNumber() {
		return nil, invalid("\"%s\" must be a string, or a document with \"value\" and \"undefined\"", where)
	}
	return &pathValue{s, index.Float(undefined)}, nil
}

func gaussOf(v bson.RawValue, where string) (function, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, invalid("\"%s\" must be a document", where)
	}
	path, err := pathOf(doc.Lookup("path"), where+".path")
	if err != nil {
		return nil, err
	}
	g := &gauss{path: path, decay: 0.5}
	for _, p := range []struct {
		name string
		to   *float64
		need bool
	}{{"origin", &g.origin, true}, {"scale", &g.scale, true}, {"offset", &g.offset, false},
		{"decay", &g.decay, false}} {
		v := doc.Lookup(p.name)
		switch {
		case v.IsNumber():
			*p.to = index.Float(v)
		case p.need || v.Type != 0:
			return nil, invalid("\"%s.%s\" must be a number", where, p.name)
		}
	}
	if !(g.decay > 0 && g.decay < 1) {
		return nil, invalid("\"%s.decay\" must be between 0 and 1, exclusive", where)
	}
	return g, nil
}

type number64 float64

func (n number64) value(*index.Doc, float32) (float64, bool) { return float64(n), true }
func (n number64) String() string                            { return "constant(" + text(float64(n)) + ")" }

// text prints a number with a digit behind the point.
func text(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if f == math.Trunc(f) {
		s += ".0"
	}
	return s
}

type relevance struct{}

func (relevance) value(_ *index.Doc, score float32) (float64, bool) { return float64(score), true }
func (relevance) String() string                                    { return "scores" }

type pathValue struct {
	path      string
	undefined float64
}

func (p *pathValue) value(d *index.Doc, _ float32) (float64, bool) {
	if f, ok := d.Number(p.path); ok {
		return f, true
	}
	return p.undefined, true
}

func (p *pathValue) String() string { return p.path }

type add []function

func (a add) value(d *index.Doc, score float32) (sum float64, ok bool) {
	for _, f := range a {
		v, ok := f.value(d, score)
		if !ok {
			return 0, false
		}
		sum += v
	}
	return sum, true
}

func (a add) String() string { return joined(a, " + ") }

type multiply []function

func (m multiply) value(d *index.Doc, score float32) (product float64, ok bool) {
	product = 1
	for _, f := range m {
		v, ok := f.value(d, score)
		if !ok {
			return 0, false
		}
		product *= v
	}
	return product, true
}

func (m multiply) String() string { return joined(m, " * ") }

func joined(list []function, by string) string {
	s := "("
	for i, f := range list {
		if i > 0 {
			s += by
		}
		s += f.String()
	}
	return s + ")"
}

type logarithm struct {
	f    function
	plus bool
}

func (l *logarithm) value(d *index.Doc, score float32) (float64, bool) {
	v, ok := l.f.value(d, score)
	if l.plus {
		v++
	}
	if !ok || !(v > 0) {
		return 0, false
	}
	return math.Log10(v), true
}

func (l *logarithm) String() string {
	if l.plus {
		return "log10(" + l.f.String() + " + 1)"
	}
	return "log10(" + l.f.String() + ")"
}

// gauss decays with the distance of a value from an origin.
type gauss struct {
	path                         *pathValue
	origin, scale, offset, decay float64
}

func (g *gauss) value(d *index.Doc, score float32) (float64, bool) {
	v, _ := g.path.value(d, score)
	distance := max(0, math.Abs(v-g.origin)-g.offset)
	if distance == 0 {
		return 1, true
	}
	return math.Exp(distance * distance * math.Log(g.decay) / (g.scale * g.scale)), true
}

func (g *gauss) String() string {
	return "exp((max(0, |" + g.path.path + " - " + text(g.origin) + "| - " + text(g.offset) + ")^2) / 2 * (" +
		text(g.scale) + "^2 / 2 * ln(" + text(g.decay) + ")))"
}

func itoa(n int) string { return strconv.Itoa(n) }
