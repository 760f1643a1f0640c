package analysis

import (
	"maps"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/fle"
)

// scope is what the paths and variables of an expression stand for.
type scope struct {
	root    *node // $$ROOT
	current *node // $$CURRENT, where paths start
	vars    map[string]*node
}

// define returns s with one more variable.
func (s *scope) define(name string, n *node) *scope {
	out := *s
	out.vars = maps.Clone(s.vars)
	if out.vars == nil {
		out.vars = map[string]*node{}
	}
	out.vars[name] = n
	return &out
}

// operand is what an expression evaluates to.
type operand struct {
	node     *node         // not nil: an encrypted value, or one that holds some
	path     string        // of a field
	constant bool          // known now:
	value    bson.RawValue // its value
	removed  bool          // $$REMOVE
}

// expression analyses v. It returns v with placeholders, and what v evaluates to.
func (a *analysis) expression(v bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	switch v.Type {
	case bson.TypeString:
		text, _ := v.StringValue()
		if strings.HasPrefix(text, "$") {
			op, err := a.reference(text, s)
			return v, op, err
		}
	case bson.TypeArray:
		return a.arrayExpression(v, s)
	case bson.TypeEmbeddedDocument:
		doc := bson.Raw(v.Value)
		if name, arg := first(doc); strings.HasPrefix(name, "$") {
			if count(doc) != 1 {
				return v, operand{}, a.refuse("", name, "an expression must have one operator", "")
			}
			return a.operatorExpression(name, v, arg, s)
		}
		return a.objectExpression(v, s)
	}
	return v, operand{constant: true, value: v}, nil
}

// reference resolves "$path" and "$$variable.path".
func (a *analysis) reference(text string, s *scope) (operand, error) {
	name, path, n := "", text[1:], s.current
	if strings.HasPrefix(text, "$$") {
		name, path, _ = strings.Cut(text[2:], ".")
		known := true
		switch name {
		case "ROOT":
			n = s.root
		case "CURRENT":
		case "REMOVE":
			return operand{removed: true}, nil
		case "NOW", "CLUSTER_TIME", "USER_ROLES", "DESCEND", "PRUNE", "KEEP":
			n = nil
		default:
			if n, known = s.vars[name]; !known {
				n, known = nil, a.variable[name]
			}
		}
		if !known {
			return operand{}, a.refuse("", "", "the variable '$$"+name+"' is not known", "")
		}
		if path == "" {
			return operand{node: n, path: text}, nil
		}
	}
	found, below := n.at(path)
	if below {
		return operand{}, a.below(path, "")
	}
	return operand{node: found, path: path}, nil
}

func (a *analysis) arrayExpression(v bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	all := operand{constant: true}
	var out, values []bson.RawValue
	for v := range bson.Raw(v.Value).Values() {
		v, op, err := a.expression(v, s)
		if err != nil {
			return v, op, err
		}
		if op.node != nil {
			all.node = opaqueNode
		}
		all.constant = all.constant && op.constant
		out, values = append(out, v), append(values, op.value)
	}
	if all.constant {
		all.value = array(values)
	}
	return array(out), all, nil
}

func (a *analysis) objectExpression(v bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	all := operand{constant: true}
	var n *node
	start, values := bson.BeginDocument(nil)
	out, err := rewrite(v.Value, func(key string, v bson.RawValue) (bson.RawValue, error) {
		v, op, err := a.expression(v, s)
		if err != nil {
			return v, err
		}
		n = n.with(key, op.node)
		if all.constant = all.constant && op.constant; all.constant {
			values = bson.AppendRawValue(values, key, op.value)
		}
		return v, nil
	})
	if err != nil {
		return v, all, err
	}
	all.node = n
	if all.constant {
		all.value = document(bson.EndDocument(values, start))
	}
	return document(out), all, nil
}

