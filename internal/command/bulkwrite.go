package command

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"allium/bson"
	"allium/internal/wire"
)

// BulkWrites is the list of writes that BulkWrite sends. A repeated attempt asks it again, and it
// must then answer the same.
type BulkWrites interface {
	Len() int
	// Write describes write i. Of an insert, only its namespace is set.
	Write(i int) BulkStatement
	// AppendDocument appends the document of write i, an insert, with its _id.
	AppendDocument(dst []byte, i int) ([]byte, error)
}

// BulkStatement is one write of a bulkWrite command: an update, a delete, or an insert if neither
// is set.
type BulkStatement struct {
	Namespace      string
	CollectionUUID []byte // that the collection must have; nil: any
	Update         *UpdateStatement
	Delete         *DeleteStatement
}

// namespace is what tells namespaces of a message apart: one for each UUID that the collection must
// have, too.
func (s *BulkStatement) namespace() string {
	if s.CollectionUUID == nil {
		return s.Namespace
	}
	return s.Namespace + "\x00" + string(s.CollectionUUID) // no name has a null byte
}

func (s *BulkStatement) multi() bool {
	return s.Update != nil && s.Update.Multi || s.Delete != nil && s.Delete.Multi
}

// BulkWrite is the bulkWrite command of server 8.0 (specification: Bulk Write). It sends as many of
// its writes as one message takes; Advance moves on to the rest.
type BulkWrite struct {
	Writes                   BulkWrites
	ErrorsOnly               bool
	Ordered                  bool
	BypassDocumentValidation *bool
	Let                      any
	Comment                  any
	RawData                  bool
	// CheckSize makes a document that is too large for the server an error of the driver's. The
	// server says so itself, but not if it is asked for no answer.
	CheckSize bool

	batch
	bodySize   int              // of the command document without what all commands have in common
	greatest   [2]sized         // the largest document and the largest write, with CheckSize
	namespaces map[string]int32 // those of the message, by their indexes
	nsInfo     []byte
}

// sized is the size of something in a write.
type sized struct{ write, size int }

// bulkMessageOverhead is what the specification sets aside for everything in the message that is
// not part of bulkWrite.
const bulkMessageOverhead = 1000

var errBulkWrite = errors.New("a bulk write of the client needs server 8.0 or later: use BulkWrite of a collection")

// Name implements Command.
func (*BulkWrite) Name() string { return "bulkWrite" }

// Left implements Batch.
func (c *BulkWrite) Left() int { return c.Writes.Len() - c.first }

// Retryable implements Batch.
func (c *BulkWrite) Retryable(n int) bool {
	for i := c.first; i < min(c.first+n, c.Writes.Len()); i++ {
		if s := c.Writes.Write(i); s.multi() {
			return false
		}
	}
	return true
}

// AppendBody implements Command.
func (c *BulkWrite) AppendBody(dst []byte, t *Target) ([]byte, error) {
	t.need(25, errBulkWrite)
	at := len(dst)
	f := fields{bson: t.BSON, dst: bson.AppendInt32(dst, "bulkWrite", 1)}
	f.dst = bson.AppendBool(f.dst, "errorsOnly", c.ErrorsOnly)
	f.dst = bson.AppendBool(f.dst, "ordered", c.Ordered)
	f.flag("bypassDocumentValidation", c.BypassDocumentValidation)
	f.value("comment", c.Comment)
	f.document("let", c.Let)
	f.rawData(c.RawData, t)
	c.bodySize = len(f.dst) - at + emptyDocumentSize
	return f.dst, f.err
}

const (
	// emptyDocumentSize is what a document has beside its elements.
	emptyDocumentSize = 5
	// nsInfoSize is what an element of nsInfo has beside the namespace: type, key, length and NUL
	// of the string.
	nsInfoSize = emptyDocumentSize + 1 + len("ns.") + 4 + 1
	// uuidSize is what the element of a UUID has beside its bytes: type, key, length and subtype.
	uuidSize = 1 + len("collectionUUID.") + 4 + 1
)

