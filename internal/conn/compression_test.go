package conn

import (
	"net"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/failure"
	"allium/internal/wire"
)

// compressing serves like a server with these compressors: it answers with the compressor of the
// request, or with the first of its own when the client has that too, and reports how each request
// came.
func compressing(supported []string, seen chan<- string) func(*peer) {
	return func(p *peer) {
		var common []string
		for {
			msg, ok := p.readBytes()
			if !ok {
				return
			}
			how := "plain"
			if opCode(msg) == wire.OpCompressed {
				how = wire.CompressorID(msg[wire.HeaderLen+8]).String()
				var err error
				if msg, err = wire.AppendDecompressed(nil, msg, wire.DefaultMaxMessageSize); err != nil {
					p.t.Error(err)
					return
				}
			}
			m, err := wire.ParseMsg(msg)
			if err != nil {
				p.t.Error(err)
				return
			}
			name := ""
			for name = range m.Body.All() {
				break
			}
			seen <- name + " " + how
			reply := okReply()
			if name == "isMaster" {
				for _, c := range failure.Strings(m.Body.Lookup("compression")) {
					if slices.Contains(supported, c) {
						common = append(common, c)
					}
				}
				reply = helloReply(func(dst []byte) []byte {
					if len(common) == 0 {
						return dst
					}
					list, dst := bson.BeginArrayElement(dst, "compression")
					for i, c := range common {
						dst = bson.AppendStringValue(bson.AppendIndexHeader(dst, bson.TypeString, i), c)
					}
					return bson.EndDocument(dst, list)
				})
			}
			out := message(wire.NextRequestID(), requestID(msg), 0, reply)
			if len(common) > 0 { // also the reply to hello
				id, _ := wire.CompressorByName(common[0])
				if out, err = wire.AppendCompressed(nil, out, id, -1); err != nil {
					p.t.Error(err)
					return
				}
			}
			p.Write(out)
		}
	}
}

// The prose tests of the compression specification: what is negotiated, and which messages are
// compressed.
func TestCompressionNegotiation(t *testing.T) {
	tests := []struct {
		name           string
		client, server []string
		want           string // "" for none
	}{
		{"1 snappy", []string{"snappy"}, []string{"snappy"}, "snappy"},
		{"2 unknown compressor", []string{"snoopy"}, []string{"snappy"}, ""},
		{"3 snappy, zlib", []string{"snappy", "zlib"}, []string{"snappy"}, "snappy"},
		{"4 zlib, snappy", []string{"zlib", "snappy"}, []string{"snappy", "zlib"}, "zlib"},
		{"zstd", []string{"zstd"}, []string{"snappy", "zlib", "zstd"}, "zstd"},
		{"none", nil, []string{"snappy"}, ""},
		{"nothing in common", []string{"zlib"}, []string{"snappy"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seen := make(chan string, 10)
			c := dial(t, fakeServer(t, compressing(tt.server, seen)), &Config{Compressors: tt.client})
			var want []string
			for _, name := range []string{"ping", "insert", "saslStart", "saslContinue", "createUser", "hello", "find"} {
				r, err := c.RoundTrip(t.Context(), command(name))
				if err != nil {
					t.Fatal(err)
				}
				r.Release()
				how := "plain"
				if tt.want != "" && !slices.Contains([]string{"saslStart", "saslContinue", "createUser", "hello"}, name) {
					how = tt.want
				}
				want = append(want, name+" "+how)
			}
			want = append([]string{"isMaster plain"}, want...)
			for _, w := range want {
				if got := <-seen; got != w {
					t.Errorf("server saw %q, want %q", got, w)
				}
			}
		})
	}
}

func TestMalformedCompressedReply(t *testing.T) {
	bomb := make([]byte, 40)
	for name, bad := range map[string]func(good []byte) []byte{
		"size over the limit": func(m []byte) []byte { copy(m[wire.HeaderLen+4:], []byte{0, 0, 0, 0x7f}); return m },
		"unknown compressor":  func(m []byte) []byte { m[wire.HeaderLen+8] = 200; return m },
		"garbage":             func(m []byte) []byte { copy(m[wire.HeaderLen+9:], bomb); return m },
	} {
		t.Run(name, func(t *testing.T) {
			addr := fakeServer(t, func(p *peer) {
				p.hello()
				id, _, _ := p.read()
				good, _ := wire.AppendCompressed(nil, message(9, id, 0, okReply()), wire.Snappy, -1)
				p.Write(bad(good))
				p.read()
			})
			c := dial(t, addr, &Config{})
			_, err := c.RoundTrip(t.Context(), command("ping"))
			if err == nil || !strings.Contains(err.Error(), "read: malformed reply") || c.Alive() {
				t.Errorf("error %v, alive %v", err, c.Alive())
			}
		})
	}
}

// The level of zlib is the option's, and else the library's own (specification: OP_COMPRESSED,
// "zlibCompressionLevel").
func TestZlibLevel(t *testing.T) {
	text := strings.Repeat("all work and no play makes Jack a dull boy; ", 200)
	sizes := map[string]int{}
	for name, level := range map[string]*int{"unset": nil, "own": new(-1), "none": new(0), "best": new(9)} {
		lengths := make(chan int, 10)
		seen := make(chan string, 10)
		serve := compressing([]string{"zlib"}, seen)
		addr := fakeServer(t, func(p *peer) {
			p.Conn = counted{p.Conn, lengths}
			serve(p)
		})
		c := dial(t, addr, &Config{Compressors: []string{"zlib"}, ZlibLevel: level})
		for len(lengths) > 0 {
			<-lengths
		}
		msg := message(wire.NextRequestID(), 0, 0, document(func(dst []byte) []byte {
			return bson.AppendString(bson.AppendInt32(dst, "echo", 1), "text", text)
		}))
		if _, err := c.RoundTrip(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
		for len(lengths) > 0 {
			sizes[name] += <-lengths
		}
	}
	if sizes["none"] < len(text) || sizes["unset"] != sizes["own"] || sizes["best"] >= sizes["none"]/10 || sizes["own"] >= sizes["none"]/10 {
		t.Errorf("bytes by level: %v", sizes)
	}
}

// counted tells how many bytes each read brings.
type counted struct {
	net.Conn
	lengths chan<- int
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.lengths <- n
	return n, err
}
