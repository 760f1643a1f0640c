package flavour

import "allium/mongotest/internal/srverr"

// Flavours are the servers and services, in the order of their names. A row is what the page of
// Source lists as not supported, as far as a member of a set has it in mongotest; what is not in
// the rows works as it does on a server of MongoDB's.
var Flavours = []Flavour{
	{Name: "atlas-flex", Title: "MongoDB Atlas, flex", Version: "8.0",
		Source: "https://www.mongodb.com/docs/atlas/unsupported-commands/", Refuses: append([]Row{
			{Kind: Stages, Names: "$changeStream", Code: srverr.AtlasError, Text: notAllowed},
		}, atlas...), Limits: []Limit{fewStages}},
	{Name: "atlas-m0", Title: "MongoDB Atlas, free (M0)", Version: "8.0",
		Source: "https://www.mongodb.com/docs/atlas/unsupported-commands/", Refuses: atlas, Limits: []Limit{
			fewStages,
			{Of: DatabaseBytes, Most: 38, Code: srverr.AtlasError,
				Text: "db name must be at most %[2]d characters, found: %[1]d"},
			{Of: Databases, Most: 100, Code: srverr.AtlasError,
				Text: "cannot create a new database -- already using %[2]d databases of %[2]d"},
			{Of: Collections, Most: 500, Code: srverr.AtlasError,
				Text: "cannot create a new collection -- already using %[2]d collections of %[2]d"},
		}},
	{Name: "cosmosdb", Title: "Azure Cosmos DB by request units, 4.2", Version: "4.2",
		Source: "https://learn.microsoft.com/azure/cosmos-db/mongodb/feature-support-42", Refuses: []Row{
			{Kind: Retries, Code: srverr.BadValue, Text: "Retryable writes are not supported. Please disable " +
				"retryable writes by specifying \"retrywrites=false\" in the connection string or an equivalent driver " +
				"specific config."},
			{Kind: Commands, Code: srverr.CommandNotSupported, Text: "Command %s not supported.",
				Names: "cloneCollectionAsCapped collMod connPoolStats connectionStatus convertToCapped dataSize " +
					"dbHash features killOp listCommands mapReduce profile " +
					"renameCollection serverStatus top moveChunk " +
					"startSession killSessions killAllSessions refreshSessions " +
					"createUser updateUser dropUser usersInfo createRole updateRole dropRole rolesInfo"},
			{Kind: Stages, Code: 40324, Text: "Unrecognized pipeline stage name: %s",
				Names: "$bucket $bucketAuto $collStats $currentOp $indexStats $listLocalSessions $listSessions"},
			{Kind: StageOptions, Code: srverr.BadValue, Text: "let not supported",
				Names: "$lookup.let $lookup.pipeline"},
			{Kind: Filters, Code: srverr.BadValue, Text: "unknown operator: %s",
				Names: "$jsonSchema $text $where $bitsAllSet $bitsAnySet $bitsAllClear $bitsAnyClear " +
					"$center $centerSphere $box $polygon"},
			{Kind: Expressions, Code: 168, Text: "Unrecognized expression '%s'", Names: "$meta"},
			{Kind: Arguments, Code: srverr.BadValue, Text: "%s is not supported",
				Names: "createIndexes.indexes.key.*=text createIndexes.indexes.key.*=2d createIndexes.indexes.key.*=hashed " +
					"createIndexes.indexes.sparse createIndexes.indexes.collation create.capped"},
		}},
	{Name: "documentdb", Title: "Amazon DocumentDB 5.0", Version: "5.0",
		Source: "https://docs.aws.amazon.com/documentdb/latest/developerguide/mongo-apis.html", Refuses: []Row{
			{Kind: Retries, Code: 301, Text: "Retryable writes are not supported"},
			{Kind: Commands, Code: 303, Text: "Feature not supported: %s",
				Names: "cloneCollectionAsCapped compact convertToCapped fsync fsyncUnlock mapReduce reIndex " +
					"planCacheClear planCacheClearFilters planCacheListFilters planCacheSetFilter logRotate setParameter"},
			{Kind: Arguments, Code: 303, Text: "Feature not supported: %s",
				Names: "create.capped create.timeseries create.clusteredIndex create.viewOn " +
					"createIndexes.indexes.hidden createIndexes.indexes.key.*=hashed createIndexes.indexes.key.*=2d"},
			{Kind: Stages, Code: 304, Text: "Aggregation stage not supported: '%s'",
				Names: "$bucket $bucketAuto $changeStreamSplitLargeEvent $densify $documents $facet $fill $graphLookup " +
					"$listLocalSessions $listSampledQueries $listSearchIndexes $listSessions $merge $planCacheStats " +
					"$queryStats $querySettings $rankFusion $replaceWith $scoreFusion $searchMeta $setWindowFields " +
					"$shardedDataDistribution $sortByCount $unionWith $vectorSearch"},
			{Kind: Filters, Code: 303, Text: "Feature not supported: %s",
				Names: "$box $center $centerSphere $polygon $rand $sampleRate $uniqueDocs $where"},
			{Kind: Expressions, Code: 303, Text: "Feature not supported: %s",
				Names: "$$CURRENT $$REMOVE $accumulator $acos $acosh $asin $asinh $atan $atan2 $atanh $binarySize $bitAnd " +
					"$bitNot $bitOr $bitXor $bottom $bottomN $bsonSize $cos $cosh $covariancePop $covarianceSamp $dateDiff " +
					"$dateFromParts $dateToParts $dateTrunc $degreesToRadians $denseRank $derivative $documentNumber " +
					"$expMovingAvg $firstN $function $getField $integral $isNumber $lastN $linearFill $locf $maxN $median " +
					"$minN $percentile $pow $radiansToDegrees $rand $rank $round $setField $shift $sigmoid $sin $sinh " +
					"$sortArray $stdDevPop $stdDevSamp $tan $tanh $toHashedIndexKey $toUUID $top $topN $trunc $tsIncrement " +
					"$tsSecond $unsetField"},
		}},
	{Name: "ferretdb", Title: "FerretDB 2", Version: "7.0",
		Source: "https://docs.ferretdb.io/migration/compatibility/", Refuses: []Row{
			{Kind: Transactions, Code: srverr.NotImplemented, Text: "transactions are not implemented yet"},
			{Kind: Stages, Names: "$changeStream", Code: srverr.CommandNotSupported,
				Text: "Stage %s is not supported yet in native pipeline"},
			{Kind: Commands, Code: srverr.NotImplemented, Text: "command %s is not implemented yet",
				Names: "abortTransaction authenticate bulkWrite cloneCollectionAsCapped commitTransaction connPoolStats " +
					"convertToCapped createRole dropAllRolesFromDatabase dropConnections dropRole grantPrivilegesToRole " +
					"grantRolesToRole grantRolesToUser killOp logRotate profile " +
					"revokePrivilegesFromRole revokeRolesFromRole revokeRolesFromUser rolesInfo setParameter shutdown " +
					"updateRole"},
		}},
}

