package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"reflect"
	"testing"
	"time"

	official "go.mongodb.org/mongo-driver/v2/bson"

	"allium/bson"
)

// The types here are made of Go's own types only, so that both drivers can have the very same
// value.

type inner struct {
	A int
	B string `bson:"b,omitempty"`
}

type Embedded struct {
	E int
	F string `bson:"eff"`
}

type unexported struct{ U int }

type named string
type number int
type list []string
type table map[string]int
type zeroed struct{ N int }

func (z zeroed) IsZero() bool { return z.N == 7 }

type textKey int

func (k textKey) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "key%d", int(k)), nil }
func (k *textKey) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "key%d", (*int)(k))
	return err
}

type valueMarshaler struct{ s string }

func (v valueMarshaler) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeString), bson.AppendStringValue(nil, v.s), nil
}
func (v *valueMarshaler) UnmarshalBSONValue(t byte, data []byte) error {
	if t != byte(bson.TypeString) {
		return fmt.Errorf("type %d", t)
	}
	v.s = string(data[4 : len(data)-1])
	return nil
}

type documentMarshaler struct{ n int32 }

func (v documentMarshaler) MarshalBSON() ([]byte, error) {
	start, dst := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendInt32(dst, "n", v.n), start), nil
}
func (v *documentMarshaler) UnmarshalBSON(data []byte) error {
	v.n, _ = bson.Raw(data).Lookup("n").Int32()
	return nil
}

type scalars struct {
	Bool    bool
	Int     int
	Int8    int8
	Int16   int16
	Int32   int32
	Int64   int64
	Uint    uint
	Uint8   uint8
	Uint16  uint16
	Uint32  uint32
	Uint64  uint64
	Float32 float32
	Float64 float64
	String  string
	Named   named
	Number  number
	Time    time.Time
	Dur     time.Duration
	JSON    json.Number
	URL     url.URL
}

type pointers struct {
	P  *int
	PP **string
	S  *inner
	T  *time.Time
	A  any
}

type composites struct {
	Strings []string
	Ints    []int
	Structs []inner
	Ptrs    []*inner
	Array   [2]int
	Bytes   []byte
	Sum     [3]byte
	Map     map[string]int
	MapS    map[string]inner
	MapI    map[int]string
	MapT    map[textKey]int
	Any     []any
	Nested  [][]int
	List    list
	Table   table
	Matrix  map[string][]inner
}

type tags struct {
	Renamed   string         `bson:"x"`
	Empty     string         `bson:",omitempty"`
	EmptyS    inner          `bson:",omitempty"`
	EmptyT    time.Time      `bson:",omitempty"`
	EmptyM    map[string]int `bson:"em,omitempty"`
	EmptyL    []int          `bson:"el,omitempty"`
	EmptyP    *int           `bson:"ep,omitempty"`
	EmptyZ    zeroed         `bson:"ez,omitempty"`
	EmptyA    any            `bson:"ea,omitempty"`
	EmptyArr  [2]int         `bson:"earr,omitempty"`
	EmptyArr0 [0]int         `bson:"earr0,omitempty"`
	Min       int64          `bson:",minsize"`
	MinU      uint32         `bson:",minsize"`
	MinS      []int64        `bson:",minsize"`
	Trunc     int            `bson:",truncate"`
	TruncF    float32        `bson:"tf,truncate"`
	Skip      int            `bson:"-"`
	Upper     int            `bson:"UPPER"`
	_         int            // neither driver writes it
}

type inlined struct {
	Embedded `bson:",inline"`
	In       inner          `bson:",inline"`
	Ptr      *zeroed        `bson:",inline"`
	Rest     map[string]any `bson:",inline"`
	Last     int
}

type embedding struct {
	Embedded
	unexported
	X int
}

type shadow struct {
	E     string
	Inner Embedded `bson:",inline"`
}

type methods struct {
	V  valueMarshaler
	PV *valueMarshaler
	D  documentMarshaler
	PD *documentMarshaler
	L  []valueMarshaler
	M  map[string]documentMarshaler
}

type recursive struct {
	V    int
	Kids []recursive          `bson:",omitempty"`
	Map  map[string]recursive `bson:",omitempty"`
	Next *recursive           `bson:",omitempty"`
}

type generic[T any] struct {
	Value T
	List  []T
}

