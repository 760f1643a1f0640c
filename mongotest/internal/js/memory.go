package js

import (
	"runtime"
	"runtime/metrics"

	"allium/mongotest/internal/srverr"
)

// The interpreter shares the heap of the program that runs mongotest, and has no limit of its own.
// Two things together bound what a function can take: a look at the heap of the process while a
// call runs, which ends the call, and the bounds in prelude.js on what a single instruction makes,
// since a call ends between two instructions only.

// maxHeap is by how many bytes the heap may grow while a function runs. A server's is 1100 MB
// (jsHeapLimitMB); here the memory is that of a test.
const maxHeap = 256 << 20

// checkMemory returns an error once the call has taken too much. The heap is that of the whole
// process, garbage included; so what others allocate at the same time counts until the collector
// has run.
func (e *Engine) checkMemory() error {
	size := heapSize()
	if e.base == 0 {
		e.base = size
	}
	limit := e.base + e.maxHeap
	if size <= limit {
		return nil
	}
	runtime.GC()
	if heapSize() <= limit {
		return nil
	}
	return srverr.New(interpreterFailure, "Out of memory")
}

// heapSize returns how many bytes the heap has in objects.
func heapSize() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
