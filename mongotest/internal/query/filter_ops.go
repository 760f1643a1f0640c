package query

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
)

// filterOp is an operator of filters. The table of package release says which versions have it.
type filterOp struct {
	// top parses it in the place of a field name. A nil node means that there is nothing to match.
	top func(p *filterParser, key string, v bson.RawValue, lv level) (node, error)
	// field parses it as a condition on a field; a nil node means that there is nothing to match.
	// nearest parses all conditions on the field, if it is the first of them and has a document or
	// an array.
	field   func(p *filterParser, c condition) (node, error)
	nearest func(p *filterParser, field string, ops bson.Raw) (node, error)
	traits  filterTraits
	redact  redactTrait
}

// filterTraits is what else may be done with an operator.
type filterTraits uint8

const (
	movable filterTraits = 1 << iota // a $match with it may pass a stage that does not change its field
	inPull                           // $pull applies it to the elements themselves
)

// redactTrait says of which arguments a condition on a part of a document that $redact keeps holds
// for the whole document.
type redactTrait uint8

const (
	redactNone redactTrait = iota
	redactPlain
	redactPlainItems
	redactAny
)

// condition is one operator on a field.
type condition struct {
	field, op string
	arg       bson.RawValue
	ops       bson.Raw // all operators on the field
	level     level
}

// filterOps are the operators by their names.
var filterOps map[string]filterOp

func init() {
	const always = movable | inPull
	filterOps = map[string]filterOp{
		"$and":         {top: (*filterParser).parseLogical},
		"$or":          {top: (*filterParser).parseLogical},
		"$nor":         {top: (*filterParser).parseLogical},
		"$comment":     {top: (*filterParser).parseComment},
		"$expr":        {top: (*filterParser).parseExpr},
		"$jsonSchema":  {top: (*filterParser).parseJSONSchema},
		"$alwaysTrue":  {top: (*filterParser).parseConstant},
		"$alwaysFalse": {top: (*filterParser).parseConstant},
		"$text":        {top: (*filterParser).parseText},
		"$where":       {top: (*filterParser).parseWhere, field: fails("$where cannot be applied to a field")},
		"$sampleRate":  {top: (*filterParser).parseSampleRate},
		"$ref":         {top: (*filterParser).parseReference},
		"$id":          {top: (*filterParser).parseReference},
		"$db":          {top: (*filterParser).parseReference},

		"$eq":            {field: compares(equal), traits: always, redact: redactPlain},
		"$lt":            {field: compares(less), traits: always, redact: redactPlain},
		"$lte":           {field: compares(less | equal), traits: always, redact: redactPlain},
		"$gt":            {field: compares(greater), traits: always, redact: redactPlain},
		"$gte":           {field: compares(greater | equal), traits: always, redact: redactPlain},
		"$ne":            {field: (*filterParser).parseNotEqual, traits: always},
		"$in":            {field: (*filterParser).parseIn, traits: always, redact: redactPlainItems},
		"$nin":           {field: negated((*filterParser).parseIn), traits: always},
		"$not":           {field: (*filterParser).parseNot},
		"$exists":        {field: (*filterParser).parseExists, traits: always},
		"$type":          {field: (*filterParser).parseType, traits: always},
		"$size":          {field: (*filterParser).parseSize, traits: inPull},
		"$mod":           {field: (*filterParser).parseMod, traits: always, redact: redactAny},
		"$regex":         {field: (*filterParser).parseRegexOperators, traits: always, redact: redactAny},
		"$options":       {field: (*filterParser).parseRegexOptions, traits: always, redact: redactAny},
		"$all":           {field: (*filterParser).parseAll, traits: inPull},
		"$elemMatch":     {field: (*filterParser).parseElemMatch, traits: inPull},
		"$bitsAllSet":    {field: bits(true, true), traits: always},
		"$bitsAllClear":  {field: bits(false, true), traits: always},
		"$bitsAnySet":    {field: bits(true, false), traits: always},
		"$bitsAnyClear":  {field: bits(false, false), traits: always},
		"$within":        {field: (*filterParser).parseGeo, traits: inPull},
		"$geoWithin":     {field: (*filterParser).parseGeo, traits: inPull},
		"$geoIntersects": {field: (*filterParser).parseGeo, traits: inPull},
		"$near":          {field: (*filterParser).lateNear, nearest: (*filterParser).parseNear, traits: inPull},
		"$nearSphere":    {field: (*filterParser).lateNear, nearest: (*filterParser).parseNear, traits: inPull},
		"$geoNear":       {field: (*filterParser).lateNear, nearest: (*filterParser).parseNear, traits: inPull},

		"$_internalExprEq": {field: compareDirect(equal, exprEqual)},
		"$_internalExprGt": {field: exprOrder(greater, func(order int) bool { return order > 0 })},
		"$_internalExprGte": {field: exprOrder(greater|equal, func(order int) bool {
			return order >= 0
		})},
		"$_internalExprLt": {field: exprOrder(less, func(order int) bool { return order < 0 })},
		"$_internalExprLte": {field: exprOrder(less|equal, func(order int) bool {
			return order <= 0
		})},
		"$_internalSchemaEq":                    {field: direct((*filterParser).schemaEqual)},
		"$_internalSchemaMinItems":              {field: direct(counts(items, false))},
		"$_internalSchemaMaxItems":              {field: direct(counts(items, true))},
		"$_internalSchemaMinLength":             {field: direct(counts(length, false))},
		"$_internalSchemaMaxLength":             {field: direct(counts(length, true))},
		"$_internalSchemaUniqueItems":           {field: direct((*filterParser).uniqueItems)},
		"$_internalSchemaType":                  {field: direct((*filterParser).schemaType)},
		"$_internalSchemaObjectMatch":           {field: direct((*filterParser).objectMatch)},
		"$_internalSchemaAllElemMatchFromIndex": {field: direct((*filterParser).allFromIndex)},
		"$_internalSchemaMinProperties":         {top: whole(counts(properties, false))},
		"$_internalSchemaMaxProperties":         {top: whole(counts(properties, true))},
		"$_internalSchemaRootDocEq":             {top: whole((*filterParser).rootEqual)},
		"$_internalSchemaCond":                  {top: whole((*filterParser).conditional)},
		"$_internalSchemaXor":                   {top: whole((*filterParser).exclusive)},
	}
}

