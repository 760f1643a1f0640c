package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

// randomValue makes values that are likely to meet: few names, few numbers, every kind of nesting.
func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(12); {
	case n < 4:
		return r.IntN(4)
	case n == 4:
		return float64(r.IntN(8)) / 2
	case n == 5:
		return string("abB"[r.IntN(3)])
	case n == 6:
		return nil
	case n == 7:
		return r.IntN(2) == 0
	case depth <= 0:
		return ""
	case n < 10:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	}
	return randomDocument(r, depth-1)
}

func randomDocument(r *rand.Rand, depth int) bson.Raw {
	var args []any
	for _, name := range []string{"a", "b", "0", "1"} {
		if r.IntN(5) < 2 {
			args = append(args, name, randomValue(r, depth))
		}
	}
	return doc(args...)
}

var randomPaths = []string{"a", "b", "a.a", "a.b", "a.0", "a.1.b", "b.a", "a.a.a"}

func randomCondition(r *rand.Rand) any {
	v := randomValue(r, 1)
	ops := []string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"}
	switch r.IntN(6) {
	case 0:
		return v
	case 1:
		return doc("$in", []any{v, randomValue(r, 1)})
	case 2:
		return doc(ops[r.IntN(6)], v, ops[r.IntN(6)], randomValue(r, 0))
	case 3:
		return doc("$elemMatch", doc(ops[r.IntN(6)], v))
	case 4:
		return doc("$exists", r.IntN(2) == 0)
	}
	return doc(ops[r.IntN(6)], v)
}

func randomFilter(r *rand.Rand, depth int) bson.Raw {
	var args []any
	for range 1 + r.IntN(2) {
		switch n := r.IntN(8); {
		case n == 0 && depth > 0:
			args = append(args, "$or", []any{randomFilter(r, depth-1), randomFilter(r, depth-1)})
		case n == 1 && depth > 0:
			args = append(args, "$nor", []any{randomFilter(r, depth-1)})
		case n == 2 && depth > 0:
			args = append(args, "a", doc("$elemMatch", randomFilter(r, 0)))
		default:
			args = append(args, randomPaths[r.IntN(len(randomPaths))], randomCondition(r))
		}
	}
	return doc(args...)
}

func mustFilter(t *testing.T, filter bson.Raw) *Filter {
	t.Helper()
	f, err := ParseFilter(filter, nil)
	if err != nil {
		t.Fatalf("%v: %v", filter, err)
	}
	return f
}

func matches(t *testing.T, f *Filter, d bson.Raw) bool {
	t.Helper()
	ok, err := f.Match(d)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// $nor of one filter is its negation; $and of two is both; $not of a condition and the condition
// exclude each other.
func TestLogicProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		d, a, b := randomDocument(r, 3), randomFilter(r, 1), randomFilter(r, 1)
		inA, inB := matches(t, mustFilter(t, a), d), matches(t, mustFilter(t, b), d)
		for _, tt := range []struct {
			op   string
			args []any
			want bool
		}{
			{"$nor", []any{a}, !inA}, {"$and", []any{a, b}, inA && inB}, {"$or", []any{a, b}, inA || inB}, {"$nor", []any{a, b}, !inA && !inB},
		} {
			if got := matches(t, mustFilter(t, doc(tt.op, tt.args)), d); got != tt.want {
				t.Fatalf("{%s: %v} on %v: %v, but alone %v and %v", tt.op, tt.args, d, got, inA, inB)
			}
		}
		path, c := randomPaths[r.IntN(len(randomPaths))], doc("$gte", r.IntN(4))
		if matches(t, mustFilter(t, doc(path, c)), d) == matches(t, mustFilter(t, doc(path, doc("$not", c))), d) {
			t.Fatalf("%s: %v and its $not agree on %v", path, c, d)
		}
	}
}

