package encryption

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"allium/bson"
	"allium/internal/fle/analysis"
)

// Field is a field of a collection that is encrypted, for SchemaFor and
// EncryptedFieldsFor.
type Field struct {
	// Path is where the field is in the document, with dots between the keys.
	Path string
	// Algorithm is Deterministic or Random in a schema; Unindexed, Indexed, Range or
	// String in encryptedFields.
	Algorithm Algorithm
	// KeyID is the data key. In encryptedFields the key may have a KeyAltName instead;
	// with neither, the keyId is null, and Client.CreateEncryptedCollection makes the key.
	KeyID      *bson.UUID
	KeyAltName string
	// Contention, Range and Text are as in EncryptOptions. Nil Contention: 8.
	Contention *int64
	Range      *RangeOptions
	Text       *TextOptions
	// Preview uses the names of text queries that servers before 9.0 have.
	Preview bool
}

// SchemaFor returns the JSON schema for AutoOptions.Schemas with which Client-Side Field Level
// Encryption encrypts these fields of a T. The error names a field that a T does not have once
// package bson has encoded it, or whose type cannot be encrypted this way.
func SchemaFor[T any](fields ...Field) (bson.Raw, error) {
	out, err := schemaFor(reflect.TypeFor[T](), fields)
	if err != nil {
		return nil, fmt.Errorf("schema for %s: %w", reflect.TypeFor[T](), refused(err))
	}
	return out, nil
}

// EncryptedFieldsFor returns the encryptedFields with which Queryable Encryption encrypts these
// fields of a T, for AutoOptions.EncryptedFields and CreateEncryptedCollection. Errors are those of
// SchemaFor.
func EncryptedFieldsFor[T any](fields ...Field) (bson.Raw, error) {
	out, err := encryptedFieldsFor(reflect.TypeFor[T](), fields)
	if err != nil {
		return nil, fmt.Errorf("encrypted fields for %s: %w", reflect.TypeFor[T](), refused(err))
	}
	return out, nil
}

// tree is the fields below a document.
type tree struct {
	keys  []string
	below map[string]*tree
	field bson.D // the keyword encrypt of an encrypted field
}

func schemaFor(t reflect.Type, fields []Field) (bson.Raw, error) {
	shapes, err := shapesOf(t)
	if err != nil {
		return nil, err
	}
	top := &tree{}
	for _, f := range fields {
		kind, err := shapes.typeOf(f.Path)
		switch {
		case err != nil:
			return nil, err
		case f.Algorithm != Deterministic && f.Algorithm != Random:
			return nil, fmt.Errorf("field %s: algorithm %q is not one of a schema: want Deterministic or Random",
				f.Path, f.Algorithm)
		case f.KeyID == nil:
			return nil, fmt.Errorf("field %s: KeyID is nil", f.Path)
		case f.KeyAltName != "" || f.Contention != nil || f.Range != nil || f.Text != nil || f.Preview:
			return nil, fmt.Errorf(
				"field %s: only encryptedFields take KeyAltName, Contention, Range, Text and Preview", f.Path)
		}
		at := top
		for key := range strings.SplitSeq(f.Path, ".") {
			if at.field != nil {
				break
			}
			next := at.below[key]
			if next == nil {
				if at.below == nil {
					at.below = make(map[string]*tree)
				}
				next = &tree{}
				at.below[key], at.keys = next, append(at.keys, key)
			}
			at = next
		}
		if at.field != nil || at.keys != nil {
			return nil, fmt.Errorf("field %s: it, a field above it or a field below it is there already", f.Path)
		}
		at.field = bson.D{{Key: "keyId", Value: bson.A{*f.KeyID}}, {Key: "bsonType", Value: analysis.TypeName(kind)},
			{Key: "algorithm", Value: string(f.Algorithm)}}
	}
	out, err := bson.Marshal(top.schema())
	if err != nil {
		return nil, err
	}
	_, err = analysis.ParseJSONSchema("", out, false)
	return out, err
}

func (t *tree) schema() bson.D {
	if t.field != nil {
		return bson.D{{Key: "encrypt", Value: t.field}}
	}
	properties := bson.D{}
	for _, key := range t.keys {
		properties = append(properties, bson.E{Key: key, Value: t.below[key].schema()})
	}
	return bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: properties}}
}

