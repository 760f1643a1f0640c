package bson

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

type shade int16

// byKind is a look-up for everything of one kind, and for pointers to shades.
func byKind(t reflect.Type) (EncodeFunc, DecodeFunc) {
	switch {
	case t.Kind() == reflect.Int16:
		return func(dst []byte, v reflect.Value) (Type, []byte, error) {
				return TypeString, AppendStringValue(dst, strings.Repeat("x", int(v.Int()))), nil
			}, func(v RawValue, into reflect.Value) error {
				s, ok := v.StringValue()
				if !ok {
					return fmt.Errorf("want a string, have %s", v.Type)
				}
				into.SetInt(int64(len(s)))
				return nil
			}
	case t == reflect.TypeFor[*bool]():
		return func(dst []byte, v reflect.Value) (Type, []byte, error) {
			if v.IsNil() {
				return TypeString, AppendStringValue(dst, "none"), nil
			}
			return TypeBoolean, AppendBoolValue(dst, v.Elem().Bool()), nil
		}, nil
	case t == reflect.TypeFor[fmt.Stringer]():
		return nil, func(v RawValue, into reflect.Value) error {
			into.Set(reflect.ValueOf(v.Type))
			return nil
		}
	}
	return nil, nil
}

func TestCodecBy(t *testing.T) {
	codecs, err := NewCodecs(CodecFor(
		func(dst []byte, s shade) (Type, []byte, error) {
			return TypeInt32, AppendInt32Value(dst, int32(s)), nil
		}, nil,
	), CodecBy(byKind))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Codecs: codecs}
	type all struct {
		A  int16
		P  *int16
		L  []int16
		M  map[string]int16
		S  shade
		B  *bool
		C  *bool
		An any
	}
	data, err := o.Marshal(all{1, new(int16(2)), []int16{3}, map[string]int16{"k": 4}, 5, nil, new(true), int16(6)})
	want := `{"a":"x","p":"xx","l":["xxx"],"m":{"k":"xxxx"},"s":5,"b":"none","c":true,"an":"xxxxxx"}`
	if err != nil || Raw(data).String() != want {
		t.Errorf("%s %v, want %s", Raw(data), err, want)
	}
	var back struct {
		A int16
		P *int16
		L []int16
		M map[string]int16
		S fmt.Stringer
		X fmt.Stringer
	}
	data, _ = Marshal(D{{"a", "x"}, {"p", "xx"}, {"l", A{"xxx"}}, {"m", D{{"k", "xxxx"}}}, {"s", nil}, {"x", 1}})
	err = o.Unmarshal(data, &back)
	if err != nil || back.A != 1 || *back.P != 2 || back.L[0] != 3 || back.M["k"] != 4 || back.S != TypeNull || back.X != TypeInt32 {
		t.Errorf("%+v, %v", back, err)
	}
	if o.config().special {
		t.Error("the codecs leave the basic types alone, and these are looked up")
	}
	if err := o.UnmarshalValue(RawValue{Type: TypeNull}, new(int16)); err == nil || !strings.Contains(err.Error(), "want a string, have null") {
		t.Error(err)
	}
	symbols := CodecBy(func(t reflect.Type) (EncodeFunc, DecodeFunc) {
		if t.Kind() != reflect.String {
			return nil, nil
		}
		return func(dst []byte, v reflect.Value) (Type, []byte, error) {
			return TypeSymbol, AppendStringValue(dst, v.String()), nil
		}, nil
	})
	if codecs, err = NewCodecs(symbols); err != nil {
		t.Fatal(err)
	}
	data, err = Options{Codecs: codecs}.Marshal(D{{"a", "x"}, {"b", []string{"y"}}, {"c", struct{ S string }{"z"}}})
	if want := `{"a":{"$symbol":"x"},"b":[{"$symbol":"y"}],"c":{"s":{"$symbol":"z"}}}`; err != nil || Raw(data).String() != want {
		t.Errorf("%s %v, want %s", Raw(data), err, want)
	}
}

