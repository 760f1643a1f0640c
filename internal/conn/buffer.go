package conn

import (
	"sync"

	"allium/internal/scribble"
	"allium/internal/wire"
)

// bufferSizes are the size classes of message buffers, each with a pool of its own. A pool gives
// its memory up to the garbage collector when it is not used, so that what it holds is bounded by
// recent use; messages over the largest class are not pooled at all.
//
// One class has room for a full batch of a cursor: documents of 16 MiB and what is around them.
var bufferSizes = [...]int{
	4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16<<20 + 64<<10, 32 << 20,
	wire.DefaultMaxMessageSize,
}

var bufferPools [len(bufferSizes)]sync.Pool

// buffer is a message or a part of one: n bytes of b are filled.
type buffer struct {
	b     []byte
	n     int
	class int
}

// bufferClass returns the smallest class that holds size bytes, or len(bufferSizes) if none does.
func bufferClass(size int) int {
	for class, s := range bufferSizes {
		if size <= s {
			return class
		}
	}
	return len(bufferSizes)
}

// getBuffer returns an empty buffer for at least size bytes.
func getBuffer(size int) *buffer {
	class := bufferClass(size)
	if class == len(bufferSizes) {
		return &buffer{b: make([]byte, size), class: class}
	}
	if b, ok := bufferPools[class].Get().(*buffer); ok {
		b.n = 0
		return b
	}
	return &buffer{b: make([]byte, bufferSizes[class]), class: class}
}

// putBuffer gives b back. Nothing may refer to its memory any more.
func putBuffer(b *buffer) {
	if b == nil {
		return
	}
	scribble.Over(b.b[:b.n])
	if b.class < len(bufferSizes) {
		bufferPools[b.class].Put(b)
	}
}
