package store

import (
	"testing"

	"allium/bson"
	"allium/mongotest/internal/query"
)

func TestRanges(t *testing.T) {
	for _, tt := range []struct {
		filter string
		fields []IndexField
		score  int
		in     []string // keys that lie in the ranges, as documents {0: first, 1: second}
		out    []string
	}{
		{`{"a":1}`, []IndexField{{Path: "a"}}, 2, []string{`{"0":1}`, `{"0":{"$numberDouble":"1.0"}}`}, []string{`{"0":2}`, `{"0":"1"}`, `{"0":null}`}},
		{`{"a":{"$gt":1,"$lte":5}}`, []IndexField{{Path: "a"}}, 1, []string{`{"0":2}`, `{"0":5}`}, []string{`{"0":1}`, `{"0":6}`}},
		{`{"a":{"$gt":1,"$lte":5}}`, []IndexField{{Path: "a", Descending: true}}, 1, []string{`{"0":2}`, `{"0":5}`}, []string{`{"0":1}`, `{"0":6}`}},
		{`{"a":{"$in":[1,3]},"b":{"$lt":"x"}}`, []IndexField{{Path: "a"}, {Path: "b"}}, 3, []string{`{"0":1,"1":"a"}`, `{"0":3,"1":""}`},
			[]string{`{"0":2,"1":"a"}`, `{"0":1,"1":"x"}`, `{"0":1,"1":5}`}},
		{`{"b":1}`, []IndexField{{Path: "a"}, {Path: "b"}}, 0, nil, nil},
		{`{"a":{"$in":[]}}`, []IndexField{{Path: "a"}}, 2, nil, []string{`{"0":1}`, `{"0":null}`}},
	} {
		filter, err := bson.ParseExtJSON([]byte(tt.filter))
		if err != nil {
			t.Fatal(err)
		}
		f, err := query.ParseFilter(filter, nil)
		if err != nil {
			t.Fatal(err)
		}
		ix := &Index{IndexInfo: (&IndexInfo{Fields: tt.fields}).Prepare()}
		ranges, score := ix.Ranges(f, true)
		if score != tt.score {
			t.Errorf("%s: score %d, want %d", tt.filter, score, tt.score)
		}
		for i := 1; i < len(ranges); i++ {
			if ranges[i-1].Hi > ranges[i].Lo {
				t.Errorf("%s: ranges out of order: %q", tt.filter, ranges)
			}
		}
		check := func(keys []string, want bool) {
			for _, text := range keys {
				doc, err := bson.ParseExtJSON([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				var key []byte
				i := 0
				for v := range doc.Values() {
					key = ix.encode(key, i, v)
					i++
				}
				got := false
				for _, r := range ranges {
					got = got || string(key) >= r.Lo && (r.Hi == "" || string(key) < r.Hi)
				}
				if got != want {
					t.Errorf("%s: key %s: %v, want %v", tt.filter, text, got, want)
				}
			}
		}
		check(tt.in, true)
		check(tt.out, false)
	}
}
