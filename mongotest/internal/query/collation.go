package query

import "bytes"

// Collation is how strings compare; a nil *Collation compares bytes.
type Collation struct{}

// CompareBytes compares two strings in UTF-8.
func (c *Collation) CompareBytes(a, b []byte) int { return bytes.Compare(a, b) }
