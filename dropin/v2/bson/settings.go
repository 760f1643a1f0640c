package bson

import (
	"reflect"
	"sync"

	"allium/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// settings are what an Encoder or a Decoder, or a client's options, change.
type settings = coding.Settings

// optionsOf returns the settings as Allium's options, without those of a registry.
func optionsOf(s settings) bson.Options {
	o := bson.Options{
		NilSliceAsNull: !s.NilSliceAsEmpty, NilMapAsNull: !s.NilMapAsEmpty, NilBytesAsNull: !s.NilBytesAsEmpty,
		DisallowShadowedFields: s.InlineOnce,
		MinSize:                s.IntMinSize, OmitEmpty: s.OmitEmpty, OmitEmptyStructs: s.OmitZeroStruct,
		FormatKeys: s.FormatKeys, MethodsByAddress: true,
		AllowTruncation: s.Truncate, BinaryAsBytes: s.BinaryAsSlice, ObjectIDAsHex: s.Hex, LocalTime: s.LocalTime,
		ClearMaps: s.ZeroMaps, ClearStructs: s.ZeroStructs, JSONTags: s.JSONTags, AllowInvalidUTF8: true,
	}
	switch {
	case s.DocumentM:
		o.Documents = bson.DocumentsAsM
	case s.DocumentMap:
		o.Documents = bson.DocumentsAsMap
	}
	return o
}

// A way is how values are encoded and decoded: a registry with settings.
type way struct {
	registry *Registry
	settings settings
	options  bson.Options

	types     map[Type]reflect.Type // what values become in variables of type any
	documents reflect.Type          // what documents become in variables of type any
	inherits  bool                  // unless they are in a container of a dialect's

	containers sync.Map // reflect.Type -> *way: what decodes inside of them
}

// ownTypes are the types of this package that Allium does not know, and how each is encoded and
// decoded.
var ownTypes map[reflect.Type]func(w *way) (bson.EncodeFunc, bson.DecodeFunc)

func init() {
	ownTypes = ownWays() // they encode what is in them, and so need this table
	coding.Of = func(registry any, s settings) coding.Way {
		r, _ := registry.(*Registry)
		if r == nil {
			r = defaultRegistry
		}
		return r.way(s)
	}
	coding.NewRegistry = func(d *coding.Dialect) any {
		r := NewRegistry()
		r.dialect = d
		return r
	}
	coding.WithDocuments = func(registry any, t reflect.Type) any {
		r := *registry.(*Registry)
		r.documents, r.ways = t, new(ways)
		return &r
	}
	coding.SettingsOf = func(context any) coding.Settings {
		switch c := context.(type) {
		case EncodeContext:
			return c.settings
		case DecodeContext:
			return c.settings
		}
		return coding.Settings{}
	}
	coding.Encoder = func(registry any, t reflect.Type, addressable bool) (any, bool) {
		if e, byAddress := registry.(*Registry).encoder(t, addressable); e != nil {
			return e, byAddress
		}
		return nil, false
	}
	coding.Decoder = func(registry any, t reflect.Type) any {
		if d := registry.(*Registry).decoder(t); d != nil {
			return d
		}
		return nil
	}
	coding.HasForm = func(registry any, t reflect.Type, encoder bool) bool {
		r := registry.(*Registry)
		if encoder {
			return hasForm(t) || implements(t, true, r.marshalers()...)
		}
		return hasForm(t) || implements(t, true, r.unmarshalers()...)
	}
	coding.TypeOfAny = func(registry any, t bson.Type) reflect.Type { return registry.(*Registry).typeOfAny(t) }
	coding.ReadValue = func(vr any) (bson.Type, []byte, error) { return readWhole(vr.(ValueReader)) }
	coding.WriteValue = func(vw any, t bson.Type, data []byte) error { return writeValue(vw.(ValueWriter), t, data) }
	coding.IsOwn = func(reader any) bool {
		switch reader.(type) {
		case *valueReader, *valueWriter:
			return true
		}
		return false
	}
	coding.NewReader = func(t bson.Type, data []byte) any { return &valueReader{t: t, data: data} }
	coding.NewWriter = func() (any, func() (bson.Type, []byte, error)) {
		vw := &valueWriter{state: atValue}
		return vw, func() (bson.Type, []byte, error) {
			if vw.state != atEnd {
				return 0, nil, errNothingWritten
			}
			return vw.written, vw.buf, nil
		}
	}
}

func ownWays() map[reflect.Type]func(w *way) (bson.EncodeFunc, bson.DecodeFunc) {
	return map[reflect.Type]func(w *way) (bson.EncodeFunc, bson.DecodeFunc){
		reflect.TypeFor[Binary](): own(TypeBinary,
			func(dst []byte, v *Binary) ([]byte, error) {
				return bson.AppendBinaryValue(dst, v.Subtype, v.Data), nil
			},
			func(v bson.RawValue, into *Binary) (ok bool) {
				b, ok := v.Binary()
				*into = Binary{b.Subtype, append([]byte{}, b.Data...)}
				return ok
			}),
		reflect.TypeFor[Timestamp](): own(TypeTimestamp,
			func(dst []byte, v *Timestamp) ([]byte, error) {
				return bson.AppendTimestampValue(dst, bson.Timestamp(*v)), nil
			},
			func(v bson.RawValue, into *Timestamp) bool {
				t, ok := v.Timestamp()
				*into = Timestamp(t)
				return ok
			}),
		reflect.TypeFor[Decimal128](): own(TypeDecimal128,
			func(dst []byte, v *Decimal128) ([]byte, error) {
				return bson.AppendDecimal128Value(dst, v.decimal()), nil
			},
			func(v bson.RawValue, into *Decimal128) bool {
				d, ok := v.Decimal128()
				*into = decimalOf(d)
				return ok
			}),
		reflect.TypeFor[Regex](): own(TypeRegex,
			func(dst []byte, v *Regex) ([]byte, error) { return alliumValue(dst, bson.Regex(*v)) },
			func(v bson.RawValue, into *Regex) bool {
				r, ok := v.Regex()
				*into = Regex(r)
				return ok
			}),
		reflect.TypeFor[DBPointer](): own(TypeDBPointer,
			func(dst []byte, v *DBPointer) ([]byte, error) { return alliumValue(dst, bson.DBPointer(*v)) },
			func(v bson.RawValue, into *DBPointer) bool {
				p, ok := v.DBPointer()
				*into = DBPointer(p)
				return ok
			}),
		reflect.TypeFor[Null]():          empty[Null](TypeNull),
		reflect.TypeFor[Undefined]():     empty[Undefined](TypeUndefined),
		reflect.TypeFor[MinKey]():        empty[MinKey](TypeMinKey),
		reflect.TypeFor[MaxKey]():        empty[MaxKey](TypeMaxKey),
		reflect.TypeFor[CodeWithScope](): codeWithScope,
		reflect.TypeFor[Vector]():        vector,
		reflect.TypeFor[Raw]():           encoded(TypeEmbeddedDocument),
		reflect.TypeFor[RawValue]():      rawValue,
		reflect.TypeFor[coding.View]():   view,

		reflect.TypeFor[bsoncore.Document](): encoded(TypeEmbeddedDocument),
		reflect.TypeFor[bsoncore.Array]():    encoded(TypeArray),
	}
}

// typesOfAny are the types of this package that values become in a variable of type any.
var typesOfAny = map[Type]reflect.Type{
	TypeBinary: reflect.TypeFor[Binary](), TypeTimestamp: reflect.TypeFor[Timestamp](),
	TypeDecimal128: reflect.TypeFor[Decimal128](),
	TypeRegex:      reflect.TypeFor[Regex](), TypeDBPointer: reflect.TypeFor[DBPointer](),
	TypeUndefined: reflect.TypeFor[Undefined](),
	TypeMinKey:    reflect.TypeFor[MinKey](), TypeMaxKey: reflect.TypeFor[MaxKey](),
	TypeCodeWithScope: reflect.TypeFor[CodeWithScope](),
}

// alliumValue appends a value that Allium has a type for.
func alliumValue(dst []byte, v any) ([]byte, error) {
	rv, err := bson.MarshalValue(v)
	return append(dst, rv.Value...), err
}

// own is for a type that stands for one BSON type. Null and undefined give its zero value.
func own[T any](t Type, encode func(dst []byte, v *T) ([]byte, error),
	decode func(v bson.RawValue, into *T) bool) func(*way) (bson.EncodeFunc, bson.DecodeFunc) {
	enc := func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		out, err := encode(dst, v.Addr().Interface().(*T))
		return t, out, err
	}
	return func(w *way) (bson.EncodeFunc, bson.DecodeFunc) {
		return enc, func(v bson.RawValue, into reflect.Value) error {
			p := into.Addr().Interface().(*T)
			switch {
			case isNull(v.Type):
				*p = *new(T)
			case v.Type != t:
				return cannotDecode(v.Type, into.Type(), w.registry.dialect)
			case !decode(v, p):
				return errMalformed
			}
			return nil
		}
	}
}

