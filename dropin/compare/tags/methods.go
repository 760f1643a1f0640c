package tags

import "fmt"

// Marked encodes itself as {called: true}, which needs its address.
type Marked struct{ X int64 }

// MarshalBSON returns the document.
func (*Marked) MarshalBSON() ([]byte, error) {
	return []byte("\x0e\x00\x00\x00\x08called\x00\x01\x00"), nil
}

// Methods tells for which values methods with pointer receivers are called.
func Methods(encode func(v any) ([]byte, error), say func(what string, values ...any)) {
	type Field struct{ M Marked }
	type array struct{ A [2]Marked }
	type Slice struct{ S []Marked }
	type pointers struct {
		P *Marked
		Q *Field
		S []*Field
		M map[string]*Field
	}
	type held struct{ I any }
	type deep struct {
		M map[string]Field
		S []map[string]Marked
		N map[string][]Marked
	}
	type inline struct {
		Field  `bson:",inline"`
		*Slice `bson:",inline"`
	}
	one := Marked{1}
	in := Field{one}
	nested := deep{map[string]Field{"a": in}, []map[string]Marked{{"a": one}}, map[string][]Marked{"a": {one}}}
	for i, v := range []any{
		one, &one, in, &in, array{}, &array{}, Slice{[]Marked{one}}, &Slice{[]Marked{one}},
		pointers{&one, &in, []*Field{&in}, map[string]*Field{"a": &in}},
		held{one}, &held{one}, held{&one}, held{in}, &held{&in}, held{[]Marked{one}},
		held{[1]Marked{one}}, &held{[1]Marked{one}},
		held{map[string]Marked{"a": one}}, map[string]Marked{"a": one}, map[string]*Marked{"a": &one},
		map[string]Field{"a": in}, map[string][]Marked{"a": {one}}, map[string][1]Marked{"a": {one}},
		map[string]any{"a": one}, map[string]any{"a": &one}, map[string]any{"a": []any{one, &one, in}},
		nested, &nested, inline{in, nil}, &inline{in, nil}, held{held{in}}, held{&held{in}}, held{&held{&in}},
	} {
		doc, err := encode(v)
		say(fmt.Sprintf("method of %d %T", i, v), fmt.Sprintf("%x", doc), err)
	}
}
