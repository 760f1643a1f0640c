package bson

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"
)

// ObjectID is a BSON ObjectID: 4 bytes of seconds since the Unix epoch, 5 bytes of a value that is random
// per process, and a 3-byte counter (specification: ObjectID).
type ObjectID [12]byte

// NilObjectID is the ObjectID whose bytes are all zero.
var NilObjectID ObjectID

var (
	objectIDProcess [5]byte
	objectIDCounter atomic.Uint32
)

func init() {
	var seed [9]byte
	rand.Read(seed[:]) // never fails (crypto/rand)
	copy(objectIDProcess[:], seed[:5])
	objectIDCounter.Store(binary.BigEndian.Uint32(seed[5:]))
}

// NewObjectID returns a new, unique ObjectID. It is safe for concurrent use.
func NewObjectID() ObjectID { return NewObjectIDFromTime(time.Now()) }

// NewObjectIDFromTime returns a new ObjectID whose timestamp part is t, in whole seconds.
func NewObjectIDFromTime(t time.Time) ObjectID {
	var id ObjectID
	binary.BigEndian.PutUint32(id[0:4], uint32(t.Unix()))
	copy(id[4:9], objectIDProcess[:])
	n := objectIDCounter.Add(1)
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	return id
}

// ParseObjectID parses the 24 hexadecimal digits of an ObjectID.
func ParseObjectID(s string) (ObjectID, error) {
	var id ObjectID
	if len(s) != 24 {
		return id, fmt.Errorf("bson: parse ObjectID: want 24 hexadecimal digits, got %d characters", len(s))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return NilObjectID, fmt.Errorf("bson: parse ObjectID: %w", err)
	}
	return id, nil
}

// Hex returns the 24 hexadecimal digits of id.
func (id ObjectID) Hex() string { return hex.EncodeToString(id[:]) }

// String returns id as ObjectID("…").
func (id ObjectID) String() string { return `ObjectID("` + id.Hex() + `")` }

// IsZero reports whether all bytes of id are zero.
func (id ObjectID) IsZero() bool { return id == NilObjectID }

// Timestamp returns the time that id was made, in whole seconds, in UTC.
func (id ObjectID) Timestamp() time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(id[0:4])), 0).UTC()
}

// MarshalText returns the 24 hexadecimal digits.
func (id ObjectID) MarshalText() ([]byte, error) { return []byte(id.Hex()), nil }

// UnmarshalText parses what MarshalText returns; empty text gives NilObjectID.
func (id *ObjectID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = NilObjectID
		return nil
	}
	v, err := ParseObjectID(string(b))
	if err == nil {
		*id = v
	}
	return err
}
