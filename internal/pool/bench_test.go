package pool

import (
	"fmt"
	"testing"

	"allium/internal/fakeserver"
)

func TestCheckOutAllocatesNothing(t *testing.T) {
	p := newPool(t, &fakeserver.Server{Handle: echo}, Config{})
	mustCheckOut(t, p).Return()
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		c, err := p.CheckOut(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.Return()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkCheckOut has more goroutines than connections, as many, and fewer.
func BenchmarkCheckOut(b *testing.B) {
	const size = 100
	for _, goroutines := range []int{1, 50, 100, 200, 1000} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			p := newPool(b, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: size, MinPoolSize: size, MaxConnecting: size})
			var all []*Conn
			for range size {
				all = append(all, mustCheckOut(b, p))
			}
			for _, c := range all {
				c.Return()
			}
			b.SetParallelism(goroutines)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c, err := p.CheckOut(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					c.Return()
				}
			})
		})
	}
}
