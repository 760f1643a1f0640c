package query

import (
	"allium/bson"
	"allium/mongotest/internal/work"
)

// node is one match expression.
type node interface {
	// match tells whether the document matches and, if an array was traversed, which element made
	// it match (else noIndex). Only $expr and $where have errors.
	match(doc bson.Raw) (ok bool, index int, err error)
	// matchValue matches a value that an $elemMatch or an array filter put in the place of the
	// field.
	matchValue(v bson.RawValue) bool
}

// noIndex stands for "no array was traversed".
const noIndex = -1

// test decides on one value; the zero RawValue stands for a missing field. A test of whole arrays
// that found an element ($elemMatch) returns its index, all others noIndex.
type test interface {
	test(v bson.RawValue) (ok bool, index int)
}

// leaf applies a test to what a path leads to.
type leaf struct {
	path        Path
	wholeArrays bool // the test wants arrays as they are: $size, $elemMatch
	test        test
	work        *work.Meter
}

func (l *leaf) match(doc bson.Raw) (bool, int, error) {
	ok, index := l.walk(doc, l.path.parts, noIndex)
	return ok, index, nil
}

func (l *leaf) matchValue(v bson.RawValue) bool {
	l.work.Do(1 + len(v.Value)>>10)
	ok, _ := l.test.test(v)
	return ok
}

// visit runs the test. An array traversed on the way determines the index, not one inside of the
// test.
func (l *leaf) visit(v bson.RawValue, index int) (bool, int) {
	l.work.Do(1 + len(v.Value)>>10)
	ok, at := l.test.test(v)
	if ok && index != noIndex {
		at = index
	}
	return ok, at
}

// walk applies the test to what the rest of the path leads to in doc, with the rules of match
// expressions: arrays on the way are traversed element by element and by index, an array at the end
// is tested element by element and then as a whole (only as a whole if wholeArrays is set), and
// where a path breaks off a missing value is tested. index is the position in the outermost array
// that was traversed so far.
func (l *leaf) walk(doc bson.Raw, parts []string, index int) (bool, int) {
	l.work.Do(1)
	for i, last := 0, len(parts)-1; ; i++ {
		v := lookup(doc, parts[i])
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			if i == last {
				return l.visit(v, index)
			}
			doc = v.Value
		case bson.TypeArray:
			return l.walkArray(v.Value, parts[i+1:], index)
		default:
			if i < last {
				v = bson.RawValue{}
			}
			return l.visit(v, index)
		}
	}
}

func (l *leaf) walkArray(array bson.Raw, rest []string, index int) (bool, int) {
	if len(rest) == 0 || len(rest) == 1 && rest[0] == "" { // "a." of an array is the array
		if !l.wholeArrays {
			at := index
			i := 0
			for b := array.Elements(); len(b) > 0; i++ {
				_, v, more, err := bson.ReadElement(b)
				if err != nil {
					break
				}
				b = more
				if index == noIndex {
					at = i
				}
				if ok, _ := l.visit(v, at); ok {
					return true, at
				}
			}
		}
		return l.visit(bson.RawValue{Type: bson.TypeArray, Value: array}, index)
	}
	numeric := IsNumericPart(rest[0])
	at := index
	i := 0
	for b := array.Elements(); len(b) > 0; i++ {
		key, v, more, err := bson.ReadElement(b)
		if err != nil {
			break
		}
		b = more
		if index == noIndex {
			at = i
		}
		if v.Type == bson.TypeEmbeddedDocument {
			if ok, at := l.walk(v.Value, rest, at); ok {
				return true, at
			}
		}
		if !numeric || key != rest[0] {
			continue
		}
		switch { // an explicit index does not count as traversal
		case len(rest) == 1:
			if ok, at := l.visit(v, index); ok {
				return true, at
			}
		case v.Type == bson.TypeEmbeddedDocument:
			if ok, at := l.walk(v.Value, rest[1:], index); ok {
				return true, at
			}
		case v.Type == bson.TypeArray:
			if ok, at := l.walkArray(v.Value, rest[1:], index); ok {
				return true, at
			}
		}
	}
	return false, noIndex
}

// lookup returns the value of a document's or array's field.
func lookup(doc bson.Raw, key string) bson.RawValue {
	for b := doc.Elements(); len(b) > 0; {
		k, v, rest, err := bson.ReadElement(b)
		if err != nil {
			break
		}
		if k == key {
			return v
		}
		b = rest
	}
	return bson.RawValue{}
}

// and matches if all children do; without children it always matches.
type and struct{ children []node }

func (a *and) match(doc bson.Raw) (bool, int, error) {
	index := noIndex
	for _, c := range a.children {
		ok, at, err := c.match(doc)
		if err != nil || !ok {
			return false, noIndex, err
		}
		if at != noIndex {
			index = at // the last one wins
		}
	}
	return true, index, nil
}

func (a *and) matchValue(v bson.RawValue) bool {
	for _, c := range a.children {
		if !c.matchValue(v) {
			return false
		}
	}
	return true
}

// or matches if one of its children does. Which array element that was it tells if it pins.
type or struct {
	children []node
	pins     bool
}

// isList reports whether all nodes want the same path to have a value: the server makes one $in of
// them.
func isList(nodes []node) bool {
	path := ""
	for i, n := range nodes {
		if all, ok := n.(*and); ok && len(all.children) == 1 {
			n = all.children[0]
		}
		l, ok := n.(*leaf)
		if !ok {
			return false
		}
		if t, ok := l.test.(*compareTest); !ok || t.op != equal || i > 0 && l.path.name != path {
			return false
		}
		path = l.path.name
	}
	return true
}

func (o *or) match(doc bson.Raw) (bool, int, error) {
	for _, c := range o.children {
		ok, at, err := c.match(doc)
		if !o.pins {
			at = noIndex
		}
		if err != nil || ok {
			return ok, at, err
		}
	}
	return false, noIndex, nil
}

func (o *or) matchValue(v bson.RawValue) bool {
	for _, c := range o.children {
		if c.matchValue(v) {
			return true
		}
	}
	return false
}

// nor matches if none of its children does.
type nor struct{ or }

func (n *nor) match(doc bson.Raw) (bool, int, error) {
	ok, _, err := n.or.match(doc)
	return !ok && err == nil, noIndex, err
}

func (n *nor) matchValue(v bson.RawValue) bool { return !n.or.matchValue(v) }

// not turns its child round.
type not struct{ child node }

func (n *not) match(doc bson.Raw) (bool, int, error) {
	ok, _, err := n.child.match(doc)
	return !ok && err == nil, noIndex, err
}

func (n *not) matchValue(v bson.RawValue) bool { return !n.child.matchValue(v) }

// constant is $alwaysTrue and $alwaysFalse.
type constant bool

func (c constant) match(bson.Raw) (bool, int, error) { return bool(c), noIndex, nil }
func (c constant) matchValue(bson.RawValue) bool     { return bool(c) }
