package operator

// The operators that look for words: text, phrase, autocomplete, moreLikeThis.

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/search/internal/analysis"
	"allium/mongotest/search/internal/index"
)

// indexed is a field that is indexed as a string.
type indexed struct {
	key   string
	field *index.Field
}

// strings returns the fields of some paths that are indexed as strings.
func (c *compiler) strings(list []target) (all []indexed, err error) {
	for _, t := range list {
		f := c.context.Field(t.path, "string")
		if f == nil {
			continue
		}
		if t.multi != "" {
			if f = f.Multi[t.multi]; f == nil {
				return nil, invalid("multi '%s' is not defined at path '%s'", t.multi, t.path)
			}
		}
		all = append(all, indexed{c.context.StringKey(t.path, t.multi), f})
	}
	return all, nil
}

// wanted returns what an operator looks for, and the fields in which it does.
func (c *compiler) wanted(doc bson.Raw) (queries []string, fields []indexed, err error) {
	if queries, err = c.queries(doc); err != nil {
		return nil, nil, err
	}
	paths, err := c.paths(doc, true)
	if err != nil {
		return nil, nil, err
	}
	fields, err = c.strings(paths)
	return queries, fields, err
}

// matching returns the paths that are indexed as strings and match a pattern with stars.
func (c *compiler) matching(pattern string) (all []target) {
	prefix := c.context.StringKey("", "")
	for key := range c.Index.Fields {
		if path, ok := strings.CutPrefix(key, prefix); ok && like(path, pattern, '*', 0, 0) {
			all = append(all, target{path: path})
		}
	}
	slices.SortFunc(all, func(a, b target) int { return cmp.Compare(a.path, b.path) })
	return all
}

// searcher is the analyzer of what is looked for in a field.
func searcher(f *index.Field) *analysis.Analyzer {
	if f.SearchAnalyzer != nil {
		return f.SearchAnalyzer
	}
	return f.Analyzer
}

// places groups the tokens of a text by their positions.
func places(list []analysis.Token) (all []phraseTerm) {
	for _, t := range list {
		if n := len(all); n > 0 && all[n-1].at == t.Position {
			if !slices.Contains(all[n-1].terms, t.Text) {
				all[n-1].terms = append(all[n-1].terms, t.Text)
			}
			continue
		}
		all = append(all, phraseTerm{[]string{t.Text}, t.Position})
	}
	return all
}

// fuzzy is how much terms may differ from those that are looked for.
type fuzzy struct{ edits, prefix, expansions int }

func (c *compiler) fuzzy(doc bson.Raw) (*fuzzy, error) {
	v := doc.Lookup("fuzzy")
	if v.Type == 0 {
		return nil, nil
	}
	spec, ok := v.Document()
	if !ok {
		return nil, invalid("\"%s.fuzzy\" must be a document", c.where)
	}
	f := &fuzzy{2, 0, 50}
	for key, v := range spec.All() {
		n, ok := v.AsInt64()
		switch {
		case key == "maxEdits" && (!ok || n < 1 || n > 2):
			return nil, invalid("\"%s.fuzzy.maxEdits\" must be within bounds [1, 2]", c.where)
		case key == "maxEdits":
			f.edits = int(n)
		case key == "prefixLength" && (!ok || n < 0):
			return nil, invalid("\"%s.fuzzy.prefixLength\" cannot be negative", c.where)
		case key == "prefixLength":
			f.prefix = int(min(n, 1<<20))
		case key == "maxExpansions" && (!ok || n < 1 || n > 1000):
			return nil, invalid("\"%s.fuzzy.maxExpansions\" must be within bounds [1, 1000]", c.where)
		case key == "maxExpansions":
			f.expansions = int(n)
		default:
			return nil, invalid("unrecognized field \"%s.fuzzy.%s\"", c.where, key)
		}
	}
	return f, nil
}

// expansion is a term like one that is looked for.
type expansion struct {
	term  string
	boost float32
}

// expand returns the terms of a field that are like a term, the likest first.
func (c *compiler) expand(key, term string, f *fuzzy) (all []expansion) {
	s := c.Index.Fields[key]
	if s == nil {
		return nil
	}
	want := []rune(term)
	for _, t := range s.Terms() {
		c.Step(1 + len(t)/4)
		if n := utf8.RuneCountInString(t) - len(want); n > f.edits || -n > f.edits {
			continue
		}
		have := []rune(t)
		p := min(f.prefix, len(want))
		if len(have) < p || !slices.Equal(have[:p], want[:p]) {
			continue
		}
		d := distance(have[p:], want[p:], f.edits)
		if d > f.edits {
			continue
		}
		boost := float32(1)
		if d > 0 {
			boost = 1 - float32(d)/float32(min(len(have), len(want)))
		}
		if boost > 0 {
			all = append(all, expansion{t, boost})
		}
	}
	slices.SortStableFunc(all, func(a, b expansion) int { return cmp.Compare(b.boost, a.boost) })
	return all[:min(len(all), f.expansions)]
}

