package bson

// The codecs of the basic types and kinds.

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"strconv"
	"time"
)

// basic is the codec of a basic type.
type basic struct {
	enc encFunc
	dec decFunc
	op  op
}

// basicCodecs returns the codec for exactly the type t, if it is one that the package knows.
func basicCodecs(t reflect.Type, fl flags) (basic, bool) {
	switch t {
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[json.Number]():
		// By type, but with flags.
		if t.Kind() == reflect.String {
			return numberCodec(fl), true
		}
		return kindCodecs(t, fl)
	case reflect.TypeFor[CodeWithScope]():
		return codeWithScopeCodec(fl), true
	case reflect.TypeFor[DBRef]():
		return dbRefCodec(fl), true
	case reflect.TypeFor[D]():
		return dCodec(fl), true
	case reflect.TypeFor[M]():
		return mCodec(fl), true
	case reflect.TypeFor[A]():
		return aCodec(fl), true
	}
	b, ok := basics[t]
	return b, ok
}

var basics map[reflect.Type]basic

var decDateTime = exact(TypeDateTime, plain(RawValue.DateTime))

func init() {
	basics = map[reflect.Type]basic{
		reflect.TypeFor[time.Time](): {op: opTime,
			enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
				t, dst, err := appendTime(dst, *at[time.Time](p))
				if err != nil {
					err = encodeErr(reflect.TypeFor[time.Time](), err)
				}
				return t, dst, err
			},
			dec: decTime,
		},
		reflect.TypeFor[url.URL](): {
			enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
				dst, err := appendText(dst, at[url.URL](p).String())
				if err != nil {
					err = encodeErr(reflect.TypeFor[url.URL](), err)
				}
				return TypeString, dst, err
			},
			dec: func(d *decoder, t Type, b []byte, p ptr) (int, error) {
				s, n, err := d.stringOrNull(t, b, reflect.TypeFor[url.URL]())
				if err != nil {
					return 0, err
				}
				u, err := url.Parse(s)
				if err != nil {
					return 0, decodeErr(t, reflect.TypeFor[url.URL](), err)
				}
				*at[url.URL](p) = *u
				return n, nil
			},
		},
		reflect.TypeFor[ObjectID](): {op: opObjectID,
			enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
				return TypeObjectID, append(dst, at[ObjectID](p)[:]...), nil
			},
			dec: decObjectID,
		},
		reflect.TypeFor[DateTime](): {
			enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
				return TypeDateTime, AppendInt64Value(dst, *at[int64](p)), nil
			},
			dec: func(d *decoder, t Type, b []byte, p ptr) (int, error) {
				if t == TypeInt64 {
					t = TypeDateTime
				}
				return decDateTime(d, t, b, p)
			},
		},
		reflect.TypeFor[Binary](): {
			enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
				v := at[Binary](p)
				return TypeBinary, AppendBinaryValue(dst, v.Subtype, v.Data), nil
			},
			dec: exact(TypeBinary, func(v RawValue, _ *decoder) (Binary, bool) {
				b, ok := v.Binary()
				b.Data = append([]byte{}, b.Data...)
				return b, ok
			}),
		},
		reflect.TypeFor[UUID](): uuidCodec,
		reflect.TypeFor[Timestamp](): {
			enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
				return TypeTimestamp, AppendTimestampValue(dst, *at[Timestamp](p)), nil
			},
			dec: exact(TypeTimestamp, plain(RawValue.Timestamp)),
		},
		reflect.TypeFor[Decimal128](): {
			enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
				return TypeDecimal128, AppendDecimal128Value(dst, *at[Decimal128](p)), nil
			},
			dec: exact(TypeDecimal128, plain(RawValue.Decimal128)),
		},
		reflect.TypeFor[Regex](): {
			enc: checked(TypeRegex, func(dst []byte, v Regex) ([]byte, error) { return appendRegexValue(dst, v) }),
			dec: exact(TypeRegex, RawValue.validRegex),
		},
		reflect.TypeFor[JavaScript](): {
			enc: checked(TypeJavaScript, func(dst []byte, v JavaScript) ([]byte, error) {
				return appendText(dst, string(v))
			}),
			dec: decText[JavaScript](TypeJavaScript),
		},
		reflect.TypeFor[Symbol](): {
			enc: checked(TypeSymbol, func(dst []byte, v Symbol) ([]byte, error) { return appendText(dst, string(v)) }),
			dec: decText[Symbol](TypeSymbol),
		},
		reflect.TypeFor[DBPointer](): {
			enc: checked(TypeDBPointer, appendDBPointerValue),
			dec: exact(TypeDBPointer, RawValue.validDBPointer),
		},
		reflect.TypeFor[Undefined](): empty[Undefined](TypeUndefined),
		reflect.TypeFor[Null]():      empty[Null](TypeNull),
		reflect.TypeFor[MinKey]():    empty[MinKey](TypeMinKey),
		reflect.TypeFor[MaxKey]():    empty[MaxKey](TypeMaxKey),
		reflect.TypeFor[Raw](): {
			enc: func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
				v := *at[Raw](p)
				if v == nil && e.cfg.NilMapAsNull {
					return TypeNull, dst, nil
				}
				dst, err := appendRaw(dst, v)
				if err != nil {
					err = encodeErr(reflect.TypeFor[Raw](), err)
				}
				return TypeEmbeddedDocument, dst, err
			},
			dec: func(d *decoder, t Type, b []byte, p ptr) (int, error) {
				switch t {
				case TypeNull, TypeUndefined:
					*at[Raw](p) = nil
					return 0, nil
				case TypeEmbeddedDocument, TypeArray:
					n, err := valueSize(t, b)
					if err != nil {
						return 0, decodeErr(t, reflect.TypeFor[Raw](), err)
					}
					*at[Raw](p) = append(Raw(nil), b[:n]...)
					return n, nil
				}
				return 0, &DecodeError{BSONType: t, GoType: reflect.TypeFor[Raw](), Err: errWrongType}
			},
		},
		reflect.TypeFor[RawValue](): {
			enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
				t, dst, err := appendRawValue(dst, *at[RawValue](p))
				if err != nil {
					err = encodeErr(reflect.TypeFor[RawValue](), err)
				}
				return t, dst, err
			},
			dec: func(d *decoder, t Type, b []byte, p ptr) (int, error) {
				n, err := valueSize(t, b)
				if err != nil {
					return 0, decodeErr(t, reflect.TypeFor[RawValue](), err)
				}
				*at[RawValue](p) = RawValue{Type: t, Value: append([]byte(nil), b[:n]...)}
				return n, nil
			},
		},
	}
}

