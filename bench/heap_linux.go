package bench

import "syscall"

// outsideHeap returns n bytes that the garbage collector does not count. Go's collector lets as
// much garbage lie as there is memory in use, so that the data of one task would count as memory
// that the drivers take in another: the C driver's process has no data but a task's own. What a
// program has on its heap is Plan.Heap's to say.
func outsideHeap(n int) []byte {
	b, err := syscall.Mmap(-1, 0, max(n, 1), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]byte, n)
	}
	return b[:n]
}

// giveBack gives back what outsideHeap returned.
func giveBack(b []byte) { _ = syscall.Munmap(b[:cap(b)]) }
