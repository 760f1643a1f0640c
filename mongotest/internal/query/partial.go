package query

import "strings"

// UnfitForPartial says why a filter cannot say which documents are in a partial index, "" if it
// can.
func (f *Filter) UnfitForPartial() string {
	root, err := f.written(f.options)
	if err != nil {
		return err.Error()
	}
	version := newFilterParser(f.options).version
	if version.AtLeast(5, 0) { // an $and within another is no other condition
		root = joinAnds(root)
	}
	return unfitForPartial(root, 0, version.AtLeast(6, 0))
}

// joinAnds returns a condition whose $and at the top has none within.
func joinAnds(n node) node {
	top, ok := n.(*and)
	if !ok {
		return n
	}
	flat := &and{}
	for _, c := range top.children {
		if inner, ok := joinAnds(c).(*and); ok {
			flat.children = append(flat.children, inner.children...)
		} else {
			flat.children = append(flat.children, c)
		}
	}
	return flat
}

func unfitForPartial(n node, depth int, modern bool) string {
	children := func(list []node) string {
		for _, c := range list {
			if text := unfitForPartial(c, depth+1, modern); text != "" {
				return text
			}
		}
		return ""
	}
	switch n := n.(type) {
	case *and:
		if depth > 0 && !modern {
			return "$and only supported in partialFilterExpression at top level"
		}
		return children(n.children)
	case *or:
		if modern {
			return children(n.children)
		}
	case *leaf:
		switch n.test.(type) {
		case *compareTest, existsTest, *typeTest:
			return ""
		case *inTest, *geoTest:
			if modern {
				return ""
			}
		}
	}
	var b strings.Builder
	writeNode(&b, n, 0)
	return "unsupported expression in partial index: " + b.String()
}
