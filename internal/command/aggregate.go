package command

import (
	"allium/bson"
)

// Aggregate is the aggregate command, on a collection or, with Collection empty, on a database.
type Aggregate struct {
	Collection               string
	Pipeline                 any
	BatchSize                *int32
	AllowDiskUse             *bool
	MaxTimeMS                int64
	BypassDocumentValidation *bool
	Collation                bson.Raw
	Comment                  any
	Hint                     any
	Let                      any
	RawData                  bool
	// Writes is true if the last stage is $out or $merge: see HasWriteStage.
	Writes bool
	// SearchIndexes is true if the first stage lists search indexes: see ListsSearchIndexes.
	SearchIndexes bool
	// SingleResult says that the pipeline yields one document at the most: the reply holds it, and
	// no cursor is left.
	SingleResult bool
}

// Name implements Command.
func (*Aggregate) Name() string { return "aggregate" }

// AppendBody implements Command.
func (c *Aggregate) AppendBody(dst []byte, t *Target) ([]byte, error) {
	if c.Collection == "" {
		dst = bson.AppendInt32(dst, "aggregate", 1)
	} else {
		dst = bson.AppendString(dst, "aggregate", c.Collection)
	}
	f := fields{bson: t.BSON, dst: dst}
	f.dst, f.err = AppendPipeline(t.BSON, f.dst, "pipeline", c.Pipeline)
	start, dst := bson.BeginDocumentElement(f.dst, "cursor")
	// there is no batch; a size of 0 would keep the pipeline from running (specification: CRUD)
	if c.BatchSize != nil && !c.Writes {
		dst = bson.AppendInt32(dst, "batchSize", *c.BatchSize)
	}
	f.dst = bson.EndDocument(dst, start)
	f.flag("allowDiskUse", c.AllowDiskUse)
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.flag("bypassDocumentValidation", c.BypassDocumentValidation)
	f.collation(c.Collation)
	f.value("comment", c.Comment)
	f.hint(c.Hint)
	f.document("let", c.Let)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// HasWriteStage reports whether an encoded pipeline ends with $out or $merge.
func HasWriteStage(pipeline bson.Raw) bool {
	var last bson.RawValue
	for v := range pipeline.Values() {
		last = v
	}
	stage, _ := last.Document()
	for key := range stage.All() {
		return key == "$out" || key == "$merge"
	}
	return false
}

// ListsSearchIndexes reports whether an encoded pipeline begins with $listSearchIndexes.
func ListsSearchIndexes(pipeline bson.Raw) bool {
	for v := range pipeline.Values() {
		stage, _ := v.Document()
		for key := range stage.All() {
			return key == "$listSearchIndexes"
		}
		break
	}
	return false
}
