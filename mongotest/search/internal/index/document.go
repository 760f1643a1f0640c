package index

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/search/internal/analysis"
)

// Doc is a document as an index has it, or one that is embedded in it and indexed for itself.
type Doc struct {
	Raw      bson.Raw
	Seq      int // counts documents in the order of the collection
	Texts    map[string]*Text
	Values   map[string][]Value
	Children map[string][]*Doc
	// Parent has the document, nil if it is not embedded; Ordinal counts those at its path.
	Parent  *Doc
	Ordinal int

	has map[string]bool // paths that are indexed
}

// Text is what an index has of a field's text.
type Text struct {
	// Terms has the places of each term.
	Terms map[string][]int
	// Length counts words, Tokens the terms of them.
	Length, Tokens int
	// Sources are the strings, Marks where the terms stand in them.
	Sources []string
	Marks   []Mark

	last int // the greatest place
}

// Mark is where a term stands.
type Mark struct {
	Term       string
	Place      int
	Source     int
	Start, End int
}

// Value is a value that an index compares whole.
type Value struct {
	Kind string // the type that it is indexed as; null
	V    bson.RawValue
}

// Has reports whether a path is there and indexed.
func (d *Doc) Has(path string) bool { return d.has[path] }

// Number returns a number of the document, and whether there is one. Of several it is the first.
func (d *Doc) Number(path string) (f float64, ok bool) {
	for _, v := range d.Values[path] {
		if v.Kind == "number" {
			return Float(v.V), true
		}
	}
	return 0, false
}

// Float returns a number's value.
func Float(v bson.RawValue) float64 {
	if f, ok := v.Double(); ok {
		return f
	}
	n, _ := v.AsInt64()
	return float64(n)
}

// elementGap is how many words lie between the strings of an array, so that no phrase goes over
// both.
const elementGap = 100

// indexer makes the Doc of a document.
type indexer struct {
	def  *Definition
	step func(n int)
}

func (x *indexer) document(raw bson.Raw) *Doc {
	d := newDoc(raw)
	x.walk(raw, x.def.root, "", x.def.Context(""), d)
	return d
}

func newDoc(raw bson.Raw) *Doc {
	return &Doc{Raw: raw, Texts: map[string]*Text{}, Values: map[string][]Value{}, Children: map[string][]*Doc{},
		has: map[string]bool{}}
}

// walk indexes the fields of a document that stands at a path.
func (x *indexer) walk(raw bson.Raw, m *Mapping, at string, c Context, d *Doc) {
	for key, v := range raw.All() {
		path := join(at, key)
		fields, static := m.fields[key]
		if !static {
			if m.dynamic == nil {
				continue
			}
			fields = m.dynamic
			x.dynamic(v, m, path, c, d)
		}
		for _, f := range fields {
			x.value(v, f, path, c, d)
		}
	}
}

// dynamic indexes the documents in a value, as fields that no definition names.
func (x *indexer) dynamic(v bson.RawValue, m *Mapping, path string, c Context, d *Doc) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		d.has[path] = true
		x.walk(v.Value, &Mapping{dynamic: m.dynamic}, path, c, d)
	case bson.TypeArray:
		for item := range bson.Raw(v.Value).Values() {
			x.dynamic(item, m, path, c, d)
		}
	}
}

// value indexes a value in one way. Arrays count as their elements.
func (x *indexer) value(v bson.RawValue, f *Field, path string, c Context, d *Doc) {
	x.step(1)
	switch {
	case f.Type == "geo" && v.Type == bson.TypeEmbeddedDocument:
		d.add(path, Value{"geo", v})
		return
	case v.Type == bson.TypeArray:
		for item := range bson.Raw(v.Value).Values() {
			x.value(item, f, path, c, d)
		}
		return
	case v.Type == bson.TypeNull:
		if !slices.ContainsFunc(d.Values[path], func(v Value) bool { return v.Kind == "null" }) {
			d.add(path, Value{"null", v})
		}
		return
	}
	switch f.Type {
	case "document":
		if v.Type == bson.TypeEmbeddedDocument {
			d.has[path] = true
			x.walk(v.Value, f.Mapping, path, c, d)
		}
	case "embeddedDocuments":
		if v.Type == bson.TypeEmbeddedDocument {
			d.has[path] = true
			child := newDoc(v.Value)
			child.Parent, child.Ordinal = d, len(d.Children[path])
			d.Children[path] = append(d.Children[path], child)
			x.walk(v.Value, f.Mapping, path, x.def.Context(path), child)
		}
	case "string", "autocomplete":
		if s, ok := v.StringValue(); ok {
			d.has[path] = true
			x.text(s, f, path, c, d)
		}
	case "token":
		if s, ok := v.StringValue(); ok && len(s) <= 8181 {
			d.add(path, Value{"token", bsondoc.StringValue(f.Normal(s))})
		}
	case "number":
		real := v.Type == bson.TypeDouble
		if v.IsNumber() && v.Type != bson.TypeDecimal128 && (real && f.reals || !real && f.ints) {
			if n, ok := v.AsInt64(); f.long && ok {
				v = bsondoc.Int64Value(n)
			}
			d.add(path, Value{"number", v})
		}
	case "boolean":
		if v.Type == bson.TypeBoolean {
			d.add(path, Value{"boolean", v})
		}
	case "date":
		if v.Type == bson.TypeDateTime {
			d.add(path, Value{"date", v})
		}
	case "objectId":
		if v.Type == bson.TypeObjectID {
			d.add(path, Value{"objectId", v})
		}
	case "uuid":
		if b, ok := v.Binary(); ok && b.Subtype == bson.BinaryUUID {
			d.add(path, Value{"uuid", v})
		}
	}
}

