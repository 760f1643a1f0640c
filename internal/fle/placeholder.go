package fle

import (
	"fmt"

	"allium/bson"
)

// Algorithm is that of a Marking, its field a.
type Algorithm int32

// Both are AEAD_AES_256_CBC_HMAC_SHA_512.
const (
	Deterministic Algorithm = 1
	Random        Algorithm = 2
)

// Marking is a value that is to be encrypted with Client-Side Field Level Encryption: KindMarking.
type Marking struct {
	Value      bson.RawValue
	Algorithm  Algorithm
	KeyID      bson.UUID
	KeyAltName string // instead of KeyID, if it is not empty
}

// Append appends the bytes of m, the Kind first.
func (m *Marking) Append(dst []byte) []byte {
	start, dst := bson.BeginDocument(append(dst, byte(KindMarking)))
	dst = bson.AppendRawValue(dst, "v", m.Value)
	dst = bson.AppendInt32(dst, "a", int32(m.Algorithm))
	if m.KeyAltName != "" {
		dst = bson.AppendString(dst, "ka", m.KeyAltName)
	} else {
		dst = bson.AppendBinary(dst, "ki", bson.BinaryUUID, m.KeyID[:])
	}
	return bson.EndDocument(dst, start)
}

// ParseMarking parses what Append appends.
func ParseMarking(data []byte) (*Marking, error) {
	doc, err := document(data, KindMarking)
	if err != nil {
		return nil, err
	}
	r := read(KindMarking.String(), doc)
	m := &Marking{Value: r.value("v"), Algorithm: Algorithm(r.int32("a"))}
	if m.Algorithm != Deterministic && m.Algorithm != Random {
		r.fail("algorithm %d is neither 1 nor 2", m.Algorithm)
	}
	if v := r.optional("ka"); !v.IsZero() {
		name, ok := v.StringValue()
		if !ok || name == "" {
			r.fail("field %q is not a name", "ka")
		}
		m.KeyAltName = name
		if !r.optional("ki").IsZero() {
			r.fail("fields %q and %q exclude each other", "ki", "ka")
		}
	} else {
		m.KeyID = r.uuid("ki")
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return m, nil
}

// Purpose says what a Placeholder is for, its field t.
type Purpose int32

// A value is stored, or looked for.
const (
	ForInsert Purpose = 1
	ForFind   Purpose = 2
)

// Index says how a value of Queryable Encryption can be found, field a of a Placeholder.
type Index int32

// IndexNone is that of a value that cannot be found by itself.
const (
	IndexNone     Index = 1
	IndexEquality Index = 2
	IndexRange    Index = 3
	IndexText     Index = 4
)

// Placeholder is a value that is to be encrypted with Queryable Encryption, or looked for:
// KindPlaceholder.
type Placeholder struct {
	Purpose    Purpose
	Index      Index
	IndexKey   bson.UUID     // that the tokens are derived from: the field's key
	UserKey    bson.UUID     // that the value is encrypted with: the same, but for explicit encryption
	Value      bson.RawValue // for IndexRange and IndexText that of a RangeInsert, RangeFind or Text
	Contention int64         // the greatest contention factor
	Sparsity   int64         // IndexRange only; 0 otherwise
}

// Append appends the bytes of p, the Kind first.
func (p *Placeholder) Append(dst []byte) []byte {
	start, dst := bson.BeginDocument(append(dst, byte(KindPlaceholder)))
	dst = bson.AppendInt32(dst, "t", int32(p.Purpose))
	dst = bson.AppendInt32(dst, "a", int32(p.Index))
	dst = bson.AppendBinary(dst, "ki", bson.BinaryUUID, p.IndexKey[:])
	dst = bson.AppendBinary(dst, "ku", bson.BinaryUUID, p.UserKey[:])
	dst = bson.AppendRawValue(dst, "v", p.Value)
	dst = bson.AppendInt64(dst, "cm", p.Contention)
	if p.Index == IndexRange {
		dst = bson.AppendInt64(dst, "s", p.Sparsity)
	}
	return bson.EndDocument(dst, start)
}

// ParsePlaceholder parses what Append appends. What Value holds is not looked at.
func ParsePlaceholder(data []byte) (*Placeholder, error) {
	doc, err := document(data, KindPlaceholder)
	if err != nil {
		return nil, err
	}
	r := read(KindPlaceholder.String(), doc)
	p := &Placeholder{
		Purpose: Purpose(r.int32("t")), Index: Index(r.int32("a")), IndexKey: r.uuid("ki"), UserKey: r.uuid("ku"),
		Value: r.value("v"), Contention: r.int64("cm"),
	}
	if s := r.optional("s"); !s.IsZero() {
		n, ok := s.Int64()
		r.typed("s", ok)
		p.Sparsity = n
	}
	switch {
	case p.Purpose != ForInsert && p.Purpose != ForFind:
		r.fail("type %d is neither 1 nor 2", p.Purpose)
	case p.Index < IndexNone || p.Index > IndexText:
		r.fail("algorithm %d is not one from 1 to 4", p.Index)
	case p.Purpose == ForFind && p.Index == IndexNone:
		r.fail("a field without index cannot be queried")
	case p.Contention < 0:
		r.fail("contention must be non-negative, but got %d", p.Contention)
	case p.Sparsity < 0 || p.Index == IndexRange && p.Sparsity < 1:
		r.fail("sparsity must be 1 or larger, but got %d", p.Sparsity)
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return p, nil
}

// RangeInsert is the value of a Placeholder that is inserted with IndexRange. Without Min and Max
// all values of the type are allowed; without TrimFactor it is DefaultTrimFactor, or as much of it
// as the domain has bits.
type RangeInsert struct {
	Value      bson.RawValue
	Min, Max   bson.RawValue
	Precision  *int32
	TrimFactor *int32
}

// RawValue returns r as the value of a Placeholder.
func (r *RangeInsert) RawValue() bson.RawValue {
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendRawValue(dst, "v", r.Value)
	dst = appendOptional(dst, "min", r.Min)
	dst = appendOptional(dst, "max", r.Max)
	dst = appendOptionalInt32(dst, "precision", r.Precision)
	dst = appendOptionalInt32(dst, "trimFactor", r.TrimFactor)
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(dst, start)}
}

// ParseRangeInsert parses what RawValue returns.
func ParseRangeInsert(v bson.RawValue) (*RangeInsert, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, fmt.Errorf("malformed range placeholder: its value is a %s, not a document", v.Type)
	}
	r := read("range placeholder", doc)
	s := &RangeInsert{
		Value: r.value("v"), Min: r.optional("min"), Max: r.optional("max"),
		Precision: r.optionalInt32("precision"), TrimFactor: r.optionalInt32("trimFactor"),
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return s, nil
}

// RangeOperator is a comparison of a range query.
type RangeOperator int32

// The zero RangeOperator is none.
const (
	Greater        RangeOperator = 1 // $gt
	GreaterOrEqual RangeOperator = 2 // $gte
	Less           RangeOperator = 3 // $lt
	LessOrEqual    RangeOperator = 4 // $lte
)

var rangeOperators = [...]string{Greater: "$gt", GreaterOrEqual: "$gte", Less: "$lt", LessOrEqual: "$lte"}

// ParseRangeOperator returns the operator with the name that String returns, and whether it is one.
func ParseRangeOperator(name string) (RangeOperator, bool) {
	for op := Greater; op <= LessOrEqual; op++ {
		if rangeOperators[op] == name {
			return op, true
		}
	}
	return 0, false
}

// String returns the operator's name in a query.
func (o RangeOperator) String() string {
	if o >= Greater && o <= LessOrEqual {
		return rangeOperators[o]
	}
	return fmt.Sprintf("operator %d", int32(o))
}

// IsLower reports whether o bounds a range from below.
func (o RangeOperator) IsLower() bool { return o == Greater || o == GreaterOrEqual }

// Includes reports whether the bound itself is in the range.
func (o RangeOperator) Includes() bool { return o == GreaterOrEqual || o == LessOrEqual }

// RangeFind is the value of a Placeholder that is looked for with IndexRange. One without Edges
// stands for the second half of a range with two bounds: the placeholder of the first half has the
// edges of both and the same PayloadID and operators.
type RangeFind struct {
	Edges     *RangeEdges
	PayloadID int32
	First     RangeOperator
	Second    RangeOperator // 0 if the range has one bound
}

// RangeEdges is the range of a RangeFind. An open side has Open as its bound.
type RangeEdges struct {
	Lower      bson.RawValue
	LowerIn    bool // the bound is in the range
	Upper      bson.RawValue
	UpperIn    bool
	Min, Max   bson.RawValue // as those of RangeInsert
	Precision  *int32
	TrimFactor *int32
}

// Open returns the bound of a range's open side: an infinite double, whatever the field's type.
func Open(lower bool) bson.RawValue {
	sign := 1
	if lower {
		sign = -1
	}
	return bson.RawValue{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, inf(sign))}
}