// checked returns an encFunc for a type whose values may be unfit.
func checked[T any](t Type, appendValue func([]byte, T) ([]byte, error)) encFunc {
	return func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
		dst, err := appendValue(dst, *at[T](p))
		if err != nil {
			err = encodeErr(reflect.TypeFor[T](), err)
		}
		return t, dst, err
	}
}

// plain makes an accessor fit for exact.
func plain[T any](get func(RawValue) (T, bool)) func(RawValue, *decoder) (T, bool) {
	return func(v RawValue, _ *decoder) (T, bool) { return get(v) }
}

// exact returns a decFunc for a type that has one BSON type of its own, or null.
func exact[T any](own Type, get func(RawValue, *decoder) (T, bool)) decFunc {
	return func(d *decoder, t Type, b []byte, p ptr) (int, error) {
		switch t {
		case own:
		case TypeNull, TypeUndefined:
			var zero T
			*at[T](p) = zero
			return 0, nil
		default:
			return 0, &DecodeError{BSONType: t, GoType: reflect.TypeFor[T](), Err: errWrongType}
		}
		n, err := valueSize(t, b)
		if err != nil {
			return 0, decodeErr(t, reflect.TypeFor[T](), err)
		}
		v, ok := get(RawValue{Type: t, Value: b[:n]}, d)
		if !ok {
			return 0, &DecodeError{BSONType: t, GoType: reflect.TypeFor[T](), Err: errMalformed}
		}
		*at[T](p) = v
		return n, nil
	}
}

