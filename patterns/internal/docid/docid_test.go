package docid

import (
	"math"
	"testing"
	"time"

	"allium/bson"
)

// TestKey: values have the same key if every server says that they are equal, and only then.
func TestKey(t *testing.T) {
	decimal, _ := bson.ParseDecimal128("1")
	groups := [][]any{
		{int32(1), int64(1), 1.0}, {int32(-1), int64(-1), -1.0}, {0, 0.0, math.Copysign(0, -1)}, {int64(1) << 53, float64(1 << 53)},
		{int64(1)<<53 + 1}, {int64(math.MaxInt64)}, {int64(math.MinInt64)},
		{"1"}, {""}, {"a"}, {"A"}, {true}, {false},
		{bson.ObjectID{11: 1}}, {bson.ObjectID{11: 2}}, {time.UnixMilli(1), bson.DateTime(1)}, {time.UnixMilli(2)},
		{bson.Timestamp{T: 1}}, {bson.Timestamp{I: 1}}, {bson.Binary{Data: []byte{1}}}, {bson.Binary{Subtype: 4, Data: []byte{1}}},
	}
	keys := map[string]int{}
	for i, g := range groups {
		for _, v := range g {
			raw, err := bson.MarshalValue(v)
			if err != nil {
				t.Fatal(err)
			}
			key, ok := Key(raw)
			if at, known := keys[key]; !ok || known && at != i {
				t.Errorf("%T %v: key %q, %v; so has %v", v, v, key, ok, groups[at])
			}
			keys[key] = i
		}
	}
	if len(keys) != len(groups) {
		t.Errorf("%d keys, want %d", len(keys), len(groups))
	}
	for _, v := range []any{bson.D{}, bson.A{}, bson.Regex{Pattern: "a"}, decimal, 0.5, math.NaN(), math.Inf(1), 1e300, bson.Null{}} {
		raw, err := bson.MarshalValue(v)
		if err != nil {
			t.Fatal(err)
		}
		if key, ok := Key(raw); ok {
			t.Errorf("%T %v: key %q", v, v, key)
		}
	}
}
