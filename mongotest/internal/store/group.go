package store

import (
	"slices"
	"sort"

	"allium/bson"
	"allium/mongotest/internal/srverr"
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

// Shards returns the stores of a group, nil for one that stands alone.
func (s *Store) Shards() []*Store { return s.shards }

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
		for it := part.colls.seek(prefix); it.valid() && len(it.key()) >= len(prefix) && it.key()[:len(prefix)] == prefix; it.next() {
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

// beginGroup returns the right to write to all shards; t is the transaction that writes, if one
// does.
func (s *Store) beginGroup(t *Txn) *Tx {
	tx := &Tx{s: s, txn: t, sub: make([]Tx, len(s.shards))}
	for i, shard := range s.shards {
		shard.edit = edits.Add(1)
		st := shard.latest.Load()
		sub := &tx.sub[i]
		*sub = Tx{s: shard, edit: shard.edit, colls: st.colls, ts: st.TS}
		if t != nil {
			sub.txn, sub.colls, sub.ts = t.parts[i], t.parts[i].state.colls, t.base.TS
		}
		sub.keys, sub.log = sub.firstKeys[:0], sub.firstLog[:0]
	}
	return tx
}

// writeGroup is Write for a group.
func (s *Store) writeGroup(fn func(tx *Tx) error) error {
	tx := s.beginGroup(nil)
	if err := fn(tx); err != nil {
		return err
	}
	tx.settle()
	s.batch = true
	for i, shard := range s.shards {
		shard.publish(shard.latest.Load(), &tx.sub[i])
	}
	s.batch = false
	if tx.Dirty() {
		s.refresh()
	}
	return nil
}

// settle keeps rollbacks from undoing what was written together. The last store is that of the
// config servers, whose every write waits for a majority.
func (tx *Tx) settle() {
	last := len(tx.sub) - 1
	for i := range tx.sub {
		if sub := &tx.sub[i]; sub.dirty && (tx.together || i == last) {
			sub.s.floor = sub.ts
		}
	}
}

// beginTxn is Begin for a group.
func (s *Store) beginTxn(at *State) *Txn {
	t := &Txn{s: s, base: at, state: at, done: make(chan struct{}), parts: make([]*Txn, len(s.shards))}
	for i, shard := range s.shards {
		t.parts[i] = &Txn{s: shard, base: at.shards[i], state: at.shards[i], locked: map[string]bool{}, done: t.done, whole: t}
	}
	return t
}

// useParts is Use for a group.
func (t *Txn) useParts(ns string) error {
	if !t.parts[0].locked[ns] && moved(t.base.Sharding(ns), t.s.latest.Load().Sharding(ns)) {
		return CatalogChanged() // what is written where the snapshot has the documents would be lost
	}
	for _, p := range t.parts {
		if err := p.use(ns); err != nil {
			return err
		}
	}
	return nil
}

// writeParts is Write for a group.
func (t *Txn) writeParts(fn func(tx *Tx) error) error {
	for _, p := range t.parts {
		if p.ended {
			return srverr.New(srverr.NoSuchTransaction, "the transaction has ended")
		}
	}
	tx := t.s.beginGroup(t)
	if err := fn(tx); err != nil {
		return err
	}
	for i, p := range t.parts {
		p.state = &State{TS: p.base.TS, colls: tx.sub[i].colls}
		p.log = append(p.log, tx.sub[i].log...)
		t.log = append(t.log, tx.sub[i].log...)
	}
	t.state = t.s.join(nil, func(shard *Store) *State { return t.parts[shard.shard].state })
	t.state.TS = t.base.TS
	return nil
}

// Participants returns the shards that the transaction has written to.
func (t *Txn) Participants() (shards []int) {
	for i, p := range t.parts {
		if len(p.log) > 0 {
			shards = append(shards, i)
		}
	}
	return shards
}

// commitParts is Commit for a group: all shards commit at one time, or none does.
func (t *Txn) commitParts(lsid bson.Raw, number int64) (bson.Timestamp, error) {
	g := t.s
	for _, p := range t.parts {
		if p.ended {
			return bson.Timestamp{}, srverr.New(srverr.NoSuchTransaction, "the transaction has ended")
		}
	}
	t.endParts()
	if len(t.log) == 0 {
		return bson.Timestamp{}, nil
	}
	tx := g.beginGroup(nil)
	var ts bson.Timestamp
	if g.opts.Tick != nil {
		ts = g.opts.Tick()
	}
	wall, index, wrote := g.opts.Now(), 0, 0
	for i, p := range t.parts {
		sub := &tx.sub[i]
		if len(p.log) == 0 {
			continue
		}
		wrote++
		sub.dirty, sub.ts, sub.wall = true, ts, wall
		for _, e := range p.log {
			if err := sub.replay(e); err != nil {
				return bson.Timestamp{}, err
			}
			sub.log = append(sub.log, e.committed(ts, wall, lsid, number, index))
			index++
		}
	}
	tx.together = wrote > 1
	tx.settle()
	g.batch = true
	for i, shard := range g.shards {
		shard.publish(shard.latest.Load(), &tx.sub[i])
	}
	g.batch = false
	g.refresh()
	return ts, nil
}

// endParts lets go of what the parts of a transaction hold.
func (t *Txn) endParts() {
	if t.ended {
		return
	}
	t.ended = true
	for _, p := range t.parts {
		p.release()
	}
	close(t.done)
}

// The following are the methods of a Tx for a group.

func (tx *Tx) groupColl(ns string) *Coll {
	return tx.s.view(ns, func(i int) *Coll {
		c, _ := tx.sub[i].colls.get(ns)
		return c
	})
}

// each calls f for every part of a collection, of which only the first one's change is an event.
func (tx *Tx) each(c *Coll, f func(sub *Tx, part *Coll) error) error {
	for i := range tx.sub {
		sub := &tx.sub[i]
		part, _ := sub.colls.get(c.NS)
		if part == nil || part.UUID != c.UUID {
			continue
		}
		sub.quiet = i != c.shard
		err := f(sub, part)
		sub.quiet = false
		if err != nil {
			return err
		}
	}
	return nil
}

// eachColl is each for what changes the collection, which it returns.
func (tx *Tx) eachColl(c *Coll, f func(sub *Tx, part *Coll) error) (*Coll, error) {
	if err := tx.each(c, f); err != nil {
		return c, err
	}
	return tx.groupColl(c.NS), nil
}

// part returns what a shard has of a collection, which is made there if the shard has nothing of it
// yet.
func (tx *Tx) part(c *Coll, shard int) *Coll {
	sub := &tx.sub[shard]
	if part, _ := sub.colls.get(c.NS); part != nil && part.UUID == c.UUID {
		return part
	}
	info := *c.Info
	info.shard, info.lastRecord = shard, newCounter()
	part := newColl(&info, sub.edit, indexInfos(c)...)
	sub.quiet = true
	sub.record(Entry{Op: OpCreate, coll: part.Info, more: &entryDetail{doc: c.Raw, info: part.Info, idx: indexInfos(part)}})
	sub.quiet = false
	sub.colls.set(sub.edit, c.NS, part)
	return part
}

// Extend gives a shard its part of a collection, an empty one unless it has it already. That is not
// an event.
func (tx *Tx) Extend(c *Coll, shard int) { tx.part(c, shard) }

func (tx *Tx) groupInsert(c *Coll, doc bson.Raw) (*Coll, error) {
	if err := tx.use(c.NS); err != nil {
		return c, err
	}
	if c.parts == nil {
		return tx.sub[c.shard].Insert(c, doc)
	}
	shard := c.Sharding.(Placement).ShardOf(doc)
	if _, err := tx.sub[shard].Insert(tx.part(c, shard), doc); err != nil {
		return c, err
	}
	return tx.groupColl(c.NS), nil
}

func (tx *Tx) groupUpdate(c *Coll, rid string, old, doc bson.Raw, replaced bool, delta any) (*Coll, error) {
	if err := tx.use(c.NS); err != nil {
		return c, err
	}
	if c.parts == nil {
		return tx.sub[c.shard].Update(c, rid, old, doc, replaced, delta)
	}
	from, to := int(rid[0]), c.Sharding.(Placement).ShardOf(doc)
	sub := &tx.sub[from]
	var err error
	if part := tx.part(c, from); from == to {
		_, err = sub.Update(part, rid[1:], old, doc, replaced, delta)
	} else if _, err = sub.Delete(part, rid[1:], old); err == nil {
		// The key has changed, and with it the shard: the document goes there.
		tx.Together()
		_, err = tx.sub[to].Insert(tx.part(c, to), doc)
	}
	if err != nil {
		return c, err
	}
	return tx.groupColl(c.NS), nil
}

func (tx *Tx) groupDelete(c *Coll, rid string, old bson.Raw) (*Coll, error) {
	if err := tx.use(c.NS); err != nil {
		return c, err
	}
	if c.parts == nil {
		return tx.sub[c.shard].Delete(c, rid, old)
	}
	shard := int(rid[0])
	if _, err := tx.sub[shard].Delete(tx.part(c, shard), rid[1:], old); err != nil {
		return c, err
	}
	return tx.groupColl(c.NS), nil
}

func (tx *Tx) groupRename(c *Coll, to string) error {
	if target := tx.groupColl(to); target != nil {
		err := tx.each(target, func(sub *Tx, part *Coll) error {
			if own, _ := sub.colls.get(c.NS); own != nil && own.UUID == c.UUID {
				return nil // the rename there drops it
			}
			sub.quiet = true
			return sub.Drop(part)
		})
		if err != nil {
			return err
		}
	}
	return tx.each(c, func(sub *Tx, part *Coll) error { return sub.Rename(part, to) })
}

// Move brings documents of a collection from one shard to another that in says, as a migration of a
// chunk does. What the receiver had of them, left behind by an earlier migration, it loses first.
// The sender keeps its documents, which belong to it no more once SetSharding says so; Clean
// removes them. None of this is an event. In a transaction it must not be called.
func (tx *Tx) Move(c *Coll, from, to int, in func(doc bson.Raw) bool) error {
	tx.Together()
	if err := tx.each(c, func(sub *Tx, _ *Coll) error { return sub.change(c.NS) }); err != nil {
		return err
	}
	if err := tx.Clean(c, to, in); err != nil {
		return err
	}
	src, _ := tx.sub[from].colls.get(c.NS)
	if src == nil {
		return nil
	}
	dst, sub := tx.part(c, to), &tx.sub[to]
	sub.quiet = true
	defer func() { sub.quiet, sub.tag = false, nil }()
	var err error
	for it := src.recs.first(); it.valid(); it.next() {
		tx.work.Do(1)
		if doc := it.value().raw(); in(doc) {
			sub.tag = src.Tag(it.key())
			if dst, err = sub.Insert(dst, doc); err != nil {
				return err
			}
		}
	}
	return nil
}

// Clean removes the documents of a shard that in says and that belong to other shards.
func (tx *Tx) Clean(c *Coll, shard int, in func(doc bson.Raw) bool) error {
	tx.Together()
	sub := &tx.sub[shard]
	part, _ := sub.colls.get(c.NS)
	if part == nil || part.UUID != c.UUID || !c.Sharded() {
		return nil
	}
	sub.quiet = true
	defer func() { sub.quiet = false }()
	view := c
	old := part
	for it := old.recs.first(); it.valid(); it.next() {
		tx.work.Do(1)
		doc := it.value().raw()
		if !in(doc) || view.placed(old, doc) {
			continue
		}
		var err error
		if part, err = sub.Delete(part, it.key(), doc); err != nil {
			return err
		}
	}
	return nil
}

// Spread gives every shard the documents that belong to it by the placement that the collection is
// about to get, and takes from it all others. None of this is an event. nil brings all documents to
// one shard. In a transaction it must not be called.
func (tx *Tx) Spread(c *Coll, p Placement, home int) error {
	tx.Together()
	if err := tx.each(c, func(sub *Tx, _ *Coll) error { return sub.change(c.NS) }); err != nil {
		return err
	}
	owner := func(doc bson.Raw) int {
		if p == nil {
			return home
		}
		return p.ShardOf(doc)
	}
	type move struct {
		to  int
		doc bson.Raw
		tag any
	}
	var moves []move
	for i := range tx.sub {
		sub := &tx.sub[i]
		part, _ := sub.colls.get(c.NS)
		if part == nil || part.UUID != c.UUID {
			continue
		}
		old := part
		sub.quiet = true
		for it := old.recs.first(); it.valid(); it.next() {
			tx.work.Do(1)
			doc := it.value().raw()
			mine := !c.Sharded() || c.placed(old, doc)
			to := owner(doc)
			if mine && to == i {
				continue
			}
			if mine {
				moves = append(moves, move{to, doc, old.Tag(it.key())})
			}
			var err error
			if part, err = sub.Delete(part, it.key(), doc); err != nil {
				return err
			}
		}
		sub.quiet = false
	}
	for _, m := range moves {
		tx.work.Do(1)
		sub := &tx.sub[m.to]
		part := tx.part(c, m.to)
		sub.quiet, sub.tag = true, m.tag
		_, err := sub.Insert(part, m.doc)
		sub.quiet, sub.tag = false, nil
		if err != nil {
			return err
		}
	}
	if p != nil {
		return nil
	}
	tx.part(c, home) // even if it is empty

	for i := range tx.sub { // only one shard has it from now on
		if part, _ := tx.sub[i].colls.get(c.NS); i != home && part != nil && part.UUID == c.UUID {
			tx.sub[i].quiet = true
			if err := tx.sub[i].Drop(part); err != nil {
				return err
			}
			tx.sub[i].quiet = false
		}
	}
	return nil
}

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

// Touch notes that the transaction of a group has been to a shard: if that aborts its transactions,
// this one ends.
func (t *Txn) Touch(shard int) { t.touched.Or(1 << shard) }

// Prepare makes sure that only Commit and Abort end the transaction from now on.
func (t *Txn) Prepare() error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.ended || slices.ContainsFunc(t.parts, func(p *Txn) bool { return p.ended }) {
		return srverr.New(srverr.NoSuchTransaction, "the transaction has ended")
	}
	t.prepared = true
	for _, p := range t.parts {
		if len(p.log) > 0 { // a majority has what it prepared, and all before
			p.s.floor = p.s.latest.Load().TS
		}
	}
	return nil
}

// AbortTransactions ends the open transactions of a group that have been to this shard, but those
// that are prepared.
func (s *Store) AbortTransactions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.locks {
		for _, t := range slices.Clone(list) {
			if w := t.whole; w != nil && !w.prepared && w.touched.Load()&(1<<s.shard) != 0 {
				t.stop()
			}
		}
	}
}
