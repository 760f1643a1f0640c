package allium_test

import (
	"allium/bson"
)

// nested returns a document that nests n levels deep.
func nested(n int) []byte {
	doc := []byte{5, 0, 0, 0, 0}
	for range n {
		start, d := bson.BeginDocument(nil)
		doc = bson.EndDocument(bson.AppendDocument(d, "a", doc), start)
	}
	return doc
}
