package bson

// ParseExtJSON turns a document of Extended JSON straight into BSON. The outermost object is a document even where
// its keys are those of a type wrapper.
func ParseExtJSON(text []byte) (Raw, error) {
	r := newExtJSONReader(text)
	if err := r.document(); err != nil {
		return nil, err
	}
	return r.dst, nil
}

// ParseExtJSONValue turns a value of Extended JSON straight into BSON, for example {"$oid": "..."}, [1, 2] or "a".
func ParseExtJSONValue(text []byte) (RawValue, error) {
	r := newExtJSONReader(text)
	t, err := r.single()
	if err != nil {
		return RawValue{}, err
	}
	return RawValue{Type: t, Value: r.dst}, nil
}

func newExtJSONReader(text []byte) *extJSONReader {
	const least = 32
	return &extJSONReader{src: text, dst: make([]byte, 0, len(text)+least)}
}

// AppendExtJSON appends an encoded document as Extended JSON, canonical or relaxed, to dst. A document that is
// malformed or nests deeper than DefaultMaxDepth is an error; what it returns then ends where the error is.
func AppendExtJSON(dst []byte, doc Raw, canonical bool) ([]byte, error) {
	return extJSONWriter{canonical: canonical}.document(dst, doc, 0)
}

// AppendExtJSONValue appends an encoded value as AppendExtJSON does.
func AppendExtJSONValue(dst []byte, v RawValue, canonical bool) ([]byte, error) {
	if n, err := valueSize(v.Type, v.Value); err != nil {
		return dst, err
	} else if n != len(v.Value) {
		return dst, errTruncated
	}
	return extJSONWriter{canonical: canonical}.value(dst, v, 0)
}

// String returns r as relaxed Extended JSON, or a note in angle brackets if it is malformed.
func (r Raw) String() string {
	text, err := AppendExtJSON(nil, r, false)
	if err != nil {
		return "<malformed document: " + err.Error() + ">"
	}
	return string(text)
}

// String returns v as relaxed Extended JSON, or a note in angle brackets if it is malformed. The zero RawValue gives "".
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

// UnmarshalJSON reads a document of Extended JSON.
func (r *Raw) UnmarshalJSON(text []byte) error {
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
