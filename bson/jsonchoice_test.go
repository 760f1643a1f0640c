package bson

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The types of fields whose presence is compared with encoding/json's.
type (
	flagged struct{ N int } // asks itself, by value
	counted struct{ N int } // asks itself, by pointer
	asker   interface{ IsZero() bool }
	tags    []string
)

func (f flagged) IsZero() bool  { return f.N <= 1 }
func (c *counted) IsZero() bool { return c.N <= 1 }

// choices are values of each type that a field may have.
var choices = []any{
	0, 1, "", "x", false, true, 0.0, 1.5, uint8(0), int64(0), int64(7), []int(nil), []int{}, []int{1}, map[string]int(nil), map[string]int{}, map[string]int{"a": 1}, [0]int{}, [2]int{}, [2]int{1},
	struct{ A int }{}, struct{ A int }{1}, (*int)(nil), new(0), new(1), (**int)(nil), new(new(0)), (*string)(nil), new(""), new(false), new([]int(nil)), new([]int{}), new(struct{ A int }{}),
	flagged{}, flagged{1}, flagged{2}, (*flagged)(nil), &flagged{}, &flagged{1}, &flagged{2}, counted{}, counted{1}, counted{2}, (*counted)(nil), &counted{}, &counted{1}, &counted{2},
	time.Time{}, time.Unix(5, 0), (*time.Time)(nil), &time.Time{}, tags(nil), tags{}, tags{"x"},
}

// interfaces are values of fields of interface types.
var interfaces = map[reflect.Type][]any{
	reflect.TypeFor[any]():   {nil, 0, "", (*int)(nil), new(0), flagged{}, &flagged{}, (*flagged)(nil), []int(nil)},
	reflect.TypeFor[asker](): {nil, flagged{}, flagged{2}, (*flagged)(nil), &flagged{}, &counted{}, (*counted)(nil), &counted{2}},
}

// TestOmitAsJSON compares which fields are left out with encoding/json: always with omitzero, and
// with omitempty for all but values, not pointers, that have an IsZero of their own.
func TestOmitAsJSON(t *testing.T) {
	check := func(ft reflect.Type, v reflect.Value, options string) {
		st := reflect.StructOf([]reflect.StructField{{Name: "F", Type: ft, Tag: reflect.StructTag(fmt.Sprintf(`bson:"f%s" json:"f%s"`, options, options))}})
		s := reflect.New(st)
		if v.IsValid() {
			s.Elem().Field(0).Set(v)
		}
		text, err := json.Marshal(s.Interface())
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Marshal(s.Interface())
		if err != nil {
			t.Fatalf("%s %s: %v", ft, options, err)
		}
		want := string(text) != "{}"
		if kind := ft.Kind(); strings.Contains(options, "omitempty") && kind != reflect.Pointer && kind != reflect.Interface && reflect.PointerTo(ft).Implements(typeZeroer) {
			want = want && !s.Elem().Field(0).Addr().Interface().(zeroer).IsZero()
		}
		if got := !Raw(doc).Lookup("f").IsZero(); got != want {
			t.Errorf("%s%s = %v is there: %v, want %v", ft, options, v, got, want)
		}
	}
	for _, options := range []string{"", ",omitempty", ",omitzero", ",omitempty,omitzero"} {
		for _, v := range choices {
			check(reflect.TypeOf(v), reflect.ValueOf(v), options)
		}
		for ft, values := range interfaces {
			for _, v := range values {
				check(ft, reflect.ValueOf(v), options)
			}
		}
	}
}

