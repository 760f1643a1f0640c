package bsoncodec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/bson/bsonoptions"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// StructTags are what the tag of a field says.
type StructTags struct {
	Name      string // the key
	OmitEmpty bool   // an empty value is left out
	MinSize   bool   // an integer is a 32-bit one if it fits
	Truncate  bool   // a number loses its fraction, or precision
	Inline    bool   // the fields of a struct, or the entries of a map, are fields of this one
	Skip      bool   // the field is left out
}

// A StructTagParser says what the tags of fields mean.
//
// Deprecated: use the tags that the driver knows.
type StructTagParser interface {
	ParseStructTags(reflect.StructField) (StructTags, error)
}

// A StructTagParserFunc is a function that is a StructTagParser.
//
// Deprecated: use the tags that the driver knows.
type StructTagParserFunc func(reflect.StructField) (StructTags, error)

// ParseStructTags calls stpf.
func (stpf StructTagParserFunc) ParseStructTags(sf reflect.StructField) (StructTags, error) {
	return stpf(sf)
}

// DefaultStructTagParser takes the tag named bson, and one that has no name.
var DefaultStructTagParser StructTagParserFunc = func(sf reflect.StructField) (StructTags, error) {
	return parseTag(sf, "bson"), nil
}

// JSONFallbackStructTagParser is DefaultStructTagParser, and takes the tag named json where there
// is none named bson.
//
// Deprecated: use bson.Encoder.UseJSONStructTags and bson.Decoder.UseJSONStructTags.
var JSONFallbackStructTagParser StructTagParserFunc = func(sf reflect.StructField) (StructTags, error) {
	return parseTag(sf, "bson", "json"), nil
}

func parseTag(sf reflect.StructField, names ...string) StructTags {
	tags := StructTags{Name: strings.ToLower(sf.Name)}
	text, found := "", false
	for _, name := range names {
		if text, found = sf.Tag.Lookup(name); found {
			break
		}
	}
	if !found && !strings.Contains(string(sf.Tag), ":") {
		text = string(sf.Tag)
	}
	if text == "-" {
		return StructTags{Skip: true}
	}
	if name, _, _ := strings.Cut(text, ","); name != "" {
		tags.Name = name
	}
	for option := range strings.SplitSeq(text, ",") { // the name may be one
		switch option {
		case "omitempty":
			tags.OmitEmpty = true
		case "minsize":
			tags.MinSize = true
		case "truncate":
			tags.Truncate = true
		case "inline":
			tags.Inline = true
		}
	}
	return tags
}

// A StructCodec is the codec of structs.
//
// Deprecated: a registry of bson.NewRegistry has it.
type StructCodec struct {
	DecodeZeroStruct                 bool // structs are set to zero before they are decoded into
	DecodeDeepZeroInline             bool // the same for those that are inline
	EncodeOmitDefaultStruct          bool // structs whose exported fields are all zero count as empty
	AllowUnexportedFields            bool // has no effect, as in all newer versions of Go
	OverwriteDuplicatedInlinedFields bool // a field takes the place of one of the same key that is inline

	parser StructTagParser
	plain  *sync.Map // reflect.Type -> a struct type of the same memory, with tags that the driver knows, or an error
}

// NewStructCodec returns a StructCodec.
//
// Deprecated: a registry of bson.NewRegistry has it.
func NewStructCodec(p StructTagParser, opts ...*bsonoptions.StructCodecOptions) (*StructCodec, error) {
	if p == nil {
		return nil, errors.New("a StructTagParser must be provided to NewStructCodec")
	}
	o := bsonoptions.MergeStructCodecOptions(opts...)
	return &StructCodec{
		DecodeZeroStruct: is(o.DecodeZeroStruct), DecodeDeepZeroInline: is(o.DecodeDeepZeroInline),
		EncodeOmitDefaultStruct: is(o.EncodeOmitDefaultStruct),
		AllowUnexportedFields:   is(o.AllowUnexportedFields),
		OverwriteDuplicatedInlinedFields: o.OverwriteDuplicatedInlinedFields == nil ||
			*o.OverwriteDuplicatedInlinedFields,
		parser: p, plain: new(sync.Map),
	}, nil
}

// EncodeValue encodes a struct.
func (sc *StructCodec) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Kind() != reflect.Struct {
		return ValueEncoderError{Name: "StructCodec.EncodeValue", Kinds: []reflect.Kind{reflect.Struct}, Received: val}
	}
	hasAddress := val.CanAddr()
	if !hasAddress {
		p := reflect.New(val.Type())
		p.Elem().Set(val)
		val = p.Elem()
	}
	val, err := sc.view(val)
	if err != nil {
		return err
	}
	if !hasAddress {
		val = reflect.ValueOf(val.Interface())
	}
	return ec.encode(vw, val, func(s *coding.Settings) {
		s.OmitZeroStruct = s.OmitZeroStruct || sc.EncodeOmitDefaultStruct
	})
}

// DecodeValue decodes into a struct.
func (sc *StructCodec) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Kind() != reflect.Struct {
		return ValueDecoderError{Name: "StructCodec.DecodeValue", Kinds: []reflect.Kind{reflect.Struct}, Received: val}
	}
	val, err := sc.view(val)
	if err != nil {
		return err
	}
	return dc.decode(vr, val, func(s *coding.Settings) { s.ZeroStructs = s.ZeroStructs || sc.DecodeZeroStruct })
}

// view returns the variable val as one of a type without methods whose tags say what the parser
// does.
func (sc *StructCodec) view(val reflect.Value) (reflect.Value, error) {
	made, ok := sc.plain.Load(val.Type())
	if !ok {
		t, err := sc.plainType(val.Type())
		if made = any(t); err != nil {
			made = err
		}
		sc.plain.Store(val.Type(), made)
	}
	if err, failed := made.(error); failed {
		return reflect.Value{}, err
	}
	return reflect.NewAt(made.(reflect.Type), val.Addr().UnsafePointer()).Elem(), nil
}

func (sc *StructCodec) plainType(t reflect.Type) (reflect.Type, error) {
	fields := make([]reflect.StructField, t.NumField())
	for i := range fields {
		sf := t.Field(i)
		if !sf.IsExported() && !sf.Anonymous || sf.Anonymous && !sf.IsExported() && sf.Type.Kind() != reflect.Struct {
			fields[i] = hidden(i, sf.Type)
			continue
		}
		tags, err := sc.parser.ParseStructTags(sf)
		if err != nil {
			return nil, err
		}
		if tags.Skip || !sf.IsExported() && !tags.Inline {
			fields[i] = hidden(i, sf.Type)
			continue
		}
		tag := tags.Name
		for _, option := range []struct {
			set  bool
			name string
		}{{tags.OmitEmpty, "omitempty"}, {tags.MinSize, "minsize"}, {tags.Truncate, "truncate"},
			{tags.Inline, "inline"}} {
			if option.set {
				tag += "," + option.name
			}
		}
		inner := sf.Type
		if tags.Inline && inner.Kind() == reflect.Struct {
			if inner, err = sc.plainType(inner); err != nil {
				return nil, err
			}
		}
		fields[i] = reflect.StructField{Name: fmt.Sprintf("Field%d_%s", i, sf.Name), Type: inner,
			Tag: reflect.StructTag(fmt.Sprintf("bson:%q", tag))}
	}
	return reflect.StructOf(fields), nil
}

// hidden is a field that is there for its memory only.
func hidden(i int, t reflect.Type) reflect.StructField {
	return reflect.StructField{Name: fmt.Sprintf("Hidden%d", i), Type: t, Tag: `bson:"-"`}
}
