package hostile

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/fakeserver"
	"allium/internal/norace"
	"allium/internal/wire"
)

const seed = "localhost:27017/"

// sections returns a reply that consists of empty document sequences.
func sections(to int32, size int) []byte {
	msg := append(wire.AppendMsg(nil, 1, to, 0), standalone()...)
	var at int
	for i := 0; len(msg) < size; i++ {
		at, msg = wire.BeginSequence(msg, fmt.Sprint(i))
		msg = wire.EndSequence(msg, at)
	}
	return wire.FinishMessage(msg, 0)
}

func TestSections(t *testing.T) {
	small, large := sections(0, 200<<10), sections(0, 1<<20)
	answer := func(p *peer, msg []byte, id int32) bool {
		binary.LittleEndian.PutUint32(msg[8:], uint32(id))
		return p.send(msg)
	}
	t.Run("hello", func(t *testing.T) {
		attack(t, seed, usual, func(p *peer) {
			msg := slices.Clone(small)
			for _, id, _, ok := p.next(); ok && answer(p, msg, id); _, id, _, ok = p.next() {
			}
		})
	})
	t.Run("operation", func(t *testing.T) {
		b := usual
		b.allocated, b.live = 1<<30, 64<<20 // what the server sends
		attack(t, seed, b, ever(func(*peer) bson.Raw { return standalone() }, func(p *peer, _ string, id int32) bool {
			return answer(p, slices.Clone(large), id)
		}))
	})
}

// hosts returns n names of hosts.
func hosts(prefix string, n int) bson.A {
	out := make(bson.A, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%d:27017", prefix, i)
	}
	return out
}

func member(role string, hosts bson.A, more ...bson.E) bson.Raw {
	return standalone(append([]bson.E{e("isWritablePrimary", role == "primary"), e("secondary", role == "secondary"), e("setName", "rs"), e("hosts", hosts)}, more...)...)
}

func TestHosts(t *testing.T) {
	many := hosts("h", 10_000)
	for _, role := range []string{"primary", "secondary"} {
		for _, n := range []int{1000, 10_000} {
			if norace.Detecting && n > 1000 {
				continue
			}
			t.Run(fmt.Sprintf("%s names %d", role, n), func(t *testing.T) {
				hello := member(role, many[:n])
				attack(t, seed, usual, ever(func(*peer) bson.Raw { return hello }, nil))
			})
		}
	}
	// Twenty members more for each member: the topology must not grow without end.
	t.Run("each secondary names others", func(t *testing.T) {
		// A check of each of 200 servers every half second, as operations wait for a primary.
		b := bounds{dials: 200, sent: 20_000, goroutines: 500, allocated: 2 << 30, live: 32 << 20}
		hellos := map[string]bson.Raw{}
		var mu sync.Mutex
		attack(t, seed, b, ever(func(p *peer) bson.Raw {
			mu.Lock()
			defer mu.Unlock()
			if hellos[p.addr] == nil {
				hellos[p.addr] = member("secondary", append(hosts(strings.TrimSuffix(p.addr, ":27017")+"x", 20), p.addr))
			}
			return hellos[p.addr]
		}, nil))
	})
	t.Run("primary names others each time", func(t *testing.T) {
		// Ten hellos a second, with as many servers each.
		var n atomic.Int64
		b := bounds{dials: 10_000, sent: 20_000, goroutines: 3000, allocated: 1 << 30, live: 32 << 20}
		attack(t, seed, b, stream(func(p *peer, counter int64) bson.Raw {
			return member("primary", append(hosts(fmt.Sprintf("n%d-", n.Add(1)), 10), p.addr), version(counter))
		}))
	})
}

// stream answers every hello with an endless stream, without pauses, of what hello returns.
func stream(hello func(p *peer, counter int64) bson.Raw) func(*peer) {
	return func(p *peer) {
		name, id, _, ok := p.next()
		for counter := int64(1); ok; counter++ {
			if name != "hello" || !p.reply(id, 0, hello(p, counter)) {
				return
			}
			var m wire.Msg
			if name, id, m, ok = p.next(); !ok || m.Flags&wire.ExhaustAllowed == 0 {
				continue
			}
			for ; p.reply(id, wire.MoreToCome, hello(p, counter)); counter++ {
				id = p.last
			}
			return
		}
	}
}

