package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"allium/internal/wire"
)

// maxReadHint bounds the buffer that is taken before the length of a reply is known. After a larger
// reply so little is taken that copying it to the right buffer costs less than another read.
const (
	maxReadHint   = 256 << 10
	largeReadHint = 4 << 10
)

// trustedSize is the size of a message that memory is taken for on the word of its header: more
// than a full batch of a cursor. For a larger message memory is taken as it arrives.
const trustedSize = 16<<20 + 64<<10

// readHint returns how much to read first after a reply of a size.
func readHint(size int) int {
	if size > maxReadHint {
		return largeReadHint
	}
	return size
}

// readMessage reads the next whole message into a buffer of its own, which then belongs to the
// caller: one read in the common case, where the message fits into the buffer that the last one
// suggested. When it fails, what was read so far stays with the connection, so that the rest can
// still be read off.
func (c *Conn) readMessage() (*buffer, wire.Header, error) {
	b := c.partial
	if b == nil {
		b = getBuffer(c.readHint)
		c.partial = b
	}
	for empty := 0; ; {
		if b.n >= wire.HeaderLen {
			h, err := wire.ParseHeader(b.b[:b.n], c.maxMessage)
			if err != nil {
				return nil, h, &protocolError{err}
			}
			size := int(h.Length)
			if b.n >= size {
				c.keepRest(b, size)
				c.readHint = readHint(size)
				return b, h, nil
			}
			if size > len(b.b) && (size <= trustedSize || b.n == len(b.b)) {
				larger := getBuffer(min(size, max(trustedSize, 2*b.n)))
				larger.n = copy(larger.b, b.b[:b.n])
				putBuffer(b)
				b = larger
				c.partial = b
			}
		}
		n, err := c.nc.Read(b.b[b.n:])
		b.n += n
		switch {
		case n > 0: // an error comes back with the next read
			empty = 0
		case err == io.EOF && b.n > 0:
			return nil, wire.Header{}, io.ErrUnexpectedEOF
		case err != nil:
			return nil, wire.Header{}, err
		default:
			if empty++; empty == 100 {
				return nil, wire.Header{}, io.ErrNoProgress
			}
		}
	}
}

// keepRest cuts b down to its first message and keeps what follows for the next read.
func (c *Conn) keepRest(b *buffer, size int) {
	c.partial = nil
	if rest := b.b[size:b.n]; len(rest) > 0 {
		c.partial = getBuffer(len(rest))
		c.partial.n = copy(c.partial.b, rest)
	}
	b.n = size
}

// readReply reads the reply that is due: after one that was owed before the request was written,
// which it drops.
func (c *Conn) readReply() (*Reply, error) {
	if c.isBehind {
		owed, err := c.readNext()
		if err != nil {
			return nil, err
		}
		owed.Release()
		c.responseTo, c.isBehind = c.behind, false
	}
	return c.readNext()
}

// readNext reads the message that answers c.responseTo.
func (c *Conn) readNext() (*Reply, error) {
	b, h, err := c.readMessage()
	if err != nil {
		return nil, err
	}
	if h.OpCode == wire.OpCompressed {
		if b, err = c.decompress(b); err != nil {
			return nil, &protocolError{err}
		}
		h.OpCode = opCode(b.b)
	}
	r, err := c.parseReply(b, h)
	if err != nil {
		putBuffer(b)
		return nil, &protocolError{err}
	}
	return r, nil
}

// decompress returns the message that b holds, in a buffer of its own, and gives b back.
func (c *Conn) decompress(b *buffer) (*buffer, error) {
	defer putBuffer(b)
	size, err := wire.DecompressedLen(b.b[:b.n], c.maxMessage)
	if err != nil {
		return nil, err
	}
	out := getBuffer(size)
	msg, err := wire.AppendDecompressed(out.b[:0], b.b[:b.n], c.maxMessage)
	if err != nil {
		putBuffer(out)
		return nil, err
	}
	out.b, out.n = msg[:cap(msg)], len(msg)
	return out, nil
}

// replyLevels is how deep the documents in a reply are checked before anybody reads them: the reply
// itself and what it holds, such as cursor, writeErrors or hosts. Documents of the user's lie
// deeper, or are checked as they are decoded.
const replyLevels = 2

func (c *Conn) parseReply(b *buffer, h wire.Header) (*Reply, error) {
	if h.ResponseTo != c.responseTo {
		return nil, fmt.Errorf("reply answers request %d, want %d", h.ResponseTo, c.responseTo)
	}
	if h.OpCode != wire.OpMsg {
		return nil, fmt.Errorf("reply has operation code %d, want %d", h.OpCode, wire.OpMsg)
	}
	msg, err := wire.ParseReply(b.b[:b.n])
	if err != nil {
		return nil, err
	}
	if err := wire.CheckDocument(msg.Body, replyLevels); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	// The specification OP_MSG says that a server never announces further replies that the request
	// does not allow.
	if msg.Flags&wire.MoreToCome != 0 && !c.exhaust {
		return nil, errUnasked
	}
	c.responseTo = h.RequestID
	c.streaming = msg.Flags&wire.MoreToCome != 0
	r := newReply()
	r.Msg, r.buf, r.Size = msg, b, b.n
	return r, nil
}

var errUnasked = errors.New("it announces further replies, which were not asked for")

// IsProtocolError reports whether err is that what a server sent is not a reply. Another try at
// once would have the same outcome.
func IsProtocolError(err error) bool {
	_, ok := errors.AsType[*protocolError](err)
	return ok
}

// protocolError says that what a server sent is not a reply.
type protocolError struct{ err error }

func (e *protocolError) Error() string { return "malformed reply: " + e.err.Error() }
func (e *protocolError) Unwrap() error { return e.err }

// requestID returns the request id of a message.
func requestID(msg []byte) int32 { return int32(binary.LittleEndian.Uint32(msg[4:])) }

// requestFlags returns the flags of a message that is not compressed.
func requestFlags(msg []byte) wire.Flags {
	return wire.Flags(binary.LittleEndian.Uint32(msg[wire.HeaderLen:]))
}

// opCode returns the operation code of a message.
func opCode(msg []byte) wire.OpCode { return wire.OpCode(binary.LittleEndian.Uint32(msg[12:])) }
