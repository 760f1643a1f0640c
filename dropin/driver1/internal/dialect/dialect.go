// Package dialect is what this version encodes and decodes otherwise than version 2 of the official
// driver, on whose package bson it stands.
package dialect

import (
	"encoding/json"
	"net/url"
	"reflect"

	abson "allium/bson"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

type (
	valueMarshaler interface {
		MarshalBSONValue() (bsontype.Type, []byte, error)
	}
	valueUnmarshaler interface {
		UnmarshalBSONValue(bsontype.Type, []byte) error
	}
	proxy interface{ ProxyBSON() (any, error) }
)

// Of is the dialect. Package bson adds types of its own.
var Of = &coding.Dialect{
	Own: map[reflect.Type]func(coding.Way) (abson.EncodeFunc, abson.DecodeFunc){},
	Any: map[abson.Type]reflect.Type{
		bsontype.EmbeddedDocument: reflect.TypeFor[primitive.D](), bsontype.Array: reflect.TypeFor[primitive.A](),
	},
	M:            reflect.TypeFor[primitive.M](),
	Marshalers:   []reflect.Type{typeValueMarshaler, reflect.TypeFor[bson.Marshaler](), typeProxy},
	Unmarshalers: []reflect.Type{typeValueUnmarshaler, reflect.TypeFor[bson.Unmarshaler]()},
	Methods:      methods,
	Inherits:     inherits,
	Name:         name,
}

var (
	typeValueMarshaler   = reflect.TypeFor[valueMarshaler]()
	typeValueUnmarshaler = reflect.TypeFor[valueUnmarshaler]()
	typeProxy            = reflect.TypeFor[proxy]()
	typeE                = reflect.TypeFor[primitive.E]()
	typeAny              = reflect.TypeFor[any]()
)

// inherits reports whether a type is a document of any values: those in it are of its type.
func inherits(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice:
		return t.Elem() == typeE
	case reflect.Map:
		return t.Elem() == typeAny && t.Key().Kind() == reflect.String
	}
	return false
}

func name(_ bsontype.Type, t reflect.Type) string {
	switch t {
	case reflect.TypeFor[bson.D]():
		return "a primitive.D"
	case reflect.TypeFor[bson.M]():
		return "a primitive.M"
	case reflect.TypeFor[primitive.D](), reflect.TypeFor[json.Number]():
		return "a " + t.String()
	case reflect.TypeFor[primitive.CodeWithScope](), reflect.TypeFor[primitive.Decimal128](),
		reflect.TypeFor[primitive.JavaScript](), reflect.TypeFor[primitive.Symbol]():
		return "a primitive." + t.Name()
	case reflect.TypeFor[url.URL]():
		return "a *url.URL"
	}
	if inherits(t) {
		return "a " + t.String()
	}
	return ""
}

// methods returns functions that call the methods of a type which encode and decode values.
func methods(w coding.Way, t reflect.Type, addressable bool) (enc abson.EncodeFunc, dec abson.DecodeFunc) {
	p, encodes := reflect.PointerTo(t), t // the methods of encodes are those for a value where this one lies
	receiver := func(v reflect.Value) any { return v.Addr().Interface() }
	switch {
	case t.Kind() == reflect.Interface:
		return nil, nil // what is in it has methods
	case t.Kind() == reflect.Pointer:
		receiver = func(v reflect.Value) any { return v.Interface() }
	case addressable:
		encodes = p
	}
	var iface reflect.Type
	switch {
	case encodes.Implements(typeValueMarshaler):
		iface = typeValueMarshaler
		enc = func(dst []byte, v reflect.Value) (abson.Type, []byte, error) {
			bt, data, err := receiver(v).(valueMarshaler).MarshalBSONValue()
			return bt, append(dst, data...), err
		}
	case encodes.Implements(reflect.TypeFor[bson.Marshaler]()):
	case encodes.Implements(typeProxy):
		iface = typeProxy
		enc = func(dst []byte, v reflect.Value) (abson.Type, []byte, error) {
			x, err := receiver(v).(proxy).ProxyBSON()
			if err != nil {
				return 0, dst, err
			}
			bt, data, err := w.MarshalInside(x)
			return bt, append(dst, data...), err
		}
	}
	if t.Kind() == reflect.Pointer {
		if enc != nil && t.Elem().Implements(iface) {
			enc = nilAsNull(enc)
		}
		return enc, nil
	}
	if p.Implements(typeValueUnmarshaler) {
		dec = func(v abson.RawValue, into reflect.Value) error {
			return into.Addr().Interface().(valueUnmarshaler).UnmarshalBSONValue(v.Type, append([]byte{}, v.Value...))
		}
	}
	return enc, dec
}

// nilAsNull encodes nil pointers, which have no value to call a method of, as null.
func nilAsNull(enc abson.EncodeFunc) abson.EncodeFunc {
	return func(dst []byte, v reflect.Value) (abson.Type, []byte, error) {
		if v.IsNil() {
			return abson.TypeNull, dst, nil
		}
		return enc(dst, v)
	}
}

// Package bsoncodec sets these functions. Their arguments are its types.
var (
	// Registry returns the registry behind a *bsoncodec.Registry, nil for nil.
	Registry func(registry any) *bson.Registry
	// Settings returns the registry and the settings of an EncodeContext or a DecodeContext.
	Settings func(context any) (registry any, s coding.Settings)
)

// ClientOptions returns options of version 2 with those settings of an *options.ClientOptions whose
// types both versions share. Package options sets it.
var ClientOptions func(o any) *options.ClientOptions
