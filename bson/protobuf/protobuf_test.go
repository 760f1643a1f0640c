package protobuf_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"allium/bson"
	"allium/bson/protobuf"
)

// The messages of the tests: everything that proto3 has, and what only proto2 has.
const schema3 = `
name: "all.proto" package: "test" syntax: "proto3"
dependency: ["google/protobuf/any.proto", "google/protobuf/duration.proto", "google/protobuf/field_mask.proto",
	"google/protobuf/struct.proto", "google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"]
enum_type { name: "Color"
	value { name: "NONE" number: 0 } value { name: "RED" number: 1 } value { name: "BLUE" number: -7 } }
message_type {
	name: "All"
	field { name: "a_bool" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL }
	field { name: "an_int32" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
	field { name: "a_sint64" number: 3 type: TYPE_SINT64 label: LABEL_OPTIONAL }
	field { name: "a_fixed32" number: 4 type: TYPE_FIXED32 label: LABEL_OPTIONAL }
	field { name: "an_uint64" number: 5 type: TYPE_UINT64 label: LABEL_OPTIONAL }
	field { name: "a_float" number: 6 type: TYPE_FLOAT label: LABEL_OPTIONAL }
	field { name: "a_double" number: 7 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
	field { name: "a_string" number: 8 type: TYPE_STRING label: LABEL_OPTIONAL }
	field { name: "some_bytes" number: 9 type: TYPE_BYTES label: LABEL_OPTIONAL }
	field { name: "color" number: 10 type: TYPE_ENUM type_name: ".test.Color" label: LABEL_OPTIONAL }
	field { name: "maybe" number: 11 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 1 }
	field { name: "inner" number: 12 type: TYPE_MESSAGE type_name: ".test.All" label: LABEL_OPTIONAL }
	field { name: "left" number: 13 type: TYPE_INT32 label: LABEL_OPTIONAL oneof_index: 0 }
	field { name: "right" number: 14 type: TYPE_MESSAGE type_name: ".google.protobuf.Value"
		label: LABEL_OPTIONAL oneof_index: 0 }
	field { name: "nothing" number: 15 type: TYPE_ENUM type_name: ".google.protobuf.NullValue"
		label: LABEL_OPTIONAL oneof_index: 0 }
	field { name: "numbers" number: 20 type: TYPE_SFIXED32 label: LABEL_REPEATED }
	field { name: "texts" number: 21 type: TYPE_STRING label: LABEL_REPEATED }
	field { name: "inners" number: 22 type: TYPE_MESSAGE type_name: ".test.All" label: LABEL_REPEATED }
	field { name: "by_name" number: 23 type: TYPE_MESSAGE type_name: ".test.All.ByNameEntry" label: LABEL_REPEATED }
	field { name: "by_number" number: 24 type: TYPE_MESSAGE type_name: ".test.All.ByNumberEntry" label: LABEL_REPEATED }
	field { name: "by_truth" number: 25 type: TYPE_MESSAGE type_name: ".test.All.ByTruthEntry" label: LABEL_REPEATED }
	field { name: "at" number: 30 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
	field { name: "took" number: 31 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL }
	field { name: "wrapped" number: 32 type: TYPE_MESSAGE type_name: ".google.protobuf.UInt32Value"
		label: LABEL_OPTIONAL }
	field { name: "extra" number: 33 type: TYPE_MESSAGE type_name: ".google.protobuf.Struct" label: LABEL_OPTIONAL }
	field { name: "list" number: 34 type: TYPE_MESSAGE type_name: ".google.protobuf.ListValue" label: LABEL_OPTIONAL }
	field { name: "mask" number: 35 type: TYPE_MESSAGE type_name: ".google.protobuf.FieldMask" label: LABEL_OPTIONAL }
	field { name: "any" number: 36 type: TYPE_MESSAGE type_name: ".google.protobuf.Any" label: LABEL_OPTIONAL }
	field { name: "dates" number: 37 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_REPEATED }
	oneof_decl { name: "side" }
	oneof_decl { name: "_maybe" }
	nested_type { name: "ByNameEntry" options { map_entry: true }
		field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".test.All" label: LABEL_OPTIONAL } }
	nested_type { name: "ByNumberEntry" options { map_entry: true }
		field { name: "key" number: 1 type: TYPE_SINT32 label: LABEL_OPTIONAL }
		field { name: "value" number: 2 type: TYPE_ENUM type_name: ".test.Color" label: LABEL_OPTIONAL } }
	nested_type { name: "ByTruthEntry" options { map_entry: true }
		field { name: "key" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL }
		field { name: "value" number: 2 type: TYPE_UINT64 label: LABEL_OPTIONAL } }
}`