// empty returns the codec of a type without a value.
func empty[T any](own Type) basic {
	return basic{
		enc: func(_ *encoder, dst []byte, _ ptr) (Type, []byte, error) { return own, dst, nil },
		dec: func(_ *decoder, t Type, _ []byte, _ ptr) (int, error) {
			if t != own && t != TypeNull && t != TypeUndefined {
				return 0, &DecodeError{BSONType: t, GoType: reflect.TypeFor[T](), Err: errWrongType}
			}
			return 0, nil
		},
	}
}

// decText returns a decFunc for the type T, which has one BSON type of its own and takes strings
// besides.
func decText[T ~string](own Type) decFunc {
	goType := reflect.TypeFor[T]()
	return func(d *decoder, t Type, b []byte, p ptr) (int, error) {
		switch t {
		case own, TypeString:
			s, n, err := d.stringValue(b)
			if err != nil {
				return 0, decodeErr(t, goType, err)
			}
			*at[string](p) = s
			return n, nil
		case TypeNull, TypeUndefined:
			*at[string](p) = ""
			return 0, nil
		}
		return 0, &DecodeError{BSONType: t, GoType: goType, Err: errWrongType}
	}
}

func decObjectID(d *decoder, t Type, b []byte, p ptr) (int, error) {
	switch t {
	case TypeObjectID:
		if len(b) < 12 {
			return 0, decodeErr(t, reflect.TypeFor[ObjectID](), errTruncated)
		}
		*at[ObjectID](p) = ObjectID(b[:12])
		return 12, nil
	case TypeNull, TypeUndefined:
		*at[ObjectID](p) = NilObjectID
		return 0, nil
	case TypeString:
		// As people store references that came from other systems.
		s, n, err := d.stringValue(b)
		if err == nil {
			*at[ObjectID](p), err = ParseObjectID(s)
		}
		if err != nil {
			return 0, decodeErr(t, reflect.TypeFor[ObjectID](), err)
		}
		return n, nil
	}
	return 0, &DecodeError{BSONType: t, GoType: reflect.TypeFor[ObjectID](), Err: errWrongType}
}

// timeOf returns a time in the time zone of the options.
func (d *decoder) timeOf(ms int64) time.Time {
	t := time.UnixMilli(ms)
	if d.cfg.LocalTime {
		return t
	}
	return t.UTC()
}

func decTime(d *decoder, t Type, b []byte, p ptr) (int, error) {
	out := at[time.Time](p)
	switch t {
	case TypeDateTime, TypeInt64:
		if len(b) < 8 {
			return 0, decodeErr(t, reflect.TypeFor[time.Time](), errTruncated)
		}
		*out = d.timeOf(int64(binary.LittleEndian.Uint64(b)))
		return 8, nil
	case TypeTimestamp:
		if len(b) < 8 {
			return 0, decodeErr(t, reflect.TypeFor[time.Time](), errTruncated)
		}
		*out = d.timeOf(int64(binary.LittleEndian.Uint32(b[4:])) * 1000)
		return 8, nil
	case TypeString:
		s, n, err := d.stringValue(b)
		var v time.Time
		if err == nil {
			v, err = time.Parse(time.RFC3339Nano, s)
		}
		if err != nil {
			return 0, decodeErr(t, reflect.TypeFor[time.Time](), err)
		}
		if d.cfg.LocalTime {
			*out = v.Local()
		} else {
			*out = v.UTC()
		}
		return n, nil
	case TypeNull, TypeUndefined:
		*out = time.Time{}
		return 0, nil
	}
	return 0, &DecodeError{BSONType: t, GoType: reflect.TypeFor[time.Time](), Err: errWrongType}
}

func numberCodec(fl flags) basic {
	t := reflect.TypeFor[json.Number]()
	return basic{
		enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
			bt, dst, err := appendNumber(dst, *at[json.Number](p), fl)
			if err != nil {
				err = encodeErr(t, err)
			}
			return bt, dst, err
		},
		dec: func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
			var v json.Number
			n, err := valueSize(bt, b)
			if err != nil {
				return 0, decodeErr(bt, t, err)
			}
			switch bt {
			case TypeInt32:
				v = json.Number(strconv.Itoa(int(int32(binary.LittleEndian.Uint32(b)))))
			case TypeInt64:
				v = json.Number(strconv.FormatInt(int64(binary.LittleEndian.Uint64(b)), 10))
			case TypeDouble:
				f := math.Float64frombits(binary.LittleEndian.Uint64(b))
				if math.IsNaN(f) || math.IsInf(f, 0) {
					return 0, decodeErr(bt, t, errOverflow(f))
				}
				v = json.Number(strconv.FormatFloat(f, 'g', -1, 64))
			case TypeNull, TypeUndefined:
			default:
				return 0, &DecodeError{BSONType: bt, GoType: t, Err: errWrongType}
			}
			*at[json.Number](p) = v
			return n, nil
		},
	}
}

