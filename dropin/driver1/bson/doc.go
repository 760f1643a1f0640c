// Package bson encodes and decodes BSON as version 1 of the official driver does. It stands on
// package bson of version 2, and has the documents and raw values of this version.
package bson

import (
	"bytes"
	"encoding/json"
	"errors"

	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/internal/dialect"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// The types of package primitive.
type (
	// A is a BSON array.
	A = primitive.A
	// D is an ordered BSON document.
	D = primitive.D
	// E is an element of a D.
	E = primitive.E
	// M is an unordered BSON document.
	M = primitive.M
)

// Marshaler is implemented by types that encode themselves as a document.
type Marshaler interface {
	MarshalBSON() ([]byte, error)
}

// Unmarshaler is implemented by types that decode themselves from a document.
type Unmarshaler interface {
	UnmarshalBSON([]byte) error
}

// ValueMarshaler is implemented by types that encode themselves as any BSON value.
type ValueMarshaler interface {
	MarshalBSONValue() (bsontype.Type, []byte, error)
}

// ValueUnmarshaler is implemented by types that decode themselves from any BSON value.
type ValueUnmarshaler interface {
	UnmarshalBSONValue(bsontype.Type, []byte) error
}

// Zeroer is implemented by types that know whether a value counts as empty for omitempty.
type Zeroer interface {
	IsZero() bool
}

// The BSON types.
const (
	TypeDouble           = bsontype.Double
	TypeString           = bsontype.String
	TypeEmbeddedDocument = bsontype.EmbeddedDocument
	TypeArray            = bsontype.Array
	TypeBinary           = bsontype.Binary
	TypeUndefined        = bsontype.Undefined
	TypeObjectID         = bsontype.ObjectID
	TypeBoolean          = bsontype.Boolean
	TypeDateTime         = bsontype.DateTime
	TypeNull             = bsontype.Null
	TypeRegex            = bsontype.Regex
	TypeDBPointer        = bsontype.DBPointer
	TypeJavaScript       = bsontype.JavaScript
	TypeSymbol           = bsontype.Symbol
	TypeCodeWithScope    = bsontype.CodeWithScope
	TypeInt32            = bsontype.Int32
	TypeTimestamp        = bsontype.Timestamp
	TypeInt64            = bsontype.Int64
	TypeDecimal128       = bsontype.Decimal128
	TypeMinKey           = bsontype.MinKey
	TypeMaxKey           = bsontype.MaxKey
)

// The subtypes of binary values.
const (
	TypeBinaryGeneric     = bsontype.BinaryGeneric
	TypeBinaryFunction    = bsontype.BinaryFunction
	TypeBinaryBinaryOld   = bsontype.BinaryBinaryOld
	TypeBinaryUUIDOld     = bsontype.BinaryUUIDOld
	TypeBinaryUUID        = bsontype.BinaryUUID
	TypeBinaryMD5         = bsontype.BinaryMD5
	TypeBinaryEncrypted   = bsontype.BinaryEncrypted
	TypeBinaryColumn      = bsontype.BinaryColumn
	TypeBinarySensitive   = bsontype.BinarySensitive
	TypeBinaryUserDefined = bsontype.BinaryUserDefined
)

var (
	// ErrDecodeToNil is the error for a variable that is nil.
	ErrDecodeToNil = bson.ErrDecodeToNil
	// ErrNilContext is the error for a *DecodeContext that is nil.
	ErrNilContext = bson.ErrNilContext
	// ErrNilReader is the error for an io.Reader that is nil.
	ErrNilReader = bson.ErrNilReader
	// ErrNilRegistry is the error for a Registry that is nil.
	ErrNilRegistry = bson.ErrNilRegistry
)

// DefaultRegistry is what is used without a registry.
var DefaultRegistry = NewRegistry()

// NewRegistry returns a registry that has the driver's own encoders and decoders.
func NewRegistry() *bsoncodec.Registry { return NewRegistryBuilder().Build() }

// NewRegistryBuilder returns a builder of a registry as NewRegistry's.
//
// Deprecated: use NewRegistry.
func NewRegistryBuilder() *bsoncodec.RegistryBuilder {
	rb := bsoncodec.NewRegistryBuilder()
	bsoncodec.DefaultValueEncoders{}.RegisterDefaultEncoders(rb)
	bsoncodec.DefaultValueDecoders{}.RegisterDefaultDecoders(rb)
	return rb
}

// wayOf returns the functions of a context, which is an EncodeContext or a DecodeContext.
func wayOf(context any) coding.Way {
	registry, s := dialect.Settings(context)
	r, _ := registry.(*bsoncodec.Registry)
	if r == nil {
		r = DefaultRegistry
	}
	return coding.Of(dialect.Registry(r), s)
}

func with(r *bsoncodec.Registry) bsoncodec.EncodeContext {
	return bsoncodec.EncodeContext{Registry: r}
}

// Marshal encodes a document.
func Marshal(val any) ([]byte, error) { return MarshalWithRegistry(DefaultRegistry, val) }

// MarshalAppend encodes a document, and appends it.
//
// Deprecated: use an Encoder.
func MarshalAppend(dst []byte, val any) ([]byte, error) {
	return MarshalAppendWithRegistry(DefaultRegistry, dst, val)
}

// MarshalWithRegistry encodes a document with a registry.
//
// Deprecated: use an Encoder.
func MarshalWithRegistry(r *bsoncodec.Registry, val any) ([]byte, error) {
	return MarshalWithContext(with(r), val)
}

// MarshalWithContext encodes a document with a context.
//
// Deprecated: use an Encoder.
func MarshalWithContext(ec bsoncodec.EncodeContext, val any) ([]byte, error) {
	return wayOf(ec).Marshal(val)
}

// MarshalAppendWithRegistry encodes a document with a registry, and appends it.
//
// Deprecated: use an Encoder.
func MarshalAppendWithRegistry(r *bsoncodec.Registry, dst []byte, val any) ([]byte, error) {
	return MarshalAppendWithContext(with(r), dst, val)
}

// MarshalAppendWithContext encodes a document with a context, and appends it.
//
// Deprecated: use an Encoder.
func MarshalAppendWithContext(ec bsoncodec.EncodeContext, dst []byte, val any) ([]byte, error) {
	doc, err := MarshalWithContext(ec, val)
	if err != nil {
		return nil, err
	}
	return append(dst, doc...), nil
}

// MarshalValue encodes any value.
func MarshalValue(val any) (bsontype.Type, []byte, error) {
	return MarshalValueWithRegistry(DefaultRegistry, val)
}

// MarshalValueAppend encodes any value, and appends it.
//
// Deprecated: use MarshalValue.
func MarshalValueAppend(dst []byte, val any) (bsontype.Type, []byte, error) {
	return MarshalValueAppendWithRegistry(DefaultRegistry, dst, val)
}

// MarshalValueWithRegistry encodes any value with a registry.
//
// Deprecated: use MarshalValue.
func MarshalValueWithRegistry(r *bsoncodec.Registry, val any) (bsontype.Type, []byte, error) {
	return MarshalValueWithContext(with(r), val)
}

// MarshalValueWithContext encodes any value with a context.
//
// Deprecated: use MarshalValue.
func MarshalValueWithContext(ec bsoncodec.EncodeContext, val any) (bsontype.Type, []byte, error) {
	t, data, err := wayOf(ec).MarshalValue(val)
	if err == nil && data == nil {
		data = []byte{} // of null, and of other values without content
	}
	return t, data, err
}

// MarshalValueAppendWithRegistry encodes any value with a registry, and appends it.
//
// Deprecated: use MarshalValue.
func MarshalValueAppendWithRegistry(r *bsoncodec.Registry, dst []byte, val any) (bsontype.Type, []byte, error) {
	return MarshalValueAppendWithContext(with(r), dst, val)
}

// MarshalValueAppendWithContext encodes any value with a context, and appends it.
//
// Deprecated: use MarshalValue.
func MarshalValueAppendWithContext(ec bsoncodec.EncodeContext, dst []byte, val any) (bsontype.Type, []byte, error) {
	t, data, err := MarshalValueWithContext(ec, val)
	if err != nil {
		return 0, nil, err
	}
	if dst == nil {
		dst = []byte{}
	}
	return t, append(dst, data...), nil
}

// Unmarshal decodes a document into the variable that val points to, or into the map val.
func Unmarshal(data []byte, val any) error {
	return UnmarshalWithRegistry(DefaultRegistry, data, val)
}

// UnmarshalWithRegistry decodes a document with a registry.
//
// Deprecated: use a Decoder.
func UnmarshalWithRegistry(r *bsoncodec.Registry, data []byte, val any) error {
	return UnmarshalWithContext(bsoncodec.DecodeContext{Registry: r}, data, val)
}

// UnmarshalWithContext decodes a document with a context.
//
// Deprecated: use a Decoder.
func UnmarshalWithContext(dc bsoncodec.DecodeContext, data []byte, val any) error {
	return unmarshal(dc, bsontype.EmbeddedDocument, data, val)
}

func unmarshal(dc bsoncodec.DecodeContext, t bsontype.Type, data []byte, val any) error {
	return wayOf(dc).Unmarshal(t, data, val)
}

// UnmarshalValue decodes a value into the variable that val points to, or into the map val.
func UnmarshalValue(t bsontype.Type, data []byte, val any) error {
	return UnmarshalValueWithRegistry(DefaultRegistry, t, data, val)
}

// UnmarshalValueWithRegistry decodes a value with a registry.
//
// Deprecated: use UnmarshalValue.
func UnmarshalValueWithRegistry(r *bsoncodec.Registry, t bsontype.Type, data []byte, val any) error {
	return unmarshal(bsoncodec.DecodeContext{Registry: r}, t, data, val)
}

// MarshalExtJSON encodes a document as Extended JSON. escapeHTML writes <, > and & as escapes.
func MarshalExtJSON(val any, canonical, escapeHTML bool) ([]byte, error) {
	return MarshalExtJSONWithRegistry(DefaultRegistry, val, canonical, escapeHTML)
}

// MarshalExtJSONAppend encodes a document as Extended JSON, and appends it.
//
// Deprecated: use an Encoder.
func MarshalExtJSONAppend(dst []byte, val any, canonical, escapeHTML bool) ([]byte, error) {
	return MarshalExtJSONAppendWithRegistry(DefaultRegistry, dst, val, canonical, escapeHTML)
}

// MarshalExtJSONWithRegistry encodes a document with a registry as Extended JSON.
//
// Deprecated: use an Encoder.
func MarshalExtJSONWithRegistry(r *bsoncodec.Registry, val any, canonical, escapeHTML bool) ([]byte, error) {
	return MarshalExtJSONWithContext(with(r), val, canonical, escapeHTML)
}

// MarshalExtJSONWithContext encodes a document with a context as Extended JSON.
//
// Deprecated: use an Encoder.
func MarshalExtJSONWithContext(ec bsoncodec.EncodeContext, val any, canonical, escapeHTML bool) ([]byte, error) {
	doc, err := MarshalWithContext(ec, val)
	if err != nil {
		return nil, err
	}
	return bson.MarshalExtJSON(bson.Raw(doc), canonical, escapeHTML)
}

// MarshalExtJSONAppendWithRegistry encodes a document with a registry as Extended JSON, and appends
// it.
//
// Deprecated: use an Encoder.
func MarshalExtJSONAppendWithRegistry(r *bsoncodec.Registry, dst []byte, val any, canonical,
	escapeHTML bool) ([]byte, error) {
	return MarshalExtJSONAppendWithContext(with(r), dst, val, canonical, escapeHTML)
}

// MarshalExtJSONAppendWithContext encodes a document with a context as Extended JSON, and appends
// it.
//
// Deprecated: use an Encoder.
func MarshalExtJSONAppendWithContext(ec bsoncodec.EncodeContext, dst []byte, val any, canonical,
	escapeHTML bool) ([]byte, error) {
	text, err := MarshalExtJSONWithContext(ec, val, canonical, escapeHTML)
	if err != nil {
		return nil, err
	}
	return append(dst, text...), nil
}

// MarshalExtJSONIndent is MarshalExtJSON with IndentExtJSON on top.
func MarshalExtJSONIndent(val any, canonical, escapeHTML bool, prefix, indent string) ([]byte, error) {
	text, err := MarshalExtJSON(val, canonical, escapeHTML)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, prefix, indent)
	return b.Bytes(), err
}

