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

// Entry is one change in the change log. It is not changed once it is published.
type Entry struct {
	TS     bson.Timestamp
	Wall   time.Time
	Op     Op
	NS     string
	UUID   [16]byte
	Key    bson.Raw // the document's key: {_id: ...}
	Before bson.Raw // the document as it was, of updates and deletes
	After  bson.Raw // the document as it is now, of inserts and updates
	// Images tells that the collection keeps the documents before and after a change for change
	// streams.
	Images bool
	// Delta is what an update says that it changed, nil to compare Before and After. Its type
	// belongs to the command layer.
	Delta any
	To    string   // the new namespace of a rename
	More  bson.Raw // further facts about the operation
	View  bool     // NS is a view
	// Txn, Number and Index tell the transaction's entries: all have the commit's TS. Txn is the
	// logical session's id.
	Txn    bson.Raw
	Number int64
	Index  int
	Stmt   Statement

	quiet bool // not an event of the group: what one of its shards does that others do, too
	shard int  // that wrote it

	rid  string
	info *Info
	idx  []*IndexInfo
	name string
}

// Statement tells which retryable write made the change.
type Statement struct {
	LSID   bson.Raw
	Number int64
	ID     int32
}

func (e *Entry) size() int { return 200 + len(e.Before) + len(e.After) }
