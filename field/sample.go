package field

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"allium/bson"
)

// A sample is a value of a document type with something everywhere: pointers lead to values, slices
// have an element. Each place in it has an address, by which find knows where a function of the
// program's has gone.
type sample struct {
	opts   bson.Options
	depth  int // how often a type may stand in itself
	places []candidate
	nested map[reflect.Type]int // how often each type stands around what is being filled
	full   bool                 // a type was cut off at depth
}

// candidate is a place in a sample.
type candidate struct {
	address uintptr
	typ     reflect.Type
	place   place
	goPath  string // as the program writes it: "Ship.City"
	why     string // if it has no path: why
}

const (
	// deepest bounds how often a recursive type is unfolded: more is tried only if the function ran
	// into a nil pointer before.
	deepest = 8
	// mostPlaces bounds a sample of types that refer to each other many times.
	mostPlaces = 1 << 17
)

// locate returns the place of what f returns a pointer to. It panics if that has no path: so the
// program ends when it starts.
func locate[D, V any](f func(*D) *V, o bson.Options) place {
	return locateBy(reflect.TypeFor[D](), reflect.TypeFor[V](), o, func(root reflect.Value) uintptr {
		return reflect.ValueOf(f(root.Interface().(*D))).Pointer()
	})
}

// locateBy is locate by types: f gets a pointer to a document, and returns the address of a
// variable of type val.
func locateBy(doc, val reflect.Type, o bson.Options, f func(root reflect.Value) uintptr) place {
	for depth := 1; ; depth++ {
		s := &sample{opts: o, depth: depth, nested: map[reflect.Type]int{}}
		root := reflect.New(doc)
		s.fill(root.Elem(), place{}, "", "")
		p, met, err := s.located(f, root, val)
		if err == nil {
			return p
		}
		if met || !s.full || depth == deepest || len(s.places) >= mostPlaces {
			panic(fmt.Sprintf("field: of %s: %v", doc, err))
		}
	}
}

// located returns the place that f leads to, and whether the sample has one there.
func (s *sample) located(f func(reflect.Value) uintptr, root reflect.Value,
	val reflect.Type) (p place, met bool, err error) {
	at, stopped := follow(f, root)
	switch {
	case stopped != "":
		return place{}, false, fmt.Errorf(
			"the function stopped with %q: it may follow pointers, and take element 0 of slices and arrays, and nothing else", stopped)
	case at == 0:
		return place{}, false, errors.New("the function returned nil")
	}
	return s.find(at, val)
}

// follow calls f, and returns what it panics with.
func follow(f func(reflect.Value) uintptr, root reflect.Value) (at uintptr, stopped string) {
	defer func() {
		if r := recover(); r != nil {
			at, stopped = 0, fmt.Sprint(r)
		}
	}()
	return f(root), ""
}

// find returns the place of a type at an address, and whether there is one.
func (s *sample) find(address uintptr, t reflect.Type) (p place, met bool, err error) {
	var found []candidate
	for _, c := range s.places {
		if c.address == address && c.typ == t &&
			!slices.ContainsFunc(found, func(f candidate) bool { return f.goPath == c.goPath }) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 0:
		return place{}, false, fmt.Errorf(
			"the function returned a pointer to a %s that is no field of the document it was given", t)
	case len(found) > 1:
		return place{}, true, fmt.Errorf("%s and %s take no room and cannot be told apart", found[0].goPath,
			found[1].goPath)
	case found[0].why != "":
		return place{}, true, fmt.Errorf("%s has no path: %s", found[0].goPath, found[0].why)
	}
	return found[0].place, true, nil
}

// add notes a place.
func (s *sample) add(v reflect.Value, p place, goPath, why string) {
	c := candidate{address: v.UnsafeAddr(), typ: v.Type(), place: p, goPath: goPath, why: why}
	if goPath == "" {
		c.goPath, c.why = "the document itself", "use Self"
	}
	s.places = append(s.places, c)
}

