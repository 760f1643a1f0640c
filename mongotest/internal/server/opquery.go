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
	finds    bool  // it asks for documents and not for a command: until 5.0 it is a find, or a getMore
	toReturn int32 // how many documents it wants
}

// opGetMore is the opcode of what continues an OP_QUERY. No driver of today knows it.
const opGetMore wire.OpCode = 2005

// updateDriver is how the refusals end.
const updateDriver = "The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal"

// The flags of an OP_QUERY that mean arguments of find.
const (
	queryTailable  = 1 << 1
	querySecondary = 1 << 2
	queryReplay    = 1 << 3
	queryNoTimeout = 1 << 4
	queryAwaits    = 1 << 5
	queryPartial   = 1 << 7
)

// parseQuery reads an OP_QUERY.
func (r *Request) parseQuery(msg []byte) error {
	const flags, numbers, suffix = 4, 8, ".$cmd"
	b := msg[min(wire.HeaderLen+flags, len(msg)):]
	end := bytes.IndexByte(b, 0)
	if end < 0 || len(b) < end+1+numbers {
		return errors.New("message ends early")
	}
	ns, b := string(b[:end]), b[end+1:]
	doc, rest, err := bson.ReadDocument(b[numbers:])
	if err != nil {
		return err
	}
	r.legacyQuery = legacyQuery{legacy: true, toReturn: int32(binary.LittleEndian.Uint32(b[4:]))}
	var command bool
	if r.DB, command = strings.CutSuffix(ns, suffix); !command || r.DB == "" {
		r.finds, r.dbSeen = true, true
		var coll string
		if r.DB, coll, _ = strings.Cut(ns, "."); r.Version().AtLeast(5, 1) {
			r.Body = doc // which nobody looks at
			return nil
		}
		var fields bson.Raw
		if len(rest) > 0 {
			if fields, _, err = bson.ReadDocument(rest); err != nil {
				return err
			}
		}
		asked := binary.LittleEndian.Uint32(msg[wire.HeaderLen:])
		r.Body = findOf(coll, doc, fields, asked, int32(binary.LittleEndian.Uint32(b)), r.toReturn)
		return nil
	}
	if q := doc.Lookup("$query"); q.Type == bson.TypeEmbeddedDocument {
		doc = q.Value
	}
	r.Body, r.dbSeen = doc, true
	return nil
}

// modifiers are what may stand beside $query, and the arguments of find that they are.
var modifiers = map[string]string{
	"$orderby": "sort", "$hint": "hint", "$max": "max", "$min": "min", "$comment": "comment", "$maxTimeMS": "maxTimeMS",
	"$returnKey": "returnKey", "$showDiskLoc": "showRecordId", "$readPreference": "$readPreference",
}

// findOf makes the command of what asked for documents. A negative number of documents is a limit,
// and so is 1; others are the size of a batch.
func findOf(coll string, query, fields bson.Raw, flags uint32, skip, toReturn int32) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "find", coll)
	filter, preference, explain := query, false, false
	if q := query.Lookup("$query"); q.Type == bson.TypeEmbeddedDocument {
		filter = q.Value
		for key, v := range query.All() {
			if argument, ok := modifiers[key]; ok {
				dst = bson.AppendRawValue(dst, argument, v)
			}
			preference = preference || key == "$readPreference"
			explain = explain || key == "$explain" && v.AsBool()
		}
	}
	dst = bson.AppendDocument(dst, "filter", filter)
	if fields != nil && !fields.IsEmpty() {
		dst = bson.AppendDocument(dst, "projection", fields)
	}
	if skip != 0 {
		dst = bson.AppendInt64(dst, "skip", int64(skip))
	}
	switch {
	case toReturn < 0:
		dst = bson.AppendInt64(dst, "limit", -int64(toReturn))
	case toReturn > 1:
		dst = bson.AppendInt64(dst, "batchSize", int64(toReturn))
	case toReturn == 1:
		dst = bson.AppendInt64(dst, "limit", 1)
	}
	for _, f := range []struct {
		bit  uint32
		name string
	}{
		{queryTailable, "tailable"}, {queryReplay, "oplogReplay"}, {queryNoTimeout, "noCursorTimeout"},
		{queryAwaits, "awaitData"}, {queryPartial, "allowPartialResults"},
	} {
		if flags&f.bit != 0 {
			dst = bson.AppendBool(dst, f.name, true)
		}
	}
	if toReturn < 0 || toReturn == 1 {
		dst = bson.AppendBool(dst, "singleBatch", true)
	}
	if flags&querySecondary != 0 && !preference {
		at := 0
		at, dst = bson.BeginDocumentElement(dst, "$readPreference")
		dst = bson.EndDocument(bson.AppendString(dst, "mode", "secondaryPreferred"), at)
	}
	find := bson.Raw(bson.EndDocument(dst, start))
	if !explain {
		return find
	}
	start, dst = bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendDocument(dst, "explain", find), start)
}

