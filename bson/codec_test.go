package bson

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

type address struct {
	Street string
	Zip    int32 `bson:"zip,omitempty"`
}

type everything struct {
	ID       ObjectID `bson:"_id"`
	Name     string
	Age      int
	Big      int64
	Small    int8
	Unsigned uint32
	Score    float64
	Ratio    float32
	OK       bool
	When     time.Time
	Took     time.Duration
	Home     address
	Work     *address
	None     *address
	Tags     []string
	Numbers  []int64
	Places   []address
	Pointers []*address
	Fixed    [3]int32
	Bytes    []byte
	Sum      [4]byte
	Any      any
	Nested   D
	Free     M
	List     A
	Counts   map[string]int
	ByID     map[ObjectID]string
	ByInt    map[int]bool
	Link     url.URL
	Number   json.Number
	Addr     netip.Addr
	Huge     big.Int
	Left     RawValue
	Doc      Raw
	Dec      Decimal128
	Re       Regex
	JS       JavaScript
	Sym      Symbol
	TS       Timestamp
	Bin      Binary
	DT       DateTime
	Skipped  string `bson:"-"`
}

func sampleEverything() everything {
	u, _ := url.Parse("https://example.com/a?b=c")
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	return everything{
		ID: ObjectID{1, 2, 3}, Name: "Ada Łovelace", Age: 36, Big: 1 << 40, Small: -8, Unsigned: math.MaxUint32,
		Score: 1.5, Ratio: 0.25, OK: true, When: time.UnixMilli(1700000000123).UTC(), Took: time.Minute,
		Home: address{"Main", 1}, Work: &address{"Side", 0}, Tags: []string{"a", "", "ü"},
		Numbers: []int64{1, 1 << 50}, Places: []address{{"x", 1}, {"y", 2}}, Pointers: []*address{nil, {"p", 9}},
		Fixed: [3]int32{1, 2, 3}, Bytes: []byte{0, 1, 2}, Sum: [4]byte{9, 8, 7, 6},
		Any: D{{"k", int32(1)}, {"l", A{"x", nil, true, 2.5}}}, Nested: D{{"n", D{{"m", int64(5 << 40)}}}},
		Free: M{"one": "1"}, List: A{int32(300), int64(7), DateTime(5), ObjectID{5}},
		Counts: map[string]int{"a": 1, "b": 2}, ByID: map[ObjectID]string{{7}: "seven"}, ByInt: map[int]bool{-3: true},
		Link: *u, Number: "12", Addr: netip.MustParseAddr("::1"), Huge: *huge,
		Left: RawValue{Type: TypeInt32, Value: []byte{1, 0, 0, 0}}, Doc: Raw{5, 0, 0, 0, 0},
		Dec: NewDecimal128(0x3040000000000000, 1), Re: Regex{"^a", "i"}, JS: "f()", Sym: "s", TS: Timestamp{1, 2},
		Bin: Binary{BinaryUserDefined, []byte{1}}, DT: 99,
	}
}

func TestStructRoundTrip(t *testing.T) {
	in := sampleEverything()
	data, err := Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := Raw(data).Validate(); err != nil {
		t.Fatal(err)
	}
	again, err := Marshal(&in)
	if err != nil || len(again) != len(data) {
		t.Fatalf("a pointer encodes differently: %v", err)
	}
	var out everything
	if err := Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("got  %+v\nwant %+v", out, in)
	}
	for i := range data {
		data[i] = 0xFF
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("the result shares memory with the input")
	}
}

func TestDRoundTrip(t *testing.T) {
	in := D{
		{"double", 1.5}, {"string", "x"}, {"doc", D{{"a", int32(1)}}}, {"array", A{"x", int32(1000)}},
		{"bin", Binary{0, []byte{1}}}, {"undefined", Undefined{}}, {"id", ObjectID{1}}, {"true", true},
		{"date", DateTime(-1)}, {"null", nil}, {"regex", Regex{"a", "b"}}, {"pointer", DBPointer{"db.c", ObjectID{2}}},
		{"js", JavaScript("x")}, {"symbol", Symbol("y")}, {"scope", CodeWithScope{"z", D{{"v", int32(1)}}}},
		{"int32", int32(-5)}, {"timestamp", Timestamp{3, 4}}, {"int64", int64(1 << 40)},
		{"decimal", NewDecimal128(1, 2)}, {"min", MinKey{}}, {"max", MaxKey{}},
	}
	data, err := Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out D
	if err := Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("got  %v\nwant %v", out, in)
	}
	var m M
	if err := Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	want := in.M()
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got  %v\nwant %v", m, want)
	}
	var x any
	if err := Unmarshal(data, &x); err != nil || !reflect.DeepEqual(x, any(in)) {
		t.Errorf("into any: %v, %v", x, err)
	}
	var raw Raw
	if err := Unmarshal(data, &raw); err != nil || !bytes.Equal(raw, data) || &raw[0] == &data[0] {
		t.Errorf("into Raw: %v", err)
	}
}