// RawValue returns r as the value of a Placeholder.
func (r *RangeFind) RawValue() bson.RawValue {
	start, dst := bson.BeginDocument(nil)
	if e := r.Edges; e != nil {
		var inner int
		inner, dst = bson.BeginDocumentElement(dst, "edgesInfo")
		dst = bson.AppendRawValue(dst, "lowerBound", e.Lower)
		dst = bson.AppendBool(dst, "lbIncluded", e.LowerIn)
		dst = bson.AppendRawValue(dst, "upperBound", e.Upper)
		dst = bson.AppendBool(dst, "ubIncluded", e.UpperIn)
		dst = appendOptional(dst, "indexMin", e.Min)
		dst = appendOptional(dst, "indexMax", e.Max)
		dst = appendOptionalInt32(dst, "precision", e.Precision)
		dst = appendOptionalInt32(dst, "trimFactor", e.TrimFactor)
		dst = bson.EndDocument(dst, inner)
	}
	dst = bson.AppendInt32(dst, "payloadId", r.PayloadID)
	dst = bson.AppendInt32(dst, "firstOperator", int32(r.First))
	if r.Second != 0 {
		dst = bson.AppendInt32(dst, "secondOperator", int32(r.Second))
	}
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(dst, start)}
}

// ParseRangeFind parses what RawValue returns.
func ParseRangeFind(v bson.RawValue) (*RangeFind, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, fmt.Errorf("malformed range placeholder: its value is a %s, not a document", v.Type)
	}
	r := read("range placeholder", doc)
	f := &RangeFind{PayloadID: r.int32("payloadId"), First: r.operator("firstOperator"),
		Second: r.optionalOperator("secondOperator")}
	if edges := r.optional("edgesInfo"); !edges.IsZero() {
		inner, ok := edges.Document()
		r.typed("edgesInfo", ok)
		e := read("range placeholder", inner)
		f.Edges = &RangeEdges{
			Lower: e.value("lowerBound"), LowerIn: e.bool("lbIncluded"), Upper: e.value("upperBound"),
			UpperIn: e.bool("ubIncluded"),
			Min:     e.optional("indexMin"), Max: e.optional("indexMax"),
			Precision: e.optionalInt32("precision"), TrimFactor: e.optionalInt32("trimFactor"),
		}
		if err := e.done(); err != nil {
			return nil, err
		}
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return f, nil
}

