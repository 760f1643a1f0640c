package main

import (
	"net"
	"strings"

	"allium/bson"
)

// flavour is a server that speaks MongoDB's protocol and is none of MongoDB's, or a service with
// limits of its own. docs/other-servers.md says more of each.
type flavour struct {
	name string
	// hosts are the ends of its hosts' names, builds the fields that it alone has in the reply to
	// buildInfo.
	hosts, builds []string
	// refuses is set if it refuses retryable writes, so that clients need retryWrites=false.
	refuses bool
	// ours is set for a service of MongoDB's, which is no reason to warn.
	ours bool
	do   string
}

var flavours = []flavour{
	{name: "Amazon DocumentDB", hosts: []string{".docdb.amazonaws.com", ".docdb-elastic.amazonaws.com",
		".docdb.amazonaws.com.cn"}, refuses: true,
		do: "Set retryWrites=false, and tls=true with Amazon's bundle of authorities in tlsCAFile."},
	{name: "Azure Cosmos DB (request units)", hosts: []string{".mongo.cosmos.azure.com", ".documents.azure.com",
		".mongo.cosmos.azure.us", ".mongo.cosmos.azure.cn"}, refuses: true,
		do: "Set retryWrites=false and maxIdleTimeMS=120000, and be ready for error 16500, which asks for fewer requests."},
	{name: "Azure DocumentDB (Cosmos DB by cores)", hosts: []string{".mongocluster.cosmos.azure.com"}, refuses: true,
		do: "Set retryWrites=false and maxIdleTimeMS=120000."},
	{name: "FerretDB", builds: []string{"ferretdb", "ferretdbVersion"},
		do: "Look at its list of commands for what the program uses; version 1 has no sessions that span commands, so set retryWrites=false there."},
	{name: "MongoDB Atlas", hosts: []string{".mongodb.net", ".mongodbgov.net"}, ours: true,
		do: "Shared and flex clusters bound connections and operations in a second, and lack some commands."},
}

// flavourOf returns what a server is, by its address and its reply to buildInfo, which may be nil;
// nil for a server of MongoDB's.
func flavourOf(addr string, build bson.Raw) *flavour {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for i := range flavours {
		f := &flavours[i]
		for _, end := range f.hosts {
			if strings.HasSuffix(host, end) {
				return f
			}
		}
		for _, field := range f.builds {
			if !build.Lookup(field).IsZero() {
				return f
			}
		}
	}
	return nil
}

// flavour says what a server is if it is not just one of MongoDB's.
func (p *patient) flavour(addr string, build bson.Raw) {
	f := flavourOf(addr, build)
	switch {
	case f == nil || p.flavours[f.name]:
		return
	case f.refuses && (p.cfg.RetryWrites == nil || *p.cfg.RetryWrites):
		p.fail("server", addr, f.do+" docs/other-servers.md says what else is different.",
			"%s refuses retryable writes: the first write fails", f.name)
	case f.ours:
		p.ok("server", addr, "this is %s: %s", f.name, lower(f.do))
	default:
		p.warn("server", addr, f.do+" docs/other-servers.md says what else is different.", "this is %s", f.name)
	}
	p.flavours[f.name] = true
}
