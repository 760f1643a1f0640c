package bson

import (
	"io"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// A Raw is an encoded document.
type Raw []byte

// A RawArray is an encoded array.
type RawArray []byte

// A RawElement is an encoded element: type, key and value.
type RawElement []byte

// A RawValue is an encoded value: its type and its bytes.
type RawValue struct {
	Type  Type
	Value []byte

	r *Registry // what Unmarshal uses; nil for the default
}

// ReadDocument reads a document. Only its frame is looked at.
func ReadDocument(r io.Reader) (Raw, error) {
	doc, err := bsoncore.NewDocumentFromReader(r)
	return Raw(doc), err
}

// ReadArray reads an array. Only its frame is looked at.
func ReadArray(r io.Reader) (RawArray, error) {
	array, err := bsoncore.NewArrayFromReader(r)
	return RawArray(array), err
}

func valueOf(v bsoncore.Value) RawValue { return RawValue{Type: Type(v.Type), Value: v.Data} }

func valuesOf(values []bsoncore.Value) []RawValue {
	if values == nil {
		return nil
	}
	out := make([]RawValue, len(values))
	for i, v := range values {
		out[i] = valueOf(v)
	}
	return out
}

// Validate reports whether the document is whole: its frame, and those of all values.
func (r Raw) Validate() error { return bsoncore.Document(r).Validate() }

// Lookup is LookupErr, and returns a zero RawValue instead of an error.
func (r Raw) Lookup(key ...string) RawValue { return valueOf(bsoncore.Document(r).Lookup(key...)) }

// LookupErr returns the value at a path, one key for each level. In arrays a key is an index.
func (r Raw) LookupErr(key ...string) (RawValue, error) {
	v, err := bsoncore.Document(r).LookupErr(key...)
	return valueOf(v), err
}

// Elements returns the elements, with an error those before what is broken.
func (r Raw) Elements() ([]RawElement, error) {
	if len(r) == 0 {
		return nil, nil
	}
	elems, err := bsoncore.Document(r).Elements()
	if elems == nil {
		return nil, err
	}
	out := make([]RawElement, len(elems))
	for i, e := range elems {
		out[i] = RawElement(e)
	}
	return out, err
}

// Values returns the values, with an error those before what is broken.
func (r Raw) Values() ([]RawValue, error) {
	values, err := bsoncore.Document(r).Values()
	return valuesOf(values), err
}

// Index is IndexErr, and panics with its error.
func (r Raw) Index(index uint) RawElement { return RawElement(bsoncore.Document(r).Index(index)) }

// IndexErr returns the element at an index.
func (r Raw) IndexErr(index uint) (RawElement, error) {
	e, err := bsoncore.Document(r).IndexErr(index)
	return RawElement(e), err
}

// String returns the document as Extended JSON, an empty text if it is broken.
func (r Raw) String() string { return bsoncore.Document(r).String() }

// Validate reports whether the array is whole: its frame, and those of all values.
func (a RawArray) Validate() error { return bsoncore.Array(a).Validate() }

// Values returns the values, with an error those before what is broken.
func (a RawArray) Values() ([]RawValue, error) {
	values, err := bsoncore.Array(a).Values()
	return valuesOf(values), err
}

// Index is IndexErr, and panics with its error.
func (a RawArray) Index(index uint) RawValue { return valueOf(bsoncore.Array(a).Index(index)) }

// IndexErr returns the value at an index.
func (a RawArray) IndexErr(index uint) (RawValue, error) {
	v, err := bsoncore.Array(a).IndexErr(index)
	return valueOf(v), err
}

// String returns the array as Extended JSON, an empty text if it is broken.
func (a RawArray) String() string { return bsoncore.Array(a).String() }

// DebugString returns the array in a form that shows the types, as far as it can be read.
func (a RawArray) DebugString() string { return bsoncore.Array(a).DebugString() }

// Key is KeyErr, and returns an empty string instead of an error.
func (re RawElement) Key() string { return bsoncore.Element(re).Key() }

// KeyErr returns the key.
func (re RawElement) KeyErr() (string, error) { return bsoncore.Element(re).KeyErr() }

// Value is ValueErr without the error.
func (re RawElement) Value() RawValue { return valueOf(bsoncore.Element(re).Value()) }

// ValueErr returns the value.
func (re RawElement) ValueErr() (RawValue, error) {
	v, err := bsoncore.Element(re).ValueErr()
	return valueOf(v), err
}

// Validate reports whether the element is whole.
func (re RawElement) Validate() error { return bsoncore.Element(re).Validate() }

// String returns the element as a document of Extended JSON.
func (re RawElement) String() string {
	doc := bsoncore.BuildDocument(nil, re)
	text, err := extJSON(doc, true, false)
	if err != nil {
		return "<malformed>"
	}
	return string(text)
}

// DebugString returns the element in a form that shows its type, as far as it can be read.
func (re RawElement) DebugString() string { return bsoncore.Element(re).DebugString() }

// IsZero reports whether there is no value: no type and no bytes.
func (rv RawValue) IsZero() bool { return rv.Type == 0 && len(rv.Value) == 0 }

// IsNumber reports whether the value is a number of any type.
func (rv RawValue) IsNumber() bool { return rv.core().IsNumber() }

// Validate reports whether the value is whole.
func (rv RawValue) Validate() error { return rv.core().Validate() }

// Equal reports whether both are of the same type and have the same bytes.
func (rv RawValue) Equal(rv2 RawValue) bool { return rv.core().Equal(rv2.core()) }

// String returns the value as Extended JSON, an empty text if it is broken.
func (rv RawValue) String() string { return rv.core().String() }

// DebugString returns the value in a form that shows the types in it, as far as it can be read.
func (rv RawValue) DebugString() string { return rv.core().DebugString() }

// Unmarshal decodes the value, with the registry that decoded the RawValue.
func (rv RawValue) Unmarshal(val any) error {
	r := rv.r
	if r == nil {
		r = defaultRegistry
	}
	return rv.UnmarshalWithRegistry(r, val)
}

// UnmarshalWithRegistry decodes the value with a registry.
func (rv RawValue) UnmarshalWithRegistry(r *Registry, val any) error {
	if r == nil {
		return ErrNilRegistry
	}
	return r.way(settings{}).UnmarshalInside(rv.Type, rv.Value, val)
}

// UnmarshalWithContext decodes the value with a context's registry and settings.
func (rv RawValue) UnmarshalWithContext(dc *DecodeContext, val any) error {
	switch {
	case dc == nil:
		return ErrNilContext
	case dc.Registry == nil:
		return ErrNilRegistry
	}
	return dc.Registry.way(dc.settings).UnmarshalInside(rv.Type, rv.Value, val)
}
