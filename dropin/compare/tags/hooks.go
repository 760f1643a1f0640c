package tags

import (
	"fmt"
	"reflect"
	"strings"
)

// A Hook is an encoder that a registry has for a type, an interface or a kind. It writes a string,
// or what the registry's encoder for a value that lies in its own makes of that.
type Hook struct {
	Of    reflect.Type // exactly, or if it is an interface, what implements it
	Kind  reflect.Kind // if Of is nil
	Write func(v reflect.Value) (text string, inside reflect.Value)
	// Default is for a hook that leaves its value to the encoder of a registry without hooks.
	Default bool
}

// Greeter is an interface that hooks are for.
type Greeter interface{ Greet() string }

// Waver is another.
type Waver interface{ Wave() string }

// ByPointer is a Greeter by its pointer.
type ByPointer struct{ X int64 }

// Greet implements Greeter.
func (*ByPointer) Greet() string { return "hello" }

// ByValue is a Greeter.
type ByValue struct{ X int64 }

// Greet implements Greeter.
func (ByValue) Greet() string { return "hello" }

// Count is a Greeter by its pointer that is no struct.
type Count int64

// Greet implements Greeter.
func (*Count) Greet() string { return "one" }

// Names is a Greeter by its pointer that is a map.
type Names map[string]string

// Greet implements Greeter.
func (*Names) Greet() string { return "names" }

// Both is a Greeter by its pointer and a Waver.
type Both struct{ X int64 }

// Greet implements Greeter.
func (*Both) Greet() string { return "hello" }

// Wave implements Waver.
func (Both) Wave() string { return "bye" }

// Encoded is a Greeter by its pointer that encodes itself.
type Encoded struct{ X int64 }

// Greet implements Greeter.
func (*Encoded) Greet() string { return "hello" }

// MarshalBSON returns a document.
func (Encoded) MarshalBSON() ([]byte, error) { return (*Marked).MarshalBSON(nil) }

// Tree is a Greeter by its pointer that has more of itself.
type Tree struct {
	X    int64
	List []Tree
	Map  map[string]Tree
	Any  any
	Next *Tree
}

// Greet implements Greeter.
func (*Tree) Greet() string { return "tree" }

// Box is encoded as what is in it.
type Box struct{ In ByPointer }

