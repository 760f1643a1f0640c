package bson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// structProgram is what a struct type is compiled into.
type structProgram struct {
	t      reflect.Type
	fields []programField
	byKey  map[string]int // index in fields
	inline *inlineMap     // the map that takes the keys without a field, or nil
	text   atomic.Int32   // how many bytes of strings the last documents had, roughly
}

// programField is one field of a struct, or of a struct that is inline in it.
type programField struct {
	key    string
	match  fieldMatch
	header []byte    // the BSON type (0 if the value decides), the key, its NUL
	words  [2]uint64 // the header, if it is not longer than that
	typ    reflect.Type
	hops   []hop // pointers to inline structs on the way to the field
	offset uintptr
	op     op
	enc    encFunc
	dec    decFunc
	omit   func(p ptr) bool // whether to leave the field out; nil for never
	// lenient: a value that does not fit leaves the field at its zero value.
	lenient bool
}

// hop is a pointer to an inline struct.
type hop struct {
	offset   uintptr // of the pointer in the struct before
	elem     reflect.Type
	exported bool
}

// inlineMap is a map field with the tag inline.
type inlineMap struct {
	hops    []hop
	offset  uintptr
	codec   *mapCodec
	lenient bool // an entry that does not fit is left out
}

// find returns the address of the field in the struct at p, or false if a pointer on the way is
// nil.
func find(p ptr, hops []hop, offset uintptr) (ptr, bool) {
	for _, h := range hops {
		if p = p.add(h.offset).elem(); p.isNil() {
			return ptr{}, false
		}
	}
	return p.add(offset), true
}

// reach is find, but it makes the structs on the way. As encoding/json, it does not make one whose
// type is not exported: only the program can.
func reach(p ptr, hops []hop, offset uintptr) (ptr, error) {
	for _, h := range hops {
		at := p.add(h.offset)
		if p = at.elem(); p.isNil() {
			if !h.exported {
				return p, fmt.Errorf("embedded pointer to the unexported struct %s is nil: set it before decoding",
					h.elem)
			}
			p = pointerOf(reflect.New(h.elem))
			at.setElem(p)
		}
	}
	return p.add(offset), nil
}

func (cm *compiler) compileStruct(tc *typeCodec, fl flags) {
	tc.shape = ShapeStruct
	fields, shadowed, err := structFields(tc.t, cm.cfg)
	if err != nil {
		tc.fail(err)
		return
	}
	s := &structProgram{t: tc.t, byKey: make(map[string]int, len(fields))}
	for _, f := range fields {
		ff := fl | f.flags
		if f.inlineMap {
			s.inline = &inlineMap{hops: f.hops, offset: f.offset, codec: cm.mapCodec(f.typ, ff), lenient: f.lenient}
			continue
		}
		if len(f.hops) > 0 { // behind a pointer
			ff &^= flagCopied
		}
		fc := cm.codec(f.typ, ff)
		if len(f.hops) == 0 {
			tc.copies = tc.copies || fc.copies
		}
		pf := programField{key: f.key, match: newFieldMatch(f.key), typ: f.typ, hops: f.hops, offset: f.offset,
			op: fc.op, enc: fc.encoder(), dec: fc.decoder(), lenient: f.lenient}
		t := Type(0)
		if pf.op != opCall {
			t = opTypes[pf.op]
		}
		pf.header = append(append([]byte{byte(t)}, f.key...), 0)
		if len(pf.header) <= len(pf.words)*8 {
			var w [16]byte
			copy(w[:], pf.header)
			pf.words = [2]uint64{binary.LittleEndian.Uint64(w[:]), binary.LittleEndian.Uint64(w[8:])}
		}
		var copies bool
		if pf.omit, copies = omitter(f); copies && len(f.hops) == 0 {
			tc.copies = true
		}
		s.byKey[f.key] = len(s.fields)
		s.fields = append(s.fields, pf)
	}
	if shadowed != "" && cm.cfg.DisallowShadowedFields {
		tc.fail(keyTwice(shadowed))
		tc.dec = s.decode
		return
	}
	tc.enc, tc.dec = s.encode, s.decode
}

