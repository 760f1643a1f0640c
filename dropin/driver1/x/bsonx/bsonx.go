// Package bsonx has BSON documents whose values have types: Doc, MDoc, Arr and Val. The official
// driver had it up to version 1.11; programs of that time still compile.
package bsonx

import (
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

var (
	// ErrNilArray is the error for an array that is nil.
	ErrNilArray = errors.New("array is nil")
	// ErrNilDocument is the error for a document that is nil.
	ErrNilDocument = errors.New("document is nil")
)

// DefaultRegistry is package bson's: the types of this package have methods that encode and decode.
var DefaultRegistry = NewRegistryBuilder().Build()

// NewRegistryBuilder returns package bson's.
func NewRegistryBuilder() *bsoncodec.RegistryBuilder { return bson.NewRegistryBuilder() }

// An ElementTypeError is what a getter of a Val panics with that is of another type.
type ElementTypeError struct {
	Method string
	Type   bsontype.Type
}

// Error names the method and the type.
func (ete ElementTypeError) Error() string {
	return "Call of " + ete.Method + " on " + ete.Type.String() + " type"
}

// A KeyNotFound is the error of a look-up that finds nothing.
type KeyNotFound struct {
	Key   []string      // that was looked for
	Depth uint          // the index in Key of what is not there, or of no document
	Type  bsontype.Type // of what is no document, 0 if nothing was found
}

// Error says which key it was.
func (knf KeyNotFound) Error() string {
	depth := knf.Depth
	if depth >= uint(len(knf.Key)) {
		depth = uint(len(knf.Key)) - 1
	}
	switch {
	case len(knf.Key) == 0:
		return "no keys were provided for lookup"
	case knf.Type != 0:
		return fmt.Sprintf("key %q was found but was not valid to traverse BSON type %s", knf.Key[depth], knf.Type)
	}
	return fmt.Sprintf("key %q was not found", knf.Key[depth])
}

// An IDoc is a Doc or an MDoc.
type IDoc interface {
	idoc()
	lookup(key string) (Elem, bool)
	appendTo(dst []byte) ([]byte, error)
}

// lookup finds an element, one key for each level. Only documents are looked into.
func lookup(d IDoc, key []string) (Elem, error) {
	if len(key) == 0 {
		return Elem{}, KeyNotFound{Key: key}
	}
	e, ok := d.lookup(key[0])
	if !ok {
		return Elem{}, KeyNotFound{Key: key}
	}
	if len(key) == 1 {
		return e, nil
	}
	inside, ok := e.Value.v.(IDoc)
	if !ok {
		return Elem{}, KeyNotFound{Type: e.Value.Type()}
	}
	e, err := lookup(inside, key[1:])
	if knf, ok := err.(KeyNotFound); ok {
		return Elem{}, KeyNotFound{Key: key, Depth: knf.Depth + 1, Type: knf.Type}
	}
	return e, err
}

// An Elem is an element of a document.
type Elem struct {
	Key   string
	Value Val
}

// Equal reports whether both have the same key and value.
func (e Elem) Equal(e2 Elem) bool { return e.Key == e2.Key && e.Value.Equal(e2.Value) }

// String returns the element in a form for people.
func (e Elem) String() string { return fmt.Sprintf(`bson.Element{"%s": %v}`, e.Key, e.Value) }

// An Arr is an array.
type Arr []Val

// Equal reports whether both have equal values.
func (a Arr) Equal(a2 Arr) bool {
	if len(a) != len(a2) {
		return false
	}
	for i := range a {
		if !a[i].Equal(a2[i]) {
			return false
		}
	}
	return true
}

// String returns the array in a form for people.
func (a Arr) String() string {
	parts := make([]string, len(a))
	for i, v := range a {
		parts[i] = v.String()
	}
	return "bson.Array[" + strings.Join(parts, ", ") + "]"
}

// MarshalBSONValue encodes the array. One that is nil is null.
func (a Arr) MarshalBSONValue() (bsontype.Type, []byte, error) {
	if a == nil {
		return bsontype.Null, nil, nil
	}
	b, err := a.appendTo(nil)
	return bsontype.Array, b, err
}

func (a Arr) appendTo(dst []byte) ([]byte, error) {
	start, dst := bsoncore.AppendArrayStart(dst)
	var err error
	for i, v := range a {
		if dst, err = (Elem{fmt.Sprint(i), v}).appendTo(dst); err != nil {
			return nil, err
		}
	}
	return bsoncore.AppendArrayEnd(dst, start)
}

// UnmarshalBSONValue decodes an array.
func (a *Arr) UnmarshalBSONValue(t bsontype.Type, data []byte) error {
	if a == nil {
		return ErrNilArray
	}
	*a = (*a)[:0]
	return elements(data, func(e Elem) { *a = append(*a, e.Value) })
}

func (e Elem) appendTo(dst []byte) ([]byte, error) {
	dst = bsoncore.AppendHeader(dst, e.Value.Type(), e.Key)
	_, dst, err := e.Value.MarshalAppendBSONValue(dst)
	return dst, err
}

// elements calls f for each element of a document or an array.
func elements(doc []byte, f func(Elem)) error {
	elems, err := bsoncore.Document(doc).Elements()
	for _, e := range elems {
		v, err := e.ValueErr()
		if err != nil {
			return err
		}
		elem := Elem{Key: e.Key()}
		if err := elem.Value.UnmarshalBSONValue(v.Type, v.Data); err != nil {
			return err
		}
		f(elem)
	}
	return err
}
