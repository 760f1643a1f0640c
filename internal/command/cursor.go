package command

import (
	"fmt"

	"allium/bson"
	"allium/mongoerr"
)

// GetMore is the getMore command.
type GetMore struct {
	ID         int64
	Collection string
	BatchSize  int32
	MaxTimeMS  int64
	Comment    any
}

// Name implements Command.
func (*GetMore) Name() string { return "getMore" }

// AppendBody implements Command.
func (c *GetMore) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendInt64(dst, "getMore", c.ID)}
	f.dst = bson.AppendString(f.dst, "collection", c.Collection)
	f.int32("batchSize", c.BatchSize)
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.lateComment(c.Comment, t)
	return f.dst, f.err
}

// KillCursors is the killCursors command.
type KillCursors struct {
	Collection string
	ID         int64
	Comment    any
}

// Name implements Command.
func (*KillCursors) Name() string { return "killCursors" }

// AppendBody implements Command.
func (c *KillCursors) AppendBody(dst []byte, t *Target) ([]byte, error) {
	dst = bson.AppendString(dst, "killCursors", c.Collection)
	start, dst := bson.BeginArrayElement(dst, "cursors")
	dst = bson.AppendInt64(dst, "0", c.ID)
	f := fields{bson: t.BSON, dst: bson.EndDocument(dst, start)}
	f.lateComment(c.Comment, t)
	return f.dst, f.err
}

// lateComment appends the comment of a command that servers before 4.4 do not know one of. It comes
// last.
func (f *fields) lateComment(v any, t *Target) {
	if v != nil {
		f.optional(t, 9)
		f.value("comment", v)
	}
}

// CursorReply is the cursor field of a reply, whose memory it shares.
type CursorReply struct {
	ID                   int64
	ns                   bson.RawValue
	Batch                bson.Raw // the array firstBatch or nextBatch
	PostBatchResumeToken bson.Raw
	AtClusterTime        bson.Timestamp
}

// NS returns the namespace, "" if there is none. Who reads all there is in the first batch needs
// none.
func (r *CursorReply) NS() string {
	ns, _ := r.ns.StringValue()
	return ns
}

// First returns the first document of the batch, nil if there is none.
func (r *CursorReply) First() (bson.Raw, error) {
	b := r.Batch.Elements()
	if len(b) == 0 {
		return nil, nil
	}
	_, v, _, err := bson.ReadElement(b)
	if err != nil {
		return nil, fmt.Errorf("server's batch is malformed: %w", err)
	}
	doc, ok := v.Document()
	if !ok {
		return nil, fmt.Errorf("server's batch holds a %s, want a document", v.Type)
	}
	return doc, nil
}

// The fields of a cursor that have its batches.
const (
	FirstBatch = "firstBatch" // of the reply to a command that opens a cursor
	NextBatch  = "nextBatch"  // of the reply to a getMore
)

// ParseCursor reads the cursor field of a reply, whose batch is FirstBatch or NextBatch.
func ParseCursor(reply bson.Raw, batch string) (CursorReply, error) {
	var c CursorReply
	v := reply.Lookup("cursor")
	cursor, ok := v.Document()
	if !ok {
		return c, &mongoerr.ReplyError{Field: "cursor", Type: v.Type, Want: "a document"}
	}
	idOK := false
	var id, docs bson.Type
	for key, v := range cursor.All() {
		switch key {
		case "id":
			id = v.Type
			c.ID, idOK = v.AsInt64()
		case "ns":
			c.ns = v
		case batch:
			docs = v.Type
			c.Batch, _ = v.Array()
		case "postBatchResumeToken":
			c.PostBatchResumeToken, _ = v.Document()
		case "atClusterTime":
			c.AtClusterTime, _ = v.Timestamp()
		}
	}
	if !idOK {
		return c, &mongoerr.ReplyError{Field: "cursor.id", Type: id, Want: "a number"}
	}
	if c.Batch == nil {
		return c, &mongoerr.ReplyError{Field: "cursor." + batch, Type: docs, Want: "an array"}
	}
	return c, nil
}
