// Package mgocompat has registries for programs that come from the driver mgo.
package mgocompat

import (
	"errors"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsonoptions"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A Getter is encoded as another value.
type Getter interface {
	GetBSON() (any, error)
}

// A Setter decodes itself.
type Setter interface {
	SetBSON(raw bson.RawValue) error
}

// ErrSetZero is what a method SetBSON returns to set its variable to the zero value.
var ErrSetZero = errors.New("set to zero")

var (
	typeGetter = reflect.TypeFor[Getter]()
	typeSetter = reflect.TypeFor[Setter]()
)

var (
	// Registry encodes and decodes as mgo does.
	Registry = NewRegistryBuilder().Build()
	// RegistryRespectNilValues is Registry with nil slices and maps as null.
	RegistryRespectNilValues = NewRespectNilValuesRegistryBuilder().Build()
)

// NewRegistryBuilder returns a builder of a registry as Registry.
func NewRegistryBuilder() *bsoncodec.RegistryBuilder { return builder(true) }

// NewRespectNilValuesRegistryBuilder returns a builder of a registry as RegistryRespectNilValues.
func NewRespectNilValuesRegistryBuilder() *bsoncodec.RegistryBuilder { return builder(false) }

func builder(nilAsEmpty bool) *bsoncodec.RegistryBuilder {
	rb := bson.NewRegistryBuilder()
	structs, err := bsoncodec.NewStructCodec(bsoncodec.DefaultStructTagParser,
		bsonoptions.StructCodec().SetDecodeZeroStruct(true).SetEncodeOmitDefaultStruct(true))
	if err != nil {
		panic(err) // there is a parser
	}
	slices := bsoncodec.NewSliceCodec(bsonoptions.SliceCodec().SetEncodeNilAsEmpty(nilAsEmpty))
	maps := bsoncodec.NewMapCodec(bsonoptions.MapCodec().SetDecodeZerosMap(true).SetEncodeNilAsEmpty(nilAsEmpty))
	bytes := bsoncodec.NewByteSliceCodec(bsonoptions.ByteSliceCodec().SetEncodeNilAsEmpty(nilAsEmpty))
	uints := bsoncodec.NewUIntCodec(bsonoptions.UIntCodec().SetEncodeToMinSize(true))
	texts := bsoncodec.NewStringCodec(bsonoptions.StringCodec().SetDecodeObjectIDAsHex(false))
	anything := bsoncodec.NewEmptyInterfaceCodec(bsonoptions.EmptyInterfaceCodec().SetDecodeBinaryAsSlice(true))
	rb.RegisterTypeDecoder(reflect.TypeFor[any](), anything).
		RegisterTypeEncoder(reflect.TypeFor[[]byte](), bytes).
		RegisterDefaultDecoder(reflect.String, texts).
		RegisterDefaultDecoder(reflect.Struct, structs).RegisterDefaultEncoder(reflect.Struct, structs).
		RegisterDefaultDecoder(reflect.Map, maps).RegisterDefaultEncoder(reflect.Map, maps).
		RegisterDefaultEncoder(reflect.Slice, slices).
		RegisterDefaultEncoder(reflect.Uint, uints).RegisterDefaultEncoder(reflect.Uint32,
		uints).RegisterDefaultEncoder(reflect.Uint64, uints).
		RegisterTypeMapEntry(bsontype.Int32, reflect.TypeFor[int]()).
		RegisterTypeMapEntry(bsontype.DateTime, reflect.TypeFor[time.Time]()).
		RegisterTypeMapEntry(bsontype.Array, reflect.TypeFor[[]any]()).
		RegisterTypeMapEntry(bsontype.Type(0), reflect.TypeFor[bson.M]()).
		RegisterTypeMapEntry(bsontype.EmbeddedDocument, reflect.TypeFor[bson.M]()).
		RegisterHookEncoder(typeGetter, bsoncodec.ValueEncoderFunc(GetterEncodeValue)).
		RegisterHookDecoder(typeSetter, bsoncodec.ValueDecoderFunc(SetterDecodeValue))
	return rb
}

// method returns what implements one of the interfaces: the value, or its address.
func method[T any](v reflect.Value) (T, bool) {
	if x, ok := v.Interface().(T); ok {
		// The method of a pointer says what a nil pointer is; that of a value cannot be called.
		return x, v.Kind() != reflect.Pointer || !v.IsNil() || !v.Type().Elem().Implements(reflect.TypeFor[T]())
	}
	if !v.CanAddr() {
		return *new(T), false
	}
	x, ok := v.Addr().Interface().(T)
	return x, ok
}

// GetterEncodeValue encodes a Getter.
func GetterEncodeValue(ec bsoncodec.EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	g, ok := method[Getter](val)
	if !ok {
		if val.Kind() == reflect.Pointer && val.IsNil() {
			return vw.WriteNull()
		}
		return bsoncodec.ValueEncoderError{Name: "GetterEncodeValue", Types: []reflect.Type{typeGetter}, Received: val}
	}
	x, err := g.GetBSON()
	switch {
	case err != nil:
		return err
	case x == nil:
		return vw.WriteNull()
	}
	enc, err := ec.LookupEncoder(reflect.TypeOf(x))
	if err != nil {
		return err
	}
	return enc.EncodeValue(ec, vw, reflect.ValueOf(x))
}

// SetterDecodeValue decodes into a Setter.
func SetterDecodeValue(_ bsoncodec.DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	if !val.IsValid() || !val.CanSet() ||
		!val.Type().Implements(typeSetter) && !reflect.PointerTo(val.Type()).Implements(typeSetter) {
		return bsoncodec.ValueDecoderError{Name: "SetterDecodeValue", Types: []reflect.Type{typeSetter}, Received: val}
	}
	if val.Kind() == reflect.Pointer && val.IsNil() {
		val.Set(reflect.New(val.Type().Elem()))
	}
	t, data, err := coding.ReadValue(vr)
	if err != nil {
		return err
	}
	s, ok := val.Interface().(Setter)
	if !ok {
		s = val.Addr().Interface().(Setter)
	}
	err = s.SetBSON(bson.RawValue{Type: t, Value: append([]byte{}, data...)})
	if errors.Is(err, ErrSetZero) {
		val.SetZero()
		return nil
	}
	return err
}
