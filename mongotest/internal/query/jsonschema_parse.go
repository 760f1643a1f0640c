package query

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/pcre"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// jsonTypes are the names that the keyword "type" takes; bsonType takes those of the operator
// $type.
var jsonTypes = map[string]typeSet{
	"string":  {types: []bson.Type{bson.TypeString}},
	"number":  {numbers: true},
	"object":  {types: []bson.Type{bson.TypeEmbeddedDocument}},
	"array":   {types: []bson.Type{bson.TypeArray}},
	"boolean": {types: []bson.Type{bson.TypeBoolean}},
	"null":    {types: []bson.Type{bson.TypeNull}},
}

// maxSchemaDepth bounds how deep schemas nest.
const maxSchemaDepth = 150

func (p *filterParser) parseJSONSchema(_ string, v bson.RawValue, _ level) (node, error) {
	if p.noSchema {
		return nil, srverr.New(srverr.QueryFeatureNotAllowed, "$jsonSchema is not allowed in this context")
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(srverr.TypeMismatch, "$jsonSchema must be an object")
	}
	sp := schemaParser{work: p.work, version: p.version}
	s, err := sp.parse(v.Value)
	if err != nil {
		return nil, err
	}
	return &schemaNode{s, v.Value}, nil
}

type schemaParser struct {
	version release.Version
	depth   int
	work    *work.Meter
	below   int // how many properties and items deep: at 0 the schema is about the document itself
}

// mismatch is the error for a keyword's value of the wrong type.
func mismatch(format string, args ...any) error {
	return srverr.New(srverr.TypeMismatch, "$jsonSchema keyword "+format, args...)
}

func malformed(format string, args ...any) error {
	return srverr.New(srverr.FailedToParse, "$jsonSchema keyword "+format, args...)
}

