package command

import "allium/bson"

// Distinct is the distinct command.
type Distinct struct {
	Collection string
	Field      string
	Filter     any
	MaxTimeMS  int64
	Collation  bson.Raw
	Comment    any
	Hint       any
	RawData    bool
}

// Name implements Command.
func (*Distinct) Name() string { return "distinct" }

// AppendBody implements Command.
func (c *Distinct) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendString(dst, "distinct", c.Collection)}
	f.dst = bson.AppendString(f.dst, "key", c.Field)
	f.filter("query", c.Filter)
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.collation(c.Collation)
	f.value("comment", c.Comment)
	f.hint(c.Hint)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}
