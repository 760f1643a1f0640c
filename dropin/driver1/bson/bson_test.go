package bson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsonoptions"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
)

type (
	ownMap map[string]any
	ownD   bson.D
	fields struct{ A any }
)

// shape names the types of the documents in a value, the outermost first.
func shape(v any) string {
	r := reflect.ValueOf(v)
	switch {
	case !r.IsValid():
		return "nil"
	case r.Kind() == reflect.Map:
		for _, key := range r.MapKeys() {
			return r.Type().Name() + ">" + shape(r.MapIndex(key).Interface())
		}
	case r.Kind() == reflect.Slice && r.Type().Elem() == reflect.TypeFor[bson.E]():
		return r.Type().Name() + ">" + shape(r.Index(0).Interface().(bson.E).Value)
	case r.Kind() == reflect.Slice && r.Len() > 0:
		return "[" + shape(r.Index(0).Interface()) + "]"
	case r.Kind() == reflect.Struct:
		return r.Type().Name() + ">" + shape(r.Field(0).Interface())
	}
	return r.Type().Name()
}

// TestAncestors decodes documents in variables of type any: they become of the type of the document
// that they are in, unless a struct lies between.
func TestAncestors(t *testing.T) {
	doc, err := bson.Marshal(bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.A{bson.D{{Key: "c", Value: 1}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	registered := bson.NewRegistry()
	registered.RegisterTypeMapEntry(bsontype.EmbeddedDocument, reflect.TypeFor[ownMap]())
	top := bson.NewRegistry()
	top.RegisterTypeMapEntry(0, reflect.TypeFor[bson.M]())
	for _, c := range []struct {
		into any
		r    *bsoncodec.Registry
		want string
	}{
		{into: new(bson.D), want: "D>D>[D>int32]"},
		{into: new(bson.M), want: "M>M>[M>int32]"},
		{into: new(map[string]any), want: ">>[>int32]"},
		{into: new(ownMap), want: "ownMap>ownMap>[ownMap>int32]"},
		{into: new(ownD), want: "ownD>ownD>[ownD>int32]"},
		{into: new(any), want: "D>D>[D>int32]"},
		{into: new(fields), want: "fields>D>[D>int32]"},
		{into: new(map[string]bson.M), want: ">M>[M>int32]"},
		{into: new(bson.D), r: registered, want: "D>D>[D>int32]"},
		{into: new(fields), r: registered, want: "fields>ownMap>[ownMap>int32]"},
		{into: new(any), r: top, want: "M>M>[M>int32]"},
		{into: new(fields), r: top, want: "fields>D>[D>int32]"},
	} {
		r := c.r
		if r == nil {
			r = bson.DefaultRegistry
		}
		if err := bson.UnmarshalWithRegistry(r, doc, c.into); err != nil {
			t.Errorf("%T: %v", c.into, err)
			continue
		}
		if have := shape(reflect.ValueOf(c.into).Elem().Interface()); have != c.want {
			t.Errorf("%T: have %s, want %s", c.into, have, c.want)
		}
	}
	for name, set := range map[string]func(*bson.Decoder){"D": (*bson.Decoder).DefaultDocumentD, "M": (*bson.Decoder).DefaultDocumentM} {
		d, err := bson.NewDecoder(bsonrw.NewBSONDocumentReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		set(d)
		var into ownMap
		if err := d.Decode(&into); err != nil {
			t.Fatal(err)
		}
		if have, want := shape(into), fmt.Sprintf("ownMap>%s>[%[1]s>int32]", name); have != want {
			t.Errorf("DefaultDocument%s: have %s, want %s", name, have, want)
		}
	}
}

// TestTexts holds JSON and %v of documents at what they are in this version.
func TestTexts(t *testing.T) {
	d := bson.D{{Key: "a", Value: bson.M{"b": bson.A{1}}}}
	text, err := json.Marshal(d)
	if err != nil || string(text) != `[{"Key":"a","Value":{"b":[1]}}]` {
		t.Errorf("JSON: %s, %v", text, err)
	}
	if have := fmt.Sprint(d); have != "[{a map[b:[1]]}]" {
		t.Errorf("%%v: %s", have)
	}
	if have := d.Map(); !reflect.DeepEqual(have, bson.M{"a": bson.M{"b": bson.A{1}}}) {
		t.Errorf("Map: %v", have)
	}
}

// A level encodes itself as a text.
type level int

func (l level) MarshalBSONValue() (bsontype.Type, []byte, error) {
	return bson.MarshalValue(strings.Repeat("!", int(l)))
}

func (l *level) UnmarshalBSONValue(t bsontype.Type, data []byte) error {
	var s string
	if err := bson.UnmarshalValue(t, data, &s); err != nil {
		return err
	}
	*l = level(len(s))
	return nil
}

// A formed is a document for itself, and a text inside of one.
type formed struct{ s string }

func (f formed) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.M{"data": f.s}) }

func (f formed) MarshalBSONValue() (bsontype.Type, []byte, error) {
	return bson.MarshalValue("in " + f.s)
}

func (f *formed) UnmarshalBSON(data []byte) error {
	f.s = "document " + bson.Raw(data).Lookup("data").StringValue()
	return nil
}

func (f *formed) UnmarshalBSONValue(t bsontype.Type, _ []byte) error {
	f.s = "value " + t.String()
	return nil
}

// TestTwoForms encodes and decodes a type that has methods for documents and for values.
func TestTwoForms(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{formed{"x"}, `{"data": "x"}`},
		{&formed{"x"}, `{"data": "x"}`},
		{bson.M{"a": formed{"x"}}, `{"a": "in x"}`},
		{bson.D{{Key: "a", Value: &formed{"x"}}}, `{"a": "in x"}`},
		{bson.M{"a": proxied{formed{"x"}}}, `{"a": "in x"}`},
	} {
		data, err := bson.Marshal(c.value)
		if have := bson.Raw(data).String(); err != nil || have != c.want {
			t.Errorf("%#v: %s, %v", c.value, have, err)
		}
		bt, data, err := bson.MarshalValue(c.value)
		if have := bson.Raw(data).String(); err != nil || bt != bson.TypeEmbeddedDocument || have != c.want {
			t.Errorf("%#v as a value: %v %s, %v", c.value, bt, have, err)
		}
	}
	doc, err := bson.Marshal(bson.M{"data": "y"})
	if err != nil {
		t.Fatal(err)
	}
	var whole formed
	if err := bson.Unmarshal(doc, &whole); err != nil || whole.s != "document y" {
		t.Errorf("decoded: %v, %v", whole, err)
	}
	outer, err := bson.Marshal(bson.M{"a": bson.Raw(doc)})
	if err != nil {
		t.Fatal(err)
	}
	var inside struct{ A formed }
	if err := bson.Unmarshal(outer, &inside); err != nil || inside.A.s != "value embedded document" {
		t.Errorf("decoded inside: %v, %v", inside, err)
	}
}

// A proxied is encoded as another value.
type proxied struct{ v any }

func (p proxied) ProxyBSON() (any, error) { return p.v, nil }

// TestMethods encodes and decodes by the methods that only this version has.
func TestMethods(t *testing.T) {
	type doc struct {
		L  level
		P  *level
		In []level
		X  any
	}
	three := level(3)
	want := doc{L: 2, P: &three, In: []level{1, 0}, X: "y"}
	data, err := bson.Marshal(doc{want.L, want.P, want.In, proxied{"y"}})
	if err != nil {
		t.Fatal(err)
	}
	if have := bson.Raw(data).String(); have != `{"l": "!!","p": "!!!","in": ["!",""],"x": "y"}` {
		t.Errorf("encoded: %s", have)
	}
	var have doc
	if err := bson.Unmarshal(data, &have); err != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("decoded: %+v, %v", have, err)
	}
}

