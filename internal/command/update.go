package command

import (
	"cmp"
	"fmt"

	"allium/bson"
)

// UpdateStatement is one statement of an update command.
type UpdateStatement struct {
	BSON         *bson.Options // how it is encoded, nil for the options of its command
	Filter       any
	Update       any  // update operators or a pipeline; with Replacement a document
	Replacement  bool // Update replaces the whole document
	Multi        bool
	Upsert       bool
	Collation    bson.Raw
	ArrayFilters any
	Hint         any
	Sort         any
}

// Update is the update command. It sends as many of its statements as one message takes.
type Update struct {
	Collection               string
	Statements               []UpdateStatement
	Ordered                  bool
	BypassDocumentValidation *bool
	Let                      any
	Comment                  any
	RawData                  bool

	batch
}

// Name implements Command.
func (*Update) Name() string { return "update" }

// Left implements Batch.
func (c *Update) Left() int { return len(c.Statements) - c.first }

// Retryable implements Batch.
func (c *Update) Retryable(n int) bool {
	for i := c.first; i < min(c.first+n, len(c.Statements)); i++ {
		if c.Statements[i].Multi {
			return false
		}
	}
	return true
}

// AppendBody implements Command.
func (c *Update) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendString(dst, "update", c.Collection)}
	f.dst = bson.AppendBool(f.dst, "ordered", c.Ordered)
	f.flag("bypassDocumentValidation", c.BypassDocumentValidation)
	f.document("let", c.Let)
	f.value("comment", c.Comment)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// AppendSequences implements Sequencer.
func (c *Update) AppendSequences(dst []byte, t *Target) ([]byte, error) {
	return c.appendAll(dst, t, "updates", len(c.Statements), "write", commandOverhead,
		func(dst []byte, i int) ([]byte, error) {
			return c.appendStatement(dst, i, t)
		})
}

// Fit implements Batch.
func (c *Update) Fit(sequences []byte, behind int, t *Target) ([]byte, error) {
	return c.fit(sequences, behind, t, "write", commandOverhead)
}

func (c *Update) appendStatement(dst []byte, i int, t *Target) ([]byte, error) {
	s := &c.Statements[i]
	start, dst := bson.BeginDocument(dst)
	f := fields{bson: cmp.Or(s.BSON, t.BSON), dst: dst}
	f.filter("q", s.Filter)
	f.update("u", s.Update, s.Replacement)
	f.set("multi", s.Multi)
	f.yes("upsert", s.Upsert)
	f.collation(s.Collation)
	f.array("arrayFilters", s.ArrayFilters)
	f.writeHint(s.Hint, t, 8)
	f.ordered("sort", s.Sort)
	return bson.EndDocument(f.dst, start), f.err
}

// array appends v, which must be a list, unless it is nil.
func (f *fields) array(key string, v any) {
	at := len(f.dst)
	f.value(key, v)
	if f.err == nil && len(f.dst) > at && bson.Type(f.dst[at]) != bson.TypeArray {
		f.err = fmt.Errorf("%s: a %T is a BSON %s, want an array", key, v, bson.Type(f.dst[at]))
	}
}

// EncodeUpdate returns an update or a replacement as a command encodes it under key, with the
// checks that it makes.
func EncodeUpdate(o *bson.Options, key string, v any, replacement bool) (bson.RawValue, error) {
	f := fields{bson: o}
	f.update(key, v, replacement)
	if f.err != nil {
		return bson.RawValue{}, f.err
	}
	return bson.RawValue{Type: bson.Type(f.dst[0]), Value: f.dst[1+len(key)+1:]}, nil
}

// EncodeFilter is EncodeUpdate for a filter.
func EncodeFilter(o *bson.Options, key string, v any) (bson.Raw, error) {
	f := fields{bson: o}
	f.filter(key, v)
	if f.err != nil {
		return nil, f.err
	}
	return f.dst[1+len(key)+1:], nil
}
