// Package bsonoptions has the settings of the codecs of package bsoncodec.
package bsonoptions

// last sets a field to a value that is set.
func last(to **bool, value *bool) {
	if value != nil {
		*to = value
	}
}

// ByteSliceCodecOptions are the settings of a ByteSliceCodec.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
type ByteSliceCodecOptions struct {
	EncodeNilAsEmpty *bool // a nil []byte is an empty binary instead of null
}

// ByteSliceCodec returns settings that set nothing.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
func ByteSliceCodec() *ByteSliceCodecOptions { return &ByteSliceCodecOptions{} }

// SetEncodeNilAsEmpty sets EncodeNilAsEmpty.
func (bs *ByteSliceCodecOptions) SetEncodeNilAsEmpty(b bool) *ByteSliceCodecOptions {
	bs.EncodeNilAsEmpty = &b
	return bs
}

// MergeByteSliceCodecOptions merges settings: of each the last that is set counts.
//
// Deprecated: use one.
func MergeByteSliceCodecOptions(opts ...*ByteSliceCodecOptions) *ByteSliceCodecOptions {
	merged := ByteSliceCodec()
	for _, o := range opts {
		if o == nil {
			continue
		}
		last(&merged.EncodeNilAsEmpty, o.EncodeNilAsEmpty)
	}
	return merged
}

// EmptyInterfaceCodecOptions are the settings of a EmptyInterfaceCodec.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
type EmptyInterfaceCodecOptions struct {
	DecodeBinaryAsSlice *bool // binaries of the subtypes generic and old become []byte
}

// EmptyInterfaceCodec returns settings that set nothing.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
func EmptyInterfaceCodec() *EmptyInterfaceCodecOptions { return &EmptyInterfaceCodecOptions{} }

// SetDecodeBinaryAsSlice sets DecodeBinaryAsSlice.
func (e *EmptyInterfaceCodecOptions) SetDecodeBinaryAsSlice(b bool) *EmptyInterfaceCodecOptions {
	e.DecodeBinaryAsSlice = &b
	return e
}

// MergeEmptyInterfaceCodecOptions merges settings: of each the last that is set counts.
//
// Deprecated: use one.
func MergeEmptyInterfaceCodecOptions(opts ...*EmptyInterfaceCodecOptions) *EmptyInterfaceCodecOptions {
	merged := EmptyInterfaceCodec()
	for _, o := range opts {
		if o == nil {
			continue
		}
		last(&merged.DecodeBinaryAsSlice, o.DecodeBinaryAsSlice)
	}
	return merged
}

// MapCodecOptions are the settings of a MapCodec.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
type MapCodecOptions struct {
	DecodeZerosMap         *bool // maps are emptied before they are decoded into
	EncodeNilAsEmpty       *bool // a nil map is an empty document instead of null
	EncodeKeysWithStringer *bool // keys are made as fmt.Sprint does
}

// MapCodec returns settings that set nothing.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
func MapCodec() *MapCodecOptions { return &MapCodecOptions{} }

// SetDecodeZerosMap sets DecodeZerosMap.
func (t *MapCodecOptions) SetDecodeZerosMap(b bool) *MapCodecOptions {
	t.DecodeZerosMap = &b
	return t
}

// SetEncodeNilAsEmpty sets EncodeNilAsEmpty.
func (t *MapCodecOptions) SetEncodeNilAsEmpty(b bool) *MapCodecOptions {
	t.EncodeNilAsEmpty = &b
	return t
}

// SetEncodeKeysWithStringer sets EncodeKeysWithStringer.
func (t *MapCodecOptions) SetEncodeKeysWithStringer(b bool) *MapCodecOptions {
	t.EncodeKeysWithStringer = &b
	return t
}

// MergeMapCodecOptions merges settings: of each the last that is set counts.
//
// Deprecated: use one.
func MergeMapCodecOptions(opts ...*MapCodecOptions) *MapCodecOptions {
	merged := MapCodec()
	for _, o := range opts {
		if o == nil {
			continue
		}
		last(&merged.DecodeZerosMap, o.DecodeZerosMap)
		last(&merged.EncodeNilAsEmpty, o.EncodeNilAsEmpty)
		last(&merged.EncodeKeysWithStringer, o.EncodeKeysWithStringer)
	}
	return merged
}

// SliceCodecOptions are the settings of a SliceCodec.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
type SliceCodecOptions struct {
	EncodeNilAsEmpty *bool // a nil slice is an empty array instead of null
}

// SliceCodec returns settings that set nothing.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
func SliceCodec() *SliceCodecOptions { return &SliceCodecOptions{} }

// SetEncodeNilAsEmpty sets EncodeNilAsEmpty.
func (s *SliceCodecOptions) SetEncodeNilAsEmpty(b bool) *SliceCodecOptions {
	s.EncodeNilAsEmpty = &b
	return s
}

// MergeSliceCodecOptions merges settings: of each the last that is set counts.
//
// Deprecated: use one.
func MergeSliceCodecOptions(opts ...*SliceCodecOptions) *SliceCodecOptions {
	merged := SliceCodec()
	for _, o := range opts {
		if o == nil {
			continue
		}
		last(&merged.EncodeNilAsEmpty, o.EncodeNilAsEmpty)
	}
	return merged
}

// StringCodecOptions are the settings of a StringCodec.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
type StringCodecOptions struct {
	DecodeObjectIDAsHex *bool // an ObjectID becomes hexadecimal digits instead of its twelve bytes; it is on by default
}

