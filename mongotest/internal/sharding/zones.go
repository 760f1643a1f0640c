package sharding

import (
	"maps"
	"slices"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
)

// ZoneRange is a range of a collection's shard keys in a zone, as config.tags has it.
type ZoneRange struct {
	ID       bson.ObjectID
	NS, Zone string
	Min, Max bson.Raw
}

// String shows the range as the server's errors do.
func (r *ZoneRange) String() string {
	return bsontext.Document(r.Min) + " -->> " + bsontext.Document(r.Max) + " on " + r.Zone
}

func (r *ZoneRange) same(o ZoneRange) bool {
	return r.NS == o.NS && bson.Equal(r.Min, o.Min) && bson.Equal(r.Max, o.Max)
}

// CompareBounds compares two ends of ranges.
func CompareBounds(a, b bson.Raw) int {
	value := func(doc bson.Raw) bson.RawValue { return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc} }
	return query.Compare(value(a), value(b), nil)
}

// Zones are the zones of a cluster: groups of shards, and the ranges of shard keys that belong on
// them. The zero value has none. Safe for concurrent use.
type Zones struct {
	mu     sync.Mutex
	shards map[string][]string // the zones of each shard, by its name
	ranges []ZoneRange
}

// ZoneSet is what Zones held at one moment. It never changes.
type ZoneSet struct {
	shards map[string][]string
	ranges []ZoneRange
}

// Snapshot returns what there is.
func (z *Zones) Snapshot() ZoneSet {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.copyOf(z.shards, z.ranges)
}

// Restore makes a snapshot what there is.
func (z *Zones) Restore(s ZoneSet) {
	z.mu.Lock()
	defer z.mu.Unlock()
	s = z.copyOf(s.shards, s.ranges)
	z.shards, z.ranges = s.shards, s.ranges
}

func (*Zones) copyOf(shards map[string][]string, ranges []ZoneRange) ZoneSet {
	s := ZoneSet{maps.Clone(shards), slices.Clone(ranges)}
	for shard, zones := range s.shards {
		s.shards[shard] = slices.Clone(zones)
	}
	return s
}

// Add puts a shard into a zone.
func (z *Zones) Add(shard, zone string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.shards == nil {
		z.shards = map[string][]string{}
	}
	if !slices.Contains(z.shards[shard], zone) {
		z.shards[shard] = append(z.shards[shard], zone)
	}
}

// Remove takes a shard out of a zone. It returns false, and leaves it there, if the shard is the
// last one of a zone that has ranges.
func (z *Zones) Remove(shard, zone string) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	had := z.shards[shard]
	i := slices.Index(had, zone)
	if i < 0 {
		return true
	}
	z.shards[shard] = slices.Delete(slices.Clone(had), i, i+1)
	if !z.hasLocked(zone) && slices.ContainsFunc(z.ranges, func(r ZoneRange) bool { return r.Zone == zone }) {
		z.shards[shard] = had
		return false
	}
	return true
}

// Has reports whether any shard belongs to a zone.
func (z *Zones) Has(zone string) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.hasLocked(zone)
}

func (z *Zones) hasLocked(zone string) bool {
	for _, zones := range z.shards {
		if slices.Contains(zones, zone) {
			return true
		}
	}
	return false
}

// SetRange gives a range to a zone, whatever zone had it before. It returns another range of the
// collection that overlaps it, and then does nothing.
func (z *Zones) SetRange(r ZoneRange) (overlapping *ZoneRange) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, old := range z.ranges {
		if old.NS == r.NS && !r.same(old) && CompareBounds(old.Min, r.Max) < 0 && CompareBounds(r.Min, old.Max) < 0 {
			return &old
		}
	}
	z.ranges = append(slices.DeleteFunc(z.ranges, r.same), r)
	return nil
}

// RemoveRange takes a range out of its zone.
func (z *Zones) RemoveRange(r ZoneRange) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.ranges = slices.DeleteFunc(z.ranges, r.same)
}

// Ranges returns all ranges, in the order in which they came.
func (z *Zones) Ranges() []ZoneRange {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.ranges)
}

// OfShard returns the zones of a shard.
func (z *Zones) OfShard(shard string) []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.shards[shard])
}

// Divide reports whether a range of the collection's shard keys is in a zone.
func (z *Zones) Divide(ns string) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.ContainsFunc(z.ranges, func(r ZoneRange) bool { return r.NS == ns })
}

// Allow returns which shards may have the documents of a collection whose keys begin at key: those
// of the zone of the range, all if there is none.
func (z *Zones) Allow(ns string, key bson.Raw) (allows func(shard string) bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	zone := ""
	for _, r := range z.ranges {
		if r.NS == ns && CompareBounds(r.Min, key) <= 0 && CompareBounds(key, r.Max) < 0 {
			zone = r.Zone
		}
	}
	return func(shard string) bool { return zone == "" || slices.Contains(z.OfShard(shard), zone) }
}
