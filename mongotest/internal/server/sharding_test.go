package server

import (
	"math/rand/v2"
	"slices"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/sharding"
)

func raw(t testing.TB, d bson.D) bson.Raw {
	t.Helper()
	doc, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The hashes are those that the server's documentation and convertShardKeyToHashed show.
func TestHashValue(t *testing.T) {
	for _, v := range []any{1, int64(1), 1.0, 1.5} {
		doc := raw(t, bson.D{{Key: "v", Value: v}})
		if got := expr.HashKey(doc.Lookup("v")); got != 5902408780260971510 {
			t.Errorf("hash of %v is %d", v, got)
		}
	}
}

// model is the plainest form of a sharding: the shard of each of the numbers 0 to 99.
type model [100]int

// A sharding that chunks were split, moved and merged in places every key where the model has it,
// and a query goes to the shards that have its documents, and to no others than those of the chunks
// in its range.
func TestShardingModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := sharding.New(raw(t, bson.D{{Key: "x", Value: 1}}), false, true, 0, 4, 0)
		var m model
		for range 200 {
			at := r.IntN(100)
			key := []bson.RawValue{raw(t, bson.D{{Key: "x", Value: at}}).Lookup("x")}
			switch i := s.ChunkAt(key); r.IntN(4) {
			case 0, 1:
				s, _ = s.Split(key)
			case 2:
				to := r.IntN(4)
				for x := range m {
					if s.ChunkAt([]bson.RawValue{raw(t, bson.D{{Key: "x", Value: x}}).Lookup("x")}) == i {
						m[x] = to
					}
				}
				s = s.Move(i, to)
			case 3:
				if i > 0 && s.Chunks[i-1].Shard == s.Chunks[i].Shard {
					s = s.Merge(i-1, i)
				}
			}
			for i := 1; i < len(s.Chunks); i++ {
				if sharding.CompareKeys(s.Chunks[i-1].Min, s.Chunks[i].Min) >= 0 {
					t.Fatal("chunks are out of order")
				}
			}
		}
		for x, want := range m {
			if got := s.ShardOf(raw(t, bson.D{{Key: "x", Value: x}})); got != want {
				t.Fatalf("%d is on shard %d, want %d", x, got, want)
			}
		}
		for range 50 {
			lo, hi := r.IntN(100), r.IntN(100)
			f, err := query.ParseFilter(raw(t, bson.D{{Key: "x", Value: bson.D{{Key: "$gte", Value: lo}, {Key: "$lt", Value: hi}}}}), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := s.Target(f, true)
			var want []int
			for x := lo; x < hi; x++ {
				want = append(want, m[x])
			}
			slices.Sort(want)
			want = slices.Compact(want)
			if !slices.Equal(got, want) && lo < hi {
				t.Fatalf("[%d, %d) goes to %v, want %v", lo, hi, got, want)
			}
		}
	}
}

func TestShardKeyOf(t *testing.T) {
	s := sharding.New(raw(t, bson.D{{Key: "a.b", Value: 1}, {Key: "c", Value: 1}}), false, true, 0, 1, 0)
	for _, test := range []struct {
		doc  bson.D
		want string
		bad  bool
	}{
		{bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: 1}}}, {Key: "c", Value: 2}}, `{"a.b":1,"c":2}`, false},
		{bson.D{{Key: "c", Value: 2}}, `{"a.b":null,"c":2}`, false},
		{bson.D{{Key: "a", Value: 5}}, `{"a.b":null,"c":null}`, false},
		{bson.D{{Key: "a", Value: bson.A{bson.D{{Key: "b", Value: 1}}}}}, "", true},
		{bson.D{{Key: "c", Value: bson.A{}}}, "", true},
	} {
		key, err := s.KeyOf(raw(t, test.doc))
		switch {
		case test.bad != (err != nil):
			t.Errorf("%v: error %v", test.doc, err)
		case !test.bad && s.KeyDocument(key).String() != test.want:
			t.Errorf("%v: %v, want %s", test.doc, s.KeyDocument(key), test.want)
		}
	}
}
