package exec

import (
	"slices"
	"sync"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/scribble"
	"allium/internal/wire"
)

// A command is encoded once, before the operation has anything: its session, a server, a
// connection. Encoding runs code of the program's (MarshalBSON, codecs), which may take its time,
// panic, or use the client itself. Each attempt completes the same bytes for its server.

// bodyAt is where the body of an OP_MSG begins: behind the header, the flags and its kind.
const bodyAt = wire.HeaderLen + 4 + 1

// commonSize is what is set aside for the fields that every command has in common, as the
// specification Bulk Write does.
const commonSize = 1000

// buffer is the memory of one operation's message.
type buffer struct {
	// msg begins with the message up to the end of the command's own elements. Each attempt appends
	// the others.
	msg []byte
	// optional is the last of the elements, if not every server must see it.
	optional []byte
	// tail holds the document sequences, behind room for what stands before them in the message.
	tail []byte
	room int
	// target is what the command is told, and tells, while it is encoded.
	target command.Target
}

// sequences returns the document sequences; there are none without a room.
func (b *buffer) sequences() []byte { return b.tail[b.room:] }

// whole returns the message that begins with head and goes on with the sequences.
func (b *buffer) whole(head []byte) []byte {
	b.msg = head
	if len(b.tail) == b.room {
		return head
	}
	if more := len(head) - b.room; more > 0 {
		b.tail = slices.Insert(b.tail, 0, make([]byte, more)...)
		b.room += more
	}
	msg := b.tail[b.room-len(head):]
	copy(msg, head)
	return msg
}

// encode encodes the operation's command. Its error is that of a value that has no BSON form, or of
// an argument that no server would accept.
func (r *run) encode() error {
	batch, _ := r.op.Command.(command.Batch)
	r.long = batch != nil && batch.Left() > 1
	r.buf = getBuffer(r.long)
	t := r.assume(batch != nil)
	err := r.encodeFor(t)
	if err != nil && batch != nil && r.encrypts() { // one statement may be longer
		t.MaxMessageSize, t.MaxBatchCount = r.assume(true).MaxMessageSize, 1
		err = r.encodeFor(t)
	}
	if err != nil {
		return r.op.Named(err)
	}
	return nil
}

// assume notes what the command is told of a server that is not selected yet: for a batch the least
// limits of the servers that are known, or the defaults. How large a document may be, Fit checks.
func (r *run) assume(limits bool) *command.Target {
	t := &r.buf.target
	*t = command.Target{MaxMessageSize: wire.DefaultMaxMessageSize, MaxBatchCount: defaultMaxBatch,
		Unacknowledged: r.op.unacknowledged(), BSON: r.op.BSON}
	if !limits {
		return t
	}
	size, count := int32(0), int32(0)
	for _, s := range r.x.Topology.Description().Servers {
		if s.MaxMessageSize > 0 && (size == 0 || s.MaxMessageSize < size) {
			size = s.MaxMessageSize
		}
		if s.MaxWriteBatchSize > 0 && (count == 0 || s.MaxWriteBatchSize < count) {
			count = s.MaxWriteBatchSize
		}
	}
	if size > 0 {
		t.MaxMessageSize = int(size)
	}
	if count > 0 {
		t.MaxBatchCount = int(count)
	}
	return t
}

// defaultMaxBatch is the maxWriteBatchSize of all servers since 3.6.
const defaultMaxBatch = 100_000

// encodeFor encodes the command for what t says of the server.
func (r *run) encodeFor(t *command.Target) error {
	b := r.buf
	if r.encrypts() {
		t.MaxMessageSize = min(t.MaxMessageSize, maxEncryptedBatch)
	}
	_, dst := bson.BeginDocument(wire.AppendMsg(b.msg[:0], 0, 0, 0))
	dst, err := r.op.Command.AppendBody(dst, t)
	b.msg, b.optional, b.tail, b.room = dst, b.optional[:0], b.tail[:0], 0
	if err != nil {
		return err
	}
	if t.Since > 0 {
		b.optional = append(b.optional, dst[t.Optional:]...)
		b.msg = dst[:t.Optional]
	}
	b.msg = r.op.Extra.Append(b.msg)
	r.own = len(b.msg)
	s, ok := r.op.Command.(command.Sequencer)
	if !ok {
		return nil
	}
	room := r.own + commonSize
	b.tail, b.room = slices.Grow(b.tail, room)[:room], room
	tail, err := s.AppendSequences(b.tail, t)
	b.tail = tail
	return err
}

// Message buffers are kept for the next operation. Those that batches make grow have a pool of
// their own, so that small commands do not pass them around for ever; a buffer that another command
// made grow (a large document) is kept as long as the commands that get it use a good part of it.
// What the pools hold beyond that, the garbage collector takes.
const (
	smallBuffer = 64 << 10
	goodPart    = 8 // an eighth
)

var (
	buffers      = sync.Pool{New: func() any { return &buffer{msg: make([]byte, 0, 1024)} }}
	batchBuffers sync.Pool
)

func getBuffer(batch bool) *buffer {
	if batch {
		if b, ok := batchBuffers.Get().(*buffer); ok {
			return b
		}
	}
	return buffers.Get().(*buffer)
}

// putBuffer gives back a buffer that nobody reads any more.
func putBuffer(b *buffer, batch bool) {
	b.target = command.Target{} // the pools keep no options alive
	scribble.Over(b.msg)
	scribble.Over(b.tail)
	used, size := len(b.msg)+len(b.tail), cap(b.msg)+cap(b.tail)
	switch {
	case size <= smallBuffer:
		buffers.Put(b)
	case used < size/goodPart:
	case batch:
		batchBuffers.Put(b)
	default:
		buffers.Put(b)
	}
}
