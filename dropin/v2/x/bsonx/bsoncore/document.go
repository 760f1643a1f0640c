package bsoncore

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// A Document is an encoded document.
type Document []byte

// An Array is an encoded array.
type Array []byte

var (
	errTooLong     = errors.New("document or array takes more than 2 GiB")
	errNotDocument = errors.New("invalid DocumentSequence: a non-document value was found in sequence")
)

// AppendDocumentStart appends the beginning of a document, and returns where it is.
func AppendDocumentStart(dst []byte) (index int32, b []byte) { return ReserveLength(dst) }

// AppendDocumentStartInline is AppendDocumentStart for expressions.
func AppendDocumentStartInline(dst []byte, index *int32) []byte {
	*index, dst = AppendDocumentStart(dst)
	return dst
}

// AppendDocumentElementStart appends the beginning of an embedded document.
func AppendDocumentElementStart(dst []byte, key string) (index int32, b []byte) {
	return AppendDocumentStart(AppendHeader(dst, TypeEmbeddedDocument, key))
}

// AppendDocumentEnd appends the end of the document that begins at index.
func AppendDocumentEnd(dst []byte, index int32) ([]byte, error) {
	if int(index) > len(dst)-4 {
		return dst, errors.New("not enough bytes available after index to write length")
	}
	dst = append(dst, 0)
	n := len(dst) - int(index)
	if n > math.MaxInt32 {
		return dst, errTooLong
	}
	return UpdateLength(dst, index, int32(n)), nil
}

// AppendArrayStart appends the beginning of an array, and returns where it is.
func AppendArrayStart(dst []byte) (index int32, b []byte) { return ReserveLength(dst) }

// AppendArrayElementStart appends the beginning of an array in a document.
func AppendArrayElementStart(dst []byte, key string) (index int32, b []byte) {
	return AppendArrayStart(AppendHeader(dst, TypeArray, key))
}

// AppendArrayEnd appends the end of the array that begins at index.
func AppendArrayEnd(dst []byte, index int32) ([]byte, error) { return AppendDocumentEnd(dst, index) }

// BuildDocument appends a document of these elements.
func BuildDocument(dst []byte, elems ...[]byte) []byte {
	index, dst := AppendDocumentStart(dst)
	for _, e := range elems {
		dst = append(dst, e...)
	}
	dst, _ = AppendDocumentEnd(dst, index)
	return dst
}

// BuildDocumentFromElements is BuildDocument.
var BuildDocumentFromElements = BuildDocument

// BuildDocumentValue returns the value of a document of these elements.
func BuildDocumentValue(elems ...[]byte) Value {
	return Value{Type: TypeEmbeddedDocument, Data: BuildDocument(nil, elems...)}
}

// BuildDocumentElement appends an embedded document of these elements.
func BuildDocumentElement(dst []byte, key string, elems ...[]byte) []byte {
	return BuildDocument(AppendHeader(dst, TypeEmbeddedDocument, key), elems...)
}

// BuildArray appends an array of these values.
func BuildArray(dst []byte, values ...Value) []byte {
	index, dst := AppendArrayStart(dst)
	for i, v := range values {
		dst = AppendValueElement(dst, strconv.Itoa(i), v)
	}
	dst, _ = AppendArrayEnd(dst, index)
	return dst
}

// BuildArrayElement appends an array of these values in a document.
func BuildArrayElement(dst []byte, key string, values ...Value) []byte {
	return BuildArray(AppendHeader(dst, TypeArray, key), values...)
}

// NewDocumentFromReader reads a document. Only its frame is looked at.
func NewDocumentFromReader(r io.Reader) (Document, error) { return readFramed(r) }

// NewArrayFromReader reads an array. Only its frame is looked at.
func NewArrayFromReader(r io.Reader) (Array, error) { return readFramed(r) }

// step is how much is read at once: a length that lies takes no more memory than there are bytes.
const step = 64 << 10

func readFramed(r io.Reader) ([]byte, error) {
	if r == nil {
		return nil, ErrNilReader
	}
	out := make([]byte, 4, 256)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, err
	}
	l, _, ok := ReadLength(out)
	if !ok || l < EmptyDocumentLength {
		return nil, ErrInvalidLength
	}
	for len(out) < int(l) {
		at := len(out)
		out = append(out, make([]byte, min(int(l)-at, max(at, step)))...)
		if _, err := io.ReadFull(r, out[at:]); err != nil {
			return nil, err
		}
	}
	if out[l-1] != 0 {
		return nil, ErrMissingNull
	}
	return out, nil
}

// walk calls f for each element of a document or an array until it returns false. It does not look
// at the length.
func walk(b []byte, f func(e Element) bool) error {
	length, rem, ok := ReadLength(b)
	if !ok {
		return NewInsufficientBytesError(b, b)
	}
	left := int(length) - 4
	for left > 1 {
		e, next, ok := ReadElement(rem)
		left -= len(e)
		if !ok || left < 1 {
			return NewInsufficientBytesError(b, rem)
		}
		if !f(e) {
			return nil
		}
		rem = next
	}
	return nil
}

