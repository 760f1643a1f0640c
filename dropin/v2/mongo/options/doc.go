// Package options has the settings of clients, collections and operations. The structs say what
// each field is; builders collect what their setters are called with, and of what is set twice the
// last counts.
package options

// A Lister has settings in a form that operations take: functions that change them, in the order in
// which they are called.
type Lister[T any] interface {
	List() []func(*T) error
}

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

// A CursorType says whether a cursor stays open behind the last document.
type CursorType int8

// The types of cursors.
const (
	// NonTailable ends behind the last document.
	NonTailable CursorType = iota
	// Tailable stays open on a capped collection.
	Tailable
	// TailableAwait stays open, and the server waits for news.
	TailableAwait
)

// A ReturnDocument says which state of a document is returned.
type ReturnDocument int8

// The states.
const (
	// Before is the document as it was.
	Before ReturnDocument = iota
	// After is the document as it is now.
	After
)

// A FullDocument says what the events of a change stream have as the document.
type FullDocument string

// The choices.
const (
	// Default has no document for updates.
	Default FullDocument = "default"
	// Off has none.
	Off FullDocument = "off"
	// Required has the document as it was, and is an error if it was not kept.
	Required FullDocument = "required"
	// UpdateLookup has the document as it is when the event is read.
	UpdateLookup FullDocument = "updateLookup"
	// WhenAvailable has the document as it was, if it was kept.
	WhenAvailable FullDocument = "whenAvailable"
)

// The defaults of GridFS and of writes, and of sessions.
var (
	// DefaultName is the name of a bucket.
	DefaultName = "fs"
	// DefaultChunkSize is how many bytes a chunk has.
	DefaultChunkSize int32 = 255 * 1024
	// DefaultRevision is the newest file of a name.
	DefaultRevision int32 = -1
	// DefaultOrdered ends a bulk write at its first error.
	DefaultOrdered = true
	// DefaultCausalConsistency makes reads of a session see its writes.
	DefaultCausalConsistency = true
)

// QueryTypeEquality is the query type for values that are looked for as they are.
const QueryTypeEquality string = "equality"

// The ways in which servers are monitored.
const (
	// ServerMonitoringModeAuto streams, but not in a function of a cloud.
	ServerMonitoringModeAuto = "auto"
	// ServerMonitoringModePoll asks again and again.
	ServerMonitoringModePoll = "poll"
	// ServerMonitoringModeStream lets servers tell their news.
	ServerMonitoringModeStream = "stream"
)

// BSONOptions are settings of encoding and decoding: the methods of bson.Encoder and bson.Decoder
// of the same names say what each does.
type BSONOptions struct {
	UseJSONStructTags       bool
	ErrorOnInlineDuplicates bool
	IntMinSize              bool
	NilMapAsEmpty           bool
	NilSliceAsEmpty         bool
	NilByteSliceAsEmpty     bool
	OmitZeroStruct          bool
	OmitEmpty               bool
	StringifyMapKeysWithFmt bool
	AllowTruncatingDoubles  bool
	BinaryAsSlice           bool
	DefaultDocumentM        bool
	DefaultDocumentMap      bool
	ObjectIDAsHexString     bool
	UseLocalTimeZone        bool
	ZeroMaps                bool
	ZeroStructs             bool
}

// SetCommitQuorumInt says how many members must have built the indexes.
func (b *CreateIndexesOptionsBuilder) SetCommitQuorumInt(quorum int32) *CreateIndexesOptionsBuilder {
	return b.setCommitQuorum(quorum)
}

// SetCommitQuorumString says which members must have built the indexes, by a tag.
func (b *CreateIndexesOptionsBuilder) SetCommitQuorumString(quorum string) *CreateIndexesOptionsBuilder {
	return b.setCommitQuorum(quorum)
}

// SetCommitQuorumMajority says that a majority of the members must have built the indexes.
func (b *CreateIndexesOptionsBuilder) SetCommitQuorumMajority() *CreateIndexesOptionsBuilder {
	return b.setCommitQuorum("majority")
}

// SetCommitQuorumVotingMembers says that all members that vote must have built the indexes.
func (b *CreateIndexesOptionsBuilder) SetCommitQuorumVotingMembers() *CreateIndexesOptionsBuilder {
	return b.setCommitQuorum("votingMembers")
}

func (b *CreateIndexesOptionsBuilder) setCommitQuorum(quorum any) *CreateIndexesOptionsBuilder {
	b.Opts = append(b.Opts, func(o *CreateIndexesOptions) error {
		o.CommitQuorum = quorum
		return nil
	})
	return b
}

// PrefixOptions are settings of searches for the beginning of an encrypted text.
type PrefixOptions struct {
	StrMinQueryLength int32
	StrMaxQueryLength int32
}

// SuffixOptions are settings of searches for the end of an encrypted text.
type SuffixOptions struct {
	StrMinQueryLength int32
	StrMaxQueryLength int32
}

// SubstringOptions are settings of searches for a part of an encrypted text.
type SubstringOptions struct {
	StrMaxLength      int32
	StrMinQueryLength int32
	StrMaxQueryLength int32
}
