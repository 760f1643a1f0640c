package command

import (
	"errors"

	"allium/bson"
)

// ListCollections is the listCollections command. NameOnly is not sent with a filter by other
// fields than name, which the server would not see then (specification: Enumerating Collections).
type ListCollections struct {
	Filter                any
	NameOnly              bool
	AuthorizedCollections bool
	BatchSize             *int32
	MaxTimeMS             int64
	Comment               any
	RawData               bool
}

// Name implements Command.
func (*ListCollections) Name() string { return "listCollections" }

// AppendBody implements Command.
func (c *ListCollections) AppendBody(dst []byte, t *Target) ([]byte, error) {
	dst = bson.AppendInt32(dst, "listCollections", 1)
	start, dst := bson.BeginDocumentElement(dst, "cursor")
	if c.BatchSize != nil {
		dst = bson.AppendInt32(dst, "batchSize", *c.BatchSize)
	}
	f := fields{bson: t.BSON, dst: bson.EndDocument(dst, start)}
	at := len(f.dst)
	f.document("filter", c.Filter)
	nameOnly := c.NameOnly
	if f.err == nil && len(f.dst) > at {
		for key := range bson.Raw(f.dst[at+len("?filter."):]).All() {
			nameOnly = nameOnly && key == "name"
		}
	}
	f.set("nameOnly", nameOnly)
	f.yes("authorizedCollections", c.AuthorizedCollections)
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.value("comment", c.Comment)
	f.rawData(c.RawData, t)
	return f.dst, f.err
}

// ListDatabases is the listDatabases command.
type ListDatabases struct {
	Filter              any
	NameOnly            bool
	AuthorizedDatabases *bool
	MaxTimeMS           int64
	Comment             any
}

// Name implements Command.
func (*ListDatabases) Name() string { return "listDatabases" }

// AppendBody implements Command.
func (c *ListDatabases) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendInt32(dst, "listDatabases", 1)}
	f.document("filter", c.Filter)
	f.set("nameOnly", c.NameOnly)
	f.flag("authorizedDatabases", c.AuthorizedDatabases)
	f.int64("maxTimeMS", c.MaxTimeMS)
	f.value("comment", c.Comment)
	return f.dst, f.err
}

// Named is a command that consists of its name, one value, and a few fields that are encoded as a
// document: drop, dropDatabase, create, collMod, renameCollection and the like.
type Named struct {
	Command string
	// Target is the value of the command's own field: a string, or empty for 1.
	Target string
	// Fields are further fields, encoded as a document, or nil.
	Fields any
	// Queryable makes it an error if the server lacks the current Queryable Encryption.
	Queryable bool
}

// errQueryable has the specification's words.
//
//lint:ignore ST1005 the text is that of other drivers
var errQueryable = errors.New(
	"Driver support of Queryable Encryption is incompatible with server. Upgrade server to use Queryable Encryption.")

// Name implements Command.
func (c *Named) Name() string { return c.Command }

// AppendBody implements Command.
func (c *Named) AppendBody(dst []byte, t *Target) ([]byte, error) {
	if c.Queryable {
		t.need(21, errQueryable) // server 7.0 (specification: Client Side Encryption, "Create Collection Helper")
	}
	if c.Target == "" {
		dst = bson.AppendInt32(dst, c.Command, 1)
	} else {
		dst = bson.AppendString(dst, c.Command, c.Target)
	}
	if c.Fields == nil {
		return dst, nil
	}
	start := len(dst)
	dst, err := appendPlaced(t.BSON, dst, "", c.Fields, placeFields, c.Command)
	if err != nil {
		return dst, err
	}
	n := copy(dst[start:], dst[start+2+4:len(dst)-1]) // without the element's header
	return dst[:start+n], nil
}

// EndSessions is the endSessions command.
type EndSessions struct {
	IDs []bson.Raw
}

// MaxEndSessions is how many sessions one endSessions command ends (specification: Driver
// Sessions).
const MaxEndSessions = 10_000

// Name implements Command.
func (*EndSessions) Name() string { return "endSessions" }

// AppendBody implements Command.
func (c *EndSessions) AppendBody(dst []byte, t *Target) ([]byte, error) {
	start, dst := bson.BeginArrayElement(dst, "endSessions")
	for i, id := range c.IDs {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), id...)
	}
	return bson.EndDocument(dst, start), nil
}

// EndTransaction is commitTransaction or abortTransaction.
type EndTransaction struct {
	Commit        bool
	RecoveryToken bson.Raw
	MaxTimeMS     int64
}

// Name implements Command.
func (c *EndTransaction) Name() string {
	if c.Commit {
		return "commitTransaction"
	}
	return "abortTransaction"
}

// AppendBody implements Command.
func (c *EndTransaction) AppendBody(dst []byte, t *Target) ([]byte, error) {
	f := fields{bson: t.BSON, dst: bson.AppendInt32(dst, c.Name(), 1)}
	if c.RecoveryToken != nil {
		f.dst = bson.AppendDocument(f.dst, "recoveryToken", c.RecoveryToken)
	}
	f.int64("maxTimeMS", c.MaxTimeMS)
	return f.dst, f.err
}