const schema2 = `
name: "old.proto" package: "test2" syntax: "proto2"
enum_type { name: "Closed" value { name: "ONE" number: 1 } }
message_type {
	name: "Old"
	field { name: "must" number: 1 type: TYPE_INT32 label: LABEL_REQUIRED }
	field { name: "e" number: 2 type: TYPE_ENUM type_name: ".test2.Closed" label: LABEL_OPTIONAL }
	field { name: "s" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL default_value: "x" }
	extension_range { start: 100 end: 200 }
}
extension { name: "more" number: 100 type: TYPE_STRING label: LABEL_REPEATED extendee: ".test2.Old" }
extension { name: "deep" number: 101 type: TYPE_MESSAGE type_name: ".test2.Old" label: LABEL_OPTIONAL
	extendee: ".test2.Old" }`

var all, old = message(schema3, "All"), message(schema2, "Old")

// types finds the tests' messages and extensions.
var types = new(protoregistry.Types)

type resolver struct{ *protoregistry.Types }

// FindMessageByURL also finds what is linked in.
func (r resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if t, err := r.Types.FindMessageByURL(url); err == nil {
		return t, nil
	}
	return protoregistry.GlobalTypes.FindMessageByURL(url)
}

func message(schema string, name protoreflect.Name) protoreflect.MessageDescriptor {
	var file descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(schema), &file); err != nil {
		panic(err)
	}
	d, err := protodesc.NewFile(&file, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	if err := types.RegisterMessage(dynamicpb.NewMessageType(d.Messages().Get(0))); err != nil {
		panic(err)
	}
	for i := range d.Extensions().Len() {
		if err := types.RegisterExtension(dynamicpb.NewExtensionType(d.Extensions().Get(i))); err != nil {
			panic(err)
		}
	}
	return d.Messages().ByName(name)
}

func options(t testing.TB, o protobuf.Options) bson.Options {
	t.Helper()
	o.Resolver = resolver{types}
	set, err := bson.NewCodecs(protobuf.Messages(o))
	if err != nil {
		t.Fatal(err)
	}
	return bson.Options{Codecs: set}
}

// fill sets random fields of a message.
func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	switch m.Descriptor().FullName() {
	case "google.protobuf.Timestamp":
		m.Set(fields.ByNumber(1), protoreflect.ValueOfInt64(r.Int64N(1<<36)-1<<35))
		m.Set(fields.ByNumber(2), protoreflect.ValueOfInt32(r.Int32N(1000)*1e6))
		return
	case "google.protobuf.Duration":
		proto.Merge(m.Interface(), like(m, durationpb.New(time.Duration(r.Int64()-r.Int64()))))
		return
	case "google.protobuf.FieldMask":
		for range r.IntN(3) {
			m.Mutable(fields.ByNumber(1)).List().Append(protoreflect.ValueOfString("a.b"))
		}
		return
	case "google.protobuf.Any":
		held := []proto.Message{
			dynamicpb.NewMessage(all), &structpb.Struct{}, timestamppb.New(time.Unix(5, 0)), &anypb.Any{},
		}[r.IntN(4)]
		if r.IntN(2) == 0 && held.ProtoReflect().Descriptor().Name() != "Any" {
			fill(r, held.ProtoReflect(), depth+1)
		}
		packed := new(anypb.Any)
		if err := anypb.MarshalFrom(packed, held, proto.MarshalOptions{Deterministic: true}); err != nil {
			panic(err)
		}
		proto.Merge(m.Interface(), like(m, packed))
		return
	case "google.protobuf.Value":
		if depth > 5 {
			m.Set(fields.ByName("bool_value"), protoreflect.ValueOfBool(true))
			return
		}
		for m.WhichOneof(m.Descriptor().Oneofs().Get(0)) == nil {
			f := fields.Get(r.IntN(fields.Len()))
			m.Set(f, random(r, f, m.NewField(f), depth))
		}
		return
	}
	for i := range fields.Len() {
		f := fields.Get(i)
		if r.IntN(4) > 0 || depth > 3 && f.Message() != nil {
			continue
		}
		v := m.NewField(f)
		switch {
		case f.IsList():
			for range r.IntN(3) {
				v.List().Append(random(r, f, v.List().NewElement(), depth))
			}
		case f.IsMap():
			for range r.IntN(4) {
				key := random(r, f.MapKey(), protoreflect.Value{}, depth)
				v.Map().Set(key.MapKey(), random(r, f.MapValue(), v.Map().NewValue(), depth))
			}
		default:
			v = random(r, f, v, depth)
		}
		m.Set(f, v)
	}
}

