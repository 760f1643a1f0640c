package admin

import (
	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/server"
)

// Commands about what a server keeps of others: connections to them, and sessions that it has yet
// to tell them of. The nodes of a deployment have one store and no connections to each other, so
// that there is nothing to drop, to wait for or to write down.

func init() {
	for _, c := range []*server.Command{
		{Name: "refreshLogicalSessionCacheNow", Needs: server.Free, Run: server.Nothing},
		{Name: "reapLogicalSessionCacheNow", Needs: server.Free, Run: server.Nothing},
		{Name: "dropConnections", Needs: server.OnCluster("dropConnections"), AdminOnly: true, Run: runDropConnections},
	} {
		c.Where = server.Anywhere
		server.Register(c)
	}
}

var dropConnectionsStruct = &idl.Struct{Name: "dropConnections", Required: []string{"hostAndPort"}, Fields: map[string]idl.Field{"hostAndPort": {}}}

func runDropConnections(r *server.Request, dst []byte) ([]byte, error) {
	return dst, dropConnectionsStruct.ParseCommand(r, func(k string, v bson.RawValue) error {
		if v.Type != bson.TypeArray {
			return arg.WrongType(dropConnectionsStruct.Path(k), v.Type, "array")
		}
		for i, e := range bson.Raw(v.Value).All() {
			if e.Type != bson.TypeString {
				return arg.WrongType(dropConnectionsStruct.Path(k)+"."+i, e.Type, "string")
			}
		}
		return nil
	})
}
