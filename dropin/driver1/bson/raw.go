package bson

import (
	"fmt"
	"io"
	"reflect"

	abson "allium/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/internal/dialect"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/coding"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// A Raw is an encoded document.
type Raw []byte

// A RawElement is an encoded element: type, key and value.
type RawElement []byte

// A RawValue is an encoded value: its type and its bytes.
type RawValue struct {
	Type  bsontype.Type
	Value []byte
}

// NewFromIOReader reads a document. Only its frame is looked at.
//
// Deprecated: use ReadDocument.
func NewFromIOReader(r io.Reader) (Raw, error) { return ReadDocument(r) }

// ReadDocument reads a document. Only its frame is looked at.
func ReadDocument(r io.Reader) (Raw, error) {
	doc, err := bsoncore.NewDocumentFromReader(r)
	return Raw(doc), err
}

func valueOf(v bsoncore.Value) RawValue { return RawValue{Type: v.Type, Value: v.Data} }

// Validate reports whether the document is whole: its frame, and those of all values.
func (r Raw) Validate() (err error) { return bsoncore.Document(r).Validate() }

// Lookup is LookupErr, and returns a zero RawValue instead of an error.
func (r Raw) Lookup(key ...string) RawValue { return valueOf(bsoncore.Document(r).Lookup(key...)) }

// LookupErr returns the value at a path, one key for each level. In arrays a key is an index.
func (r Raw) LookupErr(key ...string) (RawValue, error) {
	v, err := bsoncore.Document(r).LookupErr(key...)
	return valueOf(v), err
}

// Elements returns the elements, with an error those before what is broken.
func (r Raw) Elements() ([]RawElement, error) {
	if len(r) == 0 {
		return nil, nil
	}
	elems, err := bsoncore.Document(r).Elements()
	if elems == nil {
		return nil, err
	}
	out := make([]RawElement, len(elems))
	for i, e := range elems {
		out[i] = RawElement(e)
	}
	return out, err
}

// Values returns the values, with an error those before what is broken.
func (r Raw) Values() ([]RawValue, error) {
	values, err := bsoncore.Document(r).Values()
	if values == nil {
		return nil, err
	}
	out := make([]RawValue, len(values))
	for i, v := range values {
		out[i] = valueOf(v)
	}
	return out, err
}

// Index is IndexErr, and panics with its error.
func (r Raw) Index(index uint) RawElement { return RawElement(bsoncore.Document(r).Index(index)) }

// IndexErr returns the element at an index.
func (r Raw) IndexErr(index uint) (RawElement, error) {
	e, err := bsoncore.Document(r).IndexErr(index)
	return RawElement(e), err
}

// String returns the document as Extended JSON, an empty text if it is broken.
func (r Raw) String() string { return bsoncore.Document(r).String() }

// Key is KeyErr, and returns an empty string instead of an error.
func (re RawElement) Key() string { return bsoncore.Element(re).Key() }

// KeyErr returns the key.
func (re RawElement) KeyErr() (string, error) { return bsoncore.Element(re).KeyErr() }

// Value is ValueErr without the error.
func (re RawElement) Value() RawValue { return valueOf(bsoncore.Element(re).Value()) }

// ValueErr returns the value.
func (re RawElement) ValueErr() (RawValue, error) {
	v, err := bsoncore.Element(re).ValueErr()
	return valueOf(v), err
}

// Validate reports whether the element is whole.
func (re RawElement) Validate() error { return bsoncore.Element(re).Validate() }

// String returns the element as a document of Extended JSON.
func (re RawElement) String() string { return bson.RawElement(re).String() }

// DebugString returns the element in a form that shows its type, as far as it can be read.
func (re RawElement) DebugString() string { return bsoncore.Element(re).DebugString() }

// IsZero reports whether there is no value: no type and no bytes.
func (rv RawValue) IsZero() bool { return rv.Type == 0 && len(rv.Value) == 0 }

// IsNumber reports whether the value is a number of any type.
func (rv RawValue) IsNumber() bool { return rv.core().IsNumber() }

// Validate reports whether the value is whole.
func (rv RawValue) Validate() error { return rv.core().Validate() }

// Equal reports whether both are of the same type and have the same bytes.
func (rv RawValue) Equal(rv2 RawValue) bool { return rv.core().Equal(rv2.core()) }

// String returns the value as Extended JSON, an empty text if it is broken.
func (rv RawValue) String() string { return rv.core().String() }

// DebugString returns the value in a form that shows the types in it, as far as it can be read.
func (rv RawValue) DebugString() string { return rv.core().DebugString() }

// Unmarshal decodes the value with the default registry, whatever registry decoded the RawValue.
func (rv RawValue) Unmarshal(val any) error { return rv.UnmarshalWithRegistry(DefaultRegistry, val) }

// into decodes the value.
func (rv RawValue) into(w coding.Way, val any) error {
	if reflect.ValueOf(val).Kind() != reflect.Pointer {
		return fmt.Errorf("%w%v", errNotPointer, reflect.ValueOf(val))
	}
	return w.Unmarshal(rv.Type, rv.Value, val)
}

// UnmarshalWithRegistry decodes the value with a registry.
func (rv RawValue) UnmarshalWithRegistry(r *bsoncodec.Registry, val any) error {
	if r == nil {
		return ErrNilRegistry
	}
	return rv.into(wayOf(bsoncodec.DecodeContext{Registry: r}), val)
}

// UnmarshalWithContext decodes the value with a context's registry and settings.
func (rv RawValue) UnmarshalWithContext(dc *bsoncodec.DecodeContext, val any) error {
	if dc == nil {
		return ErrNilContext
	}
	return rv.into(wayOf(*dc), val)
}

// init makes the types of this file known.
func init() {
	encoded := func(of reflect.Type, as bsontype.Type) {
		dialect.Of.Own[of] = func(coding.Way) (abson.EncodeFunc, abson.DecodeFunc) {
			return func(dst []byte, v reflect.Value) (abson.Type, []byte, error) {
					_, doc, err := bson.MarshalValue(bson.Raw(v.Bytes()))
					return as, append(dst, doc...), err
				}, func(v abson.RawValue, into reflect.Value) error {
					into.SetBytes(append([]byte{}, v.Value...)) // of whatever type it is
					return nil
				}
		}
	}
	encoded(reflect.TypeFor[Raw](), bsontype.EmbeddedDocument)
	encoded(reflect.TypeFor[bsoncore.Document](), bsontype.EmbeddedDocument)
	encoded(reflect.TypeFor[bsoncore.Array](), bsontype.Array)
	dialect.Of.Own[reflect.TypeFor[RawValue]()] = func(coding.Way) (abson.EncodeFunc, abson.DecodeFunc) {
		return func(dst []byte, v reflect.Value) (abson.Type, []byte, error) {
				rv := v.Addr().Interface().(*RawValue)
				t, data, err := bson.MarshalValue(bson.RawValue{Type: rv.Type, Value: rv.Value})
				return t, append(dst, data...), err
			}, func(v abson.RawValue, into reflect.Value) error {
				*into.Addr().Interface().(*RawValue) = RawValue{Type: v.Type, Value: append([]byte{}, v.Value...)}
				return nil
			}
	}
}

// PrimitiveCodecs has the encoders and decoders of Raw and RawValue.
//
// Deprecated: a registry of NewRegistry has them.
type PrimitiveCodecs struct{}

// RegisterPrimitiveCodecs does nothing: every registry has them.
func (PrimitiveCodecs) RegisterPrimitiveCodecs(*bsoncodec.RegistryBuilder) {}

// RawValueEncodeValue encodes a RawValue.
func (PrimitiveCodecs) RawValueEncodeValue(_ bsoncodec.EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	rv, ok := as[RawValue](val)
	if !ok {
		return bsoncodec.ValueEncoderError{Name: "RawValueEncodeValue",
			Types: []reflect.Type{reflect.TypeFor[RawValue]()}, Received: val}
	}
	return coding.WriteValue(vw, rv.Type, rv.Value)
}

// RawValueDecodeValue decodes into a RawValue.
func (PrimitiveCodecs) RawValueDecodeValue(_ bsoncodec.DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Type() != reflect.TypeFor[RawValue]() {
		return bsoncodec.ValueDecoderError{Name: "RawValueDecodeValue",
			Types: []reflect.Type{reflect.TypeFor[RawValue]()}, Received: val}
	}
	t, data, err := coding.ReadValue(vr)
	val.Set(reflect.ValueOf(RawValue{Type: t, Value: append([]byte{}, data...)}))
	return err
}

// RawEncodeValue encodes a Raw.
func (PrimitiveCodecs) RawEncodeValue(_ bsoncodec.EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	r, ok := as[Raw](val)
	if !ok {
		return bsoncodec.ValueEncoderError{Name: "RawEncodeValue", Types: []reflect.Type{reflect.TypeFor[Raw]()},
			Received: val}
	}
	return coding.WriteValue(vw, bsontype.EmbeddedDocument, r)
}

// RawDecodeValue decodes into a Raw.
func (PrimitiveCodecs) RawDecodeValue(_ bsoncodec.DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Type() != reflect.TypeFor[Raw]() {
		return bsoncodec.ValueDecoderError{Name: "RawDecodeValue", Types: []reflect.Type{reflect.TypeFor[Raw]()},
			Received: val}
	}
	_, data, err := coding.ReadValue(vr)
	val.SetBytes(append([]byte{}, data...))
	return err
}

// as returns a value of a type.
func as[T any](val reflect.Value) (T, bool) {
	if !val.IsValid() {
		return *new(T), false
	}
	x, ok := val.Interface().(T)
	return x, ok
}
