package bson

import "reflect"

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
