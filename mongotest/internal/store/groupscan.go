package store

import (
	"slices"

	"allium/bson"
)

// Scans of a sharded collection: one scan of each shard, one after the other or merged by keys,
// without the documents that do not belong to the shard they are found on.

// partScan is a scan of a group's view: one of each shard.
type partScan struct {
	part *Coll
	scan *Scan
	// What it yielded last and nobody has got yet, while the parts are merged.
	key string
	doc bson.Raw
	has bool
	// It has no more, as far as a scan by steps knows.
	ended bool
}

func newPartScan(c *Coll, backward bool, index string, make func(part *Coll) *Scan) *Scan {
	s := &Scan{c: c, backward: backward, index: index, place: c.Sharding.(Placement)}
	for _, p := range c.parts {
		s.subs = append(s.subs, partScan{part: p, scan: make(p)})
	}
	return s
}

// Only makes a scan of a sharded collection leave out all shards but some.
func (s *Scan) Only(shards []int) {
	if s.subs == nil {
		return
	}
	keep := s.subs[:0:0]
	for _, p := range s.subs {
		if slices.Contains(shards, p.part.shard) {
			keep = append(keep, p)
		}
	}
	s.subs = keep
	if len(keep) == 0 {
		s.none = true
	}
}

// Merge makes a scan of a sharded collection yield documents in the order of its index: without,
// they come shard by shard.
func (s *Scan) Merge() { s.merged = true }

// Reached returns the shards that a scan of a sharded collection goes over.
func (s *Scan) Reached() (shards []int) {
	for _, p := range s.subs {
		shards = append(shards, p.part.shard)
	}
	return shards
}

// nextOf returns the next document of a part that belongs there.
func (s *Scan) nextOf(p *partScan) (doc bson.Raw, ok bool) {
	keys, docs := p.scan.KeysSeen, p.scan.DocsSeen
	defer func() {
		s.KeysSeen += p.scan.KeysSeen - keys
		s.DocsSeen += p.scan.DocsSeen - docs
	}()
	for {
		doc, ok = p.scan.NextDoc()
		if !ok || s.place.ShardOf(doc) == p.part.shard {
			return doc, ok
		}
	}
}

func (s *Scan) nextOfParts() (bson.Raw, bool) {
	if !s.merged {
		for ; s.at < len(s.subs); s.at++ {
			p := &s.subs[s.at]
			if doc, ok := s.nextOf(p); ok {
				s.from = p
				return doc, true
			}
		}
		return nil, false
	}
	var best *partScan
	for i := range s.subs {
		p := &s.subs[i]
		if !p.has {
			doc, ok := s.nextOf(p)
			if !ok {
				continue
			}
			p.doc, p.has, p.key = doc, true, p.scan.order()
		}
		if best == nil || !s.backward && p.key < best.key || s.backward && p.key > best.key {
			best = p
		}
	}
	if best == nil {
		return nil, false
	}
	best.has, s.from = false, best
	return best.doc, true
}

// resetParts is Reset for a scan of a group's view.
func (s *Scan) resetParts(c *Coll) bool {
	s.c = c
	for i := range s.subs {
		p := &s.subs[i]
		part := c.Part(p.part.shard)
		if part == nil || !p.scan.Reset(part) {
			return false
		}
		p.part, p.ended = part, false
	}
	return true
}

// stepOfParts is Step for a scan of a group's view. What belongs to another shard is not there,
// unless the scan shows it.
func (s *Scan) stepOfParts() Stepped {
	if !s.merged {
		for s.at < len(s.subs) {
			p := &s.subs[s.at]
			switch got := s.stepOf(p); got {
			case StepEnd:
				s.at++
			case StepHit:
				s.from = p
				return s.ownOnly()
			default:
				return got
			}
		}
		return StepEnd
	}
	var best *partScan
	for i := range s.subs {
		p := &s.subs[i]
		if !p.has && !p.ended {
			switch s.stepOf(p) {
			case StepMiss:
				return StepMiss
			case StepHit:
				p.has, p.key = true, p.scan.order()
			default:
				p.ended = true
			}
		}
		if p.has && (best == nil || !s.backward && p.key < best.key || s.backward && p.key > best.key) {
			best = p
		}
	}
	if best == nil {
		return StepEnd
	}
	best.has, s.from = false, best
	return s.ownOnly()
}

func (s *Scan) stepOf(p *partScan) Stepped {
	keys, seeks := p.scan.KeysSeen, p.scan.Seeks
	got := p.scan.Step()
	s.KeysSeen += p.scan.KeysSeen - keys
	s.Seeks += p.scan.Seeks - seeks
	return got
}

func (s *Scan) ownOnly() Stepped {
	if !s.ShowOrphans && s.Orphan() {
		return StepMiss
	}
	return StepHit
}

// Orphan reports whether the last document belongs to another shard than the one that it lies on.
func (s *Scan) Orphan() bool {
	return s.from != nil && s.place.ShardOf(s.Doc()) != s.from.part.shard
}

func (s *Scan) restParts() {
	s.c = &Coll{Info: s.c.Info}
	for i := range s.subs {
		s.subs[i].scan.Rest()
		s.subs[i].part = s.subs[i].scan.c
	}
}
