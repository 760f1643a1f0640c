package bson

import (
	"errors"
	"reflect"

	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/internal/dialect"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// An Encoder writes documents to a ValueWriter.
type Encoder struct {
	ec bsoncodec.EncodeContext
	vw bsonrw.ValueWriter
}

// NewEncoder returns an Encoder that writes to vw.
func NewEncoder(vw bsonrw.ValueWriter) (*Encoder, error) {
	return NewEncoderWithContext(with(DefaultRegistry), vw)
}

// NewEncoderWithContext returns an Encoder that writes to vw with a context's registry and
// settings.
//
// Deprecated: use NewEncoder.
func NewEncoderWithContext(ec bsoncodec.EncodeContext, vw bsonrw.ValueWriter) (*Encoder, error) {
	if ec.Registry == nil {
		ec.Registry = DefaultRegistry
	}
	if vw == nil {
		return nil, errors.New("cannot create a new Encoder with a nil ValueWriter")
	}
	return &Encoder{ec, vw}, nil
}

// Encode writes a document.
func (e *Encoder) Encode(val any) error {
	if val == nil {
		return bsoncodec.ErrNoEncoder{}
	}
	// A ValueEncoder of the program's gets the writer that the program gave, but for a document
	// that makes itself.
	if _, ok := val.(Marshaler); !ok && e.ec.Registry != nil {
		r := e.ec.Registry
		if enc, _ := coding.Encoder(dialect.Registry(r), reflect.TypeOf(val), false); enc != nil {
			enc, err := r.LookupEncoder(reflect.TypeOf(val))
			if err != nil {
				return err
			}
			return enc.EncodeValue(e.ec, e.vw, reflect.ValueOf(val))
		}
	}
	doc, err := MarshalWithContext(e.ec, val)
	if err != nil {
		return err
	}
	return coding.WriteValue(e.vw, bsontype.EmbeddedDocument, doc)
}

// Reset makes the Encoder write to vw.
func (e *Encoder) Reset(vw bsonrw.ValueWriter) error {
	e.vw = vw
	return nil
}

// SetRegistry makes the Encoder use r.
func (e *Encoder) SetRegistry(r *bsoncodec.Registry) error {
	e.ec.Registry = r
	return nil
}

// SetContext makes the Encoder use a context's registry and settings.
//
// Deprecated: use SetRegistry and the other methods.
func (e *Encoder) SetContext(ec bsoncodec.EncodeContext) error {
	e.ec = ec
	return nil
}

// ErrorOnInlineDuplicates makes it an error if a field has the key of one that is inline. Two of
// one key at the same depth always are.
func (e *Encoder) ErrorOnInlineDuplicates() { e.ec.ErrorOnInlineDuplicates() }

// IntMinSize encodes integers as 32-bit ones if they fit.
func (e *Encoder) IntMinSize() { e.ec.MinSize = true }

// StringifyMapKeysWithFmt makes keys of map keys as fmt.Sprint does.
func (e *Encoder) StringifyMapKeysWithFmt() { e.ec.StringifyMapKeysWithFmt() }

// NilMapAsEmpty encodes a nil map as an empty document instead of null.
func (e *Encoder) NilMapAsEmpty() { e.ec.NilMapAsEmpty() }

// NilSliceAsEmpty encodes a nil slice as an empty array instead of null.
func (e *Encoder) NilSliceAsEmpty() { e.ec.NilSliceAsEmpty() }

// NilByteSliceAsEmpty encodes a nil []byte as an empty binary instead of null.
func (e *Encoder) NilByteSliceAsEmpty() { e.ec.NilByteSliceAsEmpty() }

// OmitZeroStruct makes structs count as empty whose exported fields are all zero.
func (e *Encoder) OmitZeroStruct() { e.ec.OmitZeroStruct() }

// UseJSONStructTags takes the json tag of a field without a bson tag.
func (e *Encoder) UseJSONStructTags() { e.ec.UseJSONStructTags() }

// A Decoder reads documents from a ValueReader.
type Decoder struct {
	dc bsoncodec.DecodeContext
	vr bsonrw.ValueReader
}

// NewDecoder returns a Decoder that reads from vr.
func NewDecoder(vr bsonrw.ValueReader) (*Decoder, error) {
	return NewDecoderWithContext(bsoncodec.DecodeContext{Registry: DefaultRegistry}, vr)
}

// NewDecoderWithContext returns a Decoder that reads from vr with a context's registry and
// settings.
//
// Deprecated: use NewDecoder.
func NewDecoderWithContext(dc bsoncodec.DecodeContext, vr bsonrw.ValueReader) (*Decoder, error) {
	if dc.Registry == nil {
		dc.Registry = DefaultRegistry
	}
	if vr == nil {
		return nil, errors.New("cannot create a new Decoder with a nil ValueReader")
	}
	return &Decoder{dc, vr}, nil
}

// Decode reads the next document into the variable that val points to, or into the map val.
func (d *Decoder) Decode(val any) error { return decode(d.dc, d.vr, val) }

func decode(dc bsoncodec.DecodeContext, vr bsonrw.ValueReader, val any) error {
	v := reflect.ValueOf(val)
	if v.Kind() == reflect.Pointer && !v.IsNil() && dc.Registry != nil {
		if t := v.Type().Elem(); coding.Decoder(dialect.Registry(dc.Registry), t) != nil {
			dec, err := dc.LookupDecoder(t)
			if err != nil {
				return err
			}
			return dec.DecodeValue(dc, vr, v.Elem())
		}
	}
	t, data, err := coding.ReadValue(vr)
	if err != nil {
		return err
	}
	return unmarshal(dc, t, data, val)
}

// Reset makes the Decoder read from vr.
func (d *Decoder) Reset(vr bsonrw.ValueReader) error {
	d.vr = vr
	return nil
}

// SetRegistry makes the Decoder use r.
func (d *Decoder) SetRegistry(r *bsoncodec.Registry) error {
	d.dc.Registry = r
	return nil
}

// SetContext makes the Decoder use a context's registry and settings.
//
// Deprecated: use SetRegistry and the other methods.
func (d *Decoder) SetContext(dc bsoncodec.DecodeContext) error {
	d.dc = dc
	return nil
}

// DefaultDocumentM decodes documents into variables of type any as primitive.M.
func (d *Decoder) DefaultDocumentM() { d.dc.DefaultDocumentM() }

// DefaultDocumentD decodes documents into variables of type any as primitive.D.
func (d *Decoder) DefaultDocumentD() { d.dc.DefaultDocumentD() }

// AllowTruncatingDoubles decodes doubles into integers without their fraction.
func (d *Decoder) AllowTruncatingDoubles() { d.dc.Truncate = true }

// BinaryAsSlice decodes binaries of the subtypes generic and old into variables of type any as
// []byte.
func (d *Decoder) BinaryAsSlice() { d.dc.BinaryAsSlice() }

// UseJSONStructTags takes the json tag of a field without a bson tag.
func (d *Decoder) UseJSONStructTags() { d.dc.UseJSONStructTags() }

// UseLocalTimeZone decodes times in the local time zone instead of UTC.
func (d *Decoder) UseLocalTimeZone() { d.dc.UseLocalTimeZone() }

// ZeroMaps empties maps before they are decoded into.
func (d *Decoder) ZeroMaps() { d.dc.ZeroMaps() }

// ZeroStructs sets structs to zero before they are decoded into.
func (d *Decoder) ZeroStructs() { d.dc.ZeroStructs() }
