package bson

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestEncodeOptions(t *testing.T) {
	type lists struct {
		S []int
		M map[string]int
		B []byte
		D D
		A A
		T []string
	}
	all := Options{NilSliceAsNull: true, NilMapAsNull: true, NilBytesAsNull: true}
	tests := []struct {
		name string
		o    Options
		in   any
		want D
	}{
		{"nil is empty", Options{}, lists{}, D{{"s", A{}}, {"m", D{}}, {"b", Binary{0, []byte{}}}, {"d", D{}}, {"a", A{}}, {"t", A{}}}},
		{"nil is null", all, lists{}, D{{"s", nil}, {"m", nil}, {"b", nil}, {"d", nil}, {"a", nil}, {"t", nil}}},
		{"nil in any", Options{}, D{{"a", A(nil)}, {"b", []byte(nil)}, {"c", M(nil)}, {"d", []int(nil)}},
			D{{"a", A{}}, {"b", Binary{0, []byte{}}}, {"c", D{}}, {"d", A{}}}},
		{"nil in any is null", all, D{{"a", A(nil)}, {"b", []byte(nil)}, {"c", M(nil)}, {"d", []int(nil)}},
			D{{"a", nil}, {"b", nil}, {"c", nil}, {"d", nil}}},
		{"MinSize", Options{MinSize: true}, D{{"a", int64(1)}, {"b", []int64{2}}, {"c", struct{ X uint64 }{3}}},
			D{{"a", int32(1)}, {"b", A{int32(2)}}, {"c", D{{"x", int32(3)}}}}},
		{"OmitEmpty", Options{OmitEmpty: true}, struct {
			A int
			B string
			C int32
		}{C: 1}, D{{"c", int32(1)}}},
		{"OmitZero", Options{OmitZero: true}, struct {
			A struct{ X int }
			C int32
		}{C: 1}, D{{"c", int32(1)}}},
		{"JSONTags", Options{JSONTags: true}, struct {
			A int32 `json:"x"`
			B int32 `json:"y,omitempty"`
			C int32 `json:"w" bson:"z"`
			D int32 `json:"-"`
		}{1, 0, 2, 3}, D{{"x", int32(1)}, {"z", int32(2)}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := encoded(t, test.o, test.in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestDecodeOptions(t *testing.T) {
	id := ObjectID{1, 2}
	doc := D{{"a", int32(1)}, {"b", D{{"c", A{D{{"d", "x"}}}}}}}
	date := time.UnixMilli(1700000000000)
	type one struct {
		A any
		S string
		T time.Time
		M map[string]int32
	}
	tests := []struct {
		name string
		o    Options
		in   D
		into any
		want any // nil for an error
	}{
		{"D in M", Options{}, doc, new(M), &M{"a": int32(1), "b": D{{"c", A{D{{"d", "x"}}}}}}},
		{"M in M", Options{Documents: DocumentsAsM}, doc, new(M), &M{"a": int32(1), "b": M{"c": A{M{"d": "x"}}}}},
		{"M in D", Options{Documents: DocumentsAsM}, doc, new(D), &D{{"a", int32(1)}, {"b", M{"c": A{M{"d": "x"}}}}}},
		{"Raw in D", Options{Documents: DocumentsAsRaw}, D{{"a", D{}}, {"b", A{}}}, new(D),
			&D{{"a", Raw{5, 0, 0, 0, 0}}, {"b", RawValue{TypeArray, []byte{5, 0, 0, 0, 0}}}}},
		{"unknown field", Options{}, D{{"zz", 1}}, new(one), new(one)},
		{"unknown field refused", Options{DisallowUnknownFields: true}, D{{"zz", 1}}, new(one), nil},
		{"duplicate in struct", Options{}, D{{"s", "1"}, {"s", "2"}}, new(one), &one{S: "2"}},
		{"duplicate in struct refused", Options{DisallowDuplicateKeys: true}, D{{"s", "1"}, {"s", "2"}}, new(one), nil},
		{"duplicate in M refused", Options{DisallowDuplicateKeys: true}, D{{"s", "1"}, {"s", "2"}}, new(M), nil},
		{"duplicate in D", Options{}, D{{"s", "1"}, {"s", "2"}}, new(D), &D{{"s", "1"}, {"s", "2"}}},
		{"duplicate in D refused", Options{DisallowDuplicateKeys: true}, D{{"s", "1"}, {"s", "2"}}, new(D), nil},
		{"duplicate in map refused", Options{DisallowDuplicateKeys: true}, D{{"s", "1"}, {"s", "2"}}, new(map[string]string), nil},
		{"truncation", Options{AllowTruncation: true}, D{{"m", D{{"x", 1.9}}}}, new(one), &one{M: map[string]int32{"x": 1}}},
		{"UTC", Options{}, D{{"t", date}}, new(one), &one{T: date.UTC()}},
		{"local time", Options{LocalTime: true}, D{{"t", date}}, new(one), &one{T: date.Local()}},
		{"bytes", Options{BinaryAsBytes: true}, D{{"a", []byte{1}}}, new(one), &one{A: []byte{1}}},
		{"bytes of a subtype", Options{BinaryAsBytes: true}, D{{"a", Binary{5, []byte{1}}}}, new(one), &one{A: Binary{5, []byte{1}}}},
		{"hex", Options{ObjectIDAsHex: true}, D{{"s", id}}, new(one), &one{S: id.Hex()}},
		{"UUID", Options{UUID: UUIDStandard}, D{{"a", UUID{1}}}, new(one), &one{A: UUID{1}}},
		{"clear map", Options{ClearMaps: true}, D{{"m", D{{"x", 1}}}}, &one{M: map[string]int32{"y": 2}}, &one{M: map[string]int32{"x": 1}}},
		{"clear M", Options{ClearMaps: true}, D{{"x", 1}}, &M{"y": 2}, &M{"x": int32(1)}},
		{"clear struct", Options{ClearStructs: true}, D{{"a", "new"}}, &one{S: "old"}, &one{A: "new"}},
		{"depth", Options{MaxDepth: 3}, doc, new(D), nil},
		{"depth is enough", Options{MaxDepth: 4}, doc, new(D), &doc},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data, err := Marshal(test.in)
			if err != nil {
				t.Fatal(err)
			}
			err = test.o.Unmarshal(data, test.into)
			if test.want == nil {
				var de *DecodeError
				if !errors.As(err, &de) || de.Path == "" {
					t.Errorf("got %v, %v", test.into, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(test.into, test.want) {
				t.Errorf("got %v, %v, want %v", test.into, err, test.want)
			}
		})
	}
	bad := EndDocument(AppendString([]byte{0, 0, 0, 0}, "a", "\xff"), 0)
	var m M
	if err := Unmarshal(bad, &m); !errors.Is(err, errUTF8) {
		t.Errorf("invalid UTF-8: %v", err)
	}
	if err := (Options{AllowInvalidUTF8: true}).Unmarshal(bad, &m); err != nil || m["a"] != "\xff" {
		t.Errorf("invalid UTF-8 allowed: %v, %v", m, err)
	}
}

type money struct{ cents int64 }

type shape interface{ Area() float64 }
type square struct{ Side float64 }
type circle struct{ R float64 }

func (s square) Area() float64  { return s.Side * s.Side }
func (c *circle) Area() float64 { return c.R * c.R * 3 }

func TestCodecs(t *testing.T) {
	codecs, err := NewCodecs(
		CodecFor(func(dst []byte, m money) (Type, []byte, error) {
			return TypeString, AppendStringValue(dst, fmt.Sprintf("%d.%02d", m.cents/100, m.cents%100)), nil
		}, func(v RawValue) (money, error) {
			s, ok := v.StringValue()
			if !ok {
				return money{}, errors.New("no string")
			}
			var m money
			_, err := fmt.Sscanf(strings.Replace(s, ".", "", 1), "%d", &m.cents)
			return m, err
		}),
		CodecFor(func(dst []byte, n *big.Int) (Type, []byte, error) {
			return TypeString, AppendStringValue(dst, "big"+n.String()), nil
		}, nil),
		CodecFor(func(dst []byte, s shape) (Type, []byte, error) {
			return TypeDouble, AppendDoubleValue(dst, s.Area()), nil
		}, func(v RawValue) (shape, error) {
			f, ok := v.Double()
			if !ok {
				return nil, errors.New("no double")
			}
			return square{f}, nil
		}),
		CodecFor(func(dst []byte, s string) (Type, []byte, error) {
			return TypeString, AppendStringValue(dst, strings.ToUpper(s)), nil
		}, nil),
	)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Codecs: codecs}
	type order struct {
		Total money
		Tip   *money
		List  []money
		By    map[string]money
		Shape shape
		Round *circle
		Name  string
		Any   any
	}
	in := order{money{1234}, &money{5}, []money{{1}, {2}}, map[string]money{"x": {3}}, square{2}, &circle{1}, "name", money{7}}
	want := D{{"total", "12.34"}, {"tip", "0.05"}, {"list", A{"0.01", "0.02"}}, {"by", D{{"x", "0.03"}}}, {"shape", 4.0},
		{"round", 3.0}, {"name", "NAME"}, {"any", "0.07"}}
	if got := encoded(t, o, in); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	nothing := D{{"s", shape((*circle)(nil))}, {"b", (*big.Int)(nil)}, {"m", (*money)(nil)}}
	if got := encoded(t, o, nothing); !reflect.DeepEqual(got, D{{"s", nil}, {"b", nil}, {"m", nil}}) {
		t.Errorf("nil pointers: %v", got)
	}
	// Other options, other codecs: the same types without them.
	if got := encoded(t, Options{}, order{Name: "name"}); !reflect.DeepEqual(got[6].Value, "name") || !reflect.DeepEqual(got[0].Value, D{}) {
		t.Errorf("without codecs: %v", got)
	}
	data, err := o.Marshal(D{{"total", "12.34"}, {"list", A{"0.01"}}, {"shape", 4.0}})
	if err != nil {
		t.Fatal(err)
	}
	var out order
	if err := o.Unmarshal(data, &out); err != nil || out.Total.cents != 1234 || out.List[0].cents != 1 || out.Shape != (square{4}) {
		t.Errorf("got %+v, %v", out, err)
	}
	data, _ = Marshal(D{{"list", A{"0.01", 5}}})
	var de *DecodeError
	if err := o.Unmarshal(data, &out); !errors.As(err, &de) || de.Path != "list.1" || de.GoType != reflect.TypeFor[money]() {
		t.Errorf("got %v", err)
	}
	if _, err := NewCodecs(CodecFor[int](nil, nil), CodecFor[int](nil, nil)); err == nil {
		t.Error("two codecs for one type: no error")
	}
	broken, _ := NewCodecs(CodecFor(func(dst []byte, m money) (Type, []byte, error) { return TypeInt64, append(dst, 1), nil }, nil))
	if _, err := (Options{Codecs: broken}).Marshal(D{{"a", money{}}}); err == nil {
		t.Error("a codec that appends nonsense: no error")
	}
	if err := Unmarshal(data, &struct{ List shape }{}); err == nil {
		t.Error("an interface without codec: no error")
	}
}

// TestConcurrentCompile compiles codecs of types that refer to each other from many goroutines.
func TestConcurrentCompile(t *testing.T) {
	type leaf struct{ V int32 }
	type node struct {
		L, R *node
		Leaf leaf
		Map  map[string]*node
	}
	o := Options{MaxDepth: 17} // options that no other test has compiled for
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			in := node{L: &node{}, Map: map[string]*node{"x": {Leaf: leaf{3}}}}
			data, err := o.Marshal(in)
			var out node
			if err == nil {
				err = o.Unmarshal(data, &out)
			}
			if err != nil || out.Map["x"].Leaf.V != 3 {
				t.Errorf("got %+v, %v", out, err)
			}
		})
	}
	wg.Wait()
}

// TestNilDocuments: NilMapAsNull is about what lies in a document; an outermost nil map is an empty
// one.
func TestNilDocuments(t *testing.T) {
	for _, v := range []any{D(nil), M(nil), Raw(nil), map[string]int(nil), (*M)(nil)} {
		for _, o := range []Options{{}, {NilMapAsNull: true}} {
			got, err := o.Marshal(v)
			if wantErr := v == any((*M)(nil)); (err != nil) != wantErr || err == nil && !Raw(got).IsEmpty() {
				t.Errorf("%T with %v: got %v, %v", v, o.NilMapAsNull, Raw(got), err)
			}
		}
	}
}