// fill fills the variable v, which lies at p, and notes it and what is in it. If why is not empty,
// nothing in it has a path, for this reason.
func (s *sample) fill(v reflect.Value, p place, goPath, why string) {
	s.add(v, p, goPath, why)
	t := v.Type()
	if s.nested[t] >= s.depth || len(s.places) >= mostPlaces {
		s.full = true
		return
	}
	s.nested[t]++
	defer func() { s.nested[t]-- }()
	shape, err := s.opts.ShapeOf(t)
	if err != nil && why == "" {
		why = err.Error()
	}
	inside := why
	if inside == "" && shape.Kind == bson.ShapeValue {
		inside = fmt.Sprintf("a %s is encoded as a value of its own form", t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		if to, ok := target(v); ok {
			s.fill(to, p, goPath, inside)
		}
	case reflect.Slice:
		if v.CanSet() && (t.Elem().Kind() != reflect.Uint8 || inside == "") {
			v.Set(reflect.MakeSlice(t, 1, 1))
			s.fill(v.Index(0), p.element(), goPath+"[0]", s.inList(p, inside))
		}
	case reflect.Array:
		for i := range v.Len() {
			why := s.inList(p, inside)
			if i > 0 && why == "" {
				why = "element 0 stands for all of them: take that, and At(" + strconv.Itoa(i) + ") of its path"
			}
			s.fill(v.Index(i), p.element(), goPath+"["+strconv.Itoa(i)+"]", why)
			if i == 1 { // more would say the same
				break
			}
		}
	case reflect.Struct:
		s.fillStruct(v, p, goPath, inside, shape)
	}
}

// inList says why elements of a list at p have no path, if they have none.
func (s *sample) inList(p place, why string) string {
	if why == "" && len(p.marks) > 0 && p.marks[len(p.marks)-1] == len(p.name) {
		why = "the elements of an array in an array are reached by their index alone"
	}
	return why
}

// fillStruct fills the fields that are encoded, by their keys, and then the others.
func (s *sample) fillStruct(v reflect.Value, p place, goPath, why string, shape bson.Shape) {
	if why == "" {
		for _, f := range shape.Fields {
			fv, ok := reached(v, f.Index)
			if !ok || f.InlineMap {
				continue
			}
			name := join(goPath, fieldNames(v.Type(), f.Index))
			reason := ""
			switch {
			case f.Key == "":
				reason = "its key is empty"
			case strings.Contains(f.Key, ".") || strings.HasPrefix(f.Key, "$"):
				reason = fmt.Sprintf("a path cannot have the key %q", f.Key)
			}
			s.fill(fv, p.key(f.Key), name, reason)
		}
	}
	s.others(v, nil, goPath, why, shape)
}

// others notes the fields without a path, and why they have none.
func (s *sample) others(v reflect.Value, index []int, goPath, why string, shape bson.Shape) {
	t := v.Type()
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(slices.Clip(index), i)
		name := join(goPath, sf.Name)
		if why != "" {
			s.fill(v.Field(i), place{}, name, why)
			continue
		}
		exact, within, isMap := covers(shape.Fields, at)
		switch {
		case isMap:
			s.add(v.Field(i), place{}, name, "it is inline: its entries are keys of the document itself")
		case exact:
		case within:
			s.add(v.Field(i), place{}, name, "it is inline: its fields are those of the document around it")
			inner := v.Field(i)
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				s.others(inner, at, name, "", shape)
			}
		case !sf.IsExported() && !sf.Anonymous:
			s.fill(v.Field(i), place{}, name, "it is not exported, and bson leaves it out")
		default:
			s.fill(v.Field(i), place{}, name, "bson leaves it out, by its tag or for another field with its key")
		}
	}
}

// covers reports whether a field is encoded, whether it is inline and has fields that are, and
// whether it is the inline map.
func covers(fields []bson.ShapeField, index []int) (exact, within, isMap bool) {
	for _, f := range fields {
		switch {
		case slices.Equal(f.Index, index):
			exact, isMap = true, f.InlineMap
		case len(f.Index) > len(index) && slices.Equal(f.Index[:len(index)], index):
			within = true
		}
	}
	return exact, within, isMap
}

// reached returns the field of a struct, and makes the structs on the way.
func reached(v reflect.Value, index []int) (reflect.Value, bool) {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			to, ok := target(v)
			if !ok {
				return reflect.Value{}, false
			}
			v = to
		}
		v = v.Field(n)
	}
	return v, true
}

// target returns what a pointer leads to, which it makes if there is nothing. A pointer that is not
// exported cannot be set.
func target(v reflect.Value) (reflect.Value, bool) {
	if v.IsNil() {
		if !v.CanSet() {
			return reflect.Value{}, false
		}
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem(), true
}

// fieldNames returns a path of Go's.
func fieldNames(t reflect.Type, index []int) string {
	var names []string
	for _, n := range index {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		f := t.Field(n)
		names, t = append(names, f.Name), f.Type
	}
	return strings.Join(names, ".")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
