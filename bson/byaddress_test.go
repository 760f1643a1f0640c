package bson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"allium/bson"
)

// marked says by its methods, which need its address, whether they were called.
type marked struct{ X int }

func (*marked) MarshalJSON() ([]byte, error) { return []byte(`{"called":true}`), nil }

func (*marked) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.D{{"called", true}}) }

type markedValue struct{ X int }

func (*markedValue) MarshalJSON() ([]byte, error) { return []byte(`{"called":true}`), nil }

func (*markedValue) MarshalBSONValue() (byte, []byte, error) {
	doc, err := bson.Marshal(bson.D{{"called", true}})
	return byte(bson.TypeEmbeddedDocument), doc, err
}

// Marked is in itself what it is in a struct that has it inline.
type Marked struct{ M marked }

// TestMethodsByAddress compares for which values methods with pointer receivers are called with
// what encoding/json does.
func TestMethodsByAddress(t *testing.T) {
	type field struct {
		M marked
		V markedValue
	}
	type array struct{ A [2]marked }
	type slice struct{ S []marked }
	type pointers struct {
		P *marked
		Q *field
		S []*field
		M map[string]*field
	}
	type held struct{ I any }
	type deep struct {
		M map[string]field
		S []map[string]marked
		N map[string][]marked
	}
	type inline struct {
		Marked  `bson:",inline"`
		*Inline `bson:",inline"`
	}
	one := marked{1}
	whole := field{one, markedValue{2}}
	for _, v := range []any{
		one, &one, whole, &whole, array{}, &array{}, slice{[]marked{one}}, &slice{[]marked{one}},
		pointers{&one, &whole, []*field{&whole}, map[string]*field{"a": &whole}},
		held{one}, &held{one}, held{&one}, held{whole}, &held{&whole}, held{[]marked{one}}, held{[1]marked{one}}, &held{[1]marked{one}},
		held{map[string]marked{"a": one}}, map[string]marked{"a": one}, map[string]*marked{"a": &one}, map[string]any{"a": one, "b": &one},
		map[string]field{"a": whole}, map[string][]marked{"a": {one}}, map[string][1]marked{"a": {one}},
		deep{map[string]field{"a": whole}, []map[string]marked{{"a": one}}, map[string][]marked{"a": {one}}},
		&deep{map[string]field{"a": whole}, []map[string]marked{{"a": one}}, map[string][]marked{"a": {one}}},
		inline{Marked{one}, &Inline{markedValue{1}}}, &inline{Marked{one}, &Inline{markedValue{1}}},
		map[string]any{"d": map[string]any{"a": []any{one, &one, whole}}},
		held{held{whole}}, held{&held{whole}}, held{&held{&whole}},
	} {
		got, err := bson.Options{MethodsByAddress: true}.Marshal(v)
		if err != nil {
			t.Errorf("%T: %v", v, err)
			continue
		}
		doc, err := bson.Raw(got).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		// Maps have no order, and keys of fields are in lower case.
		if got, want := sortedJSON(t, doc), sortedJSON(t, []byte(strings.ToLower(string(text)))); got != want {
			t.Errorf("%T\n got %s\njson %s", v, got, want)
		}
	}
	if doc, _ := bson.Marshal(map[string]marked{"a": one}); !strings.Contains(bson.Raw(doc).String(), "called") {
		t.Errorf("without the option: %s", bson.Raw(doc))
	}
}

// Inline is behind a pointer in a struct that has it inline.
type Inline struct{ V markedValue }

func sortedJSON(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
