package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"allium/internal/fakeserver"
	"allium/internal/norace"
	"allium/internal/wire"
	"allium/mongotest"
)

// A mutation changes a server's message, or puts others in its place. before is the message that
// the connection carried last.
type mutation func(r *rand.Rand, msg, before []byte) [][]byte

func put(msg []byte, at int, n int32) [][]byte {
	msg = slices.Clone(msg)
	binary.LittleEndian.PutUint32(msg[at:], uint32(n))
	return [][]byte{msg}
}

// mutations are the changes that a faulty proxy, or a man in the middle, makes to a reply.
var mutations = map[string]mutation{
	"a bit is flipped": func(r *rand.Rand, msg, _ []byte) [][]byte {
		msg = slices.Clone(msg)
		msg[r.IntN(len(msg))] ^= 1 << r.IntN(8)
		return [][]byte{msg}
	},
	"many bits are flipped": func(r *rand.Rand, msg, _ []byte) [][]byte {
		msg = slices.Clone(msg)
		for range 1 + len(msg)/8 {
			msg[r.IntN(len(msg))] ^= 1 << r.IntN(8)
		}
		return [][]byte{msg}
	},
	"the end is missing": func(r *rand.Rand, msg, _ []byte) [][]byte { return [][]byte{msg[:r.IntN(len(msg))], nil} },
	"a piece is missing": func(r *rand.Rand, msg, _ []byte) [][]byte {
		at := r.IntN(len(msg))
		return [][]byte{msg[:at], msg[at+1:]}
	},
	"a piece is there twice": func(r *rand.Rand, msg, _ []byte) [][]byte {
		at := r.IntN(len(msg))
		return [][]byte{msg[:at], msg[at/2:]}
	},
	"another length":          func(r *rand.Rand, msg, _ []byte) [][]byte { return put(msg, 0, int32(len(msg))+int32(r.IntN(40))-20) },
	"a random length":         func(r *rand.Rand, msg, _ []byte) [][]byte { return put(msg, 0, int32(r.Uint32())) },
	"another document length": func(r *rand.Rand, msg, _ []byte) [][]byte { return put(msg, wire.HeaderLen+5, int32(r.Uint32())) },
	"another request's id":    func(r *rand.Rand, msg, _ []byte) [][]byte { return put(msg, 8, int32(r.Uint32())) },
	"another opcode":          func(r *rand.Rand, msg, _ []byte) [][]byte { return put(msg, 12, int32(r.IntN(3000))) },
	"other flags":             func(r *rand.Rand, msg, _ []byte) [][]byte { return put(msg, wire.HeaderLen, int32(r.Uint32())) },
	"twice":                   func(_ *rand.Rand, msg, _ []byte) [][]byte { return [][]byte{msg, msg} },
	"the one before again":    func(_ *rand.Rand, msg, before []byte) [][]byte { return [][]byte{before, msg} },
	"nothing":                 func(*rand.Rand, []byte, []byte) [][]byte { return nil },
	"a bomb": func(r *rand.Rand, msg, _ []byte) [][]byte {
		b, err := wire.AppendCompressed(nil, msg, wire.Snappy, -1)
		if err != nil {
			panic(err)
		}
		return put(b, wire.HeaderLen+4, 1<<31-1)
	},
}

// through relays a connection to the deployment, and mutates the replies from number from on.
func through(d *mongotest.Deployment, seed uint64, from int, m mutation) func(*peer) {
	var conns atomic.Uint64
	return func(p *peer) {
		r := rand.New(rand.NewPCG(seed, conns.Add(1)))
		server, err := d.DialContext(context.Background(), "tcp", p.addr)
		if err != nil {
			return
		}
		done := make(chan struct{})
		go func() { // what the client sends goes through as it is
			defer close(done)
			defer server.Close()
			for {
				msg, _, err := fakeserver.ReadMessage(p)
				if err != nil {
					return
				}
				if _, err := server.Write(msg); err != nil {
					return
				}
			}
		}()
		defer func() { p.Close(); <-done }()
		defer server.Close()
		var before []byte
		for n := 1; ; n++ {
			msg, _, err := fakeserver.ReadMessage(server)
			if err != nil {
				return
			}
			out := [][]byte{msg}
			if n >= from {
				out = m(r, msg, before)
			}
			for _, part := range out {
				if part == nil || !p.send(part) {
					return
				}
			}
			before = msg
		}
	}
}

// A proxy that mutates the replies of a server, from the first, the second or the fourth of each
// connection on: the handshake, an operation, and later ones or a stream of hellos.
func TestMutatingProxy(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(mutations)) {
		m := mutations[name]
		for j, from := range []int{1, 2, 4} {
			if norace.Detecting && i%3 != j {
				continue
			}
			t.Run(fmt.Sprintf("%s from %d", name, from), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := mongotest.Start(t, mongotest.InMemory())
					assault(t, seed, usual, through(d, 1, from, m))
				})
			})
		}
	}
}
