package bsonx

import (
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// A Doc is a document.
type Doc []Elem

// ReadDoc decodes a document.
func ReadDoc(b []byte) (Doc, error) {
	d := Doc{}
	err := d.UnmarshalBSON(b)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (Doc) idoc() {}

func (d Doc) lookup(key string) (Elem, bool) {
	if i := d.IndexOf(key); i >= 0 {
		return d[i], true
	}
	return Elem{}, false
}

// Copy returns a document with the same elements.
func (d Doc) Copy() Doc { return append(Doc{}, d...) }

// Append adds an element at the end.
func (d Doc) Append(key string, val Val) Doc { return append(d, Elem{key, val}) }

// Prepend adds an element at the beginning.
func (d Doc) Prepend(key string, val Val) Doc { return slices.Insert(d, 0, Elem{key, val}) }

// Set gives the first element of a key another value, or adds one at the end.
func (d Doc) Set(key string, val Val) Doc {
	if i := d.IndexOf(key); i >= 0 {
		d[i].Value = val
		return d
	}
	return d.Append(key, val)
}

// IndexOf returns the index of the first element of a key, or -1.
func (d Doc) IndexOf(key string) int {
	return slices.IndexFunc(d, func(e Elem) bool { return e.Key == key })
}

// Delete removes the first element of a key.
func (d Doc) Delete(key string) Doc {
	if i := d.IndexOf(key); i >= 0 {
		return append(d[:i], d[i+1:]...)
	}
	return d
}

// Lookup is LookupErr, and returns a zero Val in place of an error.
func (d Doc) Lookup(key ...string) Val { return d.LookupElement(key...).Value }

// LookupErr returns the value at a path, one key for each level. Only documents are looked into.
func (d Doc) LookupErr(key ...string) (Val, error) {
	e, err := d.LookupElementErr(key...)
	return e.Value, err
}

// LookupElement is LookupElementErr, and returns a zero Elem in place of an error.
func (d Doc) LookupElement(key ...string) Elem {
	e, _ := d.LookupElementErr(key...)
	return e
}

// LookupElementErr returns the element at a path.
func (d Doc) LookupElementErr(key ...string) (Elem, error) { return lookup(d, key) }

// Equal reports whether both have equal elements, in the same order if both are a Doc.
func (d Doc) Equal(id IDoc) bool {
	switch d2 := id.(type) {
	case Doc:
		return slices.EqualFunc(d, d2, Elem.Equal)
	case MDoc:
		return d2.Equal(d)
	}
	return d == nil && id == nil
}

// String returns the document in a form for people.
func (d Doc) String() string {
	parts := make([]string, len(d))
	for i, e := range d {
		parts[i] = e.String()
	}
	return "bson.Document{" + strings.Join(parts, ", ") + "}"
}

// MarshalBSON encodes the document.
func (d Doc) MarshalBSON() ([]byte, error) { return d.appendTo(nil) }

// AppendMarshalBSON encodes the document, and appends it.
func (d Doc) AppendMarshalBSON(dst []byte) ([]byte, error) { return d.appendTo(dst) }

// MarshalBSONValue encodes the document. One that is nil is null.
func (d Doc) MarshalBSONValue() (bsontype.Type, []byte, error) {
	if d == nil {
		return bsontype.Null, nil, nil
	}
	b, err := d.appendTo(nil)
	return bsontype.EmbeddedDocument, b, err
}

func (d Doc) appendTo(dst []byte) ([]byte, error) { return document(dst, slices.Values(d)) }

// document appends a document of elements.
func document(dst []byte, elems func(yield func(Elem) bool)) (_ []byte, err error) {
	start, dst := bsoncore.AppendDocumentStart(dst)
	for e := range elems {
		if dst, err = e.appendTo(dst); err != nil {
			return nil, err
		}
	}
	return bsoncore.AppendDocumentEnd(dst, start)
}

// UnmarshalBSON decodes a document.
func (d *Doc) UnmarshalBSON(b []byte) error {
	if d == nil {
		return ErrNilDocument
	}
	if err := bsoncore.Document(b).Validate(); err != nil {
		return err
	}
	*d = (*d)[:0]
	return elements(b, func(e Elem) { *d = append(*d, e) })
}

// UnmarshalBSONValue decodes a document.
func (d *Doc) UnmarshalBSONValue(t bsontype.Type, data []byte) error {
	if t != bsontype.EmbeddedDocument {
		return wrongType(t, bsontype.EmbeddedDocument)
	}
	return d.UnmarshalBSON(data)
}

// An MDoc is a document whose elements have no order.
type MDoc map[string]Val

// ReadMDoc decodes a document.
func ReadMDoc(b []byte) (MDoc, error) {
	d := MDoc{}
	if err := d.UnmarshalBSON(b); err != nil {
		return nil, err
	}
	return d, nil
}

func (MDoc) idoc() {}

func (d MDoc) lookup(key string) (Elem, bool) {
	v, ok := d[key]
	return Elem{key, v}, ok
}

// Copy returns a document with the same elements.
func (d MDoc) Copy() MDoc {
	out := make(MDoc, len(d))
	maps.Copy(out, d)
	return out
}

// Lookup is LookupErr, and returns a zero Val in place of an error.
func (d MDoc) Lookup(key ...string) Val { return d.LookupElement(key...).Value }

// LookupErr returns the value at a path, one key for each level. Only documents are looked into.
func (d MDoc) LookupErr(key ...string) (Val, error) {
	e, err := d.LookupElementErr(key...)
	return e.Value, err
}

// LookupElement is LookupElementErr, and returns a zero Elem in place of an error.
func (d MDoc) LookupElement(key ...string) Elem {
	e, _ := d.LookupElementErr(key...)
	return e
}

// LookupElementErr returns the element at a path.
func (d MDoc) LookupElementErr(key ...string) (Elem, error) { return lookup(d, key) }

// Equal reports whether both have equal elements, in whatever order.
func (d MDoc) Equal(id IDoc) bool {
	switch d2 := id.(type) {
	case MDoc:
		return maps.EqualFunc(d, d2, Val.Equal)
	case Doc:
		if len(d) != len(d2) {
			return false
		}
		seen := make(map[string]bool, len(d2))
		for _, e := range d2 {
			if v, ok := d[e.Key]; !ok || seen[e.Key] || !v.Equal(e.Value) {
				return false
			}
			seen[e.Key] = true
		}
		return true
	}
	return d == nil && id == nil
}

// sorted has the elements in the order of their keys.
func (d MDoc) sorted(yield func(Elem) bool) {
	for _, key := range slices.Sorted(maps.Keys(d)) {
		if !yield(Elem{key, d[key]}) {
			return
		}
	}
}

// String returns the document in a form for people, in the order of the keys.
func (d MDoc) String() string { return Doc(slices.Collect(d.sorted)).String() }

// MarshalBSON encodes the document, in the order of the keys.
func (d MDoc) MarshalBSON() ([]byte, error) { return d.appendTo(nil) }

// AppendMarshalBSON encodes the document, and appends it.
func (d MDoc) AppendMarshalBSON(dst []byte) ([]byte, error) { return d.appendTo(dst) }

// MarshalBSONValue encodes the document. One that is nil is null.
func (d MDoc) MarshalBSONValue() (bsontype.Type, []byte, error) {
	if d == nil {
		return bsontype.Null, nil, nil
	}
	b, err := d.appendTo(nil)
	return bsontype.EmbeddedDocument, b, err
}

func (d MDoc) appendTo(dst []byte) ([]byte, error) { return document(dst, d.sorted) }

// UnmarshalBSON decodes a document.
func (d *MDoc) UnmarshalBSON(b []byte) error {
	if d == nil {
		return ErrNilDocument
	}
	if err := bsoncore.Document(b).Validate(); err != nil {
		return err
	}
	if *d == nil {
		*d = MDoc{}
	}
	clear(*d)
	return elements(b, func(e Elem) { (*d)[e.Key] = e.Value })
}
