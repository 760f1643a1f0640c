package query

import (
	"fmt"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
)

// String renders the filter as the server's planner does in its messages, one line per condition:
//
//	$and
//	    a $eq 1
//	    b $gt 2
func (f *Filter) String() string {
	var b strings.Builder
	writeNode(&b, f.root, 0)
	return b.String()
}

func writeNode(b *strings.Builder, n node, depth int) {
	indent := strings.Repeat("    ", depth)
	list := func(name string, children []node) {
		fmt.Fprintf(b, "%s%s\n", indent, name)
		for _, c := range children {
			writeNode(b, c, depth+1)
		}
	}
	switch n := n.(type) {
	case *and:
		list("$and", n.children)
	case *or:
		list("$or", n.children)
	case *nor:
		if len(n.children) == 1 {
			list("$not", n.children)
			return
		}
		list("$nor", n.children)
	case *not:
		list("$not", []node{n.child})
	case constant:
		name := "$alwaysFalse"
		if n {
			name = "$alwaysTrue"
		}
		fmt.Fprintf(b, "%s%s: 1\n", indent, name)
	case *nearNode:
		fmt.Fprintf(b, "%sGEONEAR  field=%s maxdist=%s isNearSphere=%d\n", indent, n.near.path,
			bsontext.CDouble(n.near.max, 6), oneIf(n.near.sphere))
	case *textNode:
		language := n.query.Language
		if language == "" {
			language = "english"
		}
		fmt.Fprintf(b, "%sTEXT : query=%s, language=%s, caseSensitive=%d, diacriticSensitive=%d, tag=NULL\n", indent,
			n.query.Search, language,
			oneIf(n.query.CaseSensitive), oneIf(n.query.DiacriticSensitive))
	case *exprNode:
		fmt.Fprintf(b, "%s$expr\n", indent)
	case *whereNode:
		fmt.Fprintf(b, "%s$where\n%s\tcode: %s\n", indent, indent, n.code)
	case *schemaNode:
		fmt.Fprintf(b, "%s$jsonSchema\n", indent)
	case *leaf:
		writeLeaf(b, n, indent, depth)
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func writeLeaf(b *strings.Builder, l *leaf, indent string, depth int) {
	b.WriteString(indent)
	if _, geo := l.test.(*geoTest); !geo {
		b.WriteString(l.path.name + " ")
	}
	switch t := l.test.(type) {
	case *compareTest:
		op := comparisonNames[t.op]
		fmt.Fprintf(b, "%s %s\n", op, bsontext.Value(t.rhs))
	case *inTest:
		b.WriteString("$in [ ")
		for _, v := range t.values {
			b.WriteString(bsontext.Value(v) + " ")
		}
		for _, re := range t.regexes {
			fmt.Fprintf(b, "/%s/%s ", re.pattern, re.options)
		}
		b.WriteString("]\n")
	case *regexTest:
		fmt.Fprintf(b, "regex /%s/%s\n", t.pattern, t.options)
	case *modTest:
		fmt.Fprintf(b, "mod %d %% x == %d\n", t.divisor, t.remainder)
	case existsTest:
		b.WriteString("exists\n")
	case sizeTest:
		fmt.Fprintf(b, "$size : %d\n", int(t))
	case *typeTest:
		fmt.Fprintf(b, "type: %s\n", typeSetText(&t.set))
	case *bitTest:
		fmt.Fprintf(b, "$bits%s%s: [%s]\n", map[bool]string{true: "All", false: "Any"}[t.all],
			map[bool]string{true: "Set", false: "Clear"}[t.set],
			strings.Trim(strings.ReplaceAll(fmt.Sprint(t.positions), " ", ", "), "[]"))
	case *elemMatchObjectTest:
		b.WriteString("$elemMatch (obj)\n")
		writeNode(b, t.sub, depth+1)
	case *elemMatchValueTest:
		b.WriteString("$elemMatch (value)\n")
		for _, c := range t.sub.children {
			writeNode(b, c, depth+1)
		}
	case *geoTest:
		fmt.Fprintf(b, "GEO raw = %s\n", bsontext.Document(t.raw))
	}
}

func typeSetText(s *typeSet) string {
	var names []string
	if s.numbers {
		names = append(names, "number")
	}
	for _, t := range s.types {
		names = append(names, bsontext.TypeName(t))
	}
	return "[ " + strings.Join(names, ", ") + " ]"
}

// Describe renders a query as the server does in front of "planner returned error": namespace,
// filter, sort, projection and collation, each on its line.
func Describe(namespace string, f *Filter, sort, projection, collation bson.Raw) string {
	text := "ns=" + namespace + "Tree: " + f.String() + "Sort: " + bsontext.Document(sort) + "\nProj: " +
		bsontext.Document(projection) + "\n"
	if !collation.IsEmpty() {
		text += "Collation: " + bsontext.Document(collation) + "\n"
	}
	return text
}
