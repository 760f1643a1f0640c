// Package readconcern has the read concerns: how durable what is read must be.
package readconcern

import (
	"errors"

	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A ReadConcern says how durable what is read must be. With an empty level the server decides.
type ReadConcern struct{ Level string }

// An Option is a setting of a read concern.
//
// Deprecated: set the field.
type Option func(concern *ReadConcern)

// Level sets the level.
//
// Deprecated: set the field.
func Level(level string) Option { return func(concern *ReadConcern) { concern.Level = level } }

// New returns a read concern.
//
// Deprecated: use the other functions.
func New(options ...Option) *ReadConcern {
	rc := new(ReadConcern)
	for _, set := range options {
		set(rc)
	}
	return rc
}

// Local reads what the member has.
func Local() *ReadConcern { return &ReadConcern{"local"} }

// Majority reads what a majority of the members has.
func Majority() *ReadConcern { return &ReadConcern{"majority"} }

// Linearizable reads what a majority had before the read began.
func Linearizable() *ReadConcern { return &ReadConcern{"linearizable"} }

// Available reads what the member has, orphaned documents of shards included.
func Available() *ReadConcern { return &ReadConcern{"available"} }

// Snapshot reads what a majority had at one time.
func Snapshot() *ReadConcern { return &ReadConcern{"snapshot"} }

// GetLevel returns the level.
//
// Deprecated: read the field.
func (rc *ReadConcern) GetLevel() string { return rc.Level }

// MarshalBSONValue encodes the read concern as commands have it.
//
// Deprecated: clients do it.
func (rc *ReadConcern) MarshalBSONValue() (bsontype.Type, []byte, error) {
	if rc == nil {
		return 0, nil, errors.New("cannot marshal nil ReadConcern")
	}
	doc := bson.D{}
	if rc.Level != "" {
		doc = append(doc, bson.E{Key: "level", Value: rc.Level})
	}
	return bson.MarshalValue(doc)
}
