package bson

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"allium/internal/norace"
)

func nested(levels int) Raw {
	doc := Raw{5, 0, 0, 0, 0}
	for range levels - 1 {
		start, dst := BeginDocument(nil)
		doc = EndDocument(AppendDocument(dst, "a", doc), start)
	}
	return doc
}

func TestValidateDepth(t *testing.T) {
	for _, test := range []struct {
		levels, depth int
		ok            bool
	}{{1, 1, true}, {1, 0, false}, {2, 1, false}, {200, 200, true}, {201, 200, false}, {5000, 5000, true}} {
		err := nested(test.levels).ValidateDepth(test.depth)
		if (err == nil) != test.ok {
			t.Errorf("%d levels, depth %d: %v", test.levels, test.depth, err)
		}
	}
	if err := nested(201).Validate(); !errors.Is(err, errTooDeep) {
		t.Errorf("201 levels: %v", err)
	}
	// Decoding and encoding count alike.
	var d D
	if err := Unmarshal(nested(200), &d); err != nil {
		t.Errorf("decode 200 levels: %v", err)
	}
	if _, err := Marshal(d); err != nil {
		t.Errorf("encode 200 levels: %v", err)
	}
	if _, err := Marshal(D{{"a", d}}); !errors.Is(err, errTooDeep) {
		t.Errorf("encode 201 levels: %v", err)
	}
}

