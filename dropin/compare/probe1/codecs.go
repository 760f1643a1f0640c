package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsonoptions"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/mgocompat"
	"go.mongodb.org/mongo-driver/bson/primitive"
)

type (
	ownMap  map[string]any
	ownD    bson.D
	anyIn   struct{ A any }
	nesting struct {
		A any
		B bson.M
		C map[string]any
		D []any
		E bson.D
		F map[string]anyIn
		G []bson.M
		H ownMap
		I ownD
		J map[string]ownMap
	}
)

// ancestors prints what documents become in variables of type any.
func ancestors() {
	sub := bson.D{{Key: "x", Value: bson.D{{Key: "y", Value: 1}}},
		{Key: "z", Value: bson.A{bson.D{{Key: "q", Value: 1}}}}}
	doc, err := bson.Marshal(bson.D{
		{Key: "a", Value: sub}, {Key: "b", Value: sub}, {Key: "c", Value: sub}, {Key: "d", Value: bson.A{sub}},
		{Key: "e", Value: sub},
		{Key: "f", Value: bson.D{{Key: "k", Value: bson.D{{Key: "a", Value: sub}}}}}, {Key: "g", Value: bson.A{sub}},
		{Key: "h", Value: sub}, {Key: "i", Value: sub},
		{Key: "j", Value: bson.D{{Key: "k", Value: sub}}},
	})
	if err != nil {
		panic(err)
	}
	into := func() []any {
		return []any{new(nesting), new(any), new(bson.D), new(bson.M), new(ownMap), new(ownD), new([]bson.E),
			new(map[string]anyIn), new(anyIn)}
	}
	registries := map[string]*bsoncodec.Registry{"default": bson.DefaultRegistry}
	for name, entry := range map[string]struct {
		t  bsontype.Type
		to reflect.Type
	}{
		"document M": {bsontype.EmbeddedDocument, reflect.TypeFor[bson.M]()}, "top M": {0, reflect.TypeFor[bson.M]()},
		"array":        {bsontype.Array, reflect.TypeFor[[]any]()},
		"document Raw": {bsontype.EmbeddedDocument, reflect.TypeFor[bson.Raw]()},
		"int":          {bsontype.Int32, reflect.TypeFor[int]()},
	} {
		r := bson.NewRegistry()
		r.RegisterTypeMapEntry(entry.t, entry.to)
		registries[name] = r
	}
	for name, r := range registries {
		for _, v := range into() {
			err := bson.UnmarshalWithRegistry(r, doc, v)
			say.Line(fmt.Sprintf("ancestors %s %T", name, v), shape(reflect.ValueOf(v).Elem().Interface()), err)
		}
	}
	for name, set := range map[string]func(*bson.Decoder){"D": (*bson.Decoder).DefaultDocumentD,
		"M": (*bson.Decoder).DefaultDocumentM} {
		for _, v := range into() {
			d, _ := bson.NewDecoder(bsonrw.NewBSONDocumentReader(doc))
			set(d)
			say.Line(fmt.Sprintf("default document %s %T", name, v), d.Decode(v),
				shape(reflect.ValueOf(v).Elem().Interface()))
		}
	}
}

type (
	valuer  struct{ S string }
	pointed struct{ S string }
	proxied struct{ v any }
	docMade struct{ N int }
	zeroed  struct{ N int }
	keyed   struct{ k string }
	failing struct{}
)

func (v valuer) MarshalBSONValue() (bsontype.Type, []byte, error) {
	return bson.MarshalValue("<" + v.S + ">")
}

func (v *valuer) UnmarshalBSONValue(t bsontype.Type, data []byte) error {
	v.S = fmt.Sprintf("%s %x", t, data)
	return nil
}

func (p *pointed) MarshalBSONValue() (bsontype.Type, []byte, error) {
	return bson.MarshalValue("*" + p.S)
}

func (p *pointed) UnmarshalBSONValue(t bsontype.Type, data []byte) error {
	return bson.UnmarshalValue(t, data, &p.S)
}

func (p proxied) ProxyBSON() (any, error) { return p.v, nil }

func (d docMade) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.D{{Key: "n", Value: d.N}}) }

func (d *docMade) UnmarshalBSON(data []byte) error {
	d.N = int(bson.Raw(data).Lookup("n").AsInt64()) + 100
	return nil
}

func (z zeroed) IsZero() bool { return z.N == 5 }

