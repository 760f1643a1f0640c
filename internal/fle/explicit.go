package fle

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"allium/bson"
)

// Explicit is how an application wants a value encrypted (section "EncryptOpts" of the
// specification). The names of algorithms and query types are compared without case.
type Explicit struct {
	Algorithm  string
	QueryType  string // "" to store the value
	Contention *int64
	Range      *RangeOptions
	Text       *TextOptions
}

// RangeOptions are those of a range field: they must be the ones of its collection.
type RangeOptions struct {
	Min, Max   bson.RawValue
	Sparsity   *int64 // nil: DefaultSparsity
	TrimFactor *int32
	Precision  *int32
}

// TextOptions are those of a text field: they must be the ones of its collection.
type TextOptions struct {
	CaseSensitive      bool
	DiacriticSensitive bool
	Prefix, Suffix     *Affix
	Substring          *Substring
}

// What an algorithm of explicit encryption is.
type algorithm struct {
	csfle Algorithm
	index Index
	name  string // in errors
}

var algorithms = map[string]algorithm{
	"aead_aes_256_cbc_hmac_sha_512-deterministic": {csfle: Deterministic},
	"aead_aes_256_cbc_hmac_sha_512-random":        {csfle: Random},
	"unindexed":                                   {index: IndexNone, name: "unindexed"},
	"indexed":                                     {index: IndexEquality, name: "indexed"},
	"range":                                       {index: IndexRange, name: "range indexed"},
	"string":                                      {index: IndexText, name: "string"},
	"textpreview":                                 {index: IndexText, name: "string"},
}

// queryKinds says which index a query type needs.
var queryKinds = map[string]struct {
	index Index
	text  TextKind
}{
	"equality": {index: IndexEquality}, "range": {index: IndexRange},
	"prefix": {IndexText, TextPrefix}, "suffix": {IndexText, TextSuffix}, "substring": {IndexText, TextSubstring},
	"prefixpreview": {IndexText, TextPrefix}, "suffixpreview": {IndexText, TextSuffix},
	"substringpreview": {IndexText, TextSubstring},
}

// check returns the algorithm, and the kind of a text query.
func (e *Explicit) check(expression bool) (algorithm, TextKind, error) {
	none := algorithm{}
	if e.Algorithm == "" {
		return none, 0, errors.New("algorithm or index type required")
	}
	name := strings.ToLower(e.Algorithm)
	if name == "rangepreview" {
		return none, 0, errors.New("Algorithm 'rangePreview' is deprecated, please use 'range'")
	}
	a, ok := algorithms[name]
	if !ok {
		return none, 0, fmt.Errorf("unsupported algorithm string %q", e.Algorithm)
	}
	var text TextKind
	if e.QueryType != "" {
		query := strings.ToLower(e.QueryType)
		if query == "rangepreview" {
			//lint:ignore ST1005 the text is that of other drivers
			return none, 0, errors.New("Query type 'rangePreview' is deprecated, please use 'range'")
		}
		kind, ok := queryKinds[query]
		if !ok {
			return none, 0, fmt.Errorf("unsupported query type %q", e.QueryType)
		}
		if a.index == 0 {
			return none, 0, errors.New("cannot set query type with no index type")
		}
		if kind.index != a.index {
			return none, 0, fmt.Errorf("query_type (%s) must match index_type (%s)", e.QueryType, e.Algorithm)
		}
		text = kind.text
	}
	switch {
	case e.Contention != nil && a.index <= IndexNone:
		return none, 0, errors.New("cannot set contention factor with no index type")
	case e.Contention == nil && a.index > IndexNone:
		return none, 0, fmt.Errorf("contention factor is required for %s algorithm", a.name)
	case e.Contention != nil && *e.Contention < 0:
		return none, 0, fmt.Errorf("contention must be non-negative, but got %d", *e.Contention)
	case e.Range != nil && a.index != IndexRange:
		return none, 0, errors.New("cannot set range opts with no range index type")
	case e.Range == nil && a.index == IndexRange:
		return none, 0, errors.New("range opts are required for range indexed algorithm")
	case e.Text != nil && a.index != IndexText:
		return none, 0, errors.New("cannot set string opts with no string index type")
	case e.Text == nil && a.index == IndexText:
		return none, 0, errors.New("string opts are required for string algorithm")
	case expression && (a.index != IndexRange || e.QueryType == ""):
		//lint:ignore ST1005 the text is that of other drivers
		return none, 0, errors.New("EncryptExpression may only be used for range queries.")
	case !expression && a.index == IndexRange && e.QueryType != "":
		//lint:ignore ST1005 the text is that of other drivers
		return none, 0, errors.New("Encrypt may not be used for range queries. Use EncryptExpression.")
	}
	if e.Range != nil {
		if err := e.Range.check(); err != nil {
			return none, 0, err
		}
	}
	if e.Text != nil {
		if err := e.Text.check(text); err != nil {
			return none, 0, err
		}
	}
	return a, text, nil
}

