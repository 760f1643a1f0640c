// Package operator finds documents of an index: it reads the operators of $search and tells of each
// document whether it matches, with which score, and why.
//
// Scores are those of Lucene's queries, in numbers of 32 bits as there: BM25 for terms and phrases,
// the decay of distances for near, 1 for what only matches, sums for what is combined.
package operator

import (
	"iter"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/search/internal/index"
)

// Query is a part of a query, made for an index.
type Query interface {
	// Score returns a document's score, and whether it matches.
	Score(d *index.Doc) (score float32, ok bool)
	// Explain returns how the score of a document that matches came about.
	Explain(d *index.Doc) Details
	// Terms visits what the query looks for in texts.
	Terms(visit func(t Term))
}

// Details is a score with what it was made of.
type Details struct {
	Value       float64
	Description string
	Parts       []Details
}

// Term is something that a query looks for in the text of a field.
type Term struct {
	// Key names the text; Match tells whether a term of a text is looked for.
	Key   string
	Match func(term string) bool
	// Places are where in a document's text of this name it was found, if not everywhere.
	Places func(t *index.Text) map[int]bool
}

// Env is what queries are made with.
type Env struct {
	Index *index.Index
	// Read yields the documents of another collection of the database.
	Read func(collection string) iter.Seq2[bson.Raw, error]
	// Step counts what a query does.
	Step func(n int)
}

// compiler makes queries of operators.
type compiler struct {
	*Env
	context index.Context
	boost   float32
	where   string // the operator at hand, for messages
	depth   int
}

// operators are those of $search by their names, with the fields that they have beside "score".
var operators map[string]operator

type operator struct {
	fields string
	make   func(c *compiler, doc bson.Raw) (Query, error)
}

func init() {
	operators = map[string]operator{
		"autocomplete":     {"query path fuzzy tokenOrder", (*compiler).autocomplete},
		"compound":         {"must mustNot should filter minimumShouldMatch doesNotAffect", (*compiler).compound},
		"embeddedDocument": {"path operator", (*compiler).embedded},
		"equals":           {"path value doesNotAffect", (*compiler).equals},
		"exists":           {"path", (*compiler).exists},
		"geoShape":         {"path relation geometry", (*compiler).geoShape},
		"geoWithin":        {"path circle box geometry", (*compiler).geoWithin},
		"in":               {"path value doesNotAffect", (*compiler).in},
		"moreLikeThis":     {"like", (*compiler).moreLikeThis},
		"near":             {"path origin pivot", (*compiler).near},
		"phrase":           {"query path slop synonyms", (*compiler).phrase},
		"queryString":      {"defaultPath query", (*compiler).queryString},
		"range":            {"path gt gte lt lte doesNotAffect", (*compiler).rangeOf},
		"regex":            {"query path allowAnalyzedField", (*compiler).regex},
		"text":             {"query path fuzzy matchCriteria synonyms", (*compiler).text},
		"wildcard":         {"query path allowAnalyzedField", (*compiler).wildcard},
	}
}

// Is reports whether there is an operator of a name.
func Is(name string) bool { return operators[name].make != nil }

// Parse makes the query of an operator.
func Parse(name string, v bson.RawValue, env *Env) (Query, error) {
	c := &compiler{Env: env, context: env.Index.Def.Context(""), boost: 1}
	return c.operator(name, v, name)
}

// maxDepth is how deep operators nest in others.
const maxDepth = 100

// operator makes the query of an operator that stands at a path of the specification.
func (c *compiler) operator(name string, v bson.RawValue, path string) (Query, error) {
	op, ok := operators[name]
	if !ok {
		return nil, invalid("unrecognized field \"%s\"", path)
	}
	doc, ok := v.Document()
	if !ok {
		return nil, invalid("\"%s\" must be a document", path)
	}
	inner := *c
	inner.where = path
	if inner.depth++; inner.depth > maxDepth {
		return nil, invalid("\"%s\" is nested too deeply", path)
	}
	for key, v := range doc.All() {
		if key != "score" && !inFields(op.fields, key) {
			return nil, invalid("unrecognized field \"%s.%s\"", path, key)
		}
		if key == "doesNotAffect" && !areStrings(v) {
			return nil, invalid("\"%s.doesNotAffect\" must be a string or an array of strings", path)
		}
	}
	return inner.scored(withoutNulls(doc), op.make)
}

// withoutNulls returns a document without the options that are null, which is as if they were not
// given. A null value is one to look for.
func withoutNulls(doc bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for key, v := range doc.All() {
			if v.Type != bson.TypeNull || key == "value" {
				d.Value(key, v.Type, v.Value)
			}
		}
	})
}

// areStrings reports whether a value is a string, or an array of strings, or null.
func areStrings(v bson.RawValue) bool {
	list, ok := v.Array()
	if !ok {
		return v.Type == bson.TypeString || v.Type == bson.TypeNull
	}
	for item := range list.Values() {
		if item.Type != bson.TypeString {
			return false
		}
	}
	return true
}

