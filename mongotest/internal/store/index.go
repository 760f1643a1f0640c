package store

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/fts"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// IndexField is one field of a key pattern.
type IndexField struct {
	Path       string
	Descending bool
	Special    string // "text", "hashed", "2d", "2dsphere", "wildcard": not kept in order
}

// IndexInfo is an index's definition. It is not changed once it is published.
type IndexInfo struct {
	Name    string
	Spec    bson.Raw // what listIndexes shows
	Pattern bson.Raw
	Fields  []IndexField
	IsID    bool
	Unique  bool
	// PrepareUnique refuses new duplicates, but leaves those that there are.
	PrepareUnique bool
	Sparse        bool
	Hidden        bool
	Partial       *query.Filter // nil: all documents
	Expire        *int64        // seconds, of a TTL index
	// Collation is nil for the simple one.
	Collation *query.Collation
	Text      *fts.Index // of a text index, made by Prepare

	Uses  *atomic.Int64 // operations that used the index
	Since time.Time

	// KeyFields are the fields that the keys have: those of the pattern, where that of a wildcard
	// stands for two, the path and the value. WildAt is the place of the value. Wild is nil for
	// other indexes.
	KeyFields []IndexField
	Wild      *wildcard
	WildAt    int

	gen     *query.KeyGenerator
	special bool          // has no keys
	cells   *query.Cells  // of geometries, which it has as keys; or nil
	checks  bool          // refuses documents
	held    *query.Filter // what it has of them all, if it is special; nil: all
	single  string        // the only field, if its path has no dot
}

// Prepare fills in what is derived from the other fields. It must be called before the index is
// created.
func (x *IndexInfo) Prepare() *IndexInfo {
	var paths []string
	for _, f := range x.Fields {
		paths = append(paths, f.Path)
		x.checks = x.checks || f.Special != "" && f.Special != "wildcard"
		switch f.Special {
		case "", "hashed", "wildcard":
		case "2dsphere":
			x.cells = &query.Cells{Sphere: x.sphereVersion()}
		case "2d":
			x.cells = &query.Cells{Plane: x.plane()}
		default:
			x.special = true
		}
	}
	if x.special {
		x.cells = nil
	}
	x.KeyFields = x.Fields
	if at := slices.IndexFunc(x.Fields, func(f IndexField) bool { return f.Special == "wildcard" }); at >= 0 {
		projection, _ := x.Spec.Lookup("wildcardProjection").Document()
		x.Wild, x.WildAt = newWildcard(x.Fields[at].Path, projection), at+1
		x.KeyFields = slices.Concat(x.Fields[:at],
			[]IndexField{{Path: "$_path"}, {Path: "", Descending: x.Fields[at].Descending}}, x.Fields[at+1:])
		paths = slices.Delete(paths, at, at+1)
	}
	x.gen = query.NewKeyGenerator(paths, x.Sparse)
	if x.Pattern.Lookup("_fts").Type != 0 {
		x.Text = fts.NewIndex(x.Spec)
	}
	if x.special {
		x.held = x.holding()
	}
	x.single = ""
	if len(paths) == 1 && strings.IndexByte(paths[0], '.') < 0 && !x.checks && x.Wild == nil {
		x.single = paths[0]
	}
	if x.Uses == nil {
		x.Uses, x.Since = new(atomic.Int64), time.Now()
	}
	return x
}

// Ordered reports whether the index has keys in order: whether it is of use for queries here.
func (x *IndexInfo) Ordered() bool { return !x.special }

// ByValue reports whether its keys are the values of its fields, and no cells that stand for them:
// whether its order is that of values.
func (x *IndexInfo) ByValue() bool { return !x.special && x.cells == nil }

// collator returns c as a Collation, nil for the simple one.
func collator(c *query.Collation) Collation {
	if c == nil {
		return nil
	}
	return c
}

