package bsoncodec

import (
	"encoding/json"
	"net/url"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// DefaultValueEncoders has the driver's own ValueEncoders. Each encodes a value as if nothing were
// registered for its type.
//
// Deprecated: a registry of bson.NewRegistry has them.
type DefaultValueEncoders struct{}

// RegisterDefaultEncoders makes the lookups of a registry find the driver's own encoders.
func (DefaultValueEncoders) RegisterDefaultEncoders(rb *RegistryBuilder) { rb.registry.encodes = true }

// DefaultValueDecoders has the driver's own ValueDecoders. Each decodes into a variable as if
// nothing were registered for its type.
//
// Deprecated: a registry of bson.NewRegistry has them.
type DefaultValueDecoders struct{}

// RegisterDefaultDecoders makes the lookups of a registry find the driver's own decoders.
func (DefaultValueDecoders) RegisterDefaultDecoders(rb *RegistryBuilder) { rb.registry.decodes = true }

// ArrayEncodeValue encodes a value of these kinds.
func (DefaultValueEncoders) ArrayEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.Array).encode("ArrayEncodeValue", ec, vw, val, nil)
}

// BinaryEncodeValue encodes a primitive.Binary.
func (DefaultValueEncoders) BinaryEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.Binary]().encode("BinaryEncodeValue", ec, vw, val, nil)
}

// BooleanEncodeValue encodes a value of these kinds.
func (DefaultValueEncoders) BooleanEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.Bool).encode("BooleanEncodeValue", ec, vw, val, nil)
}

// ByteSliceEncodeValue encodes a []byte.
func (DefaultValueEncoders) ByteSliceEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[[]byte]().encode("ByteSliceEncodeValue", ec, vw, val, nil)
}

// CodeWithScopeEncodeValue encodes a primitive.CodeWithScope.
func (DefaultValueEncoders) CodeWithScopeEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.CodeWithScope]().encode("CodeWithScopeEncodeValue", ec, vw, val, nil)
}

// CoreDocumentEncodeValue encodes a bsoncore.Document.
func (DefaultValueEncoders) CoreDocumentEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[bsoncore.Document]().encode("CoreDocumentEncodeValue", ec, vw, val, nil)
}

// DBPointerEncodeValue encodes a primitive.DBPointer.
func (DefaultValueEncoders) DBPointerEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.DBPointer]().encode("DBPointerEncodeValue", ec, vw, val, nil)
}

// DateTimeEncodeValue encodes a primitive.DateTime.
func (DefaultValueEncoders) DateTimeEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.DateTime]().encode("DateTimeEncodeValue", ec, vw, val, nil)
}

// Decimal128EncodeValue encodes a primitive.Decimal128.
func (DefaultValueEncoders) Decimal128EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.Decimal128]().encode("Decimal128EncodeValue", ec, vw, val, nil)
}

// EmptyInterfaceEncodeValue encodes what a variable of type any holds.
func (DefaultValueEncoders) EmptyInterfaceEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter,
	val reflect.Value) error {
	return typed[any]().encode("EmptyInterfaceEncodeValue", ec, vw, val, nil)
}

// FloatEncodeValue encodes a value of these kinds.
func (DefaultValueEncoders) FloatEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.Float32, reflect.Float64).encode("FloatEncodeValue", ec, vw, val, nil)
}

// IntEncodeValue encodes a value of these kinds.
func (DefaultValueEncoders) IntEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int).encode("IntEncodeValue", ec,
		vw, val, nil)
}

// JSONNumberEncodeValue encodes a json.Number.
func (DefaultValueEncoders) JSONNumberEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[json.Number]().encode("JSONNumberEncodeValue", ec, vw, val, nil)
}

// JavaScriptEncodeValue encodes a primitive.JavaScript.
func (DefaultValueEncoders) JavaScriptEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.JavaScript]().encode("JavaScriptEncodeValue", ec, vw, val, nil)
}

// MapEncodeValue encodes a value of these kinds.
func (DefaultValueEncoders) MapEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.Map).encode("MapEncodeValue", ec, vw, val, nil)
}

// MarshalerEncodeValue encodes a value by its method.
func (DefaultValueEncoders) MarshalerEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[Marshaler]().encode("MarshalerEncodeValue", ec, vw, val, nil)
}

// MaxKeyEncodeValue encodes a primitive.MaxKey.
func (DefaultValueEncoders) MaxKeyEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.MaxKey]().encode("MaxKeyEncodeValue", ec, vw, val, nil)
}

