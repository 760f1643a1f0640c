package main

import (
	"reflect"

	"allium/dropin/compare/say"
	"allium/dropin/compare/tags"
	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
)

// value and proxy are tags.Marked with other methods.
type (
	value struct{ X int64 }
	proxy struct{ X int64 }
)

func (*value) MarshalBSONValue() (bsontype.Type, []byte, error) {
	return bson.TypeBoolean, []byte{1}, nil
}

func (*proxy) ProxyBSON() (any, error) { return "proxy", nil }

// hooks prints for what methods, and encoders for interfaces, are called.
func hooks() {
	tags.Methods(tags.Marked{X: 1}, bson.Marshal, say.Line)
	tags.Methods(value{1}, bson.Marshal, say.Line)
	tags.Methods(proxy{1}, bson.Marshal, say.Line)
	tags.Hooks(func(hooks []tags.Hook, v any) (string, error) {
		r := bson.NewRegistry()
		for _, h := range hooks {
			enc := bsoncodec.ValueEncoderFunc(func(ec bsoncodec.EncodeContext,
				vw bsonrw.ValueWriter, v reflect.Value) error {
				text, inside := h.Write(v)
				switch {
				case h.Default:
					enc, err := bson.NewRegistry().LookupEncoder(v.Type())
					if err != nil {
						return err
					}
					return enc.EncodeValue(ec, vw, v)
				case !inside.IsValid():
					return vw.WriteString(text)
				}
				enc, err := ec.LookupEncoder(inside.Type())
				if err != nil {
					return err
				}
				return enc.EncodeValue(ec, vw, inside)
			})
			switch {
			case h.Of == nil:
				r.RegisterKindEncoder(h.Kind, enc)
			case h.Of.Kind() == reflect.Interface:
				r.RegisterInterfaceEncoder(h.Of, enc)
			default:
				r.RegisterTypeEncoder(h.Of, enc)
			}
		}
		doc, err := bson.MarshalWithRegistry(r, v)
		if err != nil {
			return "", err
		}
		return bson.Raw(doc).String(), nil
	}, reflect.TypeFor[bson.Marshaler](), say.Line)
}
