package tags

import "fmt"

// Marked encodes itself as {called: true}, which needs its address.
type Marked struct{ X int64 }

// MarshalBSON returns the document.
func (*Marked) MarshalBSON() ([]byte, error) {
	return []byte("\x0e\x00\x00\x00\x08called\x00\x01\x00"), nil
}

// Methods tells for which values methods with pointer receivers are called, which type T has.
func Methods[T any](one T, encode func(v any) ([]byte, error), say func(what string, values ...any)) {
	type Field struct{ M T }
	type array struct{ A [2]T }
	type Slice struct{ S []T }
	type pointers struct {
		P *T
		Q *Field
		S []*Field
		M map[string]*Field
	}
	type held struct{ I any }
	type deep struct {
		M map[string]Field
		S []map[string]T
		N map[string][]T
	}
	type inline struct {
		Field  `bson:",inline"`
		*Slice `bson:",inline"`
	}
	in := Field{one}
	nested := deep{map[string]Field{"a": in}, []map[string]T{{"a": one}}, map[string][]T{"a": {one}}}
	for i, v := range []any{
		one, &one, in, &in, array{}, &array{}, Slice{[]T{one}}, &Slice{[]T{one}},
		pointers{&one, &in, []*Field{&in}, map[string]*Field{"a": &in}},
		held{one}, &held{one}, held{&one}, held{in}, &held{&in}, held{[]T{one}},
		held{[1]T{one}}, &held{[1]T{one}},
		held{map[string]T{"a": one}}, map[string]T{"a": one}, map[string]*T{"a": &one},
		map[string]Field{"a": in}, map[string][]T{"a": {one}}, map[string][1]T{"a": {one}},
		map[string]any{"a": one}, map[string]any{"a": &one}, map[string]any{"a": []any{one, &one, in}},
		nested, &nested, inline{in, nil}, &inline{in, nil}, held{held{in}}, held{&held{in}}, held{&held{&in}},
	} {
		doc, err := encode(v)
		say(fmt.Sprintf("method of %d %T", i, v), fmt.Sprintf("%x", doc), err)
	}
}
