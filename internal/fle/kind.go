package fle

import (
	"errors"
	"fmt"
	"strconv"

	"allium/bson"
)

// Kind is the first byte of a binary of subtype 6.
type Kind byte

// The kinds in use. Those from 4 to 10 belong to the first version of Queryable Encryption, which
// no server from 7.0 on has.
const (
	KindMarking         Kind = 0  // CSFLE: to be encrypted
	KindDeterministic   Kind = 1  // CSFLE
	KindRandom          Kind = 2  // CSFLE
	KindPlaceholder     Kind = 3  // QE: to be encrypted
	KindUnindexedV1     Kind = 6  // QE, first version: stored; it is read and never written
	KindInsert          Kind = 11 // QE: payload of an insert or update
	KindFindEquality    Kind = 12 // QE: payload of an equality query
	KindFindRange       Kind = 13 // QE: payload of a range query
	KindIndexedEquality Kind = 14 // QE: stored
	KindIndexedRange    Kind = 15 // QE: stored
	KindUnindexed       Kind = 16 // QE: stored
	KindIndexedText     Kind = 17 // QE: stored
	KindFindText        Kind = 18 // QE: payload of a prefix, suffix or substring query
)

var kindNames = [...]string{
	KindMarking: "CSFLE placeholder", KindDeterministic: "deterministic value", KindRandom: "random value",
	KindPlaceholder: "placeholder", KindUnindexedV1: "unindexed value of version 1", KindInsert: "insert payload",
	KindFindEquality: "equality payload",
	KindFindRange:    "range payload", KindIndexedEquality: "indexed equality value",
	KindIndexedRange: "indexed range value",
	KindUnindexed:    "unindexed value", KindIndexedText: "indexed text value", KindFindText: "text payload",
}

// String returns what a binary of kind k is.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// obsolete reports whether k is of the first version of Queryable Encryption.
func (k Kind) obsolete() bool { return k >= 4 && k <= 10 && k != KindUnindexedV1 }

// ErrObsolete is the reason for which a value of the first version of Queryable Encryption cannot
// be read.
var ErrObsolete = errors.New(
	"the value is of the first version of Queryable Encryption, which servers from 7.0 on do not have")

// KindOf returns the kind of the encrypted value v, and whether v is one: a binary of subtype 6
// with at least one byte.
func KindOf(v bson.RawValue) (Kind, bool) {
	data, ok := Data(v)
	if !ok {
		return 0, false
	}
	return Kind(data[0]), true
}

// Data returns the bytes of the encrypted value v, the Kind first, and whether v is one.
func Data(v bson.RawValue) ([]byte, bool) {
	if v.Type != bson.TypeBinary || len(v.Value) < 6 || v.Value[4] != bson.BinaryEncrypted {
		return nil, false
	}
	return v.Value[5:], true
}

// Value returns data, the Kind first, as a BSON value.
func Value(data []byte) bson.RawValue {
	return bson.RawValue{Type: bson.TypeBinary,
		Value: bson.AppendBinaryValue(make([]byte, 0, 5+len(data)), bson.BinaryEncrypted, data)}
}

// document returns the document that follows the kind in data, after it is validated.
func document(data []byte, kind Kind) (bson.Raw, error) {
	if len(data) == 0 || Kind(data[0]) != kind {
		return nil, fmt.Errorf("not a %s", kind)
	}
	doc := bson.Raw(data[1:])
	if err := doc.Validate(); err != nil {
		return nil, fmt.Errorf("malformed %s: %w", kind, err)
	}
	return doc, nil
}