func (p *schemaParser) parse(doc bson.Raw) (*schema, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxSchemaDepth {
		return nil, srverr.New(srverr.FailedToParse, "Maximum nesting level of $jsonSchema exceeded")
	}
	s := &schema{work: p.work, maxLength: -1, maxProperties: -1, maxItems: -1}
	seen := map[string]bson.RawValue{}
	for key, v := range doc.All() {
		if _, twice := seen[key]; twice {
			return nil, srverr.New(srverr.FailedToParse, "Duplicate $jsonSchema keyword: %s", key)
		}
		switch key {
		case "$ref", "$schema", "default", "definitions", "format", "id":
			return nil, malformed("'%s' is not currently supported", key)
		case "title", "description":
			if v.Type != bson.TypeString {
				return nil, mismatch("'%s' must be of type string", key)
			}
		default:
			if _, known := schemaKeywords[key]; !known {
				return nil, srverr.New(srverr.FailedToParse, "Unknown $jsonSchema keyword: %s", key)
			}
		}
		seen[key] = v
	}
	_, jsonType := seen["type"]
	if _, bsonType := seen["bsonType"]; jsonType && bsonType {
		return nil, srverr.New(srverr.FailedToParse, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'")
	}
	for _, key := range schemaOrder {
		v, ok := seen[key]
		if !ok {
			continue
		}
		if err := schemaKeywords[key](p, s, key, v, seen); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// value parses the schema of a property or of an item.
func (p *schemaParser) value(doc bson.Raw) (*schema, error) {
	p.below++
	defer func() { p.below-- }()
	return p.parse(doc)
}

type keywordParser func(p *schemaParser, s *schema, key string, v bson.RawValue, all map[string]bson.RawValue) error

var schemaKeywords map[string]keywordParser

// schemaOrder is the order in which the server looks at the keywords.
var schemaOrder = []string{"type", "bsonType", "pattern", "maxLength", "minLength", "multipleOf", "exclusiveMaximum",
	"maximum",
	"exclusiveMinimum", "minimum", "minItems", "maxItems", "uniqueItems", "items", "additionalItems", "encryptMetadata",
	"encrypt",
	"required", "properties", "patternProperties", "additionalProperties", "minProperties", "maxProperties",
	"dependencies", "allOf",
	"anyOf", "oneOf", "not", "enum"}

func init() {
	number := func(to func(*schema) *int64) keywordParser {
		return func(p *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) error {
			n, err := parseNonNegativeLong(key, v, p.version)
			*to(s) = n
			return err
		}
	}
	list := func(to func(*schema) *[]*schema) keywordParser {
		return func(p *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) error {
			return p.list(to(s), key, v)
		}
	}
	exclusive := func(bound string) keywordParser {
		return func(_ *schemaParser, _ *schema, key string, v bson.RawValue, all map[string]bson.RawValue) error {
			if _, given := all[bound]; !given {
				return malformed("'%s' must be a present if %s is present", bound, key)
			}
			if v.Type != bson.TypeBoolean {
				return mismatch("'%s' must be a boolean", key)
			}
			return nil
		}
	}
	schemaKeywords = map[string]keywordParser{
		"type": parseSchemaType, "bsonType": parseSchemaType,
		"allOf":            list(func(s *schema) *[]*schema { return &s.allOf }),
		"anyOf":            list(func(s *schema) *[]*schema { return &s.anyOf }),
		"oneOf":            list(func(s *schema) *[]*schema { return &s.oneOf }),
		"not":              parseSchemaNot,
		"enum":             parseSchemaEnum,
		"maximum":          parseSchemaBound,
		"minimum":          parseSchemaBound,
		"maxLength":        number(func(s *schema) *int64 { return &s.maxLength }),
		"minLength":        number(func(s *schema) *int64 { return &s.minLength }),
		"maxItems":         number(func(s *schema) *int64 { return &s.maxItems }),
		"minItems":         number(func(s *schema) *int64 { return &s.minItems }),
		"maxProperties":    number(func(s *schema) *int64 { return &s.maxProperties }),
		"minProperties":    number(func(s *schema) *int64 { return &s.minProperties }),
		"exclusiveMaximum": exclusive("maximum"), "exclusiveMinimum": exclusive("minimum"),
		"multipleOf":           parseSchemaMultiple,
		"pattern":              parseSchemaPattern,
		"uniqueItems":          parseSchemaUnique,
		"items":                parseSchemaItems,
		"additionalItems":      parseSchemaAdditional,
		"required":             parseSchemaRequired,
		"properties":           parseSchemaProperties,
		"patternProperties":    parseSchemaPatterns,
		"additionalProperties": parseSchemaAdditional,
		"dependencies":         parseSchemaDependencies,
		"encrypt":              parseSchemaEncrypt,
		"encryptMetadata":      parseSchemaEncrypt,
	}
}

func parseSchemaType(_ *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) error {
	var names []bson.RawValue
	switch v.Type {
	case bson.TypeString:
		names = []bson.RawValue{v}
	case bson.TypeArray:
		names = bsondoc.Items(v)
		if len(names) == 0 {
			return malformed("'%s' must name at least one type", key)
		}
	default:
		return mismatch("'%s' must be either a string or an array of strings", key)
	}
	set := &typeSet{}
	var seen []string
	for _, e := range names {
		name, ok := e.StringValue()
		if !ok {
			return mismatch("'%s' array elements must be strings", key)
		}
		if slices.Contains(seen, name) {
			return malformed("'%s' has duplicate value: %s", key, name)
		}
		seen = append(seen, name)
		if name == "integer" {
			return srverr.New(srverr.FailedToParse, "$jsonSchema type 'integer' is not currently supported.")
		}
		if key == "bsonType" {
			if err := set.add(e); err != nil {
				return err
			}
			continue
		}
		t, ok := jsonTypes[name]
		if !ok {
			return unknownType(name)
		}
		set.numbers = set.numbers || t.numbers
		set.types = append(set.types, t.types...)
	}
	s.types = set
	return nil
}

func (p *schemaParser) list(to *[]*schema, key string, v bson.RawValue) error {
	if v.Type != bson.TypeArray {
		return mismatch("'%s' must be an array", key)
	}
	for e := range bson.Raw(v.Value).Values() {
		if e.Type != bson.TypeEmbeddedDocument {
			return mismatch("'%s' must be an array of objects, but found an element of type %s", key,
				bsontext.TypeName(e.Type))
		}
		s, err := p.parse(e.Value)
		if err != nil {
			return err
		}
		*to = append(*to, s)
	}
	if len(*to) == 0 {
		return badValue("$jsonSchema keyword '%s' must be a non-empty array", key)
	}
	return nil
}

func parseSchemaNot(p *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) (err error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return mismatch("'%s' must be an object, but found an element of type %s", key, bsontext.TypeName(v.Type))
	}
	s.not, err = p.parse(v.Value)
	return err
}

func parseSchemaEnum(p *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) error {
	if v.Type != bson.TypeArray {
		return mismatch("'%s' must be an array, but found an element of type %s", key, bsontext.TypeName(v.Type))
	}
	for e := range bson.Raw(v.Value).Values() {
		if slices.ContainsFunc(s.enum, func(x bson.RawValue) bool { return equalUnordered(x, e, p.work) }) {
			return malformed("'%s' array cannot contain duplicate values.", key)
		}
		s.enum = append(s.enum, e)
	}
	if s.enum == nil {
		return malformed("'%s' cannot be an empty array", key)
	}
	return nil
}

func parseSchemaBound(_ *schemaParser, s *schema, key string, v bson.RawValue, all map[string]bson.RawValue) error {
	if !v.IsNumber() {
		return mismatch("'%s' must be a number", key)
	}
	if key == "maximum" {
		op := less | equal
		if exclusive, _ := all["exclusiveMaximum"].Boolean(); exclusive {
			op = less
		}
		s.maximum = newCompareTest(op, v, nil)
		return nil
	}
	op := greater | equal
	if exclusive, _ := all["exclusiveMinimum"].Boolean(); exclusive {
		op = greater
	}
	s.minimum = newCompareTest(op, v, nil)
	return nil
}

func parseSchemaMultiple(_ *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) error {
	if !v.IsNumber() {
		return mismatch("'%s' must be a number", key)
	}
	d := toDecimal(v)
	if d.IsZero() || d.IsNegative() || d.IsNaN() || d.IsInf() {
		return malformed("'%s' must have a positive value", key)
	}
	s.multiple = &d
	return nil
}

func schemaRegex(pattern string, v release.Version) (*pcre.Regexp, error) {
	t, err := newRegexTest(pattern, "", v, nil)
	if err != nil {
		return nil, err
	}
	return t.re, nil
}

func parseSchemaPattern(p *schemaParser, s *schema, key string, v bson.RawValue,
	_ map[string]bson.RawValue) (err error) {
	text, ok := v.StringValue()
	if !ok {
		return mismatch("'%s' must be a string", key)
	}
	if p.below == 0 {
		return nil // a document is no string: the pattern is not even compiled
	}
	s.pattern, err = schemaRegex(text, p.version)
	return err
}

func parseSchemaUnique(_ *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) error {
	var ok bool
	if s.uniqueItems, ok = v.Boolean(); !ok {
		return mismatch("'%s' must be a boolean", key)
	}
	return nil
}

func parseSchemaItems(p *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) (err error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		s.items, err = p.value(v.Value)
		return err
	case bson.TypeArray:
		s.itemList = []*schema{}
		for e := range bson.Raw(v.Value).Values() {
			if e.Type != bson.TypeEmbeddedDocument {
				return mismatch("'%s' requires that each element of the array is an object, but found a %s", key,
					bsontext.TypeName(e.Type))
			}
			sub, err := p.value(e.Value)
			if err != nil {
				return err
			}
			s.itemList = append(s.itemList, sub)
		}
		return nil
	}
	return mismatch("'%s' must be an array or an object, not %s", key, bsontext.TypeName(v.Type))
}

func parseSchemaAdditional(p *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) error {
	var a *additional
	switch v.Type {
	case bson.TypeBoolean:
		if allowed, _ := v.Boolean(); !allowed {
			a = &additional{}
		}
	case bson.TypeEmbeddedDocument:
		sub, err := p.value(v.Value)
		if err != nil {
			return err
		}
		a = &additional{sub}
	default:
		if key == "additionalProperties" {
			return mismatch("'%s' must be an object or a boolean", key)
		}
		return mismatch("'%s' must be either an object or a boolean, but got a %s", key, bsontext.TypeName(v.Type))
	}
	if key == "additionalItems" {
		s.additionalItems = a
	} else {
		s.additionalProperties = a
	}
	return nil
}

// schemaNames parses an array of different strings.
func schemaNames(what string, v bson.RawValue) ([]string, error) {
	var names []string
	for e := range bson.Raw(v.Value).Values() {
		name, ok := e.StringValue()
		if !ok {
			return nil, mismatch("%s must be an array of strings, but found an element of type: %s", what,
				bsontext.TypeName(e.Type))
		}
		if slices.Contains(names, name) {
			return nil, malformed("%s array cannot contain duplicate values", what)
		}
		names = append(names, name)
	}
	if names == nil {
		return nil, malformed("%s cannot be an empty array", what)
	}
	return names, nil
}

func parseSchemaRequired(_ *schemaParser, s *schema, key string, v bson.RawValue,
	_ map[string]bson.RawValue) (err error) {
	if v.Type != bson.TypeArray {
		return mismatch("'%s' must be an array, but found an element of type %s", key, bsontext.TypeName(v.Type))
	}
	s.required, err = schemaNames("'"+key+"'", v)
	return err
}

func parseSchemaProperties(p *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return mismatch("'%s' must be an object", key)
	}
	for name, e := range bson.Raw(v.Value).All() {
		if e.Type != bson.TypeEmbeddedDocument {
			return srverr.New(srverr.TypeMismatch, "Nested schema for $jsonSchema property '%s' must be an object",
				name)
		}
		sub, err := p.value(e.Value)
		if err != nil {
			return err
		}
		s.properties = append(s.properties, property{name, sub})
	}
	return nil
}

