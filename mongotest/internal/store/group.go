package store

import (
	"slices"
	"sort"

	"allium/bson"
)

// Placement says which shard of a group has the documents of a collection. It is what the command
// layer keeps as a collection's Sharding.
type Placement interface {
	// ShardOf returns the shard that a document belongs to.
	ShardOf(doc bson.Raw) int
	// Moved reports whether documents may belong to other shards than they did by an earlier
	// placement of the collection.
	Moved(since any) bool
}

// moved reports whether documents of a collection may belong to other shards than before; nil is
// the placement of one that is not sharded.
func moved(before, now any) bool {
	if before == nil || now == nil {
		return before != now
	}
	return now.(Placement).Moved(before)
}

// NewGroup returns a store that shows several stores as one: those of a cluster's shards. Each
// keeps its collections, its indexes, its history and its change log for itself, and can be used by
// itself; the group sees a collection that is sharded as a whole. place returns the shard that a
// collection is made on which is not sharded, and that shards of one group know nothing of.
//
// The stores of a group take turns with their writes, so that what the group shows never has one
// half of a write, and its change log is in the order of time.
func NewGroup(o Options, shards []*Store, place func(ns string) int) *Store {
	g := New(o)
	g.shards, g.place, g.history = shards, place, nil
	for i, s := range shards {
		s.mu, s.group, s.shard = g.mu, g, i
	}
	g.refresh()
	return g
}

// refresh makes what the shards have now the group's newest state.
func (s *Store) refresh() {
	log := s.latest.Load().log
	if len(s.fresh) > 0 {
		slices.SortStableFunc(s.fresh, func(a, b *Entry) int { return a.TS.Compare(b.TS) })
		log = s.addToLog(log, s.fresh)
		clear(s.fresh)
		s.fresh = s.fresh[:0]
		s.arm(settled)
	}
	s.latest.Store(s.join(log, func(shard *Store) *State { return shard.latest.Load() }))
	s.Wake()
}

// join makes one state of one of each shard.
func (s *Store) join(log []*Entry, of func(shard *Store) *State) *State {
	st := &State{log: log, group: s, shards: make([]*State, len(s.shards))}
	for i, shard := range s.shards {
		st.shards[i] = of(shard)
		if ts := st.shards[i].TS; ts.Compare(st.TS) > 0 {
			st.TS = ts
		}
	}
	return st
}

// ShardTime returns the time of a shard's part of a group's state.
func (st *State) ShardTime(shard int) bson.Timestamp { return st.shards[shard].TS }

// joinAt makes one state of what find returns for each shard, nil if one has none.
func (s *Store) joinAt(find func(shard *Store) *State) (*State, bool) {
	ok := true
	st := s.join(s.latest.Load().log, func(shard *Store) *State {
		st := find(shard)
		if st == nil {
			ok, st = false, shard.latest.Load()
		}
		return st
	})
	return st, ok
}

// JoinAt returns the state of a group in which each shard is as of a time of its own, zero for its
// newest. No shard is older than the newest write that no rollback may undo. It reports false if
// the history of a shard does not reach back that far.
func (s *Store) JoinAt(at []bson.Timestamp) (*State, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joinAt(func(shard *Store) *State {
		ts := at[shard.shard]
		if ts.IsZero() {
			return shard.latest.Load()
		}
		if shard.floor.Compare(ts) > 0 {
			ts = shard.floor
		}
		return shard.stateOf(ts)
	})
}

// forget takes what a shard wrote after a time out of the group's change log.
func (s *Store) forget(shard int, ts bson.Timestamp) {
	st := s.latest.Load()
	keep := make([]*Entry, 0, len(st.log))
	for _, e := range st.log {
		if int(e.shard) != shard || e.TS.Compare(ts) <= 0 {
			keep = append(keep, e)
		}
	}
	s.logSize = 0
	for _, e := range keep {
		s.logSize += e.size()
	}
	next := *st
	next.log = keep
	s.latest.Store(&next)
	s.refresh()
}

// view returns a collection as the group sees it: the one shard's that has it, or all shards' parts
// of a sharded one. of returns a shard's part, or nil.
func (s *Store) view(ns string, of func(shard int) *Coll) *Coll {
	home := s.place(ns)
	main := of(home)
	if main != nil && main.Sharding == nil {
		return main
	}
	var parts []*Coll
	for i := range s.shards {
		c := of(i)
		switch {
		case c == nil:
		case main == nil:
			main = c
			parts = append(parts, c)
		case c.UUID == main.UUID:
			parts = append(parts, c)
		}
	}
	if main == nil || main.Sharding == nil {
		return main
	}
	return viewOf(main, parts)
}

// Sharding returns the Sharding of a collection, without making the group's view of it.
func (st *State) Sharding(ns string) any {
	if st.group == nil {
		if c := st.stored(ns); c != nil {
			return c.Sharding
		}
		return nil
	}
	if c, _ := st.shards[st.group.place(ns)].colls.get(ns); c != nil {
		return c.Sharding
	}
	for _, part := range st.shards {
		if c, _ := part.colls.get(ns); c != nil {
			return c.Sharding
		}
	}
	return nil
}

func viewOf(main *Coll, parts []*Coll) *Coll {
	v := &Coll{Info: main.Info, parts: parts, idx: main.idx}
	copied := false
	for _, p := range parts {
		v.bytes += p.bytes
		for i := range v.idx {
			if x := p.Index(v.idx[i].Name); x != nil && x.Multikey && x.Arrays != v.idx[i].Arrays {
				if !copied {
					v.idx, copied = slices.Clone(v.idx), true
				}
				v.idx[i].Multikey, v.idx[i].Arrays = true, v.idx[i].Arrays.and(x.Arrays)
			}
		}
	}
	return v
}

// Sharded reports whether the collection is a group's view of the parts that several shards have.
func (c *Coll) Sharded() bool { return c.parts != nil }

// Shard returns the number of the store in its group that has the collection.
func (c *Coll) Shard() int { return c.shard }

// Part returns what a shard has of a sharded collection, documents included that belong to other
// shards by now; nil if it has nothing of it. Every other collection is its own only part.
func (c *Coll) Part(shard int) *Coll {
	if c.parts == nil && c.shard == shard {
		return c
	}
	for _, p := range c.parts {
		if p.shard == shard {
			return p
		}
	}
	return nil
}

// partOf returns the part that a record id of a view is of, and the record id there.
func (c *Coll) partOf(rid string) (*Coll, string) {
	if rid == "" {
		return nil, ""
	}
	return c.Part(int(rid[0])), rid[1:]
}

// placed reports whether a document that a part has belongs there.
func (c *Coll) placed(part *Coll, doc bson.Raw) bool {
	return c.Sharding.(Placement).ShardOf(doc) == part.shard
}

// collsOfGroup calls f for every collection of a group's state whose name has the prefix, in order.
func (st *State) collsOfGroup(prefix string, f func(*Coll) bool) {
	var names []string
	for _, part := range st.shards {
		for it := part.colls.seek(prefix); it.valid() && len(it.key()) >= len(prefix) &&
			it.key()[:len(prefix)] == prefix; it.next() {
			names = append(names, it.key())
		}
	}
	sort.Strings(names)
	for _, ns := range slices.Compact(names) {
		if c := st.stored(ns); c != nil && !f(c) {
			return
		}
	}
}

// stored returns a collection that is not derived.
func (st *State) stored(ns string) *Coll {
	if st.group == nil {
		c, _ := st.colls.get(ns)
		return c
	}
	return st.group.view(ns, func(i int) *Coll {
		c, _ := st.shards[i].colls.get(ns)
		return c
	})
}