// like returns m with the type of a dynamic message.
func like(of protoreflect.Message, m proto.Message) proto.Message {
	raw, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	same := of.New().Interface()
	if err := proto.Unmarshal(raw, same); err != nil {
		panic(err)
	}
	return same
}

func random(r *rand.Rand, f protoreflect.FieldDescriptor, empty protoreflect.Value, depth int) protoreflect.Value {
	n := int64(r.Uint64()) >> r.IntN(64)
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 0)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(r.NormFloat64()))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(r.NormFloat64() * 1e100)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString([]string{"", "ä.b", "$c", "x\ny"}[r.IntN(4)])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(make([]byte, r.IntN(4)))
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		if i := r.IntN(values.Len() + 1); i < values.Len() {
			return protoreflect.ValueOfEnum(values.Get(i).Number())
		}
		if f.Enum().IsClosed() || f.Enum().FullName() == "google.protobuf.NullValue" {
			return protoreflect.ValueOfEnum(values.Get(0).Number())
		}
		return protoreflect.ValueOfEnum(77)
	}
	fill(r, empty.Message(), depth+1)
	return empty
}

func text(m proto.Message) string {
	return prototext.MarshalOptions{AllowPartial: true, Resolver: resolver{types}}.Format(m)
}

// What was encoded comes back, and equal messages are equal documents.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	snake := func(f protoreflect.FieldDescriptor) string { return string(f.Name()) }
	for _, d := range []protoreflect.MessageDescriptor{all, old} {
		for _, settings := range []protobuf.Options{
			{}, {DefaultValues: true}, {EnumNumbers: true}, {Name: snake, AllowPartial: true},
		} {
			o := options(t, settings)
			for range 300 {
				want := dynamicpb.NewMessage(d)
				fill(r, want, 0)
				if d == old {
					want.Set(d.Fields().ByName("must"), protoreflect.ValueOfInt32(5))
					fillExtensions(r, want)
				}
				raw, err := o.Marshal(want)
				if err != nil {
					t.Fatalf("%v\n%v", text(want), err)
				}
				got := dynamicpb.NewMessage(d)
				if err := o.Unmarshal(raw, got); err != nil {
					t.Fatalf("%v\n%v\n%v", text(want), bson.Raw(raw), err)
				}
				if !same(got, want) {
					t.Fatalf("%v\ncame back from %v as\n%v", text(want), bson.Raw(raw), text(got))
				}
				if again, err := o.Marshal(got); err != nil || !bson.Equal(again, raw) {
					t.Fatalf("%v came back as %v: %v", bson.Raw(raw), bson.Raw(again), err)
				}
			}
		}
	}
}

func fillExtensions(r *rand.Rand, m *dynamicpb.Message) {
	more, err := types.FindExtensionByName("test2.more")
	if err != nil {
		panic(err)
	}
	deep, err := types.FindExtensionByName("test2.deep")
	if err != nil {
		panic(err)
	}
	if r.IntN(2) == 0 {
		m.Mutable(more.TypeDescriptor()).List().Append(protoreflect.ValueOfString("one"))
	}
	if r.IntN(2) == 0 {
		inner := m.NewField(deep.TypeDescriptor())
		inner.Message().Set(old.Fields().ByName("must"), protoreflect.ValueOfInt32(1))
		m.Set(deep.TypeDescriptor(), inner)
	}
}

