package query

import (
	"math"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// level is where in a filter the parser is: some operators are allowed at the top only.
type level uint8

const (
	levelTop       level = iota // the filter itself
	levelLogical                // below $and, $or, $nor
	levelElemMatch              // within $elemMatch
)

type filterParser struct {
	coll                   *Collation
	version                release.Version
	expr                   ExprParser
	noExpr, noText, noNear bool
	unsorted               bool
	noWhere                bool
	noSchema               bool
	where                  WhereCompiler
	text                   *textNode // $text, if there has been one
	near                   *Near
	work                   *work.Meter
	out                    Filter // what comes of it: see filter
}

// isExpression reports whether a value is a document of operators: its first field starts with "$",
// and it is no DBRef. Within $elemMatch one DBRef field is enough for a DBRef (partial), else $ref
// and $id are.
func isExpression(v bson.RawValue, partial bool) bool {
	doc, ok := v.Document()
	if !ok {
		return false
	}
	first := true
	var ref, id, db bool
	for key := range doc.All() {
		if first && !strings.HasPrefix(key, "$") {
			return false
		}
		first = false
		switch key {
		case "$ref":
			ref = true
		case "$id":
			id = true
		case "$db":
			db = true
		}
	}
	if first {
		return false
	}
	if partial {
		return !ref && !id && !db
	}
	return !ref || !id
}

func (p *filterParser) parse(doc bson.Raw, lv level) (node, error) {
	var first [4]node // most filters have no more conditions
	children := first[:0]
	for key, v := range doc.All() {
		switch {
		case strings.HasPrefix(key, "$"):
			op := p.op(key)
			if op.top == nil {
				return nil, p.unknownTopLevel(key)
			}
			n, err := op.top(p, key, v, lv)
			if err != nil {
				return nil, err
			}
			if n != nil {
				children = append(children, n)
			}
		case isExpression(v, false):
			next := lv
			if next == levelTop {
				next = levelLogical
			}
			var err error
			if children, err = p.parseField(children, key, v.Value, next); err != nil {
				return nil, err
			}
		case v.Type == bson.TypeRegex:
			n, err := p.regexLeaf(key, v)
			if err != nil {
				return nil, err
			}
			children = append(children, n)
		default:
			n, err := p.compareLeaf(key, equal, v)
			if err != nil {
				return nil, err
			}
			children = append(children, n)
		}
	}
	if len(children) == 1 {
		return children[0], nil
	}
	return &and{slices.Clone(children)}, nil
}

func (p *filterParser) unknownTopLevel(key string) error {
	if p.version.AtLeast(5, 0) {
		return badValue("unknown top level operator: %s. If you have a field name that starts with a '$' symbol,"+
			" consider using $getField or $setField.", key)
	}
	return badValue("unknown top level operator: %s", key)
}

func (p *filterParser) parseLogical(key string, v bson.RawValue, lv level) (node, error) {
	if v.Type != bson.TypeArray {
		return nil, badValue("%s must be an array", key)
	}
	var children []node
	text := p.text
	for e := range bson.Raw(v.Value).Values() {
		if e.Type != bson.TypeEmbeddedDocument {
			return nil, badValue("$or/$and/$nor entries need to be full objects")
		}
		if lv == levelTop {
			lv = levelLogical
		}
		n, err := p.parse(e.Value, lv)
		if err != nil {
			return nil, err
		}
		children = append(children, n)
	}
	switch {
	case len(children) == 0:
		return nil, badValue("$and/$or/$nor must be a nonempty array")
	case key == "$nor" && p.text != nil && text == nil && p.version.AllParsed():
		return nil, badValue("text expression not allowed in nor")
	}
	switch key {
	case "$and":
		return &and{children}, nil
	case "$or":
		return &or{children: children, pins: p.version.AllParsed() && isList(children)}, nil
	}
	return &nor{or{children: children}}, nil
}

func (p *filterParser) parseExpr(_ string, v bson.RawValue, lv level) (node, error) {
	if lv == levelElemMatch {
		return nil, badValue("$expr can only be applied to the top-level document")
	}
	if p.noExpr {
		return nil, srverr.New(srverr.QueryFeatureNotAllowed, "$expr is not allowed in this context")
	}
	if p.expr == nil {
		return nil, srverr.New(srverr.QueryFeatureNotAllowed, "$expr is not supported in this context")
	}
	e, err := p.expr.ParseExpr(v)
	if fold, ok := err.(*FoldError); ok {
		return &exprNode{fold: fold.Err}, nil
	}
	if err != nil {
		return nil, err
	}
	return &exprNode{expr: e, source: v, compares: exprComparisons(v, p.version.AtLeast(5, 0))}, nil
}

func (p *filterParser) parseConstant(key string, v bson.RawValue, _ level) (node, error) {
	n, err := parseLong(key, v)
	if err != nil {
		return nil, err
	}
	if n != 1 {
		return nil, srverr.New(srverr.FailedToParse, "%s must be an integer value of 1", key)
	}
	return constant(key == "$alwaysTrue"), nil
}

func (p *filterParser) parseWhere(_ string, v bson.RawValue, lv level) (node, error) {
	if p.noWhere {
		return nil, badValue("$where is not allowed in this context")
	}
	if lv == levelElemMatch {
		return nil, badValue("$where can only be applied to the top-level document")
	}
	code, ok := v.StringValue()
	if js, isCode := v.JavaScript(); isCode {
		code, ok = string(js), true
	}
	if v.Type == bson.TypeCodeWithScope && !p.version.AtLeast(4, 4) {
		code, _, ok = v.CodeWithScope()
	}
	if !ok && v.Type != bson.TypeCodeWithScope {
		return nil, badValue("$where got bad type")
	}
	if ok && code == "" {
		return nil, badValue("code for $where cannot be empty")
	}
	if p.where == nil {
		return nil, badValue("no globalScriptEngine in $where parsing")
	}
	if !ok {
		return nil, badValue("$where got bad type")
	}
	run, err := p.where.CompileWhere(code)
	if err != nil {
		return nil, err
	}
	return &whereNode{code, run}, nil
}

func (p *filterParser) parseSampleRate(_ string, v bson.RawValue, lv level) (node, error) {
	if lv == levelElemMatch {
		return nil, badValue("$sampleRate can only be applied to the top-level document")
	}
	if !v.IsNumber() {
		return nil, badValue("argument to $sampleRate must be a numeric type")
	}
	x := Float(v)
	switch {
	case !(x >= 0 && x <= 1):
		return nil, badValue("numeric argument to $sampleRate must be in [0, 1]")
	case x == 0:
		return constant(false), nil
	case x == 1:
		return constant(true), nil
	}
	return sampleRate(x), nil
}

// parseField parses {field: {$op: ..., $op: ...}} and appends the conditions.
func (p *filterParser) parseField(conditions []node, field string, ops bson.Raw, lv level) ([]node, error) {
	if first, v, ok := firstElement(ops); ok && (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) {
		if near := p.op(first).nearest; near != nil {
			n, err := near(p, field, ops)
			if err == nil {
				conditions = append(conditions, n)
			}
			return conditions, err
		}
	}
	for key, v := range ops.All() {
		n, err := p.parseOperator(condition{field, key, v, ops, lv})
		if err != nil {
			return conditions, err
		}
		if n != nil {
			conditions = append(conditions, n)
		}
	}
	return conditions, nil
}

func firstElement(doc bson.Raw) (string, bson.RawValue, bool) {
	key, v, _, err := bson.ReadElement(doc.Elements())
	return key, v, err == nil
}

func negate(n node, err error) (node, error) {
	if err != nil {
		return nil, err
	}
	return &not{n}, nil
}

func (p *filterParser) compareLeaf(field string, op comparison, v bson.RawValue) (node, error) {
	if v.Type == bson.TypeRegex && op != equal {
		return nil, badValue("Can't have RegEx as arg to predicate over field '%s'.", field)
	}
	if v.Type == bson.TypeUndefined {
		return nil, badValue("cannot compare to undefined")
	}
	c := &comparisonLeaf{compareTest: makeCompareTest(op, v, p.coll)}
	c.leaf.work, c.leaf.path, c.leaf.test = p.work, newPath(field, c.part[:0]), &c.compareTest
	return &c.leaf, nil
}

// comparisonLeaf is a leaf that compares, with all that belongs to it: most conditions are.
type comparisonLeaf struct {
	leaf        leaf
	compareTest compareTest
	part        [1]string
}

func (p *filterParser) parseIn(c condition) (node, error) {
	if c.arg.Type != bson.TypeArray {
		return nil, badValue("%s needs an array", c.op)
	}
	t := &inTest{coll: p.coll}
	for v := range bson.Raw(c.arg.Value).Values() {
		switch {
		case isExpression(v, false):
			return nil, badValue("cannot nest $ under $in")
		case v.Type == bson.TypeRegex:
			re, err := newRegexTestFromValue(v, p.version, p.work)
			if err != nil {
				return nil, err
			}
			t.regexes = append(t.regexes, re)
		default:
			t.values = append(t.values, v)
			t.hasNull = t.hasNull || v.Type == bson.TypeNull
		}
	}
	for _, v := range t.values {
		if v.Type == bson.TypeUndefined {
			return nil, badValue("InMatchExpression equality cannot be undefined")
		}
	}
	t.sortValues(p.work)
	return p.leaf(c.field, t), nil
}

func (p *filterParser) parseNot(c condition) (node, error) {
	v := c.arg
	if v.Type == bson.TypeRegex {
		return negate(p.regexLeaf(c.field, v))
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, badValue("$not needs a regex or a document")
	}
	if bson.Raw(v.Value).IsEmpty() {
		return nil, badValue("$not cannot be empty")
	}
	children, err := p.parseField(nil, c.field, v.Value, c.level)
	if err != nil {
		return nil, err
	}
	return &not{&and{children}}, nil
}

func (p *filterParser) parseSize(c condition) (node, error) {
	var size int64
	v := c.arg
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		size, _ = v.AsInt64()
		if size != int64(int32(size)) {
			return nil, badValue("$size must be representable as a 32-bit integer")
		}
	case bson.TypeDouble:
		f, _ := v.Double()
		if f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
			return nil, badValue("$size must be a whole number")
		}
		size = int64(f)
	case bson.TypeDecimal128:
		n, whole := exactInt64(v)
		if !p.version.AllParsed() || !whole || n != int64(int32(n)) {
			return nil, badValue("$size needs a number")
		}
		size = n
	default:
		return nil, badValue("$size needs a number")
	}
	if size < 0 {
		return nil, badValue("$size may not be negative")
	}
	l := p.leaf(c.field, sizeTest(size))
	l.wholeArrays = true
	return l, nil
}

