package bson

import (
	"os"
	"syscall"
)

// forkMark tells a process from a copy of it that fork made. Go cannot fork by itself, but a host
// that has loaded it as a library can. Asking for the process number every time would cost more
// than the rest of an ObjectID, so there is a page that the kernel gives to a copy empty
// (madvise(2), MADV_WIPEONFORK); where it refuses, the number has to do.
type forkMark struct {
	page []byte // starts with 1, and in a copy with 0
	pid  int
}

const wipeOnFork = 18 // MADV_WIPEONFORK, which the package syscall does not know

func newForkMark() forkMark {
	m := forkMark{pid: os.Getpid()}
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return m
	}
	if err := syscall.Madvise(page, wipeOnFork); err != nil {
		_ = syscall.Munmap(page) // nothing is lost with a page that stays
		return m
	}
	page[0] = 1
	m.page = page
	return m
}

// copied reports whether m was made by another process, of which this one is a copy.
func (m *forkMark) copied() bool {
	if m.page != nil {
		return m.page[0] == 0
	}
	return os.Getpid() != m.pid
}