// dbRefCodec encodes a DBRef in place, so that one in another counts as a level, and leaves the
// decoding to its method.
func dbRefCodec(fl flags) basic {
	t := reflect.TypeFor[DBRef]()
	return basic{
		enc: func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
			ref := at[DBRef](p)
			err := ref.checkExtra()
			if err == nil {
				dst, err = e.appendD(dst, ref.D(), fl)
			}
			if err != nil {
				err = encodeErr(t, err)
			}
			return TypeEmbeddedDocument, dst, err
		},
		dec: decUnmarshaler(t),
	}
}

func codeWithScopeCodec(fl flags) basic {
	t := reflect.TypeFor[CodeWithScope]()
	return basic{
		enc: func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
			dst, err := e.appendCodeWithScope(dst, *at[CodeWithScope](p), fl)
			if err != nil {
				err = encodeErr(t, err)
			}
			return TypeCodeWithScope, dst, err
		},
		dec: func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
			if bt == TypeNull || bt == TypeUndefined {
				*at[CodeWithScope](p) = CodeWithScope{}
				return 0, nil
			}
			if bt != TypeCodeWithScope {
				return 0, &DecodeError{BSONType: bt, GoType: t, Err: errWrongType}
			}
			if err := d.measure(bt, b); err != nil {
				return 0, decodeErr(bt, t, err)
			}
			v, n, err := d.codeWithScope(b)
			d.finish()
			if err != nil {
				return 0, decodeErr(bt, t, err)
			}
			*at[CodeWithScope](p) = v
			return n, nil
		},
	}
}

// kindCodecs returns the codec for a type of a basic kind.
func kindCodecs(t reflect.Type, fl flags) (basic, bool) {
	small := fl&flagMinSize != 0
	switch t.Kind() {
	case reflect.Bool:
		return basic{op: opBool, dec: decBool(t), enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
			return TypeBoolean, AppendBoolValue(dst, *at[bool](p)), nil
		}}, true
	case reflect.Int8:
		return signed[int8](t, fl, true, opCall), true
	case reflect.Int16:
		return signed[int16](t, fl, true, opCall), true
	case reflect.Int32:
		return signed[int32](t, fl, true, opInt32), true
	case reflect.Int:
		return signed[int](t, fl, true, opInt), true
	case reflect.Int64:
		if small {
			return signed[int64](t, fl, true, opCall), true
		}
		return signed[int64](t, fl, false, opInt64), true
	case reflect.Uint8:
		return unsigned[uint8](t, fl, true), true
	case reflect.Uint16:
		return unsigned[uint16](t, fl, true), true
	case reflect.Uint32:
		return unsigned[uint32](t, fl, small), true
	case reflect.Uint64:
		return unsigned[uint64](t, fl, small), true
	case reflect.Uint:
		return unsigned[uint](t, fl, small), true
	case reflect.Float32:
		return basic{dec: decFloat32(t, fl), enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
			return TypeDouble, AppendDoubleValue(dst, float64(*at[float32](p))), nil
		}}, true
	case reflect.Float64:
		return basic{op: opFloat64, dec: decFloat64(t, fl),
			enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
				return TypeDouble, AppendDoubleValue(dst, *at[float64](p)), nil
			}}, true
	case reflect.String:
		return basic{op: opString, dec: decString(t), enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
			dst, err := appendText(dst, *at[string](p))
			if err != nil {
				err = encodeErr(t, err)
			}
			return TypeString, dst, err
		}}, true
	}
	return basic{}, false
}