func targets() []reflect.Type {
	var out []reflect.Type
	for _, v := range []any{
		scalars{}, pointers{}, composites{}, tags{}, inlined{}, embedding{}, shadow{}, methods{}, recursive{},
		generic[inner]{}, generic[*int]{}, map[string]int{}, map[string]any{}, map[string]inner{}, map[textKey]string{},
		map[string]string{}, map[named]float64{}, map[string][]byte{}, map[string]time.Time{}, map[string]*inner{},
	} {
		out = append(out, reflect.TypeOf(v))
	}
	return out
}

// fill sets v to a random value. Nil slices and maps, which the drivers encode differently, and
// what cannot be encoded are left out.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMilli(r.Int64N(1 << 42)).UTC()))
		return
	case reflect.TypeFor[url.URL]():
		v.Set(reflect.ValueOf(url.URL{Scheme: "http", Host: "h", Path: "/" + word(r)}))
		return
	case reflect.TypeFor[json.Number]():
		v.SetString([]string{"1", "-70000000000", "1.5", "1e300"}[r.IntN(4)])
		return
	case reflect.TypeFor[valueMarshaler]():
		v.Set(reflect.ValueOf(valueMarshaler{word(r)}))
		return
	case reflect.TypeFor[documentMarshaler]():
		v.Set(reflect.ValueOf(documentMarshaler{r.Int32()}))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := int64(r.Uint64())
		if r.IntN(2) == 0 {
			n = int64(r.IntN(10))
		}
		v.SetInt(n >> (64 - v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> (65 - v.Type().Bits() + r.IntN(v.Type().Bits()-1)))
	case reflect.Float32:
		v.SetFloat(float64(float32(r.NormFloat64())))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64())
	case reflect.String:
		v.SetString(word(r))
	case reflect.Pointer:
		if r.IntN(3) > 0 && depth < 5 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		n := r.IntN(4)
		if depth >= 5 {
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		// One entry at most: the drivers may order more differently.
		v.Set(reflect.MakeMap(v.Type()))
		if r.IntN(3) > 0 && depth < 5 {
			k, x := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, k, depth+1)
			fill(r, x, depth+1)
			v.SetMapIndex(k, x)
		}
	case reflect.Interface:
		x := []any{nil, word(r), r.Int(), r.Int32(), r.Float64(), true, int64(5), []any{word(r), 1}, map[string]any{"k": 1},
			time.UnixMilli(r.Int64N(1 << 42)).UTC(), inner{A: 1}, &inner{B: "x"}, []byte{1, 2}, uint32(7), [2]string{"a", "b"}}
		if c := x[r.IntN(len(x))]; c != nil {
			v.Set(reflect.ValueOf(c))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(r, f, depth+1)
			}
		}
	}
}

func word(r *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyzäöüß日本語😀 ABC0123"
	runes := []rune(letters)
	out := make([]rune, r.IntN(20))
	for i := range out {
		out[i] = runes[r.IntN(len(runes))]
	}
	return string(out)
}

// TestStructsAgree encodes random values of many types with both drivers, which must give the same
// bytes, and decodes those again with both, which must give the same values.
func TestStructsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range targets() {
		t.Run(typ.String(), func(t *testing.T) {
			for range 300 {
				v := reflect.New(typ)
				fill(r, v.Elem(), 0)
				want, wantErr := official.Marshal(v.Interface())
				got, gotErr := bson.Marshal(v.Interface())
				if (wantErr == nil) != (gotErr == nil) {
					t.Fatalf("encode %+v:\nAllium:   %v\nofficial: %v", v.Elem(), gotErr, wantErr)
				}
				if wantErr != nil {
					continue
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("encode %+v:\nAllium:   %v\nofficial: %v", v.Elem(), bson.Raw(got), official.Raw(want))
				}
				compareDecoded(t, got, typ)
			}
		})
	}
}

// TestPointersOfOmitemptyDiffer pins where the drivers differ on purpose: the official one leaves
// a pointer out when what it leads to says IsZero, and so loses a change to that value. Allium
// decides as encoding/json does.
func TestPointersOfOmitemptyDiffer(t *testing.T) {
	v := struct {
		P *zeroed `bson:"p,omitempty"`
	}{&zeroed{7}}
	ours, err := bson.Marshal(v)
	if _, there := bson.Raw(ours).Lookup("p").Document(); err != nil || !there {
		t.Errorf("Allium: %v, %v", bson.Raw(ours), err)
	}
	theirs, err := official.Marshal(v)
	if err != nil || len(theirs) != 5 {
		t.Errorf("official: %v, %v: no longer leaves it out; let the random structs have it", official.Raw(theirs), err)
	}
}

