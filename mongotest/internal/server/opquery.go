package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/srverr"
)

// legacyQuery is a request that came as an OP_QUERY: the opcode of clients that do not know yet
// whether a server has OP_MSG. Since version 5.1 servers take only what a connection may begin
// with, and tell others why.
type legacyQuery struct {
	legacy   bool  // the request is one
	finds    bool  // it asks for documents and not for a command, which no version here answers
	toReturn int32 // how many documents it wants
}

// updateDriver is how the refusals end.
const updateDriver = "The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal"

// parseQuery reads an OP_QUERY.
func (r *Request) parseQuery(msg []byte) error {
	const flags, numbers, suffix = 4, 8, ".$cmd"
	b := msg[min(wire.HeaderLen+flags, len(msg)):]
	end := bytes.IndexByte(b, 0)
	if end < 0 || len(b) < end+1+numbers {
		return errors.New("message ends early")
	}
	ns, b := string(b[:end]), b[end+1:]
	doc, _, err := bson.ReadDocument(b[numbers:])
	if err != nil {
		return err
	}
	r.legacyQuery = legacyQuery{legacy: true, toReturn: int32(binary.LittleEndian.Uint32(b[4:]))}
	var command bool
	if r.DB, command = strings.CutSuffix(ns, suffix); !command || r.DB == "" {
		if !r.Version().AtLeast(5, 1) {
			return errors.New("OP_QUERY is for commands only")
		}
		r.finds = true
	}
	if q := doc.Lookup("$query"); q.Type == bson.TypeEmbeddedDocument {
		doc = q.Value
	}
	r.Body, r.dbSeen = doc, true
	return nil
}

// checkQuery refuses what no OP_QUERY may say, and what it may not any more.
func (r *Request) checkQuery() error {
	refuses := r.Version().AtLeast(5, 1)
	if !r.legacy {
		return nil
	}
	name := ""
	for k := range r.Body.All() {
		name = k
		break
	}
	cmd := r.Node.Lookup(name)
	switch {
	case r.finds:
		return srverr.New(5739101, "OP_QUERY is no longer supported. %s", updateDriver)
	case r.toReturn != 1 && r.toReturn != -1:
		return srverr.New(16979, "Bad numberToReturn (%d) for $cmd type ns - can only be 1 or -1", r.toReturn)
	case refuses && (cmd == nil || !cmd.OpQuery):
		return srverr.New(srverr.UnsupportedOpQueryCommand, "Unsupported OP_QUERY command: %s. %s", name, updateDriver)
	case !r.Body.Lookup("$db").IsZero():
		return srverr.New(40621, "$db is not allowed in OP_QUERY requests")
	}
	return nil
}

// queryFailure is the flag of a reply that has an error in the place of documents.
const queryFailure = 2

// appendQueryError appends the reply's elements to what asked for documents.
func appendQueryError(dst []byte, e *srverr.Error) []byte {
	dst = bson.AppendString(dst, "$err", e.Msg)
	dst = bson.AppendInt32(dst, "code", e.Code)
	return bson.AppendDouble(dst, "ok", 0)
}
