package bson

// Documents without a form that is known before: D, M, A and any.
//
// Such a tree is walked twice. The first walk, measure, checks all frames and keys, counts what
// there is and notes where the keys end; the second makes the values, with memory for them in few
// and well-filled pieces.

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"unicode/utf8"
)

// measure walks the value of type t at the start of b and gets memory ready for it. It is called
// once for the root of a tree, before any, d, m or a, and finish after them. There is no struct in
// such a tree and no code of users, so that the second walk finds everything as the first one did:
// for each document and array, d.found has how many elements it has, and then for each of them the
// length of its key or, for a key in d.keys, its entry there with a minus sign, followed by what
// was found in its value.
func (d *decoder) measure(t Type, b []byte) error {
	switch t {
	case TypeEmbeddedDocument, TypeArray, TypeCodeWithScope:
	case TypeString:
		d.grown = true
		return nil
	default:
		return nil // it makes do with what there is
	}
	d.grown = true
	d.keys.begin()
	m := measurer{cfg: d.cfg, keys: &d.keys, root: d.depth, depth: d.depth, found: d.found[:0]}
	err := m.value(t, b, 0)
	d.found = m.found
	if err != nil {
		return err
	}
	d.strings.expect(m.strings)
	d.documents.expect(m.documents)
	d.arrays.expect(m.arrays)
	d.slots.expect(m.elements)
	d.cells.expect(m.cells)
	switch size := int(binary.LittleEndian.Uint32(b)); {
	case size <= largeChunk && m.text >= size-size/4:
		// Mostly text: one copy of it all costs less than many small ones.
		d.window, d.windowCap = string(b[:size]), cap(b)
	case m.text > len(d.chunk):
		d.chunkSize = min(m.text, largeChunk)
		d.newChunk(0)
	}
	d.next = 0
	return nil
}

// finish is called after a tree is decoded.
func (d *decoder) finish() { d.window = "" }

// finding returns the next number that measure found.
func (d *decoder) finding() int {
	n := d.found[d.next]
	d.next++
	return int(n)
}

// key returns the key of the element at the start of body.
func (d *decoder) key(body []byte) string {
	n := d.finding()
	if n < 0 {
		return d.keys.entries[-n].key
	}
	return d.str(body[1 : 1+n])
}

// A measurer counts what a tree is made of.
type measurer struct {
	cfg               *config
	keys              *keyTable
	root, depth       int
	found             []int32
	strings           int
	documents, arrays int
	elements, cells   int
	text              int // bytes of strings, and of keys that are not in the table
}

// value measures a document, an array or code with scope, which is the value of the key in or lies
// in an array that is.
func (m *measurer) value(t Type, b []byte, in uint16) error {
	if m.depth > m.root && m.cfg.mapped(t, b) {
		return nil // another decoder sees to it
	}
	if t == TypeCodeWithScope {
		n, err := valueSize(t, b)
		if err != nil {
			return decodeErr(t, nil, err)
		}
		code, ok := stringBytes(b[4:n])
		if !ok {
			return &DecodeError{BSONType: t, Err: errTruncated}
		}
		m.text += len(code)
		t, b = TypeEmbeddedDocument, b[4+4+len(code)+1:n]
	}
	if m.depth > m.root && (m.cfg.Documents == DocumentsAsRaw || m.cfg.mapped(t, b)) {
		return nil // it stays as it is, or another decoder sees to it
	}
	if m.depth >= m.cfg.maxDepth {
		return &DecodeError{BSONType: t, Err: errTooDeep}
	}
	body, _, err := documentBody(b)
	if err != nil {
		return decodeErr(t, nil, err)
	}
	m.depth++
	at := len(m.found)
	m.found = append(m.found, 0)
	n := 0
	last, expected := uint16(0), uint16(0)
	if t != TypeArray {
		expected = m.keys.entries[in].first
	}
	for len(body) > 0 {
		et, id := Type(body[0]), expected
		var k int
		if e := &m.keys.entries[id]; id != 0 && len(body) > 8 && e.begins(body[1:]) {
			k, last, expected = len(e.key), id, e.next
			m.found = append(m.found, -int32(id))
		} else {
			var ascii bool
			if k, ascii = cstringLen(body[1:]); k < 0 {
				return &DecodeError{BSONType: t, Err: errKeyEnd}
			}
			if !ascii && !m.cfg.AllowInvalidUTF8 && !utf8.Valid(body[1:1+k]) {
				if t == TypeArray {
					return underIndex(n, decodeErr(et, nil, errUTF8))
				}
				return &DecodeError{BSONType: t, Err: errUTF8}
			}
			if id = 0; ascii && t != TypeArray {
				id = m.keys.follow(in, last, body[1:1+k])
			}
			if id != 0 {
				m.found = append(m.found, -int32(id))
				last, expected = id, m.keys.entries[id].next
			} else {
				m.found = append(m.found, int32(k))
				if t != TypeArray {
					m.text += k
				}
			}
		}
		v := body[k+2:]
		size := int(fixedSizes[et])
		if size == variableSize {
			if size, err = valueSize(et, v); err != nil {
				return under(string(body[1:1+k]), decodeErr(et, nil, err))
			}
			switch et {
			case TypeString, TypeJavaScript, TypeSymbol:
				if et == TypeString {
					m.strings++
				}
				if size < soloString {
					m.text += size - 5
				}
			case TypeEmbeddedDocument, TypeArray, TypeCodeWithScope:
				of := id
				if t == TypeArray {
					of = in
				}
				if err := m.value(et, v, of); err != nil {
					return under(string(body[1:1+k]), err)
				}
				switch et {
				case TypeEmbeddedDocument:
					m.documents++
				case TypeArray:
					m.arrays++
				}
			}
		} else if size > len(v) {
			return under(string(body[1:1+k]), decodeErr(et, nil, errTruncated))
		}
		body = v[size:]
		n++
	}
	m.depth--
	m.found[at] = int32(n)
	if t == TypeArray {
		m.cells += n
	} else {
		m.elements += n
	}
	return nil
}

