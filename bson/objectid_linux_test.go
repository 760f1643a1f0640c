package bson

import (
	"os"
	"testing"
)

func TestForkMark(t *testing.T) {
	m := newForkMark()
	if m.page == nil {
		t.Skip("this kernel does not wipe pages on fork")
	}
	if m.copied() {
		t.Error("a process is a copy of itself")
	}
	m.page[0] = 0 // as the kernel does it
	if !m.copied() {
		t.Error("a wiped page does not tell a copy")
	}
	m = forkMark{pid: os.Getpid()}
	if m.copied() {
		t.Error("without the page, a process is a copy of itself")
	}
	if m.pid++; !m.copied() {
		t.Error("another process number does not tell a copy")
	}
}
