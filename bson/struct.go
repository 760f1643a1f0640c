package bson

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"
)

// structProgram is what a struct type is compiled into.
type structProgram struct {
	t      reflect.Type
	fields []programField
	byKey  map[string]int // index in fields
	inline *inlineMap     // the map that takes the keys without a field, or nil
}

// programField is one field of a struct, or of a struct that is inline in it.
type programField struct {
	key    string
	match  string // the key with its NUL, as it is in the document
	header []byte // the BSON type (0 if the value decides), the key, its NUL
	typ    reflect.Type
	hops   []hop // pointers to inline structs on the way to the field
	offset uintptr
	op     op
	enc    encFunc
	dec    decFunc
	omit   func(p ptr) bool // whether to leave the field out; nil for never
}

// hop is a pointer to an inline struct.
type hop struct {
	offset uintptr // of the pointer in the struct before
	elem   reflect.Type
}

// inlineMap is a map field with the tag inline.
type inlineMap struct {
	hops   []hop
	offset uintptr
	codec  *mapCodec
}

// find returns the address of the field in the struct at p, or false if a pointer on the way is nil.
func find(p ptr, hops []hop, offset uintptr) (ptr, bool) {
	for _, h := range hops {
		if p = p.add(h.offset).elem(); p.isNil() {
			return ptr{}, false
		}
	}
	return p.add(offset), true
}

// reach is find, but it makes the structs on the way.
func reach(p ptr, hops []hop, offset uintptr) ptr {
	for _, h := range hops {
		at := p.add(h.offset)
		if p = at.elem(); p.isNil() {
			p = pointerOf(reflect.New(h.elem))
			at.setElem(p)
		}
	}
	return p.add(offset)
}

func (cm *compiler) compileStruct(tc *typeCodec, fl flags) {
	fields, err := structFields(tc.t, cm.cfg)
	if err != nil {
		tc.fail(err)
		return
	}
	s := &structProgram{t: tc.t, byKey: make(map[string]int, len(fields))}
	for _, f := range fields {
		ff := fl | f.flags
		if f.inlineMap {
			mc, err := cm.mapCodec(f.typ, ff)
			if err != nil {
				tc.fail(err)
				return
			}
			s.inline = &inlineMap{hops: f.hops, offset: f.offset, codec: mc}
			continue
		}
		fc := cm.codec(f.typ, ff)
		if len(f.hops) == 0 {
			tc.copies = tc.copies || fc.copies
		}
		pf := programField{key: f.key, match: f.key + "\x00", typ: f.typ, hops: f.hops, offset: f.offset,
			op: fc.op, enc: fc.encoder(), dec: fc.decoder()}
		t := Type(0)
		if pf.op != opCall {
			t = opTypes[pf.op]
		}
		pf.header = append(append([]byte{byte(t)}, f.key...), 0)
		var copies bool
		if pf.omit, copies = omitter(f); copies && len(f.hops) == 0 {
			tc.copies = true
		}
		s.byKey[f.key] = len(s.fields)
		s.fields = append(s.fields, pf)
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
		p := base.add(f.offset)
		if f.hops != nil {
			var ok bool
			if p, ok = find(base, f.hops, f.offset); !ok {
				continue
			}
		}
		if f.omit != nil && f.omit(p) {
			continue
		}
		pos := len(dst)
		dst = append(dst, f.header...)
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
				dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
			} else {
				dst[pos] = byte(TypeInt64)
				dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
			}
		case opInt32:
			dst = binary.LittleEndian.AppendUint32(dst, *at[uint32](p))
		case opInt64:
			dst = binary.LittleEndian.AppendUint64(dst, *at[uint64](p))
		case opFloat64:
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(*at[float64](p)))
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
	if d.cfg.ClearStructs {
		base.value(s.t).SetZero()
	}
	var seen map[string]bool // only if duplicates are an error
	next := 0                // the field that is expected
	for len(body) > 0 {
		et := Type(body[0])
		var key []byte
		i := -1
		// Documents mostly have the fields in the order of the struct, with some left out.
		for j := next; j < len(s.fields) && j < next+3; j++ {
			m := s.fields[j].match
			if len(body) > len(m) && string(body[1:1+len(m)]) == m {
				i, key = j, body[1:len(m)]
				break
			}
		}
		if i < 0 {
			n, err := d.keyLen(body[1:])
			if err != nil {
				return 0, decodeErr(t, s.t, err)
			}
			key = body[1 : 1+n]
			i = s.lookup(key)
		}
		if d.cfg.DisallowDuplicateKeys {
			if seen[string(key)] {
				return 0, under(string(key), &DecodeError{BSONType: et, GoType: s.t, Err: errDuplicate})
			}
			if seen == nil {
				seen = make(map[string]bool)
			}
			seen[string(key)] = true
		}
		body = body[len(key)+2:]
		var n int
		switch {
		case i >= 0:
			next = i + 1
			f := &s.fields[i]
			p := base.add(f.offset)
			if f.hops != nil {
				if et == TypeNull {
					// A null alone does not make an inline struct.
					if _, ok := find(base, f.hops, f.offset); !ok {
						continue
					}
				}
				p = reach(base, f.hops, f.offset)
			}
			n, err = f.dec(d, et, body, p)
		case s.inline != nil:
			n, err = s.inline.codec.decodeEntry(d, et, body, reach(base, s.inline.hops, s.inline.offset), key)
		case d.cfg.DisallowUnknownFields:
			err = &DecodeError{BSONType: et, GoType: s.t, Err: errUnknownField}
		default:
			if n, err = valueSize(et, body); err != nil {
				err = decodeErr(et, nil, err)
			}
		}
		if err != nil {
			return 0, under(string(key), err)
		}
		body = body[n:]
	}
	d.leave()
	return size, nil
}

var (
	errDuplicate    = fmt.Errorf("key is there twice")
	errUnknownField = fmt.Errorf("the struct has no field for the key")
)

// lookup returns the field for key, or -1. A key that has none in its own spelling is tried in lower case.
func (s *structProgram) lookup(key []byte) int {
	if i, ok := s.byKey[string(key)]; ok {
		return i
	}
	for j, c := range key {
		if c >= 'A' && c <= 'Z' {
			lower := append(make([]byte, 0, 64), key...)
			for ; j < len(lower); j++ {
				if c := lower[j]; c >= 'A' && c <= 'Z' {
					lower[j] = c + 'a' - 'A'
				}
			}
			if i, ok := s.byKey[string(lower)]; ok {
				return i
			}
			break
		}
	}
	return -1
}
