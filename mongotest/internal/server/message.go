package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// maxNesting is how deep the documents of a message may nest, the outermost one included.
const maxNesting = 201

// validateMessage refuses a message whose documents are malformed: nothing behind it has to expect
// that.
func (r *Request) validateMessage() error {
	if err := validateDocument(r.Body); err != nil {
		return err
	}
	for i, s := range r.Sequences {
		if !r.Body.Lookup(s.ID).IsZero() {
			return srverr.New(40433, "Duplicate field between body and document sequence %s", s.ID)
		}
		for _, other := range r.Sequences[:i] {
			if other.ID == s.ID {
				return srverr.New(40431, "Duplicate document sequence: %s", s.ID)
			}
		}
		for docs := s.Docs; len(docs) > 0; {
			doc, rest, err := bson.ReadDocument(docs)
			if err != nil {
				return srverr.New(srverr.InvalidBSON, "%s", err)
			}
			if err := validateDocument(doc); err != nil {
				return err
			}
			docs = rest
		}
	}
	return nil
}

func validateDocument(doc bson.Raw) error {
	err := doc.Validate()
	if err == nil {
		return nil
	}
	if nesting(doc, maxNesting+1) > maxNesting {
		return srverr.New(srverr.Overflow, "BSONObj exceeded maximum nested object depth: %d", maxNesting-1)
	}
	text := err.Error()
	if strings.Contains(text, "nest") || strings.Contains(text, "UTF-8") {
		return nil // the server's limit is a little higher, and it takes strings as they are
	}
	return srverr.New(srverr.InvalidBSON, "%s", strings.TrimPrefix(text, "bson: "))
}

// nesting returns how deep the document nests, counting no further than limit.
func nesting(doc bson.Raw, limit int) int {
	deepest := 0
	if limit > 1 {
		for _, v := range doc.All() {
			if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
				deepest = max(deepest, nesting(v.Value, limit-1))
			}
		}
	}
	return deepest + 1
}
