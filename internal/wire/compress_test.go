package wire

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"allium/bson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func commandMsg(name string, payload []byte) []byte {
	msg := AppendMsg(nil, 7, 3, 0)
	start, msg := bson.BeginDocument(msg)
	msg = bson.AppendInt32(msg, name, 1)
	msg = bson.AppendBinary(msg, "payload", 0, payload)
	msg = bson.AppendString(msg, "$db", "test")
	return FinishMessage(bson.EndDocument(msg, start), 0)
}

// payloads are empty, tiny, repetitive, random and large data.
func payloads() map[string][]byte {
	random := make([]byte, 200<<10)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(random)
	return map[string][]byte{
		"empty":      {},
		"tiny":       []byte("x"),
		"text":       []byte(strings.Repeat("all work and no play makes Jack a dull boy\n", 1000)),
		"zeros":      make([]byte, 3<<20), // more than is read at once
		"random":     random,
		"many small": bytes.Repeat(random[:100], 300),
	}
}

func TestCompressRoundTrip(t *testing.T) {
	for name, payload := range payloads() {
		msg := commandMsg("insert", payload)
		for id := Noop; id <= Zstd; id++ {
			levels := []int{DefaultZlibLevel}
			if id == Zlib {
				levels = []int{-1, 0, 1, 6, 9}
			}
			for _, level := range levels {
				packed, err := AppendCompressed([]byte("before"), msg, id, level)
				if err != nil {
					t.Fatalf("%s, %s %d: %v", name, id, level, err)
				}
				if string(packed[:6]) != "before" {
					t.Fatalf("%s, %s: what was before is gone", name, id)
				}
				packed = packed[6:]
				h, err := ParseHeader(packed, DefaultMaxMessageSize)
				if err != nil || h.OpCode != OpCompressed || h.RequestID != 7 || h.ResponseTo != 3 || int(h.Length) != len(packed) {
					t.Fatalf("%s, %s: header %+v, %v", name, id, h, err)
				}
				got, err := AppendDecompressed([]byte("before"), packed, DefaultMaxMessageSize)
				if err != nil {
					t.Fatalf("%s, %s %d: %v", name, id, level, err)
				}
				if !bytes.Equal(got[6:], msg) {
					t.Errorf("%s, %s %d: differs after the round trip", name, id, level)
				}
			}
		}
	}
}

func TestCompressConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for _, name := range []string{"tiny", "text", "random"} {
		msg := commandMsg("insert", payloads()[name])
		for range 4 {
			wg.Go(func() {
				for id := Noop; id <= Zstd; id++ {
					packed, err := AppendCompressed(nil, msg, id, 1)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := AppendDecompressed(nil, packed, DefaultMaxMessageSize)
					if err != nil || !bytes.Equal(got, msg) {
						t.Errorf("%s, %s: %v", name, id, err)
					}
				}
			})
		}
	}
	wg.Wait()
}

func wrap(op OpCode, size int32, id byte, data []byte) []byte {
	msg := AppendHeader(nil, 7, 3, OpCompressed)
	msg = binary.LittleEndian.AppendUint32(msg, uint32(op))
	msg = binary.LittleEndian.AppendUint32(msg, uint32(size))
	return FinishMessage(append(append(msg, id), data...), 0)
}

