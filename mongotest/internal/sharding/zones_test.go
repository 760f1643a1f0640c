package sharding

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"allium/bson"
)

func bound(t *testing.T, x int) bson.Raw {
	t.Helper()
	doc, err := bson.Marshal(bson.D{{Key: "x", Value: x}})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestZones compares zones with a model of small integers: ranges do not overlap, a zone with
// ranges keeps a shard, and a key is allowed on the shards of its range's zone.
func TestZones(t *testing.T) {
	type span struct{ lo, hi int }
	random := rand.New(rand.NewPCG(1, 2))
	var z Zones
	member, ranges := map[string][]string{}, map[span]string{}
	has := func(zone string) (n int) {
		for _, zones := range member {
			if slices.Contains(zones, zone) {
				n++
			}
		}
		return n
	}
	refused := map[string]int{}
	for range 5000 {
		shard, zone := fmt.Sprintf("sh%d", random.IntN(3)), fmt.Sprintf("z%d", random.IntN(3))
		lo := random.IntN(9)
		r := span{lo, lo + 1 + random.IntN(3)}
		full := ZoneRange{NS: "a.b", Zone: zone, Min: bound(t, r.lo), Max: bound(t, r.hi)}
		switch random.IntN(4) {
		case 0:
			z.Add(shard, zone)
			if !slices.Contains(member[shard], zone) {
				member[shard] = append(member[shard], zone)
			}
		case 1:
			used := false
			for _, of := range ranges {
				used = used || of == zone
			}
			in := slices.Contains(member[shard], zone)
			want := !in || has(zone) > 1 || !used
			if got := z.Remove(shard, zone); got != want {
				t.Fatalf("%s is taken out of %s: %v, want %v", shard, zone, got, want)
			}
			if want && in {
				member[shard] = slices.DeleteFunc(member[shard], func(s string) bool { return s == zone })
			} else if !want {
				refused["shard"]++
			}
		case 2:
			if has(zone) == 0 {
				continue // the command refuses it
			}
			over := false
			for o := range ranges {
				over = over || o != r && o.lo < r.hi && r.lo < o.hi
			}
			if got := z.SetRange(full); (got != nil) != over {
				t.Fatalf("range %v overlaps %v, want %v, among %v", r, got, over, ranges)
			}
			if over {
				refused["range"]++
			} else {
				ranges[r] = zone
			}
		case 3:
			z.RemoveRange(full)
			delete(ranges, r)
		}
		if got := len(z.Ranges()); got != len(ranges) || z.Divide("a.b") != (len(ranges) > 0) || z.Divide("a.c") {
			t.Fatalf("%d ranges, want %d", got, len(ranges))
		}
		for key := range 12 {
			zone := ""
			for r, of := range ranges {
				if r.lo <= key && key < r.hi {
					zone = of
				}
			}
			allows := z.Allow("a.b", bound(t, key))
			for shard := range 3 {
				name := fmt.Sprintf("sh%d", shard)
				if want := zone == "" || slices.Contains(member[name], zone); allows(name) != want {
					t.Fatalf("key %d of zone %q on %s: %v", key, zone, name, !want)
				}
			}
		}
	}
	if refused["shard"] == 0 || refused["range"] == 0 {
		t.Errorf("refused %v: the model met none of a kind", refused)
	}
}
