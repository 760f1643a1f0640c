// Package bson is the official driver's package of that name on Allium's. Its documents and most of
// its values are the types of package allium/bson; those whose JSON or methods differ there are
// types of their own. Values are encoded and decoded by allium/bson; a Registry adds the program's
// own ways to that.
package bson

import (
	"bytes"
	"encoding/json"
	"errors"

	"allium/bson"
)

// The types that are Allium's.
type (
	// A is a BSON array.
	A = bson.A
	// D is an ordered BSON document.
	D = bson.D
	// DateTime is a BSON datetime: milliseconds since the Unix epoch.
	DateTime = bson.DateTime
	// E is an element of a D.
	E = bson.E
	// JavaScript is BSON JavaScript code.
	JavaScript = bson.JavaScript
	// KeyMarshaler is implemented by map keys that encode themselves.
	KeyMarshaler = bson.KeyMarshaler
	// KeyUnmarshaler is the reverse of KeyMarshaler.
	KeyUnmarshaler = bson.KeyUnmarshaler
	// M is an unordered BSON document.
	M = bson.M
	// Marshaler is implemented by types that encode themselves as a document.
	Marshaler = bson.Marshaler
	// ObjectID is a BSON ObjectID.
	ObjectID = bson.ObjectID
	// Symbol is a BSON symbol.
	Symbol = bson.Symbol
	// Type is a BSON type.
	Type = bson.Type
	// Unmarshaler is implemented by types that decode themselves from a document.
	Unmarshaler = bson.Unmarshaler
	// ValueMarshaler is implemented by types that encode themselves as any BSON value.
	ValueMarshaler = bson.ValueMarshaler
	// ValueUnmarshaler is implemented by types that decode themselves from any BSON value.
	ValueUnmarshaler = bson.ValueUnmarshaler
)

// Zeroer is implemented by types that know whether a value counts as empty for omitempty.
type Zeroer interface {
	IsZero() bool
}

// The BSON types.
const (
	TypeDouble           = bson.TypeDouble
	TypeString           = bson.TypeString
	TypeEmbeddedDocument = bson.TypeEmbeddedDocument
	TypeArray            = bson.TypeArray
	TypeBinary           = bson.TypeBinary
	TypeUndefined        = bson.TypeUndefined
	TypeObjectID         = bson.TypeObjectID
	TypeBoolean          = bson.TypeBoolean
	TypeDateTime         = bson.TypeDateTime
	TypeNull             = bson.TypeNull
	TypeRegex            = bson.TypeRegex
	TypeDBPointer        = bson.TypeDBPointer
	TypeJavaScript       = bson.TypeJavaScript
	TypeSymbol           = bson.TypeSymbol
	TypeCodeWithScope    = bson.TypeCodeWithScope
	TypeInt32            = bson.TypeInt32
	TypeTimestamp        = bson.TypeTimestamp
	TypeInt64            = bson.TypeInt64
	TypeDecimal128       = bson.TypeDecimal128
	TypeMaxKey           = bson.TypeMaxKey
	TypeMinKey           = bson.TypeMinKey
)

// The subtypes of binary values.
const (
	TypeBinaryGeneric     byte = 0x00
	TypeBinaryFunction    byte = 0x01
	TypeBinaryBinaryOld   byte = 0x02
	TypeBinaryUUIDOld     byte = 0x03
	TypeBinaryUUID        byte = 0x04
	TypeBinaryMD5         byte = 0x05
	TypeBinaryEncrypted   byte = 0x06
	TypeBinaryColumn      byte = 0x07
	TypeBinarySensitive   byte = 0x08
	TypeBinaryVector      byte = 0x09
	TypeBinaryUserDefined byte = 0x80
)

// Marshal encodes a document.
func Marshal(val any) ([]byte, error) { return defaultRegistry.marshal(settings{}, val) }

// MarshalValue encodes any value.
func MarshalValue(val any) (Type, []byte, error) {
	return defaultRegistry.marshalValue(settings{}, val)
}

// Unmarshal decodes a document into the variable that val points to, or into the map val.
func Unmarshal(data []byte, val any) error {
	return defaultRegistry.unmarshal(settings{}, TypeEmbeddedDocument, data, val)
}

// UnmarshalValue decodes a value into the variable that val points to, or into the map val.
func UnmarshalValue(t Type, data []byte, val any) error {
	return defaultRegistry.unmarshal(settings{}, t, data, val)
}

// MarshalExtJSON encodes a document as Extended JSON. escapeHTML writes <, > and & as escapes.
func MarshalExtJSON(val any, canonical, escapeHTML bool) ([]byte, error) {
	doc, err := Marshal(val)
	if err != nil {
		return nil, err
	}
	return extJSON(doc, canonical, escapeHTML)
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
// are read, whatever canonicalOnly says.
func UnmarshalExtJSON(data []byte, canonicalOnly bool, val any) error {
	vr, err := NewExtJSONValueReader(bytes.NewReader(data), canonicalOnly)
	if err != nil {
		return err
	}
	return NewDecoder(vr).Decode(val)
}

func extJSON(doc []byte, canonical, escapeHTML bool) ([]byte, error) {
	text, err := bson.AppendExtJSON(nil, doc, canonical)
	if err != nil {
		return nil, err
	}
	if escapeHTML && bytes.ContainsAny(text, "<>&\u2028\u2029") {
		var b bytes.Buffer
		json.HTMLEscape(&b, text)
		return b.Bytes(), nil
	}
	return text, nil
}

var (
	// ErrInvalidHex is the error for a text that is not as long as an ObjectID.
	ErrInvalidHex = errors.New("the provided hex string is not a valid ObjectID")
	// ErrInvalidJSON is the error for a text that is no Extended JSON.
	ErrInvalidJSON = errors.New("invalid JSON input")
	// ErrDecodeToNil is the error for a variable that is nil.
	ErrDecodeToNil = errors.New("cannot Decode to nil value")
	// ErrEOA is what an ArrayReader returns behind the last element.
	ErrEOA = errors.New("end of array")
	// ErrEOD is what a DocumentReader returns behind the last element.
	ErrEOD = errors.New("end of document")
	// ErrNilContext is the error for a *DecodeContext that is nil.
	ErrNilContext = errors.New("DecodeContext cannot be nil")
	// ErrNilReader is the error for an io.Reader that is nil.
	ErrNilReader = errors.New("nil reader")
	// ErrNilRegistry is the error for a Registry that is nil.
	ErrNilRegistry = errors.New("Registry cannot be nil")
	// ErrMgoSetZero is what a method SetBSON returns to set its variable to the zero value.
	ErrMgoSetZero = errors.New("set to zero")
)
