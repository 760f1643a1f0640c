package bson

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// encoded returns v as a D, in the way that everything else is tested against.
func encoded(t *testing.T, o Options, v any) D {
	t.Helper()
	data, err := o.Marshal(v)
	if err != nil {
		t.Fatalf("%+v: %v", v, err)
	}
	if err := Raw(data).Validate(); err != nil {
		t.Fatalf("%+v: %v", v, err)
	}
	var d D
	if err := Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

type zeroAtSeven struct{ N int32 }

func (z zeroAtSeven) IsZero() bool { return z.N == 7 }

type zeroByPointer struct{ N int32 }

func (z *zeroByPointer) IsZero() bool { return z.N == 7 }

type base struct {
	ID   int32 `bson:"_id"`
	Kind string
}

type mid struct {
	base `bson:",inline"`
	Kind string
}

func TestTags(t *testing.T) {
	// By reflection, because vet rightly dislikes such tags.
	bare := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int32](), Tag: "a1,omitempty"}})
	bareOne := reflect.New(bare).Elem()
	bareOne.Field(0).SetInt(1)
	tests := []struct {
		name string
		in   any
		want D
	}{
		{"lower case", struct{ FooBar int32 }{1}, D{{"foobar", int32(1)}}},
		{"key", struct {
			A int32 `bson:"Key"`
		}{1}, D{{"Key", int32(1)}}},
		{"whole tag", bareOne.Interface(), D{{"a1", int32(1)}}},
		{"whole tag, omitted", reflect.Zero(bare).Interface(), D{}},
		{"other tags", struct {
			A int32 `json:"x"`
		}{1}, D{{"a", int32(1)}}},
		{"skip", struct {
			A int32 `bson:"-"`
			B int32
		}{1, 2}, D{{"b", int32(2)}}},
		{"not exported", struct{ a, B int32 }{1, 2}, D{{"b", int32(2)}}},
		{"unknown option", struct {
			A int32 `bson:",strange"`
		}{1}, D{{"a", int32(1)}}},
		{"omitempty", struct {
			A int            `bson:",omitempty"`
			B string         `bson:",omitempty"`
			C []int          `bson:",omitempty"`
			D map[string]int `bson:",omitempty"`
			E *int           `bson:",omitempty"`
			F any            `bson:",omitempty"`
			G bool           `bson:",omitempty"`
			H float64        `bson:",omitempty"`
			I time.Time      `bson:",omitempty"`
			J ObjectID       `bson:",omitempty"`
			K zeroAtSeven    `bson:",omitempty"`
			M [0]int         `bson:",omitempty"`
			N uint8          `bson:",omitempty"`
			O D              `bson:",omitempty"`
			P zeroByPointer  `bson:",omitempty"`
		}{C: []int{}, D: map[string]int{}, K: zeroAtSeven{7}, O: D{}, P: zeroByPointer{7}}, D{}},
		{"omitempty keeps", struct {
			A struct{ X int32 } `bson:",omitempty"`
			B [1]int32          `bson:",omitempty"`
			C zeroAtSeven       `bson:",omitempty"`
			D *int32            `bson:",omitempty"`
			E *zeroAtSeven      `bson:",omitempty"`
		}{D: new(int32), E: &zeroAtSeven{7}}, D{{"a", D{{"x", int32(0)}}}, {"b", A{int32(0)}}, {"c", D{{"n", int32(0)}}}, {"d", int32(0)}, {"e", D{{"n", int32(7)}}}}},
		{"omitzero", struct {
			A struct{ X int32 } `bson:",omitzero"`
			B [1]int32          `bson:",omitzero"`
			C []int             `bson:",omitzero"`
			D []int             `bson:",omitzero"`
			E zeroAtSeven       `bson:",omitzero"`
			F time.Time         `bson:",omitzero"`
			G int64             `bson:",omitzero"`
			H string            `bson:",omitzero"`
		}{D: []int{}, E: zeroAtSeven{7}}, D{{"d", A{}}}},
		{"minsize", struct {
			A int64            `bson:",minsize"`
			B int64            `bson:",minsize"`
			C uint32           `bson:",minsize"`
			D []int64          `bson:",minsize"`
			E map[string]int64 `bson:",minsize"`
			F any              `bson:",minsize"`
			G int64
		}{1, 1 << 40, 2, []int64{3}, map[string]int64{"x": 4}, int64(5), 6},
			D{{"a", int32(1)}, {"b", int64(1 << 40)}, {"c", int32(2)}, {"d", A{int32(3)}}, {"e", D{{"x", int32(4)}}},
				{"f", int32(5)}, {"g", int64(6)}}},
		{"embedded", struct {
			base
			X int32
		}{base{1, "k"}, 2}, D{{"x", int32(2)}}},
		{"inline", struct {
			First int32
			Mid   mid `bson:",inline"`
			Last  int32
		}{1, mid{base{2, "hidden"}, "shown"}, 3}, D{{"first", int32(1)}, {"_id", int32(2)}, {"kind", "shown"}, {"last", int32(3)}}},
		{"inline pointer", struct {
			P *zeroAtSeven `bson:",inline"`
			Q int32
		}{&zeroAtSeven{1}, 2}, D{{"n", int32(1)}, {"q", int32(2)}}},
		{"inline nil pointer", struct {
			P *zeroAtSeven `bson:",inline"`
			Q int32
		}{nil, 2}, D{{"q", int32(2)}}},
		{"options without a comma", struct {
			In zeroAtSeven `bson:"inline"`
			A  int32       `bson:"omitempty"`
			B  int64       `bson:"minsize"`
			C  int32       `bson:"omitzero"`
			D  int32       `bson:"Inline"`
		}{In: zeroAtSeven{1}, B: 2}, D{{"n", int32(1)}, {"minsize", int32(2)}, {"omitzero", int32(0)}, {"Inline", int32(0)}}},
		{"option and key", struct {
			A int32 `bson:"omitempty"`
		}{3}, D{{"omitempty", int32(3)}}},
		{"inline with minsize", struct {
			In struct{ N int64 } `bson:",minsize,inline"`
			M  map[string]int64  `bson:",minsize,inline"`
		}{struct{ N int64 }{1}, map[string]int64{"m": 2}}, D{{"n", int64(1)}, {"m", int64(2)}}},
		{"inline map", struct {
			M map[string]int32 `bson:",inline"`
			Q int32
		}{map[string]int32{"a": 1}, 2}, D{{"q", int32(2)}, {"a", int32(1)}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := encoded(t, Options{}, test.in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			// What was encoded must come back, whether the keys are in order or not.
			data, err := Marshal(test.in)
			if err != nil {
				t.Fatal(err)
			}
			for _, reversed := range []bool{false, true} {
				if reversed {
					d := append(D{}, test.want...)
					for i, j := 0, len(d)-1; i < j; i, j = i+1, j-1 {
						d[i], d[j] = d[j], d[i]
					}
					if data, err = Marshal(d); err != nil {
						t.Fatal(err)
					}
				}
				out := reflect.New(reflect.TypeOf(test.in))
				if err := Unmarshal(data, out.Interface()); err != nil {
					t.Fatal(err)
				}
				if got := encoded(t, Options{}, out.Interface()); len(got) < len(test.want) {
					t.Errorf("after a round: got %v, want %v", got, test.want)
				}
			}
		})
	}
}

