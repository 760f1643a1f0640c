package bson

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

type (
	listed []E
	mapped map[string]any
	row    []any
)

// as returns a tree of D and A with other types for both.
func as(v any, doc func(D) any, list func(A) any) any {
	switch v := v.(type) {
	case D:
		out := make(D, len(v))
		for i, e := range v {
			out[i] = E{e.Key, as(e.Value, doc, list)}
		}
		return doc(out)
	case A:
		out := make(A, len(v))
		for i, x := range v {
			out[i] = as(x, doc, list)
		}
		return list(out)
	}
	return v
}

func asListed(d D) any { return listed(d) }
func asRow(a A) any    { return row(a) }

func asMapped(d D) any {
	m := mapped{}
	for _, e := range d {
		m[e.Key] = e.Value
	}
	return m
}

// TestTreeTypes decodes trees of types that are D, M and A but for their names, as a table has
// them: alone, in structs, and beside types of the table that are none.
func TestTreeTypes(t *testing.T) {
	tree := D{
		{"a", int32(1)}, {"d", D{{"e", D{}}, {"l", A{int32(2), D{{"x", "text"}}, A{}, nil}}}}, {"s", "s"}, {"b", Binary{4, []byte{1}}},
		{"deep", A{A{A{D{{"k", A{D{{"z", true}}}}}}}}},
	}
	data, err := Marshal(D{{"v", tree}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		types map[Type]reflect.Type
		doc   func(D) any
		list  func(A) any
	}{
		{"D and A", map[Type]reflect.Type{TypeEmbeddedDocument: reflect.TypeFor[listed](), TypeArray: reflect.TypeFor[row]()}, asListed, asRow},
		{"M and A", map[Type]reflect.Type{TypeEmbeddedDocument: reflect.TypeFor[mapped](), TypeArray: reflect.TypeFor[row]()}, asMapped, asRow},
		{"D", map[Type]reflect.Type{TypeEmbeddedDocument: reflect.TypeFor[listed]()}, asListed, func(a A) any { return a }},
		{"A", map[Type]reflect.Type{TypeArray: reflect.TypeFor[[]any]()}, func(d D) any { return d }, func(a A) any { return []any(a) }},
		{"own", map[Type]reflect.Type{TypeEmbeddedDocument: reflect.TypeFor[D](), TypeArray: reflect.TypeFor[A]()}, func(d D) any { return d }, func(a A) any { return a }},
	} {
		types, err := NewTypeMap(c.types)
		if err != nil {
			t.Fatal(err)
		}
		want := as(tree, c.doc, c.list)
		o := Options{Types: types}
		var in struct{ V any }
		if err := o.Unmarshal(data, &in); err != nil || !reflect.DeepEqual(in.V, want) {
			t.Errorf("%s in a struct: %v\nhave %#v\nwant %#v", c.name, err, in.V, want)
		}
		var top any
		if err := o.Unmarshal(data, &top); err != nil || !reflect.DeepEqual(top, c.doc(D{{"v", want}})) {
			t.Errorf("%s alone: %v\nhave %#v", c.name, err, top)
		}
		var named listed
		if err := o.Unmarshal(data, &named); err != nil || !reflect.DeepEqual(named, listed{{"v", want}}) {
			t.Errorf("%s in a named type: %v\nhave %#v", c.name, err, named)
		}
		again, err := o.Marshal(&in)
		if err != nil || c.name != "M and A" && !reflect.DeepEqual(again, data) {
			t.Errorf("%s: encoded again: %v", c.name, err)
		}
	}
}

// TestTreeTypeCodec asks a codec of such a type, and holds such trees at their depth.
func TestTreeTypeCodec(t *testing.T) {
	types, err := NewTypeMap(map[Type]reflect.Type{TypeEmbeddedDocument: reflect.TypeFor[listed](), TypeArray: reflect.TypeFor[row]()})
	if err != nil {
		t.Fatal(err)
	}
	codecs, err := NewCodecs(CodecFor(func(dst []byte, v listed) (Type, []byte, error) { return 0, dst, errors.ErrUnsupported },
		func(v RawValue) (listed, error) { return listed{{"codec", fmt.Sprint(len(v.Value))}}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	data, err := Marshal(D{{"v", A{D{}}}})
	if err != nil {
		t.Fatal(err)
	}
	var in struct{ V any }
	if err := (Options{Types: types, Codecs: codecs}).Unmarshal(data, &in); err != nil || !reflect.DeepEqual(in.V, row{listed{{"codec", "5"}}}) {
		t.Errorf("%#v, %v", in.V, err)
	}
	nested := any(D{})
	for range 10 {
		nested = D{{"d", A{nested}}}
	}
	if data, err = Marshal(nested); err != nil {
		t.Fatal(err)
	}
	if err := (Options{Types: types, MaxDepth: 15}).Unmarshal(data, &in); err != nil {
		t.Errorf("nothing of it is wanted: %v", err)
	}
	var top any
	if err := (Options{Types: types, MaxDepth: 15}).Unmarshal(data, &top); err == nil || !strings.Contains(err.Error(), "nest") {
		t.Errorf("too deep: %v", err)
	}
	if err := (Options{Types: types, MaxDepth: 25}).Unmarshal(data, &top); err != nil {
		t.Error(err)
	}
}
