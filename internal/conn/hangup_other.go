//go:build !unix

package conn

// hungUp cannot tell here.
func hungUp(uintptr) bool { return false }
