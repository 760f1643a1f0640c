package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/bson/mgocompat"
)

// streams prints what Encoder and Decoder do with readers and writers, and their settings.
func streams() {
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	say("encode twice", enc.Encode(bson.D{{Key: "a", Value: 1}}), enc.Encode(struct{ A int }{2}), buf.Bytes())
	dec := bson.NewDecoder(bson.NewDocumentReader(&buf))
	for i := range 3 {
		var m map[string]int
		err := dec.Decode(&m)
		say(fmt.Sprint("decode ", i), m, err, errors.Is(err, io.EOF))
	}
	buf.Reset()
	enc = bson.NewEncoder(bson.NewExtJSONValueWriter(&buf, false, true))
	say("encode JSON twice", enc.Encode(bson.D{{Key: "a", Value: "<"}}), enc.Encode(bson.D{{Key: "a", Value: 2}}),
		buf.String())
	vr, err := bson.NewExtJSONValueReader(strings.NewReader(`{"a":1} {"a":2}`), false)
	say("JSON reader", err)
	dec = bson.NewDecoder(vr)
	for i := range 3 {
		var m map[string]int
		err := dec.Decode(&m)
		say(fmt.Sprint("decode JSON ", i), m, err)
	}
	for _, text := range []string{`{"a":1}`, `{"a":{"$numberInt":"1"}}`, `{`, ``, ` `, `[1,2]`, `5`, `"x"`, `{"a":1} x`,
		`{"a":{"$date":"2020-01-01T00:00:00Z"}}`} {
		var m map[string]any
		say("JSON into map "+text, bson.UnmarshalExtJSON([]byte(text), true, &m), len(m))
		var a any
		say("JSON into any "+text, bson.UnmarshalExtJSON([]byte(text), false, &a), fmt.Sprintf("%T", a))
	}
	type all struct {
		I  int64
		B  []byte
		M  map[string]int
		L  []int
		Z  struct{ X int } `bson:",omitempty"`
		S  string
		J  int `json:"jay,omitempty"`
		MF map[float64]int
	}
	encoders := map[string]func(e *bson.Encoder){
		"none": func(*bson.Encoder) {}, "IntMinSize": (*bson.Encoder).IntMinSize,
		"NilByteSliceAsEmpty": (*bson.Encoder).NilByteSliceAsEmpty,
		"NilMapAsEmpty":       (*bson.Encoder).NilMapAsEmpty, "NilSliceAsEmpty": (*bson.Encoder).NilSliceAsEmpty,
		"OmitEmpty":      (*bson.Encoder).OmitEmpty,
		"OmitZeroStruct": (*bson.Encoder).OmitZeroStruct, "UseJSONStructTags": (*bson.Encoder).UseJSONStructTags,
		"StringifyMapKeysWithFmt": (*bson.Encoder).StringifyMapKeysWithFmt,
	}
	// In one order: the official driver takes the keys of a struct from where it has met it first.
	for _, name := range slices.Sorted(maps.Keys(encoders)) {
		set := encoders[name]
		buf.Reset()
		e := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		set(e)
		v := all{I: 1, J: 2}
		if name == "StringifyMapKeysWithFmt" {
			v.MF = map[float64]int{1.5: 1}
		}
		err := e.Encode(v)
		say("encode with "+name, bson.Raw(buf.Bytes()), err)
	}
	doc, _ := bson.Marshal(bson.D{{Key: "d", Value: 1.5}, {Key: "b", Value: []byte{1}},
		{Key: "doc", Value: bson.D{{Key: "x", Value: bson.D{}}}}, {Key: "id", Value: bson.ObjectID{1}}, {Key: "t",
			Value: bson.DateTime(5)}, {Key: "jay", Value: 7}, {Key: "m", Value: bson.D{{Key: "new", Value: 1}}}})
	decoders := map[string]func(d *bson.Decoder){
		"none": func(*bson.Decoder) {}, "AllowTruncatingDoubles": (*bson.Decoder).AllowTruncatingDoubles,
		"BinaryAsSlice":    (*bson.Decoder).BinaryAsSlice,
		"DefaultDocumentM": (*bson.Decoder).DefaultDocumentM, "DefaultDocumentMap": (*bson.Decoder).DefaultDocumentMap,
		"ObjectIDAsHexString": (*bson.Decoder).ObjectIDAsHexString,
		"UseJSONStructTags":   (*bson.Decoder).UseJSONStructTags, "UseLocalTimeZone": (*bson.Decoder).UseLocalTimeZone,
		"ZeroMaps": (*bson.Decoder).ZeroMaps, "ZeroStructs": (*bson.Decoder).ZeroStructs,
	}
	for _, name := range slices.Sorted(maps.Keys(decoders)) {
		set := decoders[name]
		d := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
		set(d)
		v := struct {
			B   any
			Doc any
			T   time.Time
			J   int `json:"jay"`
			M   map[string]int
			Old int
			ID  any
		}{M: map[string]int{"old": 1}, Old: 5}
		err := d.Decode(&v)
		say("decode with "+name, fmt.Sprintf("%T %T", v.B, v.Doc), v.T, v.J, v.M, v.Old, err)
		d.Reset(bson.NewDocumentReader(bytes.NewReader(doc)))
		var w struct {
			D  int
			ID string
		}
		err = d.Decode(&w)
		say("decode again with "+name, w, err)
		var a any
		d.Reset(bson.NewDocumentReader(bytes.NewReader(doc)))
		err = d.Decode(&a)
		say("decode any with "+name, fmt.Sprintf("%T", a), err)
	}
}

