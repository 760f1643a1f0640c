package bsoncore

import (
	"errors"
	"io"
)

// A DocumentSequenceStyle says how the documents of a DocumentSequence are stored.
type DocumentSequenceStyle uint32

// The styles.
const (
	_             DocumentSequenceStyle = iota
	SequenceStyle                       // one document behind the other
	ArrayStyle                          // the values of an array
)

// The errors of a DocumentSequence.
var (
	// ErrCorruptedDocument is the error for a document that is not whole.
	ErrCorruptedDocument = errors.New("invalid DocumentSequence: corrupted document")
	// ErrNonDocument is the error for an array with a value that is no document.
	ErrNonDocument = errors.New("invalid DocumentSequence: a non-document value was found in sequence")
	// ErrInvalidDocumentSequenceStyle is the error for a style that is none.
	ErrInvalidDocumentSequenceStyle = errors.New("invalid DocumentSequenceStyle")
)

// A DocumentSequence has documents, and gives one after the other.
type DocumentSequence struct {
	Style DocumentSequenceStyle
	Data  []byte
	Pos   int
}

// DocumentCount returns how many documents there are, 0 if one is broken.
func (ds *DocumentSequence) DocumentCount() int {
	docs, err := ds.Documents()
	if err != nil {
		return 0
	}
	return len(docs)
}

// Empty reports whether there is no document.
func (ds *DocumentSequence) Empty() bool {
	if ds == nil {
		return true
	}
	switch ds.Style {
	case SequenceStyle:
		return len(ds.Data) == 0
	case ArrayStyle:
		return len(ds.Data) <= EmptyDocumentLength
	}
	return true
}

// ResetIterator makes Next return the first document again.
func (ds *DocumentSequence) ResetIterator() {
	if ds != nil {
		ds.Pos = 0
	}
}

// Documents returns all documents.
func (ds *DocumentSequence) Documents() ([]Document, error) {
	if ds == nil || len(ds.Data) == 0 {
		return nil, nil
	}
	all := DocumentSequence{Style: ds.Style, Data: ds.Data}
	var docs []Document
	for {
		doc, err := all.Next()
		switch {
		case errors.Is(err, io.EOF):
			return docs, nil
		case err != nil:
			return nil, err
		}
		docs = append(docs, doc)
	}
}

// Next returns the next document, io.EOF behind the last.
func (ds *DocumentSequence) Next() (Document, error) {
	if ds == nil || ds.Pos >= len(ds.Data) {
		return nil, io.EOF
	}
	switch ds.Style {
	case SequenceStyle:
		doc, _, ok := ReadDocument(ds.Data[ds.Pos:])
		if !ok {
			return nil, ErrCorruptedDocument
		}
		ds.Pos += len(doc)
		return doc, nil
	case ArrayStyle:
		if ds.Pos < 4 {
			if len(ds.Data) < 4 {
				return nil, ErrCorruptedDocument
			}
			ds.Pos = 4
		}
		if len(ds.Data[ds.Pos:]) == 1 && ds.Data[ds.Pos] == 0 {
			return nil, io.EOF
		}
		elem, _, ok := ReadElement(ds.Data[ds.Pos:])
		if !ok {
			return nil, ErrCorruptedDocument
		}
		ds.Pos += len(elem)
		doc, ok := elem.Value().DocumentOK()
		if !ok {
			return nil, ErrNonDocument
		}
		return doc, nil
	}
	return nil, ErrInvalidDocumentSequenceStyle
}
