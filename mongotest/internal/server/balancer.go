package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// The balancer: it moves chunks from shards with many to shards with few, and to the shards of
// their zones. It begins with balancerStart only, so that tests know where their documents are.

// balanceEvery is the time between two rounds.
const balanceEvery = time.Second

// balancer is safe for concurrent use.
type balancer struct {
	mu      sync.Mutex // held during a round
	on, off bool       // off: balancerStop was the last command
	ended   atomic.Bool
	rounds  int64
	timer   *time.Timer
}

// Balancer returns how the balancer of a cluster stands: its mode, and how many rounds there were.
func (d *Data) Balancer() (mode string, rounds int64) {
	b := &d.cluster.balancer
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.off {
		return "off", b.rounds
	}
	return "full", b.rounds // as a new cluster says
}

// SwitchBalancer lets the balancer begin, or stop.
func (d *Data) SwitchBalancer(on bool) {
	b := &d.cluster.balancer
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on, b.off = on, !on
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if b.on && !b.ended.Load() {
		b.timer = time.AfterFunc(0, d.balance)
	}
}

// stop ends the balancer and waits for a round that runs.
func (b *balancer) stop() {
	b.ended.Store(true) // a round that runs looks at it
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// check returns the error that ends a round.
func (b *balancer) check() error {
	if b.ended.Load() {
		return errEnded
	}
	return nil
}

// balance is a round: it moves at most one chunk of each collection.
func (d *Data) balance() {
	b := &d.cluster.balancer
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.on || b.ended.Load() {
		return
	}
	var todo []string
	d.storage.s.Latest().Colls("", func(c *store.Coll) bool {
		if c.Sharded() {
			todo = append(todo, c.NS)
		}
		return true
	})
	for _, ns := range todo {
		// What is in the way, an open transaction or a document with the same _id, may be gone at
		// the next round.
		_ = d.storage.s.Write(func(tx *store.Tx) error {
			tx.Count(work.New(b.check))
			c := tx.Coll(ns)
			s := sharding.Of(c)
			if s == nil || s.Balancing.Off {
				return nil
			}
			chunk, to, violation := d.nextMove(ns, s)
			if violation == "" || !d.shardRuns(s.Chunks[chunk].Shard) || !d.shardRuns(to) {
				return nil
			}
			next, err := d.Migrate(tx, c, s, chunk, to, false)
			if err == nil {
				tx.SetSharding(tx.Coll(ns), next, next.Paths(), nil)
			}
			return err
		})
	}
	d.Wrote(bson.Timestamp{})
	b.rounds++
	if !b.ended.Load() {
		b.timer = time.AfterFunc(balanceEvery, d.balance)
	}
}

// shardRuns reports whether a shard has a primary.
func (d *Data) shardRuns(i int) bool {
	return d.parts[i].HasPrimary()
}

// Violation says why the balancer has something to do for a collection, as balancerCollectionStatus
// calls it; empty: it has nothing to do.
func (d *Data) Violation(ns string, s *sharding.Metadata) string {
	_, _, violation := d.nextMove(ns, s)
	return violation
}

// nextMove returns the chunk that the balancer moves next, where, and why: one that is not in its
// zone, or one of a shard that has too many.
func (d *Data) nextMove(ns string, s *sharding.Metadata) (chunk, to int, violation string) {
	counts := make([]int, d.shards)
	for _, ch := range s.Chunks {
		counts[ch.Shard]++
	}
	threshold := 2
	switch n := len(s.Chunks); {
	case n >= 80:
		threshold = 8
	case n >= 20:
		threshold = 4
	}
	best := 0 // by how many chunks the two shards differ
	for i, ch := range s.Chunks {
		allowed := d.ZoneShards(ns, s, i)
		target := -1
		for _, shard := range allowed {
			if target < 0 || counts[shard] < counts[target] {
				target = shard
			}
		}
		if target < 0 || target == ch.Shard {
			continue
		}
		if !slices.Contains(allowed, ch.Shard) {
			return i, target, "zoneViolation"
		}
		if differ := counts[ch.Shard] - counts[target]; differ >= threshold && differ > best {
			best, chunk, to, violation = differ, i, target, "chunksImbalance"
		}
	}
	return chunk, to, violation
}

// ZoneShards returns the shards that a chunk may be on: those of its zone, or all.
func (d *Data) ZoneShards(ns string, s *sharding.Metadata, chunk int) (shards []int) {
	allows := d.cluster.zones.Allow(ns, s.KeyDocument(s.Chunks[chunk].Min))
	for i := range d.shards {
		if allows(ShardName(i)) {
			shards = append(shards, i)
		}
	}
	return shards
}
