package bson

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"testing"
	"time"
)

// fuzzSeeds are documents with everything in them, and broken ones.
func fuzzSeeds(f *testing.F) {
	in := sampleEverything()
	for _, v := range []any{in, D{}, D{{"a", A{D{{"b", CodeWithScope{"c", D{{"d", 1}}}}}}}}, tree{1, []*tree{{Value: 2}}, nil, nil}} {
		data, err := Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
		flipped := bytes.Clone(data)
		flipped[len(flipped)/3] ^= 0x41
		f.Add(flipped)
	}
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Add([]byte{})
}

// FuzzRaw walks documents in every way that Raw has. A valid document must survive them all, and
// decoding.
func FuzzRaw(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		valid := Raw(data).Validate() == nil
		walk(Raw(data), 0)
		if !valid {
			return
		}
		n := 0
		for range Raw(data).All() {
			n++
		}
		var d D
		if err := Unmarshal(data, &d); err != nil {
			t.Fatalf("a valid document does not decode: %v", err)
		}
		if len(d) != n {
			t.Fatalf("%d elements, %d decoded", n, len(d))
		}
		if again, err := Marshal(Raw(data)); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("a valid document does not encode as Raw: %v", err)
		}
	})
}

func walk(r Raw, depth int) {
	if depth > 10 {
		return
	}
	for key, v := range r.All() {
		v.Double()
		v.StringValue()
		v.Binary()
		v.ObjectID()
		v.Boolean()
		v.DateTime()
		v.Regex()
		v.DBPointer()
		v.JavaScript()
		v.Symbol()
		v.Int32()
		v.Int64()
		v.AsInt64()
		v.AsBool()
		v.Timestamp()
		v.Decimal128()
		if doc, ok := v.Document(); ok {
			walk(doc, depth+1)
		}
		if array, ok := v.Array(); ok {
			walk(array, depth+1)
		}
		if _, scope, ok := v.CodeWithScope(); ok {
			walk(scope, depth+1)
		}
		r.Lookup(key)
	}
}

// FuzzDecodeAny decodes into D, M and any. What decodes must encode to the same document.
func FuzzDecodeAny(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var d D
		var m M
		var x any
		in := bytes.Clone(data)
		err := Unmarshal(in, &d)
		if !bytes.Equal(in, data) {
			t.Fatal("decoding changed the input")
		}
		if merr, xerr := Unmarshal(in, &m), Unmarshal(in, &x); (merr == nil) != (err == nil) || (xerr == nil) != (err == nil) {
			t.Fatalf("D: %v, M: %v, any: %v", err, merr, xerr)
		}
		if verr := Raw(in).Validate(); (verr == nil) != (err == nil) {
			t.Fatalf("decode: %v, validate: %v", err, verr)
		}
		if err != nil {
			return
		}
		out, err := Marshal(d)
		if err != nil {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		// Nothing of the input may be in use. Array keys may have been anything, so that the bytes
		// can differ once, but no more.
		clear(in)
		if same, err := Marshal(d); err != nil || !bytes.Equal(same, out) {
			t.Fatalf("the result shares memory with the input: %v", err)
		}
		var again D
		if err := Unmarshal(out, &again); err != nil {
			t.Fatal(err)
		}
		out2, err := Marshal(again)
		if err != nil || !bytes.Equal(out, out2) {
			t.Fatalf("second round differs: %v", err)
		}
		if _, err := Marshal(m); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzDecodeStruct decodes into structs with fields of many types, with different options.
func FuzzDecodeStruct(f *testing.F) {
	fuzzSeeds(f)
	type inline struct {
		A    int `bson:",truncate"`
		Rest map[string]any
	}
	type loose struct {
		inline `bson:",inline"`
		ID     string `bson:"_id"`
		Name   []byte
		Age    json.Number
		Link   *url.URL
		When   *time.Time
		Home   map[string]any
		Tags   [2]string
		Self   *loose
		More   map[string]RawValue `bson:",inline"`
	}
	options := []Options{
		{}, {DisallowDuplicateKeys: true}, {AllowTruncation: true, AllowInvalidUTF8: true, ObjectIDAsHex: true},
		{Documents: DocumentsAsM, UUID: UUIDJavaLegacy, BinaryAsBytes: true, LocalTime: true},
		{Documents: DocumentsAsRaw, MaxDepth: 3, ClearMaps: true, ClearStructs: true},
	}
	targets := []reflect.Type{
		reflect.TypeFor[everything](), reflect.TypeFor[loose](), reflect.TypeFor[tree](), reflect.TypeFor[map[string]int](),
		reflect.TypeFor[map[ObjectID][]tree](),
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, o := range options {
			for _, typ := range targets {
				v := reflect.New(typ)
				if o.Unmarshal(data, v.Interface()) != nil {
					continue
				}
				if o.AllowInvalidUTF8 {
					continue // what came in may not go out
				}
				out, err := o.Marshal(v.Interface())
				if err != nil {
					// Such as a value of an inline map with a field's key, or a RawValue that was
					// never set.
					continue
				}
				w := reflect.New(typ)
				if err := o.Unmarshal(out, w.Interface()); err != nil {
					t.Fatalf("%s: what was encoded does not decode: %v", typ, err)
				}
				out2, err := o.Marshal(w.Interface())
				if err != nil || len(out2) != len(out) {
					t.Fatalf("%s: second round differs: %v", typ, err)
				}
			}
		}
	})
}
