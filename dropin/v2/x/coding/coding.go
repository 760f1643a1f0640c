// Package coding is how package mongo, and version 1 of the driver, encode and decode with what
// package bson keeps to itself. It is not for programs, and may change.
package coding

import (
	"reflect"
	"time"

	"allium/bson"
	"go.mongodb.org/mongo-driver/v2/internal/optionsutil"
)

// Settings are what an Encoder or a Decoder, or a client's options, change.
type Settings struct {
	// Of encoding.
	IntMinSize, NilBytesAsEmpty, NilMapAsEmpty, NilSliceAsEmpty, OmitEmpty, OmitZeroStruct, FormatKeys bool
	InlineOnce                                                                                         bool
	// Of decoding.
	Truncate, BinaryAsSlice, DocumentM, DocumentMap, Hex, LocalTime, ZeroMaps, ZeroStructs bool
	// Of both.
	JSONTags bool

	// With a Dialect: Ancestor is the type that documents become in variables of type any,
	// Documents the same wherever these variables are.
	Ancestor, Documents reflect.Type
}

// A Dialect is what version 1 of the official driver encodes and decodes otherwise than version 2.
type Dialect struct {
	// Own has the types of that version that Allium does not know, and how each is encoded and
	// decoded. Nothing that is registered for interfaces and kinds is for them.
	Own map[reflect.Type]func(Way) (bson.EncodeFunc, bson.DecodeFunc)
	// Any has the types that values become in a variable of type any, where they are others.
	Any map[bson.Type]reflect.Type
	// Marshalers and Unmarshalers are the interfaces whose methods encode and decode. They go
	// before what is registered for other interfaces and for kinds.
	Marshalers, Unmarshalers []reflect.Type
	// Methods returns the functions for a type that has methods which Allium does not know.
	// Those with pointer receivers encode values that have an address.
	Methods func(w Way, t reflect.Type, addressable bool) (bson.EncodeFunc, bson.DecodeFunc)
	// Inherits reports whether documents in variables of type any in a type become of that type.
	Inherits func(reflect.Type) bool
	// M is what documents become with the setting DocumentM.
	M reflect.Type
	// Name is what errors call a type, "" if it has no name of its own.
	Name func(from bson.Type, t reflect.Type) string
}

// Package bson sets these functions. Registries are *bson.Registry there; readers and writers are
// its ValueReader and ValueWriter, contexts its EncodeContext and DecodeContext.
var (
	// NewRegistry returns a registry of a dialect.
	NewRegistry func(d *Dialect) (registry any)
	// WithDocuments returns the registry with another type for documents in variables of type any,
	// wherever these are.
	WithDocuments func(registry any, t reflect.Type) any
	// SettingsOf returns the settings in a context.
	SettingsOf func(context any) Settings
	// Encoder returns what is registered to encode values of a type that have an address, or have
	// none: for the type itself or by an interface or a kind, nil if there is nothing. It may be
	// another for values that have no address if byAddress is true.
	Encoder func(registry any, t reflect.Type, addressable bool) (enc any, byAddress bool)
	// Decoder returns what is registered to decode into variables of a type.
	Decoder func(registry any, t reflect.Type) any
	// HasForm reports whether a type can be encoded, or decoded into, without being registered.
	HasForm func(registry any, t reflect.Type, encoder bool) bool
	// TypeOfAny returns what values become in a variable of type any, nil if there is no such type.
	TypeOfAny func(registry any, t bson.Type) reflect.Type
	// ReadValue reads a value of any type.
	ReadValue func(vr any) (bson.Type, []byte, error)
	// WriteValue writes a value.
	WriteValue func(vw any, t bson.Type, data []byte) error
	// IsOwn reports whether a reader or writer is one of the package's.
	IsOwn func(reader any) bool
	// NewReader returns a reader of one value.
	NewReader func(t bson.Type, data []byte) any
	// NewWriter returns a writer, and a function that returns the value it has written.
	NewWriter func() (vw any, written func() (bson.Type, []byte, error))
)

