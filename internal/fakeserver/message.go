package fakeserver

import (
	"io"

	"allium/bson"
	"allium/internal/wire"
)

// What every fake server of the tests needs of the wire protocol, whatever carries its bytes.

// ReadMessage reads the bytes of a message, and its header. Beside an error it returns bytes only
// if they are no header.
func ReadMessage(r io.Reader) ([]byte, wire.Header, error) {
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, wire.Header{}, err
	}
	h, err := wire.ParseHeader(head, wire.DefaultMaxMessageSize)
	if err != nil {
		return head, h, err
	}
	msg := append(head, make([]byte, int(h.Length)-len(head))...)
	if _, err = io.ReadFull(r, msg[wire.HeaderLen:]); err != nil {
		return nil, h, err
	}
	return msg, h, nil
}

// Read reads a command: its name, the id that the reply must name, and the message.
func Read(r io.Reader) (name string, id int32, m wire.Msg, err error) {
	msg, h, err := ReadMessage(r)
	if err == nil {
		m, err = wire.ParseMsg(msg)
	}
	if err != nil {
		return "", 0, wire.Msg{}, err
	}
	for key := range m.Body.All() {
		name = key
		break
	}
	return name, h.RequestID, m, nil
}

// Reply returns a message that answers the request with the id responseTo.
func Reply(id, responseTo int32, flags wire.Flags, doc bson.Raw) []byte {
	return wire.FinishMessage(append(wire.AppendMsg(nil, id, responseTo, flags), doc...), 0)
}

// Doc builds a document out of functions that append its elements.
func Doc(elements ...func([]byte) []byte) bson.Raw {
	at, dst := bson.BeginDocument(nil)
	for _, e := range elements {
		dst = e(dst)
	}
	return bson.EndDocument(dst, at)
}

// Hello returns the reply to hello of a standalone server, with further elements.
func Hello(elements ...func([]byte) []byte) bson.Raw {
	return Doc(append([]func([]byte) []byte{func(dst []byte) []byte {
		dst = bson.AppendBool(dst, "isWritablePrimary", true)
		dst = bson.AppendBool(dst, "helloOk", true)
		dst = bson.AppendInt32(dst, "maxBsonObjectSize", 16<<20)
		dst = bson.AppendInt32(dst, "maxMessageSizeBytes", wire.DefaultMaxMessageSize)
		dst = bson.AppendInt32(dst, "maxWriteBatchSize", 100000)
		dst = bson.AppendInt32(dst, "minWireVersion", 0)
		dst = bson.AppendInt32(dst, "maxWireVersion", 25)
		return bson.AppendDouble(dst, "ok", 1)
	}}, elements...)...)
}

// OK is the reply {ok: 1}.
func OK() bson.Raw {
	return Doc(func(dst []byte) []byte { return bson.AppendDouble(dst, "ok", 1) })
}

// Message returns the message of a command.
func Message(name string, elements ...func([]byte) []byte) []byte {
	doc := Doc(append([]func([]byte) []byte{
		func(dst []byte) []byte { return bson.AppendInt32(dst, name, 1) },
		func(dst []byte) []byte { return bson.AppendString(dst, "$db", "admin") },
	}, elements...)...)
	return wire.FinishMessage(append(wire.AppendMsg(nil, wire.NextRequestID(), 0, 0), doc...), 0)
}
