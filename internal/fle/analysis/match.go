package analysis

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/fle"
)

// invalidMatch is the reason for which an operator is refused: the specification's tests look for
// it.
const invalidMatch = "Invalid match expression operator on encrypted field"

// A filter is parsed into terms, so that range comparisons can be paired and that it can be written
// in the normal form of the servers' own analysis, which events show:
//
//	{a: 1, b: {$gt: 1}}  becomes  {$and: [{a: {$eq: 1}}, {b: {$gt: 1}}]}
//
// What concerns no encrypted field is kept as raw bytes.
type term struct {
	kind termKind
	key  string        // of a field or of a raw term
	raw  bson.RawValue // of a raw term
	list []*term       // of the others
	ops  []*fieldOp    // of a field
	bare bool          // the field was compared without $eq
}

type termKind uint8

const (
	termRaw   termKind = iota
	termDoc            // a document: all of list
	termLogic          // key is $and, $or or $nor, list has documents
	termField          // key is a path
)

// fieldOp is an operator of a field.
type fieldOp struct {
	name string
	v    bson.RawValue
	rng  *rangeTerm // has the value instead of v
	not  *term      // a field: that of $not
}

// matchForm says how a filter with placeholders is written.
type matchForm uint8

const (
	formIfMarked matchForm = iota // normal form if it has placeholders, else as it came
	formNormal                    // normal form in any case
	formOwn                       // as it came but for the placeholders
)

// form returns that of a command's filter.
func (a *analysis) form() matchForm {
	if a.queryable {
		return formNormal
	}
	return formIfMarked
}

// match returns the filter doc on documents that n describes, with placeholders.
func (a *analysis) match(doc bson.Raw, n *node) (bson.Raw, error) {
	return a.matchIn(doc, n, a.form(), nil)
}

// matchIn is match with a form, within a $lookup with variables.
func (a *analysis) matchIn(doc bson.Raw, n *node, form matchForm, vars map[string]*node) (bson.Raw, error) {
	marks := len(a.marks)
	m := matcher{analysis: a, scope: scope{root: n, current: n, vars: vars}}
	t, err := m.document(doc, n)
	if err != nil {
		return nil, err
	}
	m.finish(t)
	if form == formIfMarked && len(a.marks) == marks {
		return doc, nil
	}
	return m.write(t, form == formOwn), nil
}

type matcher struct {
	*analysis
	scope  scope
	nested bool // within $elemMatch
}

// document parses a filter.
func (m *matcher) document(doc bson.Raw, n *node) (*term, error) {
	t := &term{kind: termDoc}
	for key, v := range doc.All() {
		var c *term
		var err error
		if strings.HasPrefix(key, "$") {
			c, err = m.operator(key, v, n)
		} else {
			c, err = m.field(key, v, n)
		}
		if err != nil {
			return nil, err
		}
		t.list = append(t.list, c)
	}
	pairUp(conjuncts(t))
	return t, nil
}

// conjuncts returns the range comparisons that are parts of the conjunction t.
func conjuncts(t *term) []*rangeTerm {
	var out []*rangeTerm
	for _, c := range t.list {
		switch c.kind {
		case termField:
			for _, op := range c.ops {
				if op.rng != nil {
					out = append(out, op.rng)
				}
			}
		case termDoc:
			out = append(out, conjuncts(c)...)
		}
	}
	return out
}