// A Way is how values are encoded and decoded: a registry with settings, as of the time when it was
// asked for. It is safe for concurrent use.
type Way interface {
	// Marshal encodes a document.
	Marshal(val any) ([]byte, error)
	// MarshalValue encodes any value.
	MarshalValue(val any) (bson.Type, []byte, error)
	// Unmarshal decodes a value into the variable that into points to, or into the map into.
	Unmarshal(t bson.Type, data []byte, into any) error
	// MarshalInside and UnmarshalInside are for values inside of documents. A type may have methods
	// for both.
	MarshalInside(val any) (bson.Type, []byte, error)
	// MarshalDefault and UnmarshalDefault are the same without what is registered for the value's
	// type, for registered functions that leave the rest to the default way.
	MarshalDefault(val reflect.Value) (bson.Type, []byte, error)
	UnmarshalInside(t bson.Type, data []byte, into any) error
	UnmarshalDefault(t bson.Type, data []byte, into reflect.Value) error
	// Options are the same as Allium's options.
	Options() *bson.Options
}

// Of returns the Way of a *bson.Registry, nil for the default one. Package bson sets it.
var Of func(registry any, s Settings) Way

// A View is a document of a batch that is not copied. It is valid as long as the cursor is not
// moved.
type View struct{ Document bson.Raw }

// ErrNoEncoder is the error for a type that has no BSON form.
type ErrNoEncoder struct{ Type reflect.Type }

// Error names the type.
func (e ErrNoEncoder) Error() string { return "no encoder found for " + TypeName(e.Type) }

// ErrNoDecoder is the error for a type that nothing decodes into.
type ErrNoDecoder struct{ Type reflect.Type }

// Error names the type.
func (e ErrNoDecoder) Error() string { return "no decoder found for " + TypeName(e.Type) }

// ErrNoTypeMapEntry is the error for a BSON type without a Go type.
type ErrNoTypeMapEntry struct{ Type bson.Type }

// Error names the type.
func (e ErrNoTypeMapEntry) Error() string { return "no type map entry found for " + e.Type.String() }

// TypeName is what errors call a type, which may be nil.
func TypeName(t reflect.Type) string {
	if t == nil {
		return "<nil>"
	}
	return t.String()
}

// The options of version 1 that version 2 has none for.
const (
	MaxTime = "maxTime" // of operations
	// of operations, a bson.D of version 2: package xoptions sets it, too
	CommandFields = "addCommandFields"
	// of a client's BulkWrite, a [][]byte, by package xoptions
	CollectionUUIDs = "collectionUUIDs"
	Background      = "background"    // of CreateIndexes, a []*bool: the option background of each index
	SocketTimeout   = "socketTimeout" // of clients, in ClientOptions.Custom
	Connected       = "connected"     // of clients, an *atomic.Bool: whether Connect was called
	Described       = "described"     // of clients, *States
)

// States are functions that are called in place of those of a client's ServerMonitor, with the
// same event and what version 1 has of servers besides: the previous state and the new one.
type States struct {
	Server   func(changed any, previous, next ServerState)
	Topology func(changed any, previous, next []ServerState) // in the order of the descriptions' servers
}

// A ServerState is what is known of a server besides what version 2's events have.
type ServerState struct {
	AverageRTT, HeartbeatInterval time.Duration
	LastError                     error
	LastUpdateTime                time.Time
}

// NotOpened is how the errors of downloads of files that could not be opened begin.
const NotOpened = "error decoding files collection document: "

// WithOption adds an option to those of an operation or a client.
func WithOption(to *optionsutil.Options, key string, v any) { *to = optionsutil.With(*to, key, v) }

// A TimedW is the W of a write concern of version 1 that has a time, or of that of a transaction
// whose commit has one.
type TimedW struct {
	W               any
	Timeout, Commit time.Duration
}