func encryptedFieldsFor(t reflect.Type, fields []Field) (bson.Raw, error) {
	shapes, err := shapesOf(t)
	if err != nil {
		return nil, err
	}
	// What is checked has a key everywhere.
	list, checked := bson.A{}, bson.A{}
	for i := range fields {
		f := &fields[i]
		kind, err := shapes.typeOf(f.Path)
		if err != nil {
			return nil, err
		}
		field := bson.D{{Key: "path", Value: f.Path}, {Key: "bsonType", Value: analysis.TypeName(kind)}}
		queries, err := f.queries(kind)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Path, err)
		}
		if queries != nil {
			field = append(field, bson.E{Key: "queries", Value: queries})
		}
		field = field[:len(field):len(field)]
		switch {
		case f.KeyID != nil && f.KeyAltName != "":
			return nil, fmt.Errorf("field %s: KeyID and KeyAltName exclude each other", f.Path)
		case f.KeyID != nil:
			field = append(field, bson.E{Key: "keyId", Value: *f.KeyID})
		case f.KeyAltName != "":
			field = append(field, bson.E{Key: "keyAltName", Value: f.KeyAltName})
		default:
			field = append(field, bson.E{Key: "keyId", Value: nil})
		}
		list = append(list, field)
		if f.KeyID == nil && f.KeyAltName == "" {
			field = slices.Clone(field)
			field.Set("keyId", bson.UUID{14: byte(i >> 8), 15: byte(i)}) // which no key has
		}
		checked = append(checked, field)
	}
	trial, err := bson.Marshal(bson.D{{Key: "fields", Value: checked}})
	if err != nil {
		return nil, err
	}
	if _, err := analysis.ParseEncryptedFields("", trial); err != nil {
		return nil, err
	}
	return bson.Marshal(bson.D{{Key: "fields", Value: list}})
}

// queries returns what the field can be looked for by, nil for nothing.
func (f *Field) queries(kind bson.Type) (any, error) {
	switch {
	case f.Range != nil && f.Algorithm != Range:
		return nil, fmt.Errorf("range options with algorithm %q", f.Algorithm)
	case (f.Text != nil || f.Preview) && f.Algorithm != String:
		return nil, fmt.Errorf("text options with algorithm %q", f.Algorithm)
	}
	query := func(name QueryType) bson.D {
		q := bson.D{{Key: "queryType", Value: string(name)}}
		if f.Contention != nil {
			q = append(q, bson.E{Key: "contention", Value: *f.Contention})
		}
		return q
	}
	switch f.Algorithm {
	case Unindexed:
		if f.Contention != nil {
			return nil, fmt.Errorf("contention with algorithm %q", f.Algorithm)
		}
		return nil, nil
	case Indexed:
		return query(EqualityQuery), nil
	case Range:
		return f.rangeQuery(query(RangeQuery), kind)
	case String:
		return f.textQueries(query)
	}
	return nil, fmt.Errorf("algorithm %q is not one of encryptedFields: want Unindexed, Indexed, Range or String",
		f.Algorithm)
}

func (f *Field) rangeQuery(q bson.D, kind bson.Type) (bson.D, error) {
	if f.Range == nil {
		return q, nil
	}
	for _, bound := range []struct {
		key string
		v   any
	}{{"min", f.Range.Min}, {"max", f.Range.Max}} {
		if bound.v == nil {
			continue
		}
		v, err := (&bson.Options{}).MarshalValue(bound.v)
		if err != nil {
			return nil, err
		}
		// Whole numbers take the type of the field: 0 in Go is a bound of every number.
		if n, ok := v.AsInt64(); ok && v.Type != kind {
			switch {
			case kind == bson.TypeInt32 && n == int64(int32(n)):
				bound.v = int32(n)
			case kind == bson.TypeInt64:
				bound.v = n
			case kind == bson.TypeDouble && n >= -1<<53 && n <= 1<<53:
				bound.v = float64(n)
			}
		}
		q = append(q, bson.E{Key: bound.key, Value: bound.v})
	}
	if f.Range.Sparsity != nil {
		q = append(q, bson.E{Key: "sparsity", Value: *f.Range.Sparsity})
	}
	if f.Range.TrimFactor != nil {
		q = append(q, bson.E{Key: "trimFactor", Value: *f.Range.TrimFactor})
	}
	if f.Range.Precision != nil {
		q = append(q, bson.E{Key: "precision", Value: *f.Range.Precision})
	}
	return q, nil
}

