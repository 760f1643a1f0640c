package admin

import (
	"allium/mongotest/internal/args"
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

var dropConnectionsArgs = &args.Table[args.None]{Name: "dropConnections", Required: []string{"hostAndPort"},
	Fields: map[string]args.Field[args.None]{
		"hostAndPort": args.Strings[args.None](nil).Must(),
	}}

func runDropConnections(r *server.Request, dst []byte) ([]byte, error) {
	return dst, dropConnectionsArgs.ParseCommand(r, nil)
}
