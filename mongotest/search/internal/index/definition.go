// Package index keeps documents as a search index does: which of their fields, in which forms, and
// what of all of them scores are made of. A Definition says what is indexed; an Index has the
// documents of a collection at one moment.
//
// Nothing is inverted: a query looks at each document's terms. Statistics are kept for all, so that
// a score is the same as if they came from posting lists; see docs/search.md for the figures.
package index

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/search/internal/analysis"
)

// Definition is what an index of type "search" consists of.
type Definition struct {
	root     *Mapping
	analyze  *analysis.Analyzer
	asked    *analysis.Analyzer // of queries; nil: the same
	set      *analysis.Set
	Stored   *Stored // nil: nothing is
	Synonyms map[string]*Synonyms
}

// Mapping says how the fields of documents are indexed.
type Mapping struct {
	dynamic []*Field // the types that fields are indexed as which Fields do not name; nil: none
	fields  map[string][]*Field
}

// Field is one way in which a field is indexed.
type Field struct {
	Type string

	// Of strings and autocompletion.
	Analyzer, SearchAnalyzer *analysis.Analyzer
	Multi                    map[string]*Field
	Options                  string // indexOptions
	NoNorms                  bool
	Similarity               string
	ignoreAbove              int
	// Of autocompletion.
	Min, Max     int
	Tokenization string
	Fold         bool

	normalizer  string // of tokens
	ints, reals bool   // of numbers
	long        bool   // numbers are kept as integers
	Shapes      bool   // of geo

	Mapping *Mapping // of documents and embeddedDocuments
	Stored  *Stored  // of embeddedDocuments
}

// Stored says which fields an index keeps beside what it searches.
type Stored struct {
	all     bool
	include bool // the paths are those kept, not those left out
	paths   []string
}

// Synonyms is where the synonyms of a name are.
type Synonyms struct {
	Collection string
	Analyzer   *analysis.Analyzer
}

func invalid(format string, args ...any) error {
	return srverr.New(srverr.UnknownError, format, args...)
}