// checkBounds returns how many bounds a filter has for an index on a path, or what is wrong with
// them: none holds a key of a document that matches, or they overlap.
func checkBounds(f *Filter, d bson.Raw, path string) (bounded int, err error) {
	var keys []bson.RawValue
	multikey, err := NewKeyGenerator([]string{path}, false).Keys(d, func(k []bson.RawValue) { keys = append(keys, k[0]) })
	if err != nil {
		return 0, nil // ambiguous names: such a document cannot be in an index
	}
	for _, multikey := range []bool{true, multikey} {
		intervals, ok := f.Bounds(path, multikey, true)
		if !ok {
			continue
		}
		bounded++
		if !slices.ContainsFunc(keys, func(k bson.RawValue) bool {
			return slices.ContainsFunc(intervals, func(i Interval) bool {
				lo, hi := bson.Compare(k, i.Lo), bson.Compare(k, i.Hi)
				return (lo > 0 || lo == 0 && !i.LoOpen) && (hi < 0 || hi == 0 && !i.HiOpen)
			})
		}) {
			return bounded, fmt.Errorf("it matches %v, but of the keys %v of %s none is in %v", d, keys, path, intervals)
		}
		for i := 1; i < len(intervals); i++ {
			if bson.Compare(intervals[i-1].Hi, intervals[i].Lo) > 0 {
				return bounded, fmt.Errorf("intervals overlap: %v", intervals)
			}
		}
	}
	return bounded, nil
}

// A document that matches has an index key within the filter's bounds.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	bounded := 0
	for range 30000 {
		d, filter := randomDocument(r, 3), randomFilter(r, 1)
		f := mustFilter(t, filter)
		if !matches(t, f, d) {
			continue
		}
		for _, path := range randomPaths {
			n, err := checkBounds(f, d, path)
			if err != nil {
				t.Fatalf("%v: %v", filter, err)
			}
			bounded += n
		}
	}
	if bounded < 1000 {
		t.Errorf("only %d bounds seen", bounded)
	}
}

// What $set has put there is found by equality; what does not match is not found.
func TestSetThenMatch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 5000 {
		d, path, v := randomDocument(r, 2), randomPaths[r.IntN(len(randomPaths))], randomValue(r, 2)
		set := doc("$set", doc(path, v))
		u, err := ParseUpdate(bsondoc.DocumentValue(set), nil)
		if err != nil {
			t.Fatal(err)
		}
		out, modified, err := u.Apply(d, -1, Clock{})
		if err != nil {
			continue // the path leads through a scalar
		}
		if err := out.Validate(); err != nil {
			t.Fatalf("%v on %v: %v", set, d, err)
		}
		if !matches(t, mustFilter(t, doc(path, doc("$eq", v))), out) {
			t.Fatalf("%v on %v makes %v, which does not match", set, d, out)
		}
		again, modifiedAgain, err := u.Apply(out, -1, Clock{})
		if err != nil || modifiedAgain || !bson.Equal(again, out) {
			t.Fatalf("%v twice on %v: %v, %v", set, d, again, err)
		}
		if !modified && !bson.Equal(d, out) {
			t.Fatalf("%v on %v: not modified, but %v", set, d, out)
		}
	}
}

// Sorting is a total order, and a stable one.
func TestSortProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		s, err := ParseSort(doc(randomPaths[r.IntN(2)], 1, "a.b", -1), nil)
		if err != nil {
			t.Fatal(err)
		}
		var keys [][]bson.RawValue
		for range 12 {
			if k, err := s.Key(randomDocument(r, 3), nil); err == nil {
				keys = append(keys, k)
			}
		}
		for _, a := range keys {
			for _, b := range keys {
				if s.CompareKeys(a, b) != -s.CompareKeys(b, a) {
					t.Fatalf("%v and %v", a, b)
				}
				for _, c := range keys {
					if s.CompareKeys(a, b) <= 0 && s.CompareKeys(b, c) <= 0 && s.CompareKeys(a, c) > 0 {
						t.Fatalf("%v, %v, %v", a, b, c)
					}
				}
			}
		}
	}
}