// plainExpressions are the operators whose arguments must not be encrypted, which makes their
// result plain.
var plainExpressions = words(
	`$abs $acos $acosh $add $allElementsTrue $anyElementTrue $arrayElemAt $arrayToObject $asin $asinh $atan $atan2
	$atanh $avg $binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize $ceil $cmp $concat $concatArrays $convert $cos $cosh $dateAdd $dateDiff
	$dateFromParts $dateFromString $dateSubtract $dateToParts $dateToString $dateTrunc $dayOfMonth $dayOfWeek $dayOfYear
	$degreesToRadians $divide $exp $first $firstN $floor $hour $indexOfArray $indexOfBytes $indexOfCP $isArray $isNumber $isoDayOfWeek
	$isoWeek $isoWeekYear $last $lastN $ln $log $log10 $ltrim $max $maxN $mergeObjects $meta $millisecond $min $minN $minute $mod $month
	$multiply $objectToArray $pow $radiansToDegrees $rand $range $regexFind $regexFindAll $regexMatch $replaceAll $replaceOne
	$reverseArray $round $rtrim $second $setDifference $setEquals $setIntersection $setIsSubset $setUnion $sin $sinh $size $slice
	$sortArray $split $sqrt $stdDevPop $stdDevSamp $strLenBytes $strLenCP $strcasecmp $substr $substrBytes $substrCP $subtract $sum $tan
	$tanh $toBool $toDate $toDecimal $toDouble $toInt $toLong $toLower $toObjectId $toString $toUpper $toUUID $trim $trunc $tsIncrement
	$tsSecond $type $week $year $zip $setField $unsetField $percentile $median`)

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// operatorExpression analyses v, {name: arg}.
func (a *analysis) operatorExpression(name string, v, arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	with := func(arg bson.RawValue, op operand, err error) (bson.RawValue, operand, error) {
		if err != nil {
			return v, op, err
		}
		return document(pair(name, arg)), op, nil
	}
	switch name {
	case "$literal", "$const":
		return v, operand{constant: true, value: arg}, nil
	case "$eq", "$ne":
		return a.equalityExpression(name, v, arg, s)
	case "$gt", "$gte", "$lt", "$lte":
		t, err := a.rangeExpression(name, arg, s)
		if err != nil || t == nil {
			return a.plainExpression(name, v, arg, s, err)
		}
		return a.writeRange(t, arg, s), operand{}, nil
	case "$in":
		return a.inExpression(v, arg, s)
	case "$and", "$or":
		return with(a.logicExpression(name, arg, s))
	case "$not":
		return with(a.logicExpression(name, arg, s))
	case "$cond":
		return with(a.condExpression(arg, s))
	case "$ifNull":
		return with(a.ifNullExpression(arg, s))
	case "$switch":
		return with(a.switchExpression(arg, s))
	case "$let":
		return with(a.letExpression(arg, s))
	case "$map", "$filter", "$reduce":
		return with(a.iterate(name, arg, s))
	case "$encStrStartsWith", "$encStrEndsWith", "$encStrContains", "$encStrNormalizedEq":
		return with(a.textExpression(name, arg, s))
	case "$getField":
		return with(a.getField(name, arg, s))
	}
	if !plainExpressions[name] {
		return v, operand{}, a.refuse("", name, "Unsupported expression operator for encryption", "")
	}
	return a.plainExpression(name, v, arg, s, nil)
}

// encryptedOperand says why an operator cannot have an encrypted argument.
func (a *analysis) encryptedOperand(name string, op operand) error {
	return a.refuse(op.path, name, "an encrypted field cannot be an argument of the operator",
		"$eq, $ne and $in work with deterministic encryption and equality queries")
}

// plainExpression analyses the arguments of an operator that takes nothing encrypted.
func (a *analysis) plainExpression(name string, v, arg bson.RawValue, s *scope,
	err error) (bson.RawValue, operand, error) {
	if err != nil {
		return v, operand{}, err
	}
	var out bson.RawValue
	var op operand
	if doc, ok := arg.Document(); ok && !isOperator(arg) {
		if err := a.unique(doc, name); err != nil {
			return v, operand{}, err
		}
		// Named arguments. An object in place of the only argument looks the same, and is treated
		// the same.
		changed, err := rewrite(doc, func(_ string, v bson.RawValue) (bson.RawValue, error) {
			v, inner, err := a.expression(v, s)
			if inner.node != nil {
				op = inner
			}
			return v, err
		})
		if err != nil {
			return v, operand{}, err
		}
		out = document(changed)
	} else if out, op, err = a.expression(arg, s); err != nil {
		return v, operand{}, err
	}
	if op.node != nil {
		return v, operand{}, a.encryptedOperand(name, op)
	}
	return document(pair(name, out)), operand{}, nil
}

