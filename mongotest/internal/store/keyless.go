package store

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// checkSpecial refuses documents that a hashed index, or one without keys of its own here (text or
// geoHaystack), could not hold on the server. m counts the steps.
func (x *IndexInfo) checkSpecial(doc bson.Raw, m *work.Meter) error {
	if x.Partial != nil {
		if ok, err := x.Partial.Match(doc); err != nil || !ok {
			return err
		}
	}
	for i := range x.Fields {
		f := &x.Fields[i]
		if f.Special == "" && x.Text != nil && !strings.HasPrefix(f.Path, "_fts") && isArrayAt(doc, f.Path) {
			return srverr.New(srverr.CannotBuildIndexKeys, "Field '%s' of text index contains an array in document: %s",
				f.Path, bsontext.Document(doc))
		}
		switch f.Special {
		case "hashed":
			for i := range x.Fields { // nor do the other fields of such an index
				if at := arrayOnPath(doc, x.Fields[i].Path); at != "" {
					return srverr.New(16766,
						"Error: hashed indexes do not currently support array values. Found array at path: %s", at)
				}
			}
		case "text":
			if err := x.Text.Check(doc); err != nil {
				return err
			}
		case "geoHaystack":
			v := valueAt(doc, f.Path)
			if code, text := query.BadHaystack(doc, v); code != 0 {
				return srverr.New(code, "%s", text)
			}
		}
	}
	return nil
}

// holds reports whether an index without keys of its own here has the document on the server.
func (x *IndexInfo) holds(doc bson.Raw) bool {
	for _, f := range []*query.Filter{x.Partial, x.held} {
		if f == nil {
			continue
		}
		if ok, err := f.Match(doc); err != nil || !ok {
			return false
		}
	}
	return true
}

// holding returns the filter of the documents that a sparse index has; nil: all.
func (x *IndexInfo) holding() *query.Filter {
	if !x.Sparse {
		return nil
	}
	var any [][]byte
	for _, f := range x.Fields {
		any = append(any, bsondoc.Of(f.Path, bsondoc.Of("$exists", true)))
	}
	f, _ := query.ParseFilter(bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bsondoc.AppendDocuments(d.B, "$or", any)
	}), nil)
	return f
}

// plane returns the grid of a 2d index.
func (x *IndexInfo) plane() *query.Plane {
	region := &query.Plane{Min: -180, Max: 180, Bits: 26}
	if v := x.Spec.Lookup("bits"); v.IsNumber() {
		region.Bits = int(query.Float(v))
	}
	if v := x.Spec.Lookup("min"); v.IsNumber() {
		region.Min = query.Float(v)
	}
	if v := x.Spec.Lookup("max"); v.IsNumber() {
		region.Max = query.Float(v)
	}
	return region
}

// sphereVersion returns the version of a 2dsphere index.
func (x *IndexInfo) sphereVersion() int {
	if v := x.Spec.Lookup("2dsphereIndexVersion"); v.IsNumber() {
		return int(query.Float(v))
	}
	return 3
}

// sameSpecial tells cheaply that a document's new form suits an index without keys if the old one
// does.
func (x *IndexInfo) sameSpecial(old, doc bson.Raw) bool {
	if x.Partial != nil || x.Text != nil {
		return false
	}
	for i := range x.Fields {
		first, _, _ := strings.Cut(x.Fields[i].Path, ".")
		if !old.Lookup(first).Equal(doc.Lookup(first)) {
			return false
		}
	}
	return true
}

// arrayOnPath returns the part of the path that leads to an array, "" if there is none.
func arrayOnPath(doc bson.Raw, path string) string {
	at := 0
	for part := range strings.SplitSeq(path, ".") {
		v := doc.Lookup(part)
		at += len(part)
		if v.Type == bson.TypeArray {
			return path[:at]
		}
		if v.Type != bson.TypeEmbeddedDocument {
			break
		}
		doc = v.Value
		at++
	}
	return ""
}

// isArrayAt reports whether a path leads to an array or through one, but for those whose element it
// names by number.
func isArrayAt(doc bson.Raw, path string) bool {
	v, array := bson.RawValue{}, false
	for part := range strings.SplitSeq(path, ".") {
		if array && strings.Trim(part, "0123456789") != "" {
			return true
		}
		v = doc.Lookup(part)
		if array = v.Type == bson.TypeArray; !array && v.Type != bson.TypeEmbeddedDocument {
			return false
		}
		doc = v.Value
	}
	return array
}

// valueAt returns the value at a path that does not go through arrays.
func valueAt(doc bson.Raw, path string) (v bson.RawValue) {
	for part := range strings.SplitSeq(path, ".") {
		v = doc.Lookup(part)
		if v.Type != bson.TypeEmbeddedDocument {
			doc = nil
			continue
		}
		doc = v.Value
	}
	return v
}
