// Package coding is how package mongo encodes and decodes with what package bson keeps to itself.
package coding

import "allium/bson"

// Settings are what an Encoder or a Decoder, or a client's options, change.
type Settings struct {
	// Of encoding.
	IntMinSize, NilBytesAsEmpty, NilMapAsEmpty, NilSliceAsEmpty, OmitEmpty, OmitZeroStruct, FormatKeys bool
	// Of decoding.
	Truncate, BinaryAsSlice, DocumentM, DocumentMap, Hex, LocalTime, ZeroMaps, ZeroStructs bool
	// Of both.
	JSONTags bool
}

// A Way is how values are encoded and decoded: a registry with settings, as of the time when it was
// asked for. It is safe for concurrent use.
type Way interface {
	// Marshal encodes a document.
	Marshal(val any) ([]byte, error)
	// MarshalValue encodes any value.
	MarshalValue(val any) (bson.Type, []byte, error)
	// Unmarshal decodes a value into the variable that into points to, or into the map into.
	Unmarshal(t bson.Type, data []byte, into any) error
	// Options are the same as Allium's options.
	Options() *bson.Options
}

// Of returns the Way of a *bson.Registry, nil for the default one. Package bson sets it.
var Of func(registry any, s Settings) Way

// A View is a document of a batch that is not copied. It is valid as long as the cursor is not
// moved.
type View struct{ Document bson.Raw }