// d decodes the document at the start of b, which was measured, into a D.
func (d *decoder) d(b []byte) (D, int, error) {
	body, size, err := d.enter(b)
	if err != nil {
		return nil, 0, err
	}
	n := d.finding()
	out := D(d.slots.take(n, slotBlock))
	for i := range out {
		e := &out[i]
		t := Type(body[0])
		e.Key = d.key(body)
		body = body[len(e.Key)+2:]
		var used int
		if e.Value, used, err = d.any(t, body); err != nil {
			return nil, 0, under(e.Key, err)
		}
		body = body[used:]
	}
	if d.cfg.DisallowDuplicateKeys {
		seen := make(map[string]bool, n)
		for _, e := range out {
			if seen[e.Key] {
				return nil, 0, under(e.Key, &DecodeError{GoType: reflect.TypeFor[D](), Err: errDuplicate})
			}
			seen[e.Key] = true
		}
	}
	d.leave()
	return out, size, nil
}

// m is d for maps. into is the map to add to; nil makes a new one.
func (d *decoder) m(b []byte, into M) (M, int, error) {
	body, size, err := d.enter(b)
	if err != nil {
		return nil, 0, err
	}
	n := d.finding()
	var seen map[string]bool
	if d.cfg.DisallowDuplicateKeys {
		seen = make(map[string]bool, n)
	}
	if into == nil {
		into = make(M, n)
	}
	for len(body) > 0 {
		t, key := Type(body[0]), d.key(body)
		body = body[len(key)+2:]
		if seen != nil {
			if seen[key] {
				return nil, 0, under(key, &DecodeError{BSONType: t, GoType: reflect.TypeFor[M](), Err: errDuplicate})
			}
			seen[key] = true
		}
		v, used, err := d.any(t, body)
		if err != nil {
			return nil, 0, under(key, err)
		}
		into[key] = v
		body = body[used:]
	}
	d.leave()
	return into, size, nil
}

// a is d for arrays.
func (d *decoder) a(b []byte) (A, int, error) {
	body, size, err := d.enter(b)
	if err != nil {
		return nil, 0, err
	}
	out := A(d.cells.take(d.finding(), cellBlock))
	for i := range out {
		t := Type(body[0])
		body = body[d.finding()+2:]
		v, used, err := d.any(t, body)
		if err != nil {
			return nil, 0, underIndex(i, err)
		}
		out[i] = v
		body = body[used:]
	}
	d.leave()
	return out, size, nil
}

// any decodes the value of type t at the start of b into the type that the package's table gives
// for it.
func (d *decoder) any(t Type, b []byte) (v any, n int, err error) {
	if d.cfg.mapped(t, b) {
		return d.mappedAny(t, b)
	}
	switch t {
	case TypeString:
		s, n, err := d.stringValue(b)
		if err != nil {
			return nil, 0, decodeErr(t, nil, err)
		}
		return d.boxString(s), n, nil
	case TypeInt32:
		if len(b) >= 4 {
			return d.boxInt32(int32(binary.LittleEndian.Uint32(b))), 4, nil
		}
	case TypeInt64:
		if len(b) >= 8 {
			return d.boxInt64(int64(binary.LittleEndian.Uint64(b))), 8, nil
		}
	case TypeDouble:
		if len(b) >= 8 {
			return d.boxFloat64(math.Float64frombits(binary.LittleEndian.Uint64(b))), 8, nil
		}
	case TypeDateTime:
		if len(b) >= 8 {
			return d.boxDateTime(DateTime(binary.LittleEndian.Uint64(b))), 8, nil
		}
	case TypeObjectID:
		if len(b) >= 12 {
			return d.boxObjectID(b[:12]), 12, nil
		}
	case TypeBoolean:
		if len(b) >= 1 && b[0] <= 1 {
			return b[0] == 1, 1, nil
		}
	case TypeNull:
		return nil, 0, nil
	case TypeEmbeddedDocument:
		switch d.cfg.Documents {
		case DocumentsAsD:
			if d.cfg.documents.m {
				doc, n, err := d.m(b, nil)
				if err != nil {
					return nil, 0, decodeErr(t, nil, err)
				}
				return retyped(doc, d.cfg.documents.word), n, nil
			}
			doc, n, err := d.d(b)
			if err != nil {
				return nil, 0, decodeErr(t, nil, err)
			}
			return d.boxD(doc), n, nil
		case DocumentsAsM:
			doc, n, err := d.m(b, nil)
			if err != nil {
				return nil, 0, decodeErr(t, nil, err)
			}
			return doc, n, nil
		case DocumentsAsMap:
			doc, n, err := d.m(b, nil)
			if err != nil {
				return nil, 0, decodeErr(t, nil, err)
			}
			return map[string]any(doc), n, nil
		}
	case TypeArray:
		if d.cfg.Documents != DocumentsAsRaw {
			a, n, err := d.a(b)
			if err != nil {
				return nil, 0, decodeErr(t, nil, err)
			}
			return d.boxA(a), n, nil
		}
	}
	return d.rareAny(t, b)
}

