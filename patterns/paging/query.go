package paging

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"allium"
	"allium/bson"
	"allium/internal/cursor"
	"allium/mongoerr"
)

// A query is what Find was called with, checked: the filter, the sort, and where to begin.
type query struct {
	Options
	filter any
	keys   []key // of the sort, _id last
	index  []key // those of the index: the same, or all turned round
	// prefix has the values of the first keys that the filter compares with one value each.
	prefix []bson.RawValue
	hash   [16]byte
	from   position
}

// A key is a field of a sort or an index, with its direction.
type key struct {
	path string
	down bool
}

func (k key) turned() key { return key{k.path, !k.down} }

func newQuery[T any](coll *allium.Collection[T], filter any, o Options) (*query, error) {
	q := &query{Options: o, filter: filter}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	if q.Limit < 0 || q.Limit > MaxLimit {
		return nil, fmt.Errorf("limit is %d, want 1 to %d", q.Limit, MaxLimit)
	}
	var err error
	if q.keys, err = keysOf("sort", o.Sort); err != nil {
		return nil, err
	}
	if q.index, err = q.indexKeys(); err != nil {
		return nil, err
	}
	if q.Projection, err = project(o.Projection, q.keys); err != nil {
		return nil, err
	}
	bsonOptions := bson.Options{}
	if s := coll.Database().Settings().BSON; s != nil {
		bsonOptions = *s
	}
	var raw bson.Raw
	if filter != nil { // Find says what is wrong with it
		if raw, err = bsonOptions.Marshal(filter); err != nil {
			return nil, fmt.Errorf("filter: %w", err)
		}
	}
	q.prefix = equalities(raw, q.keys)
	if err := q.sum(coll.Database().Name()+"."+coll.Name(), raw); err != nil {
		return nil, err
	}
	if o.Token != "" {
		q.from, err = q.open(o.Token)
	}
	return q, err
}

// keysOf reads a sort or the keys of an index, and completes them by _id.
func keysOf(what string, v any) ([]key, error) {
	var doc bson.Raw
	if v != nil {
		elem, maps, err := bson.Options{}.AppendValueMaps(nil, "", v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		_, value, _, err := bson.ReadElement(elem)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		var ok bool
		if doc, ok = value.Document(); !ok {
			return nil, fmt.Errorf("%s is a %T, want a document", what, v)
		}
		if len(maps) > 0 && len(slices.Collect(doc.Values())) > 1 {
			return nil, fmt.Errorf("%s is a %T, whose keys have no order: use a bson.D", what, v)
		}
	}
	var keys []key
	down := false
	for path, dir := range doc.All() {
		n, ok := dir.AsInt64()
		if !ok || n != 1 && n != -1 {
			return nil, fmt.Errorf("%s by %q has the direction %v, want 1 or -1", what, path, dir)
		}
		if path == "" || path[0] == '$' {
			return nil, fmt.Errorf("%s by %q, want a field", what, path)
		}
		if slices.ContainsFunc(keys, func(k key) bool { return k.path == path }) {
			return nil, fmt.Errorf("%s has %q twice", what, path)
		}
		down = n < 0
		keys = append(keys, key{path, down})
		if path == "_id" { // nothing is left to sort
			return keys, nil
		}
	}
	return append(keys, key{"_id", down}), nil
}

// Index describes the index that a sort needs. A sort that Find refuses is refused by CreateIndex.
func Index(sort any) allium.IndexModel {
	keys, err := keysOf("sort", sort)
	if err != nil {
		return allium.IndexModel{Keys: sort}
	}
	return allium.IndexModel{Keys: document(indexOf(keys))}
}

// indexOf returns the keys of the index for a sort. That of _id is there in every collection.
func indexOf(keys []key) []key {
	if len(keys) == 1 {
		return []key{{path: "_id"}}
	}
	return keys
}

func (q *query) indexKeys() ([]key, error) {
	if q.Index.Keys == nil {
		return indexOf(q.keys), nil
	}
	index, err := keysOf("index", q.Index.Keys)
	if err != nil {
		return nil, err
	}
	turned := make([]key, len(index))
	for i, k := range index {
		turned[i] = k.turned()
	}
	if !slices.Equal(index, q.keys) && !slices.Equal(turned, q.keys) {
		return nil, fmt.Errorf("index %v is for another sort: want %v, or all directions turned round", document(index),
			document(q.keys))
	}
	return index, nil
}

func document(keys []key) bson.D {
	d := make(bson.D, len(keys))
	for i, k := range keys {
		d[i] = bson.E{Key: k.path, Value: int32(1)}
		if k.down {
			d[i].Value = int32(-1)
		}
	}
	return d
}

// equalities returns the values that a filter wants the first keys to have.
func equalities(filter bson.Raw, keys []key) (values []bson.RawValue) {
	for _, k := range keys {
		v, ok := equality(filter, k.path)
		if !ok {
			break
		}
		values = append(values, v)
	}
	return values
}

// equality returns the one value that a filter wants a path to have.
func equality(filter bson.Raw, path string) (v bson.RawValue, ok bool) {
	for name, cond := range filter.All() {
		if name == "$and" {
			parts, _ := cond.Array()
			for part := range parts.Values() {
				if doc, isDoc := part.Document(); isDoc {
					if v, ok := equality(doc, path); ok {
						return v, true
					}
				}
			}
		}
		if name != path {
			continue
		}
		if doc, isDoc := cond.Document(); isDoc {
			for op, operand := range doc.All() {
				if op == "$eq" {
					cond = operand
				} else if strings.HasPrefix(op, "$") {
					return v, false
				}
				break
			}
		}
		switch cond.Type {
		case bson.TypeNull, bson.TypeUndefined, bson.TypeRegex, bson.TypeArray: // not one place in the index
			return v, false
		}
		return cond, true
	}
	return v, false
}

// sum computes the hash of the query that a token has. The order of keys does not count anywhere,
// since filters may be maps.
func (q *query) sum(namespace string, filter bson.Raw) error {
	h := sha256.New()
	fmt.Fprintf(h, "%q %v ", namespace, document(q.keys))
	if q.Collation != nil {
		b, err := bson.Marshal(q.Collation)
		if err != nil {
			return fmt.Errorf("collation: %w", err)
		}
		h.Write(b)
	}
	h.Write(sorted(filter))
	q.hash = [16]byte(h.Sum(nil))
	return nil
}

// sorted returns a document with the keys of all documents in it sorted.
func sorted(doc bson.Raw) []byte {
	type field struct {
		name  string
		value bson.RawValue
	}
	var fields []field
	for name, v := range doc.All() {
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			v.Value = sorted(bson.Raw(v.Value))
		}
		fields = append(fields, field{name, v})
	}
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	start, b := bson.BeginDocument(nil)
	for _, f := range fields {
		b = bson.AppendRawValue(b, f.name, f.value)
	}
	return bson.EndDocument(b, start)
}