// notAllowed is what Atlas answers.
const notAllowed = "%s is not allowed or the syntax is incorrect, see the Atlas documentation for more information"

// fewStages bounds the pipelines of small clusters.
var fewStages = Limit{Of: StageCount, Most: 50, Code: srverr.AtlasError,
	Text: "Pipeline length greater than %[2]d not supported"}

// atlas is what small clusters have in common.
var atlas = []Row{
	{Kind: Commands, Code: srverr.AtlasError, Text: notAllowed,
		Names: "applyOps cleanupOrphaned cloneCollectionAsCapped compact connPoolSync " +
			"convertToCapped createRole createUser dropAllRolesFromDatabase dropAllUsersFromDatabase dropRole dropUser " +
			"flushRouterConfig fsync fsyncUnlock grantPrivilegesToRole grantRolesToRole grantRolesToUser " +
			"invalidateUserCache killAllSessions killAllSessionsByPattern logRotate mapReduce " +
			"mergeChunks moveChunk planCacheClearFilters planCacheListFilters planCacheSetFilter profile " +
			"replSetFreeze replSetGetConfig replSetInitiate replSetMaintenance replSetReconfig " +
			"replSetResizeOplog replSetStepDown replSetSyncFrom revokePrivilegesFromRole revokeRolesFromRole " +
			"revokeRolesFromUser rolesInfo setFeatureCompatibilityVersion setParameter shutdown " +
			"top updateRole updateUser usersInfo"},
	{Kind: Arguments, Names: "find.noCursorTimeout", Code: srverr.AtlasError,
		Text: "noTimeout cursors are disallowed in this atlas tier"},
	{Kind: Filters, Names: "$where", Code: srverr.AtlasError, Text: notAllowed},
	{Kind: Expressions, Names: "$accumulator $function $$USER_ROLES", Code: srverr.AtlasError, Text: notAllowed},
}