func (k keyed) MarshalKey() (string, error) { return "k" + k.k, nil }

func (k *keyed) UnmarshalKey(key string) error {
	k.k = strings.TrimPrefix(key, "k")
	return nil
}

func (failing) MarshalBSONValue() (bsontype.Type, []byte, error) {
	return 0, nil, errors.New("will not")
}

func (*failing) UnmarshalBSONValue(bsontype.Type, []byte) error { return errors.New("will not") }

// methods prints what is encoded and decoded by methods.
func methods() {
	type doc struct {
		V  valuer
		PV *valuer
		P  *pointed
		D  docMade
		PD *docMade
		L  []valuer
		M  map[string]docMade
		Z  zeroed `bson:",omitempty"`
		K  map[keyed]int
		X  any
	}
	full := doc{
		V: valuer{"a"}, PV: &valuer{"b"}, P: &pointed{"c"}, D: docMade{1}, PD: &docMade{2}, L: []valuer{{"d"}},
		M: map[string]docMade{"m": {3}}, Z: zeroed{5},
		K: map[keyed]int{{"x"}: 1}, X: valuer{"e"},
	}
	for name, v := range map[string]any{
		"full": full, "empty": doc{}, "proxy": bson.M{"p": proxied{"x"}}, "proxy nil": bson.M{"p": proxied{nil}},
		"proxy doc": proxied{bson.M{"a": 1}},
		"made":      docMade{4}, "failing": bson.M{"f": failing{}}, "deep failing": bson.M{"a": bson.A{failing{}}},
	} {
		say.Try("methods "+name, func() []any {
			data, err := bson.Marshal(v)
			return []any{bson.Raw(data), err}
		})
	}
	data, err := bson.Marshal(full)
	if err != nil {
		panic(err)
	}
	var back doc
	err = bson.Unmarshal(data, &back)
	say.Line("methods decoded", err, back.V, back.PV, back.P, back.D, back.PD, back.L, back.M, back.K, shape(back.X))
	var into struct{ F failing }
	data, _ = bson.Marshal(bson.M{"f": 1})
	say.Line("methods failing", bson.Unmarshal(data, &into))
	data, _ = bson.Marshal(bson.M{"v": nil, "pv": nil, "p": nil})
	back = doc{PV: &valuer{"old"}}
	say.Line("methods null", bson.Unmarshal(data, &back), back.V, back.PV, back.P)
}

type tagged struct {
	ID     string `json:"id" yaml:"i"`
	Other  int64  `yaml:"o"`
	Empty  string `json:",omitempty" yaml:"e,omitempty"`
	hidden int
	In     inner `yaml:",inline"`
	Skip   int   `yaml:"-"`
}

func yaml(sf reflect.StructField) (bsoncodec.StructTags, error) {
	tags, err := bsoncodec.DefaultStructTagParser(sf)
	name, options, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
	if name != "" {
		tags.Name = name
	}
	tags.OmitEmpty, tags.Inline, tags.Skip = options == "omitempty", options == "inline", name == "-"
	return tags, err
}

// A shouter is encoded in capitals.
type shouter interface{ Shout() string }

type loud string

func (l loud) Shout() string { return strings.ToUpper(string(l)) }

