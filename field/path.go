package field

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"allium/bson"
	"allium/field/expr"
)

// Path is a path in documents of type D to a value of type V. Of makes one. The zero Path leads
// nowhere: its methods panic.
type Path[D, V any] struct{ at *place }

// In is a Path[D, V] of any V: a field of documents of type D.
type In[D any] interface {
	in(*D) *place
}

// place is where a path leads.
type place struct {
	name  string
	marks []int // offsets in name behind which an element of an array is meant
	exact bool  // a value of the type as it is could be taken for operators or a pattern
	index bool  // the path names elements of arrays, which expressions do not understand
}

func (p place) key(key string) place {
	if p.name != "" {
		key = p.name + "." + key
	}
	return place{name: key, marks: p.marks}
}

func (p place) element() place {
	return place{name: p.name, marks: append(slices.Clip(p.marks), len(p.name))}
}

// Of returns the path to the field whose address f returns. f gets a document in which pointers
// lead to something and slices have one element, which stands for all of them:
//
//	city  := field.Of(func(o *Order) *string { return &o.Ship.City })       // ship.city
//	nick  := field.Of(func(o *Order) *string { return o.Nick })             // a *string
//	price := field.Of(func(o *Order) *float64 { return &o.Lines[0].Price }) // lines.price
//
// opts are those of the collection, if it has any: they may change names. Of panics if what f
// returns has no path, such as a field that is not exported or has the tag "-", and says why. Call
// it in variables of the package, so that the program finds out when it starts.
func Of[D, V any](f func(*D) *V, opts ...bson.Options) Path[D, V] {
	var o bson.Options
	if len(opts) > 0 {
		o = opts[len(opts)-1]
	}
	return path[D, V](locate(f, o))
}

// path returns the path to a place, whose values have the type V.
func path[D, V any](p place) Path[D, V] {
	p.exact = !plain(reflect.TypeFor[V]())
	return Path[D, V]{&p}
}

// plain reports whether a value of the type can only be a value where a filter has one: not
// operators, not a pattern.
func plain(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[bson.ObjectID](), reflect.TypeFor[bson.DateTime](), reflect.TypeFor[bson.Decimal128](),
		reflect.TypeFor[bson.UUID](),
		reflect.TypeFor[bson.Binary](), reflect.TypeFor[bson.Timestamp](), reflect.TypeFor[time.Time]():
		return true
	}
	pt := reflect.PointerTo(t)
	if pt.Implements(reflect.TypeFor[bson.ValueMarshaler]()) || pt.Implements(reflect.TypeFor[bson.Marshaler]()) {
		return false
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	case reflect.Slice, reflect.Array:
		// A Raw or a D is a document.
		return t != reflect.TypeFor[bson.Raw]() && t.Elem() != reflect.TypeFor[bson.E]()
	}
	return false
}

// Self returns the path to a value itself: for conditions on the elements of arrays that are no
// documents, in ElemMatch, Pull and ArrayFilter, and for their order in PushOptions.
//
//	field.ElemMatch(scores, field.Self[int]().Gte(80), field.Self[int]().Lt(85))
func Self[E any]() Path[E, E] { return Path[E, E]{&place{exact: true}} }

// As returns the path p for values of another type W: for a field of an interface type, or one
// whose type has methods to encode itself, which only the program knows.
//
//	amount := field.As[bson.Decimal128](price)
func As[W, D, V any](p Path[D, V]) Path[D, W] { return path[D, W](*p.at) }

// Elem returns the path to the elements of a slice. As a filter it means any of them. An update
// needs one that says which: see Path.At, Path.Matched, Path.Each and Path.Filtered.
func Elem[D any, S ~[]E, E any](p Path[D, S]) Path[D, E] { return path[D, E](p.at.element()) }

// Key returns the path to an entry of a map. It panics if the key is empty, has a dot, or begins
// with a dollar sign.
func Key[D any, M ~map[K]V, K ~string, V any](p Path[D, M], key K) Path[D, V] {
	if k := string(key); k == "" || strings.Contains(k, ".") || k[0] == '$' {
		panic("field: key: a path cannot have the key " + strconv.Quote(k))
	}
	return path[D, V](p.at.key(string(key)))
}