// TestTypeMap decodes into variables of type any in every place that one can be in.
func TestTypeMap(t *testing.T) {
	scope := CodeWithScope{"c", D{{"i", int32(1)}}}
	in := D{{"i", int32(1)}, {"d", D{{"i", int32(2)}, {"s", "text"}}}, {"l", A{int32(3), A{"t"}, D{{"x", "y"}}}}, {"b", Binary{0, []byte{1}}}, {"u", Binary{4, []byte{2}}},
		{"c", scope}, {"n", nil}, {"t", DateTime(0)}, {"z", "end"}}
	data, err := Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	types := func(m map[Type]reflect.Type) *TypeMap {
		table, err := NewTypeMap(m)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	scalars := types(map[Type]reflect.Type{TypeInt32: reflect.TypeFor[int](), TypeBinary: reflect.TypeFor[raw2](), TypeDateTime: reflect.TypeFor[time.Time]()})
	trees := types(map[Type]reflect.Type{TypeEmbeddedDocument: reflect.TypeFor[map[string]any](), TypeArray: reflect.TypeFor[[]any](), TypeCodeWithScope: reflect.TypeFor[RawValue]()})
	structs := types(map[Type]reflect.Type{TypeEmbeddedDocument: reflect.TypeFor[leaf2]()})
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "i:int32 d:D(i:int32 s:string) l:A(int32 A(string) D(x:string)) b:Binary u:Binary c:CodeWithScope(D(i:int32)) n:nil t:DateTime z:string"},
		{Options{Types: scalars}, "i:int d:D(i:int s:string) l:A(int A(string) D(x:string)) b:raw2 u:raw2 c:CodeWithScope(D(i:int)) n:nil t:Time z:string"},
		{Options{Types: scalars, BinaryAsBytes: true}, "i:int d:D(i:int s:string) l:A(int A(string) D(x:string)) b:bytes u:raw2 c:CodeWithScope(D(i:int)) n:nil t:Time z:string"},
		{Options{Types: trees}, "i:int32 d:map(i:int32 s:string) l:[](int32 [](string) map(x:string)) b:Binary u:Binary c:RawValue n:nil t:DateTime z:string"},
		{Options{Types: structs}, "i:int32 d:leaf2(string) l:A(int32 A(string) leaf2(nil)) b:Binary u:Binary c:CodeWithScope(leaf2(nil)) n:nil t:DateTime z:string"},
		{Options{Documents: DocumentsAsMap}, "i:int32 d:map(i:int32 s:string) l:A(int32 A(string) map(x:string)) b:Binary u:Binary c:CodeWithScope(map(i:int32)) n:nil t:DateTime z:string"},
	} {
		var d D
		if err := c.o.Unmarshal(data, &d); err != nil {
			t.Errorf("%+v: %v", c.o, err)
			continue
		}
		var parts []string
		for _, e := range d {
			parts = append(parts, e.Key+":"+typesIn(e.Value))
		}
		if got := strings.Join(parts, " "); got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.o, got, c.want)
		}
		// The same behind a map, a struct, an array, and a variable of type any.
		for _, into := range []any{new(M), new(map[string]any), new(any), &struct{ D, L, C any }{}} {
			if err := c.o.Unmarshal(data, into); err != nil {
				t.Errorf("%T: %v", into, err)
				continue
			}
			v := reflect.ValueOf(into).Elem()
			if v.Kind() == reflect.Interface {
				v = v.Elem()
			}
			value := func(name string) any {
				switch v := v.Interface().(type) {
				case D:
					x, _ := v.Get(name)
					return x
				case M:
					return v[name]
				case map[string]any:
					return v[name]
				}
				if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[leaf2]() {
					return nil
				}
				return v.FieldByName(strings.ToUpper(name)).Interface()
			}
			for _, key := range []string{"d", "l", "c"} {
				x, _ := d.Get(key)
				if got, want := typesIn(value(key)), typesIn(x); got != want && v.Type() != reflect.TypeFor[leaf2]() {
					t.Errorf("%+v: %s in %T is %s, want %s", c.o, key, into, got, want)
				}
			}
		}
	}
	deep := Raw(nil)
	for range 40 {
		doc := underS(deep)
		deep = doc
	}
	if err := (Options{Types: structs, MaxDepth: 20}).Unmarshal(deep, new(D)); err == nil {
		t.Error("40 levels with a limit of 20")
	}
	if err := (Options{Types: structs, MaxDepth: 50}).Unmarshal(deep, new(D)); err != nil {
		t.Error(err)
	}
	for _, m := range []map[Type]reflect.Type{{TypeNull: reflect.TypeFor[int]()}, {TypeInt32: nil}} {
		if _, err := NewTypeMap(m); err == nil {
			t.Error(m)
		}
	}
}

