package query

// Operators that the server makes itself, of $jsonSchema and $expr, and that commands may use as
// well.

import (
	"strings"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// directNode tests the value at a path as it is: arrays are not traversed. An array on the way to
// it is tested itself if the test asks for that.
type directNode struct {
	path   []string
	arrays bool
	test   func(v bson.RawValue) bool // v may be missing
	// Of a comparison: what it compares with, and how.
	compares comparison
	rhs      bson.RawValue
}

func (n *directNode) match(doc bson.Raw) (bool, int, error) {
	v := bsondoc.DocumentValue(doc)
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

// An internalTest makes the test of an internal operator.
type internalTest = func(p *filterParser, c condition) (func(v bson.RawValue) bool, error)

// direct returns the parser of an internal operator on a field.
func direct(parse internalTest) func(*filterParser, condition) (node, error) {
	return func(p *filterParser, c condition) (node, error) {
		test, err := parse(p, c)
		return &directNode{path: strings.Split(c.field, "."), test: test}, err
	}
}

// whole returns the parser of an internal operator on whole documents.
func whole(parse internalTest) func(*filterParser, string, bson.RawValue, level) (node, error) {
	return func(p *filterParser, key string, v bson.RawValue, lv level) (node, error) {
		test, err := parse(p, condition{op: key, arg: v, level: lv})
		return &directNode{test: test}, err
	}
}

// compareDirect returns the parser of a comparison as expressions have it: of all types, and true
// of arrays on the way, of which the expression itself decides.
func compareDirect(op comparison, holds func(v, arg bson.RawValue, c *Collation) bool) func(*filterParser,
	condition) (node, error) {
	return func(p *filterParser, c condition) (node, error) {
		if c.arg.Type == bson.TypeUndefined || c.arg.Type == bson.TypeArray {
			return nil, badValue("%s cannot be used to compare to type: %s", c.op, bsontext.TypeName(c.arg.Type))
		}
		return &directNode{path: strings.Split(c.field, "."), arrays: true, compares: op, rhs: c.arg,
			test: func(v bson.RawValue) bool {
				return v.Type == bson.TypeArray || holds(v, c.arg, p.coll)
			}}, nil
	}
}

// counts returns the test of a count: that it is at least, or at most, the argument. A count is
// negative of values that the operator is not about.
func counts(of func(v bson.RawValue) int64, atMost bool) internalTest {
	return func(p *filterParser, c condition) (func(v bson.RawValue) bool, error) {
		limit, err := parseNonNegativeLong(c.op, c.arg, p.version)
		return func(v bson.RawValue) bool {
			n := of(v)
			return n >= 0 && (atMost && n <= limit || !atMost && n >= limit)
		}, err
	}
}

func properties(v bson.RawValue) int64 { return int64(countElements(v.Value)) }

func items(v bson.RawValue) int64 {
	if v.Type != bson.TypeArray {
		return -1
	}
	return int64(countElements(v.Value))
}

func length(v bson.RawValue) int64 {
	if v.Type != bson.TypeString {
		return -1
	}
	return int64(utf8.RuneCount(stringData(v)))
}

func (p *filterParser) schemaEqual(c condition) (func(v bson.RawValue) bool, error) {
	return func(v bson.RawValue) bool {
		return v.Type == 0 && c.arg.Type == bson.TypeUndefined || v.Type != 0 && equalUnordered(v, c.arg, p.work)
	}, nil
}

func (p *filterParser) uniqueItems(c condition) (func(v bson.RawValue) bool, error) {
	if unique, ok := c.arg.Boolean(); !ok || !unique {
		return nil, srverr.New(srverr.FailedToParse, "%s must be a boolean of value true", c.field)
	}
	s := &schema{work: p.work, uniqueItems: true, maxItems: -1}
	return func(v bson.RawValue) bool { return v.Type == bson.TypeArray && s.validArray(v.Value) }, nil
}

func (p *filterParser) schemaType(c condition) (func(v bson.RawValue) bool, error) {
	set, err := parseTypeSet(c.field, c.arg)
	return func(v bson.RawValue) bool { return v.Type != 0 && set.has(v.Type) }, err
}

func (p *filterParser) objectMatch(c condition) (func(v bson.RawValue) bool, error) {
	doc, ok := c.arg.Document()
	if !ok {
		return nil, srverr.New(srverr.FailedToParse, "$_internalSchemaObjectMatch must be an object")
	}
	sub, err := p.parse(doc, levelElemMatch)
	return func(v bson.RawValue) bool { return v.Type == bson.TypeEmbeddedDocument && holds(sub, v) }, err
}

// holds reports whether a document matches.
func holds(n node, doc bson.RawValue) bool {
	ok, _, _ := n.match(doc.Value)
	return ok
}

// allFromIndex parses [index, {name: condition}], which the elements from that index on have to
// fulfill.
func (p *filterParser) allFromIndex(c condition) (func(v bson.RawValue) bool, error) {
	if c.arg.Type != bson.TypeArray {
		return nil, srverr.New(srverr.FailedToParse, "%s must be an array", c.op)
	}
	list := bsondoc.Items(c.arg)
	if len(list) != 2 {
		return nil, srverr.New(srverr.FailedToParse, "%s must be an array of size 2", c.op)
	}
	from, err := parseNonNegativeLong("0", list[0], p.version)
	if err != nil {
		return nil, err
	}
	doc, ok := list[1].Document()
	if !ok {
		return nil, srverr.New(srverr.FailedToParse, "second element of %s must be an object", c.op)
	}
	name, _, _ := firstElement(doc)
	sub, err := p.parse(doc, levelElemMatch)
	return func(v bson.RawValue) bool {
		if v.Type != bson.TypeArray {
			return false
		}
		for i, e := range bsondoc.Items(v) {
			if ok, _, err := sub.match(bsondoc.Single(name, e)); int64(i) >= from && (!ok || err != nil) {
				return false
			}
		}
		return true
	}, err
}

func (p *filterParser) rootEqual(c condition) (func(v bson.RawValue) bool, error) {
	if c.arg.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(srverr.TypeMismatch, "%s must be an object, found type %s", c.op,
			bsontext.TypeName(c.arg.Type))
	}
	return func(v bson.RawValue) bool { return equalUnordered(v, c.arg, p.work) }, nil
}

func (p *filterParser) conditional(c condition) (func(v bson.RawValue) bool, error) {
	if c.arg.Type != bson.TypeArray {
		return nil, srverr.New(srverr.FailedToParse, "%s must be an array of 3 MatchExpressions", c.op)
	}
	list := bsondoc.Items(c.arg)
	if len(list) != 3 {
		return nil, srverr.New(srverr.FailedToParse, "%s requires exactly 3 MatchExpressions, but got %d", c.op,
			len(list))
	}
	var parts [3]node
	for i, e := range list {
		doc, ok := e.Document()
		if !ok {
			return nil, srverr.New(srverr.FailedToParse, "%s must be an array of 3 MatchExpressions", c.op)
		}
		var err error
		if parts[i], err = p.parse(doc, c.level); err != nil {
			return nil, err
		}
	}
	return func(v bson.RawValue) bool {
		if holds(parts[0], v) {
			return holds(parts[1], v)
		}
		return holds(parts[2], v)
	}, nil
}

func (p *filterParser) exclusive(c condition) (func(v bson.RawValue) bool, error) {
	parsed, err := p.parseLogical(c.op, c.arg, c.level)
	if err != nil {
		return nil, err
	}
	return func(v bson.RawValue) bool {
		hits := 0
		for _, n := range parsed.(*nor).children {
			if holds(n, v) {
				hits++
			}
		}
		return hits == 1
	}, nil
}
