package query

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

var (
	nullValue      = bson.RawValue{Type: bson.TypeNull}
	undefinedValue = bson.RawValue{Type: bson.TypeUndefined}
)

// KeyGenerator makes the keys that a document has in an index, or the keys it sorts by. It is safe
// for concurrent use.
type KeyGenerator struct {
	paths  []string
	sparse bool
}

// NewKeyGenerator returns a generator for the paths of a key pattern. A sparse one makes no key for
// documents that have none of the fields.
func NewKeyGenerator(paths []string, sparse bool) *KeyGenerator {
	return &KeyGenerator{paths: paths, sparse: sparse}
}

// Keys calls add for each key of the document: one value per path. A missing field is null, an
// empty array is undefined, other arrays make one key per element. The same key may come several
// times; the slice is only valid during the call. multikey tells whether an array was met.
func (g *KeyGenerator) Keys(doc bson.Raw, add func(key []bson.RawValue)) (multikey bool, err error) {
	// stored documents have no array there; computed ones sort by it as a whole
	if len(g.paths) == 1 && g.paths[0] == "_id" {
		v := lookup(doc, "_id")
		if v.Type == 0 {
			v = nullValue
		}
		add([]bson.RawValue{v})
		return false, nil
	}
	w := keyWalk{sparse: g.sparse, add: add}
	fields := make([]string, len(g.paths), 2*len(g.paths))
	copy(fields, g.paths)
	fixed := make([]bson.RawValue, len(g.paths))
	done := make([]bool, len(g.paths))
	err = w.keys(fields, done, fixed, doc, 0, nil)
	return w.multikey, err
}

type keyWalk struct {
	sparse   bool
	multikey bool
	add      func([]bson.RawValue)
}

// positional is what the rest of a path leads to if its first part is an index of the array being
// expanded.
type positional struct {
	present bool
	nested  bool // the element at that index is itself an array
	name    string
	array   bson.Raw
	rest    string
	done    bool
	v       bson.RawValue
}

// keys expands one array at a time: all paths that go through an array have to go through the same
// one. fields are the rests of the paths, done marks the ones that are used up.
func (w *keyWalk) keys(fields []string, done []bool, fixed []bson.RawValue, doc bson.Raw, missing int,
	pos []positional) error {
	var array bson.RawValue
	var arrayName string
	expandNested := true
	inArray := make([]bool, len(fields))
	for i := range fields {
		if done[i] {
			continue
		}
		first, _, _ := strings.Cut(fields[i], ".")
		var v bson.RawValue
		own := lookup(doc, first).Type != 0
		byIndex := pos != nil && pos[i].present
		name := fields[i]
		switch {
		case own && byIndex:
			return srverr.New(16746, "Ambiguous field name found in array (do not use numeric field names in "+
				"embedded elements in an array), field: '%s' for array: %s", pos[i].name,
				bsontext.Document(pos[i].array))
		case own:
			v, name, fields[i], done[i] = toArrayOrEnd(doc, fields[i])
		case byIndex:
			if pos[i].nested {
				expandNested = false
			}
			v, name, fields[i], done[i] = pos[i].v, pos[i].name, pos[i].rest, pos[i].done
		}
		switch v.Type {
		case 0:
			fixed[i], fields[i], done[i] = nullValue, "", true
			missing++
		case bson.TypeArray:
			inArray[i] = true
			switch {
			case array.Type == 0:
				array, arrayName = v, name
			case &array.Value[0] != &v.Value[0]:
				return srverr.New(srverr.CannotIndexParallelArrays, "cannot index parallel arrays [%s] [%s]", name,
					arrayName)
			}
		default:
			fixed[i], fields[i], done[i] = v, "", true
		}
	}
	if array.Type == 0 {
		if !w.sparse || missing < len(fields) {
			w.add(fixed)
		}
		return nil
	}
	w.multikey = true
	if bson.Raw(array.Value).IsEmpty() {
		return w.element(fields, done, fixed, undefinedValue, array, inArray, missing, true, nil)
	}
	sub := make([]positional, len(fields))
	for i := range fields {
		if done[i] {
			continue
		}
		first, _, _ := strings.Cut(fields[i], ".")
		at := lookup(array.Value, first)
		if at.Type == 0 {
			continue
		}
		p := positional{present: true, nested: at.Type == bson.TypeArray, array: array.Value}
		p.v, p.name, p.rest, p.done = toArrayOrEnd(array.Value, fields[i])
		p.name = first
		sub[i] = p
	}
	for e := range bson.Raw(array.Value).Values() {
		if err := w.element(fields, done, fixed, e, array, inArray, missing, expandNested, sub); err != nil {
			return err
		}
	}
	return nil
}

