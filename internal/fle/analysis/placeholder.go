package analysis

import (
	"allium/bson"
	"allium/internal/fle"
)

// check refuses a value that the field at path cannot have.
func (a *analysis) check(e *Encryption, path, operator string, v bson.RawValue) error {
	if _, ok := fle.Data(v); ok || v.Type == bson.TypeBinary && len(v.Value) > 4 && v.Value[4] == bson.BinaryEncrypted {
		return a.refuse(path, operator, "Cannot encrypt a value that is encrypted already",
			"bypass automatic encryption to send values that were encrypted explicitly")
	}
	if singleValued(v.Type) {
		return a.refuse(path, operator, "Cannot encrypt element of type: "+typeName(v.Type), "leave the field out")
	}
	if len(e.types) > 0 && !e.types.has(v.Type) {
		return a.refuse(path, operator, "Cannot encrypt element of type: "+typeName(v.Type),
			"the schema wants "+e.types.String())
	}
	if e.KeyAltName != "" {
		return a.refuse(path, operator, "the key's alternative name is not resolved", "")
	}
	return nil
}

func (a *analysis) mark(e *Encryption, path, operator, altName string, v bson.RawValue) {
	a.marks = append(a.marks, Mark{
		Namespace: e.namespace, Place: a.place, Path: path, Operator: operator, Kind: e.Kind, Type: v.Type,
		KeyID: e.KeyID, KeyAltName: altName,
	})
}

// stored returns the placeholder of a value that is written to the field at path. doc is where a
// JSON pointer to the name of the key is looked up, nil if it cannot be.
func (a *analysis) stored(e *Encryption, path, operator string, v bson.RawValue, doc bson.Raw) (bson.RawValue, error) {
	if err := a.check(e, path, operator, v); err != nil {
		return v, err
	}
	if !e.Kind.queryable() {
		m := fle.Marking{Value: v, Algorithm: algorithm(e.Kind), KeyID: e.KeyID}
		if e.KeyPointer != "" {
			var err error
			if m.KeyAltName, err = a.keyName(e, path, operator, doc); err != nil {
				return v, err
			}
		}
		a.mark(e, path, "", m.KeyAltName, v)
		return fle.Value(m.Append(nil)), nil
	}
	p := fle.Placeholder{Purpose: fle.ForInsert, Index: fle.IndexNone, IndexKey: e.KeyID, UserKey: e.KeyID, Value: v,
		Contention: e.contention}
	switch e.Kind {
	case Equality:
		p.Index = fle.IndexEquality
	case Range:
		r := fle.RangeInsert{Value: v, Min: e.min, Max: e.max, Precision: e.precision, TrimFactor: e.trimFactor}
		p.Index, p.Value, p.Sparsity = fle.IndexRange, r.RawValue(), e.sparsity
	case Text:
		s, _ := v.StringValue()
		t := fle.Text{Value: s, FoldCase: e.foldCase, FoldDiacritics: e.foldMarks, Prefix: e.prefix, Suffix: e.suffix,
			Substring: e.substring}
		p.Index, p.Value = fle.IndexText, t.RawValue()
	}
	a.mark(e, path, "", "", v)
	return fle.Value(p.Append(nil)), nil
}

func algorithm(k Kind) fle.Algorithm {
	if k == Random {
		return fle.Random
	}
	return fle.Deterministic
}

// keyName returns the name of the key that a JSON pointer leads to.
func (a *analysis) keyName(e *Encryption, path, operator string, doc bson.Raw) (string, error) {
	if doc == nil {
		return "", a.refuse(path, operator, "A non-static (JSONPointer) keyId is not supported in an update",
			"replace the whole document, or give the field a key by its UUID")
	}
	n := a.root()
	for _, key := range pointerKeys(e.KeyPointer) {
		n = n.child(key)
	}
	if n != nil {
		return "", a.refuse(path, operator, "the key's name at "+e.KeyPointer+" is encrypted itself", "")
	}
	name, ok := doc.Lookup(pointerKeys(e.KeyPointer)...).StringValue()
	if !ok || name == "" {
		return "", a.refuse(path, operator,
			"keyId "+e.KeyPointer+" does not lead to a string, the name of a key, in the document", "")
	}
	return name, nil
}

// compared returns the placeholder of a value that the field at path is compared with for equality.
func (a *analysis) compared(e *Encryption, path, operator string, v bson.RawValue) (bson.RawValue, error) {
	if err := a.comparing(path, operator); err != nil {
		return v, err
	}
	switch e.Kind {
	case Deterministic:
		if err := a.check(e, path, operator, v); err != nil {
			return v, err
		}
		m := fle.Marking{Value: v, Algorithm: fle.Deterministic, KeyID: e.KeyID}
		a.mark(e, path, operator, "", v)
		return fle.Value(m.Append(nil)), nil
	case Equality:
		if err := a.check(e, path, operator, v); err != nil {
			return v, err
		}
		p := fle.Placeholder{Purpose: fle.ForFind, Index: fle.IndexEquality, IndexKey: e.KeyID, UserKey: e.KeyID,
			Value: v, Contention: e.contention}
		a.mark(e, path, operator, "", v)
		return fle.Value(p.Append(nil)), nil
	}
	return v, a.noEquality(e, path, operator)
}

