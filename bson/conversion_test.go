package bson

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"testing"
	"time"
)

// TestConversions decodes values into variables of other types, as the table in the package's
// documentation has it. The value "refused" stands for an error.
func TestConversions(t *testing.T) {
	type refused struct{}
	id := ObjectID{1, 2, 3}
	decimal, err := ParseDecimal128("5")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2020, 1, 2, 3, 4, 5, 678e6, time.UTC)
	lost := Options{AllowTruncation: true}
	for _, tt := range []struct {
		o    Options
		in   any
		want any // its type is the target's; refused{} with target
		into any // the target, for refused
	}{
		{in: 0.0, want: false}, {in: math.NaN(), want: true}, {in: int64(2), want: true}, {in: "true", want: refused{}, into: false},
		{in: 3.0, want: int8(3)}, {in: 128.0, want: refused{}, into: int8(0)}, {in: 1.5, want: refused{}, into: 0}, {o: lost, in: 1.5, want: 1},
		{o: lost, in: 1e300, want: refused{}, into: int64(0)}, {in: math.NaN(), want: refused{}, into: 0}, {in: true, want: uint16(1)},
		{in: -1, want: refused{}, into: uint64(0)}, {in: int64(math.MaxInt64), want: uint64(math.MaxInt64)}, {in: decimal, want: refused{}, into: 0},
		{in: int64(1<<53 + 1), want: refused{}, into: 0.0}, {o: lost, in: int64(1<<53 + 1), want: float64(1 << 53)}, {in: int64(1 << 60), want: float64(1 << 60)},
		{in: int64(math.MaxInt64), want: refused{}, into: 0.0}, {in: 0.1, want: refused{}, into: float32(0)}, {o: lost, in: 0.1, want: float32(0.1)},
		{o: lost, in: 1e300, want: refused{}, into: float32(0)}, {in: math.Inf(1), want: float32(math.Inf(1))}, {in: true, want: 1.0},
		{in: Symbol("s"), want: "s"}, {in: Binary{Data: []byte("é")}, want: "é"}, {in: Binary{BinaryOld, []byte("x")}, want: "x"},
		{in: Binary{Data: []byte{0xFF}}, want: refused{}, into: ""}, {o: Options{AllowInvalidUTF8: true}, in: Binary{Data: []byte{0xFF}}, want: "\xff"},
		{in: Binary{BinaryMD5, []byte("x")}, want: refused{}, into: ""}, {in: id, want: refused{}, into: ""}, {o: Options{ObjectIDAsHex: true}, in: id, want: id.Hex()},
		{in: "é", want: []byte("é")}, {in: Symbol("s"), want: []byte("s")}, {in: A{1}, want: refused{}, into: []byte{}}, {in: Binary{BinaryUUID, make([]byte, 16)}, want: refused{}, into: []byte{}},
		{in: []byte{1}, want: [2]byte{1}}, {in: []byte{1, 2, 3}, want: refused{}, into: [2]byte{}}, {in: A{1, 2}, want: [2]byte{1, 2}}, {in: A{1, 2, 3}, want: refused{}, into: [2]byte{}},
		{in: A{1}, want: [2]int{1}}, {in: A{1, 2, 3}, want: refused{}, into: [2]int{}}, {in: A{"x", nil, Symbol("y")}, want: []string{"x", "", "y"}}, {in: A{1}, want: refused{}, into: []string{}},
		{in: at, want: at}, {in: at.UnixMilli(), want: at}, {in: Timestamp{uint32(at.Unix()), 9}, want: at.Truncate(time.Second)},
		{in: "2020-01-02T04:04:05.678+01:00", want: at}, {in: "yesterday", want: refused{}, into: at}, {in: 5.0, want: refused{}, into: at},
		{o: Options{LocalTime: true}, in: at, want: at.Local()}, {o: Options{LocalTime: true}, in: "2020-01-02T03:04:05.678Z", want: at.Local()},
		{in: int64(5), want: time.Duration(5)}, {in: int64(5), want: DateTime(5)}, {in: 5, want: refused{}, into: DateTime(0)},
		{in: "http://h/p", want: url.URL{Scheme: "http", Host: "h", Path: "/p"}}, {in: ":", want: refused{}, into: url.URL{}}, {in: 1, want: refused{}, into: url.URL{}},
		{in: 7, want: json.Number("7")}, {in: int64(1 << 40), want: json.Number("1099511627776")}, {in: 1.5, want: json.Number("1.5")}, {in: "1", want: refused{}, into: json.Number("")},
		{in: math.Inf(1), want: refused{}, into: json.Number("")}, {in: id.Hex(), want: id}, {in: "x", want: refused{}, into: id}, {in: 5, want: refused{}, into: id},
		{in: "f", want: JavaScript("f")}, {in: "s", want: Symbol("s")}, {in: JavaScript("f"), want: refused{}, into: Symbol("")}, {in: MinKey{}, want: refused{}, into: MaxKey{}},
		{in: CodeWithScope{"c", D{{"x", int32(1)}}}, want: CodeWithScope{"c", D{{"x", int32(1)}}}}, {in: JavaScript("c"), want: refused{}, into: CodeWithScope{}},
		{in: "x", want: refused{}, into: UUID{}}, {in: "x", want: refused{}, into: M{}}, {in: "x", want: refused{}, into: D{}}, {in: D{}, want: refused{}, into: A{}},
		{in: "x", want: refused{}, into: map[string]int{}}, {in: "x", want: refused{}, into: struct{}{}}, {in: "x", want: refused{}, into: Raw{}}, {in: D{}, want: refused{}, into: []int{}},
		{in: D{}, want: refused{}, into: [1]int{}}, {in: 1, want: refused{}, into: make(chan int)},
	} {
		typ := reflect.TypeOf(tt.want)
		if tt.want == any(refused{}) {
			typ = reflect.TypeOf(tt.into)
		}
		t.Run(fmt.Sprintf("%T %v into %v", tt.in, tt.in, typ), func(t *testing.T) {
			raw, err := MarshalValue(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			// Alone, as a field, and in a list.
			alone := reflect.New(typ)
			field := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: typ}}))
			list := reflect.New(reflect.SliceOf(typ))
			start, doc := BeginDocument(nil)
			doc = EndDocument(AppendRawValue(doc, "v", raw), start)
			start, array := BeginDocument(nil)
			array = EndDocument(AppendRawValue(array, "0", raw), start)
			errs := []error{
				tt.o.UnmarshalValue(raw, alone.Interface()), tt.o.Unmarshal(doc, field.Interface()),
				tt.o.UnmarshalValue(RawValue{TypeArray, array}, list.Interface()),
			}
			if typ == reflect.TypeFor[byte]() {
				errs = errs[:2]
			}
			for i, err := range errs {
				if (err != nil) != (tt.want == any(refused{})) {
					t.Errorf("%d: error %v, want %v", i, err, tt.want)
				} else if err == nil {
					got := []func() any{
						func() any { return alone.Elem().Interface() }, func() any { return field.Elem().Field(0).Interface() },
						func() any { return list.Elem().Index(0).Interface() },
					}[i]()
					if !reflect.DeepEqual(got, tt.want) {
						t.Errorf("%d: got %v, want %v", i, got, tt.want)
					}
				}
			}
			// Null is the zero value, whatever was there.
			for _, null := range []Type{TypeNull, TypeUndefined} {
				full := reflect.New(typ)
				if err := tt.o.UnmarshalValue(raw, full.Interface()); err != nil {
					continue
				}
				if err := tt.o.UnmarshalValue(RawValue{Type: null}, full.Interface()); err != nil || !full.Elem().IsZero() {
					t.Errorf("%s: got %v, %v", null, full.Elem(), err)
				}
			}
		})
	}
}
