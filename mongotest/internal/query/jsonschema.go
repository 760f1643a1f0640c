package query

import (
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/pcre"
	"allium/mongotest/internal/work"
)

// schema is a parsed $jsonSchema (draft 4 with bsonType). Arrays on the way to a property are not
// traversed.
type schema struct {
	work     *work.Meter // of who validates; nil: nobody counts
	types    *typeSet
	encrypt  *encrypted
	minimum  *compareTest
	maximum  *compareTest
	multiple *decimal.Decimal

	minLength, maxLength int64 // maxima are -1 for none
	pattern              *pcre.Regexp

	enum                []bson.RawValue
	allOf, anyOf, oneOf []*schema
	not                 *schema

	required                     []string
	properties                   []property
	patterns                     []patternProperty
	additionalProperties         *additional
	minProperties, maxProperties int64
	dependencies                 []dependency

	items              *schema
	itemList           []*schema
	additionalItems    *additional
	minItems, maxItems int64
	uniqueItems        bool
}

type property struct {
	name   string
	schema *schema
}

type patternProperty struct {
	re     *pcre.Regexp
	schema *schema
}

// additional is what else may be there: nothing if the schema is nil.
type additional struct{ schema *schema }

// dependency is what the presence of a property demands.
type dependency struct {
	name   string
	schema *schema
	others []string
}

// schemaNode is $jsonSchema as a match expression.
type schemaNode struct {
	s      *schema
	source bson.Raw
}

func (n *schemaNode) match(doc bson.Raw) (bool, int, error) {
	return n.s.valid(bsondoc.DocumentValue(doc)), noIndex, nil
}

func (n *schemaNode) matchValue(v bson.RawValue) bool { return n.s.valid(v) }

func (s *schema) valid(v bson.RawValue) bool {
	s.work.Do(1 + len(v.Value)>>10)
	if s.types != nil && !s.types.has(v.Type) {
		return false
	}
	if s.encrypt != nil && !s.encrypt.valid(v) {
		return false
	}
	if s.enum != nil && !slices.ContainsFunc(s.enum, func(e bson.RawValue) bool {
		return equalUnordered(e, v, s.work)
	}) {
		return false
	}
	switch v.Type {
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		if !s.validNumber(v) {
			return false
		}
	case bson.TypeString:
		if !s.validString(v) {
			return false
		}
	case bson.TypeArray:
		if !s.validArray(v.Value) {
			return false
		}
	case bson.TypeEmbeddedDocument:
		if !s.validObject(v) {
			return false
		}
	}
	for _, sub := range s.allOf {
		if !sub.valid(v) {
			return false
		}
	}
	if s.anyOf != nil && !slices.ContainsFunc(s.anyOf, func(sub *schema) bool { return sub.valid(v) }) {
		return false
	}
	if s.oneOf != nil {
		n := 0
		for _, sub := range s.oneOf {
			if sub.valid(v) {
				n++
			}
		}
		if n != 1 {
			return false
		}
	}
	return s.not == nil || !s.not.valid(v)
}

func (s *schema) validNumber(v bson.RawValue) bool {
	for _, bound := range []*compareTest{s.minimum, s.maximum} {
		if bound != nil {
			if ok, _ := bound.test(v); !ok {
				return false
			}
		}
	}
	return s.multiple == nil || toDecimal(v).Mod(*s.multiple).IsZero()
}

func (s *schema) validString(v bson.RawValue) bool {
	data := stringData(v)
	if s.minLength > 0 || s.maxLength >= 0 {
		n := int64(utf8.RuneCount(data))
		if n < s.minLength || s.maxLength >= 0 && n > s.maxLength {
			return false
		}
	}
	return s.pattern == nil || s.pattern.MatchCounted(data, s.work.Count())
}

func (s *schema) validArray(array bson.Raw) bool {
	list := bsondoc.Items(bson.RawValue{Type: bson.TypeArray, Value: array})
	n := int64(len(list))
	if n < s.minItems || s.maxItems >= 0 && n > s.maxItems {
		return false
	}
	for i, e := range list {
		switch {
		case s.items != nil:
			if !s.items.valid(e) {
				return false
			}
		case i < len(s.itemList):
			if !s.itemList[i].valid(e) {
				return false
			}
		case s.itemList != nil && s.additionalItems != nil:
			if s.additionalItems.schema == nil || !s.additionalItems.schema.valid(e) {
				return false
			}
		}
	}
	if !s.uniqueItems {
		return true
	}
	_, twice := FirstDuplicate(list, s.work)
	return !twice
}

