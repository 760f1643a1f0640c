package bson

import (
	"encoding/hex"
	"time"

	"allium/bson"
)

// NilObjectID is the ObjectID whose bytes are all zero.
var NilObjectID ObjectID

// NewObjectID returns a new, unique ObjectID.
func NewObjectID() ObjectID { return bson.NewObjectID() }

// NewObjectIDFromTimestamp returns a new ObjectID that was made at this time, as it says.
func NewObjectIDFromTimestamp(timestamp time.Time) ObjectID {
	return bson.NewObjectIDFromTime(timestamp)
}

// ObjectIDFromHex parses the 24 hexadecimal digits of an ObjectID.
func ObjectIDFromHex(s string) (ObjectID, error) {
	if len(s) != 24 {
		return NilObjectID, ErrInvalidHex
	}
	var id ObjectID
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return NilObjectID, err
	}
	return id, nil
}

// NewDateTimeFromTime returns t in whole milliseconds.
func NewDateTimeFromTime(t time.Time) DateTime { return bson.NewDateTime(t) }
