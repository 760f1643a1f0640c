package admin

import (
	"strconv"
	"strings"

	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
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
	if r.Version().AllParsed() && args.IsNull(r.Body.Lookup("hostAndPort")) {
		return dst, args.MissingField("dropConnections.hostAndPort")
	}
	if err := dropConnectionsArgs.ParseCommand(r, nil); err != nil || !r.Version().AllParsed() {
		return dst, err
	}
	hosts, _ := r.Body.Lookup("hostAndPort").Array()
	for v := range hosts.Values() {
		if s, ok := v.StringValue(); ok && !validHost(s) {
			return dst, srverr.New(srverr.FailedToParse, "'%s' is no host with a port", s)
		}
	}
	return dst, nil
}

// validHost reports whether a server reads s as a host, with a port or without: an address of IPv6
// is in brackets.
func validHost(s string) bool {
	host, port, hasPort := strings.Cut(s, ":")
	if rest, ok := strings.CutPrefix(s, "["); ok {
		var closed bool
		if host, rest, closed = strings.Cut(rest, "]"); !closed {
			return false
		}
		if port, hasPort = strings.CutPrefix(rest, ":"); rest != "" && !hasPort {
			return false
		}
	}
	if hasPort {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	return host != ""
}