// arguments returns the n arguments of an operator.
func (a *analysis) arguments(name string, arg bson.RawValue, n int) ([]bson.RawValue, error) {
	var list []bson.RawValue
	if doc, ok := arg.Array(); ok {
		list = slices.Collect(doc.Values())
	} else {
		list = []bson.RawValue{arg}
	}
	if n > 0 && len(list) != n {
		return nil, a.refusef("", name, "", "the operator wants %d arguments", n)
	}
	return list, nil
}

// equalityExpression analyses $eq and $ne.
func (a *analysis) equalityExpression(name string, v, arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	args, err := a.arguments(name, arg, 2)
	if err != nil {
		return v, operand{}, err
	}
	var ops [2]operand
	for i := range args {
		if args[i], ops[i], err = a.expression(args[i], s); err != nil {
			return v, operand{}, err
		}
	}
	if ops[0].node == nil && ops[1].node == nil {
		return document(pair(name, array(args))), operand{}, nil
	}
	for i, op := range ops {
		other := ops[1-i]
		if op.node == nil {
			continue
		}
		e := op.node.enc
		switch {
		case e == nil:
			return v, operand{}, a.encryptedOperand(name, op)
		case other.node != nil:
			if err := a.comparing(op.path, name); err != nil {
				return v, operand{}, err
			}
			if e.Kind != Deterministic || other.node.enc == nil || !e.same(other.node.enc) {
				return v, operand{}, a.refuse(op.path, name,
					"two encrypted fields can be compared only if both are encrypted deterministically with the same key and type", "")
			}
			return document(pair(name, array(args))), operand{}, nil
		case !other.constant:
			return v, operand{}, a.refuse(op.path, name, "an encrypted field can be compared only with a constant",
				"write the value into the comparison instead of a variable or expression")
		}
		p, err := a.compared(e, op.path, name, other.value)
		if err != nil {
			return v, operand{}, err
		}
		args[1-i] = p
	}
	return document(pair(name, array(args))), operand{}, nil
}

// inExpression analyses $in.
func (a *analysis) inExpression(v, arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	args, err := a.arguments("$in", arg, 2)
	if err != nil {
		return v, operand{}, err
	}
	var ops [2]operand
	for i := range args {
		if args[i], ops[i], err = a.expression(args[i], s); err != nil {
			return v, operand{}, err
		}
	}
	switch {
	case ops[1].node != nil:
		return v, operand{}, a.encryptedOperand("$in", ops[1])
	case ops[0].node == nil:
	case ops[0].node.enc == nil:
		return v, operand{}, a.encryptedOperand("$in", ops[0])
	case !ops[1].constant:
		return v, operand{}, a.refuse(ops[0].path, "$in", "an encrypted field can be compared only with constants",
			"write the values into the comparison")
	default:
		list, ok := ops[1].value.Array()
		if !ok {
			return v, operand{}, a.refuse(ops[0].path, "$in", "the operator wants an array", "")
		}
		var out []bson.RawValue
		for v := range list.Values() {
			p, err := a.compared(ops[0].node.enc, ops[0].path, "$in", v)
			if err != nil {
				return v, operand{}, err
			}
			out = append(out, p)
		}
		args[1] = array(out)
	}
	return document(pair("$in", array(args))), operand{}, nil
}

var flipped = map[fle.RangeOperator]fle.RangeOperator{
	fle.Greater: fle.Less, fle.GreaterOrEqual: fle.LessOrEqual, fle.Less: fle.Greater,
	fle.LessOrEqual: fle.GreaterOrEqual,
}