func (r *RangeOptions) check() error {
	if r.Sparsity != nil && *r.Sparsity < 1 {
		return fmt.Errorf("%w, but got %d", errSparsity, *r.Sparsity)
	}
	if r.TrimFactor != nil && *r.TrimFactor < 0 {
		return fmt.Errorf("trimFactor must be >= 0, but got %d", *r.TrimFactor)
	}
	if r.Min.IsZero() && r.Max.IsZero() {
		return nil
	}
	kind := r.Min.Type
	if r.Min.IsZero() {
		kind = r.Max.Type
	}
	_, err := NewDomain(kind, r.Min, r.Max, r.Precision)
	return err
}

func (r *RangeOptions) sparsity() int64 {
	if r.Sparsity == nil {
		return DefaultSparsity
	}
	return *r.Sparsity
}

// need returns an error if an application has to say what values of type kind there can be, and did
// not.
func (r *RangeOptions) need(kind bson.Type) error {
	if _, err := NewDomain(kind, bson.RawValue{}, bson.RawValue{}, nil); err != nil {
		return err
	}
	if kind == bson.TypeDouble || kind == bson.TypeDecimal128 {
		return nil
	}
	for _, side := range []struct {
		name  string
		bound bson.RawValue
	}{{"min", r.Min}, {"max", r.Max}} {
		if side.bound.IsZero() {
			//lint:ignore ST1005 the text is that of other drivers
			return fmt.Errorf("Range option '%s' is required for type: %s", side.name, kind)
		}
	}
	return nil
}

func (t *TextOptions) check(query TextKind) error {
	n := 0
	for _, a := range []*Affix{t.Prefix, t.Suffix} {
		if a == nil {
			continue
		}
		n++
		if a.Lower < 1 || a.Upper < a.Lower {
			return fmt.Errorf(
				"strMinQueryLength must be positive and at most strMaxQueryLength, but they are %d and %d", a.Lower,
				a.Upper)
		}
	}
	if s := t.Substring; s != nil {
		if n > 0 {
			//lint:ignore ST1005 the text is that of other drivers
			return errors.New("Cannot specify 'substring' with 'prefix' or 'suffix'")
		}
		n++
		if s.Lower < 1 || s.Upper < s.Lower || s.MaxLength < s.Upper {
			return fmt.Errorf(
				"strMinQueryLength must be positive and at most strMaxQueryLength, which must be at most strMaxLength, but they are %d, %d and %d", s.Lower, s.Upper, s.MaxLength)
		}
	}
	if n == 0 {
		//lint:ignore ST1005 the text is that of other drivers
		return errors.New("One of 'prefix', 'suffix', or 'substring' is required")
	}
	if query == TextPrefix && t.Prefix == nil || query == TextSuffix && t.Suffix == nil ||
		query == TextSubstring && t.Substring == nil {
		return errors.New("string opts lack the ones of the query type")
	}
	return nil
}

