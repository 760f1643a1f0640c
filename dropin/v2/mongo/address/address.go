// Package address has the addresses of servers.
package address

import (
	"errors"
	"net"
	"strings"
)

const defaultPort = "27017"

// An Address is a host with or without a port, or the path of a Unix domain socket.
type Address string

// Network returns "unix" for the path of a socket, which ends with "sock", and else "tcp".
func (a Address) Network() string {
	if strings.HasSuffix(string(a), "sock") {
		return "unix"
	}
	return "tcp"
}

// String returns the address in lower case and with a port. The path of a socket and an empty
// address stay as they are.
func (a Address) String() string {
	s := strings.ToLower(string(a))
	if s == "" {
		return ""
	}
	if a.Network() == "unix" {
		return string(a)
	}
	var e *net.AddrError
	if _, _, err := net.SplitHostPort(s); errors.As(err, &e) && e.Err == "missing port in address" {
		s += ":" + defaultPort
	}
	return s
}

// Canonicalize returns the address that String writes.
func (a Address) Canonicalize() Address { return Address(a.String()) }