func TestValidatePath(t *testing.T) {
	bad := RawValue{TypeBoolean, []byte{2}}
	if v, ok := bad.Boolean(); v || ok {
		t.Errorf("a boolean of 2 is %v, %v", v, ok)
	}
	for _, test := range []struct {
		doc  any
		path string
	}{
		{D{{"x", 1}, {"bad", bad}}, "bad"},
		{D{{"x", D{}}, {"a", A{1, D{{"b", "c"}}, D{{"y", "z"}, {"bad", bad}, {"w", 1}}}}}, "a.2.bad"},
		{D{{"s", CodeWithScope{"code", D{{"v", 1}, {"bad", bad}}}}, {"x", 1}}, "s.bad"},
	} {
		data, err := Marshal(test.doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range []Raw{data, append(data, "more"...)[:len(data)]} {
			var de *DecodeError
			if err := doc.Validate(); !errors.As(err, &de) || de.Path != test.path || de.BSONType != TypeBoolean {
				t.Errorf("%v: %v", test.doc, err)
			}
			var d D
			if err := Unmarshal(doc, &d); !errors.As(err, &de) || de.Path != test.path {
				t.Errorf("%v: decode: %v", test.doc, err)
			}
		}
	}
}

func TestRawIsReadWithoutAllocation(t *testing.T) {
	data, err := Marshal(sampleEverything())
	if err != nil {
		t.Fatal(err)
	}
	doc := Raw(data)
	for name, f := range map[string]func(){
		"All": func() {
			for key, v := range doc.All() {
				if key == "" || v.IsZero() {
					t.Fail()
				}
			}
		},
		"Values": func() {
			tags, _ := doc.Lookup("tags").Array()
			for v := range tags.Values() {
				_, _ = v.StringBytes()
			}
		},
		"Lookup": func() { doc.Lookup("places", "1", "zip").Int32() },
		"ReadElement": func() {
			for b := doc.Elements(); len(b) > 0; {
				_, _, b, _ = ReadElement(b)
			}
		},
		"Validate": func() { _ = doc.Validate() },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestAllocations holds the line on how much memory encoding and decoding take.
func TestAllocations(t *testing.T) {
	type person struct {
		ID    ObjectID `bson:"_id"`
		Name  string
		Email string
		Age   int
		Score float64
		Home  address
		Tags  []string
		Jobs  []address
	}
	in := &person{ObjectID{1}, "Ada", "ada@example.com", 36, 1.5, address{"Main Street", 1}, []string{"a", "b"}, []address{{"x", 2}, {"y", 3}}}
	data, err := Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var d D
	if err := Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	var boxed any = d
	buf := make([]byte, 0, 1024)
	options := Options{NilSliceAsNull: true}
	var out person
	for _, test := range []struct {
		name string
		most float64
		f    func()
	}{
		{"encode a struct", 1, func() { _, _ = Marshal(in) }},
		{"append a struct", 0, func() { _, _ = MarshalAppend(buf, in) }},
		{"encode a struct with options", 1, func() { _, _ = options.Marshal(in) }},
		{"encode D", 1, func() { _, _ = Marshal(boxed) }},
		{"append D", 0, func() { _, _ = MarshalAppend(buf, boxed) }},
		{"decode a struct", 3, func() { _ = Unmarshal(data, &out) }}, // the strings, two slices
		{"decode D", 8, func() { var d D; _ = Unmarshal(data, &d) }},
		{"decode Raw", 2, func() { var r Raw; _ = Unmarshal(data, &r) }},
	} {
		// The pools may lose what is in them once in a while; with the race detector they do so on
		// purpose.
		if n := testing.AllocsPerRun(200, test.f); n > test.most && !norace.Detecting {
			t.Errorf("%s: %v allocations, want at most %v", test.name, n, test.most)
		}
	}
}

// TestHostileSizes decodes short documents with long lengths in them: no memory may be taken on
// their word.
func TestHostileSizes(t *testing.T) {
	for _, v := range []RawValue{
		{TypeString, []byte{0xFF, 0xFF, 0xFF, 0x7F, 'x', 0}}, {TypeBinary, []byte{0xFF, 0xFF, 0xFF, 0x7F, 0}},
		{TypeEmbeddedDocument, []byte{0xFF, 0xFF, 0xFF, 0x7F, 0}}, {TypeArray, []byte{0, 0, 0, 0x80, 0}},
		{TypeCodeWithScope, []byte{0xFF, 0xFF, 0xFF, 0x7F, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0}}, {TypeRegex, bytes.Repeat([]byte{'x'}, 50)},
		{TypeDBPointer, []byte{1, 0, 0, 0, 0, 1}}, {Type(0x14), nil},
	} {
		start, dst := BeginDocument(nil)
		data := EndDocument(AppendRawValue(dst, "v", v), start)
		for _, into := range []any{new(D), new(M), new(any), new(struct{ V any }), new(struct{ V string }), new(struct{ V []int }), new(struct{})} {
			var de *DecodeError
			if err := Unmarshal(data, into); !errors.As(err, &de) || !strings.HasPrefix(de.Path, "v") {
				t.Errorf("%s into %T: %v", v.Type, into, err)
			}
		}
		if Raw(data).Validate() == nil {
			t.Errorf("%s: valid", v.Type)
		}
	}
}

// TestRawValueNeverPanics calls the accessors of values of every type with too few bytes of every
// kind.
func TestRawValueNeverPanics(t *testing.T) {
	for typ := range 256 {
		for _, value := range [][]byte{nil, {0}, {1}, {0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0, 0}, {14, 0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0},
			{14, 0, 0, 0, 200, 0, 0, 0, 0, 5, 0, 0, 0, 0}, bytes.Repeat([]byte{0xFF}, 20), make([]byte, 20)} {
			v := RawValue{Type(typ), value}
			v.Double()
			v.StringValue()
			v.Symbol()
			v.JavaScript()
			v.Document()
			v.Array()
			v.Binary()
			v.ObjectID()
			v.Boolean()
			v.DateTime()
			v.Regex()
			v.DBPointer()
			v.CodeWithScope()
			v.Int32()
			v.Int64()
			v.AsInt64()
			v.AsBool()
			v.Timestamp()
			v.Decimal128()
			_ = v.String()
			var x any
			_ = v.Unmarshal(&x)
			_, _ = MarshalValue(v)
			Raw(value).Lookup("a", "b")
			_ = Raw(value).Validate()
		}
	}
}