// Order is a value with how it is encrypted, as Explicit says. Exactly one of its fields is there.
type Order struct {
	marking     *Marking
	placeholder *Placeholder
}

// Seal encrypts the value with key, whose id is id.
func (o *Order) Seal(id bson.UUID, key *Key, random io.Reader) ([]byte, error) {
	if o.marking != nil {
		return o.marking.Seal(id, key, random)
	}
	p := *o.placeholder
	p.IndexKey, p.UserKey = id, id
	return p.Seal(key, key, random)
}

// Order returns the order for v, or what is wrong with it or with e.
func (e *Explicit) Order(v bson.RawValue) (*Order, error) {
	a, text, err := e.check(false)
	if err != nil {
		return nil, err
	}
	if err := CheckValue(v, a.csfle == Deterministic); err != nil {
		return nil, err
	}
	// other values were checked when they were encoded
	if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
		if err := bson.Raw(v.Value).Validate(); err != nil {
			return nil, err
		}
	}
	if a.csfle != 0 {
		return &Order{marking: &Marking{Value: v, Algorithm: a.csfle}}, nil
	}
	p := &Placeholder{Purpose: ForInsert, Index: a.index, Value: v}
	if e.QueryType != "" {
		p.Purpose = ForFind
	}
	if e.Contention != nil {
		p.Contention = *e.Contention
	}
	switch a.index {
	case IndexRange:
		if err := e.Range.need(v.Type); err != nil {
			return nil, err
		}
		r := RangeInsert{Value: v, Min: e.Range.Min, Max: e.Range.Max, Precision: e.Range.Precision,
			TrimFactor: e.Range.TrimFactor}
		p.Value, p.Sparsity = r.RawValue(), e.Range.sparsity()
	case IndexText:
		s, ok := v.StringValue()
		if !ok {
			return nil, fmt.Errorf("%w: string algorithm needs a string, not a %s", ErrType, v.Type)
		}
		t := Text{
			Value: s, FoldCase: !e.Text.CaseSensitive, FoldDiacritics: !e.Text.DiacriticSensitive,
			Prefix: e.Text.Prefix, Suffix: e.Text.Suffix, Substring: e.Text.Substring,
		}
		if text != 0 { // a query has one kind
			t.Prefix, t.Suffix, t.Substring = nil, nil, nil
			switch text {
			case TextPrefix:
				t.Prefix = e.Text.Prefix
			case TextSuffix:
				t.Suffix = e.Text.Suffix
			case TextSubstring:
				t.Substring = e.Text.Substring
			}
		}
		p.Value = t.RawValue()
	}
	return &Order{placeholder: p}, nil
}

// comparison is one operand of an expression.
type comparison struct {
	field    string
	operator RangeOperator
	bound    bson.RawValue
}

// Expression returns expr, a filter {$and: [{f: {$gt: a}}, {f: {$lt: b}}]} or an aggregation
// expression {$and: [{$gt: ["$f", a]}, {$lt: ["$f", b]}]} of one or two operands, with placeholders
// in place of the bounds. payload must not be that of another range in the same query.
func (e *Explicit) Expression(expr bson.Raw, user, index bson.UUID, payload int32) (bson.Raw, error) {
	if _, _, err := e.check(true); err != nil {
		return nil, err
	}
	operands, err := comparisons(expr)
	if err != nil {
		return nil, err
	}
	edges := RangeEdges{Lower: Open(true), Upper: Open(false), LowerIn: true, UpperIn: true, Min: e.Range.Min,
		Max: e.Range.Max, Precision: e.Range.Precision, TrimFactor: e.Range.TrimFactor}
	find := RangeFind{Edges: &edges, PayloadID: payload}
	for i, c := range operands {
		if err := e.Range.need(c.bound.Type); err != nil {
			return nil, err
		}
		if i == 0 {
			find.First = c.operator
		} else {
			find.Second = c.operator
		}
		if c.operator.IsLower() {
			edges.Lower, edges.LowerIn = c.bound, c.operator.Includes()
		} else {
			edges.Upper, edges.UpperIn = c.bound, c.operator.Includes()
		}
	}
	p := Placeholder{Purpose: ForFind, Index: IndexRange, IndexKey: index, UserKey: user, Contention: *e.Contention,
		Sparsity: e.Range.sparsity()}
	start, dst := bson.BeginDocument(nil)
	list, dst := bson.BeginArrayElement(dst, "$and")
	for i, c := range operands {
		if i > 0 {
			find.Edges = nil
		}
		p.Value = find.RawValue()
		var operand int
		dst = bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i)
		operand, dst = bson.BeginDocument(dst)
		dst = c.append(dst, Value(p.Append(nil)))
		dst = bson.EndDocument(dst, operand)
	}
	dst = bson.EndDocument(dst, list)
	return bson.EndDocument(dst, start), nil
}

