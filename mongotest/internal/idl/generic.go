package idl

import (
	"allium/mongotest/internal/release"
)

// genericArg says which versions know an argument that every command takes.
type genericArg struct{ since, until release.Version }

// genericArgs are the arguments that every command takes. The dispatcher looks at them, or nobody
// does.
var genericArgs = map[string]genericArg{
	"$db": {}, "lsid": {}, "txnNumber": {}, "autocommit": {}, "startTransaction": {}, "coordinator": {},
	"$clusterTime": {}, "$readPreference": {}, "$queryOptions": {}, "readConcern": {}, "writeConcern": {}, "maxTimeMS": {},
	"maxTimeMSOpOnly": {}, "comment": {since: release.At(4, 4, 0)},
	"$audit": {}, "$client": {}, "$configServerState": {}, "$oplogQueryData": {}, "$replData": {}, "tracking_info": {},
	"shardVersion": {}, "databaseVersion": {}, "allowImplicitCollectionCreation": {until: release.At(5, 0, 0)},
	"stmtId":             {until: release.At(5, 0, 0)},
	"clientOperationKey": {since: release.At(4, 4, 0)},
	"apiVersion":         {since: release.At(4, 9, 0)}, "apiStrict": {since: release.At(4, 9, 0)}, "apiDeprecationErrors": {since: release.At(4, 9, 0)},
	"$configTime": {since: release.At(4, 9, 0)}, "$topologyTime": {since: release.At(4, 9, 0)}, "help": {since: release.At(5, 0, 0)},
	"mayBypassWriteBlocking":           {since: release.At(6, 0, 0)},
	"isClusterQueryWithoutShardKeyCmd": {since: release.At(7, 0, 0)},
	"serialization_context":            {since: release.At(7, 0, 0)}, "expectPrefix": {since: release.At(7, 0, 0)},
	"requestGossipRoutingCache": {since: release.At(7, 1, 0)},
	"rawData":                   {since: release.At(8, 2, 0)},
}

// Generic reports whether every command of the version takes this argument.
func Generic(v release.Version, field string) bool {
	a, ok := genericArgs[field]
	return ok && v.AtLeastPatch(a.since) && (a.until.Major == 0 || !v.AtLeastPatch(a.until))
}
