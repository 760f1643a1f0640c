package query

import (
	"allium/bson"
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
	case constant:
		name := "$alwaysFalse"
		if n {
			name = "$alwaysTrue"
		}
		return bson.AppendInt32(dst, name, 1), true
	case *leaf:
		at, d := bson.BeginDocumentElement(dst, n.path.name)
		d, ok := appendTest(d, n.test)
		return bson.EndDocument(d, at), ok
	}
	return dst, false
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
	case *elemMatchObjectTest:
		at, d := bson.BeginDocumentElement(dst, "$elemMatch")
		d, ok := appendNode(d, t.sub)
		return bson.EndDocument(d, at), ok
	}
	return dst, false
}
