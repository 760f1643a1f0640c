package query

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/fts"
)

// Document returns the filter as explain shows it: normalized, with every condition's operator
// spelt out. A filter with a condition that is not rendered here is returned as it was written.
func (f *Filter) Document() bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc, ok := appendNode(doc, f.root)
	if !ok && f.source != nil {
		return f.source
	}
	return bson.EndDocument(doc, at)
}

// appendNode appends the elements of a document that stands for a node.
func appendNode(dst []byte, n node) ([]byte, bool) {
	list := func(name string, children []node) ([]byte, bool) {
		at, d := bson.BeginArrayElement(dst, name)
		for i, c := range children {
			one, b := bson.BeginDocument(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, i))
			b, ok := appendNode(b, c)
			if !ok {
				return dst, false
			}
			d = bson.EndDocument(b, one)
		}
		return bson.EndDocument(d, at), true
	}
	switch n := n.(type) {
	case *and:
		if len(n.children) == 0 {
			return dst, true
		}
		return list("$and", n.children)
	case *or:
		return list("$or", n.children)
	case *nor:
		return list("$nor", n.children)
	case *not:
		if l, ok := n.child.(*leaf); ok {
			at, d := bson.BeginDocumentElement(dst, l.path.name)
			inner, d := bson.BeginDocumentElement(d, "$not")
			d, ok := appendTest(d, l.test)
			return bson.EndDocument(bson.EndDocument(d, inner), at), ok
		}
		return list("$nor", []node{n.child})
	case constant:
		name := "$alwaysFalse"
		if n {
			name = "$alwaysTrue"
		}
		return bson.AppendInt32(dst, name, 1), true
	case *textNode:
		return appendSearch(dst, &n.query), true
	case *exprNode:
		return bson.AppendRawValue(dst, "$expr", n.source), true
	case *schemaNode:
		return bson.AppendDocument(dst, "$jsonSchema", n.source), true
	case *leaf:
		at, d := bson.BeginDocumentElement(dst, n.path.name)
		d, ok := appendTest(d, n.test)
		return bson.EndDocument(d, at), ok
	}
	return dst, false
}

// appendSearch appends $text with all that it may say.
func appendSearch(dst []byte, q *fts.Query) []byte {
	language := q.Language
	if language == "" {
		language = "english"
	}
	return bsondoc.Append(dst, "$text", bsondoc.Of("$search", q.Search, "$language", language, "$caseSensitive",
		q.CaseSensitive, "$diacriticSensitive", q.DiacriticSensitive))
}

// comparisonNames are the operators of compareTest.
var comparisonNames = map[comparison]string{equal: "$eq", less: "$lt", less | equal: "$lte", greater: "$gt",
	greater | equal: "$gte"}

func appendTest(dst []byte, t test) ([]byte, bool) {
	switch t := t.(type) {
	case *compareTest:
		return bson.AppendRawValue(dst, comparisonNames[t.op], t.rhs), true
	case *inTest:
		at, d := bson.BeginArrayElement(dst, "$in")
		n := 0
		for _, v := range t.values {
			d = append(bson.AppendIndexHeader(d, v.Type, n), v.Value...)
			n++
		}
		for _, re := range t.regexes {
			d = bson.AppendIndexHeader(d, bson.TypeRegex, n)
			d = append(append(append(append(d, re.pattern...), 0), re.options...), 0)
			n++
		}
		return bson.EndDocument(d, at), true
	case *regexTest:
		dst = bson.AppendString(dst, "$regex", t.pattern)
		if t.options != "" {
			dst = bson.AppendString(dst, "$options", t.options)
		}
		return dst, true
	case *modTest:
		at, d := bson.BeginArrayElement(dst, "$mod")
		d = bson.AppendInt64Value(bson.AppendIndexHeader(d, bson.TypeInt64, 0), t.divisor)
		d = bson.AppendInt64Value(bson.AppendIndexHeader(d, bson.TypeInt64, 1), t.remainder)
		return bson.EndDocument(d, at), true
	case existsTest:
		return bson.AppendBool(dst, "$exists", true), true
	case sizeTest:
		return bson.AppendInt32(dst, "$size", int32(t)), true
	case *typeTest:
		return t.set.append(dst), true
	case *bitTest:
		at, d := bson.BeginArrayElement(dst, t.name())
		for i, p := range t.positions {
			d = bson.AppendInt32Value(bson.AppendIndexHeader(d, bson.TypeInt32, i), int32(p))
		}
		return bson.EndDocument(d, at), true
	case *geoTest:
		for v := range t.raw.Values() {
			dst = append(dst, bson.Raw(v.Value).Elements()...)
		}
		return dst, true
	case *elemMatchValueTest:
		at, d := bson.BeginDocumentElement(dst, "$elemMatch")
		ok := true
		for _, c := range t.sub.children {
			var fine bool
			d, fine = appendValueNode(d, c)
			ok = ok && fine
		}
		return bson.EndDocument(d, at), ok
	case *elemMatchObjectTest:
		at, d := bson.BeginDocumentElement(dst, "$elemMatch")
		d, ok := appendNode(d, t.sub)
		return bson.EndDocument(d, at), ok
	}
	return dst, false
}

// appendValueNode appends a condition on an element itself, which has no path.
func appendValueNode(dst []byte, n node) ([]byte, bool) {
	switch n := n.(type) {
	case *leaf:
		return appendTest(dst, n.test)
	case *not:
		at, d := bson.BeginDocumentElement(dst, "$not")
		d, ok := appendValueNode(d, n.child)
		return bson.EndDocument(d, at), ok
	case *and:
		ok := true
		for _, c := range n.children {
			var fine bool
			dst, fine = appendValueNode(dst, c)
			ok = ok && fine
		}
		return dst, ok
	}
	return dst, false
}

// append appends $type: the alias of all numbers, and the codes of the types.
func (s *typeSet) append(dst []byte) []byte {
	at, d := bson.BeginArrayElement(dst, "$type")
	n := 0
	if s.numbers {
		d = bson.AppendStringValue(bson.AppendIndexHeader(d, bson.TypeString, n), "number")
		n++
	}
	for _, t := range s.types {
		code := int32(t)
		if t == bson.TypeMinKey {
			code = -1
		}
		d = bson.AppendInt32Value(bson.AppendIndexHeader(d, bson.TypeInt32, n), code)
		n++
	}
	return bson.EndDocument(d, at)
}

// name returns the operator.
func (t *bitTest) name() string {
	return "$bits" + map[bool]string{true: "All", false: "Any"}[t.all] +
		map[bool]string{true: "Set", false: "Clear"}[t.set]
}
