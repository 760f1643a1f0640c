package wiremessage

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// QueryFlag are the flags of an OP_QUERY.
type QueryFlag int32

// The flags.
const (
	TailableCursor QueryFlag = 1 << (iota + 1)
	SecondaryOK
	OplogReplay
	NoCursorTimeout
	AwaitData
	Exhaust
	Partial
)

// String returns the names of the flags.
func (qf QueryFlag) String() string {
	return names(int32(qf)>>1, "TailableCursor", "SecondaryOK", "OplogReplay", "NoCursorTimeout", "AwaitData",
		"Exhaust", "Partial")
}

// ReplyFlag are the flags of an OP_REPLY.
type ReplyFlag int32

// The flags.
const (
	CursorNotFound ReplyFlag = 1 << iota
	QueryFailure
	ShardConfigStale
	AwaitCapable
)

// String returns the names of the flags.
func (rf ReplyFlag) String() string {
	return names(int32(rf), "CursorNotFound", "QueryFailure", "ShardConfigStale", "AwaitCapable")
}

// names returns those of the bits that are set, the lowest one's first.
func names(bits int32, of ...string) string {
	var set []string
	for i, name := range of {
		if bits&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return "[" + strings.Join(set, ", ") + "]"
}

// AppendQueryFlags appends the flags of an OP_QUERY.
func AppendQueryFlags(dst []byte, flags QueryFlag) []byte { return appendInt32(dst, int32(flags)) }

// AppendQueryFullCollectionName appends the name of a collection with its database's.
func AppendQueryFullCollectionName(dst []byte, ns string) []byte { return appendString(dst, ns) }

// AppendQueryNumberToSkip appends how many documents to skip.
func AppendQueryNumberToSkip(dst []byte, skip int32) []byte { return appendInt32(dst, skip) }

// AppendQueryNumberToReturn appends how many documents to return.
func AppendQueryNumberToReturn(dst []byte, nor int32) []byte { return appendInt32(dst, nor) }

// ReadQueryFlags reads the flags of an OP_QUERY.
func ReadQueryFlags(src []byte) (flags QueryFlag, rem []byte, ok bool) {
	return readInt32[QueryFlag](src)
}

// ReadQueryFullCollectionName reads the name of a collection with its database's.
func ReadQueryFullCollectionName(src []byte) (collname string, rem []byte, ok bool) {
	return readString(src)
}

// ReadQueryNumberToSkip reads how many documents to skip.
func ReadQueryNumberToSkip(src []byte) (nts int32, rem []byte, ok bool) { return readInt32[int32](src) }

// ReadQueryNumberToReturn reads how many documents to return.
func ReadQueryNumberToReturn(src []byte) (ntr int32, rem []byte, ok bool) {
	return readInt32[int32](src)
}

// ReadQueryQuery reads the query.
func ReadQueryQuery(src []byte) (query bsoncore.Document, rem []byte, ok bool) {
	return bsoncore.ReadDocument(src)
}

// ReadQueryReturnFieldsSelector reads which fields to return.
func ReadQueryReturnFieldsSelector(src []byte) (rfs bsoncore.Document, rem []byte, ok bool) {
	return bsoncore.ReadDocument(src)
}

// AppendReplyFlags appends the flags of an OP_REPLY.
func AppendReplyFlags(dst []byte, flags ReplyFlag) []byte { return appendInt32(dst, int32(flags)) }

// AppendReplyCursorID appends the id of a cursor.
func AppendReplyCursorID(dst []byte, id int64) []byte { return appendInt64(dst, id) }

// AppendReplyStartingFrom appends where in the cursor the reply begins.
func AppendReplyStartingFrom(dst []byte, sf int32) []byte { return appendInt32(dst, sf) }

// AppendReplyNumberReturned appends how many documents there are.
func AppendReplyNumberReturned(dst []byte, nr int32) []byte { return appendInt32(dst, nr) }

// ReadReplyFlags reads the flags of an OP_REPLY.
func ReadReplyFlags(src []byte) (flags ReplyFlag, rem []byte, ok bool) {
	return readInt32[ReplyFlag](src)
}

// ReadReplyCursorID reads the id of a cursor.
func ReadReplyCursorID(src []byte) (cursorID int64, rem []byte, ok bool) {
	return bsoncore.ReadInt64(src)
}

// ReadReplyStartingFrom reads where in the cursor the reply begins.
func ReadReplyStartingFrom(src []byte) (startingFrom int32, rem []byte, ok bool) {
	return readInt32[int32](src)
}

// ReadReplyNumberReturned reads how many documents there are.
func ReadReplyNumberReturned(src []byte) (numberReturned int32, rem []byte, ok bool) {
	return readInt32[int32](src)
}

// ReadReplyDocuments reads documents up to the first that is not whole.
func ReadReplyDocuments(src []byte) (docs []bsoncore.Document, rem []byte, ok bool) {
	for rem = src; ; {
		var doc bsoncore.Document
		if doc, rem, ok = bsoncore.ReadDocument(rem); !ok {
			return docs, rem, true
		}
		docs = append(docs, doc)
	}
}

// ReadReplyDocument reads a document.
func ReadReplyDocument(src []byte) (doc bsoncore.Document, rem []byte, ok bool) {
	return bsoncore.ReadDocument(src)
}

// AppendGetMoreZero appends what an OP_GET_MORE begins with.
func AppendGetMoreZero(dst []byte) []byte { return appendInt32(dst, 0) }

// AppendGetMoreFullCollectionName appends the name of a collection with its database's.
func AppendGetMoreFullCollectionName(dst []byte, ns string) []byte { return appendString(dst, ns) }

// AppendGetMoreNumberToReturn appends how many documents to return.
func AppendGetMoreNumberToReturn(dst []byte, numToReturn int32) []byte {
	return appendInt32(dst, numToReturn)
}

// AppendGetMoreCursorID appends the id of a cursor.
func AppendGetMoreCursorID(dst []byte, cursorID int64) []byte { return appendInt64(dst, cursorID) }

// AppendKillCursorsZero appends what an OP_KILL_CURSORS begins with.
func AppendKillCursorsZero(dst []byte) []byte { return appendInt32(dst, 0) }

// AppendKillCursorsNumberIDs appends how many cursors there are.
func AppendKillCursorsNumberIDs(dst []byte, numIDs int32) []byte { return appendInt32(dst, numIDs) }

// AppendKillCursorsCursorIDs appends the ids of cursors.
func AppendKillCursorsCursorIDs(dst []byte, cursors []int64) []byte {
	for _, id := range cursors {
		dst = appendInt64(dst, id)
	}
	return dst
}

// ReadKillCursorsZero reads what an OP_KILL_CURSORS begins with.
func ReadKillCursorsZero(src []byte) (zero int32, rem []byte, ok bool) { return readInt32[int32](src) }

// ReadKillCursorsNumberIDs reads how many cursors there are.
func ReadKillCursorsNumberIDs(src []byte) (numIDs int32, rem []byte, ok bool) {
	return readInt32[int32](src)
}

// ReadKillCursorsCursorIDs reads the ids of cursors.
func ReadKillCursorsCursorIDs(src []byte, numIDs int32) (cursorIDs []int64, rem []byte, ok bool) {
	rem = src
	for range numIDs {
		var id int64
		if id, rem, ok = bsoncore.ReadInt64(rem); !ok {
			return cursorIDs, rem, false
		}
		cursorIDs = append(cursorIDs, id)
	}
	return cursorIDs, rem, true
}