func (r *reader) operator(name string) RangeOperator {
	o := RangeOperator(r.int32(name))
	if o < Greater || o > LessOrEqual {
		r.fail("field %q is not an operator: %d", name, int32(o))
	}
	return o
}

func (r *reader) optionalOperator(name string) RangeOperator {
	if r.optional(name).IsZero() {
		return 0
	}
	return r.operator(name)
}

// Text is the value of a Placeholder with IndexText. One that is looked for has at most one of
// Prefix, Suffix and Substring: that of the query. Without any the query is for the whole text.
type Text struct {
	Value          string
	FoldCase       bool // the field is not case sensitive
	FoldDiacritics bool // the field is not diacritic sensitive
	Prefix, Suffix *Affix
	Substring      *Substring
}

// Affix bounds the length of a query for a prefix or suffix, in code points.
type Affix struct{ Upper, Lower int32 }

// Substring bounds the length of a query for a substring, and that of the values, in code points.
type Substring struct{ MaxLength, Upper, Lower int32 }

// RawValue returns t as the value of a Placeholder.
func (t *Text) RawValue() bson.RawValue {
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "v", t.Value)
	dst = bson.AppendBool(dst, "casef", t.FoldCase)
	dst = bson.AppendBool(dst, "diacf", t.FoldDiacritics)
	dst = t.Prefix.append(dst, "prefix")
	dst = t.Suffix.append(dst, "suffix")
	dst = t.Substring.append(dst, "substr")
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(dst, start)}
}

