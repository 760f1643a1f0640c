package store

// The keys of 2dsphere indexes: the cells of the sphere that a document's geometries have a part
// in, together with the values of the other fields. Each field has its keys for itself, and a
// document those of all combinations.

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Sphere reports whether a field of the index is one of a 2dsphere index's that has cells.
func (x *IndexInfo) Sphere(field int) bool {
	return x.sphere && field < len(x.Fields) && x.Fields[field].Special == "2dsphere"
}

// SphereVersion returns the version of a 2dsphere index, 0 of another one.
func (x *IndexInfo) SphereVersion() int {
	if !x.sphere {
		return 0
	}
	return x.sphereVersion()
}

// sphereKeys calls add for each key of a document. Since version 2 of such indexes a document
// without a geometry has none. m counts the steps.
func (x *IndexInfo) sphereKeys(doc bson.Raw, m *work.Meter, add func(key []bson.RawValue)) (multikey bool, err error) {
	values := make([][]bson.RawValue, len(x.Fields))
	there := x.sphereVersion() == 1 && (!x.Sparse || x.hasAny(doc))
	for i := range x.Fields {
		if !x.Sphere(i) {
			gen := query.NewKeyGenerator([]string{x.Fields[i].Path}, false)
			arrays, err := gen.Keys(doc, func(key []bson.RawValue) { values[i] = append(values[i], key[0]) })
			if err != nil {
				return false, err
			}
			multikey = multikey || arrays
			continue
		}
		cells, through, err := x.cells(doc, i, m)
		if err != nil {
			return false, err
		}
		multikey = multikey || through != 0 || len(cells) > 1
		there = there || len(cells) > 0
		if values[i] = cells; len(cells) == 0 {
			values[i] = []bson.RawValue{{Type: bson.TypeNull}}
		}
	}
	if !there {
		return false, nil
	}
	combine(values, nil, add)
	return multikey, nil
}

// cells returns the keys of a geometry's field, and the parts of its path that lead to arrays which
// are gone through.
func (x *IndexInfo) cells(doc bson.Raw, field int, m *work.Meter) (keys []bson.RawValue, arrays uint32, err error) {
	list, arrays := query.ValuesAt(doc, x.Fields[field].Path)
	for _, v := range list {
		cells, text := query.SphereKeys(x.sphereVersion(), v.Name, v.Value, m)
		if text != "" {
			return nil, 0, srverr.New(16755, "Can't extract geo keys: %s  %s", bsontext.Document(doc), text)
		}
		keys = append(keys, cells...)
	}
	return keys, arrays, nil
}

// sphereArrays returns the parts of a geometry's path that lead to arrays in a document of a
// multikey index; several cells count like an array of them. known is what the index has so far.
func (x *IndexInfo) sphereArrays(doc bson.Raw, field int, known *Arrays) uint32 {
	last := strings.Count(x.Fields[field].Path, ".")
	if known.Holds(field, last) {
		_, arrays := query.ValuesAt(doc, x.Fields[field].Path)
		return arrays
	}
	cells, arrays, _ := x.cells(doc, field, nil)
	if len(cells) > 1 {
		arrays |= 1 << min(last, 31)
	}
	return arrays
}

// hasAny reports whether a document has one of the fields.
func (x *IndexInfo) hasAny(doc bson.Raw) bool {
	return slices.ContainsFunc(x.Fields, func(f IndexField) bool {
		list, _ := query.ValuesAt(doc, f.Path)
		return slices.ContainsFunc(list, func(v query.At) bool { return v.Value.Type != 0 })
	})
}

func combine(values [][]bson.RawValue, key []bson.RawValue, add func(key []bson.RawValue)) {
	if len(values) == 0 {
		add(key)
		return
	}
	for _, v := range values[0] {
		combine(values[1:], append(key, v), add)
	}
}
