package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"allium/bson"
)

// Flags are the flag bits of an OP_MSG (specification: OP_MSG).
type Flags uint32

// The flag bits. Unknown bits among the lower 16 are an error, the upper 16 may be ignored.
const (
	ChecksumPresent Flags = 1 << 0
	MoreToCome      Flags = 1 << 1
	ExhaustAllowed  Flags = 1 << 16
)

// Msg is a parsed OP_MSG. Its parts share the memory of the message.
type Msg struct {
	Flags     Flags
	Body      bson.Raw   // the one section of kind 0
	Sequences []Sequence // the sections of kind 1
}

// Sequence is a document sequence: a section of kind 1. Each id stands for a field of the command.
type Sequence struct {
	ID   string
	Docs []byte // documents back to back; read them with bson.ReadDocument
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// AppendMsg appends the start of an OP_MSG up to and including the kind byte of its body, so that
// the body's document must follow. After the body come sequences (BeginSequence), then
// FinishMessage:
//
//	start := len(dst)
//	dst = wire.AppendMsg(dst, id, 0, 0)
//	dst = append(dst, body...)
//	at, dst := wire.BeginSequence(dst, "documents")
//	dst = append(dst, doc...)
//	dst = wire.EndSequence(dst, at)
//	dst = wire.FinishMessage(dst, start)
func AppendMsg(dst []byte, requestID, responseTo int32, flags Flags) []byte {
	dst = AppendHeader(dst, requestID, responseTo, OpMsg)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(flags))
	return append(dst, 0)
}

// BeginSequence starts a document sequence and returns where its length stands.
func BeginSequence(dst []byte, id string) (at int, out []byte) {
	dst = append(dst, 1)
	at = len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = append(dst, id...)
	return at, append(dst, 0)
}

// EndSequence finishes the sequence that BeginSequence started.
func EndSequence(dst []byte, at int) []byte {
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst
}

// ParseMsg parses a whole OP_MSG, header included. It checks the frame of every section and the
// outer frame of the body, and the checksum if there is one; it does not validate what is inside
// the documents.
func ParseMsg(msg []byte) (Msg, error) { return parseMsg(msg, false) }

// ParseReply is ParseMsg for a server's message, which has a body and nothing else: document
// sequences stand for arguments of commands (specification: OP_MSG, "Command Arguments As
// Payload"), and no server puts its reply into one.
func ParseReply(msg []byte) (Msg, error) { return parseMsg(msg, true) }

// maxSequences is more than any command has arguments that may be document sequences, which is two.
const maxSequences = 16

func parseMsg(msg []byte, isReply bool) (m Msg, err error) {
	b, err := m.parseFlags(msg)
	if err != nil {
		return m, err
	}
	for len(b) > 0 {
		kind := b[0]
		b = b[1:]
		switch kind {
		case 0:
			if m.Body != nil {
				return m, errors.New("wire: OP_MSG has two bodies")
			}
			doc, rest, err := bson.ReadDocument(b)
			if err != nil {
				return m, fmt.Errorf("wire: OP_MSG body: %w", err)
			}
			m.Body, b = doc, rest
		case 1:
			if isReply {
				return m, errors.New("wire: OP_MSG is a reply and has a document sequence")
			}
			seq, rest, err := parseSequence(b)
			if err != nil {
				return m, err
			}
			if len(m.Sequences) == maxSequences {
				return m, fmt.Errorf("wire: OP_MSG has more than %d document sequences", maxSequences)
			}
			for _, s := range m.Sequences {
				if s.ID == seq.ID {
					return m, fmt.Errorf("wire: OP_MSG has two document sequences %q", seq.ID)
				}
			}
			m.Sequences, b = append(m.Sequences, seq), rest
		default:
			return m, fmt.Errorf("wire: OP_MSG has a section of unknown kind %d", kind)
		}
	}
	if m.Body == nil {
		return m, errors.New("wire: OP_MSG has no body")
	}
	return m, nil
}

// parseFlags reads what stands between the header and the sections, checks the checksum, and
// returns the sections.
func (m *Msg) parseFlags(msg []byte) (sections []byte, err error) {
	if len(msg) < HeaderLen+4 {
		return nil, fmt.Errorf("wire: OP_MSG of %d bytes is too short", len(msg))
	}
	m.Flags = Flags(binary.LittleEndian.Uint32(msg[HeaderLen:]))
	if unknown := m.Flags & 0xFFFF &^ (ChecksumPresent | MoreToCome); unknown != 0 {
		return nil, fmt.Errorf("wire: OP_MSG has unknown required flag bits 0x%04X", uint32(unknown))
	}
	b := msg[HeaderLen+4:]
	if m.Flags&ChecksumPresent == 0 {
		return b, nil
	}
	if len(b) < 4 {
		return nil, errors.New("wire: OP_MSG is too short for its checksum")
	}
	end := len(msg) - 4
	if got, want := crc32.Checksum(msg[:end], crcTable), binary.LittleEndian.Uint32(msg[end:]); got != want {
		return nil, fmt.Errorf("wire: OP_MSG checksum is 0x%08X, message says 0x%08X", got, want)
	}
	return b[:len(b)-4], nil
}

func parseSequence(b []byte) (s Sequence, rest []byte, err error) {
	if len(b) < 5 {
		return s, nil, errors.New("wire: document sequence ends early")
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 5 || n > len(b) {
		return s, nil, fmt.Errorf("wire: document sequence length %d, %d bytes left", n, len(b))
	}
	body := b[4:n]
	for i, c := range body {
		if c != 0 {
			continue
		}
		s.ID, s.Docs = string(body[:i]), body[i+1:]
		for docs := s.Docs; len(docs) > 0; {
			if _, docs, err = bson.ReadDocument(docs); err != nil {
				return s, nil, fmt.Errorf("wire: document sequence %q: %w", s.ID, err)
			}
		}
		return s, b[n:], nil
	}
	return s, nil, errors.New("wire: document sequence has no identifier")
}

// AppendChecksum appends the CRC-32C of the message that starts at start and ends with dst, and
// finishes it. The message must have been started with ChecksumPresent.
func AppendChecksum(dst []byte, start int) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = FinishMessage(dst, start)
	binary.LittleEndian.PutUint32(dst[len(dst)-4:], crc32.Checksum(dst[start:len(dst)-4], crcTable))
	return dst
}
