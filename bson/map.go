package bson

// Maps, and the documents and arrays of no fixed form: D, M and A.

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
)

// KeyMarshaler is implemented by map keys that encode themselves as text; for others
// encoding.TextMarshaler is used.
type KeyMarshaler interface {
	MarshalKey() (key string, err error)
}

// KeyUnmarshaler is the reverse of KeyMarshaler.
type KeyUnmarshaler interface {
	UnmarshalKey(key string) error
}

var (
	typeKeyMarshaler   = reflect.TypeFor[KeyMarshaler]()
	typeKeyUnmarshaler = reflect.TypeFor[KeyUnmarshaler]()
)

// mapCodec is how maps of one type are encoded and decoded.
type mapCodec struct {
	t         reflect.Type
	elem      reflect.Type
	enc       encFunc // of the values
	dec       decFunc
	flags     flags
	encodeKey func(k reflect.Value) (string, error)
	decodeKey func(key string, k reflect.Value) error // k is settable
}

// mapCodec returns the codec of maps of type t. Keys of a type that cannot be one are an error only
// where there are entries.
func (cm *compiler) mapCodec(t reflect.Type, fl flags) *mapCodec {
	elem := cm.codec(t.Elem(), cm.cfg.copied(fl))
	m := &mapCodec{t: t, elem: t.Elem(), enc: elem.encoder(), dec: elem.decoder(), flags: fl}
	k := t.Key()
	pk := reflect.PointerTo(k)
	switch {
	case cm.cfg.FormatKeys:
		m.encodeKey = func(k reflect.Value) (string, error) { return fmt.Sprint(k), nil }
	case k.Kind() == reflect.String:
		m.encodeKey = func(k reflect.Value) (string, error) { return k.String(), nil }
	case k.Implements(typeKeyMarshaler):
		m.encodeKey = func(k reflect.Value) (string, error) { return k.Interface().(KeyMarshaler).MarshalKey() }
	case k.Implements(typeTextMarshaler):
		m.encodeKey = func(k reflect.Value) (string, error) {
			if k.Kind() == reflect.Pointer && k.IsNil() {
				return "", nil
			}
			text, err := k.Interface().(encoding.TextMarshaler).MarshalText()
			return string(text), err
		}
	case isInt(k.Kind()):
		m.encodeKey = func(k reflect.Value) (string, error) { return strconv.FormatInt(k.Int(), 10), nil }
	case isUint(k.Kind()):
		m.encodeKey = func(k reflect.Value) (string, error) { return strconv.FormatUint(k.Uint(), 10), nil }
	}
	switch {
	case pk.Implements(typeKeyUnmarshaler):
		m.decodeKey = func(key string, k reflect.Value) error {
			return k.Addr().Interface().(KeyUnmarshaler).UnmarshalKey(key)
		}
	case pk.Implements(typeTextUnmarshaler) && k.Kind() != reflect.String:
		m.decodeKey = func(key string, k reflect.Value) error {
			return k.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(key))
		}
	case k.Kind() == reflect.String:
		m.decodeKey = func(key string, k reflect.Value) error { k.SetString(key); return nil }
	case isInt(k.Kind()):
		m.decodeKey = func(key string, k reflect.Value) error {
			n, err := strconv.ParseInt(key, 10, k.Type().Bits())
			k.SetInt(n)
			return err
		}
	case isUint(k.Kind()):
		m.decodeKey = func(key string, k reflect.Value) error {
			n, err := strconv.ParseUint(key, 10, k.Type().Bits())
			k.SetUint(n)
			return err
		}
	}
	return m
}

func isInt(k reflect.Kind) bool  { return k >= reflect.Int && k <= reflect.Int64 }
func isUint(k reflect.Kind) bool { return k >= reflect.Uint && k <= reflect.Uint64 }

func (cm *compiler) compileMap(tc *typeCodec, fl flags) {
	t := tc.t
	tc.shape = ShapeMap
	if t.Key() == reflect.TypeFor[string]() && t.Elem() == typeAny {
		b := mCodec(fl)
		tc.enc, tc.dec = b.enc, b.dec
		return
	}
	m := cm.mapCodec(t, fl)
	tc.enc = func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		if p.value(t).IsNil() && e.cfg.NilMapAsNull {
			return TypeNull, dst, nil
		}
		if err := e.enter(); err != nil {
			return 0, dst, err
		}
		start := len(dst)
		e.note(start, p.value(t).Len())
		dst, err := m.appendEntries(e, append(dst, 0, 0, 0, 0), p, nil)
		if err != nil {
			return 0, dst, err
		}
		e.leave()
		return TypeEmbeddedDocument, EndDocument(dst, start), nil
	}
	tc.dec = func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeNull || bt == TypeUndefined {
			p.value(t).SetZero()
			return 0, nil
		}
		body, n, total, err := d.enterCounted(TypeEmbeddedDocument, bt, b)
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		v := p.value(t)
		if v.IsNil() {
			v.Set(reflect.MakeMapWithSize(t, n))
		} else if d.cfg.ClearMaps {
			v.Clear()
		}
		var seen map[string]bool
		if d.cfg.DisallowDuplicateKeys {
			seen = make(map[string]bool, n)
		}
		for len(body) > 0 {
			et := Type(body[0])
			k, err := d.keyLen(body[1:])
			if err != nil {
				return 0, decodeErr(bt, t, err)
			}
			key := body[1 : 1+k]
			if seen != nil {
				if seen[string(key)] {
					return 0, under(string(key), &DecodeError{BSONType: et, GoType: t, Err: errDuplicate})
				}
				seen[string(key)] = true
			}
			body = body[k+2:]
			used, err := m.decodeEntry(d, et, body, p, key)
			if err != nil {
				return 0, under(string(key), err)
			}
			body = body[used:]
		}
		d.leave()
		return total, nil
	}
}

