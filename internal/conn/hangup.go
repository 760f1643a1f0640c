package conn

import "syscall"

// HungUp reports whether the server is known to have closed the connection, as far as the operating
// system can tell without waiting. It is for connections that lie idle: one whose process was
// suspended may be gone without anybody having noticed.
func (c *Conn) HungUp() bool {
	sc, ok := c.raw.(syscall.Conn)
	if !ok { // what a program's own dialer returns need not be a socket
		return false
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	if err := rc.Control(func(fd uintptr) { gone = hungUp(fd) }); err != nil {
		return false
	}
	return gone
}
