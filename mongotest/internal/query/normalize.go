package query

import (
	"slices"
	"sort"
	"strings"
)

// The order in which the server evaluates the conditions of an $and is observable: the last one
// that traverses an array determines the positional operator. It flattens nested $ands and sorts by
// kind and path.

// normalize flattens and sorts a tree as the server's optimizer does.
func normalize(n node) node { return optimize(n, true) }

// flatten does the same but for the order.
func flatten(n node) node { return optimize(n, false) }

func optimize(n node, sorted bool) node {
	switch n := n.(type) {
	case *and:
		var flat, nested []node // what is absorbed goes to the end
		never := slices.Contains(n.children, node(constant(false)))
		for _, c := range n.children {
			c = optimize(c, sorted)
			if inner, ok := c.(*and); ok {
				nested = append(nested, inner.children...)
			} else {
				flat = append(flat, c)
			}
		}
		flat = append(flat, nested...)
		if never && !slices.ContainsFunc(flat, isSpecialNode) {
			return constant(false)
		}
		if len(flat) == 1 {
			return flat[0]
		}
		n.children = flat
		if sorted {
			sortNodes(n.children)
		}
	case *or:
		n.children = optimizeAll(n.children, sorted)
		if len(n.children) == 1 {
			return n.children[0]
		}
	case *nor:
		n.children = optimizeAll(n.children, sorted)
	case *not:
		n.child = optimize(n.child, sorted)
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
			t.sub = optimize(t.sub, sorted)
		}
	}
	return n
}

// isSpecialNode tells whether a node is for an index to answer.
func isSpecialNode(n node) bool {
	switch n.(type) {
	case *textNode, *nearNode:
		return true
	}
	return false
}

func optimizeAll(list []node, sorted bool) []node {
	for i, c := range list {
		list[i] = optimize(c, sorted)
	}
	if sorted {
		sortNodes(list)
	}
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
