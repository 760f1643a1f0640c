package index

// The options of text indexes.

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/fts"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// maxTextWeight is the first weight that is too great.
const maxTextWeight = 1 << 16

// weights returns the weights of a text index's fields by path: those given, and 1 for the other
// ones.
func (s *Spec) weights() map[string]int32 {
	out := map[string]int32{}
	for _, f := range s.fields {
		if f.Special == "text" {
			out[f.Path] = 1
		}
	}
	if all, ok := s.doc.Lookup("weights").StringValue(); ok {
		out[all] = 1
	}
	given, _ := s.doc.Lookup("weights").Document()
	for path, v := range given.All() {
		out[path] = int32(query.Float(v))
	}
	return out
}

// checkTextTypes checks the types of the options as a definition does.
func (s *Spec) checkTextTypes() error {
	for _, option := range []struct {
		name, want string
		is         func(v bson.RawValue) bool
	}{
		{"weights", "object", func(v bson.RawValue) bool {
			return v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeString || v.Type == bson.TypeArray
		}},
		{"default_language", "string", func(v bson.RawValue) bool { return v.Type == bson.TypeString }},
		{"language_override", "string", func(v bson.RawValue) bool { return v.Type == bson.TypeString }},
		{"textIndexVersion", "number", bson.RawValue.IsNumber},
	} {
		if v := s.doc.Lookup(option.name); v.Type != 0 && !option.is(v) {
			return s.bad(srverr.TypeMismatch, "The field '%s' must be a %s, but got %s", option.name, option.want,
				bsontext.TypeName(v.Type))
		}
	}
	return nil
}

// checkText checks the options that only a text index reads.
func (s *Spec) checkText(version release.Version) error {
	if version.AllParsed() {
		if err := s.checkTextTypes(); err != nil {
			return err
		}
	}
	bad := func(format string, args ...any) error { return s.badLater(srverr.CannotCreateIndex, format, args...) }
	for i := 1; i < len(s.fields); i++ {
		before := s.fields[:i]
		if s.fields[i].Special == "text" && before[i-1].Special != "text" &&
			slices.ContainsFunc(before, func(f store.IndexField) bool { return f.Special == "text" }) {
			return bad("'text' fields in index must all be adjacent")
		}
	}
	if v := s.doc.Lookup("weights"); v.Type != 0 {
		given, ok := v.Document()
		if all, _ := v.StringValue(); !ok && all != "$**" {
			return bad("text index option 'weights' must be an object")
		}
		for path, w := range given.All() {
			if !w.IsNumber() {
				return bad("weight for text index needs numeric type")
			}
			if n := int32(query.Float(w)); n <= 0 || n >= maxTextWeight {
				return bad("text index weight must be in the exclusive interval (0,%d) but found: %d", maxTextWeight, n)
			}
			if path == "$**" {
				continue
			}
			for part := range strings.SplitSeq(path, ".") {
				switch {
				case path == "":
					return bad("weight cannot be on an empty field")
				case part == "":
					return bad("weight cannot have empty path component")
				case part[0] == '$':
					return bad("weight cannot have path component with $ prefix")
				}
			}
		}
	}
	if v := s.doc.Lookup("default_language"); v.Type != 0 {
		name, ok := v.StringValue()
		if !ok {
			return bad("default_language needs a string type")
		}
		if _, ok := fts.Language(name); !ok {
			return bad("default_language is not valid")
		}
	}
	if v := s.doc.Lookup("language_override"); v.Type != 0 {
		name, ok := v.StringValue()
		if !ok {
			return bad("language_override must be a string")
		}
		if name == "" || strings.HasPrefix(name, "$") {
			return bad("language_override is not valid")
		}
	}
	if v := s.doc.Lookup("textIndexVersion"); v.Type != 0 {
		if n := query.Float(v); !v.IsNumber() {
			return bad("text index option 'textIndexVersion' must be a number")
		} else if n != 1 && n != 2 && n != 3 {
			return bad("bad textIndexVersion: %d", int32(n))
		}
	}
	return nil
}
