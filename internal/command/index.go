package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"allium/bson"
)

// Index is one index of a createIndexes command.
type Index struct {
	Keys any // an ordered document
	// Options are the fields beside key and name, encoded as a document, or nil.
	Options any
	Name    string // empty: made from the keys
}

// CreateIndexes is the createIndexes command.
type CreateIndexes struct {
	Collection   string
	Indexes      []Index
	CommitQuorum any
	MaxTimeMS    int64
	Comment      any
	RawData      bool
	// Names holds the names of the indexes once the command was built.
	Names []string
}

var errCommitQuorum = errors.New("CommitQuorum needs server 4.4 or later")

// Name implements Command.
func (*CreateIndexes) Name() string { return "createIndexes" }

// AppendBody implements Command.
func (c *CreateIndexes) AppendBody(dst []byte, t *Target) ([]byte, error) {
	if len(c.Indexes) == 0 {
		return dst, errors.New("no index given")
	}
	c.Names = c.Names[:0]
	dst = bson.AppendString(dst, "createIndexes", c.Collection)
	start, dst := bson.BeginArrayElement(dst, "indexes")
	for i, ix := range c.Indexes {
		at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		keyAt := len(d)
		f := fields{bson: t.BSON, dst: d}
		if IsNil(ix.Keys) {
			f.err = errNil("key")
		}
		f.ordered("key", ix.Keys)
		if f.err != nil {
			return dst, fmt.Errorf("index %d: %w", i, f.err)
		}
		name := ix.Name
		if name == "" {
			var err error
			if name, err = IndexName(bson.Raw(f.dst[keyAt+len("key")+2:])); err != nil {
				return dst, fmt.Errorf("index %d: %w", i, err)
			}
		}
		c.Names = append(c.Names, name)
		f.dst = bson.AppendString(f.dst, "name", name)
		if ix.Options != nil {
			opts, err := t.encoder().MarshalAppend(nil, ix.Options)
			if err != nil {
				return dst, fmt.Errorf("index %d: %w", i, err)
			}
			f.dst = append(f.dst, opts[4:len(opts)-1]...)
		}
		dst = bson.EndDocument(f.dst, at)
	}
	f := fields{bson: t.BSON, dst: bson.EndDocument(dst, start)}
	if c.CommitQuorum != nil {
		t.need(9, errCommitQuorum)
	}
	f.value("commitQuorum", c.CommitQuorum)
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.value("comment", c.Comment)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// IndexName makes an index's name from its keys, as key1_value1_key2_value2. That on _id is called
// _id_, whatever a client says (specification: Index Management, "Index Name Generation").
func IndexName(keys bson.Raw) (string, error) {
	var b strings.Builder
	for key, v := range keys.All() {
		if b.Len() > 0 {
			b.WriteByte('_')
		}
		b.WriteString(key)
		b.WriteByte('_')
		if s, ok := v.StringValue(); ok {
			b.WriteString(s)
		} else if n, ok := v.AsInt64(); ok {
			b.WriteString(strconv.FormatInt(n, 10))
		} else {
			return "", fmt.Errorf("index key %q has a %s as its direction, want 1, -1 or a string", key, v.Type)
		}
	}
	switch b.String() {
	case "":
		return "", errors.New("index has no keys")
	case "_id_1":
		return "_id_", nil
	}
	return b.String(), nil
}

// DropIndexes is the dropIndexes command.
type DropIndexes struct {
	Collection string
	All        bool
	Index      any // without All a name, or keys
	MaxTimeMS  int64
	Comment    any
	RawData    bool
}

// Name implements Command.
func (*DropIndexes) Name() string { return "dropIndexes" }

// AppendBody implements Command.
func (c *DropIndexes) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendString(dst, "dropIndexes", c.Collection)}
	if c.All {
		f.str("index", "*")
	} else {
		f.index(c.Index)
	}
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.value("comment", c.Comment)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// Check reports what is wrong with the index to drop, before a server is selected.
func (c *DropIndexes) Check(o *bson.Options) error {
	switch v := c.Index.(type) {
	case nil:
		if c.All {
			return nil
		}
	case string:
		if v != "" && v != "*" {
			return nil
		}
	case bson.D:
		if len(v) > 0 && plain(v) {
			return nil
		}
	}
	f := fields{bson: o}
	f.index(c.Index)
	return f.err
}

// index appends the name or the keys of the index to drop. What is looked at is what was encoded: a
// name can be of any type that becomes a string.
func (f *fields) index(v any) {
	at := len(f.dst)
	f.placed("index", v, placeOrdered)
	if f.err != nil {
		return
	}
	if len(f.dst) == at {
		f.err = errNoIndex
		return
	}
	name := bson.RawValue{Type: bson.Type(f.dst[at]), Value: f.dst[at+len("?index."):]}
	switch name.Type {
	case bson.TypeString:
		switch s, _ := name.StringValue(); s {
		case "*":
			f.err = errAllIndexes
		case "":
			f.err = errNoIndex
		}
	case bson.TypeEmbeddedDocument:
		if bson.Raw(name.Value).IsEmpty() {
			f.err = errNoIndex
		}
	case bson.TypeNull:
		f.err = errNoIndex
	default:
		f.err = fmt.Errorf("a %T is a BSON %s, want the name of an index or its keys", v, name.Type)
	}
}

var (
	errAllIndexes = errors.New(`"*" drops all indexes: use DropIndexes`)
	errNoIndex    = errors.New("neither a name nor keys given")
)

// ListIndexes is the listIndexes command.
type ListIndexes struct {
	Collection string
	BatchSize  *int32
	MaxTimeMS  int64
	Comment    any
	RawData    bool
}

// Name implements Command.
func (*ListIndexes) Name() string { return "listIndexes" }

// AppendBody implements Command.
func (c *ListIndexes) AppendBody(dst []byte, t *Target) ([]byte, error) {
	dst = bson.AppendString(dst, "listIndexes", c.Collection)
	start, dst := bson.BeginDocumentElement(dst, "cursor")
	if c.BatchSize != nil {
		dst = bson.AppendInt32(dst, "batchSize", *c.BatchSize)
	}
	f := fields{bson: t.BSON, dst: bson.EndDocument(dst, start)}
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.value("comment", c.Comment)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}