// keys returns the document's encoded keys, each once, with what stands behind them in the entries
// of its record. m counts the steps of what may take long.
func (x *IndexInfo) keys(dst []string, doc bson.Raw, suffix string,
	m *work.Meter) (keys []string, multikey bool, err error) {
	if x.checks {
		if err := x.checkSpecial(doc, m); x.special || err != nil {
			return dst, false, err
		}
	}
	if x.Partial != nil {
		if ok, err := x.Partial.Match(doc); err != nil || !ok {
			return dst, false, err
		}
	}
	if x.single != "" {
		v := doc.Lookup(x.single)
		if v.Type != bson.TypeArray {
			if v.Type == 0 {
				if x.Sparse {
					return dst, false, nil
				}
				v.Type = bson.TypeNull
			}
			var buf [64]byte
			return append(dst, string(append(x.encode(buf[:0], 0, v), suffix...))), false, nil
		}
	}
	seen := keySet{list: dst, from: len(dst)}
	multikey, err = x.eachKey(doc, m, func(key []bson.RawValue) {
		var b []byte
		for i, v := range key {
			b = x.encode(b, i, v)
		}
		b = append(b, suffix...)
		if !seen.has(string(b)) {
			seen.add(string(b))
		}
	})
	dst = seen.list
	return dst, multikey, err
}

// eachKey calls add for each key of a document. The same key may come several times; the slice is
// only valid during the call.
func (x *IndexInfo) eachKey(doc bson.Raw, m *work.Meter, add func(key []bson.RawValue)) (multikey bool, err error) {
	switch {
	case x.Wild != nil:
		return x.wildKeys(doc, add)
	case x.cells == nil:
		return x.gen.Keys(doc, add)
	case x.cells.Plane != nil:
		return x.planeKeys(doc, m, add)
	}
	return x.sphereKeys(doc, m, add)
}

// keySet is the end of a list of keys, in which it finds each quickly: an array may have a million.
type keySet struct {
	list   []string
	from   int                 // where it begins
	lookup map[string]struct{} // of the keys, once there are many
}

// fewKeys is how many keys are looked through one by one.
const fewKeys = 32

func (s *keySet) has(key string) bool {
	keys := s.list[s.from:]
	if len(keys) <= fewKeys {
		return slices.Contains(keys, key)
	}
	if s.lookup == nil {
		s.lookup = make(map[string]struct{}, len(keys))
		for _, k := range keys {
			s.lookup[k] = struct{}{}
		}
	}
	_, ok := s.lookup[key]
	return ok
}

func (s *keySet) add(key string) {
	s.list = append(s.list, key)
	if s.lookup != nil {
		s.lookup[key] = struct{}{}
	}
}

// encode appends the encoding of the value at a position of the key.
func (x *IndexInfo) encode(dst []byte, i int, v bson.RawValue) []byte {
	return x.encodeRaw(dst, i, x.Stored(i, v))
}

// encodeRaw is encode for a value as the index has it.
func (x *IndexInfo) encodeRaw(dst []byte, i int, v bson.RawValue) []byte {
	c := collator(x.Collation)
	if x.Wild != nil && i == x.WildAt-1 || x.Cells(i) != nil {
		c = nil // a path, or a cell
	}
	return AppendKey(dst, v, c, x.KeyFields[i].Descending)
}

// Stored returns the value that a key has at a position for one of a document: the hash of it,
// where the field is hashed.
func (x *IndexInfo) Stored(i int, v bson.RawValue) bson.RawValue {
	if i >= len(x.Fields) || x.Fields[i].Special != "hashed" {
		return v
	}
	if x.Collation != nil {
		v = sortKeys(x.Collation, v)
	}
	return bsondoc.Int64Value(expr.HashKey(v))
}