func TestEndlessHellos(t *testing.T) {
	b := usual
	t.Run("the same", func(t *testing.T) {
		attack(t, seed, b, stream(func(_ *peer, counter int64) bson.Raw { return standalone(version(1)) }))
	})
	t.Run("newer", func(t *testing.T) {
		attack(t, seed, b, stream(func(_ *peer, counter int64) bson.Raw { return standalone(version(counter)) }))
	})
	t.Run("another kind each time", func(t *testing.T) {
		attack(t, seed, b, stream(func(p *peer, counter int64) bson.Raw {
			role := []string{"primary", "secondary", "other"}[counter%3]
			return member(role, bson.A{p.addr}, version(counter))
		}))
	})
	t.Run("errors", func(t *testing.T) {
		attack(t, seed, b, stream(func(_ *peer, counter int64) bson.Raw {
			if counter == 1 {
				return standalone(version(1))
			}
			return doc(e("ok", 0), e("errmsg", "x"), version(counter))
		}))
	})
	// The connection breaks as soon as the client knows the server.
	t.Run("connections that break", func(t *testing.T) {
		attack(t, seed, b, func(p *peer) {
			_, id, _, ok := p.next()
			if ok && p.reply(id, 0, standalone(version(1))) {
				p.next()
			}
		})
	})
}

func TestUnsolicitedStreams(t *testing.T) {
	t.Run("hello", func(t *testing.T) {
		attack(t, seed, usual, func(p *peer) {
			for _, id, _, ok := p.next(); ok && p.reply(id, wire.MoreToCome, standalone()); id = p.last {
			}
		})
	})
	t.Run("second hello", func(t *testing.T) {
		attack(t, seed, usual, func(p *peer) {
			_, id, _, ok := p.next()
			if ok && p.reply(id, 0, standalone(version(1))) {
				_, id, _, _ = p.next()
				p.reply(id, wire.MoreToCome, standalone())
			}
		})
	})
	t.Run("operation", func(t *testing.T) {
		attack(t, seed, usual, ever(func(*peer) bson.Raw { return standalone() }, func(p *peer, _ string, id int32) bool {
			ok := true
			for range 100 {
				ok = ok && p.reply(id, wire.MoreToCome, doc(e("ok", 1)))
				id = p.last
			}
			return ok
		}))
	})
}

