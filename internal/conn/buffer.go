package conn

import (
	"math/bits"
	"sync"
)

// Message buffers come in size classes, four times apart, each with a pool of its own. A pool gives its memory up to
// the garbage collector when it is not used, so that what it holds is bounded by recent use; messages over the largest
// class are not pooled at all.
const (
	minBufferBits = 12 // 4 KiB
	bufferStep    = 2
	bufferClasses = 8 // 4 KiB ... 64 MiB, so that the largest message a server may send is pooled too
)

// buffer is a message or a part of one: n bytes of b are filled.
type buffer struct {
	b     []byte
	n     int
	class int
}

var bufferPools [bufferClasses]sync.Pool

// bufferClass returns the smallest class that holds size bytes, or bufferClasses if none does.
func bufferClass(size int) int {
	if size <= 1<<minBufferBits {
		return 0
	}
	return (bits.Len(uint(size-1)) - minBufferBits + bufferStep - 1) / bufferStep
}

// getBuffer returns an empty buffer for at least size bytes.
func getBuffer(size int) *buffer {
	class := bufferClass(size)
	if class >= bufferClasses {
		return &buffer{b: make([]byte, size), class: class}
	}
	if b, ok := bufferPools[class].Get().(*buffer); ok {
		b.n = 0
		return b
	}
	return &buffer{b: make([]byte, 1<<(minBufferBits+class*bufferStep)), class: class}
}

// putBuffer gives b back. Nothing may refer to its memory any more.
func putBuffer(b *buffer) {
	if b != nil && b.class < bufferClasses {
		bufferPools[b.class].Put(b)
	}
}