func compareDecoded(t *testing.T, data []byte, typ reflect.Type) {
	t.Helper()
	ours, theirs := reflect.New(typ), reflect.New(typ)
	gotErr := bson.Unmarshal(data, ours.Interface())
	wantErr := official.Unmarshal(data, theirs.Interface())
	if (wantErr == nil) != (gotErr == nil) {
		t.Fatalf("decode %v:\nAllium:   %v\nofficial: %v", bson.Raw(data), gotErr, wantErr)
	}
	if wantErr != nil {
		return
	}
	if a, b := fmt.Sprintf("%+v", plain(ours.Elem())), fmt.Sprintf("%+v", plain(theirs.Elem())); a != b {
		t.Fatalf("decode %v:\nAllium:   %s\nofficial: %s", bson.Raw(data), a, b)
	}
}

// plain turns a value into one of plain Go types, without what tells the drivers' types apart.
func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	case reflect.Struct:
		if v.CanInterface() {
			switch x := v.Interface().(type) {
			case time.Time:
				return x.UnixMilli()
			case bson.Decimal128:
				return x.String()
			case official.Decimal128:
				return x.String()
			}
		}
		m := map[string]any{}
		for i := range v.NumField() {
			m[v.Type().Field(i).Name] = plain(v.Field(i))
		}
		return m
	case reflect.Map:
		m := map[string]any{}
		for _, k := range v.MapKeys() {
			m[fmt.Sprint(k)] = plain(v.MapIndex(k))
		}
		return m
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return "nil"
		}
		s := []any{}
		for i := range v.Len() {
			s = append(s, plain(v.Index(i)))
		}
		return s
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(v.Float())
	case reflect.String:
		if v.Type() == reflect.TypeFor[json.Number]() && v.Len() > 0 {
			f, _ := json.Number(v.String()).Float64() // the drivers write them differently
			return f
		}
		return v.String()
	case reflect.Bool:
		return v.Bool()
	}
	return v.Kind().String()
}

// value is a value of a BSON type; key says which.
type value struct {
	key   string
	value any
}

// values are values of every BSON type, to be put where structs expect others.
func values() []value {
	id := official.NewObjectID()
	dec, _ := official.ParseDecimal128("1.5")
	return []value{
		{"double", 1.5}, {"whole", 3.0}, {"negative", -1.0}, {"huge", 1e300}, {"nan", math.NaN()}, {"zero", 0.0},
		{"max float32", math.MaxFloat32}, {"string", "text"}, {"empty", ""}, {"digits", "12"}, {"time", "2020-01-02T03:04:05Z"},
		{"doc", official.D{{Key: "a", Value: int32(1)}}}, {"array", official.A{"x"}}, {"ints", official.A{int32(1), int64(2)}},
		{"binary", official.Binary{Data: []byte{1, 2}}}, {"old", official.Binary{Subtype: 2, Data: []byte{1, 2}}},
		{"user binary", official.Binary{Subtype: 0x80, Data: []byte{1}}}, {"undefined", official.Undefined{}}, {"id", id},
		{"true", true}, {"false", false}, {"date", official.DateTime(1e12)}, {"null", nil},
		{"regex", official.Regex{Pattern: "a", Options: "i"}}, {"pointer", official.DBPointer{DB: "d", Pointer: id}},
		{"js", official.JavaScript("f")}, {"symbol", official.Symbol("s")},
		{"scope", official.CodeWithScope{Code: "c", Scope: official.D{}}}, {"int32", int32(1)}, {"big int32", int32(math.MaxInt32)},
		{"negative int32", int32(-1)}, {"timestamp", official.Timestamp{T: 1, I: 2}}, {"int64", int64(2)},
		{"big int64", int64(math.MaxInt64)}, {"int64 for int32", int64(-70000)}, {"decimal", dec},
		{"min", official.MinKey{}}, {"max", official.MaxKey{}},
	}
}

