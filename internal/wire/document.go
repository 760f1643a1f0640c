package wire

import (
	"errors"
	"fmt"

	"allium/bson"
)

// CheckDocument checks that the elements of a document can be read to its end, and those of the
// documents and arrays in it down to the given number of levels, of which the document itself is
// the first. Iterating over a document ends silently at an element that is broken, so that whoever
// looks for a field in a document from outside calls this first.
func CheckDocument(doc bson.Raw, levels int) error {
	b := doc.Elements()
	if b == nil {
		return errors.New("the document's length and its end do not match")
	}
	for len(b) > 0 {
		key, v, rest, err := bson.ReadElement(b)
		if err != nil {
			if key == "" {
				return err
			}
			return fmt.Errorf("%q: %w", key, err)
		}
		if levels > 1 && (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) {
			if err := CheckDocument(v.Value, levels-1); err != nil {
				return fmt.Errorf("%q: %w", key, err)
			}
		}
		b = rest
	}
	return nil
}
