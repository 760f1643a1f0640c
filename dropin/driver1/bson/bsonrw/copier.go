package bsonrw

import (
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A Copier copies values from readers to writers.
//
// Deprecated: encode and decode instead.
type Copier struct{}

// NewCopier returns a Copier.
//
// Deprecated: encode and decode instead.
func NewCopier() Copier { return Copier{} }

// CopyDocument copies a document.
//
// Deprecated: encode and decode instead.
func CopyDocument(dst ValueWriter, src ValueReader) error { return Copier{}.CopyDocument(dst, src) }

// CopyDocument copies a document.
func (c Copier) CopyDocument(dst ValueWriter, src ValueReader) error {
	doc, err := c.CopyDocumentToBytes(src)
	if err != nil {
		return err
	}
	return c.CopyDocumentFromBytes(dst, doc)
}

// CopyDocumentFromBytes writes an encoded document.
func (Copier) CopyDocumentFromBytes(dst ValueWriter, src []byte) error {
	return coding.WriteValue(dst, bsontype.EmbeddedDocument, src)
}

// CopyArrayFromBytes writes an encoded array.
func (Copier) CopyArrayFromBytes(dst ValueWriter, src []byte) error {
	return coding.WriteValue(dst, bsontype.Array, src)
}

// CopyValueFromBytes writes an encoded value.
func (Copier) CopyValueFromBytes(dst ValueWriter, t bsontype.Type, src []byte) error {
	return coding.WriteValue(dst, t, src)
}

// CopyBytesToDocumentWriter writes the elements of an encoded document, and ends that of dst.
func (Copier) CopyBytesToDocumentWriter(dst DocumentWriter, src []byte) error {
	elems, err := bsoncore.Document(src).Elements()
	if err != nil {
		return err
	}
	for _, e := range elems {
		vw, err := dst.WriteDocumentElement(e.Key())
		if err != nil {
			return err
		}
		if err := coding.WriteValue(vw, bsontype.Type(e.Value().Type), e.Value().Data); err != nil {
			return err
		}
	}
	return dst.WriteDocumentEnd()
}

// CopyBytesToArrayWriter writes the values of an encoded array, and ends that of dst.
func (Copier) CopyBytesToArrayWriter(dst ArrayWriter, src []byte) error {
	values, err := bsoncore.Array(src).Values()
	if err != nil {
		return err
	}
	for _, v := range values {
		vw, err := dst.WriteArrayElement()
		if err != nil {
			return err
		}
		if err := coding.WriteValue(vw, bsontype.Type(v.Type), v.Data); err != nil {
			return err
		}
	}
	return dst.WriteArrayEnd()
}

// CopyDocumentToBytes reads a document.
func (c Copier) CopyDocumentToBytes(src ValueReader) ([]byte, error) {
	return c.AppendDocumentBytes(nil, src)
}

// AppendDocumentBytes reads a document, and appends it.
func (c Copier) AppendDocumentBytes(dst []byte, src ValueReader) ([]byte, error) {
	_, dst, err := c.AppendValueBytes(dst, src)
	return dst, err
}

// AppendArrayBytes reads an array, and appends it.
func (c Copier) AppendArrayBytes(dst []byte, src ValueReader) ([]byte, error) {
	_, dst, err := c.AppendValueBytes(dst, src)
	return dst, err
}

// CopyValueToBytes reads a value.
func (c Copier) CopyValueToBytes(src ValueReader) (bsontype.Type, []byte, error) {
	return c.AppendValueBytes(nil, src)
}

// AppendValueBytes reads a value, and appends it.
func (Copier) AppendValueBytes(dst []byte, src ValueReader) (bsontype.Type, []byte, error) {
	t, data, err := coding.ReadValue(src)
	if err != nil {
		return 0, dst, err
	}
	return t, append(dst, data...), nil
}

// CopyValue copies a value.
func (Copier) CopyValue(dst ValueWriter, src ValueReader) error {
	t, data, err := coding.ReadValue(src)
	if err != nil {
		return err
	}
	return coding.WriteValue(dst, t, data)
}
