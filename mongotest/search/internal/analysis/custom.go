package analysis

import (
	"strings"

	"allium/bson"
)

// Set are the analyzers of an index: those that have a name, and its own.
type Set struct{ own map[string]*Analyzer }

// NewSet reads the custom analyzers of a definition.
func NewSet(definitions bson.RawValue) (*Set, error) {
	s := &Set{own: map[string]*Analyzer{}}
	if definitions.Type == 0 || definitions.Type == bson.TypeNull {
		return s, nil
	}
	list, ok := definitions.Array()
	if !ok {
		return nil, invalid("\"analyzers\" must be an array")
	}
	for item := range list.Values() {
		doc, ok := item.Document()
		if !ok {
			return nil, invalid("\"analyzers\" must be an array of documents")
		}
		a, err := custom(doc)
		if err != nil {
			return nil, err
		}
		if s.own[a.Name] != nil {
			return nil, invalid("\"analyzers\" names must be unique: \"%s\"", a.Name)
		}
		s.own[a.Name] = a
	}
	return s, nil
}

// Get returns an analyzer by its name.
func (s *Set) Get(name string) (*Analyzer, error) {
	if a := s.own[name]; a != nil {
		return a, nil
	}
	return Named(name)
}

func custom(doc bson.Raw) (*Analyzer, error) {
	name, ok := doc.Lookup("name").StringValue()
	if !ok || name == "" {
		return nil, invalid("\"analyzers.name\" is required")
	}
	for _, prefix := range []string{"lucene.", "builtin.", "mongodb."} {
		if strings.HasPrefix(name, prefix) {
			return nil, invalid("\"analyzers.name\" cannot start with \"%s\"", prefix)
		}
	}
	a := &Analyzer{Name: name}
	for key := range doc.All() {
		if key != "name" && key != "charFilters" && key != "tokenizer" && key != "tokenFilters" {
			return nil, invalid("unrecognized field \"analyzers.%s\"", key)
		}
	}
	for spec, err := range specs(doc, "charFilters") {
		if err != nil {
			return nil, err
		}
		kind, _ := spec.Lookup("type").StringValue()
		make := charFilters[kind]
		if make == nil {
			return nil, invalid(
				"\"analyzers.charFilters.type\" must be one of [htmlStrip, icuNormalize, mapping, persian]")
		}
		f, err := make(spec)
		if err != nil {
			return nil, err
		}
		a.charFilter = append(a.charFilter, f)
	}
	spec, ok := doc.Lookup("tokenizer").Document()
	if !ok {
		return nil, invalid("\"analyzers.tokenizer\" is required")
	}
	kind, _ := spec.Lookup("type").StringValue()
	t, ok := tokenizers[kind]
	if !ok {
		return nil, invalid(
			"\"analyzers.tokenizer.type\" must be one of [edgeGram, keyword, nGram, regexCaptureGroup, regexSplit, standard, uaxUrlEmail, whitespace]")
	}
	var err error
	if a.tokenize, err = t.make(spec); err != nil {
		return nil, err
	}
	a.Graph, a.Keyword = t.graph,
		kind == "keyword" && doc.Lookup("tokenFilters", "0").Type == 0 && len(a.charFilter) == 0
	for spec, err := range specs(doc, "tokenFilters") {
		if err != nil {
			return nil, err
		}
		kind, _ := spec.Lookup("type").StringValue()
		t, ok := tokenFilters[kind]
		switch {
		case kind == "kStemming" || kind == "stempel":
			return nil, invalid("token filter \"%s\" is not built into this deployment", kind)
		case !ok:
			return nil, invalid("\"analyzers.tokenFilters.type\": unknown token filter \"%s\"", kind)
		}
		f, err := t.make(spec)
		if err != nil {
			return nil, err
		}
		a.filters, a.Graph = append(a.filters, f), a.Graph || t.graph
	}
	return a, nil
}

// specs yields the documents of an array that may be left out.
func specs(doc bson.Raw, field string) func(yield func(bson.Raw, error) bool) {
	return func(yield func(bson.Raw, error) bool) {
		v := doc.Lookup(field)
		if v.Type == 0 || v.Type == bson.TypeNull {
			return
		}
		list, ok := v.Array()
		if !ok {
			yield(nil, invalid("\"analyzers.%s\" must be an array", field))
			return
		}
		for item := range list.Values() {
			spec, ok := item.Document()
			if !ok {
				yield(nil, invalid("\"analyzers.%s\" must be an array of documents", field))
				return
			}
			if !yield(spec, nil) {
				return
			}
		}
	}
}