func (s *structProgram) encode(e *encoder, dst []byte, base ptr) (Type, []byte, error) {
	if err := e.enter(); err != nil {
		return 0, dst, err
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := range s.fields {
		f := &s.fields[i]
		p := base
		if f.hops == nil {
			p = base.add(f.offset)
		} else {
			var ok bool
			if p, ok = find(base, f.hops, f.offset); !ok {
				continue
			}
		}
		if f.omit != nil && f.omit(p) {
			continue
		}
		// Room for a short header and any value of fixed size, so that they are stored without a
		// further look.
		pos := len(dst)
		if cap(dst)-pos < fixedRoom {
			dst = grow(dst, fixedRoom)
		}
		if n := len(f.header); n <= len(f.words)*8 {
			w := dst[pos : pos+fixedRoom]
			binary.LittleEndian.PutUint64(w, f.words[0])
			binary.LittleEndian.PutUint64(w[8:], f.words[1])
			dst = dst[:pos+n]
		} else {
			dst = slices.Grow(append(dst, f.header...), fixedRoom)
		}
		value := len(dst)
		var err error
		switch f.op {
		case opString:
			dst, err = appendText(dst, *at[string](p))
		case opBool:
			dst = AppendBoolValue(dst, *at[bool](p))
		case opInt:
			n := *at[int](p)
			if n >= math.MinInt32 && n <= math.MaxInt32 {
				dst[pos] = byte(TypeInt32)
				dst = dst[:value+4]
				binary.LittleEndian.PutUint32(dst[value:], uint32(n))
			} else {
				dst[pos] = byte(TypeInt64)
				dst = dst[:value+8]
				binary.LittleEndian.PutUint64(dst[value:], uint64(n))
			}
		case opInt32:
			dst = dst[:value+4]
			binary.LittleEndian.PutUint32(dst[value:], *at[uint32](p))
		case opInt64, opFloat64:
			dst = dst[:value+8]
			binary.LittleEndian.PutUint64(dst[value:], *at[uint64](p))
		case opObjectID:
			dst = append(dst, at[ObjectID](p)[:]...)
		case opTime:
			_, dst, err = appendTime(dst, *at[time.Time](p))
		default:
			var t Type
			t, dst, err = f.enc(e, dst, p)
			dst[pos] = byte(t)
		}
		if err != nil {
			return 0, dst, under(f.key, encodeErr(f.typ, err))
		}
	}
	if s.inline != nil {
		if p, ok := find(base, s.inline.hops, s.inline.offset); ok {
			e.note(start, p.value(s.inline.codec.t).Len())
			var err error
			if dst, err = s.inline.codec.appendEntries(e, dst, p, s.byKey); err != nil {
				return 0, dst, err
			}
		}
	}
	e.leave()
	return TypeEmbeddedDocument, EndDocument(dst, start), nil
}

func (s *structProgram) decode(d *decoder, t Type, b []byte, base ptr) (int, error) {
	if t != TypeEmbeddedDocument {
		if t == TypeNull || t == TypeUndefined {
			base.value(s.t).SetZero()
			return 0, nil
		}
		return 0, &DecodeError{BSONType: t, GoType: s.t, Err: errWrongType}
	}
	body, size, err := d.enter(b)
	if err != nil {
		return 0, decodeErr(t, s.t, err)
	}
	if d.depth == 1 {
		// Documents of one type tend to have as much text as the one before. Room for that is made
		// in one piece.
		if n := int(s.text.Load()); n > 0 {
			d.chunkSize = n
		}
	}
	if d.cfg.ClearStructs {
		base.value(s.t).SetZero()
	}
	var seen map[string]bool
	if d.cfg.DisallowDuplicateKeys {
		seen = make(map[string]bool)
	}
	next := 0 // the field that is expected
	for len(body) > 0 {
		et := Type(body[0])
		// Documents mostly have the fields in the order of the struct, with some left out.
		i, k := next, 0 // the field; the length of its key
		for ; i < len(s.fields) && i < next+3; i++ {
			if k = s.fields[i].match.len(body[1:]); k > 0 {
				break
			}
		}
		if k == 0 {
			if k, err = d.keyLen(body[1:]); err != nil {
				return 0, decodeErr(t, s.t, err)
			}
			i = s.lookup(body[1 : 1+k])
		}
		key := body[1 : 1+k]
		if seen != nil {
			if seen[string(key)] {
				return 0, under(string(key), &DecodeError{BSONType: et, GoType: s.t, Err: errDuplicate})
			}
			seen[string(key)] = true
		}
		body = body[k+2:]
		if i < 0 {
			n, err := s.decodeUnknown(d, et, body, base, key)
			if err != nil {
				return 0, under(string(key), err)
			}
			body = body[n:]
			continue
		}
		next = i + 1
		f := &s.fields[i]
		p := base
		if f.hops == nil {
			p = base.add(f.offset)
		} else {
			if et == TypeNull {
				// A null alone does not make an inline struct.
				if _, ok := find(base, f.hops, f.offset); !ok {
					continue
				}
			}
			if p, err = reach(base, f.hops, f.offset); err != nil {
				return 0, under(string(key), decodeErr(et, s.t, err))
			}
		}
		// What is as expected is done here, everything else by the field's codec.
		switch {
		case f.op == opString && et == TypeString:
			v, n, err := d.stringValue(body)
			if err != nil && f.lenient {
				break
			}
			if err != nil {
				return 0, under(string(key), decodeErr(et, f.typ, err))
			}
			*at[string](p) = v
			body = body[n:]
			continue
		case f.op == opInt32 && et == TypeInt32 && len(body) >= 4:
			*at[uint32](p) = binary.LittleEndian.Uint32(body)
			body = body[4:]
			continue
		case f.op == opInt && et == TypeInt32 && len(body) >= 4:
			*at[int](p) = int(int32(binary.LittleEndian.Uint32(body)))
			body = body[4:]
			continue
		case (f.op == opInt64 && et == TypeInt64 || f.op == opFloat64 && et == TypeDouble) && len(body) >= 8:
			*at[uint64](p) = binary.LittleEndian.Uint64(body)
			body = body[8:]
			continue
		case f.op == opBool && et == TypeBoolean && len(body) >= 1 && body[0] <= 1:
			*at[bool](p) = body[0] == 1
			body = body[1:]
			continue
		}
		depth := d.depth
		n, err := f.dec(d, et, body, p)
		if err != nil && f.lenient {
			if size, frame := valueSize(et, body); frame == nil {
				p.value(f.typ).SetZero()
				d.depth, n, err = depth, size, nil
			}
		}
		if err != nil {
			return 0, under(string(key), err)
		}
		body = body[n:]
	}
	if d.depth == 1 {
		used := int32(min(d.text, largeChunk))
		if n := s.text.Load(); used > n || used < n/2 {
			s.text.Store(used)
		}
	}
	d.leave()
	return size, nil
}

// decodeUnknown decodes, or skips, the value of a key without a field.
func (s *structProgram) decodeUnknown(d *decoder, t Type, b []byte, base ptr, key []byte) (int, error) {
	if s.inline != nil {
		p, err := reach(base, s.inline.hops, s.inline.offset)
		if err != nil {
			return 0, decodeErr(t, s.t, err)
		}
		depth := d.depth
		n, err := s.inline.codec.decodeEntry(d, t, b, p, key)
		if err != nil && s.inline.lenient {
			if size, frame := valueSize(t, b); frame == nil {
				d.depth, n, err = depth, size, nil
			}
		}
		return n, err
	}
	if d.cfg.DisallowUnknownFields {
		return 0, &DecodeError{BSONType: t, GoType: s.t, Err: errUnknownField}
	}
	n, err := valueSize(t, b)
	if err != nil {
		return 0, decodeErr(t, nil, err)
	}
	return n, nil
}

// fieldMatch compares the key in a document with a field's, eight bytes at a time.
type fieldMatch struct {
	head, mask uint64 // the first eight bytes of key and NUL, and which of them count
	tail       string // what follows
	n          int    // the length of the key
}

func newFieldMatch(key string) fieldMatch {
	var head, mask [8]byte
	cut := copy(head[:], key+"\x00")
	for i := range cut {
		mask[i] = 0xFF
	}
	return fieldMatch{
		head: binary.LittleEndian.Uint64(head[:]), mask: binary.LittleEndian.Uint64(mask[:]),
		tail: (key + "\x00")[cut:], n: len(key),
	}
}

// len returns the length of the field's key if b starts with it and its NUL; else, or if too little
// of the document is left for a quick look, 0.
func (m *fieldMatch) len(b []byte) int {
	if len(b) < 8 || binary.LittleEndian.Uint64(b)&m.mask != m.head {
		return 0
	}
	if m.tail != "" && (len(b) < 8+len(m.tail) || string(b[8:8+len(m.tail)]) != m.tail) {
		return 0
	}
	return m.n
}

// fixedRoom is the room that a header in words and the largest value that a program stores itself
// take.
const fixedRoom = 32

var (
	errDuplicate    = fmt.Errorf("key is there twice")
	errUnknownField = fmt.Errorf("the struct has no field for the key")
)

// lookup returns the field for key, or -1. A key that has none in its own spelling is tried in
// lower case.
func (s *structProgram) lookup(key []byte) int {
	if i, ok := s.byKey[string(key)]; ok {
		return i
	}
	lower, changed := append(make([]byte, 0, 64), key...), false
	for j, c := range lower {
		if c >= utf8.RuneSelf {
			lower, changed = bytes.ToLower(key), true
			break
		}
		if c >= 'A' && c <= 'Z' {
			lower[j], changed = c+'a'-'A', true
		}
	}
	if changed {
		if i, ok := s.byKey[string(lower)]; ok {
			return i
		}
	}
	return -1
}