func validate(b []byte, tooLong func(length, rem int) error) error {
	length, rem, ok := ReadLength(b)
	switch {
	case !ok:
		return NewInsufficientBytesError(b, b)
	case int(length) > len(b):
		return tooLong(int(length), len(b))
	case length < EmptyDocumentLength:
		return ErrInvalidLength
	case b[length-1] != 0:
		return ErrMissingNull
	}
	left := int(length) - 5
	for left > 0 {
		e, next, ok := ReadElement(rem)
		switch {
		case ok && len(e) == left+1: // its last byte is the terminator
			return ErrMissingNull
		case !ok || len(e) > left:
			return NewInsufficientBytesError(b, rem)
		}
		if err := e.Validate(); err != nil {
			return err
		}
		left, rem = left-len(e), next
	}
	return nil
}

func values(b []byte) ([]Value, error) {
	var out []Value
	err := walk(b, func(e Element) bool {
		out = append(out, e.Value())
		return true
	})
	return out, err
}

func index(b []byte, i uint) (Element, error) {
	var found Element
	err := walk(b, func(e Element) bool {
		if i == 0 {
			found = e
			return false
		}
		i--
		return true
	})
	if err == nil && found == nil {
		err = ErrOutOfBounds
	}
	return found, err
}

// Validate reports whether the document is whole: its frame, and those of all values.
func (d Document) Validate() error { return validate(d, NewDocumentLengthError) }

// Elements returns the elements, with an error those before what is broken.
func (d Document) Elements() ([]Element, error) {
	var out []Element
	err := walk(d, func(e Element) bool {
		out = append(out, e)
		return true
	})
	return out, err
}

// Values returns the values, with an error those before what is broken.
func (d Document) Values() ([]Value, error) { return values(d) }

// Index is IndexErr, and panics with its error.
func (d Document) Index(index uint) Element {
	e, err := d.IndexErr(index)
	if err != nil {
		panic(err)
	}
	return e
}

// IndexErr returns the element at an index.
func (d Document) IndexErr(i uint) (Element, error) { return index(d, i) }

// Lookup is LookupErr, and returns a zero Value instead of an error.
func (d Document) Lookup(key ...string) Value {
	v, _ := d.LookupErr(key...)
	return v
}

// LookupErr returns the value at a path, one key for each level. In arrays a key is an index.
func (d Document) LookupErr(key ...string) (Value, error) {
	if len(key) == 0 {
		return Value{}, ErrEmptyKey
	}
	var found Element
	if err := walk(d, func(e Element) bool {
		if string(e.KeyBytes()) == key[0] {
			found = e
			return false
		}
		return true
	}); err != nil {
		return Value{}, err
	}
	if found == nil {
		return Value{}, ErrElementNotFound
	}
	v := found.Value()
	if len(key) == 1 {
		return v, nil
	}
	switch v.Type {
	case TypeEmbeddedDocument, TypeArray:
		return Document(v.Data).LookupErr(key[1:]...)
	}
	return Value{}, InvalidDepthTraversalError{Key: key[0], Type: v.Type}
}

// Validate reports whether the array is whole: its frame, those of all values, and its keys.
func (a Array) Validate() error {
	if err := validate(a, NewArrayLengthError); err != nil {
		return err
	}
	next := 0
	var wrong error
	_ = walk(a, func(e Element) bool {
		if key := e.Key(); key != strconv.Itoa(next) {
			wrong = fmt.Errorf("array key %q is out of order or invalid", key)
		}
		next++
		return wrong == nil
	})
	return wrong
}

// Values returns the values, with an error those before what is broken.
func (a Array) Values() ([]Value, error) { return values(a) }

// Index is IndexErr, and panics with its error.
func (a Array) Index(index uint) Value {
	v, err := a.IndexErr(index)
	if err != nil {
		panic(err)
	}
	return v
}

// IndexErr returns the value at an index.
func (a Array) IndexErr(i uint) (Value, error) {
	e, err := index(a, i)
	if err != nil {
		return Value{}, err
	}
	return e.Value(), nil
}

// An Iterator goes through an array.
type Iterator struct {
	List Array

	at int // where in List the next value is; 0 for its beginning
}

// Count returns how many values there are.
func (iter *Iterator) Count() int {
	n := 0
	_ = walk(iter.List, func(Element) bool { n++; return true })
	return n
}

// Empty reports whether there are none.
func (iter *Iterator) Empty() bool { return len(iter.List) <= EmptyDocumentLength }

// Next returns the next value, and io.EOF behind the last.
func (iter *Iterator) Next() (*Value, error) {
	if iter.at == 0 {
		iter.at = 4
	}
	if iter.at >= len(iter.List)-1 {
		return nil, io.EOF
	}
	e, _, ok := ReadElement(iter.List[iter.at:])
	if !ok {
		return nil, NewInsufficientBytesError(iter.List, iter.List[iter.at:])
	}
	iter.at += len(e)
	v := e.Value()
	return &v, nil
}

// Documents returns the values, which must be documents.
func (iter *Iterator) Documents() ([]Document, error) {
	if iter.Empty() {
		return nil, nil
	}
	all, err := iter.List.Values()
	if err != nil {
		return nil, err
	}
	docs := make([]Document, 0, len(all))
	for _, v := range all {
		d, ok := v.DocumentOK()
		if !ok {
			return nil, errNotDocument
		}
		docs = append(docs, d)
	}
	return docs, nil
}

// Reset goes back to the beginning.
func (iter *Iterator) Reset() { iter.at = 0 }