// ParseDefinition reads the definition of an index of type "search".
func ParseDefinition(doc bson.Raw) (*Definition, error) {
	d := &Definition{}
	p := &parser{doc: doc}
	for key := range doc.All() {
		switch key {
		case "analyzer", "searchAnalyzer", "analyzers", "mappings", "storedSource", "synonyms", "numPartitions",
			"typeSets", "name", "sort":
		default:
			return nil, invalid("unrecognized field \"%s\"", key)
		}
	}
	var err error
	if d.set, err = analysis.NewSet(doc.Lookup("analyzers")); err != nil {
		return nil, err
	}
	p.set = d.set
	if d.analyze, err = p.analyzer(doc, "analyzer", "lucene.standard"); err != nil {
		return nil, err
	}
	if d.asked, err = p.analyzer(doc, "searchAnalyzer", ""); err != nil {
		return nil, err
	}
	p.analyze, p.asked = d.analyze, d.asked
	mappings, ok := doc.Lookup("mappings").Document()
	if !ok {
		return nil, invalid("Attribute mappings missing.")
	}
	if d.root, err = p.mapping(mappings, "mappings"); err != nil {
		return nil, err
	}
	if d.Stored, err = ParseStored(doc.Lookup("storedSource")); err != nil {
		return nil, err
	}
	d.Synonyms = map[string]*Synonyms{}
	if v := doc.Lookup("synonyms"); v.Type != 0 {
		list, ok := v.Array()
		if !ok {
			return nil, invalid("\"synonyms\" must be an array")
		}
		for item := range list.Values() {
			if err := d.synonyms(p, item); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

func (d *Definition) synonyms(p *parser, v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return invalid("\"synonyms\" must be an array of documents")
	}
	name, _ := doc.Lookup("name").StringValue()
	from, _ := doc.Lookup("source", "collection").StringValue()
	switch {
	case name == "":
		return invalid("\"synonyms.name\" cannot be empty")
	case from == "":
		return invalid("\"synonyms.source.collection\" cannot be empty")
	case d.Synonyms[name] != nil:
		return invalid("\"synonyms\" names must be unique: \"%s\"", name)
	case doc.Lookup("analyzer").Type == 0:
		return invalid("\"synonyms.analyzer\" is required")
	}
	a, err := p.analyzer(doc, "analyzer", "")
	if err != nil {
		return err
	}
	if a.Graph {
		return invalid("\"synonyms.analyzer\": analyzer \"%s\" produces graphs and cannot be used with synonyms",
			a.Name)
	}
	d.Synonyms[name] = &Synonyms{from, a}
	return nil
}

// parser is what the parts of a definition are read with.
type parser struct {
	doc            bson.Raw
	set            *analysis.Set
	analyze, asked *analysis.Analyzer
	depth          int
}

func (p *parser) analyzer(doc bson.Raw, field, otherwise string) (*analysis.Analyzer, error) {
	v := doc.Lookup(field)
	name, ok := v.StringValue()
	switch {
	case v.Type == 0 && otherwise == "":
		return nil, nil
	case v.Type == 0:
		name = otherwise
	case !ok:
		return nil, invalid("\"%s\" must be a string", field)
	}
	return p.set.Get(name)
}

// maxDepth is how deep mappings nest in others.
const maxDepth = 100

func (p *parser) mapping(doc bson.Raw, path string) (*Mapping, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, invalid("\"%s\" is nested too deeply", path)
	}
	defer func() { p.depth-- }()
	m := &Mapping{fields: map[string][]*Field{}}
	switch v := doc.Lookup("dynamic"); v.Type {
	case 0:
	case bson.TypeBoolean:
		if v.AsBool() {
			m.dynamic = p.defaultTypes()
		}
	case bson.TypeEmbeddedDocument:
		set, _ := bson.Raw(v.Value).Lookup("typeSet").StringValue()
		var err error
		if m.dynamic, err = p.typeSet(set, path); err != nil {
			return nil, err
		}
	default:
		return nil, invalid("\"%s.dynamic\" must be a boolean", path)
	}
	v := doc.Lookup("fields")
	if v.Type == 0 {
		return m, nil
	}
	fields, ok := v.Document()
	if !ok {
		return nil, invalid("\"%s.fields\" must be a document", path)
	}
	for name, v := range fields.All() {
		where := path + ".fields." + name
		specs := []bson.RawValue{v}
		if list, ok := v.Array(); ok {
			specs = slices.Collect(list.Values())
		}
		for _, v := range specs {
			spec, ok := v.Document()
			if !ok {
				return nil, invalid("\"%s\" must be a document or an array of documents", where)
			}
			f, err := p.field(spec, where)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(m.fields[name], func(x *Field) bool { return x.Type == f.Type }) {
				return nil, invalid("\"%s\" has type \"%s\" twice", where, f.Type)
			}
			m.fields[name] = append(m.fields[name], f)
		}
	}
	return m, nil
}

// defaultTypes are those that dynamic mappings index.
func (p *parser) defaultTypes() []*Field {
	return []*Field{{Type: "boolean"}, {Type: "date"}, {Type: "number", ints: true, reals: true}, {Type: "objectId"},
		{Type: "uuid"},
		{Type: "string", Analyzer: p.analyze, SearchAnalyzer: p.asked, Options: "offsets"}}
}

func (p *parser) typeSet(name, path string) ([]*Field, error) {
	sets, _ := p.doc.Lookup("typeSets").Array()
	for item := range sets.Values() {
		doc, _ := item.Document()
		if n, _ := doc.Lookup("name").StringValue(); n != name || name == "" {
			continue
		}
		types, _ := doc.Lookup("types").Array()
		list := []*Field{}
		for v := range types.Values() {
			spec, ok := v.Document()
			if !ok {
				return nil, invalid("\"typeSets.types\" must be an array of documents")
			}
			f, err := p.field(spec, "typeSets.types")
			if err != nil {
				return nil, err
			}
			if f.Mapping != nil {
				return nil, invalid("\"typeSets.types.type\" cannot be \"%s\"", f.Type)
			}
			if slices.ContainsFunc(list, func(x *Field) bool { return x.Type == f.Type }) {
				return nil, invalid("\"typeSets.types\" has type \"%s\" twice", f.Type)
			}
			list = append(list, f)
		}
		return list, nil
	}
	return nil, invalid("\"%s.dynamic.typeSet\": there is no typeSet \"%s\"", path, name)
}

// replaced are types that other types have replaced.
var replaced = map[string]string{"stringFacet": "token", "numberFacet": "number", "dateFacet": "date"}

func (p *parser) field(doc bson.Raw, path string) (f *Field, err error) {
	kind, _ := doc.Lookup("type").StringValue()
	if to := replaced[kind]; to != "" {
		kind = to
	}
	f = &Field{Type: kind}
	switch kind {
	case "boolean", "date", "objectId", "uuid":
	case "geo":
		f.Shapes = doc.Lookup("indexShapes").AsBool()
	case "number":
		return f, f.number(doc, path)
	case "token":
		f.normalizer = "none"
		if v := doc.Lookup("normalizer"); v.Type != 0 {
			if f.normalizer, _ = v.StringValue(); f.normalizer != "none" && f.normalizer != "lowercase" {
				return nil, invalid("\"%s.normalizer\" must be one of [lowercase, none]", path)
			}
		}
	case "string":
		return f, p.text(f, doc, path, true)
	case "autocomplete":
		return f, p.autocomplete(f, doc, path)
	case "document":
		f.Mapping, err = p.mapping(doc, path)
	case "embeddedDocuments":
		if f.Mapping, err = p.mapping(doc, path); err == nil {
			f.Stored, err = ParseStored(doc.Lookup("storedSource"))
		}
	case "knnVector", "vector":
		return nil, invalid("\"%s.type\": \"%s\" is not built into this deployment: make an index of type vectorSearch",
			path, kind)
	default:
		return nil, invalid(
			"\"%s.type\" must be one of [autocomplete, boolean, date, document, embeddedDocuments, geo, number, objectId, string, token, uuid]", path)
	}
	return f, err
}

func (f *Field) number(doc bson.Raw, path string) error {
	f.ints, f.reals = true, true
	if v := doc.Lookup("indexIntegers"); v.Type != 0 {
		f.ints = v.AsBool()
	}
	if v := doc.Lookup("indexDoubles"); v.Type != 0 {
		f.reals = v.AsBool()
	}
	if v := doc.Lookup("representation"); v.Type != 0 {
		s, _ := v.StringValue()
		if s != "int64" && s != "double" {
			return invalid("\"%s.representation\" must be one of [int64, double]", path)
		}
		f.long = s == "int64"
	}
	if !f.ints && !f.reals {
		return invalid("\"%s\": one of \"indexIntegers\" and \"indexDoubles\" must be true", path)
	}
	return nil
}

func (p *parser) text(f *Field, doc bson.Raw, path string, multi bool) (err error) {
	if f.Analyzer, err = p.analyzer(doc, "analyzer", ""); err != nil {
		return err
	}
	if f.SearchAnalyzer, err = p.analyzer(doc, "searchAnalyzer", ""); err != nil {
		return err
	}
	if f.Analyzer == nil {
		f.Analyzer = p.analyze
		if f.SearchAnalyzer == nil {
			f.SearchAnalyzer = p.asked
		}
	}
	f.Options, f.Similarity = "offsets", "bm25"
	if v := doc.Lookup("indexOptions"); v.Type != 0 {
		f.Options, _ = v.StringValue()
	}
	if !slices.Contains([]string{"docs", "freqs", "positions", "offsets"}, f.Options) {
		return invalid("\"%s.indexOptions\" must be one of [docs, freqs, positions, offsets]", path)
	}
	switch s, _ := doc.Lookup("norms").StringValue(); s {
	case "", "include":
	case "omit":
		f.NoNorms = true
	default:
		return invalid("\"%s.norms\" must be one of [include, omit]", path)
	}
	if err := f.similarity(doc, path); err != nil {
		return err
	}
	if n, ok := doc.Lookup("ignoreAbove").AsInt64(); ok {
		f.ignoreAbove = int(max(0, min(n, 1<<30)))
	}
	v := doc.Lookup("multi")
	if v.Type == 0 {
		return nil
	}
	list, ok := v.Document()
	if !ok || !multi {
		return invalid("\"%s.multi\" must be a document, and cannot be nested", path)
	}
	f.Multi = map[string]*Field{}
	for name, v := range list.All() {
		spec, ok := v.Document()
		if kind, _ := spec.Lookup("type").StringValue(); !ok || kind != "string" {
			return invalid("\"%s.multi.%s\" must be of type string", path, name)
		}
		m := &Field{Type: "string"}
		if err := p.text(m, spec, path+".multi."+name, false); err != nil {
			return err
		}
		f.Multi[name] = m
	}
	return nil
}

func (f *Field) similarity(doc bson.Raw, path string) error {
	v := doc.Lookup("similarity")
	if v.Type == 0 {
		return nil
	}
	spec, _ := v.Document()
	switch f.Similarity, _ = spec.Lookup("type").StringValue(); f.Similarity {
	case "bm25", "boolean":
		return nil
	case "stableTfl":
		return invalid("\"%s.similarity.type\": \"stableTfl\" is not built into this deployment", path)
	}
	return invalid("\"%s.similarity.type\" must be one of [bm25, boolean, stableTfl]", path)
}

func (p *parser) autocomplete(f *Field, doc bson.Raw, path string) (err error) {
	if f.Analyzer, err = p.analyzer(doc, "analyzer", "lucene.standard"); err != nil {
		return err
	}
	if f.Analyzer.Graph {
		return invalid("\"%s.analyzer\": analyzer \"%s\" produces graphs and cannot be used with autocomplete", path,
			f.Analyzer.Name)
	}
	f.Min, f.Max, f.Tokenization, f.Fold, f.Options, f.Similarity = 2, 15, "edgeGram", true, "offsets", "bm25"
	if n, ok := doc.Lookup("minGrams").AsInt64(); ok {
		f.Min = int(n)
	}
	if n, ok := doc.Lookup("maxGrams").AsInt64(); ok {
		f.Max = int(n)
	}
	if f.Min < 1 || f.Max < f.Min || f.Max > 1000 {
		return invalid("\"%s.maxGrams\" must be greater than or equal to \"minGrams\"", path)
	}
	if v := doc.Lookup("tokenization"); v.Type != 0 {
		f.Tokenization, _ = v.StringValue()
	}
	if !slices.Contains([]string{"edgeGram", "rightEdgeGram", "nGram"}, f.Tokenization) {
		return invalid("\"%s.tokenization\" must be one of [edgeGram, rightEdgeGram, nGram]", path)
	}
	if b, ok := doc.Lookup("foldDiacritics").Boolean(); ok {
		f.Fold = b
	}
	return f.similarity(doc, path)
}

func ParseStored(v bson.RawValue) (*Stored, error) {
	switch v.Type {
	case 0, bson.TypeNull:
		return nil, nil
	case bson.TypeBoolean:
		if v.AsBool() {
			return &Stored{all: true}, nil
		}
		return nil, nil
	}
	doc, _ := v.Document()
	s := &Stored{include: doc.Lookup("include").Type != 0}
	list := doc.Lookup("exclude")
	if s.include {
		list = doc.Lookup("include")
	}
	paths, ok := list.Array()
	if !ok || s.include && doc.Lookup("exclude").Type != 0 {
		return nil, invalid("\"storedSource\" must be a boolean, or have either \"include\" or \"exclude\"")
	}
	for item := range paths.Values() {
		path, ok := item.StringValue()
		if !ok || path == "" {
			return nil, invalid("\"storedSource\" must name fields")
		}
		s.paths = append(s.paths, path)
	}
	return s, nil
}

// Apply returns what is kept of a document. Its _id always is.
func (s *Stored) Apply(doc bson.Raw) bson.Raw {
	if s.all {
		return doc
	}
	return s.part(doc, "")
}

func (s *Stored) part(doc bson.Raw, prefix string) bson.Raw {
	at, out := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		path := prefix + key
		whole, some := path == "_id" && prefix == "", false
		for _, p := range s.paths {
			whole = whole || p == path
			some = some || strings.HasPrefix(p, path+".")
		}
		switch {
		case whole && (s.include || path == "_id"), !s.include && !whole && !some:
			out = bson.AppendRawValue(out, key, v)
		case some && v.Type == bson.TypeEmbeddedDocument:
			out = bson.AppendDocument(out, key, s.part(v.Value, path+"."))
		case some && v.Type == bson.TypeArray:
			from, next := bson.BeginArrayElement(out, key)
			n := 0
			for item := range bson.Raw(v.Value).Values() {
				switch sub, ok := item.Document(); {
				case ok:
					next = append(bson.AppendIndexHeader(next, bson.TypeEmbeddedDocument, n), s.part(sub, path+".")...)
				case s.include:
					continue
				default:
					next = append(bson.AppendIndexHeader(next, item.Type, n), item.Value...)
				}
				n++
			}
			out = bson.EndDocument(next, from)
		case some && !s.include:
			out = bson.AppendRawValue(out, key, v)
		}
	}
	return bson.EndDocument(out, at)
}