// parseGetMore reads an OP_GET_MORE, which continues what an OP_QUERY has begun.
func (r *Request) parseGetMore(msg []byte) error {
	const zero, numbers = 4, 12
	b := msg[min(wire.HeaderLen+zero, len(msg)):]
	end := bytes.IndexByte(b, 0)
	if end < 0 || len(b) < end+1+numbers || r.Version().AtLeast(5, 1) {
		return errors.New("no message that this version takes")
	}
	ns, b := string(b[:end]), b[end+1:]
	r.legacyQuery = legacyQuery{legacy: true, finds: true, toReturn: int32(binary.LittleEndian.Uint32(b))}
	var coll string
	r.DB, coll, _ = strings.Cut(ns, ".")
	start, dst := bson.BeginDocument(nil)
	dst = bson.AppendInt64(dst, "getMore", int64(binary.LittleEndian.Uint64(b[4:])))
	dst = bson.AppendString(dst, "collection", coll)
	if r.toReturn != 0 {
		dst = bson.AppendInt64(dst, "batchSize", max(int64(r.toReturn), -int64(r.toReturn)))
	}
	r.Body, r.dbSeen = bson.EndDocument(dst, start), true
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
	case r.finds && !refuses:
		return nil
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

// The flags of a reply: there is no such cursor; it has an error in the place of documents; the
// server waits for documents of tailable cursors.
const (
	queryNoCursor  = 1
	queryFailure   = 2
	queryAwaitable = 8
)

// appendQueryError appends the reply's elements to what asked for documents.
func (r *Request) appendQueryError(dst []byte, e *srverr.Error) []byte {
	dst = bson.AppendString(dst, "$err", e.Msg)
	dst = bson.AppendInt32(dst, "code", e.Code)
	if r.Version().AtLeast(5, 1) {
		dst = bson.AppendDouble(dst, "ok", 0)
	}
	return dst
}

// finishDocuments makes the reply to what asked for documents of the command's reply, which begins
// at start: the documents of its batch follow each other. What has no cursor is one document.
func finishDocuments(out []byte, start int) []byte {
	begin := start + replyHead(true)
	head, doc := out[start+wire.HeaderLen:begin], bson.Raw(out[begin:])
	cursor, _ := doc.Lookup("cursor").Document()
	code, _ := doc.Lookup("code").Int32()
	flags, n := uint32(queryAwaitable), uint32(1)
	switch {
	case doc.Lookup("$err").Type == 0 && cursor == nil:
	case cursor == nil && code == srverr.CursorNotFound:
		flags, n, out = flags|queryNoCursor, 0, out[:begin]
	case cursor == nil:
		flags |= queryFailure
	default:
		id, _ := cursor.Lookup("id").Int64()
		batch := cursor.Lookup("firstBatch")
		if batch.Type == 0 {
			batch = cursor.Lookup("nextBatch")
		}
		var documents []byte
		n = 0
		for v := range bson.Raw(batch.Value).Values() {
			documents = append(documents, v.Value...)
			n++
		}
		binary.LittleEndian.PutUint64(head[4:], uint64(id))
		out = append(out[:begin], documents...)
	}
	binary.LittleEndian.PutUint32(head, flags) // before the number of the cursor, and the place
	binary.LittleEndian.PutUint32(head[len(head)-4:], n)
	return out
}
