package store

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// checkSpecial refuses documents that an index without keys of its own here (hashed, text or geo) could not hold on the server.
func (x *IndexInfo) checkSpecial(doc bson.Raw) error {
	if x.Partial != nil {
		if ok, err := x.Partial.Match(doc); err != nil || !ok {
			return err
		}
	}
	for i := range x.Fields {
		f := &x.Fields[i]
		switch f.Special {
		case "hashed":
			if at := arrayOnPath(doc, f.Path); at != "" {
				return srverr.New(16766, "Error: hashed indexes do not currently support array values. Found array at path: %s", at)
			}
		case "text":
			if err := x.Text.Check(doc); err != nil {
				return err
			}
		case "2dsphere":
			v, name := valueAt(doc, f.Path)
			if text := query.BadSphere(name, v); text != "" {
				return srverr.New(16755, "Can't extract geo keys: %s  %s", bsontext.Document(doc), text)
			}
		case "2d":
			v, _ := valueAt(doc, f.Path)
			if code, text := query.BadPlane(v); code != 0 {
				return srverr.New(code, "%s", text)
			}
		}
	}
	return nil
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

// valueAt returns the value at a path that does not go through arrays, and the name of its element.
func valueAt(doc bson.Raw, path string) (v bson.RawValue, name string) {
	for part := range strings.SplitSeq(path, ".") {
		v, name = doc.Lookup(part), part
		if v.Type != bson.TypeEmbeddedDocument {
			doc = nil
			continue
		}
		doc = v.Value
	}
	return v, name
}
