package admin

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "setUserWriteBlockMode", AdminOnly: true, Needs: server.OnCluster("setUserWriteBlockMode"),
		WriteConcern: true, Mongos: server.OnMongos{Config: true}, Run: runSetWriteBlock,
	})
}

// writeBlockSpec are the arguments of setUserWriteBlockMode.
type writeBlockSpec struct {
	global bool
	reason string
}

var (
	writeBlockArgs = &args.Table[writeBlockSpec]{Name: "setUserWriteBlockMode", Required: []string{"global"},
		Fields: map[string]args.Field[writeBlockSpec]{
			"global": args.Bool(func(q *writeBlockSpec) *bool { return &q.global }),
			"reason": args.String(func(q *writeBlockSpec) *string { return &q.reason }),
		}}
	writeBlockReasons = []string{"Unspecified", "ClusterToClusterMigrationInProgress", "DiskUseThresholdExceeded"}
)

// runSetWriteBlock keeps users from writing, or lets them. Who does the one must say the same
// reason as who did the other, except on a mongos.
func runSetWriteBlock(r *server.Request, dst []byte) ([]byte, error) {
	q := writeBlockSpec{reason: writeBlockReasons[0]}
	if err := writeBlockArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	if !slices.Contains(writeBlockReasons, q.reason) {
		return dst, srverr.New(srverr.BadValue,
			"Enumeration value '%s' for field 'setUserWriteBlockMode.reason' is not a valid value.", q.reason)
	}
	if r.Node.Role() == server.Standalone {
		return dst, srverr.New(srverr.IllegalOperation, "setUserWriteBlockMode cannot be run on standalones")
	}
	d := r.Node.Data()
	if was := d.WriteBlock(); was != "" && was != q.reason && !r.Router() {
		verb := "release"
		if q.global {
			verb = "acquire"
		}
		return dst, srverr.New(srverr.IllegalOperation, "Cannot %s user writes critical section with different reason "+
			"than the already-set reason, reason: %s, already-set reason: %s", verb, q.reason, was)
	}
	if !q.global {
		q.reason = ""
	}
	r.NoteChange()
	d.SetWriteBlock(q.reason)
	return dst, nil
}

// appendWriteBlock appends what serverStatus says of it: 1 if users may write, 2 if they may not.
func appendWriteBlock(r *server.Request, dst []byte) []byte {
	mode := int32(1)
	if r.Node.Data().WriteBlock() != "" {
		mode = 2
	}
	return bson.AppendInt32(dst, "userWriteBlockMode", mode)
}
