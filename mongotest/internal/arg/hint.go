package arg

import (
	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// Hint checks a hint: an index name or a key pattern.
func Hint(v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeString && v.Type != bson.TypeEmbeddedDocument {
		return v, srverr.New(srverr.FailedToParse, "Hint must be a string or an object")
	}
	return v, nil
}
