package bsoncore

import (
	core "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Key is KeyErr, and returns an empty string instead of an error.
func (e Element) Key() string {
	return core.Element(e).Key()
}

// KeyErr returns the key.
func (e Element) KeyErr() (string, error) {
	return core.Element(e).KeyErr()
}

// KeyBytes is KeyBytesErr without the error.
func (e Element) KeyBytes() []byte {
	return core.Element(e).KeyBytes()
}

// KeyBytesErr returns the key without a copy.
func (e Element) KeyBytesErr() ([]byte, error) {
	return core.Element(e).KeyBytesErr()
}

// CompareKey reports whether the key is this one, which may end with a null byte.
func (e Element) CompareKey(key []byte) bool {
	return core.Element(e).CompareKey(key)
}

// Value is ValueErr without the error.
func (e Element) Value() Value {
	return valueOf(core.Element(e).Value())
}

// ValueErr returns the value.
func (e Element) ValueErr() (Value, error) {
	v, err := core.Element(e).ValueErr()
	return valueOf(v), err
}

// Validate reports whether the element is whole.
func (e Element) Validate() error {
	return core.Element(e).Validate()
}
