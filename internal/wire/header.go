package wire

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// OpCode says what kind of message follows a header.
type OpCode int32

// The operation codes that are still in use.
const (
	OpReply      OpCode = 1
	OpQuery      OpCode = 2004
	OpCompressed OpCode = 2012
	OpMsg        OpCode = 2013
)

// HeaderLen is the length of a message header in bytes.
const HeaderLen = 16

// DefaultMaxMessageSize is the greatest message, header included, before a server's hello says
// otherwise.
const DefaultMaxMessageSize = 48_000_000

// Header is the header of every message.
type Header struct {
	Length     int32 // of the whole message, header included
	RequestID  int32
	ResponseTo int32
	OpCode     OpCode
}

// ParseHeader reads the header at the start of b and checks its length against max.
func ParseHeader(b []byte, max int32) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, fmt.Errorf("wire: header has %d bytes, want %d", len(b), HeaderLen)
	}
	h := Header{
		Length:     int32(binary.LittleEndian.Uint32(b)),
		RequestID:  int32(binary.LittleEndian.Uint32(b[4:])),
		ResponseTo: int32(binary.LittleEndian.Uint32(b[8:])),
		OpCode:     OpCode(binary.LittleEndian.Uint32(b[12:])),
	}
	if h.Length < HeaderLen {
		return h, fmt.Errorf("wire: message length %d is shorter than a header", h.Length)
	}
	if h.Length > max {
		return h, fmt.Errorf("wire: message length %d is over the limit of %d bytes", h.Length, max)
	}
	return h, nil
}

// AppendHeader appends a header; FinishMessage sets the length.
func AppendHeader(dst []byte, requestID, responseTo int32, op OpCode) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(requestID))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(responseTo))
	return binary.LittleEndian.AppendUint32(dst, uint32(op))
}

// FinishMessage writes the length of the message that starts at start and ends with dst.
func FinishMessage(dst []byte, start int) []byte {
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

var lastRequestID atomic.Int32

// NextRequestID returns a request id that is unique in this process (until it wraps).
func NextRequestID() int32 { return lastRequestID.Add(1) }