// registries prints what a program's codecs do.
func registries() {
	value := tagged{ID: "i", Other: 5, hidden: 1, In: inner{1, 2}, Skip: 3}
	for name, p := range map[string]bsoncodec.StructTagParser{
		"default": bsoncodec.DefaultStructTagParser, "json": bsoncodec.JSONFallbackStructTagParser,
		"yaml": bsoncodec.StructTagParserFunc(yaml),
	} {
		for i := range reflect.TypeFor[tagged]().NumField() {
			tags, err := p.ParseStructTags(reflect.TypeFor[tagged]().Field(i))
			say.Line(fmt.Sprintf("parser %s %d", name, i), fmt.Sprintf("%+v", tags), err)
		}
		codec, err := bsoncodec.NewStructCodec(p)
		if err != nil {
			panic(err)
		}
		r := bson.NewRegistryBuilder().RegisterDefaultEncoder(reflect.Struct,
			codec).RegisterDefaultDecoder(reflect.Struct, codec).Build()
		data, err := bson.MarshalWithRegistry(r, value)
		say.Line("struct codec "+name, bson.Raw(data), err)
		var back tagged
		err = bson.UnmarshalWithRegistry(r, data, &back)
		say.Line("struct codec decoded "+name, fmt.Sprintf("%+v", back), err)
		data, err = bson.MarshalWithRegistry(r,
			bson.M{"l": []tagged{value}, "t": time.UnixMilli(5), "o": primitive.ObjectID{1}})
		say.Line("struct codec deep "+name, len(data), err)
	}
	_, err := bsoncodec.NewStructCodec(nil)
	say.Line("struct codec nil", err)

	r := bson.NewRegistry()
	r.RegisterTypeEncoder(reflect.TypeFor[shade](),
		bsoncodec.ValueEncoderFunc(func(_ bsoncodec.EncodeContext, vw bsonrw.ValueWriter, v reflect.Value) error {
			return vw.WriteString(fmt.Sprint("shade ", v.Int()))
		}))
	r.RegisterTypeDecoder(reflect.TypeFor[shade](),
		bsoncodec.ValueDecoderFunc(func(_ bsoncodec.DecodeContext, vr bsonrw.ValueReader, v reflect.Value) error {
			s, err := vr.ReadString()
			v.SetInt(int64(len(s)))
			return err
		}))
	r.RegisterInterfaceEncoder(reflect.TypeFor[shouter](),
		bsoncodec.ValueEncoderFunc(func(_ bsoncodec.EncodeContext, vw bsonrw.ValueWriter, v reflect.Value) error {
			return vw.WriteString(v.Interface().(shouter).Shout())
		}))
	r.RegisterKindEncoder(reflect.Float64, bsoncodec.ValueEncoderFunc(func(_ bsoncodec.EncodeContext,
		vw bsonrw.ValueWriter, v reflect.Value) error {
		return vw.WriteInt32(int32(math.Round(v.Float())))
	}))
	r.RegisterKindDecoder(reflect.Int, bsoncodec.ValueDecoderFunc(func(dc bsoncodec.DecodeContext,
		vr bsonrw.ValueReader, v reflect.Value) error {
		err := bsoncodec.DefaultValueDecoders{}.IntDecodeValue(dc, vr, v)
		v.SetInt(v.Int() * 2)
		return err
	}))
	r.RegisterTypeMapEntry(bsontype.Double, reflect.TypeFor[float32]())
	type mixed struct {
		S shade
		P *shade
		L []shade
		M map[string]shade
		W loud
		F float64
		I int
		X any
	}
	five := shade(5)
	data, err := bson.MarshalWithRegistry(r, mixed{S: 4, P: &five, L: []shade{1}, M: map[string]shade{"k": 2}, W: "w",
		F: 2.6, I: 21, X: 1.5})
	say.Line("codecs", bson.Raw(data), err)
	var back mixed
	err = bson.UnmarshalWithRegistry(r, data, &back)
	say.Line("codecs decoded", back.S, *back.P, back.L, back.M, back.W, back.F, back.I, shape(back.X), err)
	for _, t := range []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[shade](), reflect.TypeFor[chan int](),
		reflect.TypeFor[func()](), nil, reflect.TypeFor[any](), reflect.TypeFor[*inner]()} {
		enc, err := r.LookupEncoder(t)
		say.Line(fmt.Sprint("encoder of ", t), enc != nil, err, errors.As(err, new(bsoncodec.ErrNoEncoder)))
		dec, err := r.LookupDecoder(t)
		say.Line(fmt.Sprint("decoder of ", t), dec != nil, err, errors.As(err, new(bsoncodec.ErrNoDecoder)))
		_, err = bsoncodec.NewRegistry().LookupEncoder(t)
		say.Line(fmt.Sprint("no encoder of ", t), err, errors.As(err, new(bsoncodec.ErrNoEncoder)))
	}
	for _, t := range []bsontype.Type{0, bsontype.Double, bsontype.EmbeddedDocument, bsontype.Array, bsontype.Null,
		bsontype.Int64, bsontype.Binary, 0x55} {
		goType, err := r.LookupTypeMapEntry(t)
		say.Line(fmt.Sprint("type map ", t), goType, err)
	}
	say.Try("an interface that is none", func() []any {
		r.RegisterInterfaceEncoder(reflect.TypeFor[int](), nil)
		return nil
	})

	id := primitive.ObjectID{1}
	data, _ = bson.Marshal(bson.D{{Key: "s", Value: id}, {Key: "b", Value: primitive.Binary{Data: []byte{1}}},
		{Key: "t", Value: primitive.DateTime(5)}, {Key: "m", Value: bson.D{{Key: "new", Value: 1}}}})
	type texts struct {
		S string
		B any
		T time.Time
		M map[string]int
	}
	for name, rb := range map[string]*bsoncodec.RegistryBuilder{
		"plain": bson.NewRegistryBuilder(),
		"bytes": bson.NewRegistryBuilder().RegisterDefaultDecoder(reflect.String,
			bsoncodec.NewStringCodec(bsonoptions.StringCodec().SetDecodeObjectIDAsHex(false))),
		"slice": bson.NewRegistryBuilder().RegisterTypeDecoder(reflect.TypeFor[any](),
			bsoncodec.NewEmptyInterfaceCodec(bsonoptions.EmptyInterfaceCodec().SetDecodeBinaryAsSlice(true))),
		"local": bson.NewRegistryBuilder().RegisterTypeDecoder(reflect.TypeFor[time.Time](),
			bsoncodec.NewTimeCodec(bsonoptions.TimeCodec().SetUseLocalTimeZone(true))),
		"zeros": bson.NewRegistryBuilder().RegisterDefaultDecoder(reflect.Map,
			bsoncodec.NewMapCodec(bsonoptions.MapCodec().SetDecodeZerosMap(true))),
		"mgo": mgocompat.NewRegistryBuilder(), "mgo nil": mgocompat.NewRespectNilValuesRegistryBuilder(),
	} {
		into := texts{M: map[string]int{"old": 1}}
		err := bson.UnmarshalWithRegistry(rb.Build(), data, &into)
		say.Line("decoded by "+name, fmt.Sprintf("%q", into.S), shape(into.B), into.T, into.M, err)
		doc, err := bson.MarshalWithRegistry(rb.Build(), struct {
			L []int
			M map[string]int
			B []byte
			Z inner `bson:",omitempty"`
			U uint64
		}{U: 7})
		say.Line("encoded by "+name, bson.Raw(doc), err)
	}
	for name, codec := range map[string]bsoncodec.ValueEncoder{
		"slice":   bsoncodec.NewSliceCodec(bsonoptions.SliceCodec().SetEncodeNilAsEmpty(true)),
		"map":     bsoncodec.NewMapCodec(bsonoptions.MapCodec().SetEncodeNilAsEmpty(true)),
		"bytes":   bsoncodec.NewByteSliceCodec(bsonoptions.ByteSliceCodec().SetEncodeNilAsEmpty(true)),
		"uint":    bsoncodec.NewUIntCodec(bsonoptions.UIntCodec().SetEncodeToMinSize(true)),
		"keys":    bsoncodec.NewMapCodec(bsonoptions.MapCodec().SetEncodeKeysWithStringer(true)),
		"pointer": bsoncodec.NewPointerCodec(), "array": bsoncodec.NewArrayCodec(),
	} {
		for _, v := range []any{[]int(nil), []int{1}, map[string]int(nil), map[float64]int{1.5: 1}, []byte(nil),
			[]byte{1}, uint32(7), uint64(8), &five, (*int)(nil), [2]int{1, 2}, "x", 5} {
			var b bytes.Buffer
			vw, err := bsonrw.NewBSONValueWriter(&b)
			if err != nil {
				panic(err)
			}
			dw, err := vw.WriteDocument()
			if err != nil {
				panic(err)
			}
			ew, err := dw.WriteDocumentElement("v")
			if err != nil {
				panic(err)
			}
			err = codec.EncodeValue(bsoncodec.EncodeContext{Registry: bson.DefaultRegistry}, ew, reflect.ValueOf(v))
			if err == nil {
				err = dw.WriteDocumentEnd()
			}
			if errors.As(err, new(bsoncodec.ValueEncoderError)) {
				err = errors.New("not for this type")
			}
			say.Line(fmt.Sprintf("%s codec of %T %v", name, v,
				reflect.ValueOf(v).Kind() == reflect.Slice && reflect.ValueOf(v).IsNil()), bson.Raw(b.Bytes()), err)
		}
	}
}

