package command

import (
	"allium/bson"
	"allium/mongoerr"
)

// FindAndModify is the findAndModify command, which backs FindOneAndUpdate, FindOneAndReplace and
// FindOneAndDelete.
type FindAndModify struct {
	Collection               string
	Filter                   any
	Remove                   bool
	Update                   any  // with Remove nil
	Replacement              bool // Update replaces the whole document
	New                      bool // return the document as it is afterwards
	Upsert                   bool
	Sort                     any
	Projection               any
	BypassDocumentValidation *bool
	MaxTimeMS                int64
	Collation                bson.Raw
	ArrayFilters             any
	Hint                     any
	Comment                  any
	Let                      any
	RawData                  bool
}

// Name implements Command.
func (*FindAndModify) Name() string { return "findAndModify" }

// AppendBody implements Command.
func (c *FindAndModify) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendString(dst, "findAndModify", c.Collection)}
	f.filter("query", c.Filter)
	f.ordered("sort", c.Sort)
	if c.Remove {
		f.set("remove", true)
	} else {
		f.update("update", c.Update, c.Replacement)
	}
	f.set("new", c.New)
	f.document("fields", c.Projection)
	f.yes("upsert", c.Upsert)
	f.flag("bypassDocumentValidation", c.BypassDocumentValidation)
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.collation(c.Collation)
	f.array("arrayFilters", c.ArrayFilters)
	f.writeHint(c.Hint, t, 9)
	f.value("comment", c.Comment)
	f.document("let", c.Let)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// ParseFindAndModify returns the document of a findAndModify reply, nil if there was none.
func ParseFindAndModify(reply bson.Raw) (bson.Raw, error) {
	v := reply.Lookup("value")
	doc, ok := v.Document()
	if !ok && v.Type != 0 && v.Type != bson.TypeNull {
		return nil, &mongoerr.ReplyError{Field: "value", Type: v.Type, Want: "a document or null"}
	}
	return doc, nil
}
