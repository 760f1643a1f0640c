package bsonx

import (
	"reflect"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/primitive"
)

// ReflectionFreeDCodec encodes and decodes a primitive.D.
var ReflectionFreeDCodec bsoncodec.ValueCodec = codec[primitive.D]{}

// A codec encodes and decodes values of one type as every registry does.
type codec[T any] struct{}

// EncodeValue encodes a value.
func (codec[T]) EncodeValue(ec bsoncodec.EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	want := reflect.TypeFor[T]()
	if !val.IsValid() || val.Type() != want {
		return bsoncodec.ValueEncoderError{Name: "EncodeValue", Types: []reflect.Type{want}, Received: val}
	}
	t, data, err := bson.MarshalValueWithContext(ec, val.Interface())
	if err != nil {
		return err
	}
	return bsonrw.Copier{}.CopyValueFromBytes(vw, t, data)
}

// DecodeValue decodes a value.
func (codec[T]) DecodeValue(dc bsoncodec.DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	want := reflect.TypeFor[T]()
	if !val.CanSet() || val.Type() != want {
		return bsoncodec.ValueDecoderError{Name: "DecodeValue", Types: []reflect.Type{want}, Received: val}
	}
	t, data, err := bsonrw.Copier{}.CopyValueToBytes(vr)
	if err != nil {
		return err
	}
	return bson.RawValue{Type: t, Value: data}.UnmarshalWithContext(&dc, val.Addr().Interface())
}

// PrimitiveCodecs has the encoders and decoders of this package's types.
type PrimitiveCodecs struct{}

// RegisterPrimitiveCodecs does nothing: the types have methods that encode and decode.
func (PrimitiveCodecs) RegisterPrimitiveCodecs(*bsoncodec.RegistryBuilder) {}

// DocumentEncodeValue encodes a Doc.
func (PrimitiveCodecs) DocumentEncodeValue(ec bsoncodec.EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return codec[Doc]{}.EncodeValue(ec, vw, val)
}

// DocumentDecodeValue decodes a Doc.
func (PrimitiveCodecs) DocumentDecodeValue(dctx bsoncodec.DecodeContext, vr bsonrw.ValueReader,
	val reflect.Value) error {
	return codec[Doc]{}.DecodeValue(dctx, vr, val)
}

// ArrayEncodeValue encodes an Arr.
func (PrimitiveCodecs) ArrayEncodeValue(ec bsoncodec.EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return codec[Arr]{}.EncodeValue(ec, vw, val)
}

// ArrayDecodeValue decodes an Arr.
func (PrimitiveCodecs) ArrayDecodeValue(dc bsoncodec.DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return codec[Arr]{}.DecodeValue(dc, vr, val)
}

// ValueEncodeValue encodes a Val.
func (PrimitiveCodecs) ValueEncodeValue(ec bsoncodec.EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return codec[Val]{}.EncodeValue(ec, vw, val)
}

// ValueDecodeValue decodes a Val.
func (PrimitiveCodecs) ValueDecodeValue(dc bsoncodec.DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return codec[Val]{}.DecodeValue(dc, vr, val)
}

// ElementSliceEncodeValue encodes a []Elem as a document.
func (PrimitiveCodecs) ElementSliceEncodeValue(ec bsoncodec.EncodeContext, vw bsonrw.ValueWriter,
	val reflect.Value) error {
	elems, ok := reflect.Value{}, false
	if val.IsValid() && val.CanConvert(reflect.TypeFor[Doc]()) {
		elems, ok = val.Convert(reflect.TypeFor[Doc]()), true
	}
	if !ok {
		return bsoncodec.ValueEncoderError{Name: "ElementSliceEncodeValue",
			Types: []reflect.Type{reflect.TypeFor[[]Elem]()}, Received: val}
	}
	return codec[Doc]{}.EncodeValue(ec, vw, elems)
}

// ElementSliceDecodeValue decodes a document into a []Elem.
func (PrimitiveCodecs) ElementSliceDecodeValue(dc bsoncodec.DecodeContext, vr bsonrw.ValueReader,
	val reflect.Value) error {
	if !val.CanSet() || !reflect.TypeFor[Doc]().ConvertibleTo(val.Type()) {
		return bsoncodec.ValueDecoderError{Name: "ElementSliceDecodeValue",
			Types: []reflect.Type{reflect.TypeFor[[]Elem]()}, Received: val}
	}
	d := reflect.New(reflect.TypeFor[Doc]()).Elem()
	if err := (codec[Doc]{}).DecodeValue(dc, vr, d); err != nil {
		return err
	}
	val.Set(d.Convert(val.Type()))
	return nil
}

// DecodeDocument reads the elements of a document.
func (PrimitiveCodecs) DecodeDocument(dctx bsoncodec.DecodeContext, dr bsonrw.DocumentReader, pdoc *Doc) error {
	doc := Doc{}
	for {
		key, vr, err := dr.ReadElement()
		if err == bsonrw.ErrEOD {
			*pdoc = doc
			return nil
		}
		if err != nil {
			return err
		}
		v := reflect.New(reflect.TypeFor[Val]()).Elem()
		if err := (codec[Val]{}).DecodeValue(dctx, vr, v); err != nil {
			return err
		}
		doc = append(doc, Elem{key, v.Interface().(Val)})
	}
}
