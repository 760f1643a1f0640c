package gridfs

import "sync"

// batchBytes is about how much is written or read with one command. It is small enough for the caches of a processor to help, and
// large enough for the time of a round trip not to matter.
const batchBytes = 2 << 20

// maxBatchChunks bounds the number of chunks of a batch, for files with tiny ones.
const maxBatchChunks = 1000

// batchChunks returns how many chunks of a size a batch has.
func batchChunks(chunkSize int64) int {
	return int(min(max(batchBytes/max(chunkSize, 1), 1), maxBatchChunks))
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
	if cap(b) == batchBytes {
		batches.Put((*[batchBytes]byte)(b[:batchBytes]))
	}
}