func TestBrokenBodies(t *testing.T) {
	bodies := map[string]bson.Raw{
		"empty":          {},
		"short":          {5, 0, 0},
		"negative":       {0xff, 0xff, 0xff, 0xff, 0},
		"length zero":    {0, 0, 0, 0, 0},
		"longer":         {0xff, 0, 0, 0, 0},
		"no end":         {6, 0, 0, 0, 1, 1},
		"unknown type":   append(bson.Raw{12, 0, 0, 0}, 0x42, 'a', 0, 1, 2, 3, 4, 0),
		"string too far": append(bson.Raw{14, 0, 0, 0}, 2, 'a', 0, 0xff, 0xff, 0xff, 0x7f, 'x', 0, 0),
		"no document":    bson.Raw("HTTP/1.1 200 OK"),
		"broken element": slices.Concat(bson.Raw{30, 0, 0, 0, 1, 'o', 'k', 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, bson.Raw{2, 'x', 0, 200, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0}),
	}
	for i, name := range slices.Sorted(maps.Keys(bodies)) {
		body := bodies[name]
		t.Run(name, func(t *testing.T) {
			attack(t, seed, usual, ever(func(*peer) bson.Raw { return body }, nil))
		})
		if norace.Detecting && i%3 > 0 {
			continue
		}
		t.Run(name+" for operations", func(t *testing.T) {
			attack(t, seed, usual, ever(func(*peer) bson.Raw { return standalone() }, func(p *peer, _ string, id int32) bool { return p.reply(id, 0, body) }))
		})
	}
	deep := bson.Raw{5, 0, 0, 0, 0}
	for range 5000 {
		deep = doc(e("a", deep))
	}
	t.Run("deep", func(t *testing.T) {
		attack(t, seed, usual, ever(func(*peer) bson.Raw { return standalone(e("tags", deep), e("lastWrite", deep)) }, func(p *peer, _ string, id int32) bool {
			return p.reply(id, 0, doc(e("ok", 1), e("cursor", deep), e("writeErrors", bson.A{deep})))
		}))
	})
	t.Run("a long text", func(t *testing.T) {
		long := strings.Repeat("x", 200<<10)
		b := usual
		b.allocated = 512 << 20
		attack(t, seed, b, ever(func(*peer) bson.Raw { return doc(e("ok", 0), e("errmsg", long)) }, nil))
		attack(t, seed, b, ever(func(*peer) bson.Raw { return member("primary", bson.A{long}, e("setName", long)) }, nil))
	})
	t.Run("bytes that make no sense", func(t *testing.T) {
		attack(t, seed, usual, func(p *peer) {
			if _, _, _, ok := p.next(); ok {
				p.send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			}
		})
	})
}

// drip sends a message a byte at a time.
func drip(p *peer, msg []byte, pause time.Duration) bool {
	for i := range msg {
		if _, err := p.Write(msg[i : i+1]); err != nil {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

func TestSlowReplies(t *testing.T) {
	t.Run("silent", func(t *testing.T) {
		attack(t, seed, usual, func(p *peer) {
			for _, _, _, ok := p.next(); ok; _, _, _, ok = p.next() {
			}
		})
	})
	t.Run("a dialer that ignores its context", func(t *testing.T) { attack(t, seed, usual, nil) })
	t.Run("deaf", func(t *testing.T) {
		attack(t, seed, usual, func(p *peer) { time.Sleep(2 * span) })
	})
	t.Run("deaf with TLS", func(t *testing.T) {
		attack(t, seed+"?tls=true", usual, func(p *peer) { time.Sleep(2 * span) })
	})
	t.Run("dripping hello", func(t *testing.T) {
		attack(t, seed, usual, func(p *peer) {
			for _, id, _, ok := p.next(); ok && drip(p, fakeserver.Reply(1, id, 0, standalone()), time.Second); _, id, _, ok = p.next() {
			}
		})
	})
	t.Run("dripping reply", func(t *testing.T) {
		b := usual
		b.allocated, b.live = 2<<30, 256<<20 // what the server sends
		body := doc(e("ok", 1), e("x", make([]byte, 1<<20)))
		attack(t, seed, b, ever(func(*peer) bson.Raw { return standalone() }, func(p *peer, _ string, id int32) bool {
			return drip(p, fakeserver.Reply(1, id, 0, body), 100*time.Millisecond)
		}))
	})
	t.Run("silent after hello", func(t *testing.T) {
		attack(t, seed, usual, ever(func(*peer) bson.Raw { return standalone() }, nil))
	})
	t.Run("cursor without end", func(t *testing.T) {
		b := usual
		b.sent = 1_000_000
		attack(t, seed, b, ever(func(*peer) bson.Raw { return standalone() }, func(p *peer, name string, id int32) bool {
			switch name {
			case "find":
				return p.reply(id, 0, doc(e("ok", 1), e("cursor", bson.D{e("id", int64(7)), e("ns", "db.c"), e("firstBatch", bson.A{})})))
			case "getMore":
				time.Sleep(10 * time.Millisecond)
				return p.reply(id, 0, doc(e("ok", 1), e("cursor", bson.D{e("id", int64(7)), e("ns", "db.c"), e("nextBatch", bson.A{})})))
			case "killCursors":
				return true // never answered
			}
			return p.reply(id, 0, doc(e("ok", 1)))
		}))
	})
}

func TestGiantLengths(t *testing.T) {
	giant := func(id int32, length int32) []byte {
		msg := fakeserver.Reply(1, id, 0, doc(e("ok", 1)))
		binary.LittleEndian.PutUint32(msg, uint32(length))
		return msg
	}
	for _, length := range []int32{-1, 0, 15, 1 << 20, 47_000_000, 1<<31 - 1} {
		b := usual
		if length > 0 && length <= 16<<20 { // believed, once the server has authenticated
			b.allocated, b.live = 512<<20, 128<<20
		}
		t.Run(fmt.Sprint("hello of ", length), func(t *testing.T) {
			attack(t, seed, usual, func(p *peer) {
				for _, id, _, ok := p.next(); ok && p.send(giant(id, length)); _, id, _, ok = p.next() {
				}
			})
		})
		t.Run(fmt.Sprint("reply of ", length), func(t *testing.T) {
			attack(t, seed, b, ever(func(*peer) bson.Raw { return standalone(e("maxMessageSizeBytes", int32(1<<31-1))) },
				func(p *peer, _ string, id int32) bool { return p.send(giant(id, length)) }))
		})
	}
	t.Run("compressed", func(t *testing.T) {
		for _, id := range []wire.CompressorID{wire.Noop, wire.Snappy, wire.Zlib, wire.Zstd} {
			attack(t, seed+"?compressors=snappy,zlib,zstd", usual, func(p *peer) {
				for _, to, _, ok := p.next(); ok; _, to, _, ok = p.next() {
					msg, err := wire.AppendCompressed(nil, fakeserver.Reply(1, to, 0, doc(e("ok", 1))), id, -1)
					if err != nil {
						t.Fatal(err)
					}
					binary.LittleEndian.PutUint32(msg[wire.HeaderLen+4:], 1<<31-1)
					if !p.send(msg) {
						return
					}
				}
			})
		}
	})
}

func TestConversations(t *testing.T) {
	const user = "u:p@" + seed
	saslReply := func(payload string) bson.Raw {
		return doc(e("ok", 1), e("conversationId", 1), e("done", false), e("payload", []byte(payload)))
	}
	t.Run("without end", func(t *testing.T) {
		attack(t, user+"?authMechanism=PLAIN", usual, ever(func(*peer) bson.Raw { return standalone() }, func(p *peer, _ string, id int32) bool {
			return p.reply(id, 0, saslReply(""))
		}))
	})
	t.Run("many iterations", func(t *testing.T) {
		attack(t, user+"?authMechanism=SCRAM-SHA-256", usual, ever(func(*peer) bson.Raw { return standalone() }, func(p *peer, _ string, id int32) bool {
			return p.reply(id, 0, saslReply("r=x,s=QUJD,i=2000000000"))
		}))
	})
	t.Run("silent", func(t *testing.T) {
		attack(t, user, usual, ever(func(*peer) bson.Raw { return standalone() }, nil))
	})
}

// Servers that refuse each operation and say that another try may help.
func TestErrorsThatAskForMore(t *testing.T) {
	for name, reply := range map[string]bson.Raw{
		"not primary": doc(e("ok", 0), e("code", 10107), e("errmsg", "not primary"), e("errorLabels", bson.A{"RetryableWriteError"})),
		"shutdown":    doc(e("ok", 0), e("code", 91), e("errmsg", "shutdown"), version(1<<40)),
		"overloaded":  doc(e("ok", 0), e("code", 462), e("errmsg", "busy"), e("errorLabels", bson.A{"SystemOverloadedError", "RetryableError", "RetryableWriteError"})),
		"log in":      doc(e("ok", 0), e("code", 391), e("errmsg", "reauthenticate")),
	} {
		t.Run(name, func(t *testing.T) {
			attack(t, seed, usual, ever(func(*peer) bson.Raw { return standalone(e("logicalSessionTimeoutMinutes", 30)) },
				func(p *peer, _ string, id int32) bool { return p.reply(id, 0, reply) }))
		})
	}
}
