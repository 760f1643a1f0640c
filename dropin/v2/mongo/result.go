package mongo

import (
	"reflect"

	abson "allium/bson"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A SingleResult is the document that an operation has returned, or its error.
type SingleResult struct {
	// Acknowledged is false if the server has not answered, as the write concern wants.
	Acknowledged bool

	coder
	doc bson.Raw
	err error
}

// NewSingleResultFromDocument returns a result with a document and an error.
func NewSingleResultFromDocument(document any, err error, registry *bson.Registry) *SingleResult {
	if document == nil {
		return &SingleResult{err: ErrNilDocument}
	}
	if err != nil {
		return &SingleResult{err: err}
	}
	c := coder{registry: registry}
	doc, err := c.way().Marshal(document)
	return &SingleResult{coder: c, doc: bson.Raw(doc), err: err}
}

// Decode decodes the document into the variable that v points to.
func (sr *SingleResult) Decode(v any) error {
	if err := sr.Err(); err != nil {
		return err
	}
	return sr.way().Unmarshal(abson.TypeEmbeddedDocument, sr.doc, v)
}

// Raw returns the document.
func (sr *SingleResult) Raw() (bson.Raw, error) {
	if sr.err != nil {
		return sr.doc, sr.err
	}
	return sr.doc, sr.Err()
}

// Err returns the error of the operation, ErrNoDocuments if there is no document.
func (sr *SingleResult) Err() error {
	if sr.err == nil && sr.doc == nil {
		return ErrNoDocuments
	}
	return sr.err
}

// A DistinctResult has the values that Distinct has found, or its error.
type DistinctResult struct {
	coder
	array bson.RawArray
	err   error
}

// Decode decodes the values into the slice that v points to.
func (dr *DistinctResult) Decode(v any) error {
	if err := dr.Err(); err != nil {
		return err
	}
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Slice {
		return dr.way().Unmarshal(abson.TypeArray, dr.array, v)
	}
	fresh := reflect.New(p.Type().Elem()) // what does not decode leaves v as it is
	if err := dr.way().Unmarshal(abson.TypeArray, dr.array, fresh.Interface()); err != nil {
		return err
	}
	p.Elem().Set(fresh.Elem())
	return nil
}

// Err returns the error of the operation.
func (dr *DistinctResult) Err() error { return dr.err }

// Raw returns the values as an array.
func (dr *DistinctResult) Raw() (bson.RawArray, error) { return dr.array, dr.err }
