package main

import (
	"strings"
	"testing"

	"allium/bench"
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

func TestAgainst(t *testing.T) {
	a, b := bench.Count{Task: "null/a", Allocs: 8, Calls: 3, Instructions: -1}, bench.Count{Task: "null/b", Allocs: 8, Calls: 3, Instructions: -1}
	worse := a
	worse.Allocs++
	for _, c := range []struct {
		before, now []bench.Count
		want        string
	}{
		{[]bench.Count{a, b}, []bench.Count{a, b}, ""},
		{[]bench.Count{a}, []bench.Count{worse}, "null/a: 9 allocations, were 8"},
		{[]bench.Count{a}, []bench.Count{a, b}, "null/b: not in guard.txt"},
		{[]bench.Count{a, b}, []bench.Count{a}, "null/b: in guard.txt, and not counted any more"},
	} {
		before := map[string]bench.Count{}
		for _, x := range c.before {
			before[x.Task] = x
		}
		got := ""
		if err := against(before, c.now); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v against %v: %q, want %q", c.now, c.before, got, c.want)
		}
	}
}
