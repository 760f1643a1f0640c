package store

import (
	"maps"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// A wildcard index has a key for each value of a document: the path and the value. An array has one
// for each element, with the array's path; an array within an array, and an empty document, are
// values themselves.

// wildcard says which paths a wildcard index has.
type wildcard struct {
	root string   // the pattern's path without "$**", with its dot; empty: the whole document
	list []string // paths of wildcardProjection
	keep bool     // only those of the list, else all others
	id   bool     // _id as well
}

// newWildcard reads the pattern and the wildcardProjection of an index.
func newWildcard(pattern string, projection bson.Raw) *wildcard {
	w := &wildcard{root: strings.TrimSuffix(pattern, "$**")}
	if w.root != "" {
		w.id = true
		return w
	}
	w.flatten("", projection)
	return w
}

// WildcardHas reports whether a wildcard index with this pattern and wildcardProjection has the
// values at a path.
func WildcardHas(pattern string, projection bson.Raw, path string) bool {
	return newWildcard(pattern, projection).Has(path)
}

func (w *wildcard) flatten(prefix string, projection bson.Raw) {
	for k, v := range projection.All() {
		if sub, ok := v.Document(); ok {
			w.flatten(prefix+k+".", sub)
			continue
		}
		in := v.AsBool()
		if prefix == "" && k == "_id" {
			w.id = in
			if in && len(w.list) == 0 && bsonLen(projection) == 1 {
				w.keep = true
			}
			continue
		}
		w.keep = in
		w.list = append(w.list, prefix+k)
	}
}

func bsonLen(doc bson.Raw) (n int) {
	for range doc.All() {
		n++
	}
	return n
}

// Has reports whether the index has the values at a path.
func (w *wildcard) Has(path string) bool {
	if !strings.HasPrefix(path, w.root) {
		return path+"." == w.root
	}
	if w.root != "" {
		return true
	}
	if path == "_id" || strings.HasPrefix(path, "_id.") {
		return w.id
	}
	for _, p := range w.list {
		if path == p || strings.HasPrefix(path, p+".") {
			return w.keep
		}
	}
	return !w.keep
}

// leads reports whether something below the path may be in the index.
func (w *wildcard) leads(path string) bool {
	if w.root != "" {
		return strings.HasPrefix(path+".", w.root) || strings.HasPrefix(w.root, path+".")
	}
	if w.Has(path) {
		return true
	}
	if !w.keep {
		return false
	}
	return slices.ContainsFunc(w.list, func(p string) bool { return strings.HasPrefix(p, path+".") })
}

// Numbered reports whether the index is for the fields of one element of an array: its keys have
// the paths of arrays without the numbers of elements, so that they do not tell these apart.
func (w *wildcard) Numbered(arrays *Arrays) bool {
	if arrays == nil || len(arrays.Paths) == 0 {
		return false
	}
	numbered := func(path string) bool {
		for i, c := range path {
			if c != '.' {
				continue
			}
			part, _, _ := strings.Cut(path[i+1:], ".")
			if arrays.At(path[:i]) && part != "" && strings.Trim(part, "0123456789") == "" {
				return true
			}
		}
		return false
	}
	return numbered(w.root) || slices.ContainsFunc(w.list, numbered)
}

// keys calls add for each key, and arrays for the path of each array that it goes into. An array
// within an array has one key: arrays is told of it, too, by a path that ends in nested.
func (w *wildcard) keys(doc bson.Raw, prefix string, add func(path string, v bson.RawValue), arrays func(path string)) {
	for k, v := range doc.All() {
		path := prefix + k
		if !w.leads(path) {
			continue
		}
		switch {
		case v.Type == bson.TypeEmbeddedDocument && !bson.Raw(v.Value).IsEmpty():
			w.keys(v.Value, path+".", add, arrays)
		case v.Type == bson.TypeArray:
			arrays(path)
			if bson.Raw(v.Value).IsEmpty() && w.Has(path) {
				add(path, bson.RawValue{Type: bson.TypeUndefined})
			}
			for e := range bson.Raw(v.Value).Values() {
				if e.Type == bson.TypeEmbeddedDocument && !bson.Raw(e.Value).IsEmpty() {
					w.keys(e.Value, path+".", add, arrays)
				} else if w.Has(path) {
					if e.Type == bson.TypeArray {
						arrays(path + nested)
					}
					add(path, e)
				}
			}
		case w.Has(path):
			add(path, v)
		}
	}
}

// Compound reports whether the index has other fields beside that of a wildcard.
func (x *IndexInfo) Compound() bool { return x.Wild != nil && len(x.Fields) > 1 }

// errPrefixArray is the error of an array in a field beside a wildcard.
var errPrefixArray = &srverr.Error{Code: 7246301,
	Msg: "a compound wildcard index does not support arrays in its fields without a wildcard"}

// wildKeys calls add for each key of a document in a wildcard index. Where there are other fields,
// a document without a value below the wildcard has a key as well, with MinKey as path and value:
// queries on the other fields find it.
func (x *IndexInfo) wildKeys(doc bson.Raw, add func(key []bson.RawValue)) (multikey bool, err error) {
	key := make([]bson.RawValue, len(x.KeyFields))
	if x.Compound() {
		arrays, err := x.gen.Keys(doc, func(others []bson.RawValue) {
			copy(key, others[:x.WildAt-1])
			copy(key[x.WildAt+1:], others[x.WildAt-1:])
		})
		if err != nil {
			return false, err
		} else if arrays {
			return false, errPrefixArray
		}
	}
	none := true
	x.Wild.keys(doc, "", func(path string, v bson.RawValue) {
		none = false
		key[x.WildAt-1], key[x.WildAt] = bsondoc.StringValue(path), v
		add(key)
	}, func(string) { multikey = true })
	if none && x.Compound() {
		key[x.WildAt-1], key[x.WildAt] = bson.RawValue{Type: bson.TypeMinKey}, bson.RawValue{Type: bson.TypeMinKey}
		add(key)
	}
	return multikey, nil
}

// Arrays says where a document's index has arrays: for an ordinary index, which parts of the paths
// of its fields lead to one; for a wildcard index, at which paths. It is not changed once it is
// published.
type Arrays struct {
	Fields []uint32            // for each field, a bit for each part of its path
	Paths  map[string]struct{} // of a wildcard index
}

// nested follows the path of an array that has arrays for elements: no key has this byte.
const nested = "\x00"

// At reports whether there is an array at a path of a wildcard index, and Nested whether one of its
// elements is an array, whose key is that array as a whole.
func (a *Arrays) At(path string) bool {
	if a == nil {
		return false
	}
	_, ok := a.Paths[path]
	return ok
}

// Nested is described at At.
func (a *Arrays) Nested(path string) bool { return a.At(path + nested) }

// Holds reports whether the part at a position of a field's path leads to an array.
func (a *Arrays) Holds(field, part int) bool {
	return a != nil && field < len(a.Fields) && a.Fields[field]>>min(part, 31)&1 != 0
}

// Any reports whether any part of a field's path leads to an array.
func (a *Arrays) Any(field int) bool {
	return a != nil && field < len(a.Fields) && a.Fields[field] != 0
}

// with returns what is known of the arrays once a document is there as well.
func (a *Arrays) with(x *IndexInfo, doc bson.Raw) *Arrays {
	if x.Wild != nil {
		var more []string
		x.Wild.keys(doc, "", func(string, bson.RawValue) {}, func(path string) {
			if a == nil || a.Paths == nil {
				more = append(more, path)
			} else if _, ok := a.Paths[path]; !ok {
				more = append(more, path)
			}
		})
		if len(more) == 0 {
			return a
		}
		out := &Arrays{Paths: map[string]struct{}{}}
		if a != nil {
			for p := range a.Paths {
				out.Paths[p] = struct{}{}
			}
		}
		for _, p := range more {
			out.Paths[p] = struct{}{}
		}
		return out
	}
	fields := make([]uint32, len(x.Fields))
	changed := a == nil
	for i := range x.Fields {
		if x.Cells(i) != nil {
			fields[i] = x.cellArrays(doc, i, a)
		} else {
			fields[i] = query.ArraysOn(doc, x.Fields[i].Path)
		}
		if a != nil {
			changed = changed || fields[i]&^a.Fields[i] != 0
			fields[i] |= a.Fields[i]
		}
	}
	if !changed {
		return a
	}
	return &Arrays{Fields: fields}
}

// and returns what two parts of a collection have together.
func (a *Arrays) and(b *Arrays) *Arrays {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	out := &Arrays{Fields: slices.Clone(a.Fields)}
	for i, bits := range b.Fields {
		out.Fields[i] |= bits
	}
	if a.Paths != nil || b.Paths != nil {
		out.Paths = map[string]struct{}{}
		maps.Copy(out.Paths, a.Paths)
		maps.Copy(out.Paths, b.Paths)
	}
	return out
}