func isNull(t Type) bool { return t == TypeNull || t == TypeUndefined }

// empty is own for a type without content.
func empty[T any](t Type) func(*way) (bson.EncodeFunc, bson.DecodeFunc) {
	return own(t, func(dst []byte, _ *T) ([]byte, error) {
		return dst, nil
	}, func(bson.RawValue, *T) bool { return true })
}

func codeWithScope(w *way) (bson.EncodeFunc, bson.DecodeFunc) {
	return own(TypeCodeWithScope,
		func(dst []byte, v *CodeWithScope) ([]byte, error) {
			doc, err := w.registry.marshal(w.settings, v.Scope)
			if err != nil {
				return dst, err
			}
			return alliumValue(dst, bson.CodeWithScope{Code: v.Code, Scope: bson.Raw(doc)})
		},
		func(v bson.RawValue, into *CodeWithScope) bool {
			code, scope, ok := RawValue{Type: v.Type, Value: v.Value}.CodeWithScopeOK()
			t := reflect.TypeFor[D]()
			if d := w.registry.dialect; d != nil {
				t = d.Any[TypeEmbeddedDocument]
			}
			doc := reflect.New(t)
			if !ok || w.options.Unmarshal(scope, doc.Interface()) != nil {
				return false
			}
			*into = CodeWithScope{Code: JavaScript(code), Scope: doc.Elem().Interface()}
			return true
		})(w)
}

