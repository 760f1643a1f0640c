package session

import (
	"testing"

	"allium/bson"
)

func TestNewest(t *testing.T) {
	old, young := &ClusterTime{Time: bson.Timestamp{T: 1, I: 9}}, &ClusterTime{Time: bson.Timestamp{T: 2, I: 1}}
	same := &ClusterTime{Time: old.Time}
	for _, c := range []struct{ a, b, want *ClusterTime }{
		{nil, nil, nil}, {old, nil, old}, {nil, old, old}, {old, young, young}, {young, old, young}, {old, same, old},
	} {
		if got := Newest(c.a, c.b); got != c.want {
			t.Errorf("of %v and %v: %v", c.a, c.b, got)
		}
	}
}