// StringCodec returns settings that set nothing.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
func StringCodec() *StringCodecOptions { return &StringCodecOptions{} }

// SetDecodeObjectIDAsHex sets DecodeObjectIDAsHex.
func (t *StringCodecOptions) SetDecodeObjectIDAsHex(b bool) *StringCodecOptions {
	t.DecodeObjectIDAsHex = &b
	return t
}

// MergeStringCodecOptions merges settings: of each the last that is set counts.
//
// Deprecated: use one.
func MergeStringCodecOptions(opts ...*StringCodecOptions) *StringCodecOptions {
	merged := StringCodec()
	for _, o := range opts {
		if o == nil {
			continue
		}
		last(&merged.DecodeObjectIDAsHex, o.DecodeObjectIDAsHex)
	}
	return merged
}

// StructCodecOptions are the settings of a StructCodec.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
type StructCodecOptions struct {
	DecodeZeroStruct        *bool // structs are set to zero before they are decoded into
	DecodeDeepZeroInline    *bool // the same for those that are inline
	EncodeOmitDefaultStruct *bool // structs whose exported fields are all zero count as empty
	AllowUnexportedFields   *bool // has no effect
	// a field takes the place of one of the same key that is inline; it is on by default
	OverwriteDuplicatedInlinedFields *bool
}

// StructCodec returns settings that set nothing.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
func StructCodec() *StructCodecOptions { return &StructCodecOptions{} }

// SetDecodeZeroStruct sets DecodeZeroStruct.
func (t *StructCodecOptions) SetDecodeZeroStruct(b bool) *StructCodecOptions {
	t.DecodeZeroStruct = &b
	return t
}

// SetDecodeDeepZeroInline sets DecodeDeepZeroInline.
func (t *StructCodecOptions) SetDecodeDeepZeroInline(b bool) *StructCodecOptions {
	t.DecodeDeepZeroInline = &b
	return t
}

// SetEncodeOmitDefaultStruct sets EncodeOmitDefaultStruct.
func (t *StructCodecOptions) SetEncodeOmitDefaultStruct(b bool) *StructCodecOptions {
	t.EncodeOmitDefaultStruct = &b
	return t
}

// SetAllowUnexportedFields sets AllowUnexportedFields.
func (t *StructCodecOptions) SetAllowUnexportedFields(b bool) *StructCodecOptions {
	t.AllowUnexportedFields = &b
	return t
}

// SetOverwriteDuplicatedInlinedFields sets OverwriteDuplicatedInlinedFields.
func (t *StructCodecOptions) SetOverwriteDuplicatedInlinedFields(b bool) *StructCodecOptions {
	t.OverwriteDuplicatedInlinedFields = &b
	return t
}

// MergeStructCodecOptions merges settings: of each the last that is set counts.
//
// Deprecated: use one.
func MergeStructCodecOptions(opts ...*StructCodecOptions) *StructCodecOptions {
	merged := StructCodec()
	for _, o := range opts {
		if o == nil {
			continue
		}
		last(&merged.DecodeZeroStruct, o.DecodeZeroStruct)
		last(&merged.DecodeDeepZeroInline, o.DecodeDeepZeroInline)
		last(&merged.EncodeOmitDefaultStruct, o.EncodeOmitDefaultStruct)
		last(&merged.AllowUnexportedFields, o.AllowUnexportedFields)
		last(&merged.OverwriteDuplicatedInlinedFields, o.OverwriteDuplicatedInlinedFields)
	}
	return merged
}

// TimeCodecOptions are the settings of a TimeCodec.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
type TimeCodecOptions struct {
	UseLocalTimeZone *bool // times are in the local time zone instead of UTC
}

// TimeCodec returns settings that set nothing.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
func TimeCodec() *TimeCodecOptions { return &TimeCodecOptions{} }

// SetUseLocalTimeZone sets UseLocalTimeZone.
func (t *TimeCodecOptions) SetUseLocalTimeZone(b bool) *TimeCodecOptions {
	t.UseLocalTimeZone = &b
	return t
}

// MergeTimeCodecOptions merges settings: of each the last that is set counts.
//
// Deprecated: use one.
func MergeTimeCodecOptions(opts ...*TimeCodecOptions) *TimeCodecOptions {
	merged := TimeCodec()
	for _, o := range opts {
		if o == nil {
			continue
		}
		last(&merged.UseLocalTimeZone, o.UseLocalTimeZone)
	}
	return merged
}

// UIntCodecOptions are the settings of a UIntCodec.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
type UIntCodecOptions struct {
	EncodeToMinSize *bool // all but uint64 are 32-bit integers if they fit
}

// UIntCodec returns settings that set nothing.
//
// Deprecated: use the methods of bson.Encoder and bson.Decoder.
func UIntCodec() *UIntCodecOptions { return &UIntCodecOptions{} }

// SetEncodeToMinSize sets EncodeToMinSize.
func (u *UIntCodecOptions) SetEncodeToMinSize(b bool) *UIntCodecOptions {
	u.EncodeToMinSize = &b
	return u
}

// MergeUIntCodecOptions merges settings: of each the last that is set counts.
//
// Deprecated: use one.
func MergeUIntCodecOptions(opts ...*UIntCodecOptions) *UIntCodecOptions {
	merged := UIntCodec()
	for _, o := range opts {
		if o == nil {
			continue
		}
		last(&merged.EncodeToMinSize, o.EncodeToMinSize)
	}
	return merged
}