// IndentExtJSON appends src to dst with each element on a line of its own.
func IndentExtJSON(dst *bytes.Buffer, src []byte, prefix, indent string) error {
	return json.Indent(dst, src, prefix, indent)
}

// UnmarshalExtJSON decodes a text of Extended JSON into the variable that val points to. Both forms
// are read, whatever canonical says.
func UnmarshalExtJSON(data []byte, canonical bool, val any) error {
	return UnmarshalExtJSONWithRegistry(DefaultRegistry, data, canonical, val)
}

// UnmarshalExtJSONWithRegistry decodes a text of Extended JSON with a registry.
//
// Deprecated: use a Decoder.
func UnmarshalExtJSONWithRegistry(r *bsoncodec.Registry, data []byte, canonical bool, val any) error {
	return UnmarshalExtJSONWithContext(bsoncodec.DecodeContext{Registry: r}, data, canonical, val)
}

// UnmarshalExtJSONWithContext decodes a text of Extended JSON with a context.
//
// Deprecated: use a Decoder.
func UnmarshalExtJSONWithContext(dc bsoncodec.DecodeContext, data []byte, canonical bool, val any) error {
	vr, err := bsonrw.NewExtJSONValueReader(bytes.NewReader(data), canonical)
	if err != nil {
		return err
	}
	return decode(dc, vr, val)
}

var errNotPointer = errors.New("argument to Unmarshal* must be a pointer to a type, but got ")