func (f *Field) textQueries(query func(QueryType) bson.D) (bson.A, error) {
	t := f.Text
	if t == nil || t.Prefix == nil && t.Suffix == nil && t.Substring == nil {
		return nil, fmt.Errorf("algorithm String needs a Prefix, Suffix or Substring in Text")
	}
	var out bson.A
	add := func(name QueryType, least, greatest int32, more ...bson.E) {
		if f.Preview {
			name += "Preview"
		}
		q := append(query(name), more...)
		out = append(out, append(q, bson.E{Key: "strMinQueryLength", Value: least},
			bson.E{Key: "strMaxQueryLength", Value: greatest},
			bson.E{Key: "caseSensitive", Value: t.CaseSensitive},
			bson.E{Key: "diacriticSensitive", Value: t.DiacriticSensitive}))
	}
	if a := t.Prefix; a != nil {
		add(PrefixQuery, a.MinQueryLength, a.MaxQueryLength)
	}
	if a := t.Suffix; a != nil {
		add(SuffixQuery, a.MinQueryLength, a.MaxQueryLength)
	}
	if s := t.Substring; s != nil {
		add(SubstringQuery, s.MinQueryLength, s.MaxQueryLength, bson.E{Key: "strMaxLength", Value: s.MaxLength})
	}
	return out, nil
}

// shapes are documents that package bson makes of one Go type: with small values, with
// great ones, and of its zero value. They tell what it makes of each field, by its own
// rules.
type shapes struct {
	t                  reflect.Type
	small, great, zero bson.Raw
}

func shapesOf(t reflect.Type) (*shapes, error) {
	s := &shapes{t: t}
	for _, to := range []struct {
		doc  *bson.Raw
		fill func(reflect.Value)
	}{{&s.zero, func(reflect.Value) {}}, {&s.small, func(v reflect.Value) { fill(v, false, nil) }},
		{&s.great, func(v reflect.Value) { fill(v, true, nil) }}} {
		v := reflect.New(t)
		to.fill(v.Elem())
		doc, err := bson.Marshal(v.Interface())
		if err != nil {
			return nil, err
		}
		*to.doc = doc
	}
	return s, nil
}

// typeOf returns the BSON type of a field.
func (s *shapes) typeOf(path string) (bson.Type, error) {
	small, err := s.at(s.small, path)
	if err != nil {
		return 0, err
	}
	great, err := s.at(s.great, path)
	if err != nil {
		return 0, err
	}
	zero, err := s.at(s.zero, path)
	switch {
	case small.Type != great.Type:
		return 0, fmt.Errorf(
			"field %s: its values have the type %s or %s, one at a time; choose a Go type with one, as int32 or int64",
			path,
			analysis.TypeName(small.Type), analysis.TypeName(great.Type))
	case small.Type == bson.TypeNull:
		return 0, fmt.Errorf("field %s: its Go type does not tell the type of its values", path)
	case err == nil && zero.Type == bson.TypeNull:
		return 0, fmt.Errorf(
			"field %s: it is null when it is nil, which cannot be encrypted; leave it out then, with omitempty in its tag", path)
	}
	return small.Type, nil
}

// at returns the value at path. There is none within an array.
func (s *shapes) at(doc bson.Raw, path string) (bson.RawValue, error) {
	var v bson.RawValue
	above := ""
	for key := range strings.SplitSeq(path, ".") {
		if above != "" {
			var ok bool
			if doc, ok = v.Document(); !ok {
				return v, fmt.Errorf("field %s: %s has the type %s, and no fields that could be encrypted", path, above,
					analysis.TypeName(v.Type))
			}
			above += "."
		}
		above += key
		if v = doc.Lookup(key); v.IsZero() {
			return v, fmt.Errorf("field %s: %s has no field %s", path, s.t, above)
		}
	}
	return v, nil
}

// fill sets v, as deep as its type goes, to values that are not zero. within are the
// structs around v.
func fill(v reflect.Value, great bool, within []reflect.Type) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
		if great {
			v.SetInt(math.MaxInt64 >> (64 - v.Type().Bits()))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
		if great {
			v.SetUint(math.MaxInt64 >> (64 - v.Type().Bits()))
		}
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.String:
		v.SetString("1")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), great, within)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), great, within)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), great, within)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		for _, t := range within {
			if t == v.Type() {
				return // a type that contains itself: once is enough
			}
		}
		within = append(within[:len(within):len(within)], v.Type())
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f, great, within)
			}
		}
	}
}
