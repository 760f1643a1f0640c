package store

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// Writes to a group: a Tx or Txn of the group has one of each shard below it, and passes each write
// to the shard that the placement of the collection names.

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
		t.parts[i] = &Txn{s: shard, base: at.shards[i], state: at.shards[i], locked: map[string]bool{}, done: t.done,
			whole: t}
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
	sub.record(Entry{Op: OpCreate, coll: part.Info,
		more: &entryDetail{doc: c.Raw, info: part.Info, idx: indexInfos(part)}})
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

func (tx *Tx) groupRename(c *Coll, to string, options bson.Raw) error {
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
	return tx.each(c, func(sub *Tx, part *Coll) error { return sub.Rename(part, to, options) })
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
