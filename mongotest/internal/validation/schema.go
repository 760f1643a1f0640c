package validation

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
)

// Which rules of a $jsonSchema a document breaks, as errInfo shows them.

// rules appends an explanation of each keyword of a schema that the value at path fails.
func (x *explanation) rules(dst []byte, schema bson.Raw, path []string) []byte {
	n := 0
	for keyword, v := range schema.All() {
		if keyword == "title" || keyword == "description" || !x.failsAt(path, alone(schema, keyword, v)) {
			continue
		}
		at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n))
		n++
		d = bson.AppendString(d, "operatorName", keyword)
		value := bsondoc.DocumentValue(x.doc)
		if len(path) > 0 {
			value = x.doc.Lookup(path...)
		}
		r := rule{x, schema, path, value, keyword, v}
		dst = bson.EndDocument(r.explain(d), at)
	}
	return dst
}

// failsAt reports whether the value at a path does not match a schema.
func (x *explanation) failsAt(path []string, schema bson.Raw) bool {
	return x.fails(bsondoc.Single("$jsonSchema", bsondoc.DocumentValue(within(path, schema))))
}

// alone returns a schema of one keyword, with what others say that its meaning depends on: which
// properties and items there are beside it, and whether a bound is exclusive.
func alone(schema bson.Raw, keyword string, v bson.RawValue) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.Value(keyword, v.Type, v.Value)
		for _, other := range map[string][]string{
			"minimum": {"exclusiveMinimum"}, "maximum": {"exclusiveMaximum"}, "additionalItems": {"items"},
			"additionalProperties": {"properties", "patternProperties"},
		}[keyword] {
			if v := schema.Lookup(other); v.Type != 0 {
				v = open(v)
				d.Value(other, v.Type, v.Value)
			}
		}
	})
}

// open returns a document or an array of schemas with those that everything matches in their place.
func open(v bson.RawValue) bson.RawValue {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return v
	}
	return bson.RawValue{Type: v.Type, Value: bsondoc.Build(func(d *bsondoc.Builder) {
		for key, sub := range bson.Raw(v.Value).All() {
			if _, ok := sub.Document(); ok {
				d.Doc(key, bsondoc.OrEmpty(nil))
			}
		}
	})}
}

// rule is a keyword of a schema that a value fails.
type rule struct {
	x       *explanation
	schema  bson.Raw
	path    []string
	value   bson.RawValue
	keyword string
	v       bson.RawValue
}

// explain appends the facts about a rule.
func (r *rule) explain(d []byte) []byte {
	switch r.keyword {
	case "properties":
		arr, e := bson.BeginArrayElement(d, "propertiesNotSatisfied")
		return bson.EndDocument(r.x.properties(e, r.v, r.path), arr)
	case "allOf", "anyOf", "oneOf":
		return r.combination(d)
	case "patternProperties":
		return r.patterns(d)
	case "items":
		return r.items(d)
	case "dependencies":
		return r.dependencies(d)
	}
	d = r.specified(d)
	switch r.keyword {
	case "required":
		list, _ := r.v.Array()
		return r.missing(d, list)
	case "additionalProperties":
		return r.additional(d)
	case "additionalItems":
		return r.additionalItems(d)
	case "not":
		return bson.AppendString(d, "reason", "child expression matched")
	case "minItems", "maxItems":
		d = r.considered(d, "array did not match specified length")
		return bson.AppendInt32(d, "numberOfItems", int32(len(bsondoc.Items(r.value))))
	case "minProperties", "maxProperties":
		d = r.considered(d, "specified number of properties was not satisfied")
		n := 0
		for range bson.Raw(r.value.Value).All() {
			n++
		}
		return bson.AppendInt32(d, "numberOfProperties", int32(n))
	case "uniqueItems":
		d = r.considered(d, "found a duplicate item")
		if item, found := query.FirstDuplicate(bsondoc.Items(r.value), nil); found {
			d = bson.AppendRawValue(d, "duplicatedValue", item)
		}
		return d
	case "multipleOf":
		return r.considered(d, "considered value is not a multiple of the specified value")
	}
	return appendReason(d, r.keyword, r.value)
}

