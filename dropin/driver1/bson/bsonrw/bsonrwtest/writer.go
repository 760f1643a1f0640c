package bsonrwtest

import (
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/primitive"
)

// WriteArray begins an array, which the ValueReaderWriter itself writes.
func (llvrw *ValueReaderWriter) WriteArray() (bsonrw.ArrayWriter, error) {
	if err := llvrw.called(WriteArray); err != nil {
		return nil, err
	}
	return llvrw, nil
}

// WriteDocument begins a document, which the ValueReaderWriter itself writes.
func (llvrw *ValueReaderWriter) WriteDocument() (bsonrw.DocumentWriter, error) {
	if err := llvrw.called(WriteDocument); err != nil {
		return nil, err
	}
	return llvrw, nil
}

// WriteArrayElement begins a value of an array, which the ValueReaderWriter itself writes.
func (llvrw *ValueReaderWriter) WriteArrayElement() (bsonrw.ValueWriter, error) {
	if err := llvrw.called(WriteArrayElement); err != nil {
		return nil, err
	}
	return llvrw, nil
}

// WriteDocumentElement begins an element of a document, which the ValueReaderWriter itself writes.
func (llvrw *ValueReaderWriter) WriteDocumentElement(string) (bsonrw.ValueWriter, error) {
	if err := llvrw.called(WriteDocumentElement); err != nil {
		return nil, err
	}
	return llvrw, nil
}

// WriteCodeWithScope writes code; the ValueReaderWriter itself writes the scope.
func (llvrw *ValueReaderWriter) WriteCodeWithScope(string) (bsonrw.DocumentWriter, error) {
	if err := llvrw.called(WriteCodeWithScope); err != nil {
		return nil, err
	}
	return llvrw, nil
}

// WriteArrayEnd ends an array.
func (llvrw *ValueReaderWriter) WriteArrayEnd() error { return llvrw.called(WriteArrayEnd) }

// WriteDocumentEnd ends a document.
func (llvrw *ValueReaderWriter) WriteDocumentEnd() error { return llvrw.called(WriteDocumentEnd) }

// WriteBinary writes a binary.
func (llvrw *ValueReaderWriter) WriteBinary([]byte) error { return llvrw.called(WriteBinary) }

// WriteBinaryWithSubtype writes a binary.
func (llvrw *ValueReaderWriter) WriteBinaryWithSubtype([]byte, byte) error {
	return llvrw.called(WriteBinaryWithSubtype)
}

// WriteBoolean writes a boolean.
func (llvrw *ValueReaderWriter) WriteBoolean(bool) error { return llvrw.called(WriteBoolean) }

// WriteDBPointer writes a DBPointer.
func (llvrw *ValueReaderWriter) WriteDBPointer(string, primitive.ObjectID) error {
	return llvrw.called(WriteDBPointer)
}

// WriteDateTime writes a date.
func (llvrw *ValueReaderWriter) WriteDateTime(int64) error { return llvrw.called(WriteDateTime) }

// WriteDecimal128 writes a Decimal128.
func (llvrw *ValueReaderWriter) WriteDecimal128(primitive.Decimal128) error {
	return llvrw.called(WriteDecimal128)
}

// WriteDouble writes a double.
func (llvrw *ValueReaderWriter) WriteDouble(float64) error { return llvrw.called(WriteDouble) }

// WriteInt32 writes an integer.
func (llvrw *ValueReaderWriter) WriteInt32(int32) error { return llvrw.called(WriteInt32) }

// WriteInt64 writes an integer.
func (llvrw *ValueReaderWriter) WriteInt64(int64) error { return llvrw.called(WriteInt64) }

// WriteJavascript writes code.
func (llvrw *ValueReaderWriter) WriteJavascript(string) error { return llvrw.called(WriteJavascript) }

// WriteMaxKey writes a MaxKey.
func (llvrw *ValueReaderWriter) WriteMaxKey() error { return llvrw.called(WriteMaxKey) }

// WriteMinKey writes a MinKey.
func (llvrw *ValueReaderWriter) WriteMinKey() error { return llvrw.called(WriteMinKey) }

// WriteNull writes null.
func (llvrw *ValueReaderWriter) WriteNull() error { return llvrw.called(WriteNull) }

// WriteObjectID writes an ObjectID.
func (llvrw *ValueReaderWriter) WriteObjectID(primitive.ObjectID) error {
	return llvrw.called(WriteObjectID)
}

// WriteRegex writes a regular expression.
func (llvrw *ValueReaderWriter) WriteRegex(string, string) error { return llvrw.called(WriteRegex) }

// WriteString writes a string.
func (llvrw *ValueReaderWriter) WriteString(string) error { return llvrw.called(WriteString) }

// WriteSymbol writes a symbol.
func (llvrw *ValueReaderWriter) WriteSymbol(string) error { return llvrw.called(WriteSymbol) }

// WriteTimestamp writes a timestamp.
func (llvrw *ValueReaderWriter) WriteTimestamp(uint32, uint32) error {
	return llvrw.called(WriteTimestamp)
}

// WriteUndefined writes undefined.
func (llvrw *ValueReaderWriter) WriteUndefined() error { return llvrw.called(WriteUndefined) }
