package bson

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
)

// An Encoder writes documents to a stream, one after the other, as files of mongodump hold them. It
// is not safe for concurrent use.
type Encoder struct {
	w   io.Writer
	cfg *config
	buf []byte
	err error
}

// NewEncoder returns an Encoder that writes to w. Every document is one call of Write.
func NewEncoder(w io.Writer) *Encoder { return Options{}.NewEncoder(w) }

// NewEncoder is the function NewEncoder with these options.
func (o Options) NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w, cfg: o.config()} }

// Encode writes v as Marshal encodes it. If v cannot be encoded, nothing is written, and Encode can
// be called again. After an error of the writer, every call returns that error.
func (e *Encoder) Encode(v any) error {
	if e.err != nil {
		return e.err
	}
	buf, err := e.cfg.marshalAppend(e.buf[:0], v)
	if err != nil {
		return err
	}
	if e.buf = buf; cap(buf) > mostScratch {
		e.buf = nil
	}
	if _, err := e.w.Write(buf); err != nil {
		e.err = fmt.Errorf("bson: write a document: %w", err)
	}
	return e.err
}

// A Decoder reads documents from a stream, one after the other. It is not safe for concurrent use.
// It never reads beyond the end of a document: give it a bufio.Reader if the reader is not
// buffered.
type Decoder struct {
	r       io.Reader
	cfg     *config
	buf     []byte
	max     int
	decoded int64
	err     error
}

// NewDecoder returns a Decoder that reads from r.
func NewDecoder(r io.Reader) *Decoder { return Options{}.NewDecoder(r) }

// NewDecoder is the function NewDecoder with these options.
func (o Options) NewDecoder(r io.Reader) *Decoder {
	return &Decoder{r: r, cfg: o.config(), max: math.MaxInt32}
}

// SetMaxSize makes documents of more than n bytes an error. Without it only BSON's own limit, 2
// GiB, holds; memory is allocated as the bytes arrive, so a wrong length alone costs nothing.
func (d *Decoder) SetMaxSize(n int) { d.max = n }

// Decode reads the next document into v, as Unmarshal does. At the end of the stream it returns
// io.EOF, and io.ErrUnexpectedEOF (wrapped) if the stream ends within a document. If a document
// does not fit v, the next one can be read; after other errors the decoder stops.
func (d *Decoder) Decode(v any) error {
	doc, err := d.next()
	if err != nil {
		return err
	}
	return d.cfg.unmarshal(TypeEmbeddedDocument, doc, v)
}

// Next reads the next document without decoding it. Its memory is reused by the next call of Next
// or Decode.
func (d *Decoder) Next() (Raw, error) { return d.next() }

// All iterates over the documents that are left, up to the end of the stream. An error is the last
// thing that it yields. The documents share memory as those of Next do.
func (d *Decoder) All() iter.Seq2[Raw, error] {
	return func(yield func(Raw, error) bool) {
		for {
			doc, err := d.next()
			if err == io.EOF || !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

func (d *Decoder) next() (Raw, error) {
	if d.err != nil {
		return nil, d.err
	}
	doc, err := d.read()
	if err != nil {
		if err != io.EOF {
			err = fmt.Errorf("bson: read the document at byte %d: %w", d.decoded, err)
		}
		d.err = err
		return nil, err
	}
	d.decoded += int64(len(doc))
	return doc, nil
}

func (d *Decoder) read() (Raw, error) {
	if cap(d.buf) > mostScratch {
		d.buf = nil
	}
	if d.buf == nil {
		d.buf = make([]byte, 0, 512)
	}
	buf := d.buf[:4]
	if _, err := io.ReadFull(d.r, buf); err != nil {
		return nil, err
	}
	size := int(int32(binary.LittleEndian.Uint32(buf)))
	switch {
	case size < 5:
		return nil, fmt.Errorf("length %d, want at least 5", size)
	case size > d.max:
		return nil, fmt.Errorf("length %d, the limit is %d", size, d.max)
	}
	// Room for what has come, and as much again: a length is only believed once there are bytes for
	// it.
	for len(buf) < size {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(2*cap(buf), size))
			copy(grown, buf)
			buf = grown
		}
		n, err := io.ReadFull(d.r, buf[len(buf):min(cap(buf), size)])
		buf = buf[:len(buf)+n]
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	d.buf = buf
	if buf[size-1] != 0 {
		return nil, errors.New("it does not end with a NUL byte")
	}
	return Raw(buf), nil
}
