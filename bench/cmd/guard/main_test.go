package main

import (
	"strings"
	"testing"
)

func TestGrown(t *testing.T) {
	const text = `pkg: ./a
BenchmarkX-2   100   12 ns/op   8 B/op   3 allocs/op
BenchmarkX-2   100   12 ns/op   8 B/op   4 allocs/op
BenchmarkX-2   100   12 ns/op   8 B/op   4 allocs/op
BenchmarkMany-2   100   12 ns/op   1.5 MB/s   8 B/op   1000 allocs/op
pkg: ./b
BenchmarkX   100   12 ns/op   8 B/op   9 allocs/op
`
	before := allocations(strings.NewReader(text))
	if len(before) != 3 || before["./a BenchmarkX"] != 4 || before["./b BenchmarkX"] != 9 {
		t.Fatalf("got %v", before)
	}
	if err := grown(before, before); err != nil {
		t.Error(err)
	}
	after := allocations(strings.NewReader(strings.NewReplacer("  4 allocs", "  5 allocs", "1000 allocs", "1009 allocs").Replace(text)))
	err := grown(before, after)
	if err == nil || err.Error() != "./a BenchmarkX: 5 allocations, were 4" {
		t.Errorf("got %v", err)
	}
}
