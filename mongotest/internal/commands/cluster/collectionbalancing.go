package cluster

import (
	"slices"

	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// configureCollectionBalancing says what the balancer is to do for one collection.

// balancingSpec are its arguments.
type balancingSpec struct {
	size                        int64
	defragment, merge, balance  bool
	hasSize, hasMerge, hasMoves bool
}

var balancingArgs = &args.Table[balancingSpec]{Name: "configureCollectionBalancing",
	Value: args.String[balancingSpec](nil), Fields: map[string]args.Field[balancingSpec]{
		"chunkSize": args.Number(func(q *balancingSpec) *int64 { return &q.size }).Note(func(q *balancingSpec) *bool {
			return &q.hasSize
		}),
		"defragmentCollection": args.SafeBool(func(q *balancingSpec) *bool { return &q.defragment }),
		"enableAutoMerger": args.Bool(func(q *balancingSpec) *bool {
			return &q.merge
		}).Note(func(q *balancingSpec) *bool { return &q.hasMerge }).Gated(),
		"enableBalancing": args.Bool(func(q *balancingSpec) *bool {
			return &q.balance
		}).Note(func(q *balancingSpec) *bool { return &q.hasMoves }).Gated(),
	}}

// maxChunkSize is how large chunks may be made, in MiB.
const maxChunkSize = 1024

func runCollectionBalancing(r *server.Request, dst []byte) ([]byte, error) {
	var q balancingSpec
	if err := balancingArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	if q.size < 0 || q.size > maxChunkSize {
		return dst, srverr.New(srverr.InvalidOptions,
			"The chunk size of a collection must be between 1 and %d MB, or 0 for the default", maxChunkSize)
	}
	return dst, changeSharding(r, func(_ *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		b := s.Balancing
		if q.hasSize {
			b.ChunkSize = int32(q.size)
		}
		if q.hasMerge {
			b.NoMerging = !q.merge
		}
		if q.hasMoves {
			b.Off = !q.balance
		}
		if b != s.Balancing {
			s = s.Balanced(b)
		}
		if q.defragment {
			s = defragmented(r.Node.Data(), c.NS, s)
		}
		return s, nil
	})
}

// defragmented merges the chunks beside each other that are on one shard, as far as they may be on
// the same shards. The server's balancer takes its time for that, and moves small chunks to others.
func defragmented(d *server.Data, ns string, s *sharding.Metadata) *sharding.Metadata {
	for i := 0; i+1 < len(s.Chunks); {
		if s.Chunks[i].Shard == s.Chunks[i+1].Shard && slices.Equal(d.ZoneShards(ns, s, i), d.ZoneShards(ns, s, i+1)) {
			s = s.Merge(i, i+1)
		} else {
			i++
		}
	}
	return s
}
