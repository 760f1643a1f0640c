package command

import (
	"fmt"
	"slices"

	"allium/bson"
)

// Documents is a list of documents that Insert sends. Append is called again when an attempt is
// repeated and must then append the same bytes.
type Documents interface {
	Len() int
	// Append appends document i, with its _id.
	Append(dst []byte, i int) ([]byte, error)
}

// Insert is the insert command. It sends as many of its documents as one message takes; Advance
// moves on to the rest.
type Insert struct {
	Collection               string
	Docs                     Documents
	Ordered                  bool
	BypassDocumentValidation *bool
	Comment                  any
	RawData                  bool

	batch
}

// batch counts what a command sent of a list that may need several messages.
type batch struct {
	first   int // index of the message's first statement
	count   int // how many statements the message holds
	largest int // the size of the largest of them
}

// First returns the index of the first statement of the message that was built last.
func (b *batch) First() int { return b.first }

// Count returns how many statements that message held.
func (b *batch) Count() int { return b.count }

// Advance moves on behind the message that was built last.
func (b *batch) Advance() { b.first, b.count = b.first+b.count, 0 }

// Name implements Command.
func (*Insert) Name() string { return "insert" }

// Left implements Batch.
func (c *Insert) Left() int { return c.Docs.Len() - c.first }

// Retryable implements Batch.
func (c *Insert) Retryable(int) bool { return true }

// AppendBody implements Command.
func (c *Insert) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendString(dst, "insert", c.Collection)}
	f.dst = bson.AppendBool(f.dst, "ordered", c.Ordered)
	f.flag("bypassDocumentValidation", c.BypassDocumentValidation)
	f.value("comment", c.Comment)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// AppendSequences implements Sequencer.
func (c *Insert) AppendSequences(dst []byte, t *Target) ([]byte, error) {
	return c.appendAll(dst, t, "documents", c.Docs.Len(), "document", 0, c.Docs.Append)
}

// Fit implements Batch.
func (c *Insert) Fit(sequences []byte, behind int, t *Target) ([]byte, error) {
	return c.fit(sequences, behind, t, "document", 0)
}

// appendAll appends a document sequence with as many of n statements, from the first on, as the
// target takes: at most MaxBatchCount of them, in a message of at most MaxMessageSize bytes. One of
// them, which errors call what, may be larger than a document may be by extra bytes.
func (b *batch) appendAll(dst []byte, t *Target, id string, n int, what string, extra int,
	appendOne func([]byte, int) ([]byte, error)) ([]byte, error) {
	b.count, b.largest = 0, 0
	at, dst := beginSequence(dst, id)
	for i := b.first; i < n && b.count < t.MaxBatchCount; i++ {
		docAt := len(dst)
		var err error
		if dst, err = appendOne(dst, i); err != nil {
			return dst, fmt.Errorf("%s %d: %w", what, i, err)
		}
		size := len(dst) - docAt
		if err := b.check(t, what, i, size, extra); err != nil {
			return dst, err
		}
		if len(dst)-t.Start > t.MaxMessageSize && i > b.first {
			dst = dst[:docAt]
			break
		}
		b.count++
		b.largest = max(b.largest, size)
		if left := min(n-b.first, t.MaxBatchCount) - b.count; left > 0 {
			// The others are probably like those that are there: room for them at once saves
			// copying what is there again and again, and memory that is twice what is needed.
			if average := (len(dst) - at) / b.count; i == b.first || cap(dst)-len(dst) < 2*average {
				dst = slices.Grow(dst,
					min(average*left+average*left/8, max(t.MaxMessageSize-len(dst), 0), max(mostAhead, len(dst))))
			}
		}
	}
	return endSequence(dst, at), nil
}

// check reports a statement that is larger than the server takes, if that is known.
func (b *batch) check(t *Target, what string, i, size, extra int) error {
	if limit := t.MaxDocumentSize + extra; t.MaxDocumentSize > 0 && size > limit {
		return fmt.Errorf("%s %d has %d bytes, the server takes at most %d", what, i, size, limit)
	}
	return nil
}

// fit implements Batch for what appendAll has written.
func (b *batch) fit(sequence []byte, behind int, t *Target, what string, extra int) ([]byte, error) {
	if b.count <= t.MaxBatchCount && behind+len(sequence) <= t.MaxMessageSize && b.largest <= t.MaxDocumentSize+extra {
		return sequence, nil
	}
	end := len(sequence) - len(documentsIn(sequence))
	n := 0
	for ; n < min(b.count, t.MaxBatchCount); n++ {
		size := documentSize(sequence[end:])
		if err := b.check(t, what, b.first+n, size, extra); err != nil {
			return nil, err
		}
		if behind+end+size > t.MaxMessageSize && n > 0 {
			break
		}
		end += size
	}
	b.count = n
	return endSequence(sequence[:end], 1), nil
}

// mostAhead bounds the room that appendBatch makes for statements that it has not seen, while a
// message is smaller.
const mostAhead = 16 << 20

// commandOverhead is how far the server lets a command's document exceed maxBsonObjectSize (16
// KiB), so that a statement may carry a document of the greatest size.
const commandOverhead = 16 << 10

// EnsureID makes sure that the document that starts at start in dst has an _id: if it has none, id
// is put first, and added is true. It returns the _id that the document has; it shares the memory
// of dst.
func EnsureID(dst []byte, start int, id func() bson.ObjectID) (out []byte, v bson.RawValue, added bool) {
	doc := bson.Raw(dst[start:])
	if v := doc.Lookup("_id"); !v.IsZero() {
		return dst, v, false
	}
	const size = 1 + len("_id") + 1 + 12
	var element [size]byte
	oid := id()
	bson.AppendObjectID(element[:0], "_id", oid)
	dst = append(dst, element[:]...)
	copy(dst[start+4+size:], dst[start+4:len(dst)-size])
	copy(dst[start+4:], element[:])
	putLength(dst, start)
	return dst, bson.RawValue{Type: bson.TypeObjectID, Value: dst[start+4+size-12 : start+4+size]}, true
}
