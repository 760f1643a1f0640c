package fle

import (
	"fmt"
	"slices"

	"allium/bson"
)

// A reader takes the fields of a validated document that may come in any order. It keeps the first
// error, so that a parser checks it once, at the end: a missing field, a wrong type, a field twice,
// or one that nobody asked for.
type reader struct {
	what   string
	doc    bson.Raw
	asked  []string
	room   [12]string // for asked, of most documents
	broken error
}

func read(what string, doc bson.Raw) *reader {
	r := &reader{what: what, doc: doc}
	r.asked = r.room[:0]
	return r
}

func (r *reader) fail(format string, args ...any) {
	if r.broken == nil {
		r.broken = fmt.Errorf("malformed %s: %s", r.what, fmt.Sprintf(format, args...))
	}
}

// optional returns the field called name, the zero value if there is none.
func (r *reader) optional(name string) bson.RawValue {
	var found bson.RawValue
	for key, v := range r.doc.All() {
		if key != name {
			continue
		}
		if !found.IsZero() {
			r.fail("field %q is there twice", name)
		}
		found = v
	}
	r.asked = append(r.asked, name)
	return found
}

func (r *reader) value(name string) bson.RawValue {
	v := r.optional(name)
	if v.IsZero() {
		r.fail("field %q is missing", name)
	}
	return v
}

func (r *reader) typed(name string, ok bool) {
	if !ok {
		r.fail("field %q has the wrong type", name)
	}
}

func (r *reader) int32(name string) int32 {
	n, ok := r.value(name).Int32()
	r.typed(name, ok)
	return n
}

func (r *reader) optionalInt32(name string) *int32 {
	v := r.optional(name)
	if v.IsZero() {
		return nil
	}
	n, ok := v.Int32()
	r.typed(name, ok)
	return &n
}

func (r *reader) int64(name string) int64 {
	n, ok := r.value(name).Int64()
	r.typed(name, ok)
	return n
}

func (r *reader) bool(name string) bool {
	b, ok := r.value(name).Boolean()
	r.typed(name, ok)
	return b
}

func (r *reader) string(name string) string {
	s, ok := r.value(name).StringValue()
	r.typed(name, ok)
	return s
}

func (r *reader) document(name string) bson.Raw {
	d, ok := r.value(name).Document()
	r.typed(name, ok)
	return d
}

func (r *reader) array(name string) bson.Raw {
	d, ok := r.value(name).Array()
	r.typed(name, ok)
	return d
}

func (r *reader) uuid(name string) bson.UUID {
	b, ok := r.value(name).Binary()
	if !ok {
		r.typed(name, false)
		return bson.UUID{}
	}
	id, err := b.UUID()
	if err != nil {
		r.fail("field %q is not a UUID", name)
	}
	return id
}

func (r *reader) bytes(name string) []byte {
	b, ok := r.value(name).Binary()
	r.typed(name, ok && b.Subtype == bson.BinaryGeneric)
	return b.Data
}

func (r *reader) token(name string) Token {
	b := r.bytes(name)
	if len(b) != len(Token{}) {
		r.fail("field %q has %d bytes, want %d", name, len(b), len(Token{}))
		return Token{}
	}
	return Token(b)
}

// done returns the first error. A field that was not asked for is one.
func (r *reader) done() error {
	for key := range r.doc.All() {
		if !slices.Contains(r.asked, key) {
			r.fail("unrecognized field %q", key)
		}
	}
	return r.broken
}
