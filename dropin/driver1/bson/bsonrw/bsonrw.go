// Package bsonrw has the readers and writers of BSON that codecs use: those of package bson of
// version 2.
package bsonrw

import (
	"bytes"
	"errors"
	"io"

	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// The readers and writers.
type (
	// ArrayReader reads the values of an array, and ErrEOA behind the last.
	ArrayReader = bson.ArrayReader
	// ArrayWriter writes the values of an array.
	ArrayWriter = bson.ArrayWriter
	// DocumentReader reads the elements of a document, and ErrEOD behind the last.
	DocumentReader = bson.DocumentReader
	// DocumentWriter writes the elements of a document: a key, and then its value.
	DocumentWriter = bson.DocumentWriter
	// TransitionError is the error for what cannot be read or written at this place.
	TransitionError = bson.TransitionError
	// ValueReader reads a value. A method that is not for the value's type fails.
	ValueReader = bson.ValueReader
	// ValueWriter writes a value.
	ValueWriter = bson.ValueWriter
)

var (
	// ErrEOA is what an ArrayReader returns behind the last element.
	ErrEOA = bson.ErrEOA
	// ErrEOD is what a DocumentReader returns behind the last element.
	ErrEOD = bson.ErrEOD
	// ErrInvalidJSON is the error for a text that is no Extended JSON.
	ErrInvalidJSON = bson.ErrInvalidJSON
)

// A ValueWriterFlusher is a ValueWriter that keeps what is written until it is flushed.
type ValueWriterFlusher interface {
	ValueWriter
	Flush() error
}

// A BytesWriter writes values that are encoded already.
//
// Deprecated: no writer of this package is one.
type BytesWriter interface {
	WriteValueBytes(t bsontype.Type, b []byte) error
}

// A BytesReader reads values without decoding them.
//
// Deprecated: no reader of this package is one.
type BytesReader interface {
	ReadValueBytes(dst []byte) (bsontype.Type, []byte, error)
}

var errNilWriter = errors.New("cannot create a ValueWriter from a nil io.Writer")

// NewBSONDocumentReader returns a reader of the document b.
func NewBSONDocumentReader(b []byte) ValueReader { return bson.NewDocumentReader(bytes.NewReader(b)) }

// NewBSONValueReader returns a reader of a value that stands alone.
//
// Deprecated: decode it with bson.UnmarshalValue.
func NewBSONValueReader(t bsontype.Type, val []byte) ValueReader {
	return coding.NewReader(t, val).(ValueReader)
}

// NewExtJSONValueReader returns a reader of the documents of Extended JSON in r.
func NewExtJSONValueReader(r io.Reader, canonical bool) (ValueReader, error) {
	return bson.NewExtJSONValueReader(r, canonical)
}

// NewBSONValueWriter returns a writer of documents to w.
func NewBSONValueWriter(w io.Writer) (ValueWriter, error) {
	if w == nil {
		return nil, errNilWriter
	}
	return bson.NewDocumentWriter(w), nil
}

// NewExtJSONValueWriter returns a writer of documents to w as Extended JSON.
func NewExtJSONValueWriter(w io.Writer, canonical, escapeHTML bool) (ValueWriter, error) {
	if w == nil {
		return nil, errNilWriter
	}
	return bson.NewExtJSONValueWriter(w, canonical, escapeHTML), nil
}

// A SliceWriter is a writer that appends to a slice.
//
// Deprecated: use a bytes.Buffer.
type SliceWriter []byte

// Write appends p.
func (sw *SliceWriter) Write(p []byte) (int, error) {
	*sw = append(*sw, p...)
	return len(p), nil
}
