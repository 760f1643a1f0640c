package bsonrwtest

import (
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// ReadArray begins an array, which the ValueReaderWriter itself reads.
func (llvrw *ValueReaderWriter) ReadArray() (bsonrw.ArrayReader, error) {
	if err := llvrw.called(ReadArray); err != nil {
		return nil, err
	}
	return llvrw, nil
}

// ReadDocument begins a document, which the ValueReaderWriter itself reads.
func (llvrw *ValueReaderWriter) ReadDocument() (bsonrw.DocumentReader, error) {
	if err := llvrw.called(ReadDocument); err != nil {
		return nil, err
	}
	return llvrw, nil
}

// ReadValue begins the next value of an array, which the ValueReaderWriter itself reads.
func (llvrw *ValueReaderWriter) ReadValue() (bsonrw.ValueReader, error) {
	if err := llvrw.called(ReadValue); err != nil {
		return nil, err
	}
	return llvrw, nil
}

// ReadElement begins the next element of a document, with an empty key, which the ValueReaderWriter
// itself reads.
func (llvrw *ValueReaderWriter) ReadElement() (string, bsonrw.ValueReader, error) {
	if err := llvrw.called(ReadElement); err != nil {
		return "", nil, err
	}
	return "", llvrw, nil
}

// ReadCodeWithScope returns no code, and the ValueReaderWriter itself for the scope.
func (llvrw *ValueReaderWriter) ReadCodeWithScope() (code string, dr bsonrw.DocumentReader, err error) {
	if err := llvrw.called(ReadCodeWithScope); err != nil {
		return "", nil, err
	}
	return "", llvrw, nil
}

// ReadDateTime returns Return, which must be an int64.
func (llvrw *ValueReaderWriter) ReadDateTime() (int64, error) {
	return returned[int64](llvrw, ReadDateTime)
}

// ReadDecimal128 returns Return, which must be a Decimal128.
func (llvrw *ValueReaderWriter) ReadDecimal128() (primitive.Decimal128, error) {
	return returned[primitive.Decimal128](llvrw, ReadDecimal128)
}

// ReadDouble returns Return, which must be a float64.
func (llvrw *ValueReaderWriter) ReadDouble() (float64, error) {
	return returned[float64](llvrw, ReadDouble)
}

// ReadInt32 returns Return, which must be an int32.
func (llvrw *ValueReaderWriter) ReadInt32() (int32, error) {
	return returned[int32](llvrw, ReadInt32)
}

// ReadInt64 returns Return, which must be an int64.
func (llvrw *ValueReaderWriter) ReadInt64() (int64, error) {
	return returned[int64](llvrw, ReadInt64)
}

// ReadJavascript returns Return, which must be a string.
func (llvrw *ValueReaderWriter) ReadJavascript() (code string, err error) {
	return returned[string](llvrw, ReadJavascript)
}

// ReadObjectID returns Return, which must be an ObjectID.
func (llvrw *ValueReaderWriter) ReadObjectID() (primitive.ObjectID, error) {
	return returned[primitive.ObjectID](llvrw, ReadObjectID)
}

// ReadString returns Return, which must be a string.
func (llvrw *ValueReaderWriter) ReadString() (string, error) {
	return returned[string](llvrw, ReadString)
}

// ReadBoolean returns Return, which must be a bool or a bsoncore.Value.
func (llvrw *ValueReaderWriter) ReadBoolean() (b bool, err error) {
	if !llvrw.core() {
		return returned[bool](llvrw, ReadBoolean)
	}
	err = llvrw.encoded(ReadBoolean, func(data []byte) (ok bool) {
		b, _, ok = bsoncore.ReadBoolean(data)
		return ok
	})
	return b, err
}

// ReadSymbol returns Return, which must be a string or a bsoncore.Value.
func (llvrw *ValueReaderWriter) ReadSymbol() (symbol string, err error) {
	if !llvrw.core() {
		return returned[string](llvrw, ReadSymbol)
	}
	err = llvrw.encoded(ReadSymbol, func(data []byte) (ok bool) {
		symbol, _, ok = bsoncore.ReadSymbol(data)
		return ok
	})
	return symbol, err
}

// ReadBinary returns Return, which must be a bsoncore.Value.
func (llvrw *ValueReaderWriter) ReadBinary() (b []byte, btype byte, err error) {
	err = llvrw.encoded(ReadBinary, func(data []byte) (ok bool) {
		btype, b, _, ok = bsoncore.ReadBinary(data)
		return ok
	})
	return b, btype, err
}

// ReadDBPointer returns Return, which must be a bsoncore.Value.
func (llvrw *ValueReaderWriter) ReadDBPointer() (ns string, oid primitive.ObjectID, err error) {
	err = llvrw.encoded(ReadDBPointer, func(data []byte) (ok bool) {
		ns, oid, _, ok = bsoncore.ReadDBPointer(data)
		return ok
	})
	return ns, oid, err
}

// ReadRegex returns Return, which must be a bsoncore.Value.
func (llvrw *ValueReaderWriter) ReadRegex() (pattern string, options string, err error) {
	err = llvrw.encoded(ReadRegex, func(data []byte) (ok bool) {
		pattern, options, _, ok = bsoncore.ReadRegex(data)
		return ok
	})
	return pattern, options, err
}

// ReadTimestamp returns Return, which must be a bsoncore.Value.
func (llvrw *ValueReaderWriter) ReadTimestamp() (t uint32, i uint32, err error) {
	err = llvrw.encoded(ReadTimestamp, func(data []byte) (ok bool) {
		t, i, _, ok = bsoncore.ReadTimestamp(data)
		return ok
	})
	return t, i, err
}

// ReadMaxKey reads a MaxKey.
func (llvrw *ValueReaderWriter) ReadMaxKey() error { return llvrw.called(ReadMaxKey) }

// ReadMinKey reads a MinKey.
func (llvrw *ValueReaderWriter) ReadMinKey() error { return llvrw.called(ReadMinKey) }

// ReadNull reads null.
func (llvrw *ValueReaderWriter) ReadNull() error { return llvrw.called(ReadNull) }

// ReadUndefined reads undefined.
func (llvrw *ValueReaderWriter) ReadUndefined() error { return llvrw.called(ReadUndefined) }