// MinKeyEncodeValue encodes a primitive.MinKey.
func (DefaultValueEncoders) MinKeyEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.MinKey]().encode("MinKeyEncodeValue", ec, vw, val, nil)
}

// NullEncodeValue encodes a primitive.Null.
func (DefaultValueEncoders) NullEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.Null]().encode("NullEncodeValue", ec, vw, val, nil)
}

// ObjectIDEncodeValue encodes an primitive.ObjectID.
func (DefaultValueEncoders) ObjectIDEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.ObjectID]().encode("ObjectIDEncodeValue", ec, vw, val, nil)
}

// ProxyEncodeValue encodes a value by its method.
func (DefaultValueEncoders) ProxyEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[Proxy]().encode("ProxyEncodeValue", ec, vw, val, nil)
}

// RegexEncodeValue encodes a primitive.Regex.
func (DefaultValueEncoders) RegexEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.Regex]().encode("RegexEncodeValue", ec, vw, val, nil)
}

// SliceEncodeValue encodes a value of these kinds.
func (DefaultValueEncoders) SliceEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.Slice).encode("SliceEncodeValue", ec, vw, val, nil)
}

// StringEncodeValue encodes a value of these kinds.
func (DefaultValueEncoders) StringEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.String).encode("StringEncodeValue", ec, vw, val, nil)
}

// SymbolEncodeValue encodes a primitive.Symbol.
func (DefaultValueEncoders) SymbolEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.Symbol]().encode("SymbolEncodeValue", ec, vw, val, nil)
}

// TimeEncodeValue encodes a time.Time.
func (DefaultValueEncoders) TimeEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[time.Time]().encode("TimeEncodeValue", ec, vw, val, nil)
}

// TimestampEncodeValue encodes a primitive.Timestamp.
func (DefaultValueEncoders) TimestampEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.Timestamp]().encode("TimestampEncodeValue", ec, vw, val, nil)
}

// URLEncodeValue encodes a url.URL.
func (DefaultValueEncoders) URLEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[url.URL]().encode("URLEncodeValue", ec, vw, val, nil)
}

// UintEncodeValue encodes a value of these kinds.
func (DefaultValueEncoders) UintEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint).encode("UintEncodeValue",
		ec, vw, val, nil)
}

// UndefinedEncodeValue encodes an primitive.Undefined.
func (DefaultValueEncoders) UndefinedEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[primitive.Undefined]().encode("UndefinedEncodeValue", ec, vw, val, nil)
}

// ValueMarshalerEncodeValue encodes a value by its method.
func (DefaultValueEncoders) ValueMarshalerEncodeValue(ec EncodeContext, vw bsonrw.ValueWriter,
	val reflect.Value) error {
	return typed[ValueMarshaler]().encode("ValueMarshalerEncodeValue", ec, vw, val, nil)
}

// ArrayDecodeValue decodes a value of these kinds.
func (DefaultValueDecoders) ArrayDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.Array).decode("ArrayDecodeValue", dc, vr, val, nil)
}

// BinaryDecodeValue decodes a primitive.Binary.
func (DefaultValueDecoders) BinaryDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.Binary]().decode("BinaryDecodeValue", dc, vr, val, nil)
}

// BooleanDecodeValue decodes a value of these kinds.
func (DefaultValueDecoders) BooleanDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.Bool).decode("BooleanDecodeValue", dc, vr, val, nil)
}

// ByteSliceDecodeValue decodes a []byte.
func (DefaultValueDecoders) ByteSliceDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[[]byte]().decode("ByteSliceDecodeValue", dc, vr, val, nil)
}

// CodeWithScopeDecodeValue decodes a primitive.CodeWithScope.
func (DefaultValueDecoders) CodeWithScopeDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.CodeWithScope]().decode("CodeWithScopeDecodeValue", dc, vr, val, nil)
}

// CoreDocumentDecodeValue decodes a bsoncore.Document.
func (DefaultValueDecoders) CoreDocumentDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[bsoncore.Document]().decode("CoreDocumentDecodeValue", dc, vr, val, nil)
}

// DBPointerDecodeValue decodes a primitive.DBPointer.
func (DefaultValueDecoders) DBPointerDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.DBPointer]().decode("DBPointerDecodeValue", dc, vr, val, nil)
}

// DateTimeDecodeValue decodes a primitive.DateTime.
func (DefaultValueDecoders) DateTimeDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.DateTime]().decode("DateTimeDecodeValue", dc, vr, val, nil)
}

// Decimal128DecodeValue decodes a primitive.Decimal128.
func (DefaultValueDecoders) Decimal128DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.Decimal128]().decode("Decimal128DecodeValue", dc, vr, val, nil)
}

