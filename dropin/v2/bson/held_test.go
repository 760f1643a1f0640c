package bson

import (
	"bytes"
	"reflect"
	"testing"
)

// A map that the program gives by itself gets what is decoded, and with a registry that empties
// maps nothing else is in it.
func TestMapsAreFilledInPlace(t *testing.T) {
	type named map[string]any
	data := []byte{0x0c, 0, 0, 0, 0x10, 'v', 0, 1, 0, 0, 0, 0}
	for _, empties := range []bool{false, true} {
		reg := NewRegistry()
		if empties {
			reg = NewMgoRegistry()
		}
		for _, into := range []any{M{"old": true}, map[string]any{"old": true}, named{"old": true}, map[string]int32{"old": 1}} {
			dec := NewDecoder(NewDocumentReader(bytes.NewReader(data)))
			dec.SetRegistry(reg)
			err := dec.Decode(into)
			m := reflect.ValueOf(into)
			if want := map[bool]int{false: 2, true: 1}[empties]; err != nil || m.Len() != want || !m.MapIndex(reflect.ValueOf("v")).IsValid() {
				t.Errorf("%T, emptied %t: %v, %v", into, empties, into, err)
			}
		}
	}
}

// What registries that look inside decode does not depend on the bytes afterwards, and bytes that
// make no sense are an error.
func TestHeldValuesAreWhole(t *testing.T) {
	reg := NewMgoRegistry()
	data := []byte{0x0c, 0, 0, 0, 0x10, 'v', 0, 1, 0, 0, 0, 0}
	decode := func(data []byte, into any) error {
		dec := NewDecoder(NewDocumentReader(bytes.NewReader(data)))
		dec.SetRegistry(reg)
		return dec.Decode(into)
	}
	m, d := M{}, D{}
	if err := decode(data, m); err != nil {
		t.Fatal(err)
	}
	if err := decode(data, &d); err != nil {
		t.Fatal(err)
	}
	data[5] = 'w'
	if _, ok := m["v"]; !ok || d[0].Key != "v" {
		t.Errorf("after the bytes were written over: %v, %v", m, d)
	}
	data[4] = 0xEE
	for _, into := range []any{M{}, &M{}, &D{}, map[string]any{}} {
		if err := decode(data, into); err == nil {
			t.Errorf("%T: a type that is none decodes to %v", into, into)
		}
	}
}