// rangeExpression returns the range comparison that {name: arg} is, nil if neither argument is
// encrypted.
func (a *analysis) rangeExpression(name string, arg bson.RawValue, s *scope) (*rangeTerm, error) {
	args, err := a.arguments(name, arg, 2)
	if err != nil {
		return nil, err
	}
	op, _ := fle.ParseRangeOperator(name)
	for i, v := range args {
		field, err := a.fieldOperand(v, s)
		if err != nil {
			return nil, err
		}
		if field.node == nil {
			continue
		}
		_, other, err := a.expression(args[1-i], s)
		if err != nil {
			return nil, err
		}
		e := field.node.enc
		if e == nil || e.Kind != Range || other.node != nil || !other.constant {
			if err := a.comparing(field.path, name); err != nil {
				return nil, err
			}
			return nil, a.refuse(field.path, name, "an encrypted field cannot be an argument of the operator",
				"a field with range queries can be compared with a constant")
		}
		if i == 1 {
			op = flipped[op]
		}
		return a.newRangeTerm(e, field.path, op, other.value)
	}
	return nil, nil
}

// fieldOperand returns what v stands for if it is the path of a field or a variable.
func (a *analysis) fieldOperand(v bson.RawValue, s *scope) (operand, error) {
	if text, ok := v.StringValue(); ok && strings.HasPrefix(text, "$") {
		return a.reference(text, s)
	}
	return operand{}, nil
}

// writeRange returns the comparison t, the field first.
func (a *analysis) writeRange(t *rangeTerm, arg bson.RawValue, s *scope) bson.RawValue {
	args, _ := a.arguments(t.op.String(), arg, 2)
	field := args[0]
	if op, err := a.fieldOperand(field, s); err != nil || op.node == nil {
		field = args[1]
	}
	return document(pair(t.op.String(), array([]bson.RawValue{field, a.rangePlaceholder(t)})))
}

// logicExpression analyses $and, $or and $not. Range comparisons of one $and are paired.
func (a *analysis) logicExpression(name string, arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	args, err := a.arguments(name, arg, 0)
	if err != nil {
		return arg, operand{}, err
	}
	terms := make([]*rangeTerm, len(args))
	if name == "$and" {
		var all []*rangeTerm
		for i, v := range args {
			doc, ok := v.Document()
			if !ok || count(doc) != 1 {
				continue
			}
			op, inner := first(doc)
			if _, ok := fle.ParseRangeOperator(op); !ok {
				continue
			}
			if terms[i], err = a.rangeExpression(op, inner, s); err != nil {
				return arg, operand{}, err
			}
			if terms[i] != nil {
				all = append(all, terms[i])
			}
		}
		pairUp(all)
	}
	out := make([]bson.RawValue, len(args))
	for i, v := range args {
		if terms[i] != nil {
			_, inner := first(v.Value)
			out[i] = a.writeRange(terms[i], inner, s)
			continue
		}
		var op operand
		if out[i], op, err = a.expression(v, s); err != nil {
			return arg, operand{}, err
		}
		if op.node != nil {
			return arg, operand{},
				a.refuse(op.path, name, "an encrypted value is neither true nor false", "compare it with $eq")
		}
	}
	if arg.Type != bson.TypeArray {
		return out[0], operand{}, nil
	}
	return array(out), operand{}, nil
}

// merge returns what an expression evaluates to that yields one of ops. If they are not encrypted
// in the same way, the value can be passed on, and nothing can be done with it.
func merge(ops []operand) operand {
	var out operand
	plain := false
	for _, op := range ops {
		switch {
		case op.removed:
		case op.node == nil:
			plain = true
		case out.node == nil:
			out = operand{node: op.node, path: op.path}
		case !out.node.equal(op.node):
			out.node = opaqueNode
		}
	}
	if out.node != nil && plain {
		out.node = opaqueNode
	}
	return out
}

// test analyses an expression that is true or false.
func (a *analysis) test(name string, v bson.RawValue, s *scope) (bson.RawValue, error) {
	out, op, err := a.expression(v, s)
	if err == nil && op.node != nil {
		err = a.refuse(op.path, name, "an encrypted value is neither true nor false", "compare it with $eq")
	}
	return out, err
}