// same compares messages. What an Any holds is compared as bytes of a fixed order.
func same(a, b proto.Message) bool {
	o := proto.MarshalOptions{Deterministic: true, AllowPartial: true}
	x, err := o.Marshal(a)
	if err != nil {
		panic(err)
	}
	y, err := o.Marshal(b)
	if err != nil {
		panic(err)
	}
	return string(x) == string(y)
}

// A message has the keys and values of protobuf's own JSON, but where BSON has a type and JSON has
// none.
func TestLikeJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 600 {
		m := dynamicpb.NewMessage(all)
		fill(r, m, 0)
		defaults, numbers := i%2 == 0, i%3 == 0
		raw, err := options(t, protobuf.Options{DefaultValues: defaults, EnumNumbers: numbers}).Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		js, err := protojson.MarshalOptions{
			EmitDefaultValues: defaults, UseEnumNumbers: numbers, Resolver: resolver{types},
		}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(js, &want); err != nil {
			t.Fatal(err)
		}
		if why := differs(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}, want); why != "" {
			t.Fatalf("%s\n%v\n%s", why, bson.Raw(raw), js)
		}
	}
}

// differs says in what a BSON value differs from one of JSON.
func differs(v bson.RawValue, want any) string {
	switch want := want.(type) {
	case map[string]any:
		doc, ok := v.Document()
		if !ok {
			return fmt.Sprintf("%v is no document", v)
		}
		n := 0
		for key, v := range doc.All() {
			n++
			w, ok := want[key]
			if !ok {
				return key + " is not in JSON"
			}
			if why := differs(v, w); why != "" {
				return key + ": " + why
			}
		}
		if n != len(want) {
			return fmt.Sprintf("%d fields, %d in JSON", n, len(want))
		}
	case []any:
		array, ok := v.Array()
		elements := slices.Collect(array.Values())
		if !ok || len(elements) != len(want) {
			return fmt.Sprintf("%v, %v in JSON", v, want)
		}
		for i, v := range elements {
			if why := differs(v, want[i]); why != "" {
				return why
			}
		}
	case string:
		text, ok := v.StringValue()
		if whole := slices.Contains([]bson.Type{
			bson.TypeInt64, bson.TypeDecimal128, bson.TypeDateTime, bson.TypeBinary,
		}, v.Type); !whole && (!ok || text != want) {
			return fmt.Sprintf("%v, %q in JSON", v, want)
		}
	case float64:
		n, err := bson.MarshalValue(want)
		if x, ok := v.Int32(); ok {
			n, err = bson.MarshalValue(float64(x))
			v = bson.RawValue{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, want)}
		}
		if v.Type == bson.TypeInt64 { // of 32 bits without a sign
			break
		}
		x, ok := v.Double()
		if !ok || float32(x) != float32(want) && !math.IsInf(float64(float32(x)), 0) || err != nil {
			return fmt.Sprintf("%v, %v in JSON", v, n)
		}
	case bool:
		if b, ok := v.Boolean(); !ok || b != want {
			return fmt.Sprintf("%v, %v in JSON", v, want)
		}
	case nil:
		if v.Type != bson.TypeNull {
			return fmt.Sprintf("%v, null in JSON", v)
		}
	}
	return ""
}

// document is a program's own type that has messages where they may stand.
type document struct {
	ID    int                            `bson:"_id"`
	At    *timestamppb.Timestamp         `bson:"at"`
	None  *timestamppb.Timestamp         `bson:"none"`
	Took  *durationpb.Duration           `bson:"took"`
	N     *wrapperspb.UInt64Value        `bson:"n"`
	Any   *anypb.Any                     `bson:"any"`
	Mask  *fieldmaskpb.FieldMask         `bson:"mask"`
	Extra *structpb.Struct               `bson:"extra"`
	List  []*structpb.Value              `bson:"list"`
	By    map[string]*structpb.ListValue `bson:"by"`
	More  Embeds                         `bson:"more"`
}

// Embeds has the methods of a message, and is none.
type Embeds struct {
	*wrapperspb.BoolValue `bson:"-"`
	proto.Message         `bson:"-"`

	X int `bson:"x"`
}