type (
	raw2  = RawValue
	leaf2 struct{ S any }
)

// underS returns a document that holds doc under "s".
func underS(doc Raw) Raw {
	if doc == nil {
		return Raw{5, 0, 0, 0, 0}
	}
	out, _ := Marshal(D{{"s", doc}})
	return out
}

// typesIn writes the types in a value.
func typesIn(v any) string {
	list := func(of string, values []any) string {
		parts := make([]string, len(values))
		for i, v := range values {
			parts[i] = typesIn(v)
		}
		return of + "(" + strings.Join(parts, " ") + ")"
	}
	switch v := v.(type) {
	case nil:
		return "nil"
	case D:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = e.Key + ":" + typesIn(e.Value)
		}
		return "D(" + strings.Join(parts, " ") + ")"
	case map[string]any:
		return strings.Replace(typesIn(M(v).D()), "D", "map", 1)
	case A:
		return list("A", v)
	case []any:
		return list("[]", v)
	case []byte:
		return "bytes"
	case leaf2:
		return list("leaf2", []any{v.S})
	case CodeWithScope:
		return list("CodeWithScope", []any{v.Scope})
	case RawValue:
		if v.Type == TypeBinary {
			return "raw2"
		}
	}
	return reflect.TypeOf(v).Name()
}

func TestOmitEmptyStructs(t *testing.T) {
	type inner struct {
		A int
		b int
		T struct{ X int }
	}
	type outer struct {
		I  inner  `bson:",omitempty"`
		J  inner  `bson:",omitempty"`
		P  *inner `bson:",omitempty"`
		K  inner
		At time.Time `bson:",omitempty"`
	}
	v := outer{I: inner{b: 1}, P: &inner{}}
	v.J.T.X = 1
	for o, want := range map[Options]string{
		{}:                       `{"i":{"a":0,"t":{"x":0}},"j":{"a":0,"t":{"x":1}},"p":{"a":0,"t":{"x":0}},"k":{"a":0,"t":{"x":0}}}`,
		{OmitEmptyStructs: true}: `{"j":{"a":0,"t":{"x":1}},"p":{"a":0,"t":{"x":0}},"k":{"a":0,"t":{"x":0}}}`,
		{OmitEmptyStructs: true, OmitEmpty: true}: `{"j":{"t":{"x":1}},"p":{}}`,
	} {
		data, err := o.Marshal(v)
		if err != nil || Raw(data).String() != want {
			t.Errorf("%+v: %s %v, want %s", o, Raw(data), err, want)
		}
	}
}

func TestFormatKeys(t *testing.T) {
	o := Options{FormatKeys: true}
	for _, c := range []struct {
		v    any
		want string
	}{
		{map[float64]int{1.5: 1}, `{"1.5":1}`}, {map[bool]int{true: 1}, `{"true":1}`}, {map[ObjectID]int{{1}: 1}, `{"ObjectID(\"010000000000000000000000\")":1}`},
		{map[string]int{"a": 1}, `{"a":1}`}, {map[struct{ A int }]int{{1}: 1}, `{"{1}":1}`},
	} {
		data, err := o.Marshal(c.v)
		if err != nil || Raw(data).String() != c.want {
			t.Errorf("%v: %s %v, want %s", c.v, Raw(data), err, c.want)
		}
	}
	if _, err := Marshal(map[float64]int{1.5: 1}); err == nil {
		t.Error("without the option a float is a key")
	}
}
