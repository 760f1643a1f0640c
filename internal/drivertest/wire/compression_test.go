package wire

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/internal/wire"
	"allium/mongotest"
)

// codeCounter counts the messages that a client sends by their operation code.
type codeCounter struct {
	d      *mongotest.Deployment
	mu     sync.Mutex
	counts map[wire.OpCode]int
}

func (c *codeCounter) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := c.d.DialContext(ctx, network, address)
	return &countedConn{nc, c}, err
}

func (c *codeCounter) count(op wire.OpCode) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[op]
}

type countedConn struct {
	net.Conn
	counter *codeCounter
}

func (c *countedConn) Write(b []byte) (int, error) { // every message is one write
	c.counter.mu.Lock()
	c.counter.counts[wire.OpCode(binary.LittleEndian.Uint32(b[12:]))]++
	c.counter.mu.Unlock()
	return c.Conn.Write(b)
}

// Compression with the driver as a whole: what was negotiated is used in both directions, also for
// large messages.
func TestCompression(t *testing.T) {
	d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory())
	for _, name := range []string{"snappy", "zlib", "zstd", "zlib,snappy", "snoopy", ""} {
		t.Run(name, func(t *testing.T) {
			counter := &codeCounter{d: d, counts: map[wire.OpCode]int{}}
			client := rig.Open(t, d.URI()+"?zlibCompressionLevel=9&compressors="+name, allium.ClientOptions{Dialer: counter})
			big := strings.Repeat("all work and no play makes Jack a dull boy\n", 20000)
			for _, text := range []string{"x", big} {
				if _, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}, {Key: "comment", Value: text}}); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := counter.count(wire.OpCompressed) >= 2, name != "" && name != "snoopy"; got != want {
				t.Errorf("%d messages were compressed, %d were not", counter.count(wire.OpCompressed), counter.count(wire.OpMsg))
			}
		})
	}
}
