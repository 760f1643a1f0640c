package main

import (
	"syscall"
	"time"
)

// pause sleeps, to some 60 µs; time.Sleep is only good to a millisecond when the process has
// nothing else to do.
func pause(d time.Duration) {
	if d > 0 {
		t := syscall.NsecToTimespec(d.Nanoseconds())
		syscall.Nanosleep(&t, nil) // if a signal ends it, the operation is early by that
	}
}