// Hooks tells what a registry's encoders for interfaces are called for, and with what. encode
// encodes with a registry that has some encoders, to Extended JSON; marshaler is the interface
// Marshaler.
func Hooks(encode func(hooks []Hook, v any) (string, error), marshaler reflect.Type,
	say func(what string, values ...any)) {
	tell := func(v reflect.Value) (string, reflect.Value) {
		return fmt.Sprint(strings.TrimPrefix(v.Type().String(), "tags."), " ", v.CanAddr(), v.CanSet()), reflect.Value{}
	}
	kind := func(v reflect.Value) (string, reflect.Value) {
		return fmt.Sprint("kind ", strings.TrimPrefix(v.Type().String(), "tags."), " ", v.CanAddr()), reflect.Value{}
	}
	greeter, waver := reflect.TypeFor[Greeter](), reflect.TypeFor[Waver]()
	calls := 0
	count := func(reflect.Value) (string, reflect.Value) {
		calls++
		return "", reflect.Value{}
	}
	tree := Tree{List: []Tree{{X: 1, Next: &Tree{}}}, Map: map[string]Tree{"a": {Any: Tree{}}},
		Any: []any{Tree{}, &Tree{}}}
	for i, hook := range []Hook{
		{Of: reflect.TypeFor[Tree]()}, {Of: reflect.TypeFor[*Tree]()}, {Kind: reflect.Struct}, {Kind: reflect.Pointer},
		{Kind: reflect.Map}, {Kind: reflect.Slice}, {Of: reflect.TypeFor[any]()}, {Of: greeter},
	} {
		hook.Default, hook.Write = true, count
		for _, v := range []any{tree, &tree} {
			calls = 0
			doc, err := encode([]Hook{hook}, v)
			say(fmt.Sprintf("hook %d leaves %T", i, v), doc, err, calls)
		}
	}
	unpack := func(v reflect.Value) (string, reflect.Value) { return "", v.Field(0) }
	for i, hooks := range [][]Hook{
		{{Of: greeter, Write: tell}},
		{{Of: greeter, Write: tell}, {Kind: reflect.Struct, Write: kind}},
		{{Of: greeter, Write: tell}, {Of: waver, Write: tell}},
		{{Of: waver, Write: tell}, {Of: greeter, Write: tell}},
		{{Of: greeter, Write: tell}, {Of: reflect.TypeFor[Box](), Write: unpack}},
		{{Of: greeter, Write: tell}, {Of: reflect.TypeFor[Box](), Write: unpack},
			{Of: reflect.TypeFor[*ByPointer](), Write: kind}},
		{{Of: marshaler, Write: tell}},
		{{Of: reflect.TypeFor[ByPointer](), Write: tell}, {Of: reflect.TypeFor[*Both](), Write: tell}},
		{{Kind: reflect.Struct, Write: kind}},
		{{Kind: reflect.Pointer, Write: kind}, {Of: greeter, Write: tell}},
		{{Kind: reflect.Int64, Write: kind}, {Kind: reflect.Map, Write: kind}},
		{{Of: reflect.TypeFor[Marked](), Write: tell}, {Of: reflect.TypeFor[Encoded](), Write: tell}},
		{{Of: reflect.TypeFor[*Marked](), Write: tell}, {Of: reflect.TypeFor[*Encoded](), Write: tell}},
	} {
		each(ByPointer{1}, i, hooks, encode, say)
		each(ByValue{1}, i, hooks, encode, say)
		each(Count(1), i, hooks, encode, say)
		each(Names{"a": "b"}, i, hooks, encode, say)
		each(Both{1}, i, hooks, encode, say)
		each(Encoded{1}, i, hooks, encode, say)
		each(Marked{1}, i, hooks, encode, say)
		each(Box{ByPointer{1}}, i, hooks, encode, say)
		leaf := Tree{X: 1}
		each(Tree{2, []Tree{leaf}, map[string]Tree{"a": leaf}, leaf, &leaf}, i, hooks, encode, say)
	}
}

// each encodes a value in all places where it may lie.
func each[T any](one T, n int, hooks []Hook, encode func([]Hook, any) (string, error), say func(string, ...any)) {
	type field struct{ M T }
	type Inline struct{ N T }
	type places struct {
		F      T
		P      *T
		PP     **T
		A      [1]T
		S      []T
		PS     *[]T
		SP     []*T
		M      map[string]T
		MP     map[string]*T
		MS     map[string][]T
		MA     map[string][1]T
		MF     map[string]field
		I      any
		IP     any
		IS     any
		IA     any
		IF     any
		IQ     any
		G      Greeter
		Inline `bson:",inline"`
		Z      *T
		Y      T `bson:",omitempty"`
	}
	p := &one
	all := places{F: one, P: p, PP: &p, A: [1]T{one}, S: []T{one}, PS: &[]T{one}, SP: []*T{p},
		M:  map[string]T{"a": one},
		MP: map[string]*T{"a": p}, MS: map[string][]T{"a": {one}}, MA: map[string][1]T{"a": {one}},
		MF: map[string]field{"a": {one}}, I: one, IP: p, IS: []T{one}, IA: [1]T{one}, IF: field{one}, IQ: &field{one},
		Inline: Inline{one}}
	all.G, _ = any(p).(Greeter)
	for i, v := range []any{one, p, field{one}, &field{one}, all, &all, []any{all, &all}, map[string]any{"a": one},
		map[string]T{"a": one}, map[string][]any{"a": {one, p}}} {
		if s, ok := v.([]any); ok {
			v = map[string]any{"a": s}
		}
		doc, err := encode(hooks, v)
		say(fmt.Sprintf("hooks %d, %d %T", n, i, v), doc, err)
	}
}
