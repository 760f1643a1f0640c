package bson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"allium/bson"
)

// holder is a struct that encoding/json walks through by itself.
type holder struct {
	Doc  bson.D
	Next *holder
	Any  any
}

// embedding has the MarshalJSON of the D that it embeds.
type embedding struct{ bson.D }

// cycles returns values that contain themselves, in every way that leads through a type of this
// package.
func cycles() map[string]any {
	d := bson.D{{Key: "x"}}
	d[0].Value = d
	a := bson.A{nil}
	a[0] = a
	m := bson.M{}
	m["m"] = m
	viaMap := bson.M{}
	inMap := bson.D{{Key: "m", Value: viaMap}}
	viaMap["d"] = inMap
	viaArray := bson.A{nil}
	inArray := bson.D{{Key: "a", Value: viaArray}}
	viaArray[0] = inArray
	plain := []any{nil}
	inPlain := bson.D{{Key: "a", Value: plain}}
	plain[0] = inPlain
	var pointer bson.D
	pointer = bson.D{{Key: "p", Value: &pointer}}
	h := &holder{Doc: bson.D{{Key: "h"}}}
	h.Doc[0].Value = h
	inStruct := bson.D{{Key: "h", Value: h}}
	h2 := &holder{}
	h2.Next, h2.Any = &holder{Any: []any{h2}}, map[string]any{"d": bson.D{{Key: "h", Value: h2}}}
	embedded := &embedding{bson.D{{Key: "e"}}}
	embedded.D[0].Value = embedded
	ref := bson.DBRef{Collection: "c", ID: 1, Extra: bson.D{{Key: "x"}}}
	ref.Extra[0].Value = ref
	var id any
	byID := bson.DBRef{Collection: "c", ID: &id}
	id = byID
	code := bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "c"}}}
	code.Scope.(bson.D)[0].Value = code
	var itself bson.CodeWithScope
	itself = bson.CodeWithScope{Code: "f", Scope: &itself}
	scope := map[string]any{}
	scope["s"] = bson.CodeWithScope{Code: "f", Scope: scope}
	var self any
	self = &self
	return map[string]any{"D": d, "A": a, "M": m, "D in M": inMap, "M in D": viaMap, "D in A": inArray, "A in D": viaArray, "D in []any": inPlain, "D by pointer": pointer,
		"struct": h, "D in struct": inStruct, "chain": bson.D{{Key: "c", Value: h2}}, "embedded": embedded, "D in embedded": bson.D{{Key: "e", Value: embedded}}, "DBRef": ref,
		"DBRef by id": byID, "D with DBRef": bson.D{{Key: "r", Value: ref}}, "code": code, "code is its scope": itself, "code in map": bson.CodeWithScope{Scope: scope},
		"pointer to itself": bson.D{{Key: "p", Value: self}}}
}

// Values that contain themselves are errors or notes. A stack that overflows cannot be recovered
// from.
func TestValuesThatContainThemselves(t *testing.T) {
	for name, v := range cycles() {
		if text, err := json.Marshal(v); err == nil {
			t.Errorf("%s: json.Marshal: %d bytes, no error", name, len(text))
		}
		if _, err := bson.MarshalValue(v); err == nil || !strings.Contains(err.Error(), "deep") && !strings.Contains(err.Error(), "scope") {
			t.Errorf("%s: MarshalValue: %v", name, err)
		}
		if _, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, true); err == nil {
			t.Errorf("%s: MarshalExtJSON: no error", name)
		}
		if _, err := bson.Convert[bson.D](v); err == nil {
			t.Errorf("%s: Convert: no error", name)
		}
		if m, ok := v.(bson.Marshaler); ok {
			if _, err := m.MarshalBSON(); err == nil {
				t.Errorf("%s: MarshalBSON: no error", name)
			}
		}
		if s, ok := v.(fmt.Stringer); ok && !strings.Contains(s.String(), "<") {
			t.Errorf("%s: String: %.80s, want a note", name, s)
		}
		_ = fmt.Sprint(bson.D{{Key: "v", Value: v}}, bson.A{v}, bson.M{"v": v}, bson.CodeWithScope{Scope: v}, bson.DBRef{ID: v})
	}
}

// What nests as deep as documents may is no error, in whichever types.
func TestJSONDepth(t *testing.T) {
	build := map[string]func(inner any) any{
		"D":        func(inner any) any { return bson.D{{Key: "x", Value: inner}} },
		"A":        func(inner any) any { return bson.A{inner} },
		"M":        func(inner any) any { return bson.M{"x": inner} },
		"*D":       func(inner any) any { return &bson.D{{Key: "x", Value: inner}} },
		"struct":   func(inner any) any { return &holder{Any: inner} },
		"embedded": func(inner any) any { return struct{ bson.D }{bson.D{{Key: "x", Value: inner}}} },
	}
	for name, nest := range build {
		for levels, want := range map[int]bool{bson.DefaultMaxDepth/2 - 2: true, bson.DefaultMaxDepth * 2: false} {
			var v any = 1
			for range levels {
				v = nest(v)
			}
			_, err := json.Marshal(bson.D{{Key: "top", Value: v}})
			if (err == nil) != want {
				t.Errorf("%s, %d levels: %v", name, levels, err)
			}
			if e, ok := errors.AsType[*bson.EncodeError](err); err != nil && !ok {
				t.Errorf("%s, %d levels: %T, want an EncodeError: %v", name, levels, e, err)
			}
		}
	}
	// A DBRef in a DBRef is a level more, and follows the options that hold around it.
	var v any = 1
	for range bson.DefaultMaxDepth {
		v = bson.DBRef{Collection: "c", ID: v}
	}
	if _, err := bson.Marshal(v); err != nil {
		t.Error(err)
	}
	if _, err := bson.Marshal(bson.DBRef{Collection: "c", ID: v}); err == nil {
		t.Error("a DBRef beyond the depth: no error")
	}
	o := bson.Options{UUID: bson.UUIDJavaLegacy}
	raw, err := o.Marshal(bson.D{{Key: "ref", Value: bson.DBRef{Collection: "c", ID: bson.UUID{1, 2, 3}}}})
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := bson.Raw(raw).Lookup("ref", "$id").Binary(); !ok || b.Subtype != 3 {
		t.Errorf("the UUID of a DBRef is %v, want subtype 3", b)
	}
}

// The JSON of what does not contain itself is what encoding/json makes of it.
func TestJSONUnchanged(t *testing.T) {
	v := bson.D{{Key: "a", Value: bson.A{1, "<x>", nil, holder{Any: bson.M{"b": []any{1.5, true}}}}}, {Key: "ref", Value: bson.DBRef{Collection: "c", ID: 1}}, {Key: "nil", Value: bson.D(nil)}}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	const expected = `{"a":[1,"<x>",null,{"Doc":null,"Next":null,"Any":{"b":[1.5,true]}}],"ref":{"$ref":"c","$id":1},"nil":null}`
	if err := json.Unmarshal([]byte(expected), &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s, want %s", text, expected)
	}
}
