package drivertest

import (
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// The operations of the wire protocol.
const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

var errMalformed = errors.New("malformed wire message")

// frame returns a message.
func frame(responseTo, op uint32, body []byte) []byte {
	out := make([]byte, 16, 16+len(body))
	binary.LittleEndian.PutUint32(out, uint32(16+len(body)))
	binary.LittleEndian.PutUint32(out[8:], responseTo)
	binary.LittleEndian.PutUint32(out[12:], op)
	return append(out, body...)
}

// replyHead returns what stands before the document of an OP_REPLY.
func replyHead() []byte {
	head := make([]byte, 20)
	head[16] = 1 // one document
	return head
}

// MakeReply returns an OP_REPLY with a document.
func MakeReply(doc bsoncore.Document) []byte {
	return frame(0, opReply, append(replyHead(), doc...))
}

// GetCommandFromQueryWireMessage returns the command in an OP_QUERY.
func GetCommandFromQueryWireMessage(wm []byte) (bsoncore.Document, error) {
	if len(wm) < 21 || binary.LittleEndian.Uint32(wm[12:]) != opQuery {
		return nil, errMalformed
	}
	rest := wm[20:]
	for i, b := range rest { // the collection's name
		if b == 0 {
			rest = rest[i+1:]
			break
		}
	}
	if len(rest) < 8 {
		return nil, errMalformed
	}
	doc, _, ok := bsoncore.ReadDocument(rest[8:])
	if !ok {
		return nil, errMalformed
	}
	return doc, nil
}

// GetCommandFromMsgWireMessage returns the command in an OP_MSG, without its sequences of
// documents.
func GetCommandFromMsgWireMessage(wm []byte) (bsoncore.Document, error) {
	if len(wm) < 21 || binary.LittleEndian.Uint32(wm[12:]) != opMsg {
		return nil, errMalformed
	}
	for rest := wm[20:]; len(rest) > 4; {
		kind := rest[0]
		rest = rest[1:]
		if kind == 0 {
			doc, _, ok := bsoncore.ReadDocument(rest)
			if !ok {
				return nil, errMalformed
			}
			return doc, nil
		}
		n := int(binary.LittleEndian.Uint32(rest))
		if n < 4 || n > len(rest) {
			break
		}
		rest = rest[n:]
	}
	return nil, errMalformed
}