// A position is a place in the list: the sort keys of a document, which may be gone.
type position struct {
	at []bson.RawValue // nil: the beginning of the list
	// before is set for the documents in front of it. touch is set if the document itself belongs
	// to them, or to those behind.
	before, touch bool
}

// up reports whether the documents of a position are those behind it in the index.
func (q *query) up(p position) bool { return p.before == (q.index[0] != q.keys[0]) }

// A window is a part of the index, in the order of the list or against it.
type window struct {
	sort     bson.D
	min, max bson.D
	skip     bson.RawValue // the _id of a document that is in the bounds, and not meant
}

// window returns what to read for the documents of a position. The lower bound of an index is
// inclusive, the upper one exclusive.
func (q *query) window(p position) window {
	w := window{sort: document(q.keys)}
	if p.before {
		for i := range w.sort {
			w.sort[i].Value = -w.sort[i].Value.(int32)
		}
	}
	if p.at == nil {
		return w
	}
	if q.up(p) {
		w.min, w.max = q.bound(p.at), q.end(true)
		if !p.touch {
			w.skip = p.at[len(p.at)-1]
		}
	} else {
		w.min, w.max = q.end(false), q.bound(p.at)
	}
	return w
}

func (q *query) bound(at []bson.RawValue) bson.D {
	d := document(q.index)
	for i := range d {
		d[i].Value = at[i]
	}
	return d
}

// end returns where the part of the index ends, at its top or bottom, that has the values of the
// prefix. What is there has a MaxKey or MinKey for _id, as no document has.
func (q *query) end(top bool) bson.D {
	if len(q.prefix) == 0 {
		return nil
	}
	d := document(q.index)
	for i, k := range q.index {
		switch {
		case i < len(q.prefix):
			d[i].Value = q.prefix[i]
		case top != k.down:
			d[i].Value = bson.MaxKey{}
		default:
			d[i].Value = bson.MinKey{}
		}
	}
	return d
}

// row is a document that a page may have.
type row[T any] struct {
	at  []bson.RawValue
	doc T
	odd *mongoerr.DecodeError // in place of doc
}

