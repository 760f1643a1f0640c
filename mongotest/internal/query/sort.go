package query

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// maxSortKeys is how many fields a sort specification may have.
const maxSortKeys = 32

// Sort is a parsed sort specification. It is safe for concurrent use, unless its options had a
// meter.
type Sort struct {
	fields []SortField
	gen    *KeyGenerator
	coll   *Collation
	simple bool // a single path without dots
	work   *work.Meter
}

// SortField is one field of a sort specification.
type SortField struct {
	Path       string // empty for Meta
	Descending bool
	Meta       string // "textScore", "randVal", ...: sorts by metadata instead of a field, descending
}

// ParseSort parses the sort specification of find and $sort. An empty one yields a nil *Sort.
// {$natural: ...} is not for sorting: callers look for it first (see Natural).
func ParseSort(spec bson.Raw, o *Options) (*Sort, error) {
	s := &Sort{coll: o.collation(), work: o.meter()}
	var paths []string
	for key, v := range spec.All() {
		f := SortField{Path: key}
		if v.Type == bson.TypeEmbeddedDocument {
			meta, err := parseSortMeta(v.Value, o)
			if err != nil {
				return nil, err
			}
			s.fields = append(s.fields, SortField{Meta: meta, Descending: true})
			continue
		}
		if !v.IsNumber() {
			return nil, srverr.New(15974, "Illegal key in $sort specification: %s", bsontext.Element(key, v))
		}
		switch args.CastNumber(v) {
		case 1:
		case -1:
			f.Descending = true
		default:
			return nil, srverr.New(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
		}
		if err := expr.CheckPath(key, o.version()); err != nil {
			return nil, err
		}
		if o.version().AtLeast(7, 0) && slices.Contains(paths, key) {
			return nil, srverr.New(7472500, "$sort key must not contain duplicate keys (field: '%s')", key)
		}
		s.fields = append(s.fields, f)
		paths = append(paths, key)
	}
	if len(s.fields) == 0 {
		return nil, nil
	}
	if len(paths) > maxSortKeys { // those of metadata are no part of the key
		return nil, srverr.New(13103, "too many compound keys")
	}
	s.gen = NewKeyGenerator(paths, false)
	s.simple = len(s.fields) == 1 && len(paths) == 1 && strings.IndexByte(paths[0], '.') < 0
	return s, nil
}

// Natural looks for $natural in a sort specification or a hint. ok tells that it is there, backward
// that it asks for the reverse order. Together with other fields it is an error.
func Natural(spec bson.Raw) (ok, backward bool, err error) {
	v := lookup(spec, "$natural")
	if v.Type == 0 {
		return false, false, nil
	}
	if countElements(spec) > 1 {
		return false, false, badValue("Cannot include '$natural' in compound sort: %s", bsontext.Document(spec))
	}
	return true, v.IsNumber() && Float(v) < 0, nil
}

// CheckHint refuses a hint {$natural: ...} with another direction than 1 and -1, which versions
// before 8.1 took for forward.
func CheckHint(v release.Version, hint bson.RawValue) error {
	spec, ok := hint.Document()
	if !ok || !v.AllParsed() {
		return nil
	}
	d := lookup(spec, "$natural")
	if d.Type == 0 || d.IsNumber() && (Float(d) == 1 || Float(d) == -1) {
		return nil
	}
	return badValue("$natural hint may only accept 1 or -1, not %s", bsontext.Element("$natural", d))
}

func parseSortMeta(doc bson.Raw, o *Options) (string, error) {
	key, v, _ := firstElement(doc)
	if key != "$meta" {
		return "", srverr.New(17312, "$meta is the only expression supported by $sort right now")
	}
	if countElements(doc) != 1 {
		return "", srverr.New(srverr.FailedToParse, "Cannot have additional keys in a $meta sort specification")
	}
	name, ok := v.StringValue()
	late := name == "searchScore" && o != nil && o.Version.AtLeast(6, 0)
	if !ok || name != "textScore" && name != "randVal" && !late && name != "geoNearDistance" {
		return "", srverr.New(31138, "Illegal $meta sort: %s", bsontext.Element(key, v))
	}
	return name, nil
}

// Fields returns the fields of the specification. The slice must not be changed.
func (s *Sort) Fields() []SortField { return s.fields }

// NeedsMeta reports whether the specification contains this $meta, for example "textScore".
func (s *Sort) NeedsMeta(name string) bool {
	return slices.ContainsFunc(s.fields, func(f SortField) bool { return f.Meta == name })
}

// Key returns what the document sorts by, one value per field, valid as long as the document is.
// meta supplies the values of $meta fields; it may be nil if there are none. Fails for parallel
// arrays.
func (s *Sort) Key(doc bson.Raw, meta func(name string) bson.RawValue) ([]bson.RawValue, error) {
	return s.appendKey(make([]bson.RawValue, 0, len(s.fields)), doc, meta)
}

// appendKey appends the values of Key.
func (s *Sort) appendKey(dst []bson.RawValue, doc bson.Raw, meta func(name string) bson.RawValue) ([]bson.RawValue,
	error) {
	if s.simple {
		v := lookup(doc, s.fields[0].Path)
		if v.Type == 0 {
			v = nullValue
		}
		if v.Type != bson.TypeArray {
			return append(dst, v), nil
		}
	}
	at := len(dst)
	_, err := s.gen.Keys(doc, func(key []bson.RawValue) {
		next := len(dst)
		for i, f := range s.fields {
			if f.Meta != "" {
				v := nullValue
				if meta != nil {
					v = meta(f.Meta)
				}
				dst = append(dst, v)
				continue
			}
			dst = append(dst, key[i-countMeta(s.fields[:i])])
		}
		if next == at {
			return
		}
		if best, candidate := dst[at:next], dst[next:]; s.CompareKeys(candidate, best) < 0 {
			copy(best, candidate)
		}
		dst = dst[:next]
	})
	if e, ok := err.(*srverr.Error); ok && e.Code == srverr.CannotIndexParallelArrays {
		err = badValue("cannot sort with keys that are parallel arrays")
	}
	return dst, err
}

func countMeta(fields []SortField) int {
	n := 0
	for _, f := range fields {
		if f.Meta != "" {
			n++
		}
	}
	return n
}

// CompareKeys compares two results of Key in the specified order. It counts a step.
func (s *Sort) CompareKeys(a, b []bson.RawValue) int {
	s.work.Do(1)
	for i, f := range s.fields {
		c := Compare(a[i], b[i], s.coll)
		if c != 0 {
			if f.Descending {
				return -c
			}
			return c
		}
	}
	return 0
}

// SortDocuments sorts documents in place; equal ones keep their order.
func (s *Sort) SortDocuments(docs []bson.Raw) (err error) {
	defer work.Catch(&err)
	type keyed struct {
		doc bson.Raw
		key int // where its values begin
	}
	list := make([]keyed, len(docs))
	keys := make([]bson.RawValue, 0, len(docs)*len(s.fields))
	for i, doc := range docs {
		list[i] = keyed{doc, len(keys)}
		if keys, err = s.appendKey(keys, doc, nil); err != nil {
			return err
		}
	}
	SortByKey(s, list, func(k *keyed) []bson.RawValue { return keys[k.key : k.key+len(s.fields)] })
	for i := range list {
		docs[i] = list[i].doc
	}
	return nil
}
