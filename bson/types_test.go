package bson

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestCorpusProse1NullBytes: what BSON ends with a NUL cannot hold one.
func TestCorpusProse1NullBytes(t *testing.T) {
	for name, v := range map[string]any{
		"root field name":        D{{"a\x00", 1}},
		"sub-document name":      D{{"a", D{{"b\x00", 1}}}},
		"root field name of M":   M{"a\x00": 1},
		"name in an array":       D{{"a", A{D{{"b\x00", 1}}}}},
		"name in a scope":        D{{"a", CodeWithScope{Scope: D{{"b\x00", 1}}}}},
		"regex pattern":          D{{"a", Regex{Pattern: "b\x00"}}},
		"regex options":          D{{"a", Regex{Options: "i\x00"}}},
		"regex pattern in field": struct{ A Regex }{Regex{Pattern: "b\x00"}},
	} {
		if b, err := Marshal(v); err == nil {
			t.Errorf("%s: got %x, want an error", name, b)
		}
	}
}

func TestRegexOptionsAreSorted(t *testing.T) {
	start, doc := BeginDocument(nil)
	doc = append(AppendHeader(doc, TypeRegex, "r"), "a\x00xmi\x00"...)
	doc = EndDocument(doc, start)
	var d D
	if err := Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	again, err := Marshal(d)
	if r, ok := Raw(again).Lookup("r").Regex(); err != nil || !ok || r.Options != "imx" {
		t.Errorf("got %s, %v", r, err)
	}
	if got := AppendRegex(nil, "r", Regex{Pattern: "a", Options: "xmi"}); string(got) != "\x0Br\x00a\x00imx\x00" {
		t.Errorf("AppendRegex: got %q", got)
	}
	if r := NewRegex("a", "si"); r.Options != "is" || r.String() != "/a/is" {
		t.Errorf("got %s", r)
	}
}

// TestJSON writes each type as JSON and reads it back.
func TestJSON(t *testing.T) {
	id, _ := ParseObjectID("507f1f77bcf86cd799439011")
	uuid, _ := ParseUUID("00112233-4455-6677-8899-aabbccddeeff")
	decimal, _ := ParseDecimal128("1.50")
	doc, _ := Marshal(D{{"a", int32(1)}})
	for _, tt := range []struct {
		v    any
		want string
	}{
		{id, `"507f1f77bcf86cd799439011"`},
		{uuid, `"00112233-4455-6677-8899-aabbccddeeff"`},
		{decimal, `"1.50"`},
		{DateTime(1356351330501), `"2012-12-24T12:15:30.501Z"`},
		{Timestamp{T: 1, I: 2}, `{"$timestamp":{"t":1,"i":2}}`},
		{Binary{Subtype: 0x80, Data: []byte{1}}, `{"$binary":{"base64":"AQ==","subType":"80"}}`},
		{Binary{Subtype: 2, Data: []byte{1}}, `{"$binary":{"base64":"AQ==","subType":"02"}}`},
		{Regex{Pattern: "a", Options: "i"}, `{"$regularExpression":{"pattern":"a","options":"i"}}`},
		{JavaScript("f()"), `"f()"`},
		{Symbol("s"), `"s"`},
		{CodeWithScope{"f()", D{{"x", int32(1)}}}, `{"$code":"f()","$scope":{"x":1}}`},
		{DBPointer{DB: "d.c", Pointer: id}, `{"$dbPointer":{"$ref":"d.c","$id":{"$oid":"507f1f77bcf86cd799439011"}}}`},
		{Undefined{}, `{"$undefined":true}`},
		{MinKey{}, `{"$minKey":1}`},
		{MaxKey{}, `{"$maxKey":1}`},
		{Null{}, `null`},
		{Raw(doc), `{"a":1}`},
		{RawValue{Type: TypeObjectID, Value: id[:]}, `{"$oid":"507f1f77bcf86cd799439011"}`},
		{D{{"b", int32(1)}, {"a", A{"x", nil, D{}}}}, `{"b":1,"a":["x",null,{}]}`},
		{DBRef{Collection: "c", ID: int32(1), Extra: D{{"x", true}}}, `{"$ref":"c","$id":1,"x":true}`},
	} {
		text, err := json.Marshal(tt.v)
		if err != nil || string(text) != tt.want {
			t.Errorf("%T: got %s, %v, want %s", tt.v, text, err, tt.want)
			continue
		}
		back := reflect.New(reflect.TypeOf(tt.v))
		if err := json.Unmarshal(text, back.Interface()); err != nil || !reflect.DeepEqual(back.Elem().Interface(), tt.v) {
			t.Errorf("%T: %s becomes %v, %v", tt.v, text, back.Elem(), err)
		}
		if tt.want == "null" {
			continue
		}
		for _, wrong := range []string{`[]`, `true`, `{"a":{"$minKey":"x"}}`} {
			_, anything := tt.v.(RawValue)
			if err := json.Unmarshal([]byte(wrong), reflect.New(reflect.TypeOf(tt.v)).Interface()); err == nil && (!anything || wrong[0] == '{') {
				t.Errorf("%T: %s is accepted", tt.v, wrong)
			}
		}
	}
	var d Decimal128
	if err := json.Unmarshal([]byte(`1234567890123456789.123456789012345`), &d); err != nil || d.String() != "1234567890123456789.123456789012345" {
		t.Errorf("a JSON number becomes %s, %v", d, err)
	}
	if err := json.Unmarshal([]byte(`{"$numberDecimal":"1.50"}`), &d); err != nil || d != decimal {
		t.Errorf("got %s, %v", d, err)
	}
	var when DateTime
	if err := json.Unmarshal([]byte(`{"$date":{"$numberLong":"5"}}`), &when); err != nil || when != 5 {
		t.Errorf("got %s, %v", when, err)
	}
}

