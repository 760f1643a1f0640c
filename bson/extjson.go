package bson

// The entry points of Extended JSON version 2 (specification: Extended JSON).

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
)

// MarshalExtJSON returns v as Extended JSON version 2. Canonical text keeps every type; relaxed
// text (canonical false) is easier to read: numbers are plain JSON numbers and most dates are text.
// v can be any value that has a BSON form, not only a document.
func MarshalExtJSON(v any, canonical bool) ([]byte, error) {
	return defaultConfig.marshalExtJSON(v, canonical)
}

// MarshalExtJSON is the function MarshalExtJSON with these options.
func (o Options) MarshalExtJSON(v any, canonical bool) ([]byte, error) {
	return o.config().marshalExtJSON(v, canonical)
}

// MarshalExtJSONIndent is MarshalExtJSON with line breaks: every key or array value starts a new
// line with prefix and one indent per level, as by encoding/json's Indent.
func MarshalExtJSONIndent(v any, canonical bool, prefix, indent string) ([]byte, error) {
	text, err := MarshalExtJSON(v, canonical)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, prefix, indent); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// UnmarshalExtJSON reads a document of Extended JSON version 2, canonical or relaxed or a mixture,
// into v, which is what Unmarshal takes: a pointer to a D, a Raw, a struct, a map, ... If the text
// is not an object, or v points to a RawValue, it is read as by ParseExtJSONValue.
//
// Errors in the text are *ExtJSONError.
func UnmarshalExtJSON(data []byte, v any) error { return defaultConfig.unmarshalExtJSON(data, v) }

// UnmarshalExtJSON is the function UnmarshalExtJSON with these options.
func (o Options) UnmarshalExtJSON(data []byte, v any) error {
	return o.config().unmarshalExtJSON(data, v)
}

// extJSONScratch holds text or BSON on its way.
var extJSONScratch = sync.Pool{New: func() any { return new([]byte) }}

func freeExtJSONScratch(scratch *[]byte, grown []byte) {
	if cap(grown) <= mostScratch {
		*scratch = grown
		extJSONScratch.Put(scratch)
	}
}

func (c *config) marshalExtJSON(v any, canonical bool) ([]byte, error) {
	scratch := extJSONScratch.Get().(*[]byte)
	text, err := c.appendExtJSON((*scratch)[:0], v, canonical)
	var out []byte
	if err == nil {
		out = append(out, text...)
	}
	freeExtJSONScratch(scratch, text)
	return out, err
}

func (c *config) appendExtJSON(dst []byte, v any, canonical bool) ([]byte, error) {
	w := extJSONWriter{canonical: canonical, levels: c.maxDepth}
	switch v := v.(type) {
	case Raw:
		return w.document(dst, v, 0)
	case RawValue:
		return w.single(dst, v)
	}
	e := newEncoder(c)
	defer e.free()
	t, value, err := e.appendAny(e.buf[:0], v, c.flags())
	if err != nil {
		return dst, encodeErr(reflect.TypeOf(v), err)
	}
	e.buf = value
	return w.single(dst, RawValue{Type: t, Value: value})
}

func (c *config) unmarshalExtJSON(data []byte, v any) error {
	switch v := v.(type) {
	case *Raw:
		doc, err := newExtJSONReader(data, c.maxDepth).wholeDocument()
		if err == nil {
			*v = doc
		}
		return err
	case *RawValue:
		value, err := newExtJSONReader(data, c.maxDepth).wholeValue()
		if err == nil {
			*v = value
		}
		return err
	}
	r := extJSONReader{src: data, levels: c.maxDepth}
	scratch := extJSONScratch.Get().(*[]byte)
	r.dst = (*scratch)[:0]
	t, err := TypeEmbeddedDocument, error(nil)
	if first := r.space(); first == '{' || first == 0 {
		err = r.document()
	} else {
		t, err = r.single()
	}
	if err == nil {
		err = c.unmarshal(t, r.dst, v) // which keeps nothing of it
	}
	freeExtJSONScratch(scratch, r.dst)
	return err
}

// ParseExtJSON turns a document of Extended JSON straight into BSON. The outermost object is a
// document even where its keys are those of a type wrapper.
func ParseExtJSON(text []byte) (Raw, error) {
	return newExtJSONReader(text, DefaultMaxDepth).wholeDocument()
}

