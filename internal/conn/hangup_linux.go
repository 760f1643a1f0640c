package conn

import (
	"encoding/binary"
	"syscall"
)

// established is the state of a TCP connection that both sides keep open (tcp_states.h).
const established = 1

// disconnected reports whether the state of a TCP connection is another than established.
func disconnected(fd uintptr) bool {
	info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
	if err != nil {
		return false
	}
	var first [4]byte // of the structure, which begins with the state
	binary.NativeEndian.PutUint32(first[:], uint32(info))
	return first[0] != established
}
