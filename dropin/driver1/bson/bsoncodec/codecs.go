package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/bson/bsonoptions"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/v2/x/coding"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// wanted is what a codec is for: types or kinds.
type wanted struct {
	types []reflect.Type
	kinds []reflect.Kind
}

func typed[T any]() wanted { return wanted{types: []reflect.Type{reflect.TypeFor[T]()}} }

func kinds(k ...reflect.Kind) wanted { return wanted{kinds: k} }

func (w wanted) has(v reflect.Value) bool {
	if !v.IsValid() {
		return false
	}
	for _, t := range w.types {
		if v.Type() == t || t.Kind() == reflect.Interface && t.NumMethod() > 0 &&
			(v.Type().Implements(t) || reflect.PointerTo(v.Type()).Implements(t)) {
			return true
		}
	}
	for _, k := range w.kinds {
		if v.Kind() == k {
			return true
		}
	}
	return false
}

func (w wanted) encode(name string, ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value,
	change func(*coding.Settings)) error {
	if !w.has(val) {
		return ValueEncoderError{Name: name, Types: w.types, Kinds: w.kinds, Received: val}
	}
	if val.Kind() == reflect.Interface && !val.IsNil() {
		enc, err := ec.lookup().LookupEncoder(val.Elem().Type())
		if err != nil {
			return err
		}
		return enc.EncodeValue(ec, vw, val.Elem())
	}
	return ec.encode(vw, val, change)
}

func (w wanted) decode(name string, dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value,
	change func(*coding.Settings)) error {
	if !val.CanSet() || !w.has(val) {
		return ValueDecoderError{Name: name, Types: w.types, Kinds: w.kinds, Received: val}
	}
	return dc.decode(vr, val, change)
}

// lookup returns the registry, the driver's own if there is none.
func (ec EncodeContext) lookup() *Registry {
	if ec.Registry == nil {
		return plain
	}
	return ec.Registry
}

// An ArrayCodec is the codec of bsoncore.Array.
//
// Deprecated: a registry of bson.NewRegistry has it.
type ArrayCodec struct{}

// NewArrayCodec returns an ArrayCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewArrayCodec() *ArrayCodec { return &ArrayCodec{} }

// EncodeValue encodes an array.
func (ac *ArrayCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[bsoncore.Array]().encode("CoreArrayEncodeValue", ec, vw, val, nil)
}

// DecodeValue decodes into an array.
func (ac *ArrayCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[bsoncore.Array]().decode("CoreArrayDecodeValue", dc, vr, val, nil)
}

// A ByteSliceCodec is the codec of []byte.
//
// Deprecated: a registry of bson.NewRegistry has it.
type ByteSliceCodec struct {
	EncodeNilAsEmpty bool // a nil []byte is an empty binary instead of null
}

// NewByteSliceCodec returns a ByteSliceCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewByteSliceCodec(opts ...*bsonoptions.ByteSliceCodecOptions) *ByteSliceCodec {
	o := bsonoptions.MergeByteSliceCodecOptions(opts...)
	return &ByteSliceCodec{EncodeNilAsEmpty: is(o.EncodeNilAsEmpty)}
}

func is(b *bool) bool { return b != nil && *b }

// EncodeValue encodes a []byte.
func (bsc *ByteSliceCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[[]byte]().encode("ByteSliceEncodeValue", ec, vw, val, func(s *coding.Settings) {
		s.NilBytesAsEmpty = s.NilBytesAsEmpty || bsc.EncodeNilAsEmpty
	})
}

// DecodeValue decodes into a []byte.
func (bsc *ByteSliceCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[[]byte]().decode("ByteSliceDecodeValue", dc, vr, val, nil)
}

// An EmptyInterfaceCodec is the codec of variables of type any.
//
// Deprecated: a registry of bson.NewRegistry has it.
type EmptyInterfaceCodec struct {
	DecodeBinaryAsSlice bool // binaries of the subtypes generic and old become []byte
}