// ParseExtJSONValue turns a value of Extended JSON straight into BSON, for example {"$oid": "..."},
// [1, 2] or "a".
func ParseExtJSONValue(text []byte) (RawValue, error) {
	return newExtJSONReader(text, DefaultMaxDepth).wholeValue()
}

func newExtJSONReader(text []byte, levels int) *extJSONReader {
	const least = 32
	return &extJSONReader{src: text, dst: make([]byte, 0, len(text)+least), levels: levels}
}

func (r *extJSONReader) wholeDocument() (Raw, error) {
	if err := r.document(); err != nil {
		return nil, err
	}
	return r.dst, nil
}

func (r *extJSONReader) wholeValue() (RawValue, error) {
	t, err := r.single()
	if err != nil {
		return RawValue{}, err
	}
	return RawValue{Type: t, Value: r.dst}, nil
}

// ParseLegacyExtJSON is ParseExtJSON for text that may hold the forms from before version 2:
// {"$date": 1234}, {"$numberLong": 1} and the like with plain numbers, {"$binary": "...", "$type":
// "00"}, {"$regex": "...", "$options": "..."}, and zones without a colon in dates. A $regex that is
// no string, and a $type without $binary, stay the query operators that they are.
func ParseLegacyExtJSON(text []byte) (Raw, error) {
	r := newExtJSONReader(text, DefaultMaxDepth)
	r.legacy = true
	return r.wholeDocument()
}

// AppendExtJSON appends an encoded document as Extended JSON, canonical or relaxed, to dst. A
// document that is malformed or nests deeper than DefaultMaxDepth is an error; what it returns then
// ends where the error is.
func AppendExtJSON(dst []byte, doc Raw, canonical bool) ([]byte, error) {
	return extJSONWriter{canonical: canonical, levels: DefaultMaxDepth}.document(dst, doc, 0)
}

// AppendExtJSONValue appends an encoded value as AppendExtJSON does.
func AppendExtJSONValue(dst []byte, v RawValue, canonical bool) ([]byte, error) {
	return extJSONWriter{canonical: canonical, levels: DefaultMaxDepth}.single(dst, v)
}

// single appends a value whose frame nobody has checked.
func (w extJSONWriter) single(dst []byte, v RawValue) ([]byte, error) {
	if n, err := valueSize(v.Type, v.Value); err != nil {
		return dst, err
	} else if n != len(v.Value) {
		return dst, fmt.Errorf("bson: %d bytes after the %s", len(v.Value)-n, v.Type)
	}
	return w.value(dst, v, 0)
}

// String returns r as relaxed Extended JSON, or a note in angle brackets if it is malformed.
func (r Raw) String() string {
	if len(r) == 0 {
		return ""
	}
	text, err := AppendExtJSON(nil, r, false)
	if err != nil {
		return "<malformed document: " + err.Error() + ">"
	}
	return string(text)
}

// String returns v as relaxed Extended JSON, or a note in angle brackets if it is malformed. The
// zero RawValue gives "".
func (v RawValue) String() string {
	if v.IsZero() {
		return ""
	}
	text, err := AppendExtJSONValue(nil, v, false)
	if err != nil {
		return "<malformed value: " + err.Error() + ">"
	}
	return string(text)
}

// MarshalJSON returns r as relaxed Extended JSON.
func (r Raw) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	return AppendExtJSON(nil, r, false)
}

// UnmarshalJSON reads a document of Extended JSON. As usual in encoding/json, null changes nothing.
func (r *Raw) UnmarshalJSON(text []byte) error {
	if string(bytes.TrimSpace(text)) == "null" {
		return nil
	}
	doc, err := ParseExtJSON(text)
	if err == nil {
		*r = doc
	}
	return err
}

// MarshalJSON returns v as relaxed Extended JSON. The zero RawValue gives null.
func (v RawValue) MarshalJSON() ([]byte, error) {
	if v.IsZero() {
		return []byte("null"), nil
	}
	return AppendExtJSONValue(nil, v, false)
}

// UnmarshalJSON reads a value of Extended JSON.
func (v *RawValue) UnmarshalJSON(text []byte) error {
	value, err := ParseExtJSONValue(text)
	if err == nil {
		*v = value
	}
	return err
}
