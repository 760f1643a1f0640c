package bson

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"
)

// ObjectID is a BSON ObjectID: 4 bytes of seconds since the Unix epoch, 5 bytes of a value that is
// random per process, and a 3-byte counter. ObjectIDs of one process sort by age.
type ObjectID [12]byte

// NilObjectID is the ObjectID whose bytes are all zero.
var NilObjectID ObjectID

// objectIDSource makes the parts of an ObjectID that set a process apart.
type objectIDSource struct {
	process [5]byte
	counter atomic.Uint32 // its low 24 bits count, so that it wraps from 0xFFFFFF to 0
	mark    forkMark
}

var objectIDs atomic.Pointer[objectIDSource]

func init() { objectIDs.Store(newObjectIDSource()) }

func newObjectIDSource() *objectIDSource {
	s := &objectIDSource{mark: newForkMark()}
	var seed [9]byte
	rand.Read(seed[:]) // never fails (crypto/rand)
	copy(s.process[:], seed[:5])
	s.counter.Store(binary.BigEndian.Uint32(seed[5:]))
	return s
}

// NewObjectID returns a new, unique ObjectID. It is safe for concurrent use.
func NewObjectID() ObjectID { return NewObjectIDFromTime(time.Now()) }

// NewObjectIDFromTime returns a new ObjectID whose timestamp part is t, in whole seconds. It is
// safe for concurrent use. To search for documents by age, use MinObjectID.
func NewObjectIDFromTime(t time.Time) ObjectID {
	s := objectIDs.Load()
	// A copy of this process must not go on with its random value and counter.
	if s.mark.copied() {
		objectIDs.CompareAndSwap(s, newObjectIDSource())
		s = objectIDs.Load()
	}
	var id ObjectID
	binary.BigEndian.PutUint32(id[0:4], uint32(t.Unix()))
	copy(id[4:9], s.process[:])
	n := s.counter.Add(1)
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	return id
}

// MinObjectID returns the lowest ObjectID of t's second: every ObjectID that was made at t or later
// is at least this one.
func MinObjectID(t time.Time) ObjectID {
	var id ObjectID
	binary.BigEndian.PutUint32(id[0:4], uint32(t.Unix()))
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

// Compare returns -1, 0 or +1 as id sorts before, with or after other.
func (id ObjectID) Compare(other ObjectID) int { return bytes.Compare(id[:], other[:]) }

// Timestamp returns the time that id was made, in whole seconds, in UTC. It ends in the year 2106.
func (id ObjectID) Timestamp() time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(id[0:4])), 0).UTC()
}

// MarshalText returns the 24 hexadecimal digits. In JSON, id is a string of them.
func (id ObjectID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText parses what MarshalText returns. Empty text is an error: no id is not the id of
// zeros.
func (id *ObjectID) UnmarshalText(b []byte) error {
	v, err := ParseObjectID(string(b))
	if err == nil {
		*id = v
	}
	return err
}

// MarshalJSON returns a string of the 24 hexadecimal digits.
func (id ObjectID) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 26), '"')
	out = hex.AppendEncode(out, id[:])
	return append(out, '"'), nil
}

// UnmarshalJSON reads a string of 24 hexadecimal digits, or the {"$oid": "..."} of Extended JSON.
// An empty string is an error; null leaves id as it is.
func (id *ObjectID) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, id, func(v RawValue) (ObjectID, bool) {
		var got ObjectID
		if s, ok := v.StringBytes(); ok {
			return got, got.UnmarshalText(s) == nil
		}
		return v.ObjectID()
	})
}