func TestErrorPath(t *testing.T) {
	type item struct{ Price int }
	type order struct{ Items []item }
	data, err := Marshal(D{{"items", A{D{{"price", 1}}, D{{"price", 1.5}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var o order
	err = Unmarshal(data, &o)
	var de *DecodeError
	if !errors.As(err, &de) || de.Path != "items.1.price" || de.BSONType != TypeDouble || de.GoType.Kind() != reflect.Int {
		t.Errorf("got %#v", err)
	}
	_, err = Marshal(M{"a": A{0, D{{"b", make(chan int)}}}})
	var ee *EncodeError
	if !errors.As(err, &ee) || ee.Path != "a.1.b" || ee.GoType.Kind() != reflect.Chan {
		t.Errorf("got %#v", err)
	}
	if !strings.Contains(err.Error(), `bson: encode at "a.1.b" from chan int: `) {
		t.Errorf("got %v", err)
	}
}

type tree struct {
	Value    int
	Children []*tree         `bson:",omitempty"`
	Named    map[string]tree `bson:",omitempty"`
	Next     *tree           `bson:",omitempty"`
}

func TestRecursion(t *testing.T) {
	in := tree{1, []*tree{{Value: 2}, {Value: 3, Next: &tree{Value: 4}}}, map[string]tree{"x": {Value: 5}}, nil}
	data, err := Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out tree
	if err := Unmarshal(data, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("got %+v, %v", out, err)
	}
	in.Next = &in
	if _, err := Marshal(in); !errors.Is(err, errTooDeep) {
		t.Errorf("cycle: %v", err)
	}
	d := D{{"self", nil}}
	d[0].Value = d
	if _, err := Marshal(d); !errors.Is(err, errTooDeep) {
		t.Errorf("cycle of D: %v", err)
	}
	var x any
	x = &x
	if _, err := Marshal(D{{"x", x}}); !errors.Is(err, errTooDeep) {
		t.Errorf("cycle of pointers: %v", err)
	}
	type P *P
	var p P
	p = &p
	if _, err := Marshal(D{{"x", p}}); err == nil {
		t.Errorf("pointer to itself: no error")
	}
	deep := []byte{5, 0, 0, 0, 0}
	for range 201 {
		start, doc := BeginDocument(nil)
		deep = EndDocument(AppendDocument(doc, "a", deep), start)
	}
	for _, into := range []any{new(D), new(M), new(any), new(tree2)} {
		if err := Unmarshal(deep, into); !errors.Is(err, errTooDeep) {
			t.Errorf("%T: %v", into, err)
		}
	}
}

type tree2 struct{ A *tree2 }

type role uint8

// TestNamedBytes: only bytes are binary. A slice of an enumeration is an array of numbers, so that
// queries find them.
func TestNamedBytes(t *testing.T) {
	type bytes []byte
	type roles struct {
		S []role
		A [2]role
		B bytes
	}
	in := roles{[]role{1, 2}, [2]role{3, 4}, bytes{5}}
	want := D{{"s", A{int32(1), int32(2)}}, {"a", A{int32(3), int32(4)}}, {"b", Binary{Data: []byte{5}}}}
	if got := encoded(t, Options{}, in); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	data, err := Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out roles
	if err := Unmarshal(data, &out); err != nil || !reflect.DeepEqual(out, in) {
		t.Errorf("got %v, %v, want %v", out, err, in)
	}
}

// TestMalformedValues: a broken value of the right type is not said to be one of the wrong type.
func TestMalformedValues(t *testing.T) {
	for _, tt := range []struct {
		v    RawValue
		into any
		want error
	}{
		{RawValue{TypeRegex, []byte("\xff\x00\x00")}, new(Regex), errMalformed},
		{RawValue{TypeBinary, []byte{5, 0, 0, 0, 2, 9, 0, 0, 0, 1}}, new(Binary), errMalformed},
		{RawValue{TypeBinary, []byte{0, 0, 0, 0, 0}}, new(Regex), errWrongType},
		{RawValue{TypeString, []byte{1, 0, 0, 0, 0}}, new(MinKey), errWrongType},
		{RawValue{TypeInt32, []byte{1, 0, 0, 0}}, new(Symbol), errWrongType},
	} {
		var de *DecodeError
		err := tt.v.Unmarshal(tt.into)
		if !errors.Is(err, tt.want) || !errors.As(err, &de) || de.GoType != reflect.TypeOf(tt.into).Elem() {
			t.Errorf("%s %x into %T: got %v, want %v", tt.v.Type, tt.v.Value, tt.into, err, tt.want)
		}
	}
}
