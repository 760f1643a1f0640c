// Package uuid makes random UUIDs. The official driver had it up to version 1.9; programs of that
// time still compile.
package uuid

import "crypto/rand"

// A UUID is 16 bytes.
type UUID [16]byte

// New returns a random UUID, of version 4.
func New() (UUID, error) {
	var id UUID
	if _, err := rand.Read(id[:]); err != nil {
		return UUID{}, err
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id, nil
}

// Equal reports whether both are the same.
func Equal(a, b UUID) bool { return a == b }