// Join returns the path that continues p with q.
func Join[D, M, V any](p Path[D, M], q Path[M, V]) Path[D, V] {
	if q.at.name == "" {
		return path[D, V](*p.at)
	}
	joined := p.at.key(q.at.name)
	for _, m := range q.at.marks {
		joined.marks = append(slices.Clip(joined.marks), m+len(p.at.name)+1)
	}
	if p.at.name == "" {
		joined = *q.at
	}
	joined.index = p.at.index || q.at.index
	return path[D, V](joined)
}

// At returns the path to the element of this index of the array on the path, the first one if there
// are several: lines.price becomes lines.2.price. It panics if no array is on the path, or the
// index is negative.
func (p Path[D, V]) At(index int) Path[D, V] {
	if index < 0 {
		panic("field: " + p.at.name + ": negative index")
	}
	return p.which(strconv.Itoa(index))
}

// Matched returns the path to the element that the filter of an update, or of a find for its
// projection, has matched: lines.$.price. It panics if no array is on the path.
func (p Path[D, V]) Matched() Path[D, V] { return p.which("$") }

// Each returns the path to all elements of the array on the path, for updates: lines.$[].price. It
// panics if no array is on the path.
func (p Path[D, V]) Each() Path[D, V] { return p.which("$[]") }

// Filtered returns the path to those elements which the ArrayFilter of this name selects, for
// updates: lines.$[name].price. It panics if no array is on the path.
func (p Path[D, V]) Filtered(name string) Path[D, V] { return p.which("$[" + name + "]") }

// which puts a word behind the first array on the path.
func (p Path[D, V]) which(word string) Path[D, V] {
	if len(p.at.marks) == 0 {
		panic("field: " + p.at.name + " does not lead through an array: take element 0 in Of, or use Elem")
	}
	at, rest := p.at.marks[0], p.at.marks[1:]
	if at > 0 {
		word = "." + word
	} else if len(p.at.name) > 0 {
		word += "."
	}
	q := *p.at
	q.name, q.marks, q.index = p.at.name[:at]+word+p.at.name[at:], nil, true
	for _, m := range rest {
		q.marks = append(q.marks, m+len(word))
	}
	return Path[D, V]{&q}
}

// String returns the path as MongoDB writes it: "ship.city".
func (p Path[D, V]) String() string { return p.at.name }

func (p Path[D, V]) in(*D) *place { return p.at }

// Ref returns the value at the path in an expression: "$ship.city". It panics if the path leads
// through an array, whose values Refs returns, or names an element, which expressions do with
// expr.ElemAt.
func (p Path[D, V]) Ref() expr.Value[D, V] {
	if len(p.at.marks) > 0 {
		panic("field: " + p.at.name + " leads through an array: in expressions use Refs")
	}
	return expr.Raw[D, V](p.at.ref())
}

// Refs returns the values at the path in an expression, of all elements of the array that it leads
// through. It panics if it does not lead through one array, or names an element.
func Refs[D, V any](p Path[D, V]) expr.Value[D, []V] {
	if len(p.at.marks) != 1 {
		panic("field: " + p.at.name + " does not lead through one array: in expressions use Ref")
	}
	return expr.Raw[D, []V](p.at.ref())
}

func (p *place) ref() string {
	if p.index {
		panic("field: " + p.name + " names an element of an array: in expressions use expr.ElemAt")
	}
	if p.name == "" {
		return "$$ROOT"
	}
	return "$" + p.name
}

// set returns the path for an update. It panics if the path does not say which elements of an array
// it means: servers refuse that, or the array would be replaced by the value.
func (p *place) set() string {
	if len(p.marks) > 0 {
		panic("field: an update of " + p.name +
			", which leads through an array, must say which elements: use At, Matched, Each or Filtered")
	}
	return p.name
}
