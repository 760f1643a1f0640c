package query

import (
	"sort"
	"strings"
)

// The order in which the server evaluates the conditions of an $and is observable: the last one
// that traverses an array determines the positional operator. It flattens nested $ands and sorts by
// kind and path.

// normalize flattens and sorts a tree as the server's optimizer does.
func normalize(n node) node {
	switch n := n.(type) {
	case *and:
		var flat []node
		for _, c := range n.children {
			c = normalize(c)
			if inner, ok := c.(*and); ok {
				flat = append(flat, inner.children...)
			} else {
				flat = append(flat, c)
			}
		}
		if len(flat) == 1 {
			return flat[0]
		}
		n.children = flat
		sortNodes(n.children)
	case *or:
		n.children = normalizeAll(n.children)
		if len(n.children) == 1 {
			return n.children[0]
		}
	case *nor:
		n.children = normalizeAll(n.children)
	case *not:
		n.child = normalize(n.child)
	case *leaf:
		switch t := n.test.(type) {
		case *inTest:
			switch {
			case len(t.values) == 1 && len(t.regexes) == 0:
				n.test = newCompareTest(equal, t.values[0], t.coll)
			case len(t.values) == 0 && len(t.regexes) == 1:
				n.test = t.regexes[0]
			case len(t.values) == 0 && len(t.regexes) == 0:
				return constant(false)
			}
		case *elemMatchObjectTest:
			t.sub = normalize(t.sub)
		}
	}
	return n
}

func normalizeAll(list []node) []node {
	for i, c := range list {
		list[i] = normalize(c)
	}
	sortNodes(list)
	return list
}

func sortNodes(list []node) {
	if len(list) < 2 {
		return
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := rank(list[i]), rank(list[j])
		if a != b {
			return a < b
		}
		x, okX := list[i].(*leaf)
		y, okY := list[j].(*leaf)
		return okX && okY && strings.Compare(x.path.name, y.path.name) < 0
	})
}

// rank is the server's order of kinds.
func rank(n node) int {
	switch n := n.(type) {
	case *and:
		return 0
	case *or:
		return 1
	case *not:
		return 16
	case *nor:
		return 17
	case *whereNode:
		return 20
	case *exprNode:
		return 21
	case constant:
		if n {
			return 23
		}
		return 22
	case *leaf:
		switch t := n.test.(type) {
		case *elemMatchObjectTest:
			return 2
		case *elemMatchValueTest:
			return 3
		case sizeTest:
			return 4
		case *compareTest:
			switch t.op {
			case equal:
				return 5
			case less | equal:
				return 6
			case less:
				return 7
			case greater:
				return 8
			}
			return 9
		case *regexTest:
			return 10
		case *modTest:
			return 11
		case existsTest:
			return 12
		case *inTest:
			return 13
		case *bitTest:
			return 14
		case *typeTest:
			return 18
		}
	}
	return 24
}