func parseSchemaPatterns(p *schemaParser, s *schema, key string, v bson.RawValue, _ map[string]bson.RawValue) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return mismatch("'%s' must be an object", key)
	}
	for pattern, e := range bson.Raw(v.Value).All() {
		if e.Type != bson.TypeEmbeddedDocument {
			return mismatch("'%s' has property '%s' which is not an object", key, pattern)
		}
		re, err := schemaRegex(pattern, p.version)
		if err != nil && p.version.AllParsed() { // no code of its own, unlike that of pattern
			return srverr.New(srverr.BadValue, "%s", srverr.From(err).Msg)
		}
		if err != nil {
			return err
		}
		sub, err := p.value(e.Value)
		if err != nil {
			return err
		}
		s.patterns = append(s.patterns, patternProperty{re, sub})
	}
	return nil
}

func parseSchemaDependencies(p *schemaParser, s *schema, key string, v bson.RawValue,
	_ map[string]bson.RawValue) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return mismatch("'%s' must be an object", key)
	}
	for name, e := range bson.Raw(v.Value).All() {
		d := dependency{name: name}
		var err error
		switch e.Type {
		case bson.TypeEmbeddedDocument:
			d.schema, err = p.parse(e.Value)
		case bson.TypeArray:
			if bson.Raw(e.Value).IsEmpty() {
				return srverr.New(srverr.FailedToParse,
					"property '%s' in $jsonSchema keyword '%s' cannot be an empty array", name, key)
			}
			d.others, err = schemaNames("'"+key+"' property dependency '"+name+"'", e)
		default:
			err = srverr.New(srverr.TypeMismatch,
				"property '%s' in $jsonSchema keyword '%s' must be either an object or an array", name, key)
		}
		if err != nil {
			return err
		}
		s.dependencies = append(s.dependencies, d)
	}
	return nil
}
