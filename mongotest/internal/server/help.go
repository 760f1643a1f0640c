package server

// helps are what commands say to {help: true}.
var helps = map[string]string{
	"aggregate":        "Runs the aggregation command. See http://dochub.mongodb.org/core/aggregation for more details.",
	"buildInfo":        "get version #, etc.\n{ buildinfo:1 }",
	"collStats":        "{ collStats:\"blog.posts\" , scale : 1 } scale divides sizes e.g. for KB use 1024\n    avgObjSize - in bytes",
	"count":            "count objects in collection",
	"dbStats":          "Get stats on a database. Not instantaneous. Slower for databases with large .ns files.\nExample: { dbStats:1, scale:1 }",
	"distinct":         "{ distinct : 'collection name' , key : 'a.b' , query : {} }",
	"drop":             "drop a collection\n{drop : <collectionName>}",
	"dropDatabase":     "drop (delete) this database",
	"dropIndexes":      "drop indexes for a collection",
	"endSessions":      "end a set of logical sessions",
	"explain":          "explain database reads and writes",
	"find":             "query for documents",
	"getMore":          "retrieve more results from an existing cursor",
	"hostInfo":         "returns information about the daemon's host",
	"isMaster":         "Check if this server is primary for a replica set\n{ isMaster : 1 }",
	"killCursors":      "Kill a list of cursor ids",
	"killSessions":     "kill a logical session and its operations",
	"listCollections":  "list collections for this db",
	"listDatabases":    "{ listDatabases:1, [filter: <filterObject>] [, nameOnly: true ] }\nlist databases on this server",
	"listIndexes":      "list indexes for a collection",
	"ping":             "a way to check that the server is alive. responds immediately even if server is in a db lock.",
	"refreshSessions":  "renew a set of logical sessions",
	"renameCollection": " example: { renameCollection: foo.a, to: bar.b }",
	"serverStatus":     "returns lots of administrative server statistics",
	"startSession":     "start a logical session",
	"whatsmyuri":       "{whatsmyuri:1}",
}

func helpOf(name string) string {
	if text, ok := helps[name]; ok {
		return text
	}
	return "no help defined"
}
