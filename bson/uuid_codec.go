package bson

import (
	"encoding"
	"reflect"
)

// uuidCodec encodes and decodes UUIDs in the representation of Options.UUID.
var uuidCodec = basic{
	enc: func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		subtype, ok := e.cfg.UUID.Subtype()
		if !ok {
			return 0, dst, encodeErr(reflect.TypeFor[UUID](), errUUIDUnspecified)
		}
		id := e.cfg.UUID.reorder(*at[UUID](p))
		dst = append(dst, byte(len(id)), 0, 0, 0, subtype)
		return TypeBinary, append(dst, id[:]...), nil
	},
	dec: func(d *decoder, t Type, b []byte, p ptr) (int, error) {
		if t == TypeNull || t == TypeUndefined {
			*at[UUID](p) = UUID{}
			return 0, nil
		}
		n, err := valueSize(t, b)
		if err != nil {
			return 0, decodeErr(t, reflect.TypeFor[UUID](), err)
		}
		v, ok := RawValue{Type: t, Value: b[:n]}.Binary()
		if !ok {
			return 0, &DecodeError{BSONType: t, GoType: reflect.TypeFor[UUID](), Err: errWrongType}
		}
		id, err := v.UUIDAs(d.cfg.UUID)
		if err != nil {
			return 0, decodeErr(t, reflect.TypeFor[UUID](), err)
		}
		*at[UUID](p) = id
		return n, nil
	},
}

// anyBinary returns what a binary becomes in a variable of type any: a UUID if a representation was
// chosen and this is one of it, else a Binary or bytes.
func (d *decoder) anyBinary(b Binary) any {
	if d.cfg.UUID != UUIDDefault {
		if id, err := b.UUIDAs(d.cfg.UUID); err == nil {
			return id
		}
	}
	b.Data = append([]byte{}, b.Data...)
	if d.cfg.BinaryAsBytes && (b.Subtype == BinaryGeneric || b.Subtype == BinaryOld) {
		return b.Data
	}
	return b
}

// isUUID reports whether a type of 16 bytes is a UUID of another package's: its text is one.
func isUUID(t reflect.Type) bool {
	if t.Len() != len(UUID{}) || !reflect.PointerTo(t).Implements(typeTextMarshaler) {
		return false
	}
	text, err := reflect.New(t).Interface().(encoding.TextMarshaler).MarshalText()
	return err == nil && string(text) == UUID{}.String()
}

// useUUID makes tc, the codec of another package's UUIDs, decode what UUID does and, if a
// representation was chosen, encode it. Without a choice they stay what they are with the official
// driver, binaries of subtype 0.
func (tc *typeCodec) useUUID(r UUIDRepresentation) {
	dec := tc.dec
	if _, ok := r.Subtype(); ok && r != UUIDDefault {
		tc.enc = uuidCodec.enc // its memory is that of a UUID
	}
	tc.dec = func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeBinary {
			n, err := valueSize(bt, b)
			if err != nil {
				return 0, decodeErr(bt, tc.t, err)
			}
			v, ok := RawValue{Type: bt, Value: b[:n]}.Binary()
			if ok && (v.Subtype == BinaryUUID || v.Subtype == BinaryUUIDOld) {
				return uuidCodec.dec(d, bt, b, p)
			}
		}
		return dec(d, bt, b, p)
	}
}
