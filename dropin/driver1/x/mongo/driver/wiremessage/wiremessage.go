// Package wiremessage appends and reads the parts of messages of MongoDB's wire protocol. It is
// package wiremessage of version 2 with the documents of this version.
package wiremessage

import (
	core "go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// The types.
type (
	// A CompressorID says how a message is compressed.
	CompressorID = core.CompressorID
	// MsgFlag are the flags of an OP_MSG.
	MsgFlag = core.MsgFlag
	// An OpCode says what kind of message it is.
	OpCode = core.OpCode
	// QueryFlag are the flags of an OP_QUERY.
	QueryFlag = core.QueryFlag
	// ReplyFlag are the flags of an OP_REPLY.
	ReplyFlag = core.ReplyFlag
	// A SectionType is the kind of a section of an OP_MSG.
	SectionType = core.SectionType
	// A WireMessage is a whole message.
	WireMessage = core.WireMessage
)

// The constants of the types.
const (
	TailableCursor   = core.TailableCursor
	SecondaryOK      = core.SecondaryOK
	OplogReplay      = core.OplogReplay
	NoCursorTimeout  = core.NoCursorTimeout
	AwaitData        = core.AwaitData
	Exhaust          = core.Exhaust
	Partial          = core.Partial
	CursorNotFound   = core.CursorNotFound
	QueryFailure     = core.QueryFailure
	ShardConfigStale = core.ShardConfigStale
	AwaitCapable     = core.AwaitCapable
	ChecksumPresent  = core.ChecksumPresent
	MoreToCome       = core.MoreToCome
	ExhaustAllowed   = core.ExhaustAllowed
	SingleDocument   = core.SingleDocument
	DocumentSequence = core.DocumentSequence
	OpReply          = core.OpReply
	OpUpdate         = core.OpUpdate
	OpInsert         = core.OpInsert
	OpQuery          = core.OpQuery
	OpGetMore        = core.OpGetMore
	OpDelete         = core.OpDelete
	OpKillCursors    = core.OpKillCursors
	OpCommand        = core.OpCommand
	OpCommandReply   = core.OpCommandReply
	OpCompressed     = core.OpCompressed
	OpMsg            = core.OpMsg
	CompressorNoOp   = core.CompressorNoOp
	CompressorSnappy = core.CompressorSnappy
	CompressorZLib   = core.CompressorZLib
	CompressorZstd   = core.CompressorZstd
	DefaultZlibLevel = core.DefaultZlibLevel
	DefaultZstdLevel = core.DefaultZstdLevel
)

func documents[D ~[]byte](docs []D) []bsoncore.Document {
	if docs == nil {
		return nil
	}
	out := make([]bsoncore.Document, len(docs))
	for i, d := range docs {
		out[i] = bsoncore.Document(d)
	}
	return out
}

// ReadCompressedCompressedMessage reads a compressed message of a length.
func ReadCompressedCompressedMessage(src []byte, length int32) (msg []byte, rem []byte, ok bool) {
	if length < 0 || len(src) < int(length) {
		return nil, src, false
	}
	return src[:length], src[length:], true
}

// AppendQueryFlags appends the flags of an OP_QUERY.
func AppendQueryFlags(dst []byte, flags QueryFlag) []byte {
	return core.AppendQueryFlags(dst, flags)
}

// AppendQueryFullCollectionName appends the name of a collection with its database's.
func AppendQueryFullCollectionName(dst []byte, ns string) []byte {
	return core.AppendQueryFullCollectionName(dst, ns)
}

// AppendQueryNumberToSkip appends how many documents to skip.
func AppendQueryNumberToSkip(dst []byte, skip int32) []byte {
	return core.AppendQueryNumberToSkip(dst, skip)
}

// AppendQueryNumberToReturn appends how many documents to return.
func AppendQueryNumberToReturn(dst []byte, nor int32) []byte {
	return core.AppendQueryNumberToReturn(dst, nor)
}

// ReadQueryFlags reads the flags of an OP_QUERY.
func ReadQueryFlags(src []byte) (flags QueryFlag, rem []byte, ok bool) {
	return core.ReadQueryFlags(src)
}

// ReadQueryFullCollectionName reads the name of a collection with its database's.
func ReadQueryFullCollectionName(src []byte) (collname string, rem []byte, ok bool) {
	return core.ReadQueryFullCollectionName(src)
}

// ReadQueryNumberToSkip reads how many documents to skip.
func ReadQueryNumberToSkip(src []byte) (nts int32, rem []byte, ok bool) {
	return core.ReadQueryNumberToSkip(src)
}

// ReadQueryNumberToReturn reads how many documents to return.
func ReadQueryNumberToReturn(src []byte) (ntr int32, rem []byte, ok bool) {
	return core.ReadQueryNumberToReturn(src)
}

// ReadQueryQuery reads the query.
func ReadQueryQuery(src []byte) (query bsoncore.Document, rem []byte, ok bool) {
	d, rem, ok := core.ReadQueryQuery(src)
	return bsoncore.Document(d), rem, ok
}

// ReadQueryReturnFieldsSelector reads which fields to return.
func ReadQueryReturnFieldsSelector(src []byte) (rfs bsoncore.Document, rem []byte, ok bool) {
	d, rem, ok := core.ReadQueryReturnFieldsSelector(src)
	return bsoncore.Document(d), rem, ok
}

// AppendReplyFlags appends the flags of an OP_REPLY.
func AppendReplyFlags(dst []byte, flags ReplyFlag) []byte {
	return core.AppendReplyFlags(dst, flags)
}

// AppendReplyCursorID appends the id of a cursor.
func AppendReplyCursorID(dst []byte, id int64) []byte {
	return core.AppendReplyCursorID(dst, id)
}

// AppendReplyStartingFrom appends where in the cursor the reply begins.
func AppendReplyStartingFrom(dst []byte, sf int32) []byte {
	return core.AppendReplyStartingFrom(dst, sf)
}

// AppendReplyNumberReturned appends how many documents there are.
func AppendReplyNumberReturned(dst []byte, nr int32) []byte {
	return core.AppendReplyNumberReturned(dst, nr)
}

// ReadReplyFlags reads the flags of an OP_REPLY.
func ReadReplyFlags(src []byte) (flags ReplyFlag, rem []byte, ok bool) {
	return core.ReadReplyFlags(src)
}

// ReadReplyCursorID reads the id of a cursor.
func ReadReplyCursorID(src []byte) (cursorID int64, rem []byte, ok bool) {
	return core.ReadReplyCursorID(src)
}

// ReadReplyStartingFrom reads where in the cursor the reply begins.
func ReadReplyStartingFrom(src []byte) (startingFrom int32, rem []byte, ok bool) {
	return core.ReadReplyStartingFrom(src)
}

// ReadReplyNumberReturned reads how many documents there are.
func ReadReplyNumberReturned(src []byte) (numberReturned int32, rem []byte, ok bool) {
	return core.ReadReplyNumberReturned(src)
}

// ReadReplyDocuments reads documents up to the first that is not whole.
func ReadReplyDocuments(src []byte) (docs []bsoncore.Document, rem []byte, ok bool) {
	list, rem, ok := core.ReadReplyDocuments(src)
	return documents(list), rem, ok
}

// ReadReplyDocument reads a document.
func ReadReplyDocument(src []byte) (doc bsoncore.Document, rem []byte, ok bool) {
	d, rem, ok := core.ReadReplyDocument(src)
	return bsoncore.Document(d), rem, ok
}

// AppendGetMoreZero appends what an OP_GET_MORE begins with.
func AppendGetMoreZero(dst []byte) []byte {
	return core.AppendGetMoreZero(dst)
}

// AppendGetMoreFullCollectionName appends the name of a collection with its database's.
func AppendGetMoreFullCollectionName(dst []byte, ns string) []byte {
	return core.AppendGetMoreFullCollectionName(dst, ns)
}

// AppendGetMoreNumberToReturn appends how many documents to return.
func AppendGetMoreNumberToReturn(dst []byte, numToReturn int32) []byte {
	return core.AppendGetMoreNumberToReturn(dst, numToReturn)
}

// AppendGetMoreCursorID appends the id of a cursor.
func AppendGetMoreCursorID(dst []byte, cursorID int64) []byte {
	return core.AppendGetMoreCursorID(dst, cursorID)
}

// AppendKillCursorsZero appends what an OP_KILL_CURSORS begins with.
func AppendKillCursorsZero(dst []byte) []byte {
	return core.AppendKillCursorsZero(dst)
}

// AppendKillCursorsNumberIDs appends how many cursors there are.
func AppendKillCursorsNumberIDs(dst []byte, numIDs int32) []byte {
	return core.AppendKillCursorsNumberIDs(dst, numIDs)
}

// AppendKillCursorsCursorIDs appends the ids of cursors.
func AppendKillCursorsCursorIDs(dst []byte, cursors []int64) []byte {
	return core.AppendKillCursorsCursorIDs(dst, cursors)
}

// ReadKillCursorsZero reads what an OP_KILL_CURSORS begins with.
func ReadKillCursorsZero(src []byte) (zero int32, rem []byte, ok bool) {
	return core.ReadKillCursorsZero(src)
}

// ReadKillCursorsNumberIDs reads how many cursors there are.
func ReadKillCursorsNumberIDs(src []byte) (numIDs int32, rem []byte, ok bool) {
	return core.ReadKillCursorsNumberIDs(src)
}

// ReadKillCursorsCursorIDs reads the ids of cursors.
func ReadKillCursorsCursorIDs(src []byte, numIDs int32) (cursorIDs []int64, rem []byte, ok bool) {
	return core.ReadKillCursorsCursorIDs(src, numIDs)
}

// IsMsgMoreToCome reports whether a message is an OP_MSG that others follow.
func IsMsgMoreToCome(wm []byte) bool {
	return core.IsMsgMoreToCome(wm)
}

// AppendMsgFlags appends flags.
func AppendMsgFlags(dst []byte, flags MsgFlag) []byte {
	return core.AppendMsgFlags(dst, flags)
}

// AppendMsgSectionType appends the kind of a section.
func AppendMsgSectionType(dst []byte, stype SectionType) []byte {
	return core.AppendMsgSectionType(dst, stype)
}

// ReadMsgFlags reads flags.
func ReadMsgFlags(src []byte) (flags MsgFlag, rem []byte, ok bool) {
	return core.ReadMsgFlags(src)
}

// ReadMsgSectionType reads the kind of a section.
func ReadMsgSectionType(src []byte) (stype SectionType, rem []byte, ok bool) {
	return core.ReadMsgSectionType(src)
}

// ReadMsgSectionSingleDocument reads the document of a section that has one.
func ReadMsgSectionSingleDocument(src []byte) (doc bsoncore.Document, rem []byte, ok bool) {
	d, rem, ok := core.ReadMsgSectionSingleDocument(src)
	return bsoncore.Document(d), rem, ok
}

// ReadMsgSectionDocumentSequence reads the documents of a section, and the name of the field that
// they belong to.
func ReadMsgSectionDocumentSequence(src []byte) (identifier string, docs []bsoncore.Document, rem []byte, ok bool) {
	identifier, list, rem, ok := core.ReadMsgSectionDocumentSequence(src)
	return identifier, documents(list), rem, ok
}

// ReadMsgSectionRawDocumentSequence reads the documents of a section as they are.
func ReadMsgSectionRawDocumentSequence(src []byte) (identifier string, data []byte, rem []byte, ok bool) {
	return core.ReadMsgSectionRawDocumentSequence(src)
}

// ReadMsgChecksum reads a checksum.
func ReadMsgChecksum(src []byte) (checksum uint32, rem []byte, ok bool) {
	return core.ReadMsgChecksum(src)
}

// NextRequestID returns an ID for a request, each time another. It is safe for concurrent use.
func NextRequestID() int32 {
	return core.NextRequestID()
}

// AppendHeader appends a message's header.
func AppendHeader(dst []byte, length, reqid, respto int32, opcode OpCode) []byte {
	return core.AppendHeader(dst, length, reqid, respto, opcode)
}

// AppendHeaderStart appends a message's header without its length, and returns where that belongs.
func AppendHeaderStart(dst []byte, reqid, respto int32, opcode OpCode) (index int32, b []byte) {
	return core.AppendHeaderStart(dst, reqid, respto, opcode)
}

// ReadHeader reads a message's header.
func ReadHeader(src []byte) (length, requestID, responseTo int32, opcode OpCode, rem []byte, ok bool) {
	return core.ReadHeader(src)
}

// AppendCompressedOriginalOpCode appends the kind of the message that is compressed.
func AppendCompressedOriginalOpCode(dst []byte, opcode OpCode) []byte {
	return core.AppendCompressedOriginalOpCode(dst, opcode)
}

// AppendCompressedUncompressedSize appends the size of the message before it is compressed.
func AppendCompressedUncompressedSize(dst []byte, size int32) []byte {
	return core.AppendCompressedUncompressedSize(dst, size)
}

// AppendCompressedCompressorID appends the compressor.
func AppendCompressedCompressorID(dst []byte, id CompressorID) []byte {
	return core.AppendCompressedCompressorID(dst, id)
}

// AppendCompressedCompressedMessage appends the compressed message.
func AppendCompressedCompressedMessage(dst []byte, msg []byte) []byte {
	return core.AppendCompressedCompressedMessage(dst, msg)
}

// ReadCompressedOriginalOpCode reads the kind of the message that is compressed.
func ReadCompressedOriginalOpCode(src []byte) (opcode OpCode, rem []byte, ok bool) {
	return core.ReadCompressedOriginalOpCode(src)
}

// ReadCompressedUncompressedSize reads the size of the message before it was compressed.
func ReadCompressedUncompressedSize(src []byte) (size int32, rem []byte, ok bool) {
	return core.ReadCompressedUncompressedSize(src)
}

// ReadCompressedCompressorID reads the compressor.
func ReadCompressedCompressorID(src []byte) (id CompressorID, rem []byte, ok bool) {
	return core.ReadCompressedCompressorID(src)
}