// append appends the operand's element with v as its bound.
func (c *comparison) append(dst []byte, v bson.RawValue) []byte {
	var inner int
	if strings.HasPrefix(c.field, "$") { // of an aggregation expression
		inner, dst = bson.BeginArrayElement(dst, c.operator.String())
		dst = bson.AppendString(dst, "0", c.field)
		dst = bson.AppendRawValue(dst, "1", v)
	} else {
		inner, dst = bson.BeginDocumentElement(dst, c.field)
		dst = bson.AppendRawValue(dst, c.operator.String(), v)
	}
	return bson.EndDocument(dst, inner)
}

// only returns the element of a document that has one.
func only(doc bson.Raw) (key string, v bson.RawValue, ok bool) {
	n := 0
	for k, e := range doc.All() {
		key, v = k, e
		n++
	}
	return key, v, n == 1
}

func comparisons(expr bson.Raw) ([]comparison, error) {
	if err := expr.Validate(); err != nil {
		return nil, err
	}
	key, list, ok := only(expr)
	and, isArray := list.Array()
	if !ok || key != "$and" || !isArray {
		return nil, errors.New("error unable to find '$and': the expression must be {$and: [...]} and nothing else")
	}
	var out []comparison
	for v := range and.Values() {
		doc, _ := v.Document()
		name, operand, ok := only(doc)
		if !ok {
			return nil, errors.New("an operand of '$and' must be a document with one element")
		}
		c := comparison{field: name}
		operator := ""
		switch {
		case operand.Type == bson.TypeArray && strings.HasPrefix(name, "$"): // {$gt: ["$f", a]}
			operator = name
			n := 0
			for item := range bson.Raw(operand.Value).Values() {
				switch n {
				case 0:
					c.field, ok = item.StringValue()
					ok = ok && strings.HasPrefix(c.field, "$")
				case 1:
					c.bound = item
				}
				n++
			}
			if !ok || n != 2 {
				return nil, fmt.Errorf("operator %s needs a field path and a bound", name)
			}
		case operand.Type == bson.TypeEmbeddedDocument && !strings.HasPrefix(name, "$"): // {f: {$gt: a}}
			if operator, c.bound, ok = only(operand.Value); !ok {
				return nil, fmt.Errorf("field %q of '$and' needs exactly one operator", name)
			}
		default:
			return nil, fmt.Errorf("operand %q of '$and' is no comparison", name)
		}
		if c.operator, ok = ParseRangeOperator(operator); !ok {
			return nil, fmt.Errorf("expected an operator $gt, $gte, $lt or $lte, but got %q", operator)
		}
		for _, before := range out {
			if before.field != c.field {
				return nil, fmt.Errorf("unexpected field mismatch. Expected all fields to be %s, but got %s",
					strings.TrimPrefix(before.field, "$"), strings.TrimPrefix(c.field, "$"))
			}
			if before.operator.IsLower() == c.operator.IsLower() {
				return nil, fmt.Errorf("unexpected duplicate bound %s", c.operator)
			}
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("error unable to find a comparison in '$and'")
	}
	return out, nil
}