// conversions are the documented differences: what Allium refuses or accepts where the official
// driver does not. The key is the Go type and the value's name.
var conversions = map[string]string{
	"float32/nan":       "NaN is a value that float32 has",
	"float32/big int64": "precision would be lost",
	"float64/big int64": "precision would be lost",
	"json.Number/nan":   "no JSON number is NaN",
	"url.URL/symbol":    "symbols are decoded like strings everywhere",
}

// TestConversionsAgree decodes a value of every BSON type into a field of every Go type.
func TestConversionsAgree(t *testing.T) {
	fields := []reflect.Type{
		reflect.TypeFor[inner](), reflect.TypeFor[*inner](), reflect.TypeFor[any](), reflect.TypeFor[[]any](),
		reflect.TypeFor[map[string]any](), reflect.TypeFor[map[string]int](), reflect.TypeFor[[]int](), reflect.TypeFor[[]string](),
		reflect.TypeFor[[1]string](), reflect.TypeFor[[]byte](), reflect.TypeFor[[2]byte](), reflect.TypeFor[*int](),
		reflect.TypeFor[zeroed](), reflect.TypeFor[textKey](),
	}
	for f := range reflect.TypeFor[scalars]().Fields() {
		fields = append(fields, f.Type)
	}
	for _, field := range fields {
		typ := reflect.StructOf([]reflect.StructField{{Name: "V", Type: field, Tag: `bson:"v"`}})
		for _, v := range values() {
			t.Run(field.String()+"/"+v.key, func(t *testing.T) {
				data, err := official.Marshal(official.D{{Key: "v", Value: v.value}})
				if err != nil {
					t.Fatal(err)
				}
				if conversions[field.String()+"/"+v.key] != "" {
					gotErr := bson.Unmarshal(data, reflect.New(typ).Interface())
					wantErr := official.Unmarshal(data, reflect.New(typ).Interface())
					if (gotErr == nil) == (wantErr == nil) {
						t.Errorf("no longer different: %v, %v", gotErr, wantErr)
					}
					return
				}
				compareDecoded(t, data, typ)
			})
		}
	}
}

// document returns a random document with values of every type.
func document(r *rand.Rand, depth int) official.D {
	d := official.D{}
	all := values()
	for i := range r.IntN(12) {
		key := fmt.Sprint(i, word(r))
		var v any
		switch {
		case depth < 5 && r.IntN(6) == 0:
			v = document(r, depth+1)
		case depth < 5 && r.IntN(6) == 0:
			a := official.A{}
			for _, e := range document(r, depth+1) {
				a = append(a, e.Value)
			}
			v = a
		case r.IntN(3) == 0:
			v = []any{r.Int32(), r.Int64(), r.NormFloat64(), word(r), official.DateTime(r.Int64()), official.NewObjectID()}[r.IntN(6)]
		default:
			v = all[r.IntN(len(all))].value
		}
		d = append(d, official.E{Key: key, Value: v})
	}
	return d
}

// TestDocumentsAgree takes random documents through both drivers: what one encodes, the other must
// decode and encode to the same bytes.
func TestDocumentsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		data, err := official.Marshal(document(r, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := bson.Raw(data).Validate(); err != nil {
			t.Fatalf("%v: %v", official.Raw(data), err)
		}
		for _, into := range []any{new(bson.D), new(any), new(bson.Raw)} {
			if err := bson.Unmarshal(data, into); err != nil {
				t.Fatalf("%v: %v", official.Raw(data), err)
			}
			got, err := bson.Marshal(into)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%T of %v: got %v, %v", into, official.Raw(data), bson.Raw(got), err)
			}
		}
		var m bson.M
		var om official.M
		if err := bson.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		if err := official.Unmarshal(data, &om); err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprint(plain(reflect.ValueOf(m))), fmt.Sprint(plain(reflect.ValueOf(om))); a != b {
			t.Fatalf("M:\nAllium:   %s\nofficial: %s", a, b)
		}
		// Broken documents: what the official driver refuses must be refused.
		broken := bytes.Clone(data)
		broken[r.IntN(len(broken))] ^= 1 << r.IntN(8)
		var d bson.D
		var od official.D
		ours, theirs := bson.Unmarshal(broken, &d), official.Unmarshal(broken, &od)
		if theirs != nil && ours == nil {
			t.Fatalf("broken document %x: official says %v", broken, theirs)
		}
	}
}