// operator parses an operator of a whole document.
func (m *matcher) operator(key string, v bson.RawValue, n *node) (*term, error) {
	raw := &term{kind: termRaw, key: key, raw: v}
	switch key {
	case "$expr", "$jsonSchema":
		if m.nested {
			return nil, m.refuse("", "",
				"Unsupported match expression operator for encryption: "+key+" within $elemMatch", "")
		}
	}
	switch key {
	case "$and", "$or", "$nor":
		list, ok := docs(v)
		if !ok {
			return nil, m.refuse("", key, "the operator wants an array of documents", "")
		}
		t := &term{kind: termLogic, key: key}
		for _, doc := range list {
			c, err := m.document(doc, n)
			if err != nil {
				return nil, err
			}
			t.list = append(t.list, c)
		}
		if key == "$and" {
			pairUp(conjuncts(t))
		}
		return t, nil
	case "$expr":
		out, op, err := m.expression(v, &m.scope)
		if err != nil {
			return nil, err
		}
		if op.node != nil {
			return nil, m.refuse("", key, "an encrypted value is neither true nor false", "compare it with $eq")
		}
		raw.raw = out
		return raw, nil
	case "$comment", "$alwaysTrue", "$alwaysFalse", "$sampleRate":
		return raw, nil
	case "$jsonSchema":
		if doc, ok := v.Document(); ok && m.forbid {
			return raw, m.validatorSchema(doc, n)
		}
	}
	return nil, m.refuse("", "", "Unsupported match expression operator for encryption: "+key,
		"the operators of single fields, $and, $or, $nor and $expr are supported")
}

// plainOperators are the operators that a field without encryption may have.
var plainOperators = map[string]bool{
	"$eq": true, "$ne": true, "$gt": true, "$gte": true, "$lt": true, "$lte": true, "$in": true, "$nin": true,
	"$not": true, "$exists": true,
	"$type": true, "$mod": true, "$regex": true, "$options": true, "$size": true, "$all": true, "$elemMatch": true,
	"$bitsAllClear": true, "$bitsAllSet": true, "$bitsAnyClear": true, "$bitsAnySet": true,
	"$geoWithin": true, "$geoIntersects": true, "$near": true, "$nearSphere": true, "$maxDistance": true,
	"$minDistance": true,
	"$within":      true, "$geoNear": true, "$comment": true,
}

// field parses what a filter says about one path.
func (m *matcher) field(path string, v bson.RawValue, n *node) (*term, error) {
	found, err := m.at(n, path, "")
	if err != nil {
		return nil, err
	}
	if found == nil {
		t := &term{kind: termField, key: path}
		if isOperator(v) {
			if err := m.plain(path, v); err != nil {
				return nil, err
			}
			return &term{kind: termRaw, key: path, raw: v}, nil
		}
		if v.Type == bson.TypeRegex {
			return &term{kind: termRaw, key: path, raw: v}, nil
		}
		t.bare, t.ops = true, []*fieldOp{{name: "$eq", v: v}}
		return t, nil
	}
	if !isOperator(v) {
		if v.Type == bson.TypeRegex {
			return nil, m.refuse(path, "$regex", invalidMatch, "")
		}
		return m.fieldOps(path, found, pair("$eq", v), true)
	}
	doc, _ := v.Document()
	return m.fieldOps(path, found, doc, false)
}