// upper encodes texts in capitals, with the driver's own codec.
func upper(ec bsoncodec.EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return bsoncodec.DefaultValueEncoders{}.StringEncodeValue(ec, vw, reflect.ValueOf(strings.ToUpper(val.String())).Convert(val.Type()))
}

type tagged struct {
	ID    string `json:"id"`
	Other string `yaml:"o"`
	hid   int
	Inner struct{ N string }
}

// TestRegistry encodes and decodes with a program's codecs that lean on the driver's.
func TestRegistry(t *testing.T) {
	yaml := bsoncodec.StructTagParserFunc(func(sf reflect.StructField) (bsoncodec.StructTags, error) {
		tags, err := bsoncodec.DefaultStructTagParser(sf)
		if name, ok := sf.Tag.Lookup("yaml"); ok {
			tags.Name = name
		}
		return tags, err
	})
	value := tagged{ID: "i", Other: "x", hid: 1}
	value.Inner.N = "n"
	for _, c := range []struct {
		parser bsoncodec.StructTagParser
		want   string
	}{
		{bsoncodec.DefaultStructTagParser, `{"ID": "I","OTHER": "X","INNER": {"N": "N"}}`},
		{bsoncodec.JSONFallbackStructTagParser, `{"id": "I","OTHER": "X","INNER": {"N": "N"}}`},
		{yaml, `{"ID": "I","o": "X","INNER": {"N": "N"}}`},
	} {
		structs, err := bsoncodec.NewStructCodec(c.parser)
		if err != nil {
			t.Fatal(err)
		}
		r := bson.NewRegistryBuilder().RegisterDefaultEncoder(reflect.Struct, structs).RegisterDefaultDecoder(reflect.Struct, structs).
			RegisterDefaultEncoder(reflect.String, bsoncodec.ValueEncoderFunc(upper)).Build()
		data, err := bson.MarshalWithRegistry(r, value)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer("ID", "id", "OTHER", "other", "INNER", "inner", `{"N":`, `{"n":`).Replace(c.want)
		if have := bson.Raw(data).String(); have != want {
			t.Errorf("have %s, want %s", have, want)
		}
		var back tagged
		if err := bson.UnmarshalWithRegistry(r, data, &back); err != nil || back.ID != "I" || back.Other != "X" || back.Inner.N != "N" {
			t.Errorf("decoded: %+v, %v", back, err)
		}
	}

	id := primitive.NewObjectID()
	data, err := bson.Marshal(bson.M{"s": id})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		hex  bool
		want string
	}{{true, id.Hex()}, {false, string(id[:])}} {
		r := bson.NewRegistryBuilder().RegisterDefaultDecoder(reflect.String, bsoncodec.NewStringCodec(bsonoptions.StringCodec().SetDecodeObjectIDAsHex(c.hex))).Build()
		var into struct{ S string }
		if err := bson.UnmarshalWithRegistry(r, data, &into); err != nil || into.S != c.want {
			t.Errorf("hex %t: %q, %v", c.hex, into.S, err)
		}
	}
}

