package bson

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// TestWordwiseText compares the word-wise functions with the plain ones on random text around the
// word sizes.
func TestWordwiseText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	pieces := [][]byte{{'a'}, {0x7F}, {1}, {0}, {0x80}, {0xFF}, []byte("é"), []byte("日"), []byte("😀"), {0xF0, 0x9F}, {0xC0, 0x80}}
	for range 30_000 {
		var b []byte
		for n := r.IntN(70); len(b) < n; {
			p := pieces[0]
			if r.IntN(20) == 0 {
				p = pieces[r.IntN(len(pieces))]
			}
			b = append(b, p...)
		}
		if got, want := validText(b), utf8.Valid(b); got != want {
			t.Fatalf("validText(%q) = %t", b, got)
		}
		ascii := true
		for _, c := range b {
			ascii = ascii && c < utf8.RuneSelf
		}
		if got, want := plainKey(b), ascii && bytes.IndexByte(b, 0) < 0; got != want {
			t.Fatalf("plainKey(%q) = %t", b, got)
		}
		n := bytes.IndexByte(b, 0)
		ascii = n >= 0
		for i := range max(n, 0) {
			ascii = ascii && b[i] < utf8.RuneSelf
		}
		if gotN, gotASCII := cstringLen(b); gotN != n || gotASCII != ascii {
			t.Fatalf("cstringLen(%q) = %d, %t, want %d, %t", b, gotN, gotASCII, n, ascii)
		}
	}
}
