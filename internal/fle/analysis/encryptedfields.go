package analysis

import (
	"fmt"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/fle"
)

const (
	defaultContention = 8
	safeContent       = "__safeContent__"
)

// ParseEncryptedFields returns the Schema for the encryptedFields of the collection called
// namespace. A field with a keyAltName instead of a keyId can be analysed once the name is
// resolved, not before.
func ParseEncryptedFields(namespace string, encryptedFields bson.Raw) (*Schema, error) {
	p := fieldParser{namespace: namespace}
	if err := encryptedFields.Validate(); err != nil {
		return nil, p.invalid(err.Error())
	}
	s := &Schema{namespace: namespace, queryable: true, source: encryptedFields}
	if v := encryptedFields.Lookup("strEncodeVersion"); !v.IsZero() {
		if n, ok := v.AsInt64(); !ok || n != 1 && n != 0 {
			return nil, p.invalid("strEncodeVersion is not 1, the only one that there is")
		}
	}
	v := encryptedFields.Lookup("fields")
	if v.IsZero() {
		return s, nil
	}
	fields, ok := v.Array()
	if !ok {
		return nil, p.invalid("'fields' must be an array")
	}
	var paths []string
	keys := map[fieldKey]string{}
	for v := range fields.Values() {
		doc, ok := v.Document()
		if !ok {
			return nil, p.invalid("'fields' must be an array of objects")
		}
		e, path, err := p.field(doc)
		if err != nil {
			return nil, err
		}
		for _, other := range paths {
			if other == path || strings.HasPrefix(other, path+".") || strings.HasPrefix(path, other+".") {
				return nil, p.invalidField(path, "it is the field '"+other+"', above it or below it")
			}
		}
		// Tokens are derived from keys: with one key for two fields, equal values in them could be
		// told to be equal.
		key := fieldKey{e.KeyID, e.KeyAltName}
		if other, ok := keys[key]; ok {
			return nil, p.invalidField(path,
				"Duplicate key ids are not allowed: the field '"+other+"' has the same key")
		}
		keys[key] = path
		paths = append(paths, path)
		s.root = s.root.with(path, &node{enc: e})
	}
	return s, nil
}

// fieldKey is the key of a field: its id or its name.
type fieldKey struct {
	id   bson.UUID
	name string
}

type fieldParser struct{ namespace string }

func (p *fieldParser) invalid(reason string) error {
	return &Error{Namespace: p.namespace, Reason: "Invalid encryptedFields: " + reason}
}

func (p *fieldParser) invalidField(path, reason string) error {
	return &Error{Namespace: p.namespace, Path: path, Reason: "Invalid encryptedFields: " + reason}
}

// field parses one of fields. Names that it does not know are ignored, as libmongocrypt does.
func (p *fieldParser) field(doc bson.Raw) (*Encryption, string, error) {
	path, ok := doc.Lookup("path").StringValue()
	switch {
	case !ok:
		return nil, "", p.invalid("a field needs a 'path', a string")
	case path == "_id" || strings.HasPrefix(path, "_id."):
		return nil, "", p.invalidField(path, "the field '_id' cannot be encrypted")
	case path == safeContent || strings.HasPrefix(path, safeContent+"."):
		return nil, "", p.invalidField(path, "the field is reserved")
	}
	for key := range strings.SplitSeq(path, ".") {
		if key == "" || strings.HasPrefix(key, "$") || isIndex(key) {
			return nil, "", p.invalidField(path, fmt.Sprintf("%q cannot be a part of a path", key))
		}
	}
	e := &Encryption{Kind: Unindexed, namespace: p.namespace}
	if v := doc.Lookup("keyId"); !v.IsZero() {
		if e.KeyID, ok = uuid(v); !ok {
			return nil, "", p.invalidField(path, "'keyId' must be a UUID, a binary of subtype 4")
		}
		if !doc.Lookup("keyAltName").IsZero() {
			return nil, "", p.invalidField(path, "'keyId' and 'keyAltName' exclude each other")
		}
	} else if e.KeyAltName, _ = doc.Lookup("keyAltName").StringValue(); e.KeyAltName == "" {
		return nil, "", p.invalidField(path, "it needs a 'keyId' or 'keyAltName'")
	}
	if v := doc.Lookup("bsonType"); !v.IsZero() {
		name, _ := v.StringValue()
		t := typeNames[name]
		if t == 0 {
			return nil, "", p.invalidField(path, fmt.Sprintf("bsonType %q is not a type", name))
		}
		if singleValued(t) {
			return nil, "", p.invalidField(path, "Cannot encrypt element of type: "+name+", which has one value only")
		}
		e.types = typeSet{t}
	}
	v := doc.Lookup("queries")
	if v.IsZero() {
		return e, path, nil
	}
	queries := []bson.RawValue{v}
	if array, ok := v.Array(); ok {
		queries = slices.Collect(array.Values())
	}
	if len(queries) == 0 {
		return e, path, nil
	}
	if len(e.types) == 0 {
		return nil, "", p.invalidField(path, "a field with 'queries' needs a bsonType")
	}
	for i, v := range queries {
		doc, ok := v.Document()
		if !ok {
			return nil, "", p.invalidField(path, "'queries' must be an object or an array of objects")
		}
		if err := p.query(e, path, doc, i); err != nil {
			return nil, "", err
		}
	}
	return e, path, nil
}

