package store

// The keys of 2dsphere and 2d indexes: the cells that a document's geometries have a part in,
// together with the values of the other fields. Each field of a 2dsphere index has its keys for
// itself, and a document those of all combinations.

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// HasCells reports whether it is a 2d or 2dsphere index.
func (x *IndexInfo) HasCells() bool { return x.cells != nil }

// Cells returns how the index divides space, for a field of which it has cells as keys; nil for
// another one.
func (x *IndexInfo) Cells(field int) *query.Cells {
	if x.cells == nil || field >= len(x.Fields) || !strings.HasPrefix(x.Fields[field].Special, "2d") {
		return nil
	}
	return x.cells
}

// sphereKeys calls add for each key of a document. Since version 2 of such indexes a document
// without a geometry has none. m counts the steps.
func (x *IndexInfo) sphereKeys(doc bson.Raw, m *work.Meter, add func(key []bson.RawValue)) (multikey bool, err error) {
	values := make([][]bson.RawValue, len(x.Fields))
	there := x.cells.Sphere == 1 && (!x.Sparse || x.hasAny(doc))
	for i := range x.Fields {
		if x.Cells(i) == nil {
			gen := query.NewKeyGenerator([]string{x.Fields[i].Path}, false)
			arrays, err := gen.Keys(doc, func(key []bson.RawValue) { values[i] = append(values[i], key[0]) })
			if err != nil {
				return false, err
			}
			multikey = multikey || arrays
			continue
		}
		cells, through, err := x.cellsOf(doc, i, m)
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

// planeKeys calls add for each key of a document in a 2d index: that of each of its points,
// together with the values of the other fields as they are, arrays as a whole.
func (x *IndexInfo) planeKeys(doc bson.Raw, m *work.Meter, add func(key []bson.RawValue)) (multikey bool, err error) {
	points, _, err := x.cellsOf(doc, 0, m)
	if err != nil || len(points) == 0 {
		return false, err
	}
	key := make([]bson.RawValue, len(x.Fields))
	for i := range x.Fields[1:] {
		key[i+1] = wholeValue(doc, x.Fields[i+1].Path)
	}
	for _, p := range points {
		key[0] = p
		add(key)
		multikey = multikey || !p.Equal(points[0])
	}
	return multikey, nil
}

// wholeValue returns what a path leads to: null if that is nothing, and an array if it is several
// values.
func wholeValue(doc bson.Raw, path string) bson.RawValue {
	all, _ := query.ValuesAt(doc, path)
	all = slices.DeleteFunc(all, func(v query.At) bool { return v.Value.Type == 0 })
	switch len(all) {
	case 0:
		return bson.RawValue{Type: bson.TypeNull}
	case 1:
		return all[0].Value
	}
	start, dst := bson.BeginDocument(nil)
	for i, v := range all {
		dst = append(bson.AppendIndexHeader(dst, v.Value.Type, i), v.Value.Value...)
	}
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}
}

// cellsOf returns the keys of a geometry's field, and the parts of its path that lead to arrays
// which are gone through.
func (x *IndexInfo) cellsOf(doc bson.Raw, field int, m *work.Meter) (keys []bson.RawValue, arrays uint32, err error) {
	list, arrays := query.ValuesAt(doc, x.Fields[field].Path)
	for _, v := range list {
		if x.cells.Plane != nil {
			cells, code, text := x.cells.Plane.Keys(doc, v.Value, m)
			if code != 0 {
				return nil, 0, srverr.New(code, "%s", text)
			}
			keys = append(keys, cells...)
			continue
		}
		cells, text := query.SphereKeys(x.cells.Sphere, v.Name, v.Value, m)
		if text != "" {
			return nil, 0, srverr.New(16755, "Can't extract geo keys: %s  %s", bsontext.Document(doc), text)
		}
		keys = append(keys, cells...)
	}
	return keys, arrays, nil
}

// cellArrays returns the parts of a geometry's path that lead to arrays in a document of a
// multikey index; several cells count like an array of them. known is what the index has so far.
func (x *IndexInfo) cellArrays(doc bson.Raw, field int, known *Arrays) uint32 {
	last := strings.Count(x.Fields[field].Path, ".")
	if known.Holds(field, last) {
		_, arrays := query.ValuesAt(doc, x.Fields[field].Path)
		return arrays
	}
	cells, arrays, _ := x.cellsOf(doc, field, nil)
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
