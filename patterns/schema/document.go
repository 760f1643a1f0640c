package schema

// Declarations as the server's commands have them, and back. One table for each kind of declaration
// says where each field of a command stands in the Go type. A test holds the tables to what the
// driver sends.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/collation"
)

// setting is a field of a command. at returns a pointer to its place in a declaration.
type setting[T any] struct {
	key string
	at  func(*T) any
}

// createOptions are the fields of the command create.
var createOptions = []setting[allium.CreateCollectionOptions]{
	{"capped", func(o *allium.CreateCollectionOptions) any { return &o.Capped }},
	{"size", func(o *allium.CreateCollectionOptions) any { return &o.SizeInBytes }},
	{"max", func(o *allium.CreateCollectionOptions) any { return &o.MaxDocuments }},
	{"validator", func(o *allium.CreateCollectionOptions) any { return &o.Validator }},
	{"validationLevel", func(o *allium.CreateCollectionOptions) any { return (*string)(&o.ValidationLevel) }},
	{"validationAction", func(o *allium.CreateCollectionOptions) any { return (*string)(&o.ValidationAction) }},
	{"collation", func(o *allium.CreateCollectionOptions) any { return &o.Collation }},
	{"viewOn", func(o *allium.CreateCollectionOptions) any { return &o.ViewOn }},
	{"pipeline", func(o *allium.CreateCollectionOptions) any { return &o.Pipeline }},
	{"timeseries", func(o *allium.CreateCollectionOptions) any { return &o.TimeSeries }},
	{"expireAfterSeconds", func(o *allium.CreateCollectionOptions) any { return &o.ExpireAfter }},
	{"clusteredIndex", func(o *allium.CreateCollectionOptions) any { return &o.ClusteredIndex }},
	{"changeStreamPreAndPostImages", func(o *allium.CreateCollectionOptions) any {
		return (*images)(&o.PreAndPostImages)
	}},
	{"idIndex", func(o *allium.CreateCollectionOptions) any { return &o.IDIndex }},
	{"storageEngine", func(o *allium.CreateCollectionOptions) any { return &o.StorageEngine }},
	{"indexOptionDefaults", func(o *allium.CreateCollectionOptions) any { return &o.IndexOptionDefaults }},
	{"encryptedFields", func(o *allium.CreateCollectionOptions) any { return &o.EncryptedFields }},
}

// indexOptions are the fields of an index in the command createIndexes.
var indexOptions = []setting[allium.IndexModel]{
	{"key", func(m *allium.IndexModel) any { return &m.Keys }},
	{"name", func(m *allium.IndexModel) any { return &m.Name }},
	{"unique", func(m *allium.IndexModel) any { return &m.Unique }},
	{"sparse", func(m *allium.IndexModel) any { return &m.Sparse }},
	{"hidden", func(m *allium.IndexModel) any { return &m.Hidden }},
	{"clustered", func(m *allium.IndexModel) any { return &m.Clustered }},
	{"background", func(m *allium.IndexModel) any { return &m.Background }},
	{"expireAfterSeconds", func(m *allium.IndexModel) any { return &m.ExpireAfter }},
	{"partialFilterExpression", func(m *allium.IndexModel) any { return &m.PartialFilter }},
	{"weights", func(m *allium.IndexModel) any { return &m.Weights }},
	{"wildcardProjection", func(m *allium.IndexModel) any { return &m.WildcardProjection }},
	{"storageEngine", func(m *allium.IndexModel) any { return &m.StorageEngine }},
	{"collation", func(m *allium.IndexModel) any { return &m.Collation }},
	{"default_language", func(m *allium.IndexModel) any { return &m.DefaultLanguage }},
	{"language_override", func(m *allium.IndexModel) any { return &m.LanguageOverride }},
	{"textIndexVersion", func(m *allium.IndexModel) any { return &m.TextVersion }},
	{"2dsphereIndexVersion", func(m *allium.IndexModel) any { return &m.SphereVersion }},
	{"bits", func(m *allium.IndexModel) any { return &m.Bits }},
	{"v", func(m *allium.IndexModel) any { return &m.Version }},
	{"min", func(m *allium.IndexModel) any { return &m.Min }},
	{"max", func(m *allium.IndexModel) any { return &m.Max }},
}

// searchOptions are the fields of an index in the command createSearchIndexes.
var searchOptions = []setting[allium.SearchIndexModel]{
	{"name", func(m *allium.SearchIndexModel) any { return &m.Name }},
	{"type", func(m *allium.SearchIndexModel) any { return &m.Type }},
	{"definition", func(m *allium.SearchIndexModel) any { return &m.Definition }},
}

