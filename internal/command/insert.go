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
	first int // index of the message's first statement
	count int // how many statements the message holds
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
	dst, n, err := appendBatch(dst, t, "documents", c.first, c.Docs.Len(), "document", t.MaxDocumentSize, c.Docs.Append)
	c.count = n
	return dst, err
}

// appendBatch appends a document sequence with as many of the statements from first on as the
// target takes: at most MaxBatchCount of them, in a message of at most MaxMessageSize bytes. One of
// them, which errors call what, may have maxSize bytes.
func appendBatch(dst []byte, t *Target, id string, first, n int, what string, maxSize int, appendOne func([]byte, int) ([]byte, error)) (out []byte, count int, err error) {
	at, dst := beginSequence(dst, id)
	for i := first; i < n && i-first < t.MaxBatchCount; i++ {
		docAt := len(dst)
		dst, err = appendOne(dst, i)
		if err != nil {
			return dst, 0, fmt.Errorf("%s %d: %w", what, i, err)
		}
		if size := len(dst) - docAt; size > maxSize {
			return dst, 0, fmt.Errorf("%s %d has %d bytes, the server takes at most %d", what, i, size, maxSize)
		}
		if len(dst)-t.Start > t.MaxMessageSize && i > first {
			dst = dst[:docAt]
			break
		}
		count++
		if left := min(n-first, t.MaxBatchCount) - count; left > 0 {
			// The others are probably like those that are there: room for them at once saves
			// copying what is there again and again, and memory that is twice what is needed.
			if average := (len(dst) - at) / count; i == first || cap(dst)-len(dst) < 2*average {
				dst = slices.Grow(dst, min(average*left+average*left/8, max(t.MaxMessageSize-len(dst), 0), max(mostAhead, len(dst))))
			}
		}
	}
	return endSequence(dst, at), count, nil
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