// EmptyInterfaceDecodeValue decodes what a variable of type any holds.
func (DefaultValueDecoders) EmptyInterfaceDecodeValue(dc DecodeContext, vr bsonrw.ValueReader,
	val reflect.Value) error {
	return typed[any]().decode("EmptyInterfaceDecodeValue", dc, vr, val, nil)
}

// FloatDecodeValue decodes a value of these kinds.
func (DefaultValueDecoders) FloatDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.Float32, reflect.Float64).decode("FloatDecodeValue", dc, vr, val, nil)
}

// IntDecodeValue decodes a value of these kinds.
func (DefaultValueDecoders) IntDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int).decode("IntDecodeValue", dc,
		vr, val, nil)
}

// JSONNumberDecodeValue decodes a json.Number.
func (DefaultValueDecoders) JSONNumberDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[json.Number]().decode("JSONNumberDecodeValue", dc, vr, val, nil)
}

// JavaScriptDecodeValue decodes a primitive.JavaScript.
func (DefaultValueDecoders) JavaScriptDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.JavaScript]().decode("JavaScriptDecodeValue", dc, vr, val, nil)
}

// MapDecodeValue decodes a value of these kinds.
func (DefaultValueDecoders) MapDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.Map).decode("MapDecodeValue", dc, vr, val, nil)
}

// MaxKeyDecodeValue decodes a primitive.MaxKey.
func (DefaultValueDecoders) MaxKeyDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.MaxKey]().decode("MaxKeyDecodeValue", dc, vr, val, nil)
}

// MinKeyDecodeValue decodes a primitive.MinKey.
func (DefaultValueDecoders) MinKeyDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.MinKey]().decode("MinKeyDecodeValue", dc, vr, val, nil)
}

// NullDecodeValue decodes a primitive.Null.
func (DefaultValueDecoders) NullDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.Null]().decode("NullDecodeValue", dc, vr, val, nil)
}

// ObjectIDDecodeValue decodes an primitive.ObjectID.
func (DefaultValueDecoders) ObjectIDDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.ObjectID]().decode("ObjectIDDecodeValue", dc, vr, val, nil)
}

// RegexDecodeValue decodes a primitive.Regex.
func (DefaultValueDecoders) RegexDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.Regex]().decode("RegexDecodeValue", dc, vr, val, nil)
}

// SliceDecodeValue decodes a value of these kinds.
func (DefaultValueDecoders) SliceDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.Slice).decode("SliceDecodeValue", dc, vr, val, nil)
}

// StringDecodeValue decodes a value of these kinds.
func (DefaultValueDecoders) StringDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.String).decode("StringDecodeValue", dc, vr, val, nil)
}

// SymbolDecodeValue decodes a primitive.Symbol.
func (DefaultValueDecoders) SymbolDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.Symbol]().decode("SymbolDecodeValue", dc, vr, val, nil)
}

// TimeDecodeValue decodes a time.Time.
func (DefaultValueDecoders) TimeDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[time.Time]().decode("TimeDecodeValue", dc, vr, val, nil)
}

// TimestampDecodeValue decodes a primitive.Timestamp.
func (DefaultValueDecoders) TimestampDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.Timestamp]().decode("TimestampDecodeValue", dc, vr, val, nil)
}

// URLDecodeValue decodes a url.URL.
func (DefaultValueDecoders) URLDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[url.URL]().decode("URLDecodeValue", dc, vr, val, nil)
}

// UintDecodeValue decodes a value of these kinds.
func (DefaultValueDecoders) UintDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint).decode("UintDecodeValue",
		dc, vr, val, nil)
}

// UndefinedDecodeValue decodes an primitive.Undefined.
func (DefaultValueDecoders) UndefinedDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.Undefined]().decode("UndefinedDecodeValue", dc, vr, val, nil)
}

// UnmarshalerDecodeValue decodes a value by its method.
func (DefaultValueDecoders) UnmarshalerDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[Unmarshaler]().decode("UnmarshalerDecodeValue", dc, vr, val, nil)
}

// ValueUnmarshalerDecodeValue decodes a value by its method.
func (DefaultValueDecoders) ValueUnmarshalerDecodeValue(dc DecodeContext, vr bsonrw.ValueReader,
	val reflect.Value) error {
	return typed[ValueUnmarshaler]().decode("ValueUnmarshalerDecodeValue", dc, vr, val, nil)
}

// DDecodeValue decodes a primitive.D.
func (DefaultValueDecoders) DDecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[primitive.D]().decode("DDecodeValue", dc, vr, val, nil)
}