// TestDJSON compares with what encoding/json makes of the same values in a map.
func TestDJSON(t *testing.T) {
	id, _ := ParseObjectID("507f1f77bcf86cd799439011")
	d := D{
		{"<&>", "<é\u2028>"}, {"id", id}, {"n", 1.5}, {"when", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, {"list", A{D{{"x", 1}}, M{"y": []int{2}}}},
		{"nil", nil}, {"nilD", D(nil)}, {"nilA", A(nil)}, {"bytes", []byte("ab")},
	}
	for _, e := range d {
		got, err := json.Marshal(D{e})
		want, wantErr := json.Marshal(map[string]any{e.Key: e.Value})
		if err != nil || wantErr != nil || string(got) != string(want) {
			t.Errorf("got %s, %v, want %s, %v", got, err, want, wantErr)
		}
	}
	if got, err := json.Marshal(D(nil)); err != nil || string(got) != "null" {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := json.Marshal(D{{"a", func() {}}}); err == nil {
		t.Errorf("a function becomes %s", got)
	}
	var back D
	if err := json.Unmarshal([]byte(`{"b":1,"a":{"y":[true],"x":2.5}}`), &back); err != nil ||
		!reflect.DeepEqual(back, D{{"b", int32(1)}, {"a", D{{"y", A{true}}, {"x", 2.5}}}}) {
		t.Errorf("got %v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`null`), &back); err != nil || len(back) != 2 {
		t.Errorf("null changes the document to %v, %v", back, err)
	}
}

func TestStrings(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{Timestamp{T: 1, I: 2}, "Timestamp(1, 2)"},
		{Binary{Subtype: 4, Data: []byte{1}}, `Binary(4, "AQ==")`},
		{Binary{Subtype: BinarySensitive, Data: []byte("secret")}, "Binary(8, 6 bytes)"},
		{CodeWithScope{Code: "f()", Scope: D{{"a", 1}}}, `Code("f()", {"a":1})`},
		{DBPointer{DB: "d.c"}, `DBPointer("d.c", ObjectID("000000000000000000000000"))`},
		{DateTime(1356351330501), "2012-12-24T12:15:30.501Z"},
		{D{{"a", A{MinKey{}, MaxKey{}, Undefined{}}}}, `{"a":[{"$minKey":1},{"$maxKey":1},{"$undefined":true}]}`},
		{fmt.Sprint(MinKey{}, MaxKey{}, Undefined{}, Null{}), "MinKey MaxKey undefined null"},
		{M{"b": 1, "a": M{"z": A{M{"y": 1, "x": 2}}, "k": D{{"q", M{"j": 1, "i": 2}}}}}, `{"a":{"k":{"q":{"i":2,"j":1}},"z":[{"x":2,"y":1}]},"b":1}`},
		{D{{"a", make(chan int)}}, `<bson: encode at "a" from chan int: type has no BSON form>`},
		{Raw{1, 2}, "<malformed document: bson: document ends early>"},
		{RawValue{}, ""},
		{RawValue{Type: TypeInt32}, "<malformed value: bson: document ends early>"},
		{RawValue{Type: TypeString, Value: AppendStringValue(nil, "a")}, `"a"`},
		{VectorFloat32, "FLOAT32"},
		{DBRef{Collection: "c", ID: 1}, `{"$ref":"c","$id":1}`},
		{UUIDCSharpLegacy, "csharpLegacy"},
	} {
		if got := fmt.Sprint(tt.v); got != tt.want {
			t.Errorf("%T: got %s, want %s", tt.v, got, tt.want)
		}
	}
}

func TestRawValueAsNumber(t *testing.T) {
	for _, tt := range []struct {
		v      RawValue
		n      int64
		whole  bool
		isTrue bool
	}{
		{int32Value(5), 5, true, true}, {int64Value(0), 0, true, false}, {doubleValue(-3), -3, true, true}, {doubleValue(0.5), 0, false, true},
		{decimalValue("2.0"), 2, true, true}, {decimalValue("0E+3"), 0, true, false}, {decimalValue("0.5"), 0, false, true},
		{decimalValue("NaN"), 0, false, true}, {stringValue(""), 0, false, true}, {RawValue{}, 0, false, false},
	} {
		if n, whole := tt.v.AsInt64(); n != tt.n || whole != tt.whole || tt.v.AsBool() != tt.isTrue {
			t.Errorf("%s: AsInt64 %d, %v, AsBool %v", tt.v, n, whole, tt.v.AsBool())
		}
	}
}

func TestStringOfCycle(t *testing.T) {
	m := M{}
	m["a"], m["b"] = m, m
	if got := m.String(); !strings.Contains(got, "nests too deep") {
		t.Errorf("got %.100s", got)
	}
}

func TestTimestamp(t *testing.T) {
	a, b := Timestamp{T: 1, I: 0xFFFFFFFF}, Timestamp{T: 0x80000000, I: 0}
	if !a.Before(b) || !b.After(a) || a.After(a) || a.Compare(b) != -1 || a.Compare(a) != 0 || (Timestamp{}).IsZero() != true || a.IsZero() {
		t.Error("timestamps are out of order")
	}
	if got := b.Time().Unix(); got != 0x80000000 {
		t.Errorf("got %d", got)
	}
}

func TestDocumentHelpers(t *testing.T) {
	raw, _ := Marshal(D{{"r", A{D{{"deep", "x"}}}}})
	d := D{
		{"a", int32(1)}, {"a", int32(2)}, {"m", M{"list": A{"x", D{{"y", true}}}}}, {"raw", Raw(raw)}, {"value", Raw(raw).Lookup("r")},
		{"plain", map[string]any{"list": []any{5}}},
	}
	for _, tt := range []struct {
		path []string
		want string // empty: nothing there
	}{
		{nil, fmt.Sprint(d)},
		{[]string{"a"}, "1"},
		{[]string{"m", "list", "0"}, "x"},
		{[]string{"m", "list", "1", "y"}, "true"},
		{[]string{"raw", "r", "0", "deep"}, `"x"`},
		{[]string{"value", "0", "deep"}, `"x"`},
		{[]string{"plain", "list", "0"}, "5"},
		{[]string{"b"}, ""}, {[]string{"a", "b"}, ""}, {[]string{"m", "list", "2"}, ""}, {[]string{"m", "list", "-1"}, ""},
		{[]string{"m", "list", "x"}, ""}, {[]string{"m", "x"}, ""}, {[]string{"raw", "x"}, ""}, {[]string{"value", "0", "deep", "er"}, ""},
	} {
		got, ok := d.Lookup(tt.path...)
		if ok != (tt.want != "") || ok && fmt.Sprint(got) != tt.want {
			t.Errorf("%q: got %v, %v, want %s", tt.path, got, ok, tt.want)
		}
	}
	if got, ok := (M{"a": D{{"b", 1}}}).Lookup("a", "b"); !ok || got != 1 {
		t.Errorf("got %v, %v", got, ok)
	}

	var e D
	e.Set("x", 1)
	e.Set("y", 2)
	e.Set("x", 3)
	if got := e.String(); got != `{"x":3,"y":2}` {
		t.Errorf("got %s", got)
	}
	if !e.Delete("x") || e.Delete("x") || len(e) != 1 {
		t.Errorf("got %s", e)
	}
	if got := d.M()["a"]; got != int32(2) {
		t.Errorf("got %v", got)
	}
	if got := (M{"b": 1, "a": 2}).D().String(); got != `{"a":2,"b":1}` {
		t.Errorf("got %s", got)
	}
	var keys []string
	for key := range d.All() {
		if keys = append(keys, key); len(keys) == 3 {
			break
		}
	}
	if fmt.Sprint(keys) != "[a a m]" {
		t.Errorf("got %v", keys)
	}
}

func TestConvert(t *testing.T) {
	type user struct {
		Name string
		Age  int
		Tags []string
	}
	ada := user{"Ada", 36, []string{"x"}}
	d, err := Convert[D](ada)
	if err != nil || d.String() != `{"name":"Ada","age":36,"tags":["x"]}` {
		t.Errorf("got %v, %v", d, err)
	}
	m, err := Convert[M](d)
	if err != nil || m["name"] != "Ada" {
		t.Errorf("got %v, %v", m, err)
	}
	back, err := Convert[user](m)
	if err != nil || !reflect.DeepEqual(back, ada) {
		t.Errorf("got %v, %v", back, err)
	}
	if list, err := Convert[[]int64](A{1, 2.0}); err != nil || fmt.Sprint(list) != "[1 2]" {
		t.Errorf("got %v, %v", list, err)
	}
	if _, err := Convert[user](D{{"age", "x"}}); err == nil {
		t.Error("a string is an age")
	}
	if _, err := Convert[D](func() {}); err == nil {
		t.Error("a function is a document")
	}
}

func TestZeroValues(t *testing.T) {
	type zeroer interface{ IsZero() bool }
	id, uuid := NewObjectID(), NewUUID()
	for _, tt := range []struct{ zero, other zeroer }{
		{ObjectID{}, id}, {UUID{}, uuid}, {Decimal128{}, NewDecimal128FromInt64(0)}, {Timestamp{}, Timestamp{I: 1}},
		{Binary{}, Binary{Subtype: 4}}, {Binary{Data: []byte{}}, Binary{Data: []byte{0}}}, {Regex{}, Regex{Options: "i"}},
		{DBPointer{}, DBPointer{Pointer: id}}, {DBRef{}, DBRef{ID: 1}}, {Vector{}, NewInt8Vector(nil)}, {RawValue{}, RawValue{Type: TypeNull}},
	} {
		if !tt.zero.IsZero() || tt.other.IsZero() {
			t.Errorf("%T: IsZero of %v is %v, of %v %v", tt.zero, tt.zero, tt.zero.IsZero(), tt.other, tt.other.IsZero())
		}
	}
	type all struct {
		ID     ObjectID   `bson:",omitempty"`
		UUID   UUID       `bson:",omitempty"`
		Price  Decimal128 `bson:",omitempty"`
		When   Timestamp  `bson:",omitempty"`
		Data   Binary     `bson:",omitempty"`
		Regex  Regex      `bson:",omitempty"`
		Ref    DBRef      `bson:",omitempty"`
		Vector Vector     `bson:",omitzero"`
	}
	if doc, err := Convert[D](all{}); err != nil || len(doc) != 0 {
		t.Errorf("got %v, %v", doc, err)
	}
	full := all{id, uuid, NewDecimal128FromInt64(1), Timestamp{1, 2}, Binary{Data: []byte{1}}, NewRegex("a", "i"), DBRef{Collection: "c", ID: "x"},
		NewFloat32Vector([]float32{1})}
	if back, err := Convert[all](full); err != nil || !reflect.DeepEqual(back, full) {
		t.Errorf("got %v, %v, want %v", back, err, full)
	}
	// Null is the zero value of each.
	start, null := BeginDocument(nil)
	for _, key := range []string{"id", "uuid", "price", "when", "data", "regex", "vector"} {
		null = AppendNull(null, key)
	}
	null = EndDocument(null, start)
	if err := Unmarshal(null, &full); err != nil || !full.ID.IsZero() || !full.UUID.IsZero() || !full.Vector.IsZero() || !full.Data.IsZero() {
		t.Errorf("got %v, %v", full, err)
	}
}

func TestText(t *testing.T) {
	when := DateTime(1356351330501)
	for _, tt := range []struct {
		v    any
		text string
	}{
		{when, "2012-12-24T12:15:30.501Z"},
		{NewDecimal128FromInt64(-5), "-5"},
		{UUID{15: 1}, "00000000-0000-0000-0000-000000000001"},
		{ObjectID{11: 1}, "000000000000000000000001"},
	} {
		text, err := tt.v.(encoding.TextMarshaler).MarshalText()
		if err != nil || string(text) != tt.text {
			t.Errorf("%T: got %s, %v, want %s", tt.v, text, err, tt.text)
		}
		back := reflect.New(reflect.TypeOf(tt.v))
		if err := back.Interface().(encoding.TextUnmarshaler).UnmarshalText(text); err != nil || back.Elem().Interface() != tt.v {
			t.Errorf("%T: got %v, %v", tt.v, back.Elem(), err)
		}
		for _, wrong := range []string{"x", tt.text + "0x"} {
			if err := back.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(wrong)); err == nil || back.Elem().Interface() != tt.v {
				t.Errorf("%T: %s becomes %v, %v", tt.v, wrong, back.Elem(), err)
			}
		}
	}
	if NewDateTime(when.Time()) != when || when.Compare(when+1) != -1 {
		t.Error("times do not convert back or compare")
	}
	if (UUID{1}).Compare(UUID{2}) != -1 {
		t.Error("UUIDs do not compare")
	}
	if hi, lo := NewDecimal128(1, 2).Bits(); hi != 1 || lo != 2 {
		t.Error("bits do not come back")
	}
}

func TestOptionsExtJSON(t *testing.T) {
	o := Options{UUID: UUIDJavaLegacy}
	text, err := o.MarshalExtJSON(M{"id": UUID{1}}, true)
	if want := `{"id":{"$binary":{"base64":"AAAAAAAAAAEAAAAAAAAAAA==","subType":"03"}}}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	var back struct{ ID UUID }
	if err := o.UnmarshalExtJSON(text, &back); err != nil || back.ID != (UUID{1}) {
		t.Errorf("got %v, %v", back, err)
	}
	if err := UnmarshalExtJSON(text, &back); err == nil {
		t.Error("a legacy UUID is taken for a standard one")
	}
	d := NewExtJSONDecoder(strings.NewReader(string(text)))
	d.Options = o
	var v struct{ ID any }
	if err := d.Decode(&v); err != nil || v.ID != (UUID{1}) {
		t.Errorf("got %v, %v", v, err)
	}
	var raw Raw
	if err := NewExtJSONDecoder(strings.NewReader(string(text))).Decode(&raw); err != nil || raw.Lookup("id").Type != TypeBinary {
		t.Errorf("got %v, %v", raw, err)
	}
}

// TestNullThroughJSON: what encoding/json writes as null it reads again.
func TestNullThroughJSON(t *testing.T) {
	type all struct {
		R   Raw
		D   D
		A   A
		M   M
		Ref DBRef
	}
	text, err := json.Marshal(struct{ R, D, A, M, Ref any }{})
	if err != nil {
		t.Fatal(err)
	}
	var out all
	if err := json.Unmarshal(text, &out); err != nil || !reflect.DeepEqual(out, all{}) {
		t.Errorf("%s becomes %+v, %v", text, out, err)
	}
	text, err = json.Marshal(struct{ R Raw }{})
	if err != nil || json.Unmarshal(text, &out) != nil {
		t.Errorf("%s does not come back: %v", text, err)
	}
}