func TestForms(t *testing.T) {
	o := options(t, protobuf.Options{})
	extra, err := structpb.NewStruct(map[string]any{"z": 1, "a": []any{true, nil, "x"}, "m": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := anypb.New(durationpb.New(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	want := document{
		ID: 1, At: timestamppb.New(time.UnixMilli(86400123)), Took: durationpb.New(-1500 * time.Millisecond),
		N: wrapperspb.UInt64(math.MaxUint64), Any: packed, Mask: &fieldmaskpb.FieldMask{Paths: []string{"a", "b.c_d"}},
		Extra: extra, List: []*structpb.Value{structpb.NewNullValue(), structpb.NewNumberValue(1)},
		By:   map[string]*structpb.ListValue{"k": {Values: []*structpb.Value{structpb.NewStringValue("v")}}},
		More: Embeds{X: 7},
	}
	raw, err := o.Marshal(want)
	const form = `{"_id":1,"at":{"$date":"1970-01-02T00:00:00.123Z"},"none":null,"took":-1500000000,` +
		`"n":{"$numberDecimal":"18446744073709551615"},` +
		`"any":{"@type":"type.googleapis.com/google.protobuf.Duration","value":1000000000},"mask":"a,b.c_d",` +
		`"extra":{"a":[true,null,"x"],"m":{},"z":1.0},"list":[null,1.0],"by":{"k":["v"]},"more":{"x":7}}`
	if got := bson.Raw(raw).String(); err != nil || got != form {
		t.Errorf("%s, %v, want\n%s", got, err, form)
	}
	var got document
	if err := o.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if again, err := o.Marshal(got); err != nil || !bson.Equal(again, raw) || got.None != nil {
		t.Errorf("%v, %v", bson.Raw(again), err)
	}
}

// What does not fit says where it is and what is wanted, and the message stays as it was.
func TestErrors(t *testing.T) {
	o := options(t, protobuf.Options{})
	for _, c := range []struct {
		doc  string // Extended JSON
		want string // "" if it fits
	}{
		{`{"aBool": 1}`, "aBool: want a boolean, and not 32-bit integer"},
		{`{"anInt32": 1.5}`, "anInt32: want a whole number, and not 1.5"},
		{`{"anInt32": 2147483648}`, "anInt32: 2147483648 is not between -2147483648 and 2147483647"},
		{`{"anInt32": 3.0}`, ""},
		{`{"anInt32": {"$numberDecimal": "3E+2"}}`, ""},
		{`{"anInt32": "3"}`, "want a number"},
		{`{"anInt32": {"$numberDecimal": "NaN"}}`, "want a whole number"},
		{`{"anInt32": {"$numberDouble": "Infinity"}}`, "whole"},
		{`{"aSint64": {"$numberDecimal": "9223372036854775808"}}`, "is not between"},
		{`{"aFixed32": -1}`, "aFixed32: -1 is not between 0 and 4294967295"},
		{`{"anUint64": -1}`, "anUint64: -1 is not between 0"},
		{`{"anUint64": {"$numberDecimal": "18446744073709551616"}}`, "anUint64: "},
		{`{"aFloat": 1e39}`, "aFloat: 1e+39 is beyond the range of a float"},
		{`{"aFloat": {"$numberDouble": "-Infinity"}}`, ""},
		{`{"aDouble": {"$numberLong": "9007199254740993"}}`, "aDouble: 9007199254740993 is no double"},
		{`{"aDouble": {"$numberLong": "9223372036854775807"}}`, "is no double"},
		{`{"aDouble": {"$numberDecimal": "0.1"}}`, ""},
		{`{"aString": {"$oid": "5f43a1c8b1e4a0b1c2d3e4f5"}}`, "aString: want a string, and not objectID"},
		{`{"someBytes": "x"}`, "someBytes: want a binary"},
		{`{"someBytes": {"$uuid": "73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}}`, ""},
		{`{"color": "PINK"}`, `color: test.Color has no "PINK"`},
		{`{"color": 78}`, ""},
		{`{"color": true}`, "the name of a value of test.Color"},
		{`{"inner": {"inner": {"anInt32": true}}}`, "field inner.inner.anInt32: want a number, and not boolean"},
		{`{"inner": 1}`, "inner: want a document"}, {`{"inner": null}`, ""},
		{`{"left": 1, "right": null}`, "right: only one field of side may be set, and left is"},
		{`{"left": null, "right": 1}`, ""},
		{`{"numbers": [1, "x"]}`, "numbers[1]: want a number"},
		{`{"numbers": 1}`, "numbers: want an array"},
		{`{"texts": [null]}`, "texts[0]"},
		{`{"inners": [{}, {"texts": [1]}]}`, "inners[1].texts[0]: want a string"},
		{`{"byName": {"k": {"numbers": [1, 2, false]}}}`, "byName.k.numbers[2]: want a number"},
		{`{"byName": [1]}`, "byName: want a document"},
		{`{"byNumber": {"x": 1}}`, `byNumber: the key "x" is no sint32: invalid syntax`},
		{`{"byNumber": {"2147483648": 1}}`, "out of range"},
		{`{"byTruth": {"yes": 1}}`, `byTruth: the key "yes" is no bool: invalid syntax`},
		{`{"byTruth": {"true": 1, "false": 2}}`, ""},
		{`{"at": "yesterday"}`, "at: want a date"},
		{`{"at": "2026-11-27T12:00:00.5Z"}`, ""},
		{`{"at": 5}`, "at: want a date, and not 32"},
		{`{"at": {"$date": {"$numberLong": "253402300800000"}}}`, "is not in the years 1 to 9999"},
		{`{"dates": [{"$date": {"$numberLong": "-62135596800001"}}]}`, "dates[0]"},
		{`{"dates": [{"$date": {"$numberLong": "-62135596800000"}}]}`, ""},
		{`{"took": "1.5s"}`, ""},
		{`{"took": "long"}`, "took: want a number of nanoseconds"},
		{`{"took": 1.5}`, "took: want a whole number"},
		{`{"wrapped": -1}`, "wrapped: -1 is not between 0"},
		{`{"extra": {"a": {"b": [{"$oid": "5f43a1c8b1e4a0b1c2d3e4f5"}]}}}`,
			"extra.a.b[0]: a google.protobuf.Value has no objectID"}, {`{"list": {}}`, "list: want an array"},
		{`{"mask": "a,,b"}`, "mask: "},
		{`{"mask": ""}`, ""},
		{`{"any": {"x": 1}}`, `any: a google.protobuf.Any without "@type"`},
		{`{"any": {"@type": "x/test.None"}}`, "any: the type of an Any"},
		{`{"any": {"@type": "x/test.All", "aBool": 1}}`, "any.aBool: want a boolean"},
		{`{"any": {"@type": "x/google.protobuf.Duration"}}`, `without "value"`}, {`{"any": {}}`, ""},
		{`{"any": {"@type": "x/google.protobuf.Duration", "value": "x"}}`, "any.value: want a number of nano"},
		{`{"_id": {"$oid": "5f43a1c8b1e4a0b1c2d3e4f5"}, "unknown": 1, "a_bool": 1, "[test2.more]": 1}`, ""},
	} {
		raw, err := bson.ParseExtJSON([]byte(c.doc))
		if err != nil {
			t.Fatal(c.doc, err)
		}
		m := dynamicpb.NewMessage(all)
		m.Set(all.Fields().ByName("a_string"), protoreflect.ValueOfString("before"))
		err = o.Unmarshal(raw, m)
		if c.want == "" {
			if err != nil || m.Has(all.Fields().ByName("a_string")) {
				t.Errorf("%s: %v, %v", c.doc, text(m), err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %.300v, want an error with %s", c.doc, err, c.want)
		}
		if m.Get(all.Fields().ByName("a_string")).String() != "before" {
			t.Errorf("%.80s: changed to %v", c.doc, text(m))
		}
	}
}

// What has no form is refused, and says where it is.
func TestRefused(t *testing.T) {
	loop := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	loop.Fields["x"] = structpb.NewStructValue(loop)
	broken := dynamicpb.NewMessage(old)
	broken.Set(old.Fields().ByName("must"), protoreflect.ValueOfInt32(1))
	broken.Set(old.Fields().ByName("s"), protoreflect.ValueOfString("\xff"))
	for _, c := range []struct {
		m    proto.Message
		want string
	}{
		{&timestamppb.Timestamp{Nanos: -1}, "are no Timestamp"},
		{&timestamppb.Timestamp{Seconds: 1 << 40}, "are no Timestamp"},
		{&durationpb.Duration{Seconds: 1, Nanos: -1}, "are no Duration"},
		{&durationpb.Duration{Nanos: 1e9}, "are no Duration"},
		{&durationpb.Duration{Seconds: 9223372036, Nanos: 854775807}, ""},
		{&durationpb.Duration{Seconds: 9223372036, Nanos: 854775808}, "than 64 bits count"},
		{&durationpb.Duration{Seconds: -9223372037}, "than 64 bits count"},
		{&structpb.ListValue{Values: []*structpb.Value{{}}}, "[0]: a google.protobuf.Value without a value"},
		{loop, "more than 200 levels"},
		{&fieldmaskpb.FieldMask{Paths: []string{"a,b"}}, "no path"},
		{&anypb.Any{TypeUrl: "x/none"}, "the type of an Any"},
		{&anypb.Any{TypeUrl: "x/google.protobuf.Duration", Value: []byte{1}}, `"v"`},
		{&structpb.Struct{Fields: map[string]*structpb.Value{"a\x00b": structpb.NewNullValue()}}, "zero byte"},
		{dynamicpb.NewMessage(old), "test2.Old.must"}, {broken, "field s: a text that is not UTF-8"},
	} {
		raw, err := options(t, protobuf.Options{}).Marshal(bson.D{{Key: "v", Value: c.m}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%T: %.80v, %.300v, want %q", c.m, bson.Raw(raw), err, c.want)
		}
	}
	same := options(t, protobuf.Options{Name: func(protoreflect.FieldDescriptor) string { return "x" }})
	_, err := same.Marshal(dynamicpb.NewMessage(all))
	if err == nil || !strings.Contains(err.Error(), `have the same key "x"`) {
		t.Error(err)
	}
	deep := bson.Raw("\x05\x00\x00\x00\x00")
	for range bson.DefaultMaxDepth + 5 {
		raw := bson.AppendDocument(make([]byte, 4), "inner", deep)
		binary.LittleEndian.PutUint32(raw, uint32(len(raw)+1))
		deep = append(raw, 0)
	}
	if err := options(t, protobuf.Options{}).Unmarshal(deep, dynamicpb.NewMessage(all)); err == nil ||
		!strings.Contains(err.Error(), "more than 200 levels") {
		t.Errorf("%.200v", err)
	}
	var none dynamicpb.Message
	if err := options(t, protobuf.Options{}).Unmarshal(bson.Raw("\x05\x00\x00\x00\x00"), &none); err == nil {
		t.Error("a message without a type was read")
	}
	var missing = dynamicpb.NewMessage(old)
	if err := options(t, protobuf.Options{}).Unmarshal(bson.Raw("\x05\x00\x00\x00\x00"), missing); err == nil ||
		!strings.Contains(err.Error(), "test2.Old.must") {
		t.Error(err)
	}
}

// Whatever a document holds, it decodes or it does not, and what decodes comes back.
func FuzzDecode(f *testing.F) {
	o := options(f, protobuf.Options{})
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		m := dynamicpb.NewMessage(all)
		fill(r, m, 0)
		raw, err := o.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := dynamicpb.NewMessage(all)
		if o.Unmarshal(raw, m) != nil {
			return
		}
		again, err := o.Marshal(m)
		if err != nil {
			t.Fatalf("%v does not encode: %v", text(m), err)
		}
		back := dynamicpb.NewMessage(all)
		if err := o.Unmarshal(again, back); err != nil {
			t.Fatalf("%v does not decode: %v", bson.Raw(again), err)
		}
	})
}

func ExampleMessages() {
	set, err := bson.NewCodecs(protobuf.Messages(protobuf.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	opts := bson.Options{Codecs: set}
	type visit struct {
		At   *timestamppb.Timestamp  `bson:"at"`
		Took *durationpb.Duration    `bson:"took"`
		Name *wrapperspb.StringValue `bson:"name"`
	}
	raw, err := opts.Marshal(visit{
		At:   timestamppb.New(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)),
		Took: durationpb.New(1500 * time.Microsecond),
	})
	fmt.Println(bson.Raw(raw), err)
	var back visit
	fmt.Println(opts.Unmarshal(raw, &back), back.At.AsTime().Hour(), back.Took.AsDuration())
	// Output:
	// {"at":{"$date":"2026-11-27T12:00:00Z"},"took":1500000,"name":null} <nil>
	// <nil> 12 1.5ms
}
