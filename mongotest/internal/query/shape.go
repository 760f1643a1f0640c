package query

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
)

// The shape of a query is what queries have in common that differ in their values only. Of a query
// for all documents it is the text that the server hashes; how it writes others is not known.

// Shape returns the shape of the filter.
func (f *Filter) Shape() string {
	var b strings.Builder
	writeShape(&b, f.root)
	return b.String()
}

func writeShape(b *strings.Builder, n node) {
	list := func(name string, children []node) {
		b.WriteString(name)
		for i, c := range children {
			if i == 0 {
				b.WriteByte('[')
			} else {
				b.WriteByte(',')
			}
			writeShape(b, c)
		}
		if len(children) > 0 {
			b.WriteByte(']')
		}
	}
	switch n := n.(type) {
	case *and:
		list("an", n.children)
	case *or:
		list("or", n.children)
	case *nor:
		list("nr", n.children)
	case *not:
		list("nt", []node{n.child})
	case *leaf:
		testShape(b, n.test)
		b.WriteString(escapeShape(n.path.name))
	case *directNode:
		b.WriteString("ee" + escapeShape(strings.Join(n.path, ".")))
	case *exprNode:
		b.WriteString("xp")
	case *schemaNode:
		b.WriteString("js" + bsontext.Document(n.source))
	case *textNode:
		b.WriteString("te")
	case *nearNode:
		b.WriteString("gn")
	case constant:
		b.WriteString(map[bool]string{true: "at", false: "af"}[bool(n)])
	default:
		b.WriteString("??")
	}
}

func testShape(b *strings.Builder, t test) {
	switch t := t.(type) {
	case *compareTest:
		b.WriteString(map[comparison]string{equal: "eq", less: "lt", less | equal: "le", greater: "gt",
			greater | equal: "ge"}[t.op])
	case *inTest:
		b.WriteString("in")
		for _, re := range t.regexes {
			b.WriteString("_re" + re.options)
		}
	case *regexTest:
		b.WriteString("re/" + t.options + "/")
	case *modTest:
		b.WriteString("mo")
	case existsTest:
		b.WriteString("ex")
	case sizeTest:
		b.WriteString("sz")
	case *typeTest:
		b.WriteString("ty")
	case *elemMatchObjectTest:
		b.WriteString("eo[")
		writeShape(b, t.sub)
		b.WriteByte(']')
	case *elemMatchValueTest:
		b.WriteString("ev[")
		writeShape(b, &t.sub)
		b.WriteByte(']')
	case *geoTest:
		b.WriteString("go")
	case *bitTest:
		b.WriteString("bt")
	default:
		b.WriteString("??")
	}
}

// escapeShape sets the characters apart that stand between the parts of a shape.
func escapeShape(name string) string {
	if !strings.ContainsAny(name, "|#-~[],<>/?@\\") {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		if strings.IndexByte("|#-~[],<>/?@\\", name[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// SortShape returns the shape of a sort specification.
func SortShape(spec bson.Raw) string {
	var list []string
	for k, v := range spec.All() {
		order := "a"
		switch {
		case v.Type == bson.TypeEmbeddedDocument:
			order = "t"
		case v.IsNumber() && Float(v) < 0:
			order = "d"
		}
		list = append(list, order+escapeShape(k))
	}
	return strings.Join(list, ",")
}

// ProjectionShape returns the shape of a projection: which fields it takes, if it does nothing but
// take fields, else the whole of it.
func ProjectionShape(spec bson.Raw) string {
	var list []string
	for k, v := range spec.All() {
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeString || v.Type == bson.TypeArray {
			return bsontext.Document(spec)
		}
		mark := "+"
		if !v.AsBool() {
			mark = "-"
		}
		list = append(list, mark+escapeShape(k))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// Source returns the filter as it was written.
func (f *Filter) Source() bson.Raw { return f.source }
