package bson

import (
	"errors"
	"reflect"
	"testing"
)

// TestDecodeIntoHeldPointer: a pointer in an interface says what to decode into, as with
// encoding/json.
func TestDecodeIntoHeldPointer(t *testing.T) {
	type inner struct{ A, B int }
	type empty interface{}
	type outer struct {
		V any
		W empty
	}
	data, err := Marshal(D{{"v", D{{"a", 5}}}, {"w", D{{"a", 6}}}})
	if err != nil {
		t.Fatal(err)
	}
	v, w := &inner{B: 1}, &inner{B: 2}
	out := outer{v, w}
	if err := Unmarshal(data, &out); err != nil || out.V != any(v) || out.W != any(w) || *v != (inner{5, 1}) || *w != (inner{6, 2}) {
		t.Errorf("got %+v %+v %+v, %v", out, v, w, err)
	}
	var top any = &out
	if *v, *w = (inner{}), (inner{}); Unmarshal(data, &top) != nil || *v != (inner{A: 5}) || *w != (inner{A: 6}) {
		t.Errorf("got %+v %+v", v, w)
	}
	// What holds no pointer, or nil, is replaced.
	for _, held := range []any{inner{1, 2}, (*inner)(nil), 5, M{"x": 1}} {
		out := outer{held, held}
		want := D{{"a", int32(5)}}
		if err := Unmarshal(data, &out); err != nil || !reflect.DeepEqual(out.V, any(want)) {
			t.Errorf("%T: got %+v, %v", held, out, err)
		}
	}
	null, err := Marshal(D{{"v", nil}, {"w", Undefined{}}})
	if err != nil {
		t.Fatal(err)
	}
	out = outer{v, w}
	if err := Unmarshal(null, &out); err != nil || out != (outer{}) || v.A != 5 {
		t.Errorf("null: got %+v %+v, %v", out, v, err)
	}
	out = outer{new(int), nil}
	var de *DecodeError
	if err := Unmarshal(data, &out); !errors.As(err, &de) || de.Path != "v" || de.GoType != reflect.TypeFor[int]() {
		t.Errorf("a document into an int: %v", err)
	}
}

// TestDecodeIntoCycleOfInterfaces would overflow the stack, which ends the program.
func TestDecodeIntoCycleOfInterfaces(t *testing.T) {
	data, err := Marshal(D{{"a", 1}})
	if err != nil {
		t.Fatal(err)
	}
	var x, y any
	x, y = &y, &x
	if err := Unmarshal(data, &x); !errors.Is(err, errTooDeep) {
		t.Errorf("got %v", err)
	}
	// The decoder is used again.
	var fine any = new(D)
	if err := Unmarshal(data, &fine); err != nil {
		t.Error(err)
	}
}
