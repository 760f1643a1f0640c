package gridfs

import (
	"sync"

	"allium/internal/scribble"
)

// How much is written or read with one command, about: large enough for the time of a round trip
// not to matter, and small enough for the caches of a processor. What is read goes through them
// twice, out of the socket and into the caller's memory, and is fetched ahead besides, so that it
// comes in smaller parts.
const (
	batchBytes  = 2 << 20
	windowBytes = 1 << 20
)

// maxBatchChunks bounds the number of chunks of a batch, for files with tiny ones.
const maxBatchChunks = 1000

// chunksOf returns how many chunks of a size make about size bytes.
func chunksOf(size, chunkSize int64) int64 {
	return min(max(size/max(chunkSize, 1), 1), maxBatchChunks)
}

var batches = sync.Pool{New: func() any { return new([batchBytes]byte) }}

// getBatch returns an empty buffer for size bytes.
func getBatch(size int) []byte {
	if size > batchBytes {
		return make([]byte, 0, size)
	}
	return batches.Get().(*[batchBytes]byte)[:0]
}

// putBatch gives a buffer back that may be one of getBatch.
func putBatch(b []byte) {
	scribble.Over(b)
	if cap(b) == batchBytes {
		batches.Put((*[batchBytes]byte)(b[:batchBytes]))
	}
}