// collationOptions are the fields of a collation.
var collationOptions = []setting[allium.Collation]{
	{"locale", func(c *allium.Collation) any { return &c.Locale }},
	{"caseFirst", func(c *allium.Collation) any { return (*string)(&c.CaseFirst) }},
	{"alternate", func(c *allium.Collation) any { return (*string)(&c.Alternate) }},
	{"maxVariable", func(c *allium.Collation) any { return (*string)(&c.MaxVariable) }},
	{"strength", func(c *allium.Collation) any { return (*strength)(&c.Strength) }},
	{"caseLevel", func(c *allium.Collation) any { return &c.CaseLevel }},
	{"numericOrdering", func(c *allium.Collation) any { return &c.NumericOrdering }},
	{"normalization", func(c *allium.Collation) any { return &c.Normalization }},
	{"backwards", func(c *allium.Collation) any { return &c.Backwards }},
}

type (
	// images is a switch that the server keeps in a document, {enabled: true}.
	images *bool
	// strength is that of a collation.
	strength collation.Strength
)

// document returns a declaration as a document: the fields that are set.
func document[T any](options []setting[T], from *T) (bson.Raw, error) {
	start, doc := bson.BeginDocument(nil)
	var err error
	for _, o := range options {
		if doc, err = appendOption(doc, o.key, o.at(from)); err != nil {
			return nil, fmt.Errorf("%s: %w", o.key, err)
		}
	}
	return bson.EndDocument(doc, start), nil
}

func appendOption(doc []byte, key string, at any) ([]byte, error) {
	switch p := at.(type) {
	case *bool:
		if *p {
			doc = bson.AppendBool(doc, key, true)
		}
	case **bool:
		if *p != nil {
			doc = bson.AppendBool(doc, key, **p)
		}
	case *images:
		if *p != nil {
			start, in := bson.BeginDocumentElement(doc, key)
			doc = bson.EndDocument(bson.AppendBool(in, "enabled", **p), start)
		}
	case *string:
		if *p != "" {
			doc = bson.AppendString(doc, key, *p)
		}
	case *int32:
		if *p != 0 {
			doc = bson.AppendInt32(doc, key, *p)
		}
	case *int64:
		if *p != 0 {
			doc = bson.AppendInt64(doc, key, *p)
		}
	case *strength:
		if *p != 0 {
			doc = bson.AppendInt32(doc, key, int32(*p))
		}
	case **float64:
		if *p != nil {
			doc = bson.AppendDouble(doc, key, **p)
		}
	case **time.Duration:
		if *p != nil {
			doc = bson.AppendInt64(doc, key, int64(**p/time.Second))
		}
	case **allium.Collation:
		if *p != nil {
			c, err := document(collationOptions, *p)
			return bson.AppendDocument(doc, key, c), err
		}
	case *any:
		if *p == nil {
			return doc, nil
		}
		v, err := bson.MarshalValue(*p)
		if err != nil {
			return doc, err
		}
		if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
			return doc, fmt.Errorf("it is a %s, want a document", v.Type)
		}
		return bson.AppendRawValue(doc, key, v), nil
	default:
		panic(fmt.Sprintf("schema: an option of type %T", at))
	}
	return doc, nil
}

// readFields fills a declaration from a document. Fields that it does not know are passed over.
func readFields[T any](options []setting[T], into *T, doc bson.Raw) error {
	for _, o := range options {
		v := doc.Lookup(o.key)
		if v.IsZero() {
			continue
		}
		if err := readOption(o.at(into), v); err != nil {
			return fmt.Errorf("%s: %w", o.key, err)
		}
	}
	return nil
}

// known returns an error for a field that no row of a table has.
func known[T any](options []setting[T], doc bson.Raw) error {
	for key := range doc.All() {
		if !slices.ContainsFunc(options, func(o setting[T]) bool { return o.key == key }) {
			return fmt.Errorf("there is no option %q", key)
		}
	}
	return nil
}

