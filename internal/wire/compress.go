package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// CompressorID names a compressor on the wire (specification: OP_COMPRESSED).
type CompressorID uint8

// The compressors. Noop wraps a message without compressing it.
const (
	Noop   CompressorID = 0
	Snappy CompressorID = 1
	Zlib   CompressorID = 2
	Zstd   CompressorID = 3
)

var compressorNames = [...]string{Noop: "noop", Snappy: "snappy", Zlib: "zlib", Zstd: "zstd"}

// String returns the name that handshakes use.
func (id CompressorID) String() string {
	if int(id) < len(compressorNames) {
		return compressorNames[id]
	}
	return fmt.Sprintf("compressor %d", uint8(id))
}

// CompressorByName finds the compressor that a handshake names.
func CompressorByName(name string) (id CompressorID, ok bool) {
	for i, n := range compressorNames {
		if n == name && CompressorID(i) != Noop {
			return CompressorID(i), true
		}
	}
	return 0, false
}

// DefaultZlibLevel lets zlib choose its level.
const DefaultZlibLevel = -1

// Where the parts of an OP_COMPRESSED are, after the header.
const (
	originalOpCodeAt   = HeaderLen
	uncompressedSizeAt = HeaderLen + 4
	compressorAt       = HeaderLen + 8
	compressedAt       = HeaderLen + 9
)

// AppendCompressed appends msg, a whole message, as an OP_COMPRESSED with the same request id.
// zlibLevel is -1 (default) to 9 and only zlib uses it.
func AppendCompressed(dst, msg []byte, id CompressorID, zlibLevel int) ([]byte, error) {
	if len(msg) < HeaderLen {
		return dst, errors.New("wire: message to compress is shorter than a header")
	}
	start := len(dst)
	dst = append(dst, msg[:HeaderLen-4]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(OpCompressed))
	dst = append(dst, msg[HeaderLen-4:HeaderLen]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(msg)-HeaderLen))
	dst = append(dst, byte(id))
	if int(id) >= len(coders) {
		return dst[:start], fmt.Errorf("wire: %s is not known", id)
	}
	dst, err := coders[id].compress(dst, msg[HeaderLen:], zlibLevel)
	if err != nil {
		return dst[:start], fmt.Errorf("wire: compress with %s: %w", id, err)
	}
	return FinishMessage(dst, start), nil
}

// DecompressedLen returns the length of the message, header included, that an OP_COMPRESSED says it
// holds. It is an error if that is more than max.
func DecompressedLen(msg []byte, max int32) (int, error) {
	if len(msg) < compressedAt {
		return 0, fmt.Errorf("wire: OP_COMPRESSED of %d bytes is too short", len(msg))
	}
	n := int32(binary.LittleEndian.Uint32(msg[uncompressedSizeAt:]))
	if n < 0 || n > max-HeaderLen {
		return 0, fmt.Errorf("wire: OP_COMPRESSED says that it holds %d bytes, the limit is %d", n, max-HeaderLen)
	}
	return int(n) + HeaderLen, nil
}

// AppendDecompressed appends the message that msg, a whole OP_COMPRESSED, holds. It never appends
// more than the message says it holds, which must be at most max bytes with the header.
func AppendDecompressed(dst, msg []byte, max int32) ([]byte, error) {
	size, err := DecompressedLen(msg, max)
	if err != nil {
		return dst, err
	}
	id := CompressorID(msg[compressorAt])
	if int(id) >= len(coders) {
		return dst, fmt.Errorf("wire: %s is not known", id)
	}
	op := OpCode(binary.LittleEndian.Uint32(msg[originalOpCodeAt:]))
	if op == OpCompressed {
		return dst, errors.New("wire: OP_COMPRESSED holds another OP_COMPRESSED")
	}
	start := len(dst)
	dst = append(dst, msg[:HeaderLen-4]...)
	dst = append(dst, msg[originalOpCodeAt:originalOpCodeAt+4]...)
	dst, err = coders[id].decompress(dst, msg[compressedAt:], size-HeaderLen)
	if err != nil {
		return dst[:start], fmt.Errorf("wire: decompress with %s: %w", id, err)
	}
	if len(dst)-start != size {
		return dst[:start], fmt.Errorf("wire: decompress with %s: got %d bytes, message says %d", id,
			len(dst)-start-HeaderLen, size-HeaderLen)
	}
	return FinishMessage(dst, start), nil
}

// uncompressible are the commands that must not be compressed, since they carry secrets or come
// before a compressor is agreed on.
var uncompressible = map[string]bool{
	"hello": true, "isMaster": true, "ismaster": true, "saslStart": true, "saslContinue": true, "getnonce": true,
	"authenticate": true, "createUser": true, "updateUser": true, "copydbSaslStart": true, "copydbgetnonce": true,
	"copydb": true,
}

// Compressible reports whether an OP_MSG may be compressed: the command in its body is none of
// those that must not be.
func Compressible(msg []byte) bool {
	const keyAt = HeaderLen + 4 + 1 + 4 + 1 // flags, kind, length of the document, type of the first element
	if len(msg) <= keyAt || msg[HeaderLen+4] != 0 {
		return false
	}
	for i, c := range msg[keyAt:] {
		if c == 0 {
			return !uncompressible[string(msg[keyAt:keyAt+i])]
		}
	}
	return false
}