// specified appends the keyword as the schema has it.
func (r *rule) specified(d []byte) []byte {
	one := bsondoc.Single(r.keyword, r.v)
	for keyword, flag := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		if v := r.schema.Lookup(flag); r.keyword == keyword && v.Type != 0 {
			one = bsondoc.Of(keyword, r.v, flag, v)
		}
	}
	return bson.AppendDocument(d, "specifiedAs", one)
}

func (r *rule) considered(d []byte, reason string) []byte {
	return bson.AppendRawValue(bson.AppendString(d, "reason", reason), "consideredValue", r.value)
}

// missing appends which of some properties the value does not have.
func (r *rule) missing(d []byte, names bson.Raw) []byte {
	arr, e := bson.BeginArrayElement(d, "missingProperties")
	sub, _ := r.value.Document()
	i := 0
	for el := range names.Values() {
		if name, _ := el.StringValue(); sub.Lookup(name).IsZero() {
			e = append(bson.AppendIndexHeader(e, bson.TypeString, i), el.Value...)
			i++
		}
	}
	return bson.EndDocument(e, arr)
}

// details appends why the value at a path fails a schema.
func (x *explanation) details(d []byte, schema bson.Raw, path []string) []byte {
	arr, d := bson.BeginArrayElement(d, "details")
	return bson.EndDocument(x.rules(d, schema, path), arr)
}

// combination explains allOf, anyOf and oneOf: which of the schemas the value fails, or of oneOf
// that it matches several.
func (r *rule) combination(d []byte) []byte {
	var failed []int
	schemas := bsondoc.Items(r.v)
	for i, s := range schemas {
		if r.x.failsAt(r.path, s.Value) {
			failed = append(failed, i)
		}
	}
	if r.keyword == "oneOf" && len(failed) < len(schemas) {
		d = bson.AppendString(r.specified(d), "reason", "more than one subschema matched")
		var matching []bson.RawValue
		for i := range schemas {
			if !slices.Contains(failed, i) {
				matching = append(matching, bsondoc.Int32Value(int32(i)))
			}
		}
		return bson.AppendRawValue(d, "matchingSchemaIndexes", bsondoc.ArrayValue(matching...))
	}
	arr, d := bson.BeginArrayElement(d, "schemasNotSatisfied")
	for n, i := range failed {
		at, e := bson.BeginDocument(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, n))
		e = appendNotes(bson.AppendInt32(e, "index", int32(i)), schemas[i].Value)
		d = bson.EndDocument(r.x.details(e, schemas[i].Value, r.path), at)
	}
	return bson.EndDocument(d, arr)
}

// has returns an explanation for a document that has one field of the value alone.
func (r *rule) has(name string, v bson.RawValue) *explanation {
	return &explanation{parse: r.x.parse, doc: bsondoc.Single(name, v)}
}

// additional explains properties that no other keyword names.
func (r *rule) additional(d []byte) []byte {
	schema, isSchema := r.v.Document()
	none := bsondoc.BoolValue(false)
	var names []bson.RawValue
	for name, v := range bson.Raw(r.value.Value).All() {
		one := r.has(name, v)
		if !one.failsAt(nil, alone(r.schema, "additionalProperties", none)) {
			continue
		}
		if isSchema && one.failsAt([]string{name}, schema) {
			d = bson.AppendString(d, "reason", "at least one additional property did not match the subschema")
			d = bson.AppendString(d, "failingProperty", name)
			return one.details(d, schema, []string{name})
		}
		names = append(names, bsondoc.StringValue(name))
	}
	return bson.AppendRawValue(d, "additionalProperties", bsondoc.ArrayValue(names...))
}

// patterns explains which properties fail the schema of a pattern that they match.
func (r *rule) patterns(d []byte) []byte {
	never := bsondoc.DocumentValue(bsondoc.Single("not", bsondoc.DocumentValue(bsondoc.OrEmpty(nil))))
	arr, d := bson.BeginArrayElement(d, "details")
	n := 0
	for name, v := range bson.Raw(r.value.Value).All() {
		one := r.has(name, v)
		for pattern, s := range bson.Raw(r.v.Value).All() {
			matches := bsondoc.Single("patternProperties", bsondoc.DocumentValue(bsondoc.Single(pattern, never)))
			if !one.failsAt(nil, matches) || !one.failsAt([]string{name}, s.Value) {
				continue
			}
			at, e := bson.BeginDocument(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, n))
			n++
			e = bson.AppendString(bson.AppendString(e, "propertyName", name), "regexMatched", pattern)
			d = bson.EndDocument(one.details(appendNotes(e, s.Value), s.Value, []string{name}), at)
		}
	}
	return bson.EndDocument(d, arr)
}

