package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// An EncodeContext is what a ValueEncoder is given: the registry, for what is in its value, and how
// to encode.
type EncodeContext struct {
	*Registry

	// MinSize encodes integers as 32-bit ones if they fit.
	//
	// Deprecated: use bson.Encoder.IntMinSize.
	MinSize bool

	settings coding.Settings
}

// all returns the settings with those of the fields.
func (ec EncodeContext) all() coding.Settings {
	s := ec.settings
	s.IntMinSize = ec.MinSize || s.IntMinSize
	return s
}

// encode encodes val as if nothing were registered for its type.
func (ec EncodeContext) encode(vw bsonrw.ValueWriter, val reflect.Value, change func(*coding.Settings)) error {
	if !val.IsValid() {
		return vw.WriteNull()
	}
	r := ec.Registry
	if r == nil {
		r = plain
	}
	s := ec.all()
	if change != nil {
		change(&s)
	}
	t, data, err := coding.Of(r.behind, s).MarshalDefault(val)
	if err != nil {
		return err
	}
	return coding.WriteValue(vw, t, data)
}

// The methods of EncodeContext do what those of bson.Encoder do.

// ErrorOnInlineDuplicates makes it an error if a field has the key of one that is inline. Two of
// one key at the same depth always are.
//
// Deprecated: use bson.Encoder.
func (ec *EncodeContext) ErrorOnInlineDuplicates() { ec.settings.InlineOnce = true }

// StringifyMapKeysWithFmt makes keys of map keys as fmt.Sprint does.
//
// Deprecated: use bson.Encoder.
func (ec *EncodeContext) StringifyMapKeysWithFmt() { ec.settings.FormatKeys = true }

// NilMapAsEmpty encodes a nil map as an empty document instead of null.
//
// Deprecated: use bson.Encoder.
func (ec *EncodeContext) NilMapAsEmpty() { ec.settings.NilMapAsEmpty = true }

// NilSliceAsEmpty encodes a nil slice as an empty array instead of null.
//
// Deprecated: use bson.Encoder.
func (ec *EncodeContext) NilSliceAsEmpty() { ec.settings.NilSliceAsEmpty = true }

// NilByteSliceAsEmpty encodes a nil []byte as an empty binary instead of null.
//
// Deprecated: use bson.Encoder.
func (ec *EncodeContext) NilByteSliceAsEmpty() { ec.settings.NilBytesAsEmpty = true }

// OmitZeroStruct makes structs count as empty whose exported fields are all zero.
//
// Deprecated: use bson.Encoder.
func (ec *EncodeContext) OmitZeroStruct() { ec.settings.OmitZeroStruct = true }

// UseJSONStructTags takes the json tag of a field without a bson tag.
//
// Deprecated: use bson.Encoder.
func (ec *EncodeContext) UseJSONStructTags() { ec.settings.JSONTags = true }

// A DecodeContext is what a ValueDecoder is given: the registry, for what is in its value, and how
// to decode.
type DecodeContext struct {
	*Registry

	// Truncate decodes doubles into integers without their fraction.
	//
	// Deprecated: use bson.Decoder.AllowTruncatingDoubles.
	Truncate bool

	// Ancestor is the type that documents become in variables of type any: that of the document
	// which they are in.
	//
	// Deprecated: use bson.Decoder.DefaultDocumentM or DefaultDocumentD.
	Ancestor reflect.Type

	settings coding.Settings
}

// all returns the settings with those of the fields.
func (dc DecodeContext) all() coding.Settings {
	s := dc.settings
	s.Truncate, s.Ancestor = dc.Truncate || s.Truncate, dc.Ancestor
	return s
}

// decode decodes into val as if nothing were registered for its type.
func (dc DecodeContext) decode(vr bsonrw.ValueReader, val reflect.Value, change func(*coding.Settings)) error {
	r := dc.Registry
	if r == nil {
		r = plain
	}
	s := dc.all()
	if change != nil {
		change(&s)
	}
	t, data, err := coding.ReadValue(vr)
	if err != nil {
		return err
	}
	return coding.Of(r.behind, s).UnmarshalDefault(t, data, val)
}

// The methods of DecodeContext do what those of bson.Decoder do.

// BinaryAsSlice decodes binaries of the subtypes generic and old into variables of type any as
// []byte.
//
// Deprecated: use bson.Decoder.
func (dc *DecodeContext) BinaryAsSlice() { dc.settings.BinaryAsSlice = true }

// UseJSONStructTags takes the json tag of a field without a bson tag.
//
// Deprecated: use bson.Decoder.
func (dc *DecodeContext) UseJSONStructTags() { dc.settings.JSONTags = true }

// UseLocalTimeZone decodes times in the local time zone instead of UTC.
//
// Deprecated: use bson.Decoder.
func (dc *DecodeContext) UseLocalTimeZone() { dc.settings.LocalTime = true }

// ZeroMaps empties maps before they are decoded into.
//
// Deprecated: use bson.Decoder.
func (dc *DecodeContext) ZeroMaps() { dc.settings.ZeroMaps = true }

// ZeroStructs sets structs to zero before they are decoded into.
//
// Deprecated: use bson.Decoder.
func (dc *DecodeContext) ZeroStructs() { dc.settings.ZeroStructs = true }

// DefaultDocumentM decodes documents into variables of type any as primitive.M.
//
// Deprecated: use bson.Decoder.
func (dc *DecodeContext) DefaultDocumentM() { dc.settings.Documents = typeM }

// DefaultDocumentD decodes documents into variables of type any as primitive.D.
//
// Deprecated: use bson.Decoder.
func (dc *DecodeContext) DefaultDocumentD() { dc.settings.Documents = typeD }
