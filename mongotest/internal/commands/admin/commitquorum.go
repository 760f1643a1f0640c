package admin

import (
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

var commitQuorumArgs = &args.Table[args.None]{Name: "setIndexCommitQuorum",
	Required: []string{"indexNames", "commitQuorum"}, Fields: map[string]args.Field[args.None]{
		"indexNames": args.Array[args.None](nil).Must(), "commitQuorum": {},
	}}

// runIndexCommitQuorum is about the builds of indexes that go on. None does: an index is built
// before its command answers.
func runIndexCommitQuorum(r *server.Request, dst []byte) ([]byte, error) {
	if err := commitQuorumArgs.ParseCommand(r, nil); err != nil {
		return dst, err
	}
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	return dst, srverr.New(srverr.IndexNotFound,
		"Cannot find an index build on collection '%s' with the provided index names", ns)
}