func (p *filterParser) parseMod(c condition) (node, error) {
	if c.arg.Type != bson.TypeArray {
		return nil, badValue("malformed mod, needs to be an array")
	}
	args := bsondoc.Items(c.arg)
	switch {
	case len(args) < 2:
		return nil, badValue("malformed mod, not enough elements")
	case !args[0].IsNumber():
		return nil, badValue("malformed mod, divisor not a number")
	case !args[1].IsNumber():
		return nil, badValue("malformed mod, remainder not a number")
	case len(args) > 2:
		return nil, badValue("malformed mod, too many elements")
	}
	t := &modTest{divisor: castInt(args[0]), remainder: castInt(args[1])}
	if p.version.AtLeast(5, 0) {
		for i, name := range []string{"divisor", "remainder"} {
			switch f := Float(args[i]); {
			case math.IsNaN(f) || math.IsInf(f, 0):
				return nil, badValue(
					"malformed mod, %s value is invalid :: caused by :: Unable to coerce NaN/Inf to integral type",
					name)
			case args[i].Type != bson.TypeInt64 && (f < math.MinInt64 || f >= -math.MinInt64):
				return nil, badValue(
					"malformed mod, %s value is invalid :: caused by :: Out of bounds coercing to integral value", name)
			}
		}
		t.divisor, t.remainder, t.cut = truncate(args[0]), truncate(args[1]), true
	}
	if t.divisor == 0 {
		return nil, badValue("divisor cannot be 0")
	}
	return p.leaf(c.field, t), nil
}

