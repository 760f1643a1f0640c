package bsoncore

import (
	"io"

	core "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// AppendDocumentStart appends the beginning of a document, and returns where it is.
func AppendDocumentStart(dst []byte) (index int32, b []byte) {
	return core.AppendDocumentStart(dst)
}

// AppendDocumentStartInline is AppendDocumentStart for expressions.
func AppendDocumentStartInline(dst []byte, index *int32) []byte {
	return core.AppendDocumentStartInline(dst, index)
}

// AppendDocumentElementStart appends the beginning of an embedded document.
func AppendDocumentElementStart(dst []byte, key string) (index int32, b []byte) {
	return core.AppendDocumentElementStart(dst, key)
}

// AppendDocumentEnd appends the end of the document that begins at index.
func AppendDocumentEnd(dst []byte, index int32) ([]byte, error) {
	return core.AppendDocumentEnd(dst, index)
}

// AppendArrayStart appends the beginning of an array, and returns where it is.
func AppendArrayStart(dst []byte) (index int32, b []byte) {
	return core.AppendArrayStart(dst)
}

// AppendArrayElementStart appends the beginning of an array in a document.
func AppendArrayElementStart(dst []byte, key string) (index int32, b []byte) {
	return core.AppendArrayElementStart(dst, key)
}

// AppendArrayEnd appends the end of the array that begins at index.
func AppendArrayEnd(dst []byte, index int32) ([]byte, error) {
	return core.AppendArrayEnd(dst, index)
}

// BuildDocument appends a document of these elements.
func BuildDocument(dst []byte, elems ...[]byte) []byte {
	return core.BuildDocument(dst, elems...)
}

// BuildDocumentValue returns the value of a document of these elements.
func BuildDocumentValue(elems ...[]byte) Value {
	return valueOf(core.BuildDocumentValue(elems...))
}

// BuildDocumentElement appends an embedded document of these elements.
func BuildDocumentElement(dst []byte, key string, elems ...[]byte) []byte {
	return core.BuildDocumentElement(dst, key, elems...)
}

// BuildArray appends an array of these values.
func BuildArray(dst []byte, values ...Value) []byte {
	return core.BuildArray(dst, coreValues(values)...)
}

// BuildArrayElement appends an array of these values in a document.
func BuildArrayElement(dst []byte, key string, values ...Value) []byte {
	return core.BuildArrayElement(dst, key, coreValues(values)...)
}

// NewDocumentFromReader reads a document. Only its frame is looked at.
func NewDocumentFromReader(r io.Reader) (Document, error) {
	doc, err := core.NewDocumentFromReader(r)
	return Document(doc), err
}

// NewArrayFromReader reads an array. Only its frame is looked at.
func NewArrayFromReader(r io.Reader) (Array, error) {
	arr, err := core.NewArrayFromReader(r)
	return Array(arr), err
}

// Validate reports whether the document is whole: its frame, and those of all values.
func (d Document) Validate() error {
	return core.Document(d).Validate()
}

// Elements returns the elements, with an error those before what is broken.
func (d Document) Elements() ([]Element, error) {
	elems, err := core.Document(d).Elements()
	return of[Element](elems), err
}

// Values returns the values, with an error those before what is broken.
func (d Document) Values() ([]Value, error) {
	values, err := core.Document(d).Values()
	return valuesOf(values), err
}

// Index is IndexErr, and panics with its error.
func (d Document) Index(index uint) Element {
	return Element(core.Document(d).Index(index))
}

// IndexErr returns the element at an index.
func (d Document) IndexErr(i uint) (Element, error) {
	e, err := core.Document(d).IndexErr(i)
	return Element(e), err
}

// Lookup is LookupErr, and returns a zero Value instead of an error.
func (d Document) Lookup(key ...string) Value {
	return valueOf(core.Document(d).Lookup(key...))
}

// LookupErr returns the value at a path, one key for each level. In arrays a key is an index.
func (d Document) LookupErr(key ...string) (Value, error) {
	v, err := core.Document(d).LookupErr(key...)
	return valueOf(v), lookupError(err)
}

// Validate reports whether the array is whole: its frame, those of all values, and its keys.
func (a Array) Validate() error {
	return core.Array(a).Validate()
}

// Values returns the values, with an error those before what is broken.
func (a Array) Values() ([]Value, error) {
	values, err := core.Array(a).Values()
	return valuesOf(values), err
}

// Index is IndexErr, and panics with its error.
func (a Array) Index(index uint) Value {
	return valueOf(core.Array(a).Index(index))
}

// IndexErr returns the value at an index.
func (a Array) IndexErr(i uint) (Value, error) {
	v, err := core.Array(a).IndexErr(i)
	return valueOf(v), lookupError(err)
}
