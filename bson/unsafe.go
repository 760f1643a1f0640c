package bson

// This file is the package's only one that imports unsafe.

import "unsafe"

// viewString returns b as a string that shares its memory. It is sound as long as nobody writes to b while the
// string is in use, which is what Raw's documentation asks of its users.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
