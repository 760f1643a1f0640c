package bsoncore

import "bytes"

// An Element is an encoded element: type, key and value.
type Element []byte

// Key is KeyErr, and returns an empty string instead of an error.
func (e Element) Key() string { return string(e.KeyBytes()) }

// KeyErr returns the key.
func (e Element) KeyErr() (string, error) {
	key, err := e.KeyBytesErr()
	return string(key), err
}

// KeyBytes is KeyBytesErr without the error.
func (e Element) KeyBytes() []byte {
	key, _ := e.KeyBytesErr()
	return key
}

// KeyBytesErr returns the key without a copy.
func (e Element) KeyBytesErr() ([]byte, error) {
	if len(e) < 1 {
		return nil, ErrElementMissingType
	}
	key, _, ok := ReadKeyBytes(e[1:])
	if !ok {
		return nil, ErrElementMissingKey
	}
	return key, nil
}

// CompareKey reports whether the key is this one, which ends at a null byte, if there is one.
func (e Element) CompareKey(key []byte) bool {
	own, err := e.KeyBytesErr()
	key, _, _ = bytes.Cut(key, []byte{0})
	return err == nil && bytes.Equal(own, key)
}

// Value is ValueErr without the error.
func (e Element) Value() Value {
	v, _ := e.ValueErr()
	return v
}

// ValueErr returns the value.
func (e Element) ValueErr() (Value, error) {
	key, err := e.KeyBytesErr()
	if err != nil {
		return Value{}, err
	}
	v, _, ok := ReadValue(e[1+len(key)+1:], Type(e[0]))
	if !ok {
		return Value{}, NewInsufficientBytesError(e, e)
	}
	return v, nil
}

// Validate reports whether the element is whole.
func (e Element) Validate() error {
	v, err := e.ValueErr()
	if err != nil {
		return err
	}
	switch v.Type {
	case TypeEmbeddedDocument:
		return Document(v.Data).Validate()
	case TypeArray:
		return validate(v.Data, NewArrayLengthError)
	}
	return nil
}
