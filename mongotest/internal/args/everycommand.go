package args

import (
	"allium/mongotest/internal/release"
)

// genericArg is an argument that every command takes; the table of package release says which
// versions have one that is gated.
type genericArg struct{ gated bool }

// genericArgs are the arguments that every command takes. The dispatcher looks at them, or nobody
// does.
var genericArgs = map[string]genericArg{
	"$db": {}, "lsid": {}, "txnNumber": {}, "autocommit": {}, "startTransaction": {}, "coordinator": {},
	"$clusterTime": {}, "$readPreference": {}, "$queryOptions": {}, "readConcern": {}, "writeConcern": {},
	"maxTimeMS":       {},
	"maxTimeMSOpOnly": {}, "comment": {gated: true},
	"$audit": {}, "$client": {}, "$configServerState": {}, "$oplogQueryData": {}, "$replData": {}, "tracking_info": {},
	"shardVersion": {}, "databaseVersion": {}, "allowImplicitCollectionCreation": {gated: true},
	"stmtId":             {gated: true},
	"clientOperationKey": {gated: true},
	"apiVersion":         {gated: true}, "apiStrict": {gated: true}, "apiDeprecationErrors": {gated: true},
	"$configTime": {gated: true}, "$topologyTime": {gated: true}, "help": {gated: true},
	"mayBypassWriteBlocking":           {gated: true},
	"isClusterQueryWithoutShardKeyCmd": {gated: true},
	"serialization_context":            {gated: true}, "expectPrefix": {gated: true},
	"requestGossipRoutingCache": {gated: true},
	"rawData":                   {gated: true},
}

// Generic reports whether every command of the version takes this argument.
func Generic(v release.Version, field string) bool {
	a, ok := genericArgs[field]
	return ok && (!a.gated || v.Has(release.Argument, field))
}
