package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
)

// A scan by steps hits the keys that lie within the bounds of each field, in order and in both
// directions, and looks at few others: after each that it misses it goes on behind it.
func TestBoundsScan(t *testing.T) {
	values := []bson.RawValue{
		{Type: bson.TypeMinKey}, {Type: bson.TypeNull}, bsondoc.Int32Value(1), bsondoc.DoubleValue(1.5), bsondoc.Int64Value(1<<53 + 1), bsondoc.StringValue(""),
		bsondoc.StringValue("a\x00b"), bsondoc.DocumentValue(bsondoc.Of("x", "y", "z", bsondoc.Of("n", int32(1)))), bsondoc.BoolValue(true), bsondoc.DateValue(5),
		{Type: bson.TypeRegex, Value: []byte("a\x00i\x00")}, {Type: bson.TypeBinary, Value: []byte{2, 0, 0, 0, 0, 1, 2}}, {Type: bson.TypeMaxKey},
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, down := range [][]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		s := New(Options{})
		sign := func(down bool) int32 {
			if down {
				return -1
			}
			return 1
		}
		info := (&IndexInfo{Name: "ab", Pattern: bsondoc.Of("a", sign(down[0]), "b", sign(down[1])), Fields: []IndexField{{Path: "a", Descending: down[0]}, {Path: "b", Descending: down[1]}}}).Prepare()
		err := s.Write(func(tx *Tx) error {
			c, err := tx.Create("d.c", Settings{}, nil)
			if err == nil {
				c, err = tx.CreateIndex(c, info)
			}
			for i := 0; i < 300 && err == nil; i++ {
				at, doc := bson.BeginDocument(nil)
				doc = bson.AppendRawValue(doc, "a", values[rnd.IntN(len(values))])
				doc = bson.AppendRawValue(doc, "b", values[rnd.IntN(len(values))])
				c, err = tx.Insert(c, bson.EndDocument(doc, at))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		c := s.Latest().Coll("d.c")
		for range 200 {
			bounds := [][]query.Interval{randomIntervals(rnd, values), randomIntervals(rnd, values)}
			within := func(doc bson.Raw) bool { return lies(bounds[0], doc.Lookup("a")) && lies(bounds[1], doc.Lookup("b")) }
			var want []string
			for scan := NewScan(c, false, nil); ; {
				rid, doc, ok := scan.Next()
				if !ok {
					break
				}
				if within(doc) {
					want = append(want, rid)
				}
			}
			slices.Sort(want)
			for _, back := range []bool{false, true} {
				b := c.Index("ab").Bounds(bounds)
				scan := NewBoundsScan(c, c.Index("ab"), back, &b)
				var got, entries []string
				misses := 0
				for step := scan.Step(); step != StepEnd; step = scan.Step() {
					if step == StepMiss {
						misses++
						continue
					}
					got, entries = append(got, scan.RID()), append(entries, scan.Entry())
				}
				if sorted := slices.IsSorted(entries); back && len(entries) > 1 == sorted && !slices.IsSorted(reversed(entries)) || !back && !sorted {
					t.Fatalf("%v back %t: not in order", bounds, back)
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("%v down %v back %t: %d keys, not %d", bounds, down, back, len(got), len(want))
				}
				if limit := 2 * len(values) * len(values); misses > limit || scan.KeysSeen > int64(len(got)+limit) {
					t.Errorf("%v: looks at %d keys to find %d", bounds, scan.KeysSeen, len(got))
				}
			}
		}
	}
}

func reversed(list []string) []string {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

func randomIntervals(rnd *rand.Rand, values []bson.RawValue) (list []query.Interval) {
	for range 1 + rnd.IntN(3) {
		lo, hi := values[rnd.IntN(len(values))], values[rnd.IntN(len(values))]
		if bson.Compare(lo, hi) > 0 {
			lo, hi = hi, lo
		}
		in := query.Interval{Lo: lo, Hi: hi}
		if bson.Compare(lo, hi) < 0 {
			in.LoOpen, in.HiOpen = rnd.IntN(2) == 0, rnd.IntN(2) == 0
		}
		list = query.Union(list, []query.Interval{in}, nil)
	}
	return list
}

func lies(list []query.Interval, v bson.RawValue) bool {
	return slices.ContainsFunc(list, func(in query.Interval) bool {
		lo, hi := bson.Compare(in.Lo, v), bson.Compare(v, in.Hi)
		return (lo < 0 || lo == 0 && !in.LoOpen) && (hi < 0 || hi == 0 && !in.HiOpen)
	})
}

// A wildcard index has a key for each value at a path that it is for.
func TestWildcardKeys(t *testing.T) {
	doc := bsondoc.Of("_id", int32(1), "a", bsondoc.Of("b", int32(2), "c", bsondoc.Of()), "d", "x")
	for _, test := range []struct {
		pattern string
		project bson.Raw
		want    string
	}{
		{"$**", nil, `[a.b a.c d]`},
		{"a.$**", nil, `[a.b a.c]`},
		{"$**", bsondoc.Of("d", int32(1)), `[d]`},
		{"$**", bsondoc.Of("a.b", int32(0)), `[a.c d]`},
		{"$**", bsondoc.Of("_id", int32(1), "d", int32(1)), `[_id d]`},
		{"$**", bsondoc.Of("a", bsondoc.Of("b", int32(1))), `[a.b]`},
	} {
		var got []string
		newWildcard(test.pattern, test.project).keys(doc, "", func(path string, _ bson.RawValue) { got = append(got, path) }, func(string) {})
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s %v: %v, not %s", test.pattern, test.project, got, test.want)
		}
	}
}
