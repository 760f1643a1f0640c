//go:build unix && !linux

package conn

// disconnected cannot tell here.
func disconnected(uintptr) bool { return false }
