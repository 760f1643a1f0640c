package scribble

import (
	"bytes"
	"testing"

	"allium/internal/norace"
)

// TestOver: memory is filled exactly where the race detector is on, and as far as the slice says.
func TestOver(t *testing.T) {
	b := []byte("document behind")
	want := []byte("document behind")
	if norace.Detecting {
		copy(want, bytes.Repeat([]byte{0xdb}, len("document")))
	}
	if Over(b[:len("document")]); !bytes.Equal(b, want) {
		t.Errorf("%q, want %q", b, want)
	}
	Over(nil)
}
