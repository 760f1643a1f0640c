package bsonrwtest

import (
	"testing"

	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// A ValueReaderWriter is a reader and a writer of values, arrays and documents for one test. What
// is written is lost.
type ValueReaderWriter struct {
	T        *testing.T    // fails if Return is not what the method that is called returns
	Invoked  Invoked       // the method that was called last
	Return   interface{}   // what a method returns that reads: its value, or of some a bsoncore.Value
	BSONType bsontype.Type // what Type returns
	Err      error         // what the method ErrAfter returns
	ErrAfter Invoked
}

var (
	_ bsonrw.ValueReader    = (*ValueReaderWriter)(nil)
	_ bsonrw.ValueWriter    = (*ValueReaderWriter)(nil)
	_ bsonrw.ArrayReader    = (*ValueReaderWriter)(nil)
	_ bsonrw.ArrayWriter    = (*ValueReaderWriter)(nil)
	_ bsonrw.DocumentReader = (*ValueReaderWriter)(nil)
	_ bsonrw.DocumentWriter = (*ValueReaderWriter)(nil)
)

// called notes the call of a method, and returns its error.
func (llvrw *ValueReaderWriter) called(method Invoked) error {
	llvrw.Invoked = method
	if llvrw.ErrAfter == method {
		return llvrw.Err
	}
	return nil
}

// returned is what a method returns of Return. The test fails if it is of another type.
func returned[V any](llvrw *ValueReaderWriter, method Invoked) (v V, err error) {
	if err := llvrw.called(method); err != nil {
		return v, err
	}
	v, ok := llvrw.Return.(V)
	if !ok {
		llvrw.T.Errorf("%v was called, and Return is a %T, not a %T", method, llvrw.Return, v)
	}
	return v, nil
}

// encoded returns the bytes of Return, which must be a bsoncore.Value; read says whether they
// are what the method returns.
func (llvrw *ValueReaderWriter) encoded(method Invoked, read func(data []byte) bool) error {
	if err := llvrw.called(method); err != nil {
		return err
	}
	if v, ok := llvrw.Return.(bsoncore.Value); !ok {
		llvrw.T.Errorf("%v was called, and Return is a %T, not a bsoncore.Value", method, llvrw.Return)
	} else if !read(v.Data) {
		llvrw.T.Errorf("%v was called, and Return is another value: %v", method, v)
	}
	return nil
}

// core reports whether Return is a bsoncore.Value.
func (llvrw *ValueReaderWriter) core() bool {
	_, ok := llvrw.Return.(bsoncore.Value)
	return ok
}

// Type returns BSONType.
func (llvrw *ValueReaderWriter) Type() bsontype.Type { return llvrw.BSONType }

// Skip skips the value.
func (llvrw *ValueReaderWriter) Skip() error { return llvrw.called(Skip) }