// distance is how many characters are inserted, deleted, replaced or swapped between two words, or
// more than most.
func distance(a, b []rune, most int) int {
	if n := len(a) - len(b); n > most || -n > most {
		return most + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// likeTerm makes a query for the terms that are like one. They score as if all were as frequent
// as the most frequent.
func (c *compiler) likeTerm(key string, field *index.Field, term string, f *fuzzy) Query {
	all := c.expand(key, term, f)
	df := 0
	for _, e := range all {
		df = max(df, c.Index.Fields[key].DF[e.term])
	}
	var list []Query
	for _, e := range all {
		list = append(list, c.term(key, field, []string{e.term}, c.boost*e.boost, df))
	}
	return oneOf(list)
}

// maxClauses is how many terms a query may have, as in Lucene.
const maxClauses = 1024

func (c *compiler) text(doc bson.Raw) (Query, error) {
	queries, fields, err := c.wanted(doc)
	if err != nil {
		return nil, err
	}
	f, err := c.fuzzy(doc)
	if err != nil {
		return nil, err
	}
	synonyms, err := c.synonyms(doc)
	if err != nil {
		return nil, err
	}
	criteria := ""
	if v := doc.Lookup("matchCriteria"); v.Type != 0 {
		if criteria, _ = v.StringValue(); criteria != "any" && criteria != "all" {
			return nil, invalid("\"%s.matchCriteria\" must be one of [any, all]", c.where)
		}
	}
	if f != nil && synonyms != nil {
		return nil, invalid("\"%s\" cannot have \"fuzzy\" together with \"synonyms\"", c.where)
	}
	var list []Query
	clauses := 0
	for _, x := range fields {
		if synonyms != nil && x.field.Options != "positions" && x.field.Options != "offsets" {
			return nil, invalid("\"%s\" with \"synonyms\" needs a field with indexOptions \"positions\" or \"offsets\"",
				c.where)
		}
		for _, query := range queries {
			tokens := places(searcher(x.field).Tokens(query))
			var words []Query
			switch {
			case synonyms != nil && criteria == "":
				for _, sequence := range synonyms.sequences(tokens) {
					words = append(words, c.sequence(x.key, x.field, sequence, 0))
				}
			case synonyms != nil:
				for _, part := range synonyms.parts(tokens) {
					words = append(words, c.alternatives(x, part))
				}
			default:
				for _, p := range tokens {
					if f != nil && len(p.terms) == 1 {
						words = append(words, c.likeTerm(x.key, x.field, p.terms[0], f))
						continue
					}
					words = append(words, c.term(x.key, x.field, p.terms, c.boost, 0))
				}
			}
			if clauses += len(words); clauses > maxClauses {
				return nil, invalid("\"%s\" has more than %d terms", c.where, maxClauses)
			}
			if criteria == "all" {
				list = append(list, allOf(words))
			} else {
				list = append(list, words...)
			}
		}
	}
	return oneOf(list), nil
}

func (c *compiler) phrase(doc bson.Raw) (Query, error) {
	queries, fields, err := c.wanted(doc)
	if err != nil {
		return nil, err
	}
	synonyms, err := c.synonyms(doc)
	if err != nil {
		return nil, err
	}
	slop := int64(0)
	if v := doc.Lookup("slop"); v.Type != 0 {
		var ok bool
		if slop, ok = v.AsInt64(); !ok || slop < 0 || slop > math.MaxInt32 {
			return nil, invalid("\"%s.slop\" must be within bounds [0, %d]", c.where, math.MaxInt32)
		}
	}
	var list []Query
	for _, x := range fields {
		if x.field.Options != "positions" && x.field.Options != "offsets" {
			return nil, invalid("\"%s\" needs a field with indexOptions \"positions\" or \"offsets\"", c.where)
		}
		for _, query := range queries {
			tokens := places(searcher(x.field).Tokens(query))
			if synonyms == nil {
				list = append(list, c.sequence(x.key, x.field, tokens, int(min(slop, 1<<20))))
				continue
			}
			for _, sequence := range synonyms.sequences(tokens) {
				list = append(list, c.sequence(x.key, x.field, sequence, int(min(slop, 1<<20))))
			}
		}
	}
	return oneOf(list), nil
}

// synonyms are the words of a mapping by the words that they stand for, as sequences of terms.
type synonyms map[string][][]string

// maxSequences is how many phrases stand for one.
const maxSequences = 256

func (c *compiler) synonyms(doc bson.Raw) (synonyms, error) {
	v := doc.Lookup("synonyms")
	if v.Type == 0 {
		return nil, nil
	}
	name, ok := v.StringValue()
	if !ok || name == "" {
		return nil, invalid("\"%s.synonyms\" cannot be empty", c.where)
	}
	m := c.Index.Def.Synonyms[name]
	if m == nil {
		return nil, invalid("Synonym mapping \"%s\" is not defined in the index", name)
	}
	s := synonyms{}
	for raw, err := range c.Read(m.Collection) {
		if err != nil {
			return nil, err
		}
		c.Step(1)
		words := terms(raw.Lookup("synonyms"), m.Analyzer)
		from := words
		kind, _ := raw.Lookup("mappingType").StringValue()
		if kind == "explicit" {
			from = terms(raw.Lookup("input"), m.Analyzer)
		}
		if kind != "explicit" && kind != "equivalent" || len(words) == 0 || len(from) == 0 {
			return nil, invalid("Synonym mapping \"%s\" has an invalid document in collection %s", name, m.Collection)
		}
		for _, f := range from {
			key := strings.Join(f, "\x00")
			for _, w := range words {
				if !slices.ContainsFunc(s[key], func(x []string) bool { return slices.Equal(x, w) }) {
					s[key] = append(s[key], w)
				}
			}
		}
	}
	return s, nil
}

// terms returns the terms of each of some strings.
func terms(v bson.RawValue, a *analysis.Analyzer) (all [][]string) {
	list, _ := v.Array()
	for item := range list.Values() {
		s, _ := item.StringValue()
		var words []string
		for _, t := range a.Tokens(s) {
			words = append(words, t.Text)
		}
		if len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}

// parts cuts a query where synonyms begin and end: each part has the sequences of terms that may
// stand there.
func (s synonyms) parts(tokens []phraseTerm) (all [][][]string) {
	for i := 0; i < len(tokens); {
		n, found := 1, [][]string(nil)
		for j := len(tokens); j > i && found == nil; j-- {
			var words []string
			for _, t := range tokens[i:j] {
				words = append(words, t.terms[0])
			}
			if to, ok := s[strings.Join(words, "\x00")]; ok {
				n, found = j-i, to
			}
		}
		if found == nil {
			for _, t := range tokens[i].terms {
				found = append(found, []string{t})
			}
		}
		all = append(all, found)
		i += n
	}
	return all
}

// sequences returns the phrases that a query with its synonyms stands for.
func (s synonyms) sequences(tokens []phraseTerm) [][]phraseTerm {
	all := [][]phraseTerm{nil}
	for _, part := range s.parts(tokens) {
		var next [][]phraseTerm
		var single []string
		for _, words := range part {
			if len(words) == 1 {
				single = append(single, words[0])
			}
		}
		for _, before := range all {
			if len(single) > 0 {
				next = append(next, append(slices.Clone(before), phraseTerm{single, len(before)}))
			}
			for _, words := range part {
				if len(words) == 1 {
					continue
				}
				sequence := slices.Clone(before)
				for _, w := range words {
					sequence = append(sequence, phraseTerm{[]string{w}, len(sequence)})
				}
				next = append(next, sequence)
			}
		}
		all = next[:min(len(next), maxSequences)]
	}
	return all
}

// alternatives makes a query for one part of a query with synonyms: the single words count as one
// term.
func (c *compiler) alternatives(x indexed, part [][]string) Query {
	var single []string
	var list []Query
	for _, words := range part {
		if len(words) == 1 {
			single = append(single, words[0])
			continue
		}
		var sequence []phraseTerm
		for i, w := range words {
			sequence = append(sequence, phraseTerm{[]string{w}, i})
		}
		list = append(list, c.sequence(x.key, x.field, sequence, 0))
	}
	if len(single) > 0 {
		list = append([]Query{c.term(x.key, x.field, single, c.boost, 0)}, list...)
	}
	return oneOf(list)
}

func (c *compiler) autocomplete(doc bson.Raw) (Query, error) {
	queries, err := c.queries(doc)
	if err != nil {
		return nil, err
	}
	paths, err := c.paths(doc, false)
	if err != nil {
		return nil, err
	}
	f, err := c.fuzzy(doc)
	if err != nil {
		return nil, err
	}
	order := "any"
	if v := doc.Lookup("tokenOrder"); v.Type != 0 {
		if order, _ = v.StringValue(); order != "any" && order != "sequential" {
			return nil, invalid("\"%s.tokenOrder\" must be one of [any, sequential]", c.where)
		}
	}
	field := c.context.Field(paths[0].path, "autocomplete")
	if field == nil {
		return nil, invalid("autocomplete index field definition not present at path %s", paths[0].path)
	}
	key := c.context.AutocompleteKey(paths[0].path)
	var list []Query
	for _, query := range queries {
		words := field.Words(query)
		if len(words) == 0 {
			continue
		}
		var texts []string
		for _, w := range words {
			texts = append(texts, w.Text)
		}
		whole := c.gram(key, field, strings.Join(texts, " "), f)
		if len(words) == 1 || order == "sequential" {
			list = append(list, whole)
			continue
		}
		for _, w := range texts {
			list = append(list, c.gram(key, field, w, f))
		}
		list = append(list, whole)
	}
	return oneOf(list), nil
}

// gram makes a query for the beginning of words, as far as the index has it.
func (c *compiler) gram(key string, field *index.Field, word string, f *fuzzy) Query {
	r := []rune(word)
	if n := len(r) - field.Max; n > 0 {
		if field.Tokenization == "rightEdgeGram" {
			r = r[n:]
		} else {
			r = r[:field.Max]
		}
	}
	if f == nil {
		return c.term(key, field, []string{string(r)}, c.boost, 0)
	}
	found := map[string]bool{}
	for _, e := range c.expand(key, string(r), f) {
		found[e.term] = true
	}
	return &anyTerm{key, key + ":" + string(r) + "~", c.boost, func(t string) bool { return found[t] }, found}
}

// maxLike is how many terms of the given documents moreLikeThis looks for.
const maxLike = 25

func (c *compiler) moreLikeThis(doc bson.Raw) (Query, error) {
	v, err := c.required(doc, "like")
	if err != nil {
		return nil, err
	}
	if c.context.Path != "" {
		return nil, invalid("\"%s\" cannot be used within embeddedDocument", c.where)
	}
	var docs []bson.Raw
	if one, ok := v.Document(); ok {
		docs = append(docs, one)
	} else if list, ok := v.Array(); ok {
		for item := range list.Values() {
			one, ok := item.Document()
			if !ok {
				return nil, invalid("\"%s.like\" must be a document or an array of documents", c.where)
			}
			docs = append(docs, one)
		}
	}
	if len(docs) == 0 {
		return nil, invalid("\"%s.like\" must be a document or an array of documents", c.where)
	}
	type term struct {
		indexed
		text  string
		count int
		score float64
	}
	found := map[string]*term{}
	var all []*term
	add := func(x indexed, text string) {
		s := c.Index.Fields[x.key]
		for _, t := range x.field.Analyzer.Tokens(text) {
			c.Step(1)
			if s == nil || s.DF[t.Text] == 0 {
				continue
			}
			id := x.key + "\x00" + t.Text
			if found[id] == nil {
				found[id] = &term{indexed: x, text: t.Text}
				all = append(all, found[id])
			}
			found[id].count++
		}
	}
	for _, d := range docs {
		c.eachString(d, "", func(path, text string) {
			f := c.context.Field(path, "string")
			if f == nil {
				return
			}
			add(indexed{c.context.StringKey(path, ""), f}, text)
			for name, m := range f.Multi {
				add(indexed{c.context.StringKey(path, name), m}, text)
			}
		})
	}
	for _, t := range all {
		t.score = float64(t.count) * (1 +
			math.Log(float64(len(c.Index.Docs)+1)/float64(c.Index.Fields[t.key].DF[t.text]+1)))
	}
	slices.SortStableFunc(all, func(a, b *term) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.key, b.key), cmp.Compare(a.text, b.text))
	})
	var list []Query
	for _, t := range all[:min(len(all), maxLike)] {
		list = append(list, c.term(t.key, t.field, []string{t.text}, c.boost, 0))
	}
	return oneOf(list), nil
}

// eachString visits the strings of a document.
func (c *compiler) eachString(doc bson.Raw, at string, visit func(path, text string)) {
	for key, v := range doc.All() {
		path := key
		if at != "" {
			path = at + "." + key
		}
		c.eachIn(v, path, visit)
	}
}

func (c *compiler) eachIn(v bson.RawValue, path string, visit func(path, text string)) {
	switch v.Type {
	case bson.TypeString:
		s, _ := v.StringValue()
		visit(path, s)
	case bson.TypeEmbeddedDocument:
		c.eachString(v.Value, path, visit)
	case bson.TypeArray:
		for item := range bson.Raw(v.Value).Values() {
			c.eachIn(item, path, visit)
		}
	}
}