func signed[T int8 | int16 | int32 | int64 | int](t reflect.Type, fl flags, small bool, o op) basic {
	return basic{
		op: o,
		enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
			return appendInt(dst, int64(*at[T](p)), small)
		},
		dec: func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
			i, n, err := integer(bt, b, fl)
			if err == nil && int64(T(i)) != i {
				err = errOverflow(i)
			}
			if err != nil {
				return 0, decodeErr(bt, t, err)
			}
			*at[T](p) = T(i)
			return n, nil
		},
	}
}

func unsigned[T uint8 | uint16 | uint32 | uint64 | uint](t reflect.Type, fl flags, small bool) basic {
	return basic{
		enc: func(_ *encoder, dst []byte, p ptr) (Type, []byte, error) {
			bt, dst, err := appendUint(dst, uint64(*at[T](p)), small)
			if err != nil {
				err = encodeErr(t, err)
			}
			return bt, dst, err
		},
		dec: func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
			i, n, err := integer(bt, b, fl)
			if err == nil && (i < 0 || uint64(T(i)) != uint64(i)) {
				err = errOverflow(i)
			}
			if err != nil {
				return 0, decodeErr(bt, t, err)
			}
			*at[T](p) = T(i)
			return n, nil
		},
	}
}

// integer decodes any number as an integer. Booleans count as 0 and 1, null as 0.
func integer(t Type, b []byte, fl flags) (i int64, n int, err error) {
	switch t {
	case TypeInt32:
		if len(b) < 4 {
			return 0, 0, errTruncated
		}
		return int64(int32(binary.LittleEndian.Uint32(b))), 4, nil
	case TypeInt64:
		if len(b) < 8 {
			return 0, 0, errTruncated
		}
		return int64(binary.LittleEndian.Uint64(b)), 8, nil
	case TypeDouble:
		if len(b) < 8 {
			return 0, 0, errTruncated
		}
		f := math.Float64frombits(binary.LittleEndian.Uint64(b))
		whole := math.Trunc(f)
		switch {
		case !(whole >= math.MinInt64 && whole < -math.MinInt64):
			return 0, 0, errOverflow(f)
		case whole != f && fl&flagTruncate == 0:
			return 0, 0, errInexact(f)
		}
		return int64(whole), 8, nil
	case TypeBoolean:
		if len(b) < 1 {
			return 0, 0, errTruncated
		}
		if b[0] > 1 {
			return 0, 0, errBoolean(b[0])
		}
		return int64(b[0]), 1, nil
	case TypeNull, TypeUndefined:
		return 0, 0, nil
	}
	return 0, 0, errWrongType
}

func errBoolean(c byte) error { return fmt.Errorf("boolean is 0x%02X, want 0 or 1", c) }

// float decodes any number as a float64.
func float(t Type, b []byte, fl flags) (f float64, n int, err error) {
	if t == TypeDouble {
		if len(b) < 8 {
			return 0, 0, errTruncated
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), 8, nil
	}
	i, n, err := integer(t, b, fl)
	f = float64(i)
	if err == nil && fl&flagTruncate == 0 && (f >= -math.MinInt64 || int64(f) != i) {
		err = errInexact(i)
	}
	return f, n, err
}

func decFloat64(t reflect.Type, fl flags) decFunc {
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		f, n, err := float(bt, b, fl)
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		*at[float64](p) = f
		return n, nil
	}
}

func decFloat32(t reflect.Type, fl flags) decFunc {
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		f, n, err := float(bt, b, fl)
		if err == nil && !math.IsNaN(f) {
			if g := float64(float32(f)); g != f {
				if math.IsInf(g, 0) {
					err = errOverflow(f)
				} else if fl&flagTruncate == 0 {
					err = errInexact(f)
				}
			}
		}
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		*at[float32](p) = float32(f)
		return n, nil
	}
}

func decBool(t reflect.Type) decFunc {
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeDouble {
			f, n, err := float(bt, b, 0)
			if err != nil {
				return 0, decodeErr(bt, t, err)
			}
			*at[bool](p) = f != 0
			return n, nil
		}
		i, n, err := integer(bt, b, 0)
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		*at[bool](p) = i != 0
		return n, nil
	}
}

func decString(t reflect.Type) decFunc {
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		s, n, err := d.stringOrNull(bt, b, t)
		if err != nil {
			return 0, err
		}
		*at[string](p) = s
		return n, nil
	}
}