// comparing notes that an encrypted field is compared, which validators must not do.
func (a *analysis) comparing(path, operator string) error {
	if a.forbid {
		return a.refuse(path, operator, "Comparison to encrypted fields not supported",
			"the server would have to keep the value in plaintext")
	}
	if a.computes && a.queryable {
		return a.refuse(path, operator, "A comparison with Queryable Encryption is true only in a filter, $match, $geoNear, $graphLookup and the pipeline of $lookup",
			"compare there, or after decryption")
	}
	a.compares = true
	return nil
}

// noEquality says why a field cannot be compared for equality.
func (a *analysis) noEquality(e *Encryption, path, operator string) error {
	switch e.Kind {
	case Random:
		return a.refuse(path, operator, "Cannot query on fields encrypted with the randomized encryption algorithm",
			"query another field, or encrypt this one deterministically")
	case Unindexed:
		return a.refuse(path, operator, "Cannot query on an encrypted field without an index",
			"give the field 'queries' in encryptedFields")
	case Text:
		return a.refuse(path, operator, invalidMatch, "compare it within $expr with $encStrNormalizedEq")
	case Range:
		return a.refuse(path, operator, "Invalid operator on a field that is encrypted for range queries",
			"use $gt, $gte, $lt and $lte")
	}
	return a.refuse(path, operator, invalidMatch, "")
}

// rangeTerm is a comparison of a range field. Two that bound it from both sides share one payload.
type rangeTerm struct {
	enc     *Encryption
	path    string
	op      fle.RangeOperator
	bound   bson.RawValue
	partner *rangeTerm
	second  bool // the partner has the payload
	id      int32
}

// newRangeTerm returns the comparison of a field with v, as the type of the field.
func (a *analysis) newRangeTerm(e *Encryption, path string, op fle.RangeOperator, v bson.RawValue) (*rangeTerm, error) {
	if err := a.comparing(path, op.String()); err != nil {
		return nil, err
	}
	v, err := a.coerce(e, path, op.String(), v)
	if err != nil {
		return nil, err
	}
	return &rangeTerm{enc: e, path: path, op: op, bound: v}, nil
}

// coerce returns v as a value of the range field's type, if that loses nothing.
func (a *analysis) coerce(e *Encryption, path, operator string, v bson.RawValue) (bson.RawValue, error) {
	want := e.types[0]
	number := v.IsNumber() || v.Type == bson.TypeDateTime
	switch {
	case v.Type == want || !number:
		return v, a.check(e, path, operator, v)
	case v.Type == bson.TypeDateTime || want == bson.TypeDateTime:
		return v, a.refuse(
			path, operator, "If the value type is a date, the type of the index must also be date (and vice versa).",
			"the schema wants "+e.types.String())
	case v.Type == bson.TypeDouble || v.Type == bson.TypeDecimal128 || want == bson.TypeDouble ||
		want == bson.TypeDecimal128:
		return v, a.refuse(
			path, operator, "If the value type and the field type are not the same type and one or both of them is a double or a decimal,"+
				" coercion of the value to field type is not supported, due to possible loss of precision.",
			"the schema wants "+e.types.String())
	}
	n, _ := v.AsInt64()
	if want == bson.TypeInt64 {
		return bson.RawValue{Type: want, Value: bson.AppendInt64Value(nil, n)}, nil
	}
	if int64(int32(n)) != n {
		return v, a.refuse(path, operator,
			"Cannot encrypt element of type: long, which does not fit into the field's type int", "")
	}
	return bson.RawValue{Type: want, Value: bson.AppendInt32Value(nil, int32(n))}, nil
}

// pairUp joins, of the terms of one conjunction, each lower bound of a field with the next free
// upper bound of it, and the other way round.
func pairUp(terms []*rangeTerm) {
	for i, t := range terms {
		if t.partner != nil {
			continue
		}
		for _, o := range terms[i+1:] {
			if o.partner == nil && o.path == t.path && o.enc == t.enc && o.op.IsLower() != t.op.IsLower() {
				t.partner, o.partner, o.second = o, t, true
				break
			}
		}
	}
}

// rangePlaceholder returns the placeholder of t. That of the first of two comes first.
func (a *analysis) rangePlaceholder(t *rangeTerm) bson.RawValue {
	find := fle.RangeFind{PayloadID: t.id, First: t.op}
	head, o := t, t.partner
	if t.second {
		find.First, head, o = t.partner.op, t.partner, t
		find.PayloadID = head.id
	} else {
		t.id = a.payloads
		a.payloads++
		find.PayloadID = t.id
	}
	if o != nil {
		find.Second = o.op
	}
	if !t.second {
		e := &fle.RangeEdges{
			Lower: fle.Open(true), LowerIn: true, Upper: fle.Open(false), UpperIn: true,
			Min: t.enc.min, Max: t.enc.max, Precision: t.enc.precision, TrimFactor: t.enc.trimFactor,
		}
		for _, side := range []*rangeTerm{head, o} {
			switch {
			case side == nil:
			case side.op.IsLower():
				e.Lower, e.LowerIn = side.bound, side.op.Includes()
			default:
				e.Upper, e.UpperIn = side.bound, side.op.Includes()
			}
		}
		find.Edges = e
	}
	p := fle.Placeholder{
		Purpose: fle.ForFind, Index: fle.IndexRange, IndexKey: t.enc.KeyID, UserKey: t.enc.KeyID,
		Value: find.RawValue(), Contention: t.enc.contention, Sparsity: t.enc.sparsity,
	}
	a.mark(t.enc, t.path, t.op.String(), "", t.bound)
	return fle.Value(p.Append(nil))
}
