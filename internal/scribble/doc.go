// Package scribble shows who keeps memory that was given back. A value that shares the buffer of a
// message reads well for as long as nobody uses the buffer again, which in a test is often for
// ever. Where the race detector is on, Over therefore fills what goes back to a pool, so that every
// test that runs under it compares values that own their memory, or fails.
package scribble
