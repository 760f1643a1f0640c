package query

import (
	"bytes"

	"allium/bson"
)

// Collation is how strings compare; a nil *Collation compares bytes.
type Collation struct{}

// CompareBytes compares two strings in UTF-8.
func (c *Collation) CompareBytes(a, b []byte) int { return bytes.Compare(a, b) }

// ParseCollation parses a collation specification. A nil *Collation is the simple one.
func ParseCollation(spec bson.Raw, version int) (*Collation, error) { return nil, nil }
