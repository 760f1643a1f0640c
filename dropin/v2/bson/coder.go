package bson

import "reflect"

// An Encoder writes documents to a ValueWriter.
type Encoder struct {
	vw       ValueWriter
	registry *Registry
	settings settings
}

// NewEncoder returns an Encoder that writes to vw.
func NewEncoder(vw ValueWriter) *Encoder { return &Encoder{vw: vw, registry: defaultRegistry} }

// Encode writes a document.
func (e *Encoder) Encode(val any) error {
	if val == nil {
		return errNoEncoder{}
	}
	// A ValueEncoder of the program's gets the writer that the program gave, but for a document
	// that makes itself.
	if _, ok := val.(Marshaler); !ok {
		if enc, _ := e.registry.encoder(reflect.TypeOf(val), false); enc != nil {
			return enc.EncodeValue(EncodeContext{e.registry, e.settings}, e.vw, reflect.ValueOf(val))
		}
	}
	doc, err := e.registry.marshal(e.settings, val)
	if err != nil {
		return err
	}
	return writeValue(e.vw, TypeEmbeddedDocument, doc)
}

// Reset makes the Encoder write to vw.
func (e *Encoder) Reset(vw ValueWriter) { e.vw = vw }

// SetRegistry makes the Encoder use r.
func (e *Encoder) SetRegistry(r *Registry) { e.registry = r }

// ErrorOnInlineDuplicates makes it an error if a field has the key of one that is inline. Two of
// one key at the same depth always are.
func (e *Encoder) ErrorOnInlineDuplicates() { e.settings.InlineOnce = true }

// IntMinSize encodes integers as 32-bit ones if they fit.
func (e *Encoder) IntMinSize() { e.settings.IntMinSize = true }

// NilByteSliceAsEmpty encodes a nil []byte as an empty binary instead of null.
func (e *Encoder) NilByteSliceAsEmpty() { e.settings.NilBytesAsEmpty = true }

// NilMapAsEmpty encodes a nil map as an empty document instead of null.
func (e *Encoder) NilMapAsEmpty() { e.settings.NilMapAsEmpty = true }

// NilSliceAsEmpty encodes a nil slice as an empty array instead of null.
func (e *Encoder) NilSliceAsEmpty() { e.settings.NilSliceAsEmpty = true }

// OmitEmpty leaves out empty fields as the tag omitempty does.
func (e *Encoder) OmitEmpty() { e.settings.OmitEmpty = true }

// OmitZeroStruct makes structs count as empty whose exported fields are all zero.
func (e *Encoder) OmitZeroStruct() { e.settings.OmitZeroStruct = true }

// StringifyMapKeysWithFmt makes keys of map keys as fmt.Sprint does.
func (e *Encoder) StringifyMapKeysWithFmt() { e.settings.FormatKeys = true }

// UseJSONStructTags takes the json tag of a field without a bson tag.
func (e *Encoder) UseJSONStructTags() { e.settings.JSONTags = true }

// A Decoder reads documents from a ValueReader.
type Decoder struct {
	vr       ValueReader
	registry *Registry
	settings settings
}

// NewDecoder returns a Decoder that reads from vr.
func NewDecoder(vr ValueReader) *Decoder { return &Decoder{vr: vr, registry: defaultRegistry} }

// Decode reads the next document into the variable that val points to, or into the map val.
func (d *Decoder) Decode(val any) error {
	v := reflect.ValueOf(val)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		if dec := d.registry.decoder(v.Type().Elem()); dec != nil {
			return dec.DecodeValue(DecodeContext{d.registry, d.settings}, d.vr, v.Elem())
		}
	}
	t, data, err := readWhole(d.vr)
	if err != nil {
		return err
	}
	return d.registry.unmarshal(d.settings, t, data, val)
}

// Reset makes the Decoder read from vr.
func (d *Decoder) Reset(vr ValueReader) { d.vr = vr }

// SetRegistry makes the Decoder use r.
func (d *Decoder) SetRegistry(r *Registry) { d.registry = r }

// AllowTruncatingDoubles decodes doubles into integers without their fraction.
func (d *Decoder) AllowTruncatingDoubles() { d.settings.Truncate = true }

// BinaryAsSlice decodes binaries of the subtypes generic and old into variables of type any as
// []byte.
func (d *Decoder) BinaryAsSlice() { d.settings.BinaryAsSlice = true }

// DefaultDocumentM decodes documents into variables of type any as M.
func (d *Decoder) DefaultDocumentM() { d.settings.DocumentM = true }

// DefaultDocumentMap decodes documents into variables of type any as map[string]any.
func (d *Decoder) DefaultDocumentMap() { d.settings.DocumentMap = true }

// ObjectIDAsHexString decodes ObjectIDs into strings as hexadecimal digits.
func (d *Decoder) ObjectIDAsHexString() { d.settings.Hex = true }

// UseJSONStructTags takes the json tag of a field without a bson tag.
func (d *Decoder) UseJSONStructTags() { d.settings.JSONTags = true }

// UseLocalTimeZone decodes times in the local time zone instead of UTC.
func (d *Decoder) UseLocalTimeZone() { d.settings.LocalTime = true }

// ZeroMaps empties maps before they are decoded into.
func (d *Decoder) ZeroMaps() { d.settings.ZeroMaps = true }

// ZeroStructs sets structs to zero before they are decoded into.
func (d *Decoder) ZeroStructs() { d.settings.ZeroStructs = true }