// query adds one of queries, the i-th, to e.
func (p *fieldParser) query(e *Encryption, path string, doc bson.Raw, i int) error {
	r := &numbers{doc: doc}
	name, _ := doc.Lookup("queryType").StringValue()
	contention := r.get("contention", 0, defaultContention)
	t := e.types[0]
	var kind Kind
	switch name {
	case "equality":
		kind = Equality
		if !equatable(t, Equality) {
			return p.invalidField(path, "Cannot encrypt element of type: "+typeName(t)+" for equality queries")
		}
	case "range":
		kind = Range
		if err := p.rangeQuery(e, path, doc, r); err != nil {
			return err
		}
	case "prefix", "prefixPreview", "suffix", "suffixPreview", "substring", "substringPreview":
		kind = Text
		if t != bson.TypeString {
			return p.invalidField(path,
				"Cannot encrypt element of type: "+typeName(t)+" for "+name+" queries: they are for strings")
		}
		if err := p.textQuery(e, path, doc, strings.TrimSuffix(name, "Preview"), r, i); err != nil {
			return err
		}
	default:
		return p.invalidField(path, fmt.Sprintf("%q is not a query type", name))
	}
	switch {
	case r.wrong != "":
		return p.invalidField(path, "'"+r.wrong+"' is not a number that is allowed there")
	case i > 0 && (kind != Text || e.Kind != Text):
		return p.invalidField(path, "only prefix and suffix queries may stand together")
	case i > 0 && contention != e.contention:
		return p.invalidField(path, "prefix and suffix queries must have the same 'contention'")
	}
	e.Kind, e.contention = kind, contention
	return nil
}

func (p *fieldParser) rangeQuery(e *Encryption, path string, doc bson.Raw, r *numbers) error {
	t := e.types[0]
	e.sparsity = r.get("sparsity", 1, fle.DefaultSparsity)
	e.precision = r.optional("precision")
	e.trimFactor = r.optional("trimFactor")
	e.min, e.max = doc.Lookup("min"), doc.Lookup("max")
	if (t == bson.TypeDouble || t == bson.TypeDecimal128) && e.precision == nil {
		// Servers refuse bounds alone, which would bound nothing. They fill in those of the type.
		whole, err := fle.NewDomain(t, bson.RawValue{}, bson.RawValue{}, nil)
		if err != nil {
			return p.invalidField(path, err.Error())
		}
		least, greatest := whole.Bounds()
		if !e.min.IsZero() && !e.min.Equal(least) || !e.max.IsZero() && !e.max.Equal(greatest) {
			return p.invalidField(path, "'min', 'max' and 'precision' must be set together for doubles and decimals")
		}
	}
	if e.min.IsZero() != e.max.IsZero() {
		// A bound that is not there is the type's.
		whole, err := fle.NewDomain(t, bson.RawValue{}, bson.RawValue{}, nil)
		if err != nil {
			return p.invalidField(path, err.Error())
		}
		least, greatest := whole.Bounds()
		if e.min.IsZero() {
			e.min = least
		} else {
			e.max = greatest
		}
	}
	domain, err := fle.NewDomain(t, e.min, e.max, e.precision)
	if err != nil {
		return p.invalidField(path, err.Error())
	}
	if _, err := domain.Trim(e.trimFactor); err != nil {
		return p.invalidField(path, err.Error())
	}
	e.min, e.max = domain.Bounds()
	return nil
}

func (p *fieldParser) textQuery(e *Encryption, path string, doc bson.Raw, name string, r *numbers, i int) error {
	least := int32(r.get("strMinQueryLength", 1, 0))
	greatest := int32(r.get("strMaxQueryLength", 1, 0))
	if least == 0 || greatest == 0 {
		return p.invalidField(path, "a "+name+" query needs 'strMinQueryLength' and 'strMaxQueryLength'")
	}
	if greatest < least {
		return p.invalidField(path, "'strMaxQueryLength' is less than 'strMinQueryLength'")
	}
	folds := [2]bool{}
	for j, key := range []string{"caseSensitive", "diacriticSensitive"} {
		sensitive, ok := doc.Lookup(key).Boolean()
		if !ok {
			return p.invalidField(path, "a "+name+" query needs '"+key+"', a boolean")
		}
		folds[j] = !sensitive
	}
	if i > 0 && (e.foldCase != folds[0] || e.foldMarks != folds[1]) {
		return p.invalidField(path,
			"prefix and suffix queries must have the same 'caseSensitive' and 'diacriticSensitive'")
	}
	e.foldCase, e.foldMarks = folds[0], folds[1]
	switch {
	case name == "prefix" && e.prefix == nil && e.substring == nil:
		e.prefix = &fle.Affix{Lower: least, Upper: greatest}
	case name == "suffix" && e.suffix == nil && e.substring == nil:
		e.suffix = &fle.Affix{Lower: least, Upper: greatest}
	case name == "substring" && e.prefix == nil && e.suffix == nil && e.substring == nil:
		length := int32(r.get("strMaxLength", 1, 0))
		if length < greatest {
			return p.invalidField(path, "a substring query needs 'strMaxLength', at least 'strMaxQueryLength'")
		}
		e.substring = &fle.Substring{MaxLength: length, Lower: least, Upper: greatest}
	default:
		return p.invalidField(path, "only one prefix and one suffix query may stand together")
	}
	return nil
}

// numbers reads whole numbers of any type, and remembers the name of one that is not allowed.
type numbers struct {
	doc   bson.Raw
	wrong string
}

const maxInt32 = 1<<31 - 1

func (r *numbers) get(name string, least, otherwise int64) int64 {
	v := r.doc.Lookup(name)
	if v.IsZero() {
		return otherwise
	}
	n, ok := v.AsInt64()
	if !ok || n < least || n > maxInt32 {
		r.wrong = name
		return otherwise
	}
	return n
}

func (r *numbers) optional(name string) *int32 {
	if r.doc.Lookup(name).IsZero() {
		return nil
	}
	n := int32(r.get(name, 0, 0))
	return &n
}
