package cluster

import (
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// mergeAllSpec are the arguments of mergeAllChunksOnShard.
type mergeAllSpec struct {
	ns, shard string
	most      int64 // chunks to merge; 0: all
}

var mergeAllArgs = &args.Table[mergeAllSpec]{Name: "mergeAllChunksOnShard", Required: []string{"shard"},
	Value: args.String(func(q *mergeAllSpec) *string { return &q.ns }).Must(),
	Fields: map[string]args.Field[mergeAllSpec]{
		"shard":                    args.String(func(q *mergeAllSpec) *string { return &q.shard }),
		"maxNumberOfChunksToMerge": args.Number(func(q *mergeAllSpec) *int64 { return &q.most }).AtLeast(2),
	}}

// runMergeAll merges the chunks of a shard that lie side by side.
func runMergeAll(r *server.Request, dst []byte) ([]byte, error) {
	var q mergeAllSpec
	if err := mergeAllArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	shard := r.Node.Data().ShardNumber(q.shard)
	if shard < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "Shard %s not found", q.shard)
	}
	return dst, changeSharding(r, func(_ *store.Tx, _ *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		left := q.most
		for from := 0; from < len(s.Chunks); from++ {
			to := from
			for to+1 < len(s.Chunks) && s.Chunks[from].Shard == shard && s.Chunks[to+1].Shard == shard &&
				(q.most == 0 || int64(to-from)+2 <= left) {
				to++
			}
			if to > from {
				s, left = s.Merge(from, to), left-int64(to-from)-1
			}
		}
		return s, nil
	})
}