// op returns an operator that servers of the version have; the zero filterOp is none.
func (p *filterParser) op(name string) filterOp {
	op, ok := filterOps[name]
	if ok && !p.version.Has(release.Filter, name) {
		return filterOp{}
	}
	return op
}

// Movable reports whether a $match with the operator on a field may pass a stage that does not
// change the field.
func Movable(op string) bool { return filterOps[op].traits&movable != 0 }

// HoldsForWhole reports whether a condition that is true of a part of a document is true of the
// whole document.
func HoldsForWhole(op string, arg bson.RawValue) bool {
	switch filterOps[op].redact {
	case redactPlain:
		return IsPlain(arg)
	case redactPlainItems:
		for e := range bson.Raw(arg.Value).Values() {
			if !IsPlain(e) {
				return false
			}
		}
		return true
	case redactAny:
		return true
	}
	return false
}

// IsPlain reports whether a value is equal only to fields that are there and have no parts.
func IsPlain(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeArray, bson.TypeEmbeddedDocument, bson.TypeNull, bson.TypeUndefined:
		return false
	}
	return true
}

func (p *filterParser) parseComment(string, bson.RawValue, level) (node, error) { return nil, nil }

func (p *filterParser) parseReference(key string, v bson.RawValue, _ level) (node, error) {
	return p.compareLeaf(key, equal, v)
}

// fails returns the parser of an operator that no field may have.
func fails(text string) func(*filterParser, condition) (node, error) {
	return func(*filterParser, condition) (node, error) { return nil, badValue("%s", text) }
}

func compares(op comparison) func(*filterParser, condition) (node, error) {
	return func(p *filterParser, c condition) (node, error) { return p.compareLeaf(c.field, op, c.arg) }
}

func negated(parse func(*filterParser, condition) (node, error)) func(*filterParser, condition) (node, error) {
	return func(p *filterParser, c condition) (node, error) { return negate(parse(p, c)) }
}

func bits(set, all bool) func(*filterParser, condition) (node, error) {
	return func(p *filterParser, c condition) (node, error) {
		t, err := p.bitPositions(c)
		if err != nil {
			return nil, err
		}
		return p.leaf(c.field, &bitTest{t, set, all, p.version.AllParsed()}), nil
	}
}

// leaf returns a test of a field.
func (p *filterParser) leaf(field string, t test) *leaf {
	return &leaf{work: p.work, path: NewPath(field), test: t}
}

func exprEqual(v, arg bson.RawValue, c *Collation) bool {
	return v.Type != 0 && Compare(v, arg, c) == 0
}

// exprOrder compares the whole order of values, in which a missing field is the least.
func exprOrder(op comparison, holds func(order int) bool) func(*filterParser, condition) (node, error) {
	return compareDirect(op, func(v, arg bson.RawValue, c *Collation) bool { return holds(Compare(v, arg, c)) })
}

func (p *filterParser) parseNotEqual(c condition) (node, error) {
	if c.arg.Type == bson.TypeRegex {
		return nil, badValue("Can't have regex as arg to $ne.")
	}
	return negate(p.compareLeaf(c.field, equal, c.arg))
}

func (p *filterParser) parseExists(c condition) (node, error) {
	l := p.leaf(c.field, existsTest{})
	if truthy(c.arg) {
		return l, nil
	}
	return &not{l}, nil
}

func (p *filterParser) parseType(c condition) (node, error) {
	set, err := parseTypeSet(c.field, c.arg)
	if err != nil {
		return nil, err
	}
	return p.leaf(c.field, &typeTest{set}), nil
}

func (p *filterParser) parseRegexOptions(c condition) (node, error) {
	for k := range c.ops.All() {
		if k == "$regex" {
			return nil, nil // parsed with $regex
		}
	}
	return nil, badValue("$options needs a $regex")
}

func (p *filterParser) lateNear(c condition) (node, error) {
	return nil, badValue("near must be first in: %s", bsontext.Document(c.ops))
}

// parseOperator parses one operator of a field.
func (p *filterParser) parseOperator(c condition) (node, error) {
	if op := p.op(c.op); op.field != nil {
		return op.field(p, c)
	}
	return nil, badValue("unknown operator: %s", c.op)
}

// FilterOperators lists the operators of filters by name: those that stand in the place of a field
// name, and those that are conditions on a field. Some are both.
func FilterOperators() (top, field []string) {
	for name, op := range filterOps {
		if op.top != nil {
			top = append(top, name)
		}
		if op.field != nil && op.top == nil {
			field = append(field, name)
		}
	}
	slices.Sort(top)
	slices.Sort(field)
	return top, field
}