func (a *analysis) condExpression(arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	part := func(name string, v bson.RawValue, ops *[]operand) (bson.RawValue, error) {
		if name == "if" {
			return a.test("$cond", v, s)
		}
		if name != "then" && name != "else" {
			return v, a.refuse("", "$cond", "the operator has no argument '"+name+"'", "")
		}
		v, op, err := a.expression(v, s)
		*ops = append(*ops, op)
		return v, err
	}
	var ops []operand
	if doc, ok := arg.Document(); ok {
		if err := a.unique(doc, "$cond"); err != nil {
			return arg, operand{}, err
		}
		out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) { return part(key, v, &ops) })
		if err != nil {
			return arg, operand{}, err
		}
		return document(out), merge(ops), nil
	}
	args, err := a.arguments("$cond", arg, 3)
	if err != nil {
		return arg, operand{}, err
	}
	for i, name := range []string{"if", "then", "else"} {
		if args[i], err = part(name, args[i], &ops); err != nil {
			return arg, operand{}, err
		}
	}
	return array(args), merge(ops), nil
}

func (a *analysis) ifNullExpression(arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	args, err := a.arguments("$ifNull", arg, 0)
	if err != nil {
		return arg, operand{}, err
	}
	ops := make([]operand, len(args))
	for i := range args {
		if args[i], ops[i], err = a.expression(args[i], s); err != nil {
			return arg, operand{}, err
		}
	}
	return array(args), merge(ops), nil
}

func (a *analysis) switchExpression(arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	doc, err := a.named(arg, "$switch")
	if err != nil {
		return arg, operand{}, err
	}
	var ops []operand
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		if key == "default" {
			v, op, err := a.expression(v, s)
			ops = append(ops, op)
			return v, err
		}
		list, ok := docs(v)
		if key != "branches" || !ok {
			return v, a.refuse("", "$switch", "the operator wants an array of 'branches' and a 'default'", "")
		}
		var branches []bson.RawValue
		for _, doc := range list {
			branch, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
				switch key {
				case "case":
					return a.test("$switch", v, s)
				case "then":
					v, op, err := a.expression(v, s)
					ops = append(ops, op)
					return v, err
				}
				return v, a.refuse("", "$switch", "a branch has no argument '"+key+"'", "")
			})
			if err != nil {
				return v, err
			}
			branches = append(branches, document(branch))
		}
		return array(branches), nil
	})
	if err != nil {
		return arg, operand{}, err
	}
	return document(out), merge(ops), nil
}

func (a *analysis) letExpression(arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	doc, err := a.named(arg, "$let")
	if err != nil {
		return arg, operand{}, err
	}
	vars, _ := doc.Lookup("vars").Document()
	if err := a.unique(vars, "$let"); err != nil {
		return arg, operand{}, err
	}
	inner := s
	values, err := rewrite(vars, func(name string, v bson.RawValue) (bson.RawValue, error) {
		v, op, err := a.expression(v, s)
		if name == "CURRENT" {
			return v, a.refuse("", "$let", "$$CURRENT cannot be given another value", "use a variable of another name")
		}
		inner = inner.define(name, op.node)
		return v, err
	})
	if err != nil {
		return arg, operand{}, err
	}
	var result operand
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		switch key {
		case "vars":
			return document(values), nil
		case "in":
			v, op, err := a.expression(v, inner)
			result = op
			return v, err
		}
		return v, a.refuse("", "$let", "the operator has no argument '"+key+"'", "")
	})
	result.constant = false
	return document(out), result, err
}

// iterate analyses $map, $filter and $reduce. The elements of an array that $lookup or $group made
// may be filtered.
func (a *analysis) iterate(name string, arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	doc, err := a.named(arg, name)
	if err != nil {
		return arg, operand{}, err
	}
	input, source, err := a.expression(doc.Lookup("input"), s)
	if err != nil {
		return arg, operand{}, err
	}
	if source.node != nil && (name == "$reduce" || !source.node.array) {
		return arg, operand{}, a.encryptedOperand(name, source)
	}
	inner := s.define("this", source.node.element())
	if v := doc.Lookup("as"); !v.IsZero() {
		as, ok := v.StringValue()
		if !ok || as == "CURRENT" || as == "" {
			return arg, operand{}, a.refuse("", name, "'as' must be the name of a variable", "")
		}
		inner = s.define(as, source.node.element())
	}
	if name == "$reduce" {
		inner = inner.define("value", nil)
	}
	result := operand{}
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		switch key {
		case "input":
			return input, nil
		case "as":
			return v, nil
		case "cond":
			result.node = source.node
			return a.test(name, v, inner)
		case "in":
			v, op, err := a.expression(v, inner)
			if err == nil && op.node != nil {
				if name == "$reduce" {
					return v, a.encryptedOperand(name, op)
				}
				result.node = op.node.elements()
			}
			return v, err
		case "limit", "initialValue":
			v, op, err := a.expression(v, s)
			if err == nil && op.node != nil {
				err = a.encryptedOperand(name, op)
			}
			return v, err
		}
		return v, a.refuse("", name, "the operator has no argument '"+key+"'", "")
	})
	return document(out), result, err
}

