package bson

// The grammatical half of the Extended JSON reader: it turns text straight into BSON, element by
// element, and never holds more of the document than its encoded bytes.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
)

// extJSONReader reads Extended JSON from src and appends BSON to dst. Every method that reads
// something starts at pos and leaves pos after it.
type extJSONReader struct {
	src    []byte
	pos    int
	dst    []byte
	buf    []byte // a string that had escape sequences
	base   int64  // offset of src in the stream that it comes from
	levels int    // how deep documents and arrays may nest
	legacy bool   // accept the forms before version 2, too
	values bool   // what ExtJSONDecoder.LegacyValues accepts
}

// document reads one document, and lets only white space follow. The outermost object is never a
// type wrapper.
func (r *extJSONReader) document() error {
	if err := r.expect('{', "an object"); err != nil {
		return err
	}
	if err := r.elements(1, false); err != nil {
		return err
	}
	return r.end()
}

// single reads one value of any kind, and lets only white space follow.
func (r *extJSONReader) single() (Type, error) {
	t, err := r.value(0)
	if err != nil {
		return 0, err
	}
	if len(r.dst) > math.MaxInt32 {
		return 0, r.fail(r.pos, errTooLong)
	}
	return t, r.end()
}

func (r *extJSONReader) end() error {
	if r.space() != 0 || r.pos < len(r.src) {
		return r.unexpected("the end of the text")
	}
	return nil
}

// value reads a value that lies in depth documents and arrays, appends its bytes and returns its
// type.
func (r *extJSONReader) value(depth int) (Type, error) {
	switch c := r.space(); c {
	case '"':
		return TypeString, r.stringValue()
	case '{':
		return r.object(depth)
	case '[':
		return TypeArray, r.array(depth)
	case 't':
		r.dst = append(r.dst, 1)
		return TypeBoolean, r.literal("true")
	case 'f':
		r.dst = append(r.dst, 0)
		return TypeBoolean, r.literal("false")
	case 'n':
		return TypeNull, r.literal("null")
	default:
		if c == '-' || c-'0' <= 9 {
			return r.numberValue()
		}
		return 0, r.unexpected("a value")
	}
}

// stringValue appends a string's value: length, bytes, NUL.
func (r *extJSONReader) stringValue() error {
	start := len(r.dst)
	dst, err := r.appendString(append(r.dst, 0, 0, 0, 0))
	if err != nil {
		return err
	}
	r.dst = append(dst, 0)
	binary.LittleEndian.PutUint32(r.dst[start:], uint32(len(r.dst)-start-4))
	return nil
}

func (r *extJSONReader) numberValue() (Type, error) {
	start := r.pos
	text, integer, fits, n, err := r.number()
	switch {
	case err != nil:
		return 0, err
	case fits && n == int64(int32(n)):
		r.dst = AppendInt32Value(r.dst, int32(n))
		return TypeInt32, nil
	case fits:
		r.dst = AppendInt64Value(r.dst, n)
		return TypeInt64, nil
	}
	f, err := strconv.ParseFloat(viewString(text), 64)
	if err != nil && !integer {
		return 0, r.failf(start, "number %s is out of a double's range", clip(string(text)))
	}
	if math.IsInf(f, 0) {
		return 0, r.failf(start, "integer %s is out of every type's range", clip(string(text)))
	}
	r.dst = AppendDoubleValue(r.dst, f)
	return TypeDouble, nil
}

func (r *extJSONReader) array(depth int) error {
	depth, err := r.deeper(depth, r.pos)
	if err != nil {
		return err
	}
	r.pos++
	start := len(r.dst)
	r.dst = append(r.dst, 0, 0, 0, 0)
	if r.space() == ']' {
		return r.endDocument(start)
	}
	for i := 0; ; i++ {
		at := len(r.dst)
		r.dst = AppendIndexHeader(r.dst, 0, i)
		t, err := r.value(depth)
		if err != nil {
			return err
		}
		r.dst[at] = byte(t)
		switch r.space() {
		case ',':
			r.pos++
		case ']':
			return r.endDocument(start)
		default:
			return r.unexpected("',' or ']'")
		}
	}
}

// object reads an object inside of the document: a type wrapper or an embedded document.
func (r *extJSONReader) object(depth int) (Type, error) {
	start := r.pos
	r.pos++
	if r.space() == '"' && r.dollar() {
		first := r.pos
		key, err := r.text()
		if err != nil {
			return 0, err
		}
		if w := wrapperOf(key); w != notWrapper {
			return r.wrapper(w, start, depth)
		}
		r.pos = first
		if r.legacy {
			if t, done := r.legacyObject(); done {
				return t, nil
			}
			r.pos = first
		}
	}
	depth, err := r.deeper(depth, start)
	if err != nil {
		return 0, err
	}
	return TypeEmbeddedDocument, r.elements(depth, true)
}

// dollar reports whether the string at the reader's position may start with a dollar sign.
func (r *extJSONReader) dollar() bool {
	return r.pos+1 < len(r.src) && (r.src[r.pos+1] == '$' || r.src[r.pos+1] == '\\')
}

// elements reads the rest of an object, after the opening brace, as a document. With embedded it
// refuses the keys of type wrappers: they are errors among others.
func (r *extJSONReader) elements(depth int, embedded bool) error {
	start := len(r.dst)
	r.dst = append(r.dst, 0, 0, 0, 0)
	if r.space() == '}' {
		return r.endDocument(start)
	}
	for {
		if r.space() != '"' {
			return r.unexpected("a key")
		}
		at, keyPos, dollar := len(r.dst), r.pos, embedded && r.dollar()
		dst, err := r.appendString(append(r.dst, 0))
		if err != nil {
			return err
		}
		r.dst = append(dst, 0)
		if key := r.dst[at+1 : len(r.dst)-1]; dollar && !r.values && wrapperOf(key) != notWrapper {
			return r.failf(keyPos, "%s beside other keys", key)
		}
		if len(r.dst)-at != r.pos-keyPos && bytes.IndexByte(r.dst[at+1:len(r.dst)-1], 0) >= 0 {
			// Only an escape sequence, which is longer than what it stands for, brings a NUL into a
			// key.
			return r.fail(keyPos, errNULInKey)
		}
		if err := r.expect(':', "':'"); err != nil {
			return err
		}
		t, err := r.value(depth)
		if err != nil {
			return err
		}
		r.dst[at] = byte(t)
		switch r.space() {
		case ',':
			r.pos++
		case '}':
			return r.endDocument(start)
		default:
			return r.unexpected("',' or '}'")
		}
	}
}

// deeper returns the depth of what lies in the document or array that starts at start, itself at
// depth.
func (r *extJSONReader) deeper(depth, start int) (int, error) {
	if depth >= r.levels {
		return 0, r.failf(start, "documents nest deeper than %d levels", r.levels)
	}
	return depth + 1, nil
}

// endDocument skips the closing bracket and finishes the document that starts at start.
func (r *extJSONReader) endDocument(start int) error {
	r.pos++
	r.dst = EndDocument(r.dst, start)
	if len(r.dst)-start > math.MaxInt32 {
		return r.fail(r.pos, errTooLong)
	}
	return nil
}

var errNULInKey = errors.New("key with a NUL")
