package main

import (
	"bytes"
	"reflect"

	"allium/dropin/compare/tags"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// value is tags.Marked with a method for values.
type value struct{ X int64 }

func (*value) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeBoolean), []byte{1}, nil }

// hooks prints for what methods, and encoders for interfaces, are called.
func hooks() {
	tags.Methods(tags.Marked{X: 1}, bson.Marshal, say)
	tags.Methods(value{1}, bson.Marshal, say)
	tags.Hooks(func(hooks []tags.Hook, v any) (string, error) {
		r := bson.NewRegistry()
		for _, h := range hooks {
			enc := bson.ValueEncoderFunc(func(ec bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
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
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		enc.SetRegistry(r)
		err := enc.Encode(v)
		if err != nil {
			return "", err
		}
		return bson.Raw(buf.Bytes()).String(), nil
	}, reflect.TypeFor[bson.Marshaler](), say)
}
