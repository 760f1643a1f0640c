//go:build !race

package scribble

// Over does nothing: it fills memory where the race detector is on.
func Over([]byte) {}