// Context is where a query looks: at documents, or at those embedded at a path.
type Context struct {
	def  *Definition
	Path string // empty: documents
}

// Context returns the one of a path; empty: documents themselves.
func (d *Definition) Context(path string) Context { return Context{d, path} }

// Prefix is what the names of the context's fields begin with.
func (c Context) Prefix() string {
	if c.Path == "" {
		return ""
	}
	return "$embedded:" + itoa(len(c.Path)) + "/" + c.Path + "/"
}

// Fields returns the ways in which a path is indexed in the context.
func (c Context) Fields(path string) (list []*Field) {
	c.def.root.resolve(strings.Split(path, "."), "", "", c.Path, func(f *Field) { list = append(list, f) })
	return list
}

// Field returns the way of a type in which a path is indexed, nil if it is not.
func (c Context) Field(path, kind string) *Field {
	for _, f := range c.Fields(path) {
		if f.Type == kind {
			return f
		}
	}
	return nil
}

// Embedded reports whether documents embedded at a path are indexed as such.
func (c Context) Embedded(path string) bool {
	return c.Field(path, "embeddedDocuments") != nil
}

// resolve visits the definitions of a path. at is where the mapping stands, inner the last path
// before it whose documents are indexed for themselves, and want the one that has to be it.
func (m *Mapping) resolve(parts []string, at, inner, want string, visit func(f *Field)) {
	path := join(at, parts[0])
	fields, static := m.fields[parts[0]]
	if len(parts) == 1 {
		if inner != want {
			return
		}
		if !static {
			fields = m.dynamic
		}
		for _, f := range fields {
			visit(f)
		}
		return
	}
	for _, f := range fields {
		switch f.Type {
		case "document":
			f.Mapping.resolve(parts[1:], path, inner, want, visit)
		case "embeddedDocuments":
			f.Mapping.resolve(parts[1:], path, path, want, visit)
		}
	}
	if !static && m.dynamic != nil {
		(&Mapping{dynamic: m.dynamic}).resolve(parts[1:], path, inner, want, visit)
	}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "." + b
}