// FirstDuplicate returns the first value that is equal to one before it, by the rules of
// uniqueItems: the order of a document's fields makes no difference.
func FirstDuplicate(list []bson.RawValue, m *work.Meter) (dup bson.RawValue, found bool) {
	seen := make(map[uint64][]bson.RawValue, len(list))
	for _, e := range list {
		h := unorderedHash(e, m)
		if slices.ContainsFunc(seen[h], func(x bson.RawValue) bool { return equalUnordered(x, e, m) }) {
			return e, true
		}
		seen[h] = append(seen[h], e)
	}
	return dup, false
}

var schemaSeed = maphash.MakeSeed()

// unorderedHash returns the same for values that are equal.
func unorderedHash(v bson.RawValue, m *work.Meter) uint64 {
	m.Do(1 + len(v.Value)>>10)
	switch v.Type {
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		if isNaN(v) {
			return 0
		}
		return maphash.Comparable(schemaSeed, Float(v)) // 0 and -0 have the same
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		sum := uint64(0)
		for key, e := range bson.Raw(v.Value).All() {
			sum += maphash.Comparable(schemaSeed, hashedField{key, unorderedHash(e, m)})
		}
		return sum
	}
	return maphash.Bytes(schemaSeed, v.Value)
}

// hashedField is a field with the hash of its value.
type hashedField struct {
	key   string
	value uint64
}

func (s *schema) validObject(v bson.RawValue) bool {
	doc := bson.Raw(v.Value)
	for _, name := range s.required {
		if s.lookup(doc, name).Type == 0 {
			return false
		}
	}
	if s.minProperties > 0 || s.maxProperties >= 0 {
		n := int64(countElements(doc))
		if n < s.minProperties || s.maxProperties >= 0 && n > s.maxProperties {
			return false
		}
	}
	for _, p := range s.properties {
		if e := s.lookup(doc, p.name); e.Type != 0 && !p.schema.valid(e) {
			return false
		}
	}
	for _, d := range s.dependencies {
		if s.lookup(doc, d.name).Type == 0 {
			continue
		}
		if d.schema != nil && !d.schema.valid(v) {
			return false
		}
		for _, other := range d.others {
			if s.lookup(doc, other).Type == 0 {
				return false
			}
		}
	}
	if s.patterns == nil && s.additionalProperties == nil {
		return true
	}
	for key, e := range doc.All() {
		s.work.Do(1 + len(s.properties))
		known := slices.ContainsFunc(s.properties, func(p property) bool { return p.name == key })
		for _, p := range s.patterns {
			if p.re.MatchCounted([]byte(key), s.work.Count()) {
				known = true
				if !p.schema.valid(e) {
					return false
				}
			}
		}
		if !known && s.additionalProperties != nil &&
			(s.additionalProperties.schema == nil || !s.additionalProperties.schema.valid(e)) {
			return false
		}
	}
	return true
}

// lookup returns the value of a field.
func (s *schema) lookup(doc bson.Raw, key string) bson.RawValue {
	s.work.Do(1 + len(doc)>>5) // as many fields as it may have
	return lookup(doc, key)
}

// equalUnordered compares values as schemas do: the order of fields in documents does not matter. m
// counts the steps.
func equalUnordered(a, b bson.RawValue, m *work.Meter) bool {
	m.Do(1 + len(a.Value)>>10)
	if a.Type != b.Type || a.Type != bson.TypeEmbeddedDocument && a.Type != bson.TypeArray {
		return Equal(a, b, nil)
	}
	x, y := bson.Raw(a.Value), bson.Raw(b.Value)
	if countElements(x) != countElements(y) {
		return false
	}
	for key, v := range x.All() {
		m.Do(len(y) >> 5)
		if w := lookup(y, key); w.Type == 0 || !equalUnordered(v, w, m) {
			return false
		}
	}
	return true
}
