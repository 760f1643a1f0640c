package server

// genericArg says which versions know an argument that every command takes.
type genericArg struct{ since, until Version }

// genericArgs are the arguments that every command takes. The dispatcher looks at them, or nobody does.
var genericArgs = map[string]genericArg{
	"$db": {}, "lsid": {}, "txnNumber": {}, "autocommit": {}, "startTransaction": {}, "coordinator": {},
	"$clusterTime": {}, "$readPreference": {}, "$queryOptions": {}, "readConcern": {}, "writeConcern": {}, "maxTimeMS": {},
	"maxTimeMSOpOnly": {}, "comment": {since: Version{4, 4, 0}},
	"$audit": {}, "$client": {}, "$configServerState": {}, "$oplogQueryData": {}, "$replData": {}, "tracking_info": {},
	"shardVersion": {}, "databaseVersion": {}, "allowImplicitCollectionCreation": {until: Version{5, 0, 0}},
	"stmtId":             {until: Version{5, 0, 0}},
	"clientOperationKey": {since: Version{4, 4, 0}},
	"apiVersion":         {since: Version{4, 9, 0}}, "apiStrict": {since: Version{4, 9, 0}}, "apiDeprecationErrors": {since: Version{4, 9, 0}},
	"$configTime": {since: Version{4, 9, 0}}, "$topologyTime": {since: Version{4, 9, 0}}, "help": {since: Version{5, 0, 0}},
	"mayBypassWriteBlocking":           {since: Version{6, 0, 0}},
	"isClusterQueryWithoutShardKeyCmd": {since: Version{7, 0, 0}},
	"serialization_context":            {since: Version{7, 0, 0}}, "expectPrefix": {since: Version{7, 0, 0}},
	"requestGossipRoutingCache": {since: Version{7, 1, 0}},
	"rawData":                   {since: Version{8, 2, 0}},
}

// generic reports whether every command of the node's version takes this argument.
func (r *Request) generic(field string) bool {
	a, ok := genericArgs[field]
	v := r.Node.cfg.Version
	return ok && v.atLeast(a.since) && (a.until.Major == 0 || !v.atLeast(a.until))
}