func TestBadStructs(t *testing.T) {
	type Loop struct {
		L *Loop `bson:",inline"`
	}
	tests := []struct {
		in   any
		want string
	}{
		{struct {
			A int `bson:"x"`
			B int `bson:"x"`
		}{}, `key "x" twice`},
		{struct {
			A base        `bson:",inline"`
			B zeroAtSeven `bson:",inline"`
			C struct{ N int }
			D struct {
				ID int `bson:"_id"`
			} `bson:",inline"`
		}{}, `key "_id" twice`},
		{struct {
			A map[string]int `bson:",inline"`
			B map[string]int `bson:",inline"`
		}{}, "more than one inline map"},
		{struct {
			A int `bson:",inline"`
		}{}, "inline"},
		{Loop{}, "inline in itself"},
		{struct {
			A int `bson:"a\x00b"`
		}{}, "NUL"},
		{struct {
			M map[string]int `bson:",inline"`
			A int
		}{map[string]int{"a": 1}, 1}, "also a field's"},
		{struct{ C chan int }{}, "no BSON form"},
		{struct{ F func() }{}, "no BSON form"},
		{struct{ C complex128 }{}, "no BSON form"},
		{struct{ M map[float64]int }{map[float64]int{1: 1}}, "cannot be the key"},
		{map[string]int{"a\x00b": 1}, "NUL"},
		{D{{"a\xff", 1}}, "UTF-8"},
		{D{{"a", "\xff"}}, "UTF-8"},
		{D{{"a", Regex{"a\x00", ""}}}, "NUL"},
		{D{{"a", RawValue{}}}, "no type"},
		{D{{"a", RawValue{Type: TypeInt32, Value: []byte{1}}}}, "ends early"},
		{D{{"a", Raw{5, 0, 0, 0}}}, "ends early"},
		{D{{"a", uint64(math.MaxUint64)}}, "out of range"},
		{D{{"a", time.Unix(math.MaxInt64/100, 0)}}, "out of range"},
		{1, "not a document"},
		{[]int{1}, "not a document"},
		{nil, "not a document"},
		{(*base)(nil), "not a document"},
	}
	for _, test := range tests {
		out, err := MarshalAppend([]byte("kept"), test.in)
		var ee *EncodeError
		if !errors.As(err, &ee) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%T: got %v, want %q", test.in, err, test.want)
		}
		if string(out) != "kept" {
			t.Errorf("%T: dst became %q", test.in, out)
		}
	}
}