type celsius float64

type stringer interface{ Hello() string }

type greeter struct{ Name string }

func (g greeter) Hello() string { return "hello " + g.Name }

// registries prints what a registry's encoders and decoders are called with.
func registries() {
	r := bson.NewRegistry()
	for _, t := range []bson.Type{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 127, 255, 77} {
		goType, err := r.LookupTypeMapEntry(t)
		say(fmt.Sprint("type map ", t), goType, err)
	}
	for _, t := range []reflect.Type{nil, reflect.TypeFor[chan int](), reflect.TypeFor[int](),
		reflect.TypeFor[func()]()} {
		_, err := r.LookupEncoder(t)
		say(fmt.Sprint("look up encoder ", t), err)
		_, err = r.LookupDecoder(t)
		say(fmt.Sprint("look up decoder ", t), err)
	}
	try("interface encoder of int", func() any { r.RegisterInterfaceEncoder(reflect.TypeFor[int](), nil); return nil })
	say("encoder error", bson.ValueEncoderError{Name: "X", Types: []reflect.Type{reflect.TypeFor[int]()},
		Received: reflect.ValueOf("s")})
	say("decoder error", bson.ValueDecoderError{Name: "X", Types: []reflect.Type{reflect.TypeFor[int]()},
		Kinds: []reflect.Kind{reflect.Int}, Received: reflect.ValueOf("s")}, bson.ValueDecoderError{Name: "X"})

	r.RegisterTypeEncoder(reflect.TypeFor[celsius](),
		bson.ValueEncoderFunc(func(ec bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			dw, err := vw.WriteDocument()
			if err != nil {
				return err
			}
			ew, err := dw.WriteDocumentElement("celsius")
			if err != nil {
				return err
			}
			enc, err := ec.LookupEncoder(reflect.TypeFor[float64]())
			if err != nil {
				return err
			}
			if err := enc.EncodeValue(ec, ew, reflect.ValueOf(v.Float())); err != nil {
				return err
			}
			return dw.WriteDocumentEnd()
		}))
	r.RegisterTypeDecoder(reflect.TypeFor[celsius](),
		bson.ValueDecoderFunc(func(dc bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
			dr, err := vr.ReadDocument()
			if err != nil {
				return err
			}
			for {
				key, er, err := dr.ReadElement()
				if errors.Is(err, bson.ErrEOD) {
					return nil
				}
				if err != nil {
					return err
				}
				if key != "celsius" {
					return fmt.Errorf("key %s", key)
				}
				f := reflect.New(reflect.TypeFor[float64]()).Elem()
				dec, err := dc.LookupDecoder(f.Type())
				if err != nil {
					return err
				}
				if err := dec.DecodeValue(dc, er, f); err != nil {
					return err
				}
				v.SetFloat(f.Float())
			}
		}))
	r.RegisterInterfaceEncoder(reflect.TypeFor[stringer](),
		bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			return vw.WriteString(v.Interface().(stringer).Hello())
		}))
	r.RegisterKindEncoder(reflect.Uint16,
		bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			aw, err := vw.WriteArray()
			if err != nil {
				return err
			}
			for range v.Uint() {
				ew, err := aw.WriteArrayElement()
				if err != nil {
					return err
				}
				if err := ew.WriteNull(); err != nil {
					return err
				}
			}
			return aw.WriteArrayEnd()
		}))
	r.RegisterKindDecoder(reflect.Uint16,
		bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
			ar, err := vr.ReadArray()
			if err != nil {
				return err
			}
			for n := uint64(0); ; n++ {
				er, err := ar.ReadValue()
				if errors.Is(err, bson.ErrEOA) {
					v.SetUint(n)
					return nil
				}
				if err != nil {
					return err
				}
				if err := er.ReadNull(); err != nil {
					return err
				}
			}
		}))
	r.RegisterTypeMapEntry(bson.TypeInt32, reflect.TypeFor[int]())
	r.RegisterTypeMapEntry(bson.TypeArray, reflect.TypeFor[[]any]())
	r.RegisterTypeMapEntry(bson.TypeDateTime, reflect.TypeFor[time.Time]())
	type outer struct {
		T  celsius
		P  *celsius
		N  *celsius
		L  []celsius
		M  map[string]celsius
		A  any
		G  greeter
		PG *greeter
		U  uint16
		X  any
	}
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(r)
	c := celsius(2)
	err := enc.Encode(outer{T: 1, P: &c, L: []celsius{3}, M: map[string]celsius{"k": 4}, A: celsius(5), G: greeter{"a"},
		PG: &greeter{"b"}, U: 2, X: uint16(1)})
	say("registry encodes", bson.Raw(buf.Bytes()), err)
	var back struct {
		T celsius
		P *celsius
		L []celsius
		M map[string]celsius
		U uint16
		X any
	}
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(buf.Bytes())))
	dec.SetRegistry(r)
	err = dec.Decode(&back)
	if err == nil {
		say("registry decodes", back.T, *back.P, back.L, back.M, back.U, fmt.Sprintf("%T", back.X))
	} else {
		say("registry decodes", err)
	}
	doc, _ := bson.Marshal(bson.D{{Key: "i", Value: 1}, {Key: "l", Value: bson.A{int32(1), bson.A{}}},
		{Key: "t", Value: bson.DateTime(0)}, {Key: "s", Value: "x"}})
	dec.Reset(bson.NewDocumentReader(bytes.NewReader(doc)))
	var m bson.M
	err = dec.Decode(&m)
	say("registry types", err, fmt.Sprintf("%T %T %T %T", m["i"], m["l"], m["t"], m["s"]))
	for _, wrong := range []any{"x", bson.D{{Key: "z", Value: 1}}, nil} {
		doc, _ := bson.Marshal(bson.D{{Key: "t", Value: wrong}})
		dec.Reset(bson.NewDocumentReader(bytes.NewReader(doc)))
		say(fmt.Sprintf("registry error %T", wrong), dec.Decode(&back))
	}
	rv := bson.RawValue{Type: bson.TypeInt32, Value: []byte{1, 0, 0, 0}}
	var n int
	say("raw value", rv.Unmarshal(&n), rv.UnmarshalWithRegistry(nil, &n), rv.UnmarshalWithContext(nil, &n),
		rv.UnmarshalWithContext(&bson.DecodeContext{Registry: r}, &n), n)
}

