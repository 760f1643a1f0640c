package command

import "allium/bson"

// Find is the find command. Limit and BatchSize may be negative, as the CRUD specification has it.
type Find struct {
	Collection          string
	Filter              any
	Sort                any
	Projection          any
	Hint                any
	Skip                int64
	Limit               int64
	BatchSize           *int32
	SingleBatch         bool
	Comment             any
	MaxTimeMS           int64
	Max                 any
	Min                 any
	ReturnKey           bool
	ShowRecordID        bool
	Tailable            bool
	AwaitData           bool
	NoCursorTimeout     bool
	AllowPartialResults bool
	AllowDiskUse        *bool
	Collation           bson.Raw
	Let                 any
	RawData             bool
}

// Name implements Command.
func (*Find) Name() string { return "find" }

// AppendBody implements Command.
func (c *Find) AppendBody(dst []byte, t *Target) ([]byte, error) {
	limit, batch, single := c.normalized()
	f := fields{bson: t.BSON, dst: bson.AppendString(dst, "find", c.Collection)}
	f.filter("filter", c.Filter)
	f.ordered("sort", c.Sort)
	f.document("projection", c.Projection)
	f.hint(c.Hint)
	f.int64("skip", c.Skip)
	f.int64("limit", limit)
	if batch != 0 || c.BatchSize != nil {
		f.dst = bson.AppendInt32(f.dst, "batchSize", batch)
	}
	f.set("singleBatch", single)
	f.value("comment", c.Comment)
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.ordered("max", c.Max)
	f.ordered("min", c.Min)
	f.yes("returnKey", c.ReturnKey)
	f.yes("showRecordId", c.ShowRecordID)
	f.set("tailable", c.Tailable)
	f.yes("noCursorTimeout", c.NoCursorTimeout)
	f.set("awaitData", c.AwaitData)
	f.yes("allowPartialResults", c.AllowPartialResults)
	f.flag("allowDiskUse", c.AllowDiskUse)
	f.collation(c.Collation)
	f.document("let", c.Let)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// normalized applies the rules of the specification "find, getMore and killCursors commands" for
// negative values, and the CRUD specification's for a batch size that equals the limit: one more
// document makes the server close the cursor with the first batch.
func (c *Find) normalized() (limit int64, batch int32, single bool) {
	limit = c.Limit
	if c.BatchSize != nil {
		batch = *c.BatchSize
	}
	single = c.SingleBatch || limit < 0 || batch < 0
	if limit < 0 {
		limit = -limit
	}
	if batch < 0 {
		batch = -batch
	}
	switch {
	case limit < 0 || batch < 0 || c.SingleBatch: // the smallest integers, and findOne, which sends no batch size
	case single:
		if limit != 0 {
			batch = int32(min(limit, 1<<31-1))
		}
	case batch != 0 && int64(batch) == limit && batch < 1<<31-1:
		batch++
	}
	return limit, batch, single
}