// TestErrors asks for the types of errors.
func TestErrors(t *testing.T) {
	var (
		noEncoder bsoncodec.ErrNoEncoder
		decode    *bsoncodec.DecodeError
	)
	if _, err := bson.Marshal(bson.M{"a": make(chan int)}); !errors.As(err, &noEncoder) || noEncoder.Type != reflect.TypeFor[chan int]() {
		t.Errorf("a channel: %v", err)
	}
	data, err := bson.Marshal(bson.M{"a": bson.M{"b": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	var into struct{ A struct{ B int } }
	if err := bson.Unmarshal(data, &into); !errors.As(err, &decode) || !reflect.DeepEqual(decode.Keys(), []string{"a", "b"}) {
		t.Errorf("a misfit: %v", err)
	}
	if _, err := bsoncodec.NewRegistry().LookupEncoder(reflect.TypeFor[int]()); !errors.As(err, &noEncoder) {
		t.Errorf("an empty registry: %v", err)
	}
	if _, err := bson.NewRegistry().LookupEncoder(reflect.TypeFor[int]()); err != nil {
		t.Errorf("a registry: %v", err)
	}
}

// TestRaw reads raw values. They do not keep the registry that decoded them, as with the official
// driver, but can be read with one.
func TestRaw(t *testing.T) {
	r := bson.NewRegistry()
	r.RegisterTypeDecoder(reflect.TypeFor[level](), bsoncodec.ValueDecoderFunc(func(_ bsoncodec.DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
		n, err := vr.ReadInt32()
		val.SetInt(int64(n) * 10)
		return err
	}))
	data, err := bson.Marshal(bson.M{"v": int32(4)})
	if err != nil {
		t.Fatal(err)
	}
	var into struct{ V bson.RawValue }
	if err := bson.UnmarshalWithRegistry(r, data, &into); err != nil {
		t.Fatal(err)
	}
	var l level
	if err := into.V.Unmarshal(&l); err == nil {
		t.Errorf("with the default registry, where it is a text: %d", l)
	}
	if err := into.V.UnmarshalWithRegistry(r, &l); err != nil || l != 40 {
		t.Errorf("with a registry: %d, %v", l, err)
	}
	if n := bson.Raw(data).Lookup("v").AsInt32(); n != 4 {
		t.Errorf("AsInt32: %d", n)
	}
}
