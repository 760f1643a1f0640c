package cluster

import (
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// moveCollection and unshardCollection bring a collection as a whole to a shard, where it stays
// whatever becomes of its database's primary shard. Both are done when they answer, so that there
// is never one to abort.

// moveSpec are the arguments of moveCollection and unshardCollection.
type moveSpec struct {
	toShard string // "": unshardCollection chooses
}

var (
	toShard = map[string]args.Field[moveSpec]{
		"toShard": args.String(func(q *moveSpec) *string { return &q.toShard }),
	}
	moveArgs = &args.Table[moveSpec]{Name: "moveCollection", Lax: true, Required: []string{"toShard"},
		Fields: toShard}
	unshardArgs = &args.Table[moveSpec]{Name: "unshardCollection", Lax: true, Fields: toShard}
)

// shard returns the shard that the collection goes to, or -1 if the command names none.
func (q *moveSpec) shard(r *server.Request) (int, error) {
	if q.toShard == "" {
		return -1, nil
	}
	i := r.Node.Data().ShardNumber(q.toShard)
	if i < 0 {
		return i, srverr.New(srverr.ShardNotFound, "Shard %s not found", q.toShard)
	}
	return i, nil
}

// runUnshard brings the documents of a sharded collection to one shard. The server takes the one
// with the fewest data, here it is the primary shard of the database.
func runUnshard(r *server.Request, dst []byte) ([]byte, error) {
	var q moveSpec
	if err := unshardArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	to, err := q.shard(r)
	if err != nil {
		return dst, err
	}
	return dst, changeSharding(r, func(tx *store.Tx, c *store.Coll, _ *sharding.Metadata) (*sharding.Metadata, error) {
		if to < 0 {
			to = r.Node.Data().Place(c.NS)
		}
		return nil, tx.Spread(c, nil, to)
	})
}

// runMoveCollection brings a collection that is not sharded to another shard.
func runMoveCollection(r *server.Request, dst []byte) ([]byte, error) {
	db, ns, err := r.ShardedNS()
	if err != nil {
		return dst, err
	}
	var q moveSpec
	if err := moveArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	if err := r.DatabaseKnown(db); err != nil {
		return dst, err
	}
	to, err := q.shard(r)
	switch {
	case err != nil:
		return dst, err
	case to < 0:
		return dst, srverr.New(srverr.ShardNotFound, "Shard  not found")
	case db == "config" || db == "admin" || db == "local":
		return dst, srverr.New(srverr.IllegalOperation, "Can't move a collection of the %s database", db)
	}
	return dst, r.Write(func(tx *store.Tx) error {
		switch c := tx.Coll(ns); {
		case c == nil:
			return srverr.New(srverr.NamespaceNotFound, "Collection %s doesn't exist", ns)
		case c.View:
			return srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
		case c.Sharded():
			return srverr.New(srverr.NamespaceNotFound, "MoveCollection can only be called on an unsharded collection.")
		case c.Shard() == to:
			return nil
		default:
			return tx.Spread(c, nil, to)
		}
	})
}

// runAbortMove finds no move to abort, or to bring to its end.
func runAbortMove(r *server.Request, dst []byte) ([]byte, error) {
	db, ns, err := r.ShardedNS()
	if err != nil {
		return dst, err
	}
	if err := r.DatabaseKnown(db); err != nil {
		return dst, err
	}
	return dst, srverr.New(srverr.NoSuchReshardCollection,
		"Could not find active resharding operation for namespace %s", ns)
}