// AppendSequences implements Sequencer.
func (c *BulkWrite) AppendSequences(dst []byte, t *Target) ([]byte, error) {
	clear(c.namespaces)
	if c.namespaces == nil {
		c.namespaces = map[string]int32{}
	}
	c.nsInfo, c.count, c.greatest = c.nsInfo[:0], 0, [2]sized{}
	limit := t.MaxMessageSize - bulkMessageOverhead - c.bodySize
	at, dst := beginSequence(dst, "ops")
	opsAt := len(dst)
	for i := c.first; i < c.Writes.Len() && c.count < t.MaxBatchCount; i++ {
		opAt, greatest := len(dst), c.greatest
		s := c.Writes.Write(i)
		namespace := s.namespace()
		ns, known := c.namespaces[namespace]
		if !known {
			ns = int32(len(c.namespaces))
		}
		var err error
		if dst, err = c.appendOp(dst, t, i, &s, ns); err != nil {
			return dst, fmt.Errorf("write %d: %w", i, err)
		}
		size := len(dst) - opsAt + len(c.nsInfo)
		if !known {
			size += nsInfoSize + len(s.Namespace)
			if s.CollectionUUID != nil {
				size += uuidSize + len(s.CollectionUUID)
			}
		}
		if size > limit {
			if c.count == 0 {
				return dst, c.tooLarge(0, size, limit)
			}
			dst, c.greatest = dst[:opAt], greatest
			break
		}
		if !known {
			c.namespaces[namespace] = ns
			start, d := bson.BeginDocument(c.nsInfo)
			d = bson.AppendString(d, "ns", s.Namespace)
			if s.CollectionUUID != nil {
				d = bson.AppendBinary(d, "collectionUUID", bson.BinaryUUID, s.CollectionUUID)
			}
			c.nsInfo = bson.EndDocument(d, start)
		}
		c.count++
	}
	return c.appendNamespaces(endSequence(dst, at)), c.checkSizes(t)
}

// appendNamespaces appends the sequence of namespaces.
func (c *BulkWrite) appendNamespaces(dst []byte) []byte {
	at, dst := beginSequence(dst, "nsInfo")
	return endSequence(append(dst, c.nsInfo...), at)
}

// checkSizes reports a document or a write that is larger than the server takes, if that is known.
func (c *BulkWrite) checkSizes(t *Target) error {
	for i, what := range [...]string{"document", "write"} {
		if g, limit := c.greatest[i], t.MaxDocumentSize+i*commandOverhead; t.MaxDocumentSize > 0 && g.size > limit {
			return fmt.Errorf("write %d: %s has %d bytes, the server takes at most %d", g.write, what, g.size, limit)
		}
	}
	return nil
}

// Fit implements Batch.
func (c *BulkWrite) Fit(sequences []byte, _ int, t *Target) ([]byte, error) {
	if err := c.checkSizes(t); err != nil {
		return nil, err
	}
	ops := documentsIn(sequences)
	all := 1 + documentSize(sequences[1:]) // of the sequence of ops
	start := len(sequences) - len(ops)
	limit := t.MaxMessageSize - bulkMessageOverhead - c.bodySize
	if c.count <= t.MaxBatchCount && all-start+len(c.nsInfo) <= limit {
		return sequences, nil
	}
	end, infoEnd, known, n := start, 0, 0, 0
	for ; n < min(c.count, t.MaxBatchCount); n++ {
		op := bson.Raw(sequences[end : end+documentSize(sequences[end:])])
		nextInfo := infoEnd
		ns := firstInt32(op)
		if ns == known {
			nextInfo += documentSize(c.nsInfo[infoEnd:])
		}
		if size := end - start + len(op) + nextInfo; size > limit {
			if n == 0 {
				return nil, c.tooLarge(0, size, limit)
			}
			break
		}
		end, infoEnd, known = end+len(op), nextInfo, max(known, ns+1)
	}
	c.count, c.nsInfo = n, c.nsInfo[:infoEnd]
	return c.appendNamespaces(endSequence(sequences[:end], 1)), nil
}

func (c *BulkWrite) tooLarge(n, size, limit int) error {
	return fmt.Errorf("write %d and its namespace have %d bytes, a message to the server takes %d", c.first+n, size,
		limit)
}

// firstInt32 returns the first element of a document, which is an int32.
func firstInt32(doc bson.Raw) int {
	for _, v := range doc.All() {
		n, _ := v.Int32()
		return int(n)
	}
	return 0
}

