package bson

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// E is one element of a D: a key and its value.
type E struct {
	Key   string
	Value any
}

// D is an ordered BSON document. Use it where the order of the keys matters, as in commands and
// sort specifications, and where no struct fits.
//
//	bson.D{{Key: "age", Value: -1}, {Key: "name", Value: 1}}
type D []E

// M is an unordered BSON document.
//
//	bson.M{"name": "Ada"}
type M map[string]any

// A is a BSON array.
type A []any

// Get returns the value of the first element with this key, and whether there is one.
func (d D) Get(key string) (any, bool) {
	for i := range d {
		if d[i].Key == key {
			return d[i].Value, true
		}
	}
	return nil, false
}

// Set gives the first element with this key a new value, or appends an element.
func (d *D) Set(key string, value any) {
	for i := range *d {
		if (*d)[i].Key == key {
			(*d)[i].Value = value
			return
		}
	}
	*d = append(*d, E{key, value})
}

// Delete removes every element with this key and reports whether there was one.
func (d *D) Delete(key string) bool {
	n := len(*d)
	*d = slices.DeleteFunc(*d, func(e E) bool { return e.Key == key })
	return len(*d) < n
}

// Lookup returns the value at the path, one key per level, and whether there is one. It goes down
// through D, M, map[string]any, A and []any, where a key is an index in decimal, and Raw and
// RawValue, out of which it returns a RawValue.
func (d D) Lookup(path ...string) (any, bool) { return lookup(d, path) }

// Lookup returns the value at the path as D.Lookup does.
func (m M) Lookup(path ...string) (any, bool) { return lookup(m, path) }