// NewEmptyInterfaceCodec returns an EmptyInterfaceCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewEmptyInterfaceCodec(opts ...*bsonoptions.EmptyInterfaceCodecOptions) *EmptyInterfaceCodec {
	o := bsonoptions.MergeEmptyInterfaceCodecOptions(opts...)
	return &EmptyInterfaceCodec{DecodeBinaryAsSlice: is(o.DecodeBinaryAsSlice)}
}

// EncodeValue encodes what a variable holds.
func (eic EmptyInterfaceCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return typed[any]().encode("EmptyInterfaceEncodeValue", ec, vw, val, nil)
}

// DecodeValue decodes into a variable.
func (eic EmptyInterfaceCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return typed[any]().decode("EmptyInterfaceDecodeValue", dc, vr, val, func(s *coding.Settings) {
		s.BinaryAsSlice = s.BinaryAsSlice || eic.DecodeBinaryAsSlice
	})
}

// A MapCodec is the codec of maps.
//
// Deprecated: a registry of bson.NewRegistry has it.
type MapCodec struct {
	DecodeZerosMap         bool // maps are emptied before they are decoded into
	EncodeNilAsEmpty       bool // a nil map is an empty document instead of null
	EncodeKeysWithStringer bool // keys are made as fmt.Sprint does
}

// NewMapCodec returns a MapCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewMapCodec(opts ...*bsonoptions.MapCodecOptions) *MapCodec {
	o := bsonoptions.MergeMapCodecOptions(opts...)
	return &MapCodec{is(o.DecodeZerosMap), is(o.EncodeNilAsEmpty), is(o.EncodeKeysWithStringer)}
}

// EncodeValue encodes a map.
func (mc *MapCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.Map).encode("MapEncodeValue", ec, vw, val, func(s *coding.Settings) {
		s.NilMapAsEmpty, s.FormatKeys = s.NilMapAsEmpty || mc.EncodeNilAsEmpty,
			s.FormatKeys || mc.EncodeKeysWithStringer
	})
}

// DecodeValue decodes into a map.
func (mc *MapCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.Map).decode("MapDecodeValue", dc, vr, val, func(s *coding.Settings) {
		s.ZeroMaps = s.ZeroMaps || mc.DecodeZerosMap
	})
}

// A PointerCodec is the codec of pointers.
//
// Deprecated: a registry of bson.NewRegistry has it.
type PointerCodec struct{ _ [0]func() }

// NewPointerCodec returns a PointerCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewPointerCodec() *PointerCodec { return &PointerCodec{} }

// EncodeValue encodes what a pointer points to, a nil one as null.
func (pc *PointerCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	if val.Kind() != reflect.Pointer {
		if !val.IsValid() {
			return vw.WriteNull()
		}
		return ValueEncoderError{Name: "PointerCodec.EncodeValue", Kinds: []reflect.Kind{reflect.Pointer},
			Received: val}
	}
	if val.IsNil() {
		return vw.WriteNull()
	}
	enc, err := ec.lookup().LookupEncoder(val.Type().Elem())
	if err != nil {
		return err
	}
	return enc.EncodeValue(ec, vw, val.Elem())
}

// DecodeValue decodes into what a pointer points to. Null makes it nil.
func (pc *PointerCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Kind() != reflect.Pointer {
		return ValueDecoderError{Name: "PointerCodec.DecodeValue", Kinds: []reflect.Kind{reflect.Pointer},
			Received: val}
	}
	switch vr.Type() {
	case bsontype.Null:
		val.SetZero()
		return vr.ReadNull()
	case bsontype.Undefined:
		val.SetZero()
		return vr.ReadUndefined()
	}
	r := dc.Registry
	if r == nil {
		r = plain
	}
	dec, err := r.LookupDecoder(val.Type().Elem())
	if err != nil {
		return err
	}
	if val.IsNil() {
		val.Set(reflect.New(val.Type().Elem()))
	}
	return dec.DecodeValue(dc, vr, val.Elem())
}

// A SliceCodec is the codec of slices.
//
// Deprecated: a registry of bson.NewRegistry has it.
type SliceCodec struct {
	EncodeNilAsEmpty bool // a nil slice is an empty array instead of null
}

