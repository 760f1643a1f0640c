package fts

import (
	"maps"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// Index is the part of a text index's definition that decides what it finds.
type Index struct {
	weights  map[string]float64 // by path; "$**" stands for all
	language string
	override string // the field that names another language
}

// NewIndex reads a text index's definition as listIndexes shows it.
func NewIndex(spec bson.Raw) *Index {
	x := &Index{weights: map[string]float64{}, language: "english", override: "language"}
	weights, _ := spec.Lookup("weights").Document()
	for path, v := range weights.All() {
		x.weights[path] = number(v)
	}
	if s, ok := spec.Lookup("default_language").StringValue(); ok {
		if full, ok := Language(s); ok {
			x.language = full
		}
	}
	if s, ok := spec.Lookup("language_override").StringValue(); ok {
		x.override = s
	}
	return x
}

// Language is that of texts and searches which do not say another.
func (x *Index) Language() string { return x.language }

// Search is a query against an index.
type Search struct {
	index *Index
	q     *parsed
}

// Search prepares a query for the index.
func (x *Index) Search(q *Query) *Search {
	language := x.language
	if q.Language != "" {
		language, _ = Language(q.Language)
	}
	return &Search{x, q.parse(language)}
}

// Match reports whether the document has a word or phrase that is searched for, and none that is
// not wanted.
func (s *Search) Match(doc bson.Raw) bool {
	found, refused, exact := false, false, false
	phrases := make([]bool, len(s.q.phrases))
	_ = s.index.walk(doc, func(text, language string, _ float64) {
		for _, t := range terms(text, language, fold{}) {
			found = found || s.q.wanted[t]
		}
		if s.q.caseOrMarksSensitive || len(s.q.refused) > 0 {
			for _, t := range terms(text, language, s.q.fold) {
				exact = exact || s.q.exact[t]
				refused = refused || s.q.refused[t]
			}
		}
		if len(s.q.phrases)+len(s.q.noPhrases) == 0 {
			return
		}
		text = s.q.fold.apply(text)
		for i, p := range s.q.phrases {
			phrases[i] = phrases[i] || strings.Contains(text, p)
		}
		for _, p := range s.q.noPhrases {
			refused = refused || strings.Contains(text, p)
		}
	})
	for _, ok := range phrases {
		found = found && ok
	}
	return found && !refused && (exact || !s.q.caseOrMarksSensitive)
}

// Parsed is what a search asks for, each in order.
type Parsed struct{ Terms, NegatedTerms, Phrases, NegatedPhrases []string }

// Parsed returns what the search asks for.
func (s *Search) Parsed() Parsed {
	list := func(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
	return Parsed{list(s.q.wanted), list(s.q.refused), s.q.phrases, s.q.noPhrases}
}

// Has reports whether the index has a key for a term and the document.
func (s *Search) Has(doc bson.Raw, term string) (has bool) {
	_ = s.index.walk(doc, func(text, language string, _ float64) {
		has = has || slices.Contains(terms(text, language, fold{}), term)
	})
	return has
}

// Score is the document's textScore: the more often, and in the shorter a field, a word occurs, the
// higher; and by the field's weight.
func (s *Search) Score(doc bson.Raw) float64 {
	type count struct{ exp, freq, n float64 }
	total := 0.0
	_ = s.index.walk(doc, func(text, language string, weight float64) {
		counts := map[string]*count{}
		var order []string
		all := terms(text, language, fold{})
		for _, t := range all {
			c := counts[t]
			if c == nil {
				c = &count{exp: 0.5}
				counts[t] = c
				order = append(order, t)
			}
			c.exp *= 2
			c.n++
			c.freq += 1 / c.exp
		}
		for _, t := range order {
			if !s.q.wanted[t] {
				continue
			}
			c := counts[t]
			coefficient := 0.5*c.n/float64(len(all)) + 0.5
			adjustment := 1.0
			if strings.EqualFold(text, t) {
				adjustment = 1.1
			}
			total += weight * c.freq * coefficient * adjustment
		}
	})
	return total
}

// Check refuses a document that names a language which does not exist.
func (x *Index) Check(doc bson.Raw) error {
	return x.walk(doc, func(string, string, float64) {})
}

// visitor is called for a string that an index covers, with its language and weight.
type visitor func(text, language string, weight float64)

// walk calls visit for each string that the index covers.
func (x *Index) walk(doc bson.Raw, visit visitor) error {
	return x.walkDocument(doc, "", x.language, visit)
}

func (x *Index) walkDocument(doc bson.Raw, prefix, language string, visit visitor) error {
	if v := doc.Lookup(x.override); v.Type != 0 {
		name, ok := v.StringValue()
		if !ok {
			return srverr.New(17261, "found language override field in document with non-string type")
		}
		if language, ok = Language(name); !ok {
			return srverr.New(17262, "language override unsupported: %s", name)
		}
	}
	for key, v := range doc.All() {
		if key == x.override {
			continue
		}
		if err := x.walkValue(v, prefix+key, language, visit); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) walkValue(v bson.RawValue, path, language string, visit visitor) error {
	switch v.Type {
	case bson.TypeString:
		weight, ok := x.weights[path]
		if !ok {
			weight, ok = x.weights["$**"]
		}
		if s, isString := v.StringValue(); ok && isString {
			visit(s, language, weight)
		}
	case bson.TypeEmbeddedDocument:
		if x.covers(path) {
			return x.walkDocument(v.Value, path+".", language, visit)
		}
	case bson.TypeArray:
		for e := range bson.Raw(v.Value).Values() {
			if e.Type == bson.TypeArray {
				continue // arrays directly in arrays are not searched
			}
			if err := x.walkValue(e, path, language, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// covers reports whether there may be indexed strings below a path.
func (x *Index) covers(path string) bool {
	for p := range x.weights {
		if p == "$**" || strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

func number(v bson.RawValue) float64 {
	if d, ok := v.Double(); ok {
		return d
	}
	n, _ := v.AsInt64()
	return float64(n)
}