func vector(*way) (bson.EncodeFunc, bson.DecodeFunc) {
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			b := v.Addr().Interface().(*Vector).Binary()
			return TypeBinary, bson.AppendBinaryValue(dst, b.Subtype, b.Data), nil
		}, func(v bson.RawValue, into reflect.Value) error {
			b, ok := v.Binary()
			if !ok && !isNull(v.Type) {
				return cannotDecode(v.Type, reflect.TypeFor[Binary](), nil)
			}
			out, err := NewVectorFromBinary(Binary{b.Subtype, b.Data})
			*into.Addr().Interface().(*Vector) = out
			return err
		}
}

// encoded is for a type that has the bytes of documents or arrays. An array is one for a document,
// too.
func encoded(t Type) func(*way) (bson.EncodeFunc, bson.DecodeFunc) {
	return func(*way) (bson.EncodeFunc, bson.DecodeFunc) {
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
				r := v.Bytes()
				if err := frame(r); err != nil {
					return 0, dst, err
				}
				return t, append(dst, r...), nil
			}, func(v bson.RawValue, into reflect.Value) error {
				switch {
				case isNull(v.Type):
					into.SetZero()
				case v.Type == t || v.Type == TypeArray:
					into.SetBytes(append([]byte{}, v.Value...))
				default:
					return cannotDecode(v.Type, into.Type(), nil)
				}
				return nil
			}
	}
}

func rawValue(*way) (bson.EncodeFunc, bson.DecodeFunc) {
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			rv := v.Addr().Interface().(*RawValue)
			if !rv.Type.IsValid() {
				return 0, dst, errInvalidRawValue(rv.Type)
			}
			return rv.Type, append(dst, rv.Value...), nil
		}, func(v bson.RawValue, into reflect.Value) error {
			*into.Addr().Interface().(*RawValue) = RawValue{Type: v.Type, Value: append([]byte{}, v.Value...)}
			return nil
		}
}

// view is for a document of package mongo's that is not copied.
func view(*way) (bson.EncodeFunc, bson.DecodeFunc) {
	return nil, func(v bson.RawValue, into reflect.Value) error {
		into.Addr().Interface().(*coding.View).Document = v.Value
		return nil
	}
}
