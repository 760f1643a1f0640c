package command

import (
	"cmp"

	"allium/bson"
)

// DeleteStatement is one statement of a delete command.
type DeleteStatement struct {
	BSON      *bson.Options // how it is encoded, nil for the options of its command
	Filter    any
	Multi     bool
	Collation bson.Raw
	Hint      any
}

// Delete is the delete command. It sends as many of its statements as one message takes.
type Delete struct {
	Collection string
	Statements []DeleteStatement
	Ordered    bool
	Let        any
	Comment    any
	RawData    bool

	batch
}

// Name implements Command.
func (*Delete) Name() string { return "delete" }

// Left implements Batch.
func (c *Delete) Left() int { return len(c.Statements) - c.first }

// Retryable implements Batch.
func (c *Delete) Retryable(n int) bool {
	for i := c.first; i < min(c.first+n, len(c.Statements)); i++ {
		if c.Statements[i].Multi {
			return false
		}
	}
	return true
}

// AppendBody implements Command.
func (c *Delete) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendString(dst, "delete", c.Collection)}
	f.dst = bson.AppendBool(f.dst, "ordered", c.Ordered)
	f.document("let", c.Let)
	f.value("comment", c.Comment)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// AppendSequences implements Sequencer.
func (c *Delete) AppendSequences(dst []byte, t *Target) ([]byte, error) {
	return c.appendAll(dst, t, "deletes", len(c.Statements), "write", commandOverhead,
		func(dst []byte, i int) ([]byte, error) {
			return c.appendStatement(dst, i, t)
		})
}

// Fit implements Batch.
func (c *Delete) Fit(sequences []byte, behind int, t *Target) ([]byte, error) {
	return c.fit(sequences, behind, t, "write", commandOverhead)
}

func (c *Delete) appendStatement(dst []byte, i int, t *Target) ([]byte, error) {
	s := &c.Statements[i]
	start, dst := bson.BeginDocument(dst)
	f := fields{bson: cmp.Or(s.BSON, t.BSON), dst: dst}
	f.filter("q", s.Filter)
	limit := int32(1)
	if s.Multi {
		limit = 0
	}
	f.dst = bson.AppendInt32(f.dst, "limit", limit)
	f.collation(s.Collation)
	f.writeHint(s.Hint, t, 9)
	return bson.EndDocument(f.dst, start), f.err
}