type (
	// Exported and hidden are embedded, by value and by pointer, in structs that a generator makes.
	Exported struct {
		A int
		B string `bson:"b,omitempty" json:"b,omitempty"`
	}
	hidden struct {
		C int
		d int  //lint:ignore U1000 neither format writes it
		E *int `bson:"e,omitempty" json:"e,omitempty"`
	}
	hiddenDeep struct {
		*hidden `bson:",inline"`
		F       int
	}
	Generic[T any] struct{ G T }

	byValue struct {
		Exported        `bson:",inline"`
		hidden          `bson:",inline"`
		Generic[string] `bson:",inline"`
		H               int
	}
	byPointer struct {
		*Exported        `bson:",inline"`
		*hidden          `bson:",inline"`
		*Generic[string] `bson:",inline"`
		H                int
	}
	deep struct {
		hiddenDeep `bson:",inline"`
		H          int
	}
	deepPointer struct {
		*hiddenDeep `bson:",inline"`
		H           int
	}
	shadowing struct {
		*hidden `bson:",inline"`
		C       string
	}
)

// TestEmbeddedAsJSON encodes and decodes structs with embedded ones, inline, in each combination of
// set and nil, and compares both with encoding/json, which has the keys in another case.
func TestEmbeddedAsJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		h := func() *hidden {
			if r.IntN(2) == 0 {
				return nil
			}
			return &hidden{C: r.IntN(3), E: new(r.IntN(2))}
		}
		hd := hiddenDeep{hidden: h(), F: r.IntN(3)}
		bp := byPointer{hidden: h(), H: r.IntN(3)}
		if r.IntN(2) == 0 {
			bp.Exported = &Exported{A: r.IntN(3), B: []string{"", "x"}[r.IntN(2)]}
		}
		if r.IntN(2) == 0 {
			bp.Generic = &Generic[string]{G: "g"}
		}
		dp := deepPointer{H: 1}
		if r.IntN(2) == 0 {
			dp.hiddenDeep = &hd
		}
		ins := []any{&byValue{Exported: Exported{A: 1}, hidden: hidden{C: r.IntN(3)}, H: 2}, &bp, &deep{hiddenDeep: hd, H: 3}, &dp, &shadowing{hidden: h(), C: "s"}}
		in := ins[r.IntN(len(ins))]
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		doc := mustMarshal(t, in)
		if a, b := normal(t, doc), strings.ToLower(string(text)); a != b {
			t.Fatalf("%T: encoded %s, want %s", in, a, b)
		}
		for _, into := range []any{reflect.New(reflect.TypeOf(in).Elem()).Interface(), prepared(in)} {
			want := prepared(into)
			jsonErr := json.Unmarshal(text, want)
			err := Unmarshal(doc, into)
			if (err == nil) != (jsonErr == nil) {
				t.Fatalf("%T from %s: %v, encoding/json: %v", in, text, err, jsonErr)
			}
			if err != nil {
				if !strings.Contains(err.Error(), "unexported struct") {
					t.Errorf("%T: %v", in, err)
				}
				continue
			}
			if !reflect.DeepEqual(into, want) {
				t.Errorf("%T from %s: %+v, want %+v", in, text, into, want)
			}
		}
	}
}

// prepared returns an empty struct of the type of v, with the embedded pointers set that v has set.
func prepared(v any) any {
	switch v := v.(type) {
	case *byPointer:
		out := &byPointer{}
		if v.hidden != nil {
			out.hidden = &hidden{}
		}
		return out
	case *deep:
		out := &deep{}
		if v.hidden != nil {
			out.hidden = &hidden{}
		}
		return out
	case *deepPointer:
		out := &deepPointer{}
		if v.hiddenDeep != nil {
			out.hiddenDeep = &hiddenDeep{}
			if v.hidden != nil {
				out.hidden = &hidden{}
			}
		}
		return out
	case *shadowing:
		out := &shadowing{}
		if v.hidden != nil {
			out.hidden = &hidden{}
		}
		return out
	}
	return reflect.New(reflect.TypeOf(v).Elem()).Interface()
}