func (d *Doc) add(path string, v Value) {
	d.has[path] = true
	d.Values[path] = append(d.Values[path], v)
}

// Normal returns a string as a token is kept.
func (f *Field) Normal(s string) string {
	if f.normalizer == "lowercase" {
		return strings.ToLower(s)
	}
	return s
}

// StringKey is the name of a field's text.
func (c Context) StringKey(path, multi string) string {
	if multi != "" {
		return c.Prefix() + "$multi/" + path + "." + multi
	}
	return c.Prefix() + "$type:string/" + path
}

// AutocompleteKey is the name of a field's text for autocompletion.
func (c Context) AutocompleteKey(path string) string {
	return c.Prefix() + "$type:autocomplete/" + path
}

func (x *indexer) text(s string, f *Field, path string, c Context, d *Doc) {
	if f.Type == "autocomplete" {
		d.append(c.AutocompleteKey(path), s, f.Grams(s), x.step)
		return
	}
	for name, m := range f.Multi {
		if !m.ignores(s) {
			d.append(c.StringKey(path, name), s, m.Analyzer.Tokens(s), x.step)
		}
	}
	if !f.ignores(s) {
		d.append(c.StringKey(path, ""), s, f.Analyzer.Tokens(s), x.step)
	}
}

func (f *Field) ignores(s string) bool {
	return f.ignoreAbove > 0 && utf8.RuneCountInString(s) > f.ignoreAbove || f.Analyzer.Keyword && len(s) > 32766
}

// append adds a string to a field's text.
func (d *Doc) append(key, source string, list []analysis.Token, step func(n int)) {
	t := d.Texts[key]
	if t == nil {
		t = &Text{Terms: map[string][]int{}}
		d.Texts[key] = t
	}
	base := 0
	if len(t.Sources) > 0 {
		base = t.last + elementGap
	}
	t.Sources = append(t.Sources, source)
	last := -1
	for _, tok := range list {
		step(1)
		if len(tok.Text) > 32766 {
			continue
		}
		if tok.Position != last {
			t.Length++
			last = tok.Position
		}
		t.Tokens++
		t.last = base + tok.Position
		t.Terms[tok.Text] = append(t.Terms[tok.Text], t.last)
		t.Marks = append(t.Marks, Mark{tok.Text, t.last, len(t.Sources) - 1, tok.Start, tok.End})
	}
}

// maxShingle is how many words a sequence has at most that autocompletion finds.
const maxShingle = 3

// Grams returns the terms that a field has for autocompletion of a text: parts of its words and of
// sequences of them.
func (f *Field) Grams(text string) []analysis.Token {
	var out []analysis.Token
	list := f.Words(text)
	for i := range list {
		joined := list[i]
		for n := 1; n <= maxShingle && i+n <= len(list); n++ {
			if n > 1 {
				joined.Text, joined.End = joined.Text+" "+list[i+n-1].Text, list[i+n-1].End
			}
			r := []rune(joined.Text)
			add := func(from, to int) {
				g := joined
				g.Text = string(r[from:to])
				out = append(out, g)
			}
			if len(r) < f.Min && n == 1 {
				add(0, len(r))
			}
			for size := f.Min; size <= min(f.Max, len(r)); size++ {
				switch f.Tokenization {
				case "edgeGram":
					add(0, size)
				case "rightEdgeGram":
					add(len(r)-size, len(r))
				case "nGram":
					for from := 0; from+size <= len(r); from++ {
						add(from, from+size)
					}
				}
			}
		}
	}
	return out
}

// Words returns the words of a text as autocompletion sees them.
func (f *Field) Words(text string) []analysis.Token {
	list := f.Analyzer.Tokens(text)
	if f.Fold {
		for i := range list {
			list[i].Text = withoutMarks(list[i].Text)
		}
	}
	return list
}

func withoutMarks(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return analysis.Fold(norm.NFC.String(s))
		}
	}
	return s
}

func itoa(n int) string { return strconv.Itoa(n) }