// streams prints what readers, writers, encoders and decoders do.
func streams() {
	var b bytes.Buffer
	vw, err := bsonrw.NewBSONValueWriter(&b)
	e, _ := bson.NewEncoder(vw)
	say.Line("encode two", err, e.Encode(bson.D{{Key: "a", Value: 1}}), e.Encode(bson.M{"b": bson.A{int64(2)}}),
		fmt.Sprintf("%x", b.Bytes()))
	say.Line("encode nil", e.Encode(nil), e.Encode(5), e.Encode(bson.D(nil)))
	settings := []func(*bson.Encoder){
		(*bson.Encoder).IntMinSize, (*bson.Encoder).StringifyMapKeysWithFmt, (*bson.Encoder).NilMapAsEmpty,
		(*bson.Encoder).NilSliceAsEmpty,
		(*bson.Encoder).NilByteSliceAsEmpty, (*bson.Encoder).OmitZeroStruct, (*bson.Encoder).UseJSONStructTags,
	}
	value := struct {
		I int64
		K map[float64]int
		M map[string]int
		S []int
		B []byte
		Z inner  `bson:",omitempty"`
		J string `json:"jay"`
	}{I: 5}
	for i, set := range settings {
		var b bytes.Buffer
		vw, _ := bsonrw.NewExtJSONValueWriter(&b, true, false)
		e, _ := bson.NewEncoder(vw)
		set(e)
		say.Line(fmt.Sprint("encoder setting ", i), e.Encode(value), b.String())
	}
	doc, _ := bson.Marshal(bson.D{{Key: "i", Value: 1.5}, {Key: "b", Value: primitive.Binary{Data: []byte{1}}},
		{Key: "t", Value: primitive.DateTime(5)}, {Key: "m", Value: bson.D{}}, {Key: "jay", Value: "j"},
		{Key: "s", Value: bson.D{{Key: "x", Value: 1}}}})
	for i, set := range []func(*bson.Decoder){
		(*bson.Decoder).AllowTruncatingDoubles, (*bson.Decoder).BinaryAsSlice, (*bson.Decoder).UseJSONStructTags,
		(*bson.Decoder).UseLocalTimeZone, (*bson.Decoder).ZeroMaps, (*bson.Decoder).ZeroStructs,
	} {
		into := struct {
			B any
			T time.Time
			M map[string]int
			J string `json:"jay"`
			S inner
			I int
		}{M: map[string]int{"old": 1}, S: inner{8, 9}}
		d, _ := bson.NewDecoder(bsonrw.NewBSONDocumentReader(doc))
		set(d)
		err := d.Decode(&into)
		say.Line(fmt.Sprint("decoder setting ", i), err, shape(into.B), into.T, into.M, into.J, into.S, into.I)
	}
	_, err = bson.NewEncoder(nil)
	_, err2 := bson.NewDecoder(nil)
	_, err3 := bsonrw.NewBSONValueWriter(nil)
	_, err4 := bsonrw.NewExtJSONValueWriter(nil, true, true)
	say.Line("of nil", err, err2, err3, err4)
	c := bsonrw.NewCopier()
	all, _ := bson.Marshal(func() (d bson.D) {
		for _, s := range samples {
			d = append(d, bson.E{Key: s.name, Value: s.v})
		}
		return d
	}())
	copied, err := c.CopyDocumentToBytes(bsonrw.NewBSONDocumentReader(all))
	say.Line("copy document", bytes.Equal(copied, all), err)
	b.Reset()
	vw, _ = bsonrw.NewExtJSONValueWriter(&b, true, false)
	say.Line("copy to JSON", c.CopyDocumentFromBytes(vw, all), b.String())
	vr, _ := bsonrw.NewExtJSONValueReader(&b, true)
	copied, err = c.AppendDocumentBytes([]byte{}, vr)
	say.Line("copy from JSON", bytes.Equal(copied, all), err)
	t, data, err := c.CopyValueToBytes(bsonrw.NewBSONValueReader(bsontype.Int32, []byte{5, 0, 0, 0}))
	say.Line("copy value", t, data, err)
	vr = bsonrw.NewBSONDocumentReader(all)
	dr, err := vr.ReadDocument()
	say.Line("read document", vr.Type(), err)
	for err == nil {
		var key string
		var er bsonrw.ValueReader
		if key, er, err = dr.ReadElement(); err == nil {
			say.Line("read "+key, er.Type())
			if _, _, e := er.ReadDBPointer(); e != nil {
				err = er.Skip()
			}
		}
	}
	say.Line("read to the end", err == bsonrw.ErrEOD)
}
