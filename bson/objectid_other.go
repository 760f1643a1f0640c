//go:build !linux

package bson

import "os"

// forkMark tells a process from a copy of it that fork made, by its number. Go cannot fork by
// itself, but a host that has loaded it as a library can.
type forkMark struct{ pid int }

func newForkMark() forkMark { return forkMark{os.Getpid()} }

// copied reports whether m was made by another process, of which this one is a copy.
func (m *forkMark) copied() bool { return os.Getpid() != m.pid }
