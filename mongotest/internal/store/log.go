package store

import (
	"time"

	"allium/bson"
)

// Op is the kind of a change.
type Op uint8

// The kinds of changes.
const (
	OpNoop Op = iota
	OpInsert
	OpUpdate // by operators or a pipeline: the document changed in part
	OpReplace
	OpDelete
	OpCreate
	OpDrop
	OpRename
	OpDropDatabase
	OpCreateIndexes
	OpDropIndexes
	OpModify          // collMod
	OpShardCollection // shardCollection
	OpTrimmed         // not a change: what came before is not known any more
)

// Entry is one change in the change log. It is not changed once it is published. There is one for
// every document that was written, so it is small: it points to what it shares with others, and
// derives what it can.
type Entry struct {
	TS bson.Timestamp
	Op Op

	flags entryFlags
	shard uint16 // that wrote it
	stmt  int32  // of the retryable write

	wall   int64 // milliseconds since 1970
	coll   *Info // the collection as it was set up then
	after  document
	before document     // of deletes whose image nobody may ask for: the key
	write  *Statement   // the retryable write, without the statement's number; nil: none
	more   *entryDetail // nil: none
}

type entryFlags uint8

const (
	// quiet is no event of the group: what one of its shards does that others do, too.
	quiet entryFlags = 1 << iota
	// joined was written by the same insert as the entry before it.
	joined
)

// Joined reports whether one statement has inserted the document and that of the entry before.
func (e *Entry) Joined() bool { return e.flags&joined != 0 }

// JoinInserts notes that one statement has made all inserts of the transaction that follow each
// other and are of one collection.
func (tx *Tx) JoinInserts() {
	for _, sub := range tx.sub {
		sub.JoinInserts()
	}
	for i := 1; i < len(tx.log); i++ {
		if e, before := tx.log[i], tx.log[i-1]; e.Op == OpInsert && before.Op == OpInsert && e.coll == before.coll {
			e.flags |= joined
		}
	}
}

// entryDetail is what few entries have.
type entryDetail struct {
	delta any
	to    string
	doc   bson.Raw
	prev  bson.Raw // see StateBefore

	txn    bson.Raw
	number int64
	index  int

	// For a transaction's commit.
	rid  string
	info *Info
	idx  []*IndexInfo
}

// Trimmed returns an entry that says that nothing is known of the time up to ts.
func trimmed(ts bson.Timestamp) *Entry { return &Entry{TS: ts, Op: OpTrimmed, coll: new(Info)} }

// FirstEntry returns what the change log of a replica set begins with: the note of its making.
func FirstEntry(ts bson.Timestamp, wall time.Time) *Entry {
	return &Entry{TS: ts, wall: wall.UnixMilli(), coll: new(Info)}
}

// NS returns the namespace, of OpDropDatabase the database's name.
func (e *Entry) NS() string { return e.coll.NS }

// UUID returns the collection's UUID.
func (e *Entry) UUID() [16]byte { return e.coll.UUID }

// Wall returns the wall clock's time, in milliseconds.
func (e *Entry) Wall() time.Time { return time.UnixMilli(e.wall) }

// View reports whether NS is a view.
func (e *Entry) View() bool { return e.coll.View }

// Images reports whether the collection keeps the documents before and after a change for change
// streams.
func (e *Entry) Images() bool { return e.coll.PreImages }

// After returns the document as it is now, of inserts and updates.
func (e *Entry) After() bson.Raw { return e.after.raw() }

// Before returns the document as it was: of updates, and of deletes if the collection keeps images.
func (e *Entry) Before() bson.Raw {
	if e.keyOnly() {
		return nil
	}
	return e.before.raw()
}

// keyOnly reports whether before is the document's key. The entries of a transaction that is open
// have the document.
func (e *Entry) keyOnly() bool {
	return e.Op == OpDelete && !e.coll.PreImages && (e.more == nil || e.more.rid == "")
}

// Key returns the document's key: {_id: ...}, and the fields of the shard key. It is nil of changes
// that are not of one document.
func (e *Entry) Key() bson.Raw {
	switch {
	case e.keyOnly():
		return e.before.raw()
	case e.Op == OpDelete:
		return e.coll.documentKey(e.before.raw())
	case e.after.p != nil:
		return e.coll.documentKey(e.after.raw())
	}
	return nil
}

// detail returns what few entries have.
func (e *Entry) detail() entryDetail {
	if e.more == nil {
		return entryDetail{}
	}
	return *e.more
}

// Delta is what an update says that it changed, nil to compare Before and After. Its type belongs
// to the command layer.
func (e *Entry) Delta() any { return e.detail().delta }

// To returns the new namespace of a rename.
func (e *Entry) To() string { return e.detail().to }

// StateBefore returns what a collection and its index were like that a change of their options is
// of, in the form of change streams.
func (e *Entry) StateBefore() bson.Raw { return e.detail().prev }

// More returns further facts about the operation.
func (e *Entry) More() bson.Raw { return e.detail().doc }

// Txn returns the logical session's id and the number of the transaction that the entry is of, and
// its place in it; lsid is nil if there is none. All entries of a transaction have the commit's TS.
func (e *Entry) Txn() (lsid bson.Raw, number int64, index int) {
	m := e.detail()
	return m.txn, m.number, m.index
}

// Index returns the entry's place in its transaction.
func (e *Entry) Index() int { return e.detail().index }

// Statement returns the retryable write that made the change; its LSID is nil if none did.
func (e *Entry) Statement() Statement {
	if e.write == nil {
		return Statement{}
	}
	s := *e.write
	s.ID = e.stmt
	return s
}

// Statement tells which retryable write makes a change.
type Statement struct {
	LSID   bson.Raw
	Number int64
	ID     int32
}

// size is about how much memory the entry holds on to, if nobody else has its documents.
func (e *Entry) size() int { return 72 + e.before.size() + e.after.size() }

// committed returns the entry as the change log has it once its transaction has been committed as
// the one of a session with this number.
func (e *Entry) committed(ts bson.Timestamp, wall time.Time, lsid bson.Raw, number int64, index int) *Entry {
	c, m := *e, e.detail()
	c.TS, c.wall = ts, wall.UnixMilli()
	m.txn, m.number, m.index = lsid, number, index
	if e.Op == OpDelete && !e.coll.PreImages {
		c.before = refer(e.coll.documentKey(e.before.raw()))
	}
	m.rid, m.info, m.idx = "", nil, nil
	c.more = &m
	return &c
}
