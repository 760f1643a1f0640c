package paging

import (
	"fmt"
	"slices"
	"strings"

	"allium/bson"
)

// project completes a projection by the sort keys, since the tokens need them.
func project(projection any, keys []key) (any, error) {
	if projection == nil {
		return nil, nil
	}
	b, err := bson.Marshal(projection)
	if err != nil {
		return nil, fmt.Errorf("projection: %w", err)
	}
	doc := bson.Raw(b)
	includes := including(doc)
	var missing []string
	for _, k := range keys {
		there := !includes || k.path == "_id"
		for path, v := range doc.All() {
			if !within(path, k.path) && !within(k.path, path) {
				continue
			}
			plain := v.IsNumber() || v.Type == bson.TypeBoolean
			if !plain || !v.AsBool() || !within(k.path, path) {
				return nil, fmt.Errorf("projection of %q changes the sort key %q", path, k.path)
			}
			there = true
		}
		if !there {
			missing = append(missing, k.path)
		}
	}
	if len(missing) == 0 {
		return doc, nil
	}
	start, all := bson.BeginDocument(nil)
	for path, v := range doc.All() {
		all = bson.AppendRawValue(all, path, v)
	}
	for _, path := range missing {
		// A key within another one comes with it.
		if !slices.ContainsFunc(missing, func(other string) bool { return other != path && within(path, other) }) {
			all = bson.AppendInt32(all, path, 1)
		}
	}
	return bson.Raw(bson.EndDocument(all, start)), nil
}

// including reports whether a projection says which fields there are, and not which there are not.
func including(doc bson.Raw) bool {
	computes, id := false, false
	for path, v := range doc.All() {
		switch sub, isDoc := v.Document(); {
		case path == "_id":
			id = v.AsBool()
		case v.IsNumber() || v.Type == bson.TypeBoolean:
			return v.AsBool()
		case isDoc && (!sub.Lookup("$slice").IsZero() || !sub.Lookup("$meta").IsZero()): // all other fields stay
		default:
			computes = true
		}
	}
	return computes || id
}

// within reports whether a path is another one or leads into it.
func within(path, other string) bool {
	return path == other || strings.HasPrefix(path, other+".")
}
