package conn

import "testing"

func TestBufferSizes(t *testing.T) {
	for _, size := range []int{0, 1, 4 << 10, 4<<10 + 1, 16 << 20, 16<<20 + 16<<10, 48_000_000, 48_000_001} {
		b := getBuffer(size)
		if len(b.b) < size {
			t.Errorf("size %d: got %d", size, len(b.b))
		}
		if size > 4<<10 && size <= 48_000_000 && len(b.b) > 4*size {
			t.Errorf("size %d: got %d", size, len(b.b))
		}
		putBuffer(b)
	}
}