func (a *Affix) append(dst []byte, name string) []byte {
	if a == nil {
		return dst
	}
	start, dst := bson.BeginDocumentElement(dst, name)
	dst = bson.AppendInt32(dst, "ub", a.Upper)
	dst = bson.AppendInt32(dst, "lb", a.Lower)
	return bson.EndDocument(dst, start)
}

func (s *Substring) append(dst []byte, name string) []byte {
	if s == nil {
		return dst
	}
	start, dst := bson.BeginDocumentElement(dst, name)
	dst = bson.AppendInt32(dst, "mlen", s.MaxLength)
	dst = bson.AppendInt32(dst, "ub", s.Upper)
	dst = bson.AppendInt32(dst, "lb", s.Lower)
	return bson.EndDocument(dst, start)
}

// ParseText parses what RawValue returns.
func ParseText(v bson.RawValue) (*Text, error) {
	doc, ok := v.Document()
	if !ok {
		return nil, fmt.Errorf("malformed text placeholder: its value is a %s, not a document", v.Type)
	}
	r := read("text placeholder", doc)
	t := &Text{
		Value: r.string("v"), FoldCase: r.bool("casef"), FoldDiacritics: r.bool("diacf"),
		Prefix: r.affix("prefix"), Suffix: r.affix("suffix"), Substring: r.substring("substr"),
	}
	if t.Substring != nil && (t.Prefix != nil || t.Suffix != nil) {
		r.fail("a substring index excludes others")
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	return t, nil
}

func (r *reader) affix(name string) *Affix {
	v := r.optional(name)
	if v.IsZero() {
		return nil
	}
	doc, ok := v.Document()
	r.typed(name, ok)
	e := read(r.what, doc)
	a := &Affix{Upper: e.int32("ub"), Lower: e.int32("lb")}
	if a.Lower < 1 || a.Upper < a.Lower {
		e.fail("lengths from %d to %d of %q", a.Lower, a.Upper, name)
	}
	r.inner(e)
	return a
}

func (r *reader) substring(name string) *Substring {
	v := r.optional(name)
	if v.IsZero() {
		return nil
	}
	doc, ok := v.Document()
	r.typed(name, ok)
	e := read(r.what, doc)
	s := &Substring{MaxLength: e.int32("mlen"), Upper: e.int32("ub"), Lower: e.int32("lb")}
	if s.Lower < 1 || s.Upper < s.Lower || s.MaxLength < s.Upper {
		e.fail("lengths from %d to %d of at most %d of %q", s.Lower, s.Upper, s.MaxLength, name)
	}
	r.inner(e)
	return s
}

// inner takes over the error of a reader of an embedded document.
func (r *reader) inner(e *reader) {
	if err := e.done(); err != nil && r.broken == nil {
		r.broken = err
	}
}

func appendOptional(dst []byte, key string, v bson.RawValue) []byte {
	if v.IsZero() {
		return dst
	}
	return bson.AppendRawValue(dst, key, v)
}

func appendOptionalInt32(dst []byte, key string, v *int32) []byte {
	if v == nil {
		return dst
	}
	return bson.AppendInt32(dst, key, *v)
}
