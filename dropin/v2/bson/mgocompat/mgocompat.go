// Package mgocompat has registries for programs that come from the driver mgo.
package mgocompat

import "go.mongodb.org/mongo-driver/v2/bson"

var (
	// Registry encodes and decodes as mgo does.
	Registry = bson.NewMgoRegistry()
	// RespectNilValuesRegistry is Registry with nil slices and maps as null.
	RespectNilValuesRegistry = bson.NewRespectNilValuesMgoRegistry()
)
