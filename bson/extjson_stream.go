package bson

// Extended JSON over readers and writers: files of documents, as mongoexport writes and mongoimport
// reads them.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// ExtJSONDecoder reads documents of Extended JSON from a stream, one after another with or without
// white space between them, or out of one array. It holds one document's text at a time. It is not
// safe for concurrent use.
type ExtJSONDecoder struct {
	// Options are for decoding into Go values. Set it and the other fields before the first call.
	Options Options
	// Legacy accepts what ParseLegacyExtJSON accepts.
	Legacy bool
	// LegacyValues accepts of that only dates, as numbers and with zones without a colon, and
	// binaries, which no query operator looks like. The name of a type wrapper behind another key
	// is a key like others then.
	LegacyValues bool
	// MaxBytes is how long the text of one document may be; 0 stands for 128 MiB.
	MaxBytes int

	from     io.Reader
	readErr  error
	buf      []byte // what is read and not yet used up
	offset   int64  // of buf in the stream
	state    streamState
	err      error // what every later call returns
	lastText int   // length of the text of the document before
}

type streamState uint8

const (
	streamStart streamState = iota
	streamDocuments
	streamArrayStart // after the opening bracket
	streamArray      // after a document
)

const defaultMaxText = 128 << 20

// NewExtJSONDecoder returns a decoder that reads from r. It reads ahead.
func NewExtJSONDecoder(r io.Reader) *ExtJSONDecoder { return &ExtJSONDecoder{from: r} }

// Decode reads the next document into v, as UnmarshalExtJSON does. At the end of the stream the
// error is io.EOF. An *ExtJSONError, whose offset counts from the start of the stream, and an error
// of the reader end decoding: later calls return them again. After an error of Unmarshal, Decode
// continues with the next document.
func (d *ExtJSONDecoder) Decode(v any) error {
	if raw, ok := v.(*Raw); ok {
		doc, err := d.Next()
		if err == nil {
			*raw = doc
		}
		return err
	}
	scratch := extJSONScratch.Get().(*[]byte)
	doc, err := d.append((*scratch)[:0])
	if err == nil {
		err = d.Options.Unmarshal(doc, v)
	}
	freeExtJSONScratch(scratch, doc)
	return err
}

// Next returns the next document. Its errors are those of Decode.
func (d *ExtJSONDecoder) Next() (Raw, error) {
	doc, err := d.append(make([]byte, 0, d.lastText+32))
	if err != nil {
		return nil, err
	}
	return doc, nil
}

// All iterates over the documents that are left. An error is yielded with a nil document, and is
// the last.
func (d *ExtJSONDecoder) All() iter.Seq2[Raw, error] {
	return func(yield func(Raw, error) bool) {
		for {
			doc, err := d.Next()
			if err == io.EOF || !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

// append appends the next document in BSON to dst.
func (d *ExtJSONDecoder) append(dst []byte) ([]byte, error) {
	if d.err != nil {
		return dst, d.err
	}
	n, err := d.find()
	if err != nil {
		d.err = err
		return dst, err
	}
	r := extJSONReader{src: d.buf[:n], dst: dst, base: d.offset, levels: d.Options.config().maxDepth,
		legacy: d.Legacy, values: d.LegacyValues}
	if d.err = r.document(); d.err != nil {
		return r.dst, d.err
	}
	d.lastText = n
	d.skip(n)
	return r.dst, nil
}

// find makes the next document's text the start of the buffer and returns its length. A text that
// ends early, or is no object at all, it leaves to the reader's error.
func (d *ExtJSONDecoder) find() (int, error) {
	c, err := d.space()
	if d.state == streamStart && err == nil {
		d.state = streamDocuments
		if c == '[' {
			d.state = streamArrayStart
			d.skip(1)
			c, err = d.space()
		}
	}
	if err == nil && d.state == streamArray && c == ',' {
		d.skip(1)
		_, err = d.space()
	} else if err == nil && d.state >= streamArrayStart {
		if c == ']' {
			return 0, d.endArray()
		}
		if d.state == streamArray {
			return 0, d.fail(errors.New("neither ',' nor ']' after a document in an array"))
		}
	}
	if err == io.EOF && d.state >= streamArrayStart {
		return 0, d.fail(io.ErrUnexpectedEOF)
	}
	if err != nil {
		return 0, err
	}
	if d.state == streamArrayStart {
		d.state = streamArray
	}
	return d.extent()
}

// endArray lets nothing but white space follow the array.
func (d *ExtJSONDecoder) endArray() error {
	d.skip(1)
	if _, err := d.space(); err != nil {
		return err // which is io.EOF as a rule
	}
	return d.fail(errors.New("text after the array of documents"))
}

// extent returns the length of the document that starts the buffer, reading on as long as it takes.
// It only looks for brackets outside of strings.
func (d *ExtJSONDecoder) extent() (int, error) {
	depth, quoted := 0, false
	for i := 0; ; i++ {
		for i >= len(d.buf) {
			if err := d.fill(); err == io.EOF {
				return len(d.buf), nil
			} else if err != nil {
				return 0, err
			}
		}
		switch c := d.buf[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth <= 0 && !quoted {
			return i + 1, nil
		}
	}
}

// space drops white space and returns the byte after it.
func (d *ExtJSONDecoder) space() (byte, error) {
	for {
		rest := bytes.TrimLeft(d.buf, " \t\r\n")
		d.skip(len(d.buf) - len(rest))
		if len(rest) > 0 {
			return rest[0], nil
		}
		if err := d.fill(); err != nil {
			return 0, err
		}
	}
}

func (d *ExtJSONDecoder) skip(n int) {
	d.buf = d.buf[n:]
	d.offset += int64(n)
}

// fill reads more. It returns an error only if there is nothing more.
func (d *ExtJSONDecoder) fill() error {
	if d.readErr != nil {
		return d.readErr
	}
	most := d.MaxBytes
	if most <= 0 {
		most = defaultMaxText
	}
	if len(d.buf) > most {
		return d.fail(fmt.Errorf("document of more than %d bytes of text", most))
	}
	if len(d.buf) == cap(d.buf) {
		// The skipped part of the old buffer goes here.
		d.buf = append(make([]byte, 0, max(64<<10, 2*len(d.buf))), d.buf...)
	}
	for range 100 {
		n, err := d.from.Read(d.buf[len(d.buf):cap(d.buf)])
		d.buf = d.buf[:len(d.buf)+n]
		d.readErr = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	d.readErr = io.ErrNoProgress
	return d.readErr
}

func (d *ExtJSONDecoder) fail(err error) error { return &ExtJSONError{Offset: d.offset, Err: err} }

// ExtJSONEncoder writes documents as Extended JSON to a stream, each on a line of its own. It is
// not safe for concurrent use.
type ExtJSONEncoder struct {
	// Options are for encoding Go values.
	Options Options
	// Canonical writes canonical instead of relaxed Extended JSON.
	Canonical bool

	to  io.Writer
	buf []byte
}

// NewExtJSONEncoder returns an encoder that writes to w, with one Write per document.
func NewExtJSONEncoder(w io.Writer) *ExtJSONEncoder { return &ExtJSONEncoder{to: w} }

// Encode writes v, which can be what MarshalExtJSON takes, and a line feed.
func (e *ExtJSONEncoder) Encode(v any) error {
	text, err := e.Options.config().appendExtJSON(e.buf[:0], v, e.Canonical)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if e.buf = text; cap(text) > mostScratch {
		e.buf = nil
	}
	_, err = e.to.Write(text)
	return err
}