// appendOp appends one element of ops.
func (c *BulkWrite) appendOp(dst []byte, t *Target, i int, s *BulkStatement, ns int32) ([]byte, error) {
	at := len(dst)
	start, dst := bson.BeginDocument(dst)
	f := fields{bson: t.BSON, dst: dst}
	docAt, docEnd := 0, 0
	switch u, d := s.Update, s.Delete; {
	case u != nil:
		f.bson = cmp.Or(u.BSON, t.BSON)
		f.dst = bson.AppendInt32(f.dst, "update", ns)
		f.filter("filter", u.Filter)
		docAt = len(f.dst)
		f.update("updateMods", u.Update, u.Replacement)
		if u.Replacement {
			docEnd = len(f.dst) - len("?updateMods.")
		}
		f.dst = bson.AppendBool(f.dst, "multi", u.Multi)
		f.yes("upsert", u.Upsert)
		f.array("arrayFilters", u.ArrayFilters)
		f.hint(u.Hint)
		f.collation(u.Collation)
		f.ordered("sort", u.Sort)
	case d != nil:
		f.bson = cmp.Or(d.BSON, t.BSON)
		f.dst = bson.AppendInt32(f.dst, "delete", ns)
		f.filter("filter", d.Filter)
		f.dst = bson.AppendBool(f.dst, "multi", d.Multi)
		f.hint(d.Hint)
		f.collation(d.Collation)
	default:
		f.dst = bson.AppendInt32(f.dst, "insert", ns)
		f.dst = bson.AppendHeader(f.dst, bson.TypeEmbeddedDocument, "document")
		docAt = len(f.dst)
		f.dst, f.err = c.Writes.AppendDocument(f.dst, i)
		docEnd = len(f.dst)
	}
	if f.err != nil {
		return f.dst, f.err
	}
	dst = bson.EndDocument(f.dst, start)
	if c.CheckSize {
		for k, size := range [...]int{docEnd - docAt, len(dst) - at} {
			if size > c.greatest[k].size {
				c.greatest[k] = sized{i, size}
			}
		}
	}
	return dst, nil
}

// BulkWriteReply holds the counts of a reply to bulkWrite.
type BulkWriteReply struct {
	Errors, Inserted, Upserted, Matched, Modified, Deleted int64
}

// ParseBulkWrite reads the counts of a reply to bulkWrite. Its cursor is for ParseCursor.
func ParseBulkWrite(reply bson.Raw) BulkWriteReply {
	var r BulkWriteReply
	for key, v := range reply.All() {
		switch n, _ := v.AsInt64(); key {
		case "nErrors":
			r.Errors = n
		case "nInserted":
			r.Inserted = n
		case "nUpserted":
			r.Upserted = n
		case "nMatched":
			r.Matched = n
		case "nModified":
			r.Modified = n
		case "nDeleted":
			r.Deleted = n
		}
	}
	return r
}

// BulkOutcome is what the results cursor of a bulkWrite says about one write. Raw shares the
// cursor's memory.
type BulkOutcome struct {
	OK           bool
	Index        int // in its message
	N, NModified int64
	UpsertedID   bson.RawValue // zero if nothing was upserted
	Raw          bson.Raw
}

// ParseBulkOutcome reads a document of the results cursor.
func ParseBulkOutcome(doc bson.Raw) (BulkOutcome, error) {
	o := BulkOutcome{Raw: doc, Index: -1}
	if err := wire.CheckDocument(doc, 2); err != nil {
		return o, fmt.Errorf("server's result of a write is malformed: %w", err)
	}
	for key, v := range doc.All() {
		switch key {
		case "ok":
			o.OK = v.AsBool()
		case "idx":
			if n, ok := v.AsInt64(); ok && n >= 0 && n <= math.MaxInt32 {
				o.Index = int(n)
			}
		case "n":
			o.N, _ = v.AsInt64()
		case "nModified":
			o.NModified, _ = v.AsInt64()
		case "upserted":
			up, _ := v.Document()
			o.UpsertedID = up.Lookup("_id")
		}
	}
	if o.Index < 0 {
		return o, errors.New("server's result of a write has no index that a write can have")
	}
	return o, nil
}