func (p *filterParser) parseAll(c condition) (node, error) {
	if c.arg.Type != bson.TypeArray {
		return nil, badValue("$all needs an array")
	}
	all := &and{}
	elemMatch := false
	first := true
	for e := range bson.Raw(c.arg.Value).Values() {
		key, arg := "", bson.RawValue{}
		if e.Type == bson.TypeEmbeddedDocument {
			key, arg, _ = firstElement(e.Value)
		}
		if first {
			elemMatch, first = key == "$elemMatch", false
		}
		var n node
		var err error
		switch {
		case elemMatch && key != "$elemMatch":
			return nil, badValue("$all/$elemMatch has to be consistent")
		case elemMatch:
			n, err = p.parseElemMatch(condition{field: c.field, arg: arg})
		case e.Type == bson.TypeRegex:
			n, err = p.regexLeaf(c.field, e)
		case filterOps[key].traits&inPull != 0: // unlike in $in, a name that is no operator is a field
			return nil, badValue("no $ expressions in $all")
		default:
			n, err = p.compareLeaf(c.field, equal, e)
		}
		if err != nil {
			return nil, err
		}
		all.children = append(all.children, n)
	}
	switch len(all.children) {
	case 0:
		return constant(false), nil
	case 1:
		return all.children[0], nil
	}
	return all, nil
}

func (p *filterParser) parseElemMatch(c condition) (node, error) {
	v := c.arg
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, badValue("$elemMatch needs an Object")
	}
	l := p.leaf(c.field, nil)
	l.wholeArrays = true
	if isExpression(v, true) {
		key, _, _ := firstElement(v.Value)
		if p.op(key).top == nil {
			children, err := p.parseField(nil, "", v.Value, levelElemMatch)
			if err != nil {
				return nil, err
			}
			l.test = &elemMatchValueTest{and{children}}
			return l, nil
		}
	}
	sub, err := p.parse(v.Value, levelElemMatch)
	if err != nil {
		return nil, err
	}
	l.test = &elemMatchObjectTest{sub}
	return l, nil
}