// appendEntries appends the entries of the map at p. taken are the keys that it may not have.
func (m *mapCodec) appendEntries(e *encoder, dst []byte, p ptr, taken map[string]int) ([]byte, error) {
	v := p.value(m.t)
	if v.Len() == 0 {
		return dst, nil
	}
	if m.encodeKey == nil {
		return dst, &EncodeError{GoType: m.t, Err: fmt.Errorf("%s cannot be the key of a document", m.t.Key())}
	}
	k := reflect.New(m.t.Key()).Elem()
	x := reflect.New(m.elem)
	for iter := v.MapRange(); iter.Next(); {
		k.SetIterKey(iter)
		x.Elem().SetIterValue(iter)
		key, err := m.encodeKey(k)
		if err != nil {
			return dst, encodeErr(m.t, err)
		}
		if _, ok := taken[key]; ok {
			return dst, &EncodeError{GoType: m.t, Err: fmt.Errorf("key %q of the inline map is also a field's", key)}
		}
		pos := len(dst)
		if dst, err = appendKey(append(dst, 0), key); err != nil {
			return dst, under(key, err)
		}
		t, out, err := m.enc(e, dst, pointerOf(x))
		if err != nil {
			return dst, under(key, encodeErr(m.elem, err))
		}
		dst = out
		dst[pos] = byte(t)
	}
	return dst, nil
}

// decodeEntry decodes a value and puts it into the map at p under key.
func (m *mapCodec) decodeEntry(d *decoder, t Type, b []byte, p ptr, key []byte) (int, error) {
	if m.decodeKey == nil {
		return 0, &DecodeError{BSONType: t, GoType: m.t,
			Err: fmt.Errorf("%s cannot be the key of a document", m.t.Key())}
	}
	v := p.value(m.t)
	if v.IsNil() {
		v.Set(reflect.MakeMap(m.t))
	}
	x := reflect.New(m.elem)
	n, err := m.dec(d, t, b, pointerOf(x))
	if err != nil {
		return 0, err
	}
	k := reflect.New(m.t.Key()).Elem()
	if err := m.decodeKey(d.str(key), k); err != nil {
		return 0, decodeErr(t, m.t, err)
	}
	v.SetMapIndex(k, x.Elem())
	return n, nil
}

func dCodec(fl flags) basic {
	return treeCodec(TypeEmbeddedDocument,
		func(e *encoder, dst []byte, v D) ([]byte, error) { return e.appendD(dst, v, fl) },
		func(v D, cfg *config) bool { return v == nil && cfg.NilMapAsNull },
		func(d *decoder, b []byte, _ D) (D, int, error) { return d.d(b) })
}

func mCodec(fl flags) basic {
	return treeCodec(TypeEmbeddedDocument,
		func(e *encoder, dst []byte, v M) ([]byte, error) { return e.appendM(dst, v, fl) },
		func(v M, cfg *config) bool { return v == nil && cfg.NilMapAsNull },
		func(d *decoder, b []byte, into M) (M, int, error) {
			if d.cfg.ClearMaps {
				clear(into)
			}
			return d.m(b, into)
		})
}

func aCodec(fl flags) basic {
	return treeCodec(TypeArray,
		func(e *encoder, dst []byte, v A) ([]byte, error) { return e.appendA(dst, v, fl) },
		func(v A, cfg *config) bool { return v == nil && cfg.NilSliceAsNull },
		func(d *decoder, b []byte, _ A) (A, int, error) { return d.a(b) })
}

// treeCodec returns the codec of D, M or A, which become the type own, or null where isNull says
// so. decode is for the second walk; see measure.
func treeCodec[T D | M | A](own Type, encode func(*encoder, []byte, T) ([]byte, error), isNull func(T, *config) bool,
	decode func(d *decoder, b []byte, into T) (T, int, error)) basic {
	t := reflect.TypeFor[T]()
	return basic{
		enc: func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
			v := *at[T](p)
			if isNull(v, e.cfg) {
				return TypeNull, dst, nil
			}
			dst, err := encode(e, dst, v)
			return own, dst, err
		},
		dec: func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
			switch bt {
			case own:
			case TypeNull, TypeUndefined:
				var null T
				*at[T](p) = null
				return 0, nil
			default:
				return 0, &DecodeError{BSONType: bt, GoType: t, Err: errWrongType}
			}
			if err := d.measure(bt, b); err != nil {
				return 0, decodeErr(bt, t, err)
			}
			v, n, err := decode(d, b, *at[T](p))
			d.finish()
			if err != nil {
				return 0, decodeErr(bt, t, err)
			}
			*at[T](p) = v
			return n, nil
		},
	}
}
