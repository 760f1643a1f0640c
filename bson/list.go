package bson

// Slices and arrays.

import (
	"fmt"
	"reflect"
)

func (cm *compiler) compileSlice(tc *typeCodec, fl flags) {
	t := tc.t
	switch {
	case t.Elem() == typeE:
		b := dCodec(fl)
		tc.enc, tc.dec = b.enc, b.dec
		return
	case t.Elem() == typeByte:
		tc.enc, tc.dec = encBytes, decBytes(t)
		return
	}
	tc.shape = ShapeList
	switch {
	case t.Elem() == typeAny:
		b := aCodec(fl)
		tc.enc, tc.dec = b.enc, b.dec
		return
	case t.Elem() == reflect.TypeFor[string]() && !cm.cfg.special:
		tc.enc = func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
			s := *at[[]string](p)
			if s == nil && e.cfg.NilSliceAsNull {
				return TypeNull, dst, nil
			}
			dst, err := e.appendStrings(dst, s)
			return TypeArray, dst, err
		}
		tc.dec = decStrings(t)
		return
	}
	elem := cm.codec(t.Elem(), fl&^flagCopied)
	size := t.Elem().Size()
	enc, dec := elem.encoder(), elem.decoder()
	tc.enc = func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		first, n := p.slice()
		if first.isNil() && e.cfg.NilSliceAsNull {
			return TypeNull, dst, nil
		}
		return e.appendList(dst, enc, elem.t, first, n, size)
	}
	tc.dec = func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeNull || bt == TypeUndefined {
			p.value(t).SetZero()
			return 0, nil
		}
		body, n, total, err := d.enterCounted(TypeArray, bt, b)
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		// New memory each time: a caller that decodes into one variable again and again may have
		// kept the last slice.
		if err := d.list(body, dec, p.makeSlice(t, n), n, size); err != nil {
			return 0, err
		}
		d.leave()
		return total, nil
	}
}

// appendList appends n variables, size bytes apart from first on, as an array.
func (e *encoder) appendList(dst []byte, enc encFunc, t reflect.Type, first ptr, n int,
	size uintptr) (Type, []byte, error) {
	if err := e.enter(); err != nil {
		return 0, dst, err
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := range n {
		pos := len(dst)
		dst = appendIndex(append(dst, 0), i)
		et, out, err := enc(e, dst, first.add(uintptr(i)*size))
		if err != nil {
			return 0, dst, underIndex(i, encodeErr(t, err))
		}
		dst = out
		dst[pos] = byte(et)
	}
	e.leave()
	return TypeArray, EndDocument(dst, start), nil
}

// list decodes the n elements of an array's body into variables that lie size bytes apart from
// first on.
func (d *decoder) list(body []byte, dec decFunc, first ptr, n int, size uintptr) error {
	for i := range n {
		et := Type(body[0])
		k, err := d.keyLen(body[1:])
		if err != nil {
			return underIndex(i, decodeErr(et, nil, err))
		}
		body = body[k+2:]
		m, err := dec(d, et, body, first.add(uintptr(i)*size))
		if err != nil {
			return underIndex(i, err)
		}
		body = body[m:]
	}
	return nil
}

func (cm *compiler) compileArray(tc *typeCodec, fl flags) {
	t := tc.t
	length := t.Len()
	if t.Elem() == typeByte {
		tc.enc = func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
			return TypeBinary, AppendBinaryValue(dst, BinaryGeneric, p.bytes(length)), nil
		}
		tc.dec = decByteArray(t, cm.decArray(t, fl))
		if isUUID(t) {
			tc.useUUID(cm.cfg.UUID)
		}
		return
	}
	tc.shape = ShapeList
	elem := cm.codec(t.Elem(), fl)
	tc.copies = elem.copies
	size := t.Elem().Size()
	enc := elem.encoder()
	tc.enc = func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		return e.appendList(dst, enc, elem.t, p, length, size)
	}
	tc.dec = cm.decArray(t, fl)
}

// decArray decodes a BSON array into a Go array.
func (cm *compiler) decArray(t reflect.Type, fl flags) decFunc {
	length, size := t.Len(), t.Elem().Size()
	dec := cm.codec(t.Elem(), fl).decoder()
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeNull || bt == TypeUndefined {
			p.value(t).SetZero()
			return 0, nil
		}
		body, n, total, err := d.enterCounted(TypeArray, bt, b)
		if err == nil && n > length {
			err = fmt.Errorf("array has %d elements, only %d fit", n, length)
		}
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		p.value(t).SetZero()
		if err := d.list(body, dec, p, n, size); err != nil {
			return 0, err
		}
		d.leave()
		return total, nil
	}
}

func encBytes(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
	b := *at[[]byte](p)
	if b == nil && e.cfg.NilBytesAsNull {
		return TypeNull, dst, nil
	}
	return TypeBinary, AppendBinaryValue(dst, BinaryGeneric, b), nil
}

// plainBytes returns the bytes of a binary of the subtypes that say nothing about them, or of a
// string. They lie in b.
func plainBytes(t Type, b []byte) (data []byte, n int, err error) {
	n, err = valueSize(t, b)
	if err != nil {
		return nil, 0, err
	}
	switch t {
	case TypeBinary:
		v, ok := RawValue{Type: t, Value: b[:n]}.Binary()
		if !ok {
			return nil, 0, errOldBinary
		}
		if v.Subtype != BinaryGeneric && v.Subtype != BinaryOld {
			use := "Binary"
			if v.Subtype == BinaryUUID || v.Subtype == BinaryUUIDOld {
				use = "UUID, or a type of 16 bytes whose text is a UUID's"
			}
			return nil, 0, fmt.Errorf("binary has the subtype 0x%02X: use %s", v.Subtype, use)
		}
		return v.Data, n, nil
	case TypeString, TypeSymbol:
		return b[4 : n-1], n, nil
	}
	return nil, 0, errWrongType
}

func decBytes(t reflect.Type) decFunc {
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeNull || bt == TypeUndefined {
			*at[[]byte](p) = nil
			return 0, nil
		}
		data, n, err := plainBytes(bt, b)
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		*at[[]byte](p) = append(make([]byte, 0, len(data)), data...)
		return n, nil
	}
}

// decByteArray decodes a binary; decArray does the rest.
func decByteArray(t reflect.Type, decArray decFunc) decFunc {
	length := t.Len()
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt != TypeBinary {
			return decArray(d, bt, b, p)
		}
		out := p.bytes(length)
		data, n, err := plainBytes(bt, b)
		if err == nil && len(data) > length {
			err = fmt.Errorf("%d bytes, only %d fit", len(data), length)
		}
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		clear(out[copy(out, data):])
		return n, nil
	}
}

func decStrings(t reflect.Type) decFunc {
	str := reflect.TypeFor[string]()
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeNull || bt == TypeUndefined {
			*at[[]string](p) = nil
			return 0, nil
		}
		body, n, total, err := d.enterCounted(TypeArray, bt, b)
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		out := make([]string, n)
		for i := range out {
			et := Type(body[0])
			k, err := d.keyLen(body[1:])
			if err != nil {
				return 0, underIndex(i, decodeErr(et, nil, err))
			}
			body = body[k+2:]
			s, m, err := d.stringOrNull(et, body, str)
			if err != nil {
				return 0, underIndex(i, err)
			}
			out[i] = s
			body = body[m:]
		}
		*at[[]string](p) = out
		d.leave()
		return total, nil
	}
}
