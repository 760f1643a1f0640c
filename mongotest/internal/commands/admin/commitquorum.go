package admin

import (
	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// commitQuorumStruct is what setIndexCommitQuorum takes.
var commitQuorumStruct = &idl.Struct{Name: "setIndexCommitQuorum", Required: []string{"indexNames", "commitQuorum"}, Fields: map[string]idl.Field{
	"indexNames": {Kind: idl.Any}, "commitQuorum": {Kind: idl.Any},
}}

// runIndexCommitQuorum is about the builds of indexes that go on. None does: an index is built
// before its command answers.
func runIndexCommitQuorum(r *server.Request, dst []byte) ([]byte, error) {
	err := commitQuorumStruct.ParseCommand(r, func(k string, v bson.RawValue) error {
		if k == "indexNames" && v.Type != bson.TypeArray {
			return arg.WrongType(commitQuorumStruct.Path(k), v.Type, "array")
		}
		return nil
	})
	if err != nil {
		return dst, err
	}
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	return dst, srverr.New(srverr.IndexNotFound, "Cannot find an index build on collection '%s' with the provided index names", ns)
}