type get struct {
	v   any
	err error
}

func (g get) GetBSON() (any, error) { return g.v, g.err }

type set struct {
	t   bson.Type
	ret error
}

func (s *set) SetBSON(raw bson.RawValue) error {
	s.t = raw.Type
	return s.ret
}

// mgo prints what the registries in the manner of mgo do.
func mgo() {
	for name, r := range map[string]*bson.Registry{"mgo": mgocompat.Registry,
		"mgo nil": mgocompat.RespectNilValuesRegistry} {
		encode := func(what string, v any) {
			var buf bytes.Buffer
			e := bson.NewEncoder(bson.NewDocumentWriter(&buf))
			e.SetRegistry(r)
			err := e.Encode(v)
			say(name+" encodes "+what, bson.Raw(buf.Bytes()), err)
		}
		encode("values", struct {
			S   []int
			M   map[string]int
			B   []byte
			D   bson.D
			P   *int
			I   int64
			U   uint32
			Z   struct{ X int } `bson:",omitempty"`
			G   get
			Gn  *get
			Dur time.Duration
		}{G: get{v: "x"}, I: 5})
		encode("document", get{v: bson.D{{Key: "a", Value: 1}}})
		encode("nil", struct{ G get }{})
		encode("error", struct{ G get }{get{err: errors.New("boo")}})
		decode := func(what string, d, v any) {
			doc, _ := bson.Marshal(d)
			x := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
			x.SetRegistry(r)
			err := x.Decode(v)
			say(name+" decodes "+what, fmt.Sprintf("%#v", reflect.ValueOf(v).Elem()), err)
		}
		values := bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: 1}}}, {Key: "arr", Value: bson.A{bson.D{}}},
			{Key: "bin", Value: []byte{1}}, {Key: "t", Value: bson.DateTime(5)}, {Key: "l", Value: int64(1)},
			{Key: "n", Value: nil}}
		m := map[string]any{"old": 1}
		decode("map", values, &m)
		decode("D", values, new(bson.D))
		v := struct {
			A int
			C string
		}{A: 5}
		decode("struct", bson.D{{Key: "c", Value: bson.ObjectID{1}}}, &v)
		s := struct {
			S set
			P *set
		}{}
		decode("setter", bson.D{{Key: "s", Value: "x"}}, &s)
		z := struct{ S set }{set{ret: bson.ErrMgoSetZero}}
		decode("set zero", bson.D{{Key: "s", Value: "x"}}, &z)
		decode("text", bson.D{{Key: "c", Value: 5}}, &v)
	}
}
