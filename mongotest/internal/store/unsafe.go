package store

import "unsafe"

// viewString returns the bytes as a string without copying them; it must not outlive them.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