func readOption(at any, v bson.RawValue) error {
	number := func() int64 {
		n, _ := v.AsInt64()
		if f, ok := v.Double(); ok {
			n = int64(f)
		}
		return n
	}
	switch p := at.(type) {
	case *bool:
		*p = v.AsBool()
	case **bool:
		*p = new(v.AsBool())
	case *images:
		doc, _ := v.Document()
		*p = new(doc.Lookup("enabled").AsBool())
	case *string:
		*p, _ = v.StringValue()
	case *int32:
		*p = int32(number())
	case *int64:
		*p = number()
	case *strength:
		*p = strength(number())
	case **float64:
		f, ok := v.Double()
		if !ok {
			f = float64(number())
		}
		*p = &f
	case **time.Duration:
		if v.IsNumber() {
			const most = int64(1<<63-1) / int64(time.Second)
			*p = new(time.Duration(min(max(number(), 0), most)) * time.Second)
		}
	case **allium.Collation:
		doc, ok := v.Document()
		if !ok {
			return fmt.Errorf("it is a %s, want a document", v.Type)
		}
		*p = new(allium.Collation)
		return readFields(collationOptions, *p, doc)
	case *any:
		if v.Type == bson.TypeBoolean { // a clustered collection of a time series, which is the server's
			return nil
		}
		return bson.Options{AllowInvalidUTF8: true}.UnmarshalValue(v, p)
	default:
		panic(fmt.Sprintf("schema: an option of type %T", at))
	}
	return nil
}

// encode returns a value of a declaration as a document, nil if it is none.
func encode(v any) bson.Raw {
	if v == nil {
		return nil
	}
	raw, err := bson.MarshalValue(v)
	if err != nil {
		return nil
	}
	doc, _ := raw.Document()
	return doc
}

// indexName returns the name that an index has, or that the driver gives it.
func indexName(spec bson.Raw) string {
	if name, ok := spec.Lookup("name").StringValue(); ok && name != "" {
		return name
	}
	key, _ := spec.Lookup("key").Document()
	var parts []string
	for k, v := range key.All() {
		if s, ok := v.StringValue(); ok {
			parts = append(parts, k, s)
		} else {
			parts = append(parts, k, strings.TrimSuffix(strings.Trim(v.String(), `"`), ".0"))
		}
	}
	return strings.Join(parts, "_")
}

// written returns an index as a program declares it: servers list the fields of a text index in its
// weights alone, and add what was not given.
func written(spec bson.Raw) bson.Raw {
	key, _ := spec.Lookup("key").Document()
	weights, _ := spec.Lookup("weights").Document()
	text := !key.Lookup("_fts").IsZero()
	start, doc := bson.BeginDocument(nil)
	for k, v := range spec.All() {
		s, _ := v.StringValue()
		n, _ := v.AsInt64()
		switch {
		case k == "v" && n == 2, k == "2dsphereIndexVersion" && n == 3, k == "textIndexVersion" && n == 3,
			k == "default_language" && s == "english", k == "language_override" && s == "language":
			continue
		case k == "key" && text:
			v = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: textKey(key, weights)}
		case k == "weights":
			var rest []byte
			at, rest := bson.BeginDocument(nil)
			for path, w := range weights.All() {
				if n, _ := w.AsInt64(); n != 1 {
					rest = bson.AppendRawValue(rest, path, w)
				}
			}
			if rest = bson.EndDocument(rest, at); bson.Raw(rest).IsEmpty() {
				continue
			}
			v.Value = rest
		}
		doc = bson.AppendRawValue(doc, k, v)
	}
	return bson.EndDocument(doc, start)
}

// textKey puts the fields of a text index into its key pattern.
func textKey(key, weights bson.Raw) bson.Raw {
	start, doc := bson.BeginDocument(nil)
	for k, v := range key.All() {
		switch k {
		case "_fts":
			for path := range weights.All() {
				doc = bson.AppendString(doc, path, "text")
			}
		case "_ftsx":
		default:
			doc = bson.AppendRawValue(doc, k, v)
		}
	}
	return bson.EndDocument(doc, start)
}

// documents returns a schema as documents.
func documents(s Schema) ([]bson.D, error) {
	list := []bson.D{}
	for _, c := range s.Collections {
		d := bson.D{{Key: "name", Value: c.Name}}
		options, err := document(createOptions, &c.Options)
		if err != nil {
			return nil, fmt.Errorf("schema: collection %q: %w", c.Name, err)
		}
		if !options.IsEmpty() {
			d = append(d, bson.E{Key: "options", Value: options})
		}
		indexes, err := all(indexOptions, c.Indexes)
		if err != nil {
			return nil, fmt.Errorf("schema: collection %q: index: %w", c.Name, err)
		}
		if indexes != nil {
			d = append(d, bson.E{Key: "indexes", Value: indexes})
		}
		if indexes, err = all(searchOptions, c.SearchIndexes); err != nil {
			return nil, fmt.Errorf("schema: collection %q: search index: %w", c.Name, err)
		}
		if indexes != nil {
			d = append(d, bson.E{Key: "searchIndexes", Value: indexes})
		}
		list = append(list, d)
	}
	return list, nil
}

func all[T any](options []setting[T], from []T) (docs []bson.Raw, err error) {
	for i := range from {
		doc, err := document(options, &from[i])
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}