// normal returns a document as encoding/json writes it.
func normal(t *testing.T, doc []byte) string {
	t.Helper()
	var parts []string
	for key, v := range Raw(doc).All() {
		text := v.String()
		if n, ok := v.AsInt64(); ok {
			text = fmt.Sprint(n)
		}
		parts = append(parts, fmt.Sprintf("%q:%s", key, text))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestUnexportedInline: what cannot be reached and asks to be inline is an error, not lost.
func TestUnexportedInline(t *testing.T) {
	type table map[string]int
	type number int
	for _, v := range []any{
		struct {
			table `bson:",inline"`
		}{},
		struct {
			number `bson:",inline"`
		}{},
		struct {
			asker `bson:",inline"`
		}{},
	} {
		if _, err := Marshal(v); err == nil || !strings.Contains(err.Error(), "inline") {
			t.Errorf("%T: %v", v, err)
		}
	}
}

// TestLenient decodes every kind of value into every kind of field that is lenient: what fits is
// there, what does not is zero, and the fields around it are right.
func TestLenient(t *testing.T) {
	values := []any{nil, 1, 300, int64(1) << 40, 1.5, "text", "", true, D{{"a", "x"}}, A{1, "x"}, A{D{{"a", A{D{}}}}}, NewObjectID(), DateTime(5), Binary{Data: []byte{1}}, Regex{Pattern: "x"}, MinKey{}}
	for _, ft := range []reflect.Type{reflect.TypeFor[int8](), reflect.TypeFor[int](), reflect.TypeFor[*int](), reflect.TypeFor[string](), reflect.TypeFor[*string](), reflect.TypeFor[bool](), reflect.TypeFor[float64](),
		reflect.TypeFor[[]string](), reflect.TypeFor[[]int](), reflect.TypeFor[map[string]int](), reflect.TypeFor[struct{ A int }](), reflect.TypeFor[*struct{ A int }](), reflect.TypeFor[[]struct{ A []struct{ A int } }](),
		reflect.TypeFor[time.Time](), reflect.TypeFor[Raw](), reflect.TypeFor[D](), reflect.TypeFor[any](), reflect.TypeFor[ObjectID](), reflect.TypeFor[fmt.Stringer]()} {
		make := func(tag string) reflect.Type {
			return reflect.StructOf([]reflect.StructField{{Name: "Before", Type: reflect.TypeFor[int]()}, {Name: "F", Type: ft, Tag: reflect.StructTag(tag)}, {Name: "After", Type: reflect.TypeFor[D]()}})
		}
		for _, v := range values {
			doc := mustMarshal(t, D{{"before", 1}, {"f", v}, {"after", D{{"x", D{{"y", 1}}}}}})
			strict, lenient := reflect.New(make(`bson:"f"`)), reflect.New(make(`bson:"f,lenient"`))
			fits := Unmarshal(doc, strict.Interface()) == nil
			if err := Unmarshal(doc, lenient.Interface()); err != nil {
				t.Errorf("%s from %v: %v", ft, v, err)
			}
			l := lenient.Elem()
			if l.Field(0).Int() != 1 || len(l.Field(2).Interface().(D)) != 1 {
				t.Errorf("%s from %v: other fields %v", ft, v, l)
			}
			if fits && !reflect.DeepEqual(l.Field(1).Interface(), strict.Elem().Field(1).Interface()) || !fits && !l.Field(1).IsZero() {
				t.Errorf("%s from %v: %v (fits: %v)", ft, v, l.Field(1), fits)
			}
		}
	}
	var inline struct {
		N int
		M map[string]int `bson:",inline,lenient"`
	}
	if err := Unmarshal(mustMarshal(t, D{{"a", 1}, {"b", "x"}, {"n", 5}, {"c", D{}}, {"d", 2}}), &inline); err != nil || inline.N != 5 || !reflect.DeepEqual(inline.M, map[string]int{"a": 1, "d": 2}) {
		t.Errorf("%+v, %v", inline, err)
	}
	var cut struct {
		S string `bson:"s,lenient"`
	}
	broken := mustMarshal(t, D{{"s", "text"}})
	broken[7] = 200 // the string's length
	if err := Unmarshal(broken, &cut); err == nil {
		t.Error("a malformed document was decoded")
	}
}