// item is the name of an item where it is looked at by itself.
const item = "item"

// items explains items that fail the schema of all, or that of their place.
func (r *rule) items(d []byte) []byte {
	schema, ofAll := r.v.Document()
	schemas := bsondoc.Items(r.v)
	if ofAll {
		return r.firstItem(d, 0, schema, "At least one item did not match the sub-schema")
	}
	arr, d := bson.BeginArrayElement(d, "details")
	n := 0
	for i, v := range bsondoc.Items(r.value) {
		one := r.has(item, v)
		if i >= len(schemas) || !one.failsAt([]string{item}, schemas[i].Value) {
			continue
		}
		at, e := bson.BeginDocument(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, n))
		n++
		e = bson.AppendInt32(e, "itemIndex", int32(i))
		d = bson.EndDocument(one.details(e, schemas[i].Value, []string{item}), at)
	}
	return bson.EndDocument(d, arr)
}

// firstItem appends the first item from a place on that fails a schema.
func (r *rule) firstItem(d []byte, from int, schema bson.Raw, reason string) []byte {
	for i, v := range bsondoc.Items(r.value) {
		if one := r.has(item, v); i >= from && one.failsAt([]string{item}, schema) {
			d = bson.AppendInt32(bson.AppendString(d, "reason", reason), "itemIndex", int32(i))
			return one.details(d, schema, []string{item})
		}
	}
	return d
}

// additionalItems explains items behind those that have schemas of their own.
func (r *rule) additionalItems(d []byte) []byte {
	from := len(bsondoc.Items(r.schema.Lookup("items")))
	if schema, ok := r.v.Document(); ok {
		return r.firstItem(d, from, schema, "At least one additional item did not match the sub-schema")
	}
	items := bsondoc.Items(r.value)
	return bson.AppendRawValue(d, "additionalItems", bsondoc.ArrayValue(items[min(from, len(items)):]...))
}

// dependencies explains what is missing beside properties that ask for others, or for a schema.
func (r *rule) dependencies(d []byte) []byte {
	arr, d := bson.BeginArrayElement(d, "failingDependencies")
	n := 0
	for name, v := range bson.Raw(r.v.Value).All() {
		if !r.x.failsAt(r.path, bsondoc.Single(r.keyword, bsondoc.DocumentValue(bsondoc.Single(name, v)))) {
			continue
		}
		at, e := bson.BeginDocument(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, n))
		n++
		e = bson.AppendString(e, "conditionalProperty", name)
		if names, ok := v.Array(); ok {
			e = r.missing(e, names)
		} else {
			e = r.x.details(e, v.Value, r.path)
		}
		d = bson.EndDocument(e, at)
	}
	return bson.EndDocument(d, arr)
}

// properties appends an explanation of each property that fails its schema.
func (x *explanation) properties(dst []byte, v bson.RawValue, path []string) []byte {
	properties, _ := v.Document()
	n := 0
	for name, v := range properties.All() {
		schema, _ := v.Document()
		below := append(slices.Clone(path), name)
		if !x.failsAt(below, schema) {
			continue
		}
		at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n))
		n++
		d = appendNotes(bson.AppendString(d, "propertyName", name), schema)
		dst = bson.EndDocument(x.details(d, schema, below), at)
	}
	return dst
}

// appendNotes appends what a schema says of itself.
func appendNotes(d []byte, schema bson.Raw) []byte {
	for _, note := range []string{"title", "description"} {
		if text, ok := schema.Lookup(note).StringValue(); ok {
			d = bson.AppendString(d, note, text)
		}
	}
	return d
}

// within returns the schema that demands another schema of the value at path.
func within(path []string, schema bson.Raw) bson.Raw {
	for _, name := range slices.Backward(path) {
		schema = bsondoc.Single("properties",
			bsondoc.DocumentValue(bsondoc.Single(name, bsondoc.DocumentValue(schema))))
	}
	return schema
}
