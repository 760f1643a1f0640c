package catalog

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{Name: "autoCompact", AdminOnly: true, Roles: server.Mongod,
		Needs: server.OnCluster("compact"), Where: server.Anywhere, Run: runAutoCompact})
}

// autoCompactSpec are the arguments of autoCompact.
type autoCompactSpec struct {
	on, once  bool
	freeSpace int64 // in MB
}

var autoCompactArgs = &args.Table[autoCompactSpec]{Name: "autoCompact",
	Value: args.Bool(func(q *autoCompactSpec) *bool { return &q.on }),
	Fields: map[string]args.Field[autoCompactSpec]{
		"runOnce":           args.Bool(func(q *autoCompactSpec) *bool { return &q.once }),
		"freeSpaceTargetMB": args.Number(func(q *autoCompactSpec) *int64 { return &q.freeSpace }),
	}}

// runAutoCompact switches compaction in the background. One that is to run once is done at once.
func runAutoCompact(r *server.Request, dst []byte) ([]byte, error) {
	q := autoCompactSpec{freeSpace: 20}
	if err := autoCompactArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	if r.Arg().Type == bson.TypeNull {
		return dst, args.MissingField("autoCompact.autoCompact")
	}
	if q.freeSpace < 1 {
		return dst, args.TooSmall(r.Version(), "freeSpaceTargetMB", 1, q.freeSpace)
	}
	if q.on && q.freeSpace<<20 < 1<<20 { // as bytes they wrap around
		return dst, srverr.New(srverr.BadValue, "autoCompact.freeSpaceTargetMB is too large: %d", q.freeSpace)
	}
	switch was := r.Node.Compaction(); {
	case !q.on:
		r.Node.SetCompaction(nil)
	case was != nil && (q.once || was.FreeSpaceMB != q.freeSpace):
		return dst, srverr.New(srverr.AlreadyInitialized,
			"Cannot reconfigure background compaction while it is running: disable it first")
	case !q.once:
		r.Node.SetCompaction(&server.Compaction{FreeSpaceMB: q.freeSpace})
	}
	return dst, nil
}
