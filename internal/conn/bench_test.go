package conn

import (
	"context"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/norace"
	"allium/internal/wire"
)

func TestRoundTripAllocations(t *testing.T) {
	norace.Skip(t, "the race detector allocates")
	c := dial(t, fakeServer(t, rawEcho), &Config{})
	msg := command("ping")
	background := context.WithoutCancel(t.Context())
	deadline := deadlineOnly{background, time.Now().Add(time.Hour)}
	for name, ctx := range map[string]context.Context{"background": background, "deadline": deadline} {
		allocs := testing.AllocsPerRun(200, func() {
			r, err := c.RoundTrip(ctx, msg)
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
		})
		if allocs > 1 {
			t.Errorf("%s: %v allocations per round trip", name, allocs)
		}
	}
}

// deadlineOnly is a context that cannot be cancelled.
type deadlineOnly struct {
	context.Context
	at time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }

// rawEcho answers without allocating.
func rawEcho(p *peer) {
	p.hello()
	buf := make([]byte, 1<<20)
	answer := message(1, 0, 0, okReply())
	for {
		if _, err := io.ReadFull(p, buf[:wire.HeaderLen]); err != nil {
			return
		}
		n := binary.LittleEndian.Uint32(buf)
		if _, err := io.ReadFull(p, buf[wire.HeaderLen:n]); err != nil {
			return
		}
		binary.LittleEndian.PutUint32(answer[8:], uint32(requestID(buf)))
		p.Write(answer)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	c := dial(b, fakeServer(b, rawEcho), &Config{})
	msg := command("ping")
	cancellable, cancel := context.WithCancel(b.Context())
	defer cancel()
	background := context.WithoutCancel(b.Context())
	for _, bm := range []struct {
		name string
		ctx  context.Context
	}{
		{"background", background},
		{"deadline", deadlineOnly{background, time.Now().Add(time.Hour)}},
		{"cancellable", cancellable},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.RoundTrip(bm.ctx, msg)
				if err != nil {
					b.Fatal(err)
				}
				r.Release()
			}
		})
	}
}

// BenchmarkLargeReply is a round trip with the reply of a full batch.
func BenchmarkLargeReply(b *testing.B) {
	for name, size := range map[string]int{"100KiB": 100 << 10, "16MiB": 16 << 20} {
		b.Run(name, func(b *testing.B) {
			answer := message(1, 0, 0, document(func(dst []byte) []byte { return bson.AppendBinary(dst, "b", 0, make([]byte, size)) }))
			c := dial(b, fakeServer(b, func(p *peer) {
				p.hello()
				for {
					msg, ok := p.readBytes()
					if !ok {
						return
					}
					binary.LittleEndian.PutUint32(answer[8:], uint32(requestID(msg)))
					p.Write(answer)
				}
			}), &Config{})
			msg, ctx := command("find"), context.WithoutCancel(b.Context())
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.RoundTrip(ctx, msg)
				if err != nil {
					b.Fatal(err)
				}
				r.Release()
			}
		})
	}
}