// plain refuses operators that are not known on a field without encryption. What is in $elemMatch
// is a filter of its own.
func (m *matcher) plain(path string, v bson.RawValue) error {
	doc, ok := v.Document()
	if !ok {
		return nil
	}
	for op, v := range doc.All() {
		if !plainOperators[op] {
			return m.refuse(path, "", "Unsupported match expression operator for encryption: "+op, "")
		}
		switch op {
		case "$not":
			if err := m.plain(path, v); err != nil {
				return err
			}
		case "$elemMatch":
			inner, ok := v.Document()
			if !ok {
				continue
			}
			sub := matcher{analysis: m.analysis, nested: true}
			if isOperator(v) {
				if name, _ := first(inner); !slices.Contains([]string{"$and", "$or", "$nor", "$expr", "$where"}, name) {
					if err := m.plain(path, v); err != nil {
						return err
					}
					continue
				}
			}
			if _, err := sub.document(inner, nil); err != nil {
				return err
			}
		case "$all":
			list, _ := v.Array()
			for v := range list.Values() {
				if isOperator(v) {
					if err := m.plain(path, v); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// fieldOps parses the operators of a field at or above an encrypted one.
func (m *matcher) fieldOps(path string, n *node, doc bson.Raw, bare bool) (*term, error) {
	t := &term{kind: termField, key: path, bare: bare}
	var expanded []*term // comparisons that are written as other terms
	for name, v := range doc.All() {
		op := &fieldOp{name: name, v: v}
		var term *term
		var err error
		switch {
		case name == "$exists" && !isFlag(v):
			err = m.refuse(path, name, "the operator wants true or false", "")
		case name == "$exists":
		case name == "$not":
			term, err = m.not(path, n, op)
		case n.opaque:
			err = m.refuse(path, name, invalidMatch, "its values are not known here")
		case n.enc == nil:
			err = m.parent(path, n, op)
		case n.enc.Kind == Range:
			term, err = m.ranges(path, n.enc, op)
		default:
			err = m.encrypted(path, n.enc, op)
		}
		if err != nil {
			return nil, err
		}
		if term != nil {
			expanded = append(expanded, term)
		} else {
			t.ops = append(t.ops, op)
		}
	}
	if len(expanded) == 0 {
		pairUp(conjuncts(&term{list: []*term{t}}))
		return t, nil
	}
	if len(t.ops) > 0 {
		expanded = append(expanded, t)
	}
	if len(expanded) == 1 {
		return expanded[0], nil
	}
	all := &term{kind: termLogic, key: "$and"}
	for _, c := range expanded {
		all.list = append(all.list, &term{kind: termDoc, list: []*term{c}})
	}
	return all, nil
}

// not parses $not on a field at or above an encrypted one.
func (m *matcher) not(path string, n *node, op *fieldOp) (*term, error) {
	if !isOperator(op.v) {
		return nil, m.refuse(path, "$not", invalidMatch, "")
	}
	doc, _ := op.v.Document()
	inner, err := m.fieldOps(path, n, doc, false)
	if err != nil {
		return nil, err
	}
	if inner.kind != termField || n.enc != nil && n.enc.Kind == Range {
		return &term{kind: termLogic, key: "$nor", list: []*term{{kind: termDoc, list: []*term{inner}}}}, nil
	}
	op.not = inner
	return nil, nil
}

// encrypted parses an operator of an encrypted field.
func (m *matcher) encrypted(path string, e *Encryption, op *fieldOp) error {
	switch op.name {
	case "$eq", "$ne":
		v, err := m.equality(path, e, op.name, op.v, "Illegal equality to null predicate for encrypted field")
		op.v = v
		return err
	case "$in", "$nin":
		v, err := m.each(path, op, func(v bson.RawValue) (bson.RawValue, error) {
			if v.Type == bson.TypeRegex {
				return v, m.refuse(path, op.name, invalidMatch, "a regular expression cannot match ciphertexts")
			}
			return m.equality(path, e, op.name, v,
				"Illegal equality to null inside "+op.name+" against an encrypted field")
		})
		op.v = v
		return err
	}
	if err := m.comparing(path, op.name); err != nil {
		return err
	}
	if _, ok := fle.ParseRangeOperator(op.name); ok && e.Kind == Random {
		return m.noEquality(e, path, op.name)
	}
	instead := "$eq, $ne, $in, $nin and $exists work"
	if e.Kind == Text {
		instead = "within $expr $encStrStartsWith, $encStrEndsWith, $encStrContains and $encStrNormalizedEq work"
	} else if e.Kind == Random || e.Kind == Unindexed {
		instead = "$exists works"
	}
	return m.refuse(path, op.name, invalidMatch, instead)
}

func (m *matcher) equality(path string, e *Encryption, operator string, v bson.RawValue,
	null string) (bson.RawValue, error) {
	if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
		if m.forbid {
			return v, m.comparing(path, operator)
		}
		return v, m.refuse(path, operator, null, "use {$exists: false}")
	}
	return m.compared(e, path, operator, v)
}

// each calls f for every value of $in or $nin.
func (m *matcher) each(path string, op *fieldOp, f func(bson.RawValue) (bson.RawValue, error)) (bson.RawValue, error) {
	list, ok := op.v.Array()
	if !ok {
		return op.v, m.refuse(path, op.name, "the operator wants an array", "")
	}
	var out []bson.RawValue
	for v := range list.Values() {
		v, err := f(v)
		if err != nil {
			return v, err
		}
		out = append(out, v)
	}
	return array(out), nil
}

// parent parses an operator of a field that has encrypted ones below it. An object to compare with
// is encrypted like a document; since the ciphertexts must be equal, deterministically.
func (m *matcher) parent(path string, n *node, op *fieldOp) error {
	object := func(v bson.RawValue) (bson.RawValue, error) {
		if v.Type == bson.TypeRegex || v.Type == bson.TypeArray {
			return v, m.refuse(
				path, op.name, "Invalid match expression operator on a field with encrypted fields below it",
				"compare the fields below it")
		}
		return m.walkValue(v, n, path, func(e *Encryption, path string, v bson.RawValue) (bson.RawValue, error) {
			if e.Kind.queryable() {
				return v, m.refuse(
					path, op.name, "an object with fields of Queryable Encryption cannot be compared as a whole",
					"compare the field with a dotted path")
			}
			return m.compared(e, path, op.name, v)
		})
	}
	switch op.name {
	case "$eq", "$ne":
		v, err := object(op.v)
		op.v = v
		return err
	case "$in", "$nin":
		v, err := m.each(path, op, object)
		op.v = v
		return err
	case "$type", "$size":
		return nil
	}
	return m.refuse(path, op.name, "Invalid match expression operator on a field with encrypted fields below it",
		"compare the fields below it")
}

// ranges parses an operator of a range field. Those of equality become terms with two bounds.
func (m *matcher) ranges(path string, e *Encryption, op *fieldOp) (*term, error) {
	if o, ok := fle.ParseRangeOperator(op.name); ok {
		var err error
		op.rng, err = m.newRangeTerm(e, path, o, op.v)
		return nil, err
	}
	point := func(v bson.RawValue, null string) (*term, error) {
		if v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
			return nil, m.refuse(path, op.name, null, "use {$exists: false}")
		}
		t := &term{kind: termLogic, key: "$and"}
		for _, o := range []fle.RangeOperator{fle.GreaterOrEqual, fle.LessOrEqual} {
			r, err := m.newRangeTerm(e, path, o, v)
			if err != nil {
				return nil, err
			}
			side := &term{kind: termField, key: path, ops: []*fieldOp{{name: o.String(), rng: r}}}
			t.list = append(t.list, &term{kind: termDoc, list: []*term{side}})
		}
		pairUp(conjuncts(t))
		return t, nil
	}
	switch op.name {
	case "$eq", "$ne":
		t, err := point(op.v, "Illegal equality to null predicate for encrypted field")
		if err != nil || op.name == "$eq" {
			return t, err
		}
		return &term{kind: termLogic, key: "$nor", list: []*term{{kind: termDoc, list: []*term{t}}}}, nil
	case "$in", "$nin":
		t := &term{kind: termLogic, key: "$or"}
		if op.name == "$nin" {
			t.key = "$nor"
		}
		_, err := m.each(path, op, func(v bson.RawValue) (bson.RawValue, error) {
			if v.Type == bson.TypeRegex {
				return v, m.refuse(path, op.name, invalidMatch, "a regular expression cannot match ciphertexts")
			}
			c, err := point(v, "Illegal equality to null inside "+op.name+" against an encrypted field")
			if err == nil {
				t.list = append(t.list, &term{kind: termDoc, list: []*term{c}})
			}
			return v, err
		})
		if err != nil || len(t.list) == 0 {
			return nil, err // an empty array stays
		}
		return t, nil
	}
	if err := m.comparing(path, op.name); err != nil {
		return nil, err
	}
	return nil, m.refuse(path, op.name, invalidMatch, "$gt, $gte, $lt, $lte, $eq, $ne, $in, $nin and $exists work")
}

// finish makes the placeholders of range comparisons, in the order in which they are written.
func (m *matcher) finish(t *term) {
	for _, op := range t.ops {
		if op.rng != nil {
			op.v = m.rangePlaceholder(op.rng)
		}
		if op.not != nil {
			m.finish(op.not)
		}
	}
	for _, c := range t.list {
		m.finish(c)
	}
}

// write returns the document t, in normal form unless own is set.
func (m *matcher) write(t *term, own bool) bson.Raw {
	if own {
		if doc, ok := m.writeOwn(t); ok {
			return doc
		}
	}
	var parts []bson.RawValue
	for _, c := range t.list {
		key, v := m.element(c, own)
		parts = append(parts, document(pair(key, v)))
	}
	switch len(parts) {
	case 0:
		_, b := bson.BeginDocument(nil)
		return bson.EndDocument(b, 0)
	case 1:
		return parts[0].Value
	}
	return pair("$and", array(parts))
}

// writeOwn returns the document t as it came, which fails if a term that was put in has the name of
// another.
func (m *matcher) writeOwn(t *term) (bson.Raw, bool) {
	var keys []string
	start, b := bson.BeginDocument(nil)
	for _, c := range t.list {
		key, v := m.element(c, true)
		if slices.Contains(keys, key) {
			return nil, false
		}
		keys = append(keys, key)
		b = bson.AppendRawValue(b, key, v)
	}
	return bson.EndDocument(b, start), true
}

// element returns the one element that t is written as.
func (m *matcher) element(t *term, own bool) (string, bson.RawValue) {
	switch t.kind {
	case termRaw:
		return t.key, t.raw
	case termField:
		if own && t.bare {
			return t.key, t.ops[0].v
		}
		if !own && len(t.ops) > 1 {
			var parts []bson.RawValue
			for _, op := range t.ops {
				parts = append(parts, document(pair(t.key, document(pair(op.name, m.operand(op, own))))))
			}
			return "$and", array(parts)
		}
		return t.key, m.operators(t, own)
	}
	var parts []bson.RawValue
	for _, c := range t.list {
		parts = append(parts, document(m.write(c, own)))
	}
	return t.key, array(parts)
}

func (m *matcher) operators(t *term, own bool) bson.RawValue {
	start, b := bson.BeginDocument(nil)
	for _, op := range t.ops {
		b = bson.AppendRawValue(b, op.name, m.operand(op, own))
	}
	return document(bson.EndDocument(b, start))
}

func (m *matcher) operand(op *fieldOp, own bool) bson.RawValue {
	if op.not != nil {
		return m.operators(op.not, own)
	}
	return op.v
}

// validatorSchema refuses a $jsonSchema of a validator that says what values an encrypted field may
// have. That of the collection itself is allowed.
func (a *analysis) validatorSchema(schema bson.Raw, n *node) error {
	if s := a.schemas[a.ns]; s != nil && !s.queryable && bson.Equal(s.source, schema) {
		return nil
	}
	return a.keywords(schema, n, "")
}

func (a *analysis) keywords(schema bson.Raw, n *node, path string) error {
	if n == nil {
		return nil
	}
	for key, v := range schema.All() {
		switch key {
		case "bsonType", "type", "title", "description", "required", "encryptMetadata", "encrypt", "minProperties",
			"maxProperties":
			continue
		case "properties":
			props, _ := v.Document()
			for name, v := range props.All() {
				c := n.child(name)
				inner, ok := v.Document()
				if !ok {
					return a.refuse(join(path, name), "$jsonSchema",
						"Invalid schema: what 'properties' holds must be objects", "")
				}
				if err := a.keywords(inner, c, join(path, name)); err != nil {
					return err
				}
			}
			continue
		case "additionalProperties":
			if _, ok := v.Boolean(); ok {
				continue
			}
		}
		return a.refuse(path, "$jsonSchema", "Comparison to encrypted fields not supported: the keyword '"+key+
			"' of the validator concerns them",
			"the validator of an encrypted field may say its bsonType")
	}
	return nil
}
