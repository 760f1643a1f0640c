package server

import (
	"slices"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// What a mongos knows of the writes that shards did for it. A shard keeps the records of retryable
// writes: when it rolls a write back, the record goes with it. The write concern holds on each
// shard that was written to.

// shardWrite is the newest write of a command on a shard.
type shardWrite struct {
	shard int
	ts    bson.Timestamp
	term  int64 // of the shard's primary; 0: it is not a replica set
}

// wrote notes which shards a transaction of the store has written to, under the store's lock.
func (x *Routing) wrote(tx *store.Tx) {
	if !x.r.Cmd.Mongos.Documents {
		tx.Together()
	}
	x.wroteLast = -1
	for i := range x.r.Node.data.parts {
		if ts, ok := tx.Written(i); ok {
			x.wroteOn(i, ts)
		}
	}
}

// wroteOn notes that a command of a mongos writes to a shard. It is called under the store's lock.
func (x *Routing) wroteOn(shard int, ts bson.Timestamp) {
	x.noteWritten(shardWrite{shard, ts, x.term(shard)})
	if x.wroteLast < 0 {
		x.wroteLast = shard
	}
}

// term returns the term of a shard's primary, 0 if there is none.
func (x *Routing) term(shard int) int64 {
	if set := x.r.Node.data.parts[shard].set; set != nil {
		_, term := set.Lead()
		return term
	}
	return 0
}

// noteWritten notes a write on a shard that the write concern is to hold for. What a command wrote
// there before an election is beside what it wrote after it: the first may have been rolled back,
// though the second has a majority.
func (x *Routing) noteWritten(w shardWrite) {
	if x.written == nil {
		x.written = x.firstWritten[:0]
	}
	at := slices.IndexFunc(x.written, func(y shardWrite) bool { return y.shard == w.shard && y.term == w.term })
	switch {
	case at < 0:
		x.written = append(x.written, w)
	case w.ts.Compare(x.written[at].ts) > 0:
		x.written[at] = w
	}
}

// committedOn notes the shards that a transaction has been committed on: none of another node's has
// any.
func (x *Routing) committedOn(t *session.Txn) {
	for _, i := range t.Shards {
		x.wroteOn(i, t.CommitTS)
	}
}

// commitUndone reports whether the commit of a transaction has been rolled back. One on several
// shards never is.
func (r *Request) commitUndone(t *session.Txn) bool {
	d := r.Node.data
	if len(t.Shards) == 1 {
		d = d.parts[t.Shards[0]]
	}
	return d.sessions.Undone(t.CommitTS)
}

// shardSessions returns the command's session as the shards know it, nil where they do not.
func (x *Routing) shardSessions() []*session.Session {
	if x.homes == nil {
		x.homes = x.firstHomes[:0]
		for _, p := range x.r.Node.data.parts {
			x.homes = append(x.homes, p.sessions.Find(x.r.Session.ID))
		}
	}
	return x.homes
}

// executed is [Request.Executed] on a mongos. Records move with the chunks, so that any shard may
// have them.
func (x *Routing) executed(stmt int32) (session.Statement, bool) {
	for i, s := range x.shardSessions() {
		if s == nil {
			continue
		}
		term := x.term(i) // before one looks whether an election has undone the write
		if st, ok := s.Recorded(x.r.TxnNumber, stmt); ok && !x.r.Node.data.parts[i].sessions.Undone(st.TS) {
			x.noteWritten(shardWrite{i, st.TS, term})
			return st, true
		}
	}
	return x.r.Session.Recorded(x.r.TxnNumber, stmt)
}

// record is [Request.Record] on a mongos.
func (x *Routing) record(stmt int32, st session.Statement, shard int) {
	r := x.r
	homes := x.shardSessions()
	if x.homesUsed&(1<<shard) == 0 {
		x.homesUsed |= 1 << shard
		p := r.Node.data.parts[shard]
		s, gone, err := p.sessions.Use(r.Session.ID, r.Node.data.Clock.Now())
		for _, n := range p.nodes {
			n.cursors.Kill(func(c *Cursor) bool { return slices.Contains(gone, c.Session) })
		}
		if err != nil {
			s = r.Session // the shard has too many, the cluster remembers it
		}
		homes[shard] = s
	}
	for _, w := range x.written { // the newest is what it has just written
		if w.shard == shard && w.ts.Compare(st.TS) > 0 {
			st.TS = w.ts
		}
	}
	homes[shard].Record(r.TxnNumber, stmt, st)
}

// EndSessions notes that a client does not need the sessions any more, on the shards of a cluster,
// too.
func (d *Data) EndSessions(ids []session.ID) {
	for _, part := range slices.Concat(d.parts, []*Data{d}) {
		part.sessions.End(ids, d.Clock.Now())
	}
}

// waitWriteConcern is that of the request on a mongos: the write concern has to hold on each shard
// that the command wrote to, or on those that it would have written to.
func (x *Routing) waitWriteConcern(dst []byte) (out []byte, code int32, err error) {
	r := x.r
	wc := &r.WC
	if wc.Provenance == "implicitDefault" && r.Version().AtLeast(5, 0) {
		wc.NamedMode, wc.Mode = true, "majority" // shards have their default
	}
	if !wc.NamedMode && wc.W <= 1 || wc.NamedMode && wc.Mode == "" {
		return dst, 0, nil
	}
	d := r.Node.data
	writes := x.written
	if len(writes) == 0 { // what it found done may rest on what others wrote
		for _, i := range x.Reached() {
			if set := d.parts[i].set; set != nil {
				_, term := set.Lead()
				writes = append(writes, shardWrite{i, set.Newest(), term})
			}
		}
	}
	end := time.Now().Add(time.Duration(wc.Wtimeout) * time.Millisecond)
	type failure struct {
		shard int
		err   *srverr.Error
	}
	var failed []failure
	for _, w := range writes {
		left := time.Duration(0)
		if wc.Wtimeout > 0 {
			left = max(time.Until(end), 1)
		}
		e, err := x.awaitShard(w, wc, left)
		switch {
		case err != nil && r.hangUp:
			return dst, 0, err
		case err != nil && srverr.CodeOf(err) == srverr.NoSuchTransaction:
			return dst, 0, err
		case err != nil:
			e = srverr.From(err)
		case x.undone:
			return dst, 0, nil
		}
		if e != nil {
			failed = append(failed, failure{w.shard, e})
		}
	}
	if len(failed) == 0 {
		return dst, 0, nil
	}
	e := failed[0].err
	never := e.Code == srverr.UnknownReplWriteConcern || e.Code == srverr.UnsatisfiableWriteConcern
	own := false // the reply is that of one shard
	switch r.Cmd.Mongos.WriteErrors {
	case ConcernOfAll:
		if len(failed) > 1 {
			msg := "multiple errors reported : "
			for i, f := range failed {
				if i > 0 {
					msg += " :: and :: "
				}
				msg += r.Node.CodeName(f.err.Code) + ": " + f.err.Msg + " at " + ShardName(f.shard)
			}
			e = srverr.New(srverr.WriteConcernFailed, "%s", msg)
		}
	case ConcernAsIs:
		own = true
	case ConcernIfSoon:
		if never {
			return dst, 0, nil
		}
		e = srverr.New(e.Code, "%s at %s", e.Msg, ShardName(failed[0].shard))
	default:
		if never {
			at, detail := bson.BeginDocument(nil)
			detail = bson.EndDocument(r.WC.Append(detail, "writeConcern"), at)
			return dst, 0, srverr.New(e.Code, "%s; Error details: %s", e.Msg, bsontext.Document(detail))
		}
		e = srverr.New(e.Code, "%s at %s", e.Msg, ShardName(failed[0].shard))
	}
	at, dst := bson.BeginDocumentElement(dst, "writeConcernError")
	dst = bson.AppendInt32(dst, "code", e.Code)
	dst = bson.AppendString(dst, "codeName", r.Node.CodeName(e.Code))
	dst = bson.AppendString(dst, "errmsg", e.Msg)
	if own || e.Code == srverr.WriteConcernFailed && len(failed) == 1 {
		info, d := bson.BeginDocumentElement(dst, "errInfo")
		if e.Code == srverr.WriteConcernFailed {
			d = bson.AppendBool(d, "wtimeout", true)
		}
		dst = bson.EndDocument(wc.Append(d, "writeConcern"), info)
	}
	return bson.EndDocument(dst, at), e.Code, nil
}

// awaitShard waits until a write satisfies the write concern on its shard. When the shard's primary
// goes meanwhile, a mongos sends a retryable write to the next one: that has it and waits on, or
// never had it, and then the command runs again (see undone). Of any other write the client learns
// that it was interrupted.
func (x *Routing) awaitShard(w shardWrite, wc *replica.WriteConcern, timeout time.Duration) (*srverr.Error, error) {
	r := x.r
	p := r.Node.data.parts[w.shard]
	if p.set == nil {
		return nil, nil
	}
	if wc.NamedMode && wc.Mode == "majority" && p.set.HasMajority(w.term, w.ts) {
		return nil, nil
	}
	end := time.Now().Add(timeout)
	for {
		left := time.Duration(0)
		if timeout > 0 {
			left = max(time.Until(end), 1)
		}
		e, lost, err := p.set.AwaitWrite(r, w.term, w.ts, wc, left)
		if e != nil || err != nil || !lost {
			return e, err
		}
		interrupted := srverr.New(srverr.InterruptedDueToReplStateChange, "operation was interrupted")
		again := r.IsRetryable() || r.Cmd.Txn == TxnEnds
		if !again {
			return interrupted, nil
		}
		switch ok, err := p.set.AwaitPrimary(r, shardTimeout); {
		case err != nil:
			return nil, err
		case !ok:
			return interrupted, nil
		}
		if p.sessions.Undone(w.ts) && r.Cmd.Txn == TxnEnds {
			return nil, srverr.New(srverr.NoSuchTransaction, "Transaction %d was committed, and rolled back.",
				r.TxnNumber)
		} else if p.sessions.Undone(w.ts) {
			x.undone = true
			return interrupted, nil
		}
		_, w.term = p.set.Lead()
	}
}