// one makes the query of a document that names one operator.
func (c *compiler) one(v bson.RawValue, path string) (Query, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, invalid("\"%s\" must be a document", path)
	}
	var q Query
	for name, item := range doc.All() {
		if q != nil {
			return nil, invalid("\"%s\" must have one operator", path)
		}
		var err error
		if q, err = c.operator(name, item, path+"."+name); err != nil {
			return nil, err
		}
	}
	if q == nil {
		return nil, invalid("\"%s\" must have one operator", path)
	}
	return q, nil
}

func inFields(list, name string) bool {
	for len(list) > 0 {
		n := 0
		for n < len(list) && list[n] != ' ' {
			n++
		}
		if list[:n] == name {
			return true
		}
		list = list[min(n+1, len(list)):]
	}
	return false
}

func invalid(format string, args ...any) error {
	return srverr.New(srverr.UnknownError, format, args...)
}

// Of the arguments that several operators have.

func (c *compiler) required(doc bson.Raw, field string) (bson.RawValue, error) {
	v := doc.Lookup(field)
	if v.Type == 0 {
		return v, invalid("\"%s.%s\" is required", c.where, field)
	}
	return v, nil
}

// queries returns the strings that are looked for.
func (c *compiler) queries(doc bson.Raw) ([]string, error) {
	v, err := c.required(doc, "query")
	if err != nil {
		return nil, err
	}
	if s, ok := v.StringValue(); ok {
		if s == "" {
			return nil, invalid("\"%s.query\" cannot be empty", c.where)
		}
		return []string{s}, nil
	}
	list, ok := v.Array()
	if !ok {
		return nil, invalid("\"%s.query\" must be a string or an array of strings", c.where)
	}
	var all []string
	for item := range list.Values() {
		s, ok := item.StringValue()
		if !ok {
			return nil, invalid("\"%s.query\" must be a string or an array of strings", c.where)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, invalid("\"%s.query\" cannot be empty", c.where)
	}
	return all, nil
}

// target is a field that an operator looks at.
type target struct{ path, multi string }

// paths returns the fields that an operator looks at; many tells that it takes several, and
// those of other analyzers and wildcards.
func (c *compiler) paths(doc bson.Raw, many bool) ([]target, error) {
	v, err := c.required(doc, "path")
	if err != nil {
		return nil, err
	}
	return c.pathsOf(v, c.where+".path", many)
}

func (c *compiler) pathsOf(v bson.RawValue, where string, many bool) ([]target, error) {
	if s, ok := v.StringValue(); ok {
		return []target{{path: s}}, nil // the empty one is of no field
	}
	if doc, ok := v.Document(); ok && many {
		return c.pathOf(doc, where)
	}
	list, ok := v.Array()
	if !ok || !many {
		return nil, invalid("\"%s\" must be a string", where)
	}
	var all []target
	for item := range list.Values() {
		if item.Type == bson.TypeArray {
			return nil, invalid("\"%s\" must be a string", where)
		}
		some, err := c.pathsOf(item, where, true)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		return nil, invalid("\"%s\" cannot be empty", where)
	}
	return all, nil
}

func (c *compiler) pathOf(doc bson.Raw, where string) ([]target, error) {
	if v := doc.Lookup("wildcard"); v.Type != 0 {
		pattern, ok := v.StringValue()
		switch {
		case !ok || pattern == "":
			return nil, invalid("\"%s.wildcard\" must be a string", where)
		case hasDoubleStar(pattern):
			return nil, invalid("\"%s.wildcard\" cannot contain multiple consecutive wildcard characters", where)
		case doc.Lookup("value").Type != 0 || doc.Lookup("multi").Type != 0:
			return nil, invalid("\"%s\" cannot have \"wildcard\" together with \"value\" or \"multi\"", where)
		}
		return c.matching(pattern), nil
	}
	path, ok := doc.Lookup("value").StringValue()
	if !ok || path == "" {
		return nil, invalid("\"%s.value\" is required", where)
	}
	multi, _ := doc.Lookup("multi").StringValue()
	return []target{{path, multi}}, nil
}

func hasDoubleStar(s string) bool {
	for i := 1; i < len(s); i++ {
		if s[i] == '*' && s[i-1] == '*' {
			return true
		}
	}
	return false
}

// Paths returns the fields that a path of $search names in documents, for what is no operator.
func Paths(v bson.RawValue, where string, env *Env) (all []struct{ Path, Multi string }, err error) {
	c := &compiler{Env: env, context: env.Index.Def.Context("")}
	list, err := c.pathsOf(v, where, true)
	for _, t := range list {
		all = append(all, struct{ Path, Multi string }{t.path, t.multi})
	}
	return all, err
}