func (w *keyWalk) element(fields []string, done []bool, fixed []bson.RawValue, e, array bson.RawValue, inArray []bool,
	missing int, expandNested bool, pos []positional) error {
	fields = append([]string(nil), fields...)
	fixed = append([]bson.RawValue(nil), fixed...)
	done = append([]bool(nil), done...)
	for i := range fields {
		if !inArray[i] || fields[i] != "" {
			continue
		}
		fixed[i] = array
		if expandNested {
			fixed[i] = e
		}
		done[i] = true
	}
	var doc bson.Raw
	if e.Type == bson.TypeEmbeddedDocument {
		doc = e.Value
	}
	return w.keys(fields, done, fixed, doc, missing, pos)
}

// toArrayOrEnd follows a path through documents to its end or to the first array. rest is what is
// left of the path; name is the field at which it stopped.
func toArrayOrEnd(doc bson.Raw, path string) (v bson.RawValue, name, rest string, end bool) {
	for {
		first, more, dotted := strings.Cut(path, ".")
		v = lookup(doc, first)
		switch {
		case v.Type == 0:
			return bson.RawValue{}, first, "", true
		case v.Type == bson.TypeArray:
			return v, first, more, false
		case !dotted:
			return v, first, "", true
		case v.Type != bson.TypeEmbeddedDocument:
			return bson.RawValue{}, first, "", true
		}
		doc, path = v.Value, more
	}
}

// ArraysOn returns which parts of a path lead to an array in a document: a bit for each part.
func ArraysOn(doc bson.Raw, path string) (parts uint32) {
	return arraysOn(doc, path, 0)
}

func arraysOn(doc bson.Raw, path string, part int) (parts uint32) {
	first, rest, dotted := strings.Cut(path, ".")
	v := lookup(doc, first)
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		if dotted {
			return arraysOn(v.Value, rest, part+1)
		}
	case bson.TypeArray:
		next, after, more := strings.Cut(rest, ".")
		if dotted && IsNumericPart(next) && lookup(v.Value, next).Type != 0 {
			// The path names the element: no other ones are looked at.
			if e := lookup(v.Value, next); more && e.Type == bson.TypeEmbeddedDocument {
				return arraysOn(e.Value, after, part+2)
			} else if e.Type == bson.TypeArray {
				return 1 << min(part+1, 31)
			}
			return 0
		}
		parts = 1 << min(part, 31)
		if dotted {
			for e := range bson.Raw(v.Value).Values() {
				if e.Type == bson.TypeEmbeddedDocument {
					parts |= arraysOn(e.Value, rest, part+1)
				}
			}
		}
	}
	return parts
}

// At is a value that a path leads to, with the name of its element.
type At struct {
	Name  string
	Value bson.RawValue
}

// ValuesAt returns the values that a path leads to through the elements of arrays; an array at its
// end is one value. arrays has a bit for each part of the path that leads to an array which is gone
// through. A path that breaks off leads to a value of type 0.
func ValuesAt(doc bson.Raw, path string) (list []At, arrays uint32) {
	w := valueWalk{}
	w.walk(doc, strings.Split(path, "."), 0)
	return w.list, w.arrays
}

type valueWalk struct {
	list   []At
	arrays uint32
}

func (w *valueWalk) walk(doc bson.Raw, parts []string, at int) {
	v := lookup(doc, parts[at])
	switch {
	case at == len(parts)-1:
		w.list = append(w.list, At{parts[at], v})
	case v.Type == bson.TypeEmbeddedDocument:
		w.walk(v.Value, parts, at+1)
	case v.Type == bson.TypeArray:
		w.array(v.Value, parts, at)
	default:
		w.list = append(w.list, At{parts[at], bson.RawValue{}})
	}
}

// array goes through an array that a part of the path leads to: the next part is a field of its
// elements, or the number of one.
func (w *valueWalk) array(array bson.Raw, parts []string, at int) {
	w.arrays |= 1 << min(at, 31)
	for key, v := range array.All() {
		if v.Type == bson.TypeEmbeddedDocument {
			w.walk(v.Value, parts, at+1)
		}
		if !IsNumericPart(parts[at+1]) || key != parts[at+1] {
			continue
		}
		switch {
		case at+1 == len(parts)-1:
			w.list = append(w.list, At{key, v})
		case v.Type == bson.TypeEmbeddedDocument:
			w.walk(v.Value, parts, at+2)
		case v.Type == bson.TypeArray:
			w.array(v.Value, parts, at+1)
		}
	}
}
