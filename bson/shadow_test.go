package bson

import (
	"strings"
	"testing"
)

// TestDisallowShadowedFields: a field that hides one which is inline is an error of encoding, with
// the option, wherever the struct is. Decoding goes on as without it.
func TestDisallowShadowedFields(t *testing.T) {
	type inner struct{ A, B int }
	type hides struct {
		A     int
		inner `bson:",inline"`
	}
	type plain struct {
		C     int
		inner `bson:",inline"`
	}
	type Holds struct{ In []any }
	with := Options{DisallowShadowedFields: true}
	for _, c := range []struct {
		v   any
		bad bool
	}{
		{hides{}, true}, {&hides{}, true}, {D{{"x", hides{}}}, true}, {Holds{[]any{1, hides{}}}, true},
		{plain{}, false}, {Holds{[]any{plain{}}}, false}, {inner{}, false},
	} {
		if _, err := Marshal(c.v); err != nil {
			t.Errorf("%T without the option: %v", c.v, err)
		}
		_, err := with.Marshal(c.v)
		if c.bad != (err != nil && strings.Contains(err.Error(), `struct has the key "a" twice`)) {
			t.Errorf("%T: %v, want an error: %v", c.v, err, c.bad)
		}
	}
	var h hides
	doc := mustMarshal(t, D{{"a", 1}, {"b", 2}})
	if err := with.Unmarshal(doc, &h); err != nil || h.A != 1 || h.B != 2 {
		t.Errorf("decoded %+v, %v", h, err)
	}
}
