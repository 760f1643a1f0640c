package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTree compares the tree with a map over random edits, and checks that older versions stay as
// they were, also when an edit goes on from one of them, as a transaction does, or after an edit
// that was given up.
func TestTree(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		type version struct {
			t    tree[string, int]
			want map[string]int
		}
		var tr tree[string, int]
		want := map[string]int{}
		var old []version
		space := []int{10, 200, 5000}[rng.IntN(3)]
		for edit := uint64(1); edit < 400; edit++ {
			if edit%50 == 0 {
				old = append(old, version{tr, maps.Clone(want)})
			}
			if edit%70 == 0 {
				v := old[rng.IntN(len(old))]
				tr, want = v.t, maps.Clone(v.want)
			}
			deleting := rng.IntN(3) == 0
			for range rng.IntN(40) {
				k := fmt.Sprintf("%05d", rng.IntN(space))
				if seed%4 == 0 && !deleting || seed%4 == 1 && rng.IntN(3) > 0 { // ascending
					k = fmt.Sprintf("%08d", len(want)+int(edit)*100)
				}
				_, had := want[k]
				if deleting {
					if tr.delete(edit, k) != had {
						t.Fatal("delete reports the wrong thing")
					}
					delete(want, k)
					continue
				}
				v := rng.Int()
				if tr.set(edit, k, v) == had {
					t.Fatal("set reports the wrong thing")
				}
				want[k] = v
			}
		}
		for _, v := range append(old, version{tr, want}) {
			checkTree(t, &v.t, v.want)
		}
	}
}

func checkTree(t *testing.T, tr *tree[string, int], want map[string]int) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(want))
	if tr.len() != len(keys) {
		t.Fatalf("%d entries, want %d", tr.len(), len(keys))
	}
	i := 0
	for it := tr.first(); it.valid(); it.next() {
		if i >= len(keys) || it.key() != keys[i] || it.value() != want[keys[i]] {
			t.Fatalf("entry %d is %q", i, it.key())
		}
		i++
	}
	if i != len(keys) {
		t.Fatalf("forward: %d of %d", i, len(keys))
	}
	for it := tr.last(); it.valid(); it.prev() {
		i--
		if i < 0 || it.key() != keys[i] {
			t.Fatalf("backward: entry %d is %q", i, it.key())
		}
	}
	if i != 0 {
		t.Fatalf("backward: %d left", i)
	}
	for n := range 50 {
		probe := fmt.Sprintf("%05d", n*37)
		if n%2 == 0 && len(keys) > 0 {
			probe = keys[n*7%len(keys)]
		}
		at, found := slices.BinarySearch(keys, probe)
		if v, ok := tr.get(probe); ok != found || ok && v != want[probe] {
			t.Fatalf("get %q: %v", probe, ok)
		}
		it := tr.seek(probe)
		if it.valid() != (at < len(keys)) || it.valid() && it.key() != keys[at] {
			t.Fatalf("seek %q", probe)
		}
		if k, ok := tr.atLeast(probe); ok != (at < len(keys)) || ok && k != keys[at] {
			t.Fatalf("atLeast %q", probe)
		}
		it = tr.seekBefore(probe)
		if it.valid() != (at > 0) || it.valid() && it.key() != keys[at-1] {
			t.Fatalf("seekBefore %q", probe)
		}
	}
}

// BenchmarkTreeInsert inserts one key per edit, as single inserts do.
func BenchmarkTreeInsert(b *testing.B) {
	run := func(name string, key func(i int) int) {
		b.Run(name, func(b *testing.B) {
			var tr tree[string, []byte]
			v := make([]byte, 8)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				tr.set(uint64(i), fmt.Sprintf("%016d", key(i)), v)
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	run("ascending", func(i int) int { return i })
	run("random", func(int) int { return rng.Int() })
}