// NewSliceCodec returns a SliceCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewSliceCodec(opts ...*bsonoptions.SliceCodecOptions) *SliceCodec {
	o := bsonoptions.MergeSliceCodecOptions(opts...)
	return &SliceCodec{EncodeNilAsEmpty: is(o.EncodeNilAsEmpty)}
}

// EncodeValue encodes a slice.
func (sc SliceCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return kinds(reflect.Slice).encode("SliceEncodeValue", ec, vw, val, func(s *coding.Settings) {
		s.NilSliceAsEmpty, s.NilBytesAsEmpty = s.NilSliceAsEmpty || sc.EncodeNilAsEmpty,
			s.NilBytesAsEmpty || sc.EncodeNilAsEmpty
	})
}

// DecodeValue decodes into a slice.
func (sc *SliceCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return kinds(reflect.Slice).decode("SliceDecodeValue", dc, vr, val, nil)
}

// A StringCodec is the codec of strings.
//
// Deprecated: a registry of bson.NewRegistry has it.
type StringCodec struct {
	DecodeObjectIDAsHex bool // an ObjectID becomes hexadecimal digits instead of its twelve bytes
}

// NewStringCodec returns a StringCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewStringCodec(opts ...*bsonoptions.StringCodecOptions) *StringCodec {
	o := bsonoptions.MergeStringCodecOptions(opts...)
	return &StringCodec{DecodeObjectIDAsHex: o.DecodeObjectIDAsHex == nil || *o.DecodeObjectIDAsHex}
}

// EncodeValue encodes a string.
func (sc *StringCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	if val.Kind() != reflect.String {
		return ValueEncoderError{Name: "StringEncodeValue", Kinds: []reflect.Kind{reflect.String}, Received: val}
	}
	return vw.WriteString(val.String())
}

// DecodeValue decodes into a string.
func (sc *StringCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	if !sc.DecodeObjectIDAsHex && val.CanSet() && val.Kind() == reflect.String && vr.Type() == bsontype.ObjectID {
		id, err := vr.ReadObjectID()
		val.SetString(string(id[:]))
		return err
	}
	return kinds(reflect.String).decode("StringDecodeValue", dc, vr, val, nil)
}

// A TimeCodec is the codec of time.Time.
//
// Deprecated: a registry of bson.NewRegistry has it.
type TimeCodec struct {
	UseLocalTimeZone bool // times are in the local time zone instead of UTC
}

// NewTimeCodec returns a TimeCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewTimeCodec(opts ...*bsonoptions.TimeCodecOptions) *TimeCodec {
	o := bsonoptions.MergeTimeCodecOptions(opts...)
	return &TimeCodec{UseLocalTimeZone: is(o.UseLocalTimeZone)}
}

// EncodeValue encodes a time.
func (tc *TimeCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return DefaultValueEncoders{}.TimeEncodeValue(ec, vw, val)
}

// DecodeValue decodes into a time.
func (tc *TimeCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	if tc.UseLocalTimeZone {
		dc.UseLocalTimeZone()
	}
	return DefaultValueDecoders{}.TimeDecodeValue(dc, vr, val)
}

// A UIntCodec is the codec of unsigned integers.
//
// Deprecated: a registry of bson.NewRegistry has it.
type UIntCodec struct {
	EncodeToMinSize bool // all but uint64 are 32-bit integers if they fit
}

// NewUIntCodec returns a UIntCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewUIntCodec(opts ...*bsonoptions.UIntCodecOptions) *UIntCodec {
	o := bsonoptions.MergeUIntCodecOptions(opts...)
	return &UIntCodec{EncodeToMinSize: is(o.EncodeToMinSize)}
}

// EncodeValue encodes an unsigned integer.
func (uic *UIntCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	if uic.EncodeToMinSize && val.IsValid() && val.Kind() != reflect.Uint64 {
		ec.MinSize = true
	}
	return DefaultValueEncoders{}.UintEncodeValue(ec, vw, val)
}

// DecodeValue decodes into an unsigned integer.
func (uic *UIntCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return DefaultValueDecoders{}.UintDecodeValue(dc, vr, val)
}
