//go:build unix

package conn

import "syscall"

// hungUp looks whether the end of the stream can be read. Behind data that nobody has read, such as
// TLS sends by itself, only the state of the protocol tells.
func hungUp(fd uintptr) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	switch {
	case err == syscall.EAGAIN, err == syscall.EINTR:
		return false
	case err != nil, n == 0:
		return true
	}
	return disconnected(fd)
}