func TestDecodeNumbers(t *testing.T) {
	type into struct {
		I   int
		I8  int8
		I32 int32
		I64 int64
		U   uint
		U8  uint8
		U64 uint64
		F32 float32
		F64 float64
		B   bool
		S   string
		T   int     `bson:",truncate"`
		TF  float32 `bson:",truncate"`
	}
	tests := []struct {
		key  string
		v    any
		want any // nil for an error
	}{
		{"i", 3.0, 3}, {"i", 3.5, nil}, {"i", math.NaN(), nil}, {"i", math.Inf(1), nil}, {"i", 1e19, nil}, {"i", true, 1},
		{"i", int64(1 << 30), 1 << 30}, {"i", "1", nil}, {"i", nil, 0}, {"i", NewDecimal128(0, 0), nil},
		{"i8", 127, int8(127)}, {"i8", 128, nil}, {"i8", -129, nil}, {"i32", int64(1 << 31), nil}, {"i64", -9.0e18, int64(-9e18)},
		{"i64", -9223372036854775808.0, int64(math.MinInt64)}, {"i64", 9223372036854775808.0, nil},
		{"u", -1, nil}, {"u", -1.0, nil}, {"u8", 255, uint8(255)}, {"u8", 256, nil}, {"u64", int64(math.MaxInt64), uint64(math.MaxInt64)},
		{"f32", 0.5, float32(0.5)}, {"f32", 0.1, nil}, {"f32", 1e300, nil}, {"f32", int32(1 << 24), float32(1 << 24)},
		{"f32", int32(1<<24 + 1), nil}, {"f32", math.Inf(-1), float32(math.Inf(-1))},
		{"f64", int64(1 << 53), float64(1 << 53)}, {"f64", int64(1<<53 + 1), nil}, {"f64", int64(math.MaxInt64), nil},
		{"f64", int64(math.MinInt64), float64(math.MinInt64)},
		{"b", 0, false}, {"b", 2.5, true}, {"b", "true", nil}, {"s", 1, nil}, {"s", Symbol("x"), "x"}, {"s", ObjectID{}, nil},
		{"t", -1.9, -1}, {"t", 1e30, nil}, {"tf", 0.1, float32(0.1)}, {"tf", int64(math.MaxInt64), float32(math.MaxInt64)},
		{"tf", 1e300, nil},
	}
	for _, test := range tests {
		data, err := Marshal(D{{test.key, test.v}})
		if err != nil {
			t.Fatal(err)
		}
		var out into
		err = Unmarshal(data, &out)
		if test.want == nil {
			var de *DecodeError
			if !errors.As(err, &de) || de.Path != test.key {
				t.Errorf("%v into %s: got %v", test.v, test.key, err)
			}
			continue
		}
		var got any
		v := reflect.ValueOf(out)
		for i := range v.NumField() {
			if strings.ToLower(v.Type().Field(i).Name) == test.key {
				got = v.Field(i).Interface()
			}
		}
		if err != nil || got != test.want {
			t.Errorf("%v into %s: got %v, %v, want %v", test.v, test.key, got, err, test.want)
		}
	}
}

func TestDecodeInto(t *testing.T) {
	type point struct{ X, Y int }
	p := &point{9, 9}
	v := struct {
		P *point
		Q *point
		M map[string]int
		S []int
		N int
		I any
	}{P: p, Q: p, M: map[string]int{"old": 1}, S: []int{7, 8}, N: 5, I: "old"}
	old := v.S
	data, err := Marshal(D{{"p", D{{"x", 1}}}, {"q", nil}, {"m", D{{"new", 2}}}, {"s", A{1}}, {"I", D{}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if *p != (point{1, 9}) || v.P != p || v.Q != nil {
		t.Errorf("pointers: %+v", v)
	}
	if !reflect.DeepEqual(v.M, map[string]int{"old": 1, "new": 2}) || v.N != 5 {
		t.Errorf("map and others: %+v", v)
	}
	if !reflect.DeepEqual(v.S, []int{1}) || old[0] != 7 {
		t.Errorf("slice %v shares memory with the old one %v", v.S, old)
	}
	if !reflect.DeepEqual(v.I, D{}) {
		t.Errorf("any: %v", v.I)
	}
	for _, bad := range []any{nil, v, (*point)(nil), 1, M(nil)} {
		if err := Unmarshal(data, bad); !errors.Is(err, errNotPointer) {
			t.Errorf("into %T: %v", bad, err)
		}
	}
	m := M{"kept": 1}
	if err := Unmarshal(data, m); err != nil || len(m) != 6 {
		t.Errorf("into a map: %v, %v", m, err)
	}
	if err := Unmarshal(append(data, 0), &m); err == nil {
		t.Error("bytes after the document: no error")
	}
}

// TestKeysInLowerCase: a key without a field of its own is tried in lower case, in every script.
func TestKeysInLowerCase(t *testing.T) {
	type fields struct {
		Größe, ÄÖ, FooBar int32
		Upper             int32 `bson:"UP"`
	}
	data, err := Marshal(D{{"GRÖßE", 1}, {"ÄÖ", 2}, {"fooBAR", 3}, {"up", 4}, {"\u212A", 5}})
	if err != nil {
		t.Fatal(err)
	}
	var out fields
	if err := Unmarshal(data, &out); err != nil || out != (fields{1, 2, 3, 0}) {
		t.Errorf("got %+v, %v", out, err)
	}
}
