//go:build race

package norace

// Detecting tells whether the race detector is on.
const Detecting = true
