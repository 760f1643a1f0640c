package session

import (
	"bytes"
	"testing"

	"allium/bson"
)

// FuzzClusterTime takes any documents as $clusterTime: the clock never goes back, says what the
// newest said, and keeps nothing of the reply's memory.
func FuzzClusterTime(f *testing.F) {
	for _, seed := range []bson.D{
		{{Key: "clusterTime", Value: bson.Timestamp{T: 5, I: 1}}, {Key: "signature", Value: bson.D{{Key: "keyId", Value: int64(3)}}}},
		{{Key: "clusterTime", Value: bson.Timestamp{T: 1 << 31}}},
		{{Key: "clusterTime", Value: int64(7)}},
	} {
		doc, err := bson.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(doc), []byte(doc))
	}
	f.Add([]byte{}, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var clock, other Clock
		var before bson.Timestamp
		for _, doc := range [][]byte{a, b, a} {
			kept := bytes.Clone(doc)
			parsed := ParseClusterTime(doc)
			clock.AdvanceRaw(doc)
			other.Advance(parsed)
			now := clock.Now()
			if (now == nil) != (other.Now() == nil) || now != nil && now.Time.Compare(other.Now().Time) != 0 {
				t.Fatalf("the clocks differ: %v, %v", now, other.Now())
			}
			if parsed != nil && now.Time.Compare(parsed.Time) < 0 {
				t.Fatalf("the clock says %v after %v", now.Time, parsed.Time)
			}
			if now == nil {
				continue
			}
			if now.Time.Compare(before) < 0 {
				t.Fatalf("the clock went back from %v to %v", before, now.Time)
			}
			before = now.Time
			clear(doc) // the reply's memory is used again
			if ts, ok := now.Doc.Lookup("clusterTime").Timestamp(); !ok || ts.Compare(now.Time) != 0 {
				t.Fatalf("the document of %v says %v", now.Time, ts)
			}
			copy(doc, kept)
		}
	})
}