// mapped reports whether the value of type t at the start of b has another Go type by the options.
func (c *config) mapped(t Type, b []byte) bool {
	if c.Types == nil || c.Types.types[t] == nil {
		return false
	}
	if t == TypeEmbeddedDocument && c.documents.word != nil || t == TypeArray && c.arrays.word != nil {
		return false // the tree is made of these types
	}
	if t == TypeBinary && c.BinaryAsBytes && len(b) > 4 {
		return b[4] != BinaryGeneric && b[4] != BinaryOld
	}
	return true
}

// mappedAny is any for a value that has another Go type by the options.
func (d *decoder) mappedAny(t Type, b []byte) (v any, n int, err error) {
	goType := d.cfg.Types.types[t]
	tc := d.cfg.codec(goType, d.cfg.flags())
	out := reflect.New(goType)
	switch t {
	case TypeEmbeddedDocument, TypeArray, TypeCodeWithScope:
		// It may have trees of its own, and d knows one tree at a time.
		sub := decoders.Get().(*decoder)
		sub.start(d.cfg, d.data)
		sub.depth, sub.holds = d.depth, d.holds
		n, err = tc.dec(sub, t, b, pointerOf(out))
		sub.stop()
		decoders.Put(sub)
	default:
		n, err = tc.dec(d, t, b, pointerOf(out))
	}
	if err != nil {
		return nil, 0, decodeErr(t, goType, err)
	}
	return out.Elem().Interface(), n, nil
}

// rareAny is any for the types that are rare, and for broken values.
func (d *decoder) rareAny(t Type, b []byte) (v any, n int, err error) {
	n, err = valueSize(t, b)
	if err != nil {
		return nil, 0, decodeErr(t, nil, err)
	}
	rv := RawValue{Type: t, Value: b[:n]}
	ok := true
	switch t {
	case TypeEmbeddedDocument:
		return append(Raw(nil), b[:n]...), n, nil
	case TypeArray:
		return RawValue{Type: t, Value: append([]byte(nil), b[:n]...)}, n, nil
	case TypeBinary:
		var bin Binary
		if bin, ok = rv.Binary(); ok {
			v = d.anyBinary(bin)
		}
	case TypeTimestamp:
		v, ok = rv.Timestamp()
	case TypeDecimal128:
		v, ok = rv.Decimal128()
	case TypeRegex:
		v, ok = rv.validRegex(d)
	case TypeDBPointer:
		v, ok = rv.validDBPointer(d)
	case TypeJavaScript, TypeSymbol:
		s, _, err := d.stringValue(b)
		if err != nil {
			return nil, 0, decodeErr(t, nil, err)
		}
		if t == TypeSymbol {
			return Symbol(s), n, nil
		}
		return JavaScript(s), n, nil
	case TypeCodeWithScope:
		c, n, err := d.codeWithScope(b)
		if err != nil {
			return nil, 0, decodeErr(t, nil, err)
		}
		return c, n, nil
	case TypeUndefined:
		v = Undefined{}
	case TypeMinKey:
		v = MinKey{}
	case TypeMaxKey:
		v = MaxKey{}
	default:
		ok = false // a boolean that is neither 0 nor 1
	}
	if !ok {
		return nil, 0, &DecodeError{BSONType: t, Err: errMalformed}
	}
	return v, n, nil
}

func (d *decoder) codeWithScope(b []byte) (c CodeWithScope, n int, err error) {
	n, err = valueSize(TypeCodeWithScope, b)
	if err != nil {
		return c, 0, err
	}
	b = b[4:n]
	code, k, err := d.stringValue(b)
	if err != nil {
		return c, 0, err
	}
	scope, m, err := d.any(TypeEmbeddedDocument, b[k:])
	if err != nil {
		return c, 0, err
	}
	if k+m != len(b) {
		return c, 0, errors.New("code with scope: length does not match")
	}
	return CodeWithScope{Code: JavaScript(code), Scope: scope}, n, nil
}
