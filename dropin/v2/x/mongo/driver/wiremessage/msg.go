package wiremessage

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// MsgFlag are the flags of an OP_MSG.
type MsgFlag uint32

// The flags.
const (
	ChecksumPresent MsgFlag = 1 << 0
	MoreToCome      MsgFlag = 1 << 1
	ExhaustAllowed  MsgFlag = 1 << 16
)

// A SectionType is the kind of a section of an OP_MSG.
type SectionType uint8

// The kinds.
const (
	SingleDocument   SectionType = 0
	DocumentSequence SectionType = 1
)

// IsMsgMoreToCome reports whether a message is an OP_MSG that others follow.
func IsMsgMoreToCome(wm []byte) bool {
	_, _, _, opcode, rem, ok := ReadHeader(wm)
	if !ok || opcode != OpMsg {
		return false
	}
	flags, _, ok := ReadMsgFlags(rem)
	return ok && flags&MoreToCome != 0
}

// AppendMsgFlags appends flags.
func AppendMsgFlags(dst []byte, flags MsgFlag) []byte { return appendInt32(dst, int32(flags)) }

// AppendMsgSectionType appends the kind of a section.
func AppendMsgSectionType(dst []byte, stype SectionType) []byte { return append(dst, byte(stype)) }

// ReadMsgFlags reads flags.
func ReadMsgFlags(src []byte) (flags MsgFlag, rem []byte, ok bool) { return readInt32[MsgFlag](src) }

// ReadMsgSectionType reads the kind of a section.
func ReadMsgSectionType(src []byte) (stype SectionType, rem []byte, ok bool) {
	b, rem, ok := readByte(src)
	return SectionType(b), rem, ok
}

// ReadMsgSectionSingleDocument reads the document of a section that has one.
func ReadMsgSectionSingleDocument(src []byte) (doc bsoncore.Document, rem []byte, ok bool) {
	return bsoncore.ReadDocument(src)
}

// ReadMsgSectionDocumentSequence reads the documents of a section, and the name of the field that
// they belong to.
func ReadMsgSectionDocumentSequence(src []byte) (identifier string, docs []bsoncore.Document, rem []byte, ok bool) {
	identifier, data, rem, ok := ReadMsgSectionRawDocumentSequence(src)
	if !ok {
		return "", nil, rem, false
	}
	docs, left, _ := ReadReplyDocuments(data)
	if len(left) > 0 {
		return "", nil, src, false
	}
	return identifier, docs, rem, true
}

// ReadMsgSectionRawDocumentSequence reads the documents of a section as they are.
func ReadMsgSectionRawDocumentSequence(src []byte) (identifier string, data []byte, rem []byte, ok bool) {
	length, _, ok := readInt32[int32](src)
	if !ok || length < 4 || int(length) > len(src) {
		return "", nil, src, false
	}
	identifier, data, ok = readString(src[4:length])
	if !ok {
		return "", nil, src, false
	}
	return identifier, data, src[length:], true
}

// ReadMsgChecksum reads a checksum.
func ReadMsgChecksum(src []byte) (checksum uint32, rem []byte, ok bool) {
	return readInt32[uint32](src)
}

func appendInt32(dst []byte, n int32) []byte { return bsoncore.AppendInt32(dst, n) }

func appendInt64(dst []byte, n int64) []byte { return bsoncore.AppendInt64(dst, n) }

// appendString appends a string and a null byte.
func appendString(dst []byte, s string) []byte { return append(append(dst, s...), 0) }

func int32At(src []byte) int32 {
	n, _, _ := bsoncore.ReadInt32(src)
	return n
}

func readInt32[T ~int32 | ~uint32](src []byte) (T, []byte, bool) {
	n, rem, ok := bsoncore.ReadInt32(src)
	return T(n), rem, ok
}

func readByte(src []byte) (byte, []byte, bool) {
	if len(src) == 0 {
		return 0, src, false
	}
	return src[0], src[1:], true
}

func readString(src []byte) (string, []byte, bool) {
	s, rem, ok := bytes.Cut(src, []byte{0})
	if !ok {
		return "", src, false
	}
	return string(s), rem, true
}