func lookup(v any, path []string) (any, bool) {
	for i, key := range path {
		ok := false
		switch doc := v.(type) {
		case D:
			v, ok = doc.Get(key)
		case M:
			v, ok = doc[key]
		case map[string]any:
			v, ok = doc[key]
		case A:
			v, ok = item(doc, key)
		case []any:
			v, ok = item(doc, key)
		case Raw:
			found := doc.Lookup(path[i:]...)
			return found, !found.IsZero()
		case RawValue:
			found := Raw(doc.Value).Lookup(path[i:]...)
			return found, (doc.Type == TypeEmbeddedDocument || doc.Type == TypeArray) && !found.IsZero()
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

func item(array []any, key string) (any, bool) {
	i, err := strconv.ParseUint(key, 10, 31)
	if err != nil || int(i) >= len(array) {
		return nil, false
	}
	return array[i], true
}

// All iterates over the keys and values.
func (d D) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, e := range d {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// M returns the elements of d as an M. The documents inside stay what they are. Of elements with
// the same key the last one wins.
func (d D) M() M {
	m := make(M, len(d))
	for _, e := range d {
		m[e.Key] = e.Value
	}
	return m
}

// D returns the elements of m as a D, sorted by key. The documents inside stay what they are.
func (m M) D() D {
	d := make(D, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		d = append(d, E{key, m[key]})
	}
	return d
}

// Convert turns any value that has a BSON form into another one by way of BSON: structs into
// documents and back, a D into an M (the documents inside become D), a Raw into a struct, the _id
// in the result of an insert into a program's own type.
func Convert[T any](v any) (T, error) {
	var t T
	encoded, err := MarshalValue(v)
	if err != nil {
		return t, err
	}
	err = encoded.Unmarshal(&t)
	return t, err
}

// String returns d as relaxed Extended JSON, with every M in it sorted by key, or a note in angle
// brackets if it cannot be encoded.
func (d D) String() string { return relaxed(d) }

// String returns m as D.String does.
func (m M) String() string { return relaxed(m) }

// String returns a as D.String does.
func (a A) String() string { return relaxed(a) }

func relaxed(v any) string {
	if sorted, ok := sortMaps(v, 0); ok {
		v = sorted
	}
	text, err := MarshalExtJSON(v, false)
	if err != nil {
		return "<" + err.Error() + ">"
	}
	return string(text)
}

// sortMaps returns v with every M in it as a D. It gives up on what nests too deep to be encoded,
// which may be cyclic.
func sortMaps(v any, depth int) (sorted any, ok bool) {
	if depth++; depth > DefaultMaxDepth {
		return nil, false
	}
	switch doc := v.(type) {
	case M:
		d := doc.D()
		for i := range d {
			if d[i].Value, ok = sortMaps(d[i].Value, depth); !ok {
				return nil, false
			}
		}
		return d, true
	case D:
		d := slices.Clone(doc)
		for i := range d {
			if d[i].Value, ok = sortMaps(d[i].Value, depth); !ok {
				return nil, false
			}
		}
		return d, true
	case A:
		a := slices.Clone(doc)
		for i := range a {
			if a[i], ok = sortMaps(a[i], depth); !ok {
				return nil, false
			}
		}
		return a, true
	}
	return v, true
}

// MarshalJSON returns d as a JSON object with the keys in order and each value as encoding/json
// writes it: an ObjectID is a string then, for example. For JSON that keeps the types, use
// MarshalExtJSON.
func (d D) MarshalJSON() ([]byte, error) {
	if d == nil {
		return []byte("null"), nil
	}
	return appendJSON(nil, d, 0)
}

// UnmarshalJSON reads an object of JSON or Extended JSON, with documents inside as D and arrays as
// A.
func (d *D) UnmarshalJSON(text []byte) error {
	if string(bytes.TrimSpace(text)) == "null" {
		return nil
	}
	return UnmarshalExtJSON(text, d)
}

// appendJSON goes down through documents and arrays itself, because encoding/json goes through the
// text of every MarshalJSON once more. depth is how many documents and arrays are around v.
func appendJSON(dst []byte, v any, depth int) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case D:
		if v == nil {
			return append(dst, "null"...), nil
		}
		if depth++; depth > DefaultMaxDepth {
			return dst, &EncodeError{Err: errTooDeep}
		}
		dst = append(dst, '{')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendJSON(dst, e.Key, depth); err != nil {
				return dst, err
			}
			if dst, err = appendJSON(append(dst, ':'), e.Value, depth); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	case A:
		if v == nil {
			return append(dst, "null"...), nil
		}
		if depth++; depth > DefaultMaxDepth {
			return dst, &EncodeError{Err: errTooDeep}
		}
		dst = append(dst, '[')
		for i, value := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendJSON(dst, value, depth); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
	if !ends(reflect.ValueOf(v), DefaultMaxDepth-depth, 8*DefaultMaxDepth) {
		return dst, &EncodeError{Err: errTooDeep}
	}
	text, err := json.Marshal(v)
	return append(dst, text...), err
}

// ends reports whether a value that encoding/json will walk through nests no deeper than the given
// number of documents and arrays, reached through no more than so many pointers and interfaces. A D
// in it comes back to appendJSON by its method, where encoding/json does not see that it has been
// there.
func ends(v reflect.Value, levels, hops int) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || hops > 0 && ends(v.Elem(), levels, hops-1)
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct:
	default:
		return true
	}
	t := v.Type()
	if t.Implements(typeJSONMarshaler) && !callsAppendJSON(t) {
		return true // its own method ends, or is its own affair
	}
	if t != typeE { // an element is a part of its document
		if levels--; levels < 0 {
			return false
		}
	}
	switch t.Kind() {
	case reflect.Map:
		if isLeaf(t.Elem()) {
			return true
		}
		for it := v.MapRange(); it.Next(); {
			if !ends(it.Value(), levels, hops) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if isLeaf(t.Elem()) {
			return true
		}
		for i := range v.Len() {
			if !ends(v.Index(i), levels, hops) {
				return false
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && !ends(v.Field(i), levels, hops) {
				return false
			}
		}
	}
	return true
}

var typeJSONMarshaler = reflect.TypeFor[json.Marshaler]()

// callsAppendJSON reports whether the MarshalJSON of a type may be that of D: it is a type of this
// package, or embeds another type.
func callsAppendJSON(t reflect.Type) bool {
	if t == reflect.TypeFor[D]() || t == reflect.TypeFor[DBRef]() {
		return true
	}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if t.Field(i).Anonymous {
				return true
			}
		}
	}
	return false
}

// isLeaf reports whether values of the type hold no others.
func isLeaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Array, reflect.Struct:
		return false
	}
	return true
}