func TestDecompressErrors(t *testing.T) {
	var zlibBomb bytes.Buffer
	z := zlib.NewWriter(&zlibBomb)
	z.Write(make([]byte, 10<<20))
	z.Close()
	enc, _ := zstd.NewWriter(nil)
	zstdBomb := enc.EncodeAll(make([]byte, 10<<20), nil)
	enc.Close()
	good, _ := AppendCompressed(nil, commandMsg("insert", nil), Snappy, -1)
	tests := []struct {
		name string
		msg  []byte
		want string
	}{
		{"empty", nil, "too short"},
		{"no data", good[:compressedAt-1], "too short"},
		{"negative size", wrap(OpMsg, -1, 1, nil), "the limit is"},
		{"size over the limit", wrap(OpMsg, 1<<30, 1, nil), "the limit is"},
		{"unknown compressor", wrap(OpMsg, 10, 4, nil), "compressor 4 is not known"},
		{"nested", wrap(OpCompressed, 10, 0, make([]byte, 10)), "another OP_COMPRESSED"},
		{"noop, other size", wrap(OpMsg, 10, 0, make([]byte, 9)), "there are 9 bytes"},
		{"snappy, garbage", wrap(OpMsg, 10, 1, []byte{10, 0xff, 0xff}), "snappy"},
		{"snappy, other size", wrap(OpMsg, 10, 1, []byte{5, 0x10, 1, 2, 3, 4, 5}), "data says"},
		{"snappy, impossible size", wrap(OpMsg, 40<<20, 1, []byte{0x80, 0x80, 0x80, 0x14, 0}), "cannot hold"},
		{"zlib, garbage", wrap(OpMsg, 10, 2, []byte("garbage")), "zlib"},
		{"zlib, cut", wrap(OpMsg, 10<<20, 2, zlibBomb.Bytes()[:100]), "EOF"},
		{"zlib, more than it says", wrap(OpMsg, 1000, 2, zlibBomb.Bytes()), "more than 1000 bytes"},
		{"zlib, less than it says", wrap(OpMsg, 20<<20, 2, zlibBomb.Bytes()), "EOF"},
		{"zstd, garbage", wrap(OpMsg, 10, 3, []byte("garbage garbage")), "zstd"},
		{"zstd, more than it says", wrap(OpMsg, 1000, 3, zstdBomb), "zstd"},
		{"zstd, less than it says", wrap(OpMsg, 11<<20, 3, zstdBomb), "message says"},
		{"zstd, impossible size", wrap(OpMsg, 40<<20, 3, enc.EncodeAll(nil, nil)), "cannot hold"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := AppendDecompressed(nil, tt.msg, DefaultMaxMessageSize)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := AppendCompressed(nil, commandMsg("insert", nil), Zlib, 10); err == nil {
		t.Error("zlib level 10: no error")
	}
	if _, err := AppendCompressed(nil, commandMsg("insert", nil), 9, 0); err == nil {
		t.Error("compressor 9: no error")
	}
	if _, err := AppendCompressed(nil, []byte("short"), Snappy, 0); err == nil {
		t.Error("short message: no error")
	}
}

func TestCompressible(t *testing.T) {
	for name, want := range map[string]bool{
		"insert": true, "find": true, "hello": false, "isMaster": false, "ismaster": false, "saslStart": false, "saslContinue": false,
		"getnonce": false, "authenticate": false, "createUser": false, "updateUser": false, "copydbSaslStart": false,
		"copydbgetnonce": false, "copydb": false,
	} {
		if got := Compressible(commandMsg(name, nil)); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if Compressible(nil) {
		t.Error("an empty message is compressible")
	}
}

func TestCompressorNames(t *testing.T) {
	for _, id := range []CompressorID{Snappy, Zlib, Zstd} {
		if got, ok := CompressorByName(id.String()); !ok || got != id {
			t.Errorf("%s: %v, %v", id, got, ok)
		}
	}
	for _, name := range []string{"noop", "", "lz4"} {
		if _, ok := CompressorByName(name); ok {
			t.Errorf("%q is a compressor", name)
		}
	}
}

func FuzzDecompress(f *testing.F) {
	for id := Noop; id <= Zstd; id++ {
		msg, _ := AppendCompressed(nil, commandMsg("insert", []byte("abcabcabcabcabcabc")), id, -1)
		f.Add(msg)
		f.Add(msg[:len(msg)-3])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, msg []byte) {
		const limit = 1 << 20
		out, err := AppendDecompressed(nil, msg, limit)
		if err != nil {
			if len(out) != 0 {
				t.Errorf("%d bytes beside an error", len(out))
			}
			return
		}
		if len(out) > limit {
			t.Fatalf("%d bytes, limit %d", len(out), limit)
		}
		if h, err := ParseHeader(out, limit); err != nil || int(h.Length) != len(out) {
			t.Fatalf("header %+v, %v", h, err)
		}
		ParseMsg(out)
	})
}

func BenchmarkCompress(b *testing.B) {
	msg := commandMsg("insert", []byte(strings.Repeat("all work and no play makes Jack a dull boy\n", 1000)))
	for id := Snappy; id <= Zstd; id++ {
		b.Run(id.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(msg)))
			var packed, out []byte
			for b.Loop() {
				var err error
				if packed, err = AppendCompressed(packed[:0], msg, id, -1); err != nil {
					b.Fatal(err)
				}
				if out, err = AppendDecompressed(out[:0], packed, DefaultMaxMessageSize); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
