package command

import (
	"fmt"

	"allium/bson"
)

// SearchIndex is one index of a createSearchIndexes command.
type SearchIndex struct {
	Name       string
	Type       string
	Definition any
}

// CreateSearchIndexes is the createSearchIndexes command.
type CreateSearchIndexes struct {
	Collection string
	Indexes    []SearchIndex
}

// Name implements Command.
func (*CreateSearchIndexes) Name() string { return "createSearchIndexes" }

// AppendBody implements Command.
func (c *CreateSearchIndexes) AppendBody(dst []byte, t *Target) ([]byte, error) {
	start, dst := bson.BeginArrayElement(bson.AppendString(dst, "createSearchIndexes", c.Collection), "indexes")
	for i, ix := range c.Indexes {
		at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		f := fields{bson: t.BSON, dst: d}
		f.str("name", ix.Name)
		f.str("type", ix.Type)
		f.filter("definition", ix.Definition)
		if f.err != nil {
			return dst, fmt.Errorf("index %d: %w", i, f.err)
		}
		dst = bson.EndDocument(f.dst, at)
	}
	return bson.EndDocument(dst, start), nil
}

// UpdateSearchIndex is the updateSearchIndex command.
type UpdateSearchIndex struct {
	Collection string
	Index      string
	Definition any
}

// Name implements Command.
func (*UpdateSearchIndex) Name() string { return "updateSearchIndex" }

// AppendBody implements Command.
func (c *UpdateSearchIndex) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendString(bson.AppendString(dst, "updateSearchIndex", c.Collection), "name",
		c.Index)}
	f.filter("definition", c.Definition)
	return f.dst, f.err
}

// DropSearchIndex is the dropSearchIndex command.
type DropSearchIndex struct {
	Collection string
	Index      string
}

// Name implements Command.
func (*DropSearchIndex) Name() string { return "dropSearchIndex" }

// AppendBody implements Command.
func (c *DropSearchIndex) AppendBody(dst []byte, _ *Target) ([]byte, error) {
	return bson.AppendString(bson.AppendString(dst, "dropSearchIndex", c.Collection), "name", c.Index), nil
}
