package fakeserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Refuses is an address that refuses connections. The port of a listener that was closed does so
// only until another test is given it, which may be soon: tests of several packages run at once.
// This one is given to nobody, and what it is for (tcpmux) runs nowhere.
const Refuses = "127.0.0.1:1"

// FreePorts returns the first of n consecutive ports on loopback that nobody listens on, for a
// server that must be told its port. They lie below those that systems give out by themselves, so
// that no other test gets one of them meanwhile.
func FreePorts(t testing.TB, n int) int {
	t.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		var listeners []net.Listener
		for i := range n {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port+i))
			if err != nil {
				break
			}
			listeners = append(listeners, l)
		}
		for _, l := range listeners {
			l.Close()
		}
		if len(listeners) == n {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}
