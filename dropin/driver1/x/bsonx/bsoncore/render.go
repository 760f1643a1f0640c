package bsoncore

import (
	core "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// String returns the document as Extended JSON, an empty text if it is broken.
func (d Document) String() string {
	return core.Document(d).String()
}

// String returns the array as Extended JSON, an empty text if it is broken.
func (a Array) String() string {
	return core.Array(a).String()
}

// String returns the element as Extended JSON, without what is broken.
func (e Element) String() string {
	return core.Element(e).String()
}

// String returns the value as Extended JSON, an empty text if it is broken.
func (v Value) String() string {
	return v.core().String()
}

// DebugString returns the document in a form that shows the types, as far as it can be read.
func (d Document) DebugString() string {
	return core.Document(d).DebugString()
}

// DebugString returns the array in a form that shows the types, as far as it can be read.
func (a Array) DebugString() string {
	return core.Array(a).DebugString()
}

// DebugString returns the element in a form that shows its type, as far as it can be read.
func (e Element) DebugString() string {
	return core.Element(e).DebugString()
}

// DebugString returns the value in a form that shows the types in it, as far as it can be read.
func (v Value) DebugString() string {
	return v.core().DebugString()
}
