//go:build !linux

package bench

// outsideHeap returns n bytes. Memory is measured on Linux only, and there they are no part of the
// heap.
func outsideHeap(n int) []byte { return make([]byte, n) }

func giveBack([]byte) {}