// Key returns the values of a document's key that begins an entry of the index, as the index has
// them. ok is false if the document has no such key.
func (x *IndexInfo) Key(doc bson.Raw, entry string) (values []bson.RawValue, ok bool) {
	x.eachKey(doc, nil, func(key []bson.RawValue) {
		if ok {
			return
		}
		var b []byte
		for i, v := range key {
			b = x.encode(b, i, v)
		}
		if strings.HasPrefix(entry, string(b)) {
			values, ok = make([]bson.RawValue, len(key)), true
			for i, v := range key {
				values[i] = x.Stored(i, v)
			}
		}
	})
	return values, ok
}

// duplicateKey is the error of a key that exists already in a unique index.
func duplicateKey(ns string, x *IndexInfo, key string, doc bson.Raw) error {
	at, values := bson.BeginDocument(nil)
	var hit []bson.RawValue
	x.eachKey(doc, nil, func(vs []bson.RawValue) {
		var b []byte
		for i, v := range vs {
			b = x.encode(b, i, v)
		}
		if hit == nil && string(b) == key {
			hit = append(hit, vs...)
		}
	})
	for i, v := range hit {
		if x.Collation != nil {
			v = sortKeys(x.Collation, v)
		}
		values = bson.AppendRawValue(values, x.Fields[i].Path, v)
	}
	values = bson.EndDocument(values, at)
	coll := ""
	if x.Collation != nil {
		coll = " collation: " + bsontext.Document(x.Spec.Lookup("collation").Value)
	}
	e := srverr.New(srverr.DuplicateKey, "E11000 duplicate key error collection: %s index: %s%s dup key: %s", ns,
		x.Name, coll, bsontext.Document(values))
	at, extra := bson.BeginDocument(nil)
	extra = bson.AppendDocument(extra, "keyPattern", x.Pattern)
	extra = bson.AppendDocument(extra, "keyValue", values)
	e.Extra = bson.EndDocument(extra, at)
	return e
}

// sortKeys returns a value as an index with a collation has it: strings are the collation's sort
// keys. One that is no text, or not known as the server has it, is shown in hexadecimal.
func sortKeys(c *query.Collation, v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		text := v.Value[4 : len(v.Value)-1]
		key, ok := c.SortKey(string(text))
		if !ok || !utf8.Valid(key) {
			key = []byte(hexString(c.AppendKey(nil, text)))
		}
		return bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, string(key))}
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		at, doc := bson.BeginDocument(nil)
		for k, item := range bson.Raw(v.Value).All() {
			doc = bson.AppendRawValue(doc, k, sortKeys(c, item))
		}
		return bson.RawValue{Type: v.Type, Value: bson.EndDocument(doc, at)}
	}
	return v
}

func hexString(b []byte) string {
	const digits = "0123456789abcdef"
	out := []byte("0x")
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// Shown is a value of a document as explain shows it among the bounds of a field of the index:
// strings are those of the index's collation.
func (x *IndexInfo) Shown(field int, v bson.RawValue) string {
	if x.Collation == nil || x.Cells(field) != nil {
		return bsontext.Value(v)
	}
	return collatedText(x.Collation, v)
}

// collatedText shows a value with the collation's keys in the place of strings.
func collatedText(c *query.Collation, v bson.RawValue) string {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		text := v.Value[4 : len(v.Value)-1]
		if len(text) == 0 {
			return `""`
		}
		key, ok := c.SortKey(string(text))
		if !ok {
			key = c.AppendKey(nil, text)
		}
		return "CollationKey(" + hexString(key) + ")"
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		opening, closing := "{ ", " }"
		if v.Type == bson.TypeArray {
			opening, closing = "[ ", " ]"
		}
		if bson.Raw(v.Value).IsEmpty() {
			return string(opening[0]) + string(closing[1])
		}
		var list []string
		for k, item := range bson.Raw(v.Value).All() {
			s := collatedText(c, item)
			if v.Type == bson.TypeEmbeddedDocument {
				s = k + ": " + s
			}
			list = append(list, s)
		}
		return opening + strings.Join(list, ", ") + closing
	}
	return bsontext.Value(v)
}
