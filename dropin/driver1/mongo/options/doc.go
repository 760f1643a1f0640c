// Package options has the settings of clients, collections and operations. The structs say what
// each field is; of what is set twice the last counts.
package options

import (
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/internal/dialect"
	v2options "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// The types that are those of version 2.
type (
	// ContextDialer makes connections.
	ContextDialer = v2options.ContextDialer
	// CursorType says whether a cursor stays open behind the last document.
	CursorType = v2options.CursorType
	// FullDocument says what the events of a change stream have as the document.
	FullDocument = v2options.FullDocument
	// IDPInfo is what a server says of its identity provider.
	IDPInfo = v2options.IDPInfo
	// LogComponent is a part of the driver that logs.
	LogComponent = v2options.LogComponent
	// LogLevel says how much is logged.
	LogLevel = v2options.LogLevel
	// LogSink takes log messages.
	LogSink = v2options.LogSink
	// LoggerOptions are what is logged, and where.
	LoggerOptions = v2options.LoggerOptions
	// OIDCArgs are the arguments of an OIDCCallback.
	OIDCArgs = v2options.OIDCArgs
	// OIDCCallback gets tokens of an identity provider.
	OIDCCallback = v2options.OIDCCallback
	// OIDCCredential is what an OIDCCallback returns.
	OIDCCredential = v2options.OIDCCredential
	// ReturnDocument says which state of a document is returned.
	ReturnDocument = v2options.ReturnDocument
	// ServerAPIOptions are the version of the Stable API.
	ServerAPIOptions = v2options.ServerAPIOptions
	// ServerAPIVersion is a version of the Stable API.
	ServerAPIVersion = v2options.ServerAPIVersion
)

// The values of these types.
const (
	NonTailable   = v2options.NonTailable
	Tailable      = v2options.Tailable
	TailableAwait = v2options.TailableAwait

	Before = v2options.Before
	After  = v2options.After

	Default       = v2options.Default
	Off           = v2options.Off
	Required      = v2options.Required
	UpdateLookup  = v2options.UpdateLookup
	WhenAvailable = v2options.WhenAvailable

	LogComponentAll             = v2options.LogComponentAll
	LogComponentCommand         = v2options.LogComponentCommand
	LogComponentTopology        = v2options.LogComponentTopology
	LogComponentServerSelection = v2options.LogComponentServerSelection
	LogComponentConnection      = v2options.LogComponentConnection

	LogLevelInfo  = v2options.LogLevelInfo
	LogLevelDebug = v2options.LogLevelDebug

	ServerAPIVersion1 = v2options.ServerAPIVersion1

	ServerMonitoringModeAuto   = v2options.ServerMonitoringModeAuto
	ServerMonitoringModePoll   = v2options.ServerMonitoringModePoll
	ServerMonitoringModeStream = v2options.ServerMonitoringModeStream
)

// QueryTypeEquality is the query type for values that are looked for as they are.
const QueryTypeEquality string = v2options.QueryTypeEquality

// The defaults of GridFS and of writes, and of sessions.
var (
	// DefaultName is the name of a bucket.
	DefaultName = v2options.DefaultName
	// DefaultChunkSize is how many bytes a chunk has.
	DefaultChunkSize = v2options.DefaultChunkSize
	// DefaultRevision is the newest file of a name.
	DefaultRevision = v2options.DefaultRevision
	// DefaultOrdered ends a bulk write at its first error.
	DefaultOrdered = v2options.DefaultOrdered
	// DefaultCausalConsistency makes reads of a session see its writes.
	DefaultCausalConsistency = v2options.DefaultCausalConsistency
)

// ServerAPI returns settings of a version of the Stable API.
func ServerAPI(serverAPIVersion ServerAPIVersion) *ServerAPIOptions {
	return v2options.ServerAPI(serverAPIVersion)
}

// Logger returns settings that log nothing.
func Logger() *LoggerOptions { return v2options.Logger() }

// Collation says how texts are compared.
type Collation struct {
	Locale          string `bson:",omitempty"` // the language, "simple" for none
	CaseLevel       bool   `bson:",omitempty"` // whether case counts, or only letters
	CaseFirst       string `bson:",omitempty"` // which case is first: "upper", "lower" or "off"
	Strength        int    `bson:",omitempty"` // how many levels of difference count, 1 to 5
	NumericOrdering bool   `bson:",omitempty"` // whether digits are compared as numbers
	Alternate       string `bson:",omitempty"` // whether spaces and punctuation count: "non-ignorable" or "shifted"
	MaxVariable     string `bson:",omitempty"` // which of them "shifted" leaves out: "punct" or "space"
	Normalization   bool   `bson:",omitempty"` // whether texts are normalized first
	Backwards       bool   `bson:",omitempty"` // whether accents are compared from the end
}

// ToDocument returns the collation as commands have it.
//
// Deprecated: operations do it.
func (co *Collation) ToDocument() bson.Raw {
	b := bsoncore.NewDocumentBuilder()
	text := func(key, value string) {
		if value != "" {
			b.AppendString(key, value)
		}
	}
	flag := func(key string, value bool) {
		if value {
			b.AppendBoolean(key, value)
		}
	}
	text("locale", co.Locale)
	flag("caseLevel", co.CaseLevel)
	text("caseFirst", co.CaseFirst)
	if co.Strength != 0 {
		b.AppendInt32("strength", int32(co.Strength))
	}
	flag("numericOrdering", co.NumericOrdering)
	text("alternate", co.Alternate)
	text("maxVariable", co.MaxVariable)
	flag("normalization", co.Normalization)
	flag("backwards", co.Backwards)
	return bson.Raw(b.Build())
}

// ArrayFilters are filters for the elements of arrays that an update names.
type ArrayFilters struct {
	// Registry encodes the filters; nil is the default one.
	//
	// Deprecated: set that of the client.
	Registry *bsoncodec.Registry

	Filters []any
}

// ToArray returns the encoded filters.
//
// Deprecated: operations do it.
func (af *ArrayFilters) ToArray() ([]bson.Raw, error) {
	r := af.Registry
	if r == nil {
		r = bson.DefaultRegistry
	}
	way := coding.Of(dialect.Registry(r), coding.Settings{})
	docs := make([]bson.Raw, len(af.Filters))
	for i, f := range af.Filters {
		doc, err := way.Marshal(f)
		if err != nil {
			return nil, err
		}
		docs[i] = doc
	}
	return docs, nil
}

// ToArrayDocument returns the encoded filters as an array.
//
// Deprecated: operations do it.
func (af *ArrayFilters) ToArrayDocument() (bson.Raw, error) {
	docs, err := af.ToArray()
	if err != nil {
		return nil, err
	}
	b := bsoncore.NewArrayBuilder()
	for _, doc := range docs {
		b.AppendDocument(doc)
	}
	return bson.Raw(b.Build()), nil
}

// A MarshalError says that a value has no form as a document.
//
// Deprecated: it is not returned any more.
type MarshalError struct {
	Value any
	Err   error
}

// Error names the type.
func (me MarshalError) Error() string {
	return fmt.Sprintf("cannot transform type %s to a bson.Raw", reflect.TypeOf(me.Value))
}

// SetCommitQuorumInt says how many members must have built the indexes.
func (c *CreateIndexesOptions) SetCommitQuorumInt(quorum int32) *CreateIndexesOptions {
	c.CommitQuorum = quorum
	return c
}

// SetCommitQuorumString says which members must have built the indexes, by a tag.
func (c *CreateIndexesOptions) SetCommitQuorumString(quorum string) *CreateIndexesOptions {
	c.CommitQuorum = quorum
	return c
}

// SetCommitQuorumMajority says that a majority of the members must have built the indexes.
func (c *CreateIndexesOptions) SetCommitQuorumMajority() *CreateIndexesOptions {
	return c.SetCommitQuorumString("majority")
}

// SetCommitQuorumVotingMembers says that all members that vote must have built the indexes.
func (c *CreateIndexesOptions) SetCommitQuorumVotingMembers() *CreateIndexesOptions {
	return c.SetCommitQuorumString("votingMembers")
}
