// Package drivertest has the wire protocol for tests: that of version 2.
package drivertest

import (
	core "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/drivertest"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// A ChannelNetConn is a connection whose messages the test sends and receives.
type ChannelNetConn = drivertest.ChannelNetConn

// MakeReply returns an OP_REPLY with a document.
func MakeReply(doc bsoncore.Document) []byte { return drivertest.MakeReply(core.Document(doc)) }

// GetCommandFromQueryWireMessage returns the command in an OP_QUERY.
func GetCommandFromQueryWireMessage(wm []byte) (bsoncore.Document, error) {
	doc, err := drivertest.GetCommandFromQueryWireMessage(wm)
	return bsoncore.Document(doc), err
}

// GetCommandFromMsgWireMessage returns the command in an OP_MSG, without its sequences of
// documents.
func GetCommandFromMsgWireMessage(wm []byte) (bsoncore.Document, error) {
	doc, err := drivertest.GetCommandFromMsgWireMessage(wm)
	return bsoncore.Document(doc), err
}
