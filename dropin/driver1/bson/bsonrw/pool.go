package bsonrw

import (
	"bytes"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// The pools of this file keep nothing: readers and writers are small.

// A BSONValueReaderPool gives readers of documents.
//
// Deprecated: use NewBSONDocumentReader.
type BSONValueReaderPool struct{ _ [0]func() }

// NewBSONValueReaderPool returns a pool.
//
// Deprecated: use NewBSONDocumentReader.
func NewBSONValueReaderPool() *BSONValueReaderPool { return new(BSONValueReaderPool) }

// Get returns a reader of the document src.
func (*BSONValueReaderPool) Get(src []byte) ValueReader { return NewBSONDocumentReader(src) }

// Put takes a reader back, and reports whether it is one of the package's.
func (*BSONValueReaderPool) Put(vr ValueReader) (ok bool) { return coding.IsOwn(vr) }

// A BSONValueWriterPool gives writers of documents.
//
// Deprecated: use NewBSONValueWriter.
type BSONValueWriterPool struct{ _ [0]func() }

// NewBSONValueWriterPool returns a pool.
//
// Deprecated: use NewBSONValueWriter.
func NewBSONValueWriterPool() *BSONValueWriterPool { return new(BSONValueWriterPool) }

// Get returns a writer of documents to w.
func (*BSONValueWriterPool) Get(w io.Writer) ValueWriter { return bson.NewDocumentWriter(w) }

// GetAtModeElement returns a writer of one value, which Flush writes to w without its type.
func (*BSONValueWriterPool) GetAtModeElement(w io.Writer) ValueWriterFlusher {
	vw, written := coding.NewWriter()
	return &flusher{vw.(ValueWriter), func() error {
		_, data, err := written()
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}}
}

// Put takes a writer back, and reports whether it is one of the package's.
func (*BSONValueWriterPool) Put(vw ValueWriter) (ok bool) {
	if f, ok := vw.(*flusher); ok {
		vw = f.ValueWriter
	}
	return coding.IsOwn(vw)
}

type flusher struct {
	ValueWriter
	flush func() error
}

func (f *flusher) Flush() error { return f.flush() }

// An ExtJSONValueReaderPool gives readers of Extended JSON.
//
// Deprecated: use NewExtJSONValueReader.
type ExtJSONValueReaderPool struct{ _ [0]func() }

// NewExtJSONValueReaderPool returns a pool.
//
// Deprecated: use NewExtJSONValueReader.
func NewExtJSONValueReaderPool() *ExtJSONValueReaderPool { return new(ExtJSONValueReaderPool) }

// Get returns a reader of the documents in r.
func (*ExtJSONValueReaderPool) Get(r io.Reader, canonical bool) (ValueReader, error) {
	return NewExtJSONValueReader(r, canonical)
}

// Put takes a reader back, and reports whether it is one of the package's.
func (*ExtJSONValueReaderPool) Put(vr ValueReader) (ok bool) { return coding.IsOwn(vr) }

// An ExtJSONValueWriterPool gives writers of Extended JSON.
//
// Deprecated: use NewExtJSONValueWriter.
type ExtJSONValueWriterPool struct{ _ [0]func() }

// NewExtJSONValueWriterPool returns a pool.
//
// Deprecated: use NewExtJSONValueWriter.
func NewExtJSONValueWriterPool() *ExtJSONValueWriterPool { return new(ExtJSONValueWriterPool) }

// Get returns a writer of documents to w. Unlike NewExtJSONValueWriter's, they end without a line
// end.
func (*ExtJSONValueWriterPool) Get(w io.Writer, canonical, escapeHTML bool) ValueWriter {
	return bson.NewExtJSONValueWriter(withoutEnds{w}, canonical, escapeHTML)
}

// withoutEnds writes texts, each at once, without the line end that they have.
type withoutEnds struct{ w io.Writer }

func (w withoutEnds) Write(p []byte) (int, error) {
	n, err := w.w.Write(bytes.TrimSuffix(p, []byte("\n")))
	if err == nil {
		n = len(p)
	}
	return n, err
}

// Put takes a writer back, and reports whether it is one of the package's.
func (*ExtJSONValueWriterPool) Put(vw ValueWriter) (ok bool) { return coding.IsOwn(vw) }
