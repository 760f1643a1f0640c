// Package wiremessage appends and reads the parts of messages of MongoDB's wire protocol. Functions
// that read return what is left behind the part, and false, with all of src, if the part is not
// whole.
package wiremessage

import (
	"sync/atomic"
)

// A WireMessage is a whole message.
type WireMessage []byte

var lastRequestID atomic.Int32

// NextRequestID returns an ID for a request, each time another. It is safe for concurrent use.
func NextRequestID() int32 { return lastRequestID.Add(1) }

// An OpCode says what kind of message it is.
type OpCode int32

// The kinds.
const (
	OpReply        OpCode = 1
	OpUpdate       OpCode = 2001
	OpInsert       OpCode = 2002
	OpQuery        OpCode = 2004
	OpGetMore      OpCode = 2005
	OpDelete       OpCode = 2006
	OpKillCursors  OpCode = 2007
	OpCommand      OpCode = 2010
	OpCommandReply OpCode = 2011
	OpCompressed   OpCode = 2012
	OpMsg          OpCode = 2013
)

// String returns the name that the protocol has for the kind.
func (oc OpCode) String() string {
	switch oc {
	case OpReply:
		return "OP_REPLY"
	case OpUpdate:
		return "OP_UPDATE"
	case OpInsert:
		return "OP_INSERT"
	case OpQuery:
		return "OP_QUERY"
	case OpGetMore:
		return "OP_GET_MORE"
	case OpDelete:
		return "OP_DELETE"
	case OpKillCursors:
		return "OP_KILL_CURSORS"
	case OpCommand:
		return "OP_COMMAND"
	case OpCommandReply:
		return "OP_COMMANDREPLY"
	case OpCompressed:
		return "OP_COMPRESSED"
	case OpMsg:
		return "OP_MSG"
	}
	return "<invalid opcode>"
}

// AppendHeader appends a message's header.
func AppendHeader(dst []byte, length, reqid, respto int32, opcode OpCode) []byte {
	dst = appendInt32(dst, length)
	dst = appendInt32(dst, reqid)
	dst = appendInt32(dst, respto)
	return appendInt32(dst, int32(opcode))
}

// AppendHeaderStart appends a message's header without its length, and returns where that belongs.
func AppendHeaderStart(dst []byte, reqid, respto int32, opcode OpCode) (index int32, b []byte) {
	return int32(len(dst)), AppendHeader(dst, 0, reqid, respto, opcode)
}

// ReadHeader reads a message's header.
func ReadHeader(src []byte) (length, requestID, responseTo int32, opcode OpCode, rem []byte, ok bool) {
	if len(src) < 16 {
		return 0, 0, 0, 0, src, false
	}
	return int32At(src), int32At(src[4:]), int32At(src[8:]), OpCode(int32At(src[12:])), src[16:], true
}

// A CompressorID says how a message is compressed.
type CompressorID uint8

// The compressors.
const (
	CompressorNoOp CompressorID = iota
	CompressorSnappy
	CompressorZLib
	CompressorZstd
)

// The levels that are used if none is set.
const (
	DefaultZlibLevel = 6
	DefaultZstdLevel = 6
)

// String returns the name of the constant.
func (id CompressorID) String() string {
	switch id {
	case CompressorNoOp:
		return "CompressorNoOp"
	case CompressorSnappy:
		return "CompressorSnappy"
	case CompressorZLib:
		return "CompressorZLib"
	case CompressorZstd:
		return "CompressorZstd"
	}
	return "CompressorInvalid"
}

// AppendCompressedOriginalOpCode appends the kind of the message that is compressed.
func AppendCompressedOriginalOpCode(dst []byte, opcode OpCode) []byte {
	return appendInt32(dst, int32(opcode))
}

// AppendCompressedUncompressedSize appends the size of the message before it is compressed.
func AppendCompressedUncompressedSize(dst []byte, size int32) []byte { return appendInt32(dst, size) }

// AppendCompressedCompressorID appends the compressor.
func AppendCompressedCompressorID(dst []byte, id CompressorID) []byte { return append(dst, byte(id)) }

// AppendCompressedCompressedMessage appends the compressed message.
func AppendCompressedCompressedMessage(dst []byte, msg []byte) []byte { return append(dst, msg...) }

// ReadCompressedOriginalOpCode reads the kind of the message that is compressed.
func ReadCompressedOriginalOpCode(src []byte) (opcode OpCode, rem []byte, ok bool) {
	return readInt32[OpCode](src)
}

// ReadCompressedUncompressedSize reads the size of the message before it was compressed.
func ReadCompressedUncompressedSize(src []byte) (size int32, rem []byte, ok bool) {
	return readInt32[int32](src)
}

// ReadCompressedCompressorID reads the compressor.
func ReadCompressedCompressorID(src []byte) (id CompressorID, rem []byte, ok bool) {
	b, rem, ok := readByte(src)
	return CompressorID(b), rem, ok
}
