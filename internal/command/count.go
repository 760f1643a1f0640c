package command

import (
	"allium/bson"
	"allium/mongoerr"
)

// Count is the count command, which backs EstimatedDocumentCount.
type Count struct {
	Collection  string
	Filter      any // nil: all documents
	Skip, Limit int64
	Hint        any
	Collation   bson.Raw
	MaxTimeMS   int64
	Comment     any
	RawData     bool
}

// Name implements Command.
func (*Count) Name() string { return "count" }

// AppendBody implements Command.
func (c *Count) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendString(dst, "count", c.Collection)}
	if c.Filter != nil {
		f.document("query", c.Filter)
	}
	f.int64("skip", c.Skip)
	f.int64("limit", c.Limit)
	f.hint(c.Hint)
	f.collation(c.Collation)
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.value("comment", c.Comment)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// ParseN reads the field n of a reply.
func ParseN(reply bson.Raw) (int64, error) {
	v := reply.Lookup("n")
	n, ok := v.AsInt64()
	if !ok {
		return 0, &mongoerr.ReplyError{Field: "n", Type: v.Type, Want: "a number"}
	}
	return n, nil
}