// getField analyses $getField, which takes a field of $$CURRENT if it is not told of what.
func (a *analysis) getField(name string, arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	doc, ok := arg.Document()
	if ok = ok && !isOperator(arg); !ok || doc.Lookup("input").IsZero() {
		if s.current != nil {
			return arg, operand{}, a.refuse("", name, "an encrypted field could be taken",
				"use a field path, or give the operator an 'input' without encrypted fields")
		}
	}
	out, op, err := a.plainExpression(name, arg, arg, s, nil)
	if err != nil {
		return arg, op, err
	}
	_, v := first(out.Value)
	return v, op, nil
}

// textExpression analyses the comparisons of text fields.
func (a *analysis) textExpression(name string, arg bson.RawValue, s *scope) (bson.RawValue, operand, error) {
	what := map[string]string{"$encStrStartsWith": "prefix", "$encStrEndsWith": "suffix",
		"$encStrContains": "substring", "$encStrNormalizedEq": "string"}[name]
	doc, err := a.named(arg, name)
	if err != nil {
		return arg, operand{}, err
	}
	text, _ := doc.Lookup("input").StringValue()
	if !strings.HasPrefix(text, "$") {
		return arg, operand{}, a.refuse("", name, "'input' must be the path of a field", "")
	}
	field, err := a.reference(text, s)
	if err != nil {
		return arg, operand{}, err
	}
	if field.node == nil || field.node.enc == nil || field.node.enc.Kind != Text {
		return arg, operand{},
			a.refuse(field.path, name, "'input' must be a field that is encrypted for text queries", "")
	}
	if err := a.comparing(field.path, name); err != nil {
		return arg, operand{}, err
	}
	e := field.node.enc
	t := &fle.Text{FoldCase: e.foldCase, FoldDiacritics: e.foldMarks}
	switch what {
	case "prefix":
		t.Prefix = e.prefix
	case "suffix":
		t.Suffix = e.suffix
	case "substring":
		t.Substring = e.substring
	}
	if what != "string" && t.Prefix == nil && t.Suffix == nil && t.Substring == nil {
		return arg, operand{}, a.refuse(field.path, name, "the field has no "+what+" queries",
			"add them to 'queries' in encryptedFields")
	}
	out, err := rewrite(doc, func(key string, v bson.RawValue) (bson.RawValue, error) {
		switch key {
		case "input":
			return v, nil
		case what:
			_, op, err := a.expression(v, s)
			if err != nil {
				return v, err
			}
			if !op.constant {
				return v, a.refuse(field.path, name, "'"+what+"' must be a constant", "")
			}
			if err := a.check(e, field.path, name, op.value); err != nil {
				return v, err
			}
			t.Value, _ = op.value.StringValue()
			p := fle.Placeholder{Purpose: fle.ForFind, Index: fle.IndexText, IndexKey: e.KeyID, UserKey: e.KeyID,
				Value: t.RawValue(), Contention: e.contention}
			a.mark(e, field.path, name, "", op.value)
			return fle.Value(p.Append(nil)), nil
		}
		return v, a.refuse(field.path, name, "the operator has no argument '"+key+"'", "")
	})
	if err == nil && doc.Lookup(what).IsZero() {
		err = a.refuse(field.path, name, "the operator wants '"+what+"'", "")
	}
	return document(out), operand{}, err
}
