// Package docid compares values of _id as servers do, as far as that can be said without a server:
// a collection may have a collation, and numbers of several types are equal.
package docid

import (
	"math"

	"allium/bson"
)

// Key returns what two _ids have in common that are equal for every server, and whether there is
// such a thing. Integers of all widths are equal, and so are whole doubles. A document, an array, a
// regular expression, a decimal and a fraction have no key.
func Key(id bson.RawValue) (string, bool) {
	switch id.Type {
	case bson.TypeDouble:
		f, _ := id.Double()
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return "", false
		}
		return integer(int64(f)), true
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := id.AsInt64()
		return integer(n), true
	case bson.TypeString, bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime, bson.TypeTimestamp:
		return string(append([]byte{byte(id.Type)}, id.Value...)), true
	}
	return "", false
}

func integer(n int64) string {
	return string(bson.AppendInt64Value([]byte{byte(bson.TypeInt64)}, n))
}