// touched returns the document at the position, if it is meant and no window has it: one that ends
// there.
func touched[T any](ctx context.Context, coll *allium.Collection[T], q *query) ([]row[T], error) {
	if !q.from.touch || q.up(q.from) {
		return nil, nil
	}
	there := q.from
	there.before = !there.before
	rows, err := read(ctx, coll, q, q.window(there), 1)
	if err != nil || len(rows) == 0 || bson.Compare(id(rows[0].at), id(there.at)) != 0 {
		return nil, err
	}
	return rows, nil
}

func id(at []bson.RawValue) bson.RawValue { return at[len(at)-1] }

// read returns the first n documents of a window.
func read[T any](ctx context.Context, coll *allium.Collection[T], q *query, w window, n int) ([]row[T], error) {
	most := n
	if !w.skip.IsZero() {
		most++
	}
	var hint any = document(q.index)
	if q.Index.Name != "" {
		hint = q.Index.Name
	}
	o := allium.FindOptions{
		Sort: w.sort, Hint: hint, Limit: int64(most), BatchSize: new(int32(most)), Projection: q.Projection,
		Collation: q.Collation,
		Comment:   q.Comment, Timeout: q.Timeout,
	}
	if w.min != nil {
		o.Min = w.min
	}
	if w.max != nil {
		o.Max = w.max
	}
	cur, err := coll.Find(ctx, q.filter, o)
	if err != nil {
		return nil, q.explained(err)
	}
	defer cur.Close(ctx)
	rows := make([]row[T], 0, most)
	for {
		var r row[T]
		var raw bson.Raw
		if cur.Next(ctx) {
			r.doc, raw = cur.Current(), bytes.Clone(cursor.Inside(cur).Raw())
		} else if odd, ok := cur.Err().(*mongoerr.DecodeError); ok {
			r.odd, raw = odd, odd.Document
		} else if err := cur.Err(); err != nil {
			return nil, q.explained(err)
		} else {
			return rows[:min(n, len(rows))], nil
		}
		if r.at, err = q.place(raw); err != nil {
			return nil, err
		}
		if w.skip.IsZero() || bson.Compare(id(r.at), w.skip) != 0 {
			rows = append(rows, r)
		}
	}
}

// explained adds to a server's error what it means here.
func (q *query) explained(err error) error {
	var server *mongoerr.ServerError
	switch {
	case mongoerr.HasCode(err, 51175) && q.from.at != nil: // min is not less than max
		return fmt.Errorf("%w: %w", ErrToken, err)
	case !errors.As(err, &server):
		return err
	case server.Code == 2 && strings.Contains(server.Message, "hint"), server.Code == 51174, server.Code == 27:
		return fmt.Errorf("%w: %w: create an index with the keys %v, and the collation if there is one", ErrNoIndex,
			err, document(q.index))
	}
	return err
}

// place returns the sort keys of a document.
func (q *query) place(doc bson.Raw) ([]bson.RawValue, error) {
	at := make([]bson.RawValue, len(q.keys))
	for i, k := range q.keys {
		v, ok := lookup(doc, k.path)
		if !ok {
			return nil, fmt.Errorf("%w: %s has one at %q", ErrArray, which(doc.Lookup("_id")), k.path)
		}
		at[i] = v
	}
	if q.collates() && text(id(at)) {
		return nil, errors.New("_id is a text, which may be equal to another under the collation: " +
			"create the collection with the collation instead")
	}
	return at, nil
}

// which says which document is meant, by an _id that tells nothing else: errors are logged.
func which(id bson.RawValue) string {
	switch id.Type {
	case bson.TypeObjectID, bson.TypeInt32, bson.TypeInt64:
		return fmt.Sprintf("document with _id %v", id)
	}
	return "a document"
}

func (q *query) collates() bool { return q.Collation != nil && q.Collation.Locale != "simple" }

// text reports whether a value is a text or has one within.
func text(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		return true
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return slices.ContainsFunc(slices.Collect(bson.Raw(v.Value).Values()), text)
	}
	return false
}

// lookup returns the value that the index has for a path: null if there is none. It is not ok if
// there is an array on the way.
func lookup(doc bson.Raw, path string) (v bson.RawValue, ok bool) {
	for {
		name, rest, deeper := strings.Cut(path, ".")
		v := doc.Lookup(name)
		switch {
		case v.Type == bson.TypeArray:
			return v, false
		case v.IsZero():
			return bson.RawValue{Type: bson.TypeNull}, true
		case !deeper:
			return v, true
		case v.Type != bson.TypeEmbeddedDocument:
			return bson.RawValue{Type: bson.TypeNull}, true
		}
		doc, path = bson.Raw(v.Value), rest
	}
}
