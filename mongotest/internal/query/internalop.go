package query

// Operators that the server makes itself, of $jsonSchema and $expr, and that commands may use as
// well.

import (
	"slices"
	"strings"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// directNode tests the value at a path as it is: arrays are not traversed. An array on the way to
// it is tested itself if the test asks for that.
type directNode struct {
	path   []string
	arrays bool
	test   func(v bson.RawValue) bool // v may be missing
}

func (n *directNode) match(doc bson.Raw) (bool, int, error) {
	v := documentValue(doc)
	for _, part := range n.path {
		if v.Type == bson.TypeArray && n.arrays {
			break
		}
		if v.Type != bson.TypeEmbeddedDocument {
			v = bson.RawValue{}
			break
		}
		v = lookup(v.Value, part)
	}
	return n.test(v), noIndex, nil
}

func (n *directNode) matchValue(v bson.RawValue) bool { return n.test(v) }

// parseInternal parses an internal operator on a field.
func (p *filterParser) parseInternal(field, key string, v bson.RawValue) (node, error) {
	n := &directNode{path: strings.Split(field, ".")}
	count := func(ok func(v bson.RawValue, limit int64) bool) (node, error) {
		limit, err := parseNonNegativeLong(key, v)
		n.test = func(v bson.RawValue) bool { return ok(v, limit) }
		return n, err
	}
	items := func(v bson.RawValue) int64 { return int64(countElements(v.Value)) }
	length := func(v bson.RawValue) int64 { return int64(utf8.RuneCount(stringData(v))) }
	switch key {
	case "$_internalExprEq":
		if v.Type == bson.TypeUndefined || v.Type == bson.TypeArray {
			return nil, badValue("%s cannot be used to compare to type: %s", key, bsontext.TypeName(v.Type))
		}
		n.arrays = true
		n.test = func(x bson.RawValue) bool {
			return x.Type == bson.TypeArray || x.Type != 0 && Compare(x, v, p.coll) == 0
		}
		return n, nil
	case "$_internalSchemaEq":
		n.test = func(x bson.RawValue) bool {
			return x.Type == 0 && v.Type == bson.TypeUndefined || x.Type != 0 && equalUnordered(x, v, p.work)
		}
		return n, nil
	case "$_internalSchemaMinItems":
		return count(func(v bson.RawValue, limit int64) bool { return v.Type == bson.TypeArray && items(v) >= limit })
	case "$_internalSchemaMaxItems":
		return count(func(v bson.RawValue, limit int64) bool { return v.Type == bson.TypeArray && items(v) <= limit })
	case "$_internalSchemaMinLength":
		return count(func(v bson.RawValue, limit int64) bool { return v.Type == bson.TypeString && length(v) >= limit })
	case "$_internalSchemaMaxLength":
		return count(func(v bson.RawValue, limit int64) bool { return v.Type == bson.TypeString && length(v) <= limit })
	case "$_internalSchemaUniqueItems":
		if unique, ok := v.Boolean(); !ok || !unique {
			return nil, srverr.New(srverr.FailedToParse, "%s must be a boolean of value true", field)
		}
		s := &schema{work: p.work, uniqueItems: true, maxItems: -1}
		n.test = func(v bson.RawValue) bool { return v.Type == bson.TypeArray && s.validArray(v.Value) }
		return n, nil
	case "$_internalSchemaType":
		set, err := parseTypeSet(field, v)
		n.test = func(v bson.RawValue) bool { return v.Type != 0 && set.has(v.Type) }
		return n, err
	case "$_internalSchemaObjectMatch":
		doc, ok := v.Document()
		if !ok {
			return nil, srverr.New(srverr.FailedToParse, "$_internalSchemaObjectMatch must be an object")
		}
		sub, err := p.parse(doc, levelElemMatch)
		n.test = func(v bson.RawValue) bool {
			ok := false
			if v.Type == bson.TypeEmbeddedDocument {
				ok, _, _ = sub.match(v.Value)
			}
			return ok
		}
		return n, err
	case "$_internalSchemaAllElemMatchFromIndex":
		return p.parseAllFromIndex(n, key, v)
	}
	return nil, badValue("unknown operator: %s", key)
}

// parseAllFromIndex parses [index, {name: condition}], which the elements from that index on have
// to fulfill.
func (p *filterParser) parseAllFromIndex(n *directNode, key string, v bson.RawValue) (node, error) {
	if v.Type != bson.TypeArray {
		return nil, srverr.New(srverr.FailedToParse, "%s must be an array", key)
	}
	list := arrayValues(v)
	if len(list) != 2 {
		return nil, srverr.New(srverr.FailedToParse, "%s must be an array of size 2", key)
	}
	from, err := parseNonNegativeLong("0", list[0])
	if err != nil {
		return nil, err
	}
	doc, ok := list[1].Document()
	if !ok {
		return nil, srverr.New(srverr.FailedToParse, "second element of %s must be an object", key)
	}
	name, _, _ := firstElement(doc)
	sub, err := p.parse(doc, levelElemMatch)
	n.test = func(v bson.RawValue) bool {
		if v.Type != bson.TypeArray {
			return false
		}
		for i, e := range arrayValues(v) {
			start, b := bson.BeginDocument(nil)
			if ok, _, err := sub.match(bson.EndDocument(bson.AppendRawValue(b, name, e), start)); int64(i) >= from && (!ok || err != nil) {
				return false
			}
		}
		return true
	}
	return n, err
}

// parseInternalTop parses an internal operator on whole documents.
func (p *filterParser) parseInternalTop(key string, v bson.RawValue, lv level) (node, error) {
	n := &directNode{}
	switch key {
	case "$_internalSchemaMinProperties", "$_internalSchemaMaxProperties":
		limit, err := parseNonNegativeLong(key, v)
		least := key == "$_internalSchemaMinProperties"
		n.test = func(v bson.RawValue) bool {
			if have := int64(countElements(v.Value)); least {
				return have >= limit
			} else {
				return have <= limit
			}
		}
		return n, err
	case "$_internalSchemaRootDocEq":
		if v.Type != bson.TypeEmbeddedDocument {
			return nil, srverr.New(srverr.TypeMismatch, "%s must be an object, found type %s", key, bsontext.TypeName(v.Type))
		}
		n.test = func(x bson.RawValue) bool { return equalUnordered(x, v, p.work) }
		return n, nil
	case "$_internalSchemaCond":
		if v.Type != bson.TypeArray {
			return nil, srverr.New(srverr.FailedToParse, "%s must be an array of 3 MatchExpressions", key)
		}
		list := arrayValues(v)
		if len(list) != 3 {
			return nil, srverr.New(srverr.FailedToParse, "%s requires exactly 3 MatchExpressions, but got %d", key, len(list))
		}
		var parts []node
		for _, e := range list {
			doc, ok := e.Document()
			if !ok {
				return nil, srverr.New(srverr.FailedToParse, "%s must be an array of 3 MatchExpressions", key)
			}
			part, err := p.parse(doc, lv)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		n.test = func(v bson.RawValue) bool {
			if ok, _, _ := parts[0].match(v.Value); ok {
				ok, _, _ = parts[1].match(v.Value)
				return ok
			}
			ok, _, _ := parts[2].match(v.Value)
			return ok
		}
		return n, nil
	}
	parsed, err := p.parseLogical(key, v, lv) // $_internalSchemaXor
	if err != nil {
		return nil, err
	}
	list := slices.Clone(parsed.(*nor).children)
	n.test = func(v bson.RawValue) bool {
		hits := 0
		for _, c := range list {
			if ok, _, _ := c.match(v.Value); ok {
				hits++
			}
		}
		return hits == 1
	}
	return n, nil
}
