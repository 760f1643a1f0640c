package release

// queryStatsParameters came with $queryStats.
const queryStatsParameters = "internalQueryStatsCacheSize internalQueryStatsRateLimit"

// emptyStamps came to four series at once.
const emptyStamps = "bulkWrite.bypassEmptyTsReplacement delete.bypassEmptyTsReplacement findAndModify.bypassEmptyTsReplacement " +
	"insert.bypassEmptyTsReplacement update.bypassEmptyTsReplacement"

// rateLimiter is what limits how fast connections are established. The manual has it from 8.2 on;
// it came to patch releases of 7.0 and 8.0 in the summer of 2025.
const rateLimiter = "ingressConnectionEstablishmentBurstCapacitySecs ingressConnectionEstablishmentMaxQueueDepth " +
	"ingressConnectionEstablishmentRateLimiterEnabled ingressConnectionEstablishmentRatePerSec"

// Features is what came and went with the versions from 4.4 on: commands, stages, operators and the
// like by name, as the public release notes and manuals say. It decides what a deployment of a
// version refuses, and docs/mongotest-versions.md shows it. What is in no row is in every version;
// how a version does what all of them have is in the code of that.
var Features = []Feature{
	// Enterprise, and Percona's
	{Since: At(4, 2, 0), Kind: Stage, State: NotBuilt, Names: "$backupCursor $backupCursorExtend"},
	{Since: At(4, 2, 10), Until: At(4, 3, 0), Kind: Command, Names: "hello"},
	{Since: At(4, 4, 2), Kind: Command, Names: "hello"},

	{Since: At(4, 4, 0), Kind: Command, Names: "balancerCollectionStatus getDefaultRWConcern refineCollectionShardKey setDefaultRWConcern waitForFailPoint"},
	{Since: At(4, 4, 0), Kind: Stage, Names: "$unionWith"},
	{Since: At(4, 4, 0), Kind: Expression, Names: "$binarySize $bsonSize $first $function $isNumber $last $replaceAll $replaceOne $_internalJsEmit"},
	{Since: At(4, 4, 0), Kind: Accumulator, Names: "$accumulator $_internalJsReduce"},
	{Since: At(4, 4, 0), Kind: Argument, Names: "clientOperationKey comment delete.deletes.hint find.allowDiskUse findAndModify.hint update.updates.upsertSupplied"},
	{Since: At(4, 4, 0), Kind: Reply, Names: "hello.topologyVersion"},
	{Until: At(4, 4, 0), Kind: Reply, Names: "mapReduce.timeMillis"},
	{Since: At(4, 4, 2), Kind: Expression, Names: "$rand"},
	{Since: At(4, 4, 2), Kind: Filter, Names: "$sampleRate"},
	{Until: At(4, 4, 14), Kind: Argument, Names: "count.comment"}, // then one of those that every command takes
	{Since: At(4, 9, 0), Kind: Argument, Names: "$configTime $topologyTime apiDeprecationErrors apiStrict apiVersion"},

	{Since: At(5, 0, 0), Kind: Command, Names: "abortReshardCollection commitReshardCollection reshardCollection rotateCertificates testDeprecation testDeprecationInVersion2 testRemoval testVersion2 testVersions1And2 validateDBMetadata"},
	{Since: At(5, 0, 0), Kind: Command, State: NotBuilt,
		Names: "cleanupReshardCollection"},
	{Since: At(5, 0, 0), Kind: Stage, Names: "$setWindowFields"},
	{Since: At(5, 0, 0), Kind: Expression,
		Names: "$dateAdd $dateDiff $dateSubtract $dateTrunc $getField $setField $unsetField"},
	{Since: At(5, 0, 0), Kind: Accumulator, Names: "$count"},
	{Since: At(5, 0, 0), Kind: Filter, Names: "$_internalExprGt $_internalExprGte $_internalExprLt $_internalExprLte"},
	{Since: At(5, 0, 0), Kind: Window, Names: "$covariancePop $covarianceSamp $denseRank $derivative $documentNumber $expMovingAvg $integral $rank $shift"},
	{Since: At(5, 0, 0), Kind: Argument, Names: "bulkWrite.isTimeseriesNamespace create.expireAfterSeconds create.timeseries delete.isTimeseriesNamespace " +
		"collMod.expireAfterSeconds collMod.timeseries delete.legacyRuntimeConstants delete.let find.let findAndModify.let help insert.isTimeseriesNamespace renameCollection.collectionUUID " +
		"update.isTimeseriesNamespace update.legacyRuntimeConstants update.let aggregate.requestResumeToken $changeStream.allowToRunOnSystemNS"},
	{Since: At(5, 0, 0), Kind: Reply, Names: "getShardMap.connStrings getShardMap.hosts listShards.topologyTime"},
	{Since: At(5, 0, 0), Kind: Parameter, Names: "acceptApiVersion2 requireApiVersion"},
	{Until: At(5, 0, 0), Kind: Command, Names: "geoSearch resetError shardConnPoolStats stageDebug"},
	{Until: At(5, 0, 0), Kind: Argument,
		Names: "allowImplicitCollectionCreation count.maxTimeMS stmtId update.runtimeConstants"},
	{Since: At(5, 0, 29), Until: At(5, 1, 0), Kind: Argument, Names: emptyStamps},
	{Since: At(5, 1, 0), Kind: Stage, Names: "$densify $documents"},
	{Since: At(5, 1, 0), Kind: Expression, Names: "$tsIncrement $tsSecond"},
	{Until: At(5, 1, 0), Kind: Command, Names: "availableQueryOptions getLastError"},
	{Since: At(5, 2, 0), Kind: Expression, Names: "$firstN $lastN $maxN $minN $sortArray"},
	{Since: At(5, 2, 0), Kind: Accumulator, Names: "$bottom $bottomN $firstN $lastN $maxN $minN $top $topN"},
	{Since: At(5, 2, 0), Kind: Window, Names: "$locf"},
	{Since: At(5, 2, 0), Kind: Argument, Names: "$filter.limit"},
	{Since: At(5, 3, 0), Kind: Command, Names: "configureCollectionBalancing"},
	{Since: At(5, 3, 0), Kind: Stage, Names: "$fill"},
	{Since: At(5, 3, 0), Kind: Window, Names: "$linearFill"},
	{Since: At(5, 3, 0), Kind: Argument, Names: "create.clusteredIndex"},
	{Since: At(5, 3, 0), Kind: IndexOption, Names: "clustered"},

	{Since: At(6, 0, 0), Kind: Command,
		Names: "compactStructuredEncryptionData getClusterParameter moveRange setClusterParameter setUserWriteBlockMode"},
	{Since: At(6, 0, 0), Kind: Stage, Names: "$listCatalog $search $searchMeta"},
	{Since: At(6, 0, 0), Kind: Variable, Names: "$$SEARCH_META"},
	{Since: At(6, 0, 0), Kind: Value, Names: "$meta=searchScoreDetails"},
	{Since: At(6, 0, 0), Kind: IndexOption, Names: "originalSpec prepareUnique"},
	{Since: At(6, 0, 0), Kind: Parameter, Names: "allowDiskUseByDefault"},
	{Since: At(6, 0, 0), Kind: Argument, Names: "aggregate.collectionUUID aggregate.encryptionInformation bulkWrite.collectionUUID bulkWrite.encryptionInformation " +
		"collMod.cappedMax collMod.cappedSize collMod.changeStreamPreAndPostImages collMod.timeseriesBucketsMayHaveMixedSchemaData " +
		"count.collectionUUID count.encryptionInformation create.changeStreamPreAndPostImages create.encryptedFields delete.collectionUUID delete.encryptionInformation " +
		"distinct.collectionUUID distinct.encryptionInformation find.encryptionInformation insert.collectionUUID insert.encryptionInformation " +
		"mayBypassWriteBlocking update.collectionUUID update.encryptionInformation $changeStream.showExpandedEvents $changeStream.showRawUpdateDescription " +
		"$changeStream.showSystemEvents"},
	{Since: At(6, 0, 0), Kind: Reply, Names: "$changeStream.wallTime"},
	{Until: At(6, 0, 0), Kind: Argument, Names: "collMod.recordPreImages create.recordPreImages"},
	{Until: At(6, 0, 0), Kind: Reply, Names: "config.databases.partitioned"},
	{Since: At(6, 0, 3), Kind: Stage, Names: "$shardedDataDistribution"},
	{Since: At(6, 0, 7), Kind: Stage, Names: "$listSearchIndexes"},
	{Since: At(6, 0, 7), Kind: Command,
		Names: "createSearchIndexes dropSearchIndex listSearchIndexes updateSearchIndex"},
	{Since: At(6, 0, 7), Until: At(6, 1, 0), Kind: Stage, Names: "$queryStats"},
	{Since: At(6, 0, 7), Until: At(6, 1, 0), Kind: Parameter, Names: queryStatsParameters},
	{Since: At(6, 0, 9), Until: At(6, 1, 0), Kind: Stage, Names: "$changeStreamSplitLargeEvent"},
	{Since: At(6, 0, 11), Kind: Stage, Names: "$vectorSearch"},
	{Since: At(6, 0, 11), Kind: Value, Names: "$meta=vectorSearchScore"},
	{Since: At(6, 0, 13), Kind: Value, Names: "$meta=searchSequenceToken"},
	{Since: At(6, 0, 17), Until: At(6, 1, 0), Kind: Argument, Names: emptyStamps},
	{Since: At(6, 1, 0), Kind: Reply, Names: "$changeStream.updateDescription.disambiguatedPaths"},
	{Until: At(6, 2, 0), Kind: Command, Names: "getnonce"},
	{Since: At(6, 3, 0), Kind: Expression, Names: "$bitAnd $bitNot $bitOr $bitXor"},
	{Since: At(6, 3, 0), Kind: IndexOption, Names: "columnstoreProjection"},
	{Since: At(6, 3, 0), Kind: Argument, Names: "aggregate.passthroughToShard configureCollectionBalancing.enableAutoMerger"},

	{Since: At(7, 0, 0), Kind: Command, Names: "checkMetadataConsistency cleanupStructuredEncryptionData mergeAllChunksOnShard"},
	{Since: At(7, 0, 0), Kind: Command, Names: "analyzeShardKey configureQueryAnalyzer"},
	{Since: At(7, 0, 0), Kind: Command, State: NotBuilt, Names: "resetPlacementHistory"},
	{Since: At(7, 0, 0), Kind: Parameter, Names: "analyzeShardKeyCharacteristicsDefaultSampleSize analyzeShardKeyMonotonicityCorrelationCoefficientThreshold " +
		"analyzeShardKeyNumMostCommonValues analyzeShardKeyNumRanges queryAnalysisSampleExpirationSecs"},
	{Since: At(7, 0, 0), Kind: Stage, Names: "$changeStreamSplitLargeEvent $listSampledQueries"},
	{Since: At(7, 0, 12), Kind: Stage, Names: "$queryStats"},
	{Since: At(7, 0, 12), Kind: Parameter, Names: queryStatsParameters},
	{Since: At(7, 0, 0), Kind: Expression, Names: "$median $percentile $toHashedIndexKey"},
	{Since: At(7, 0, 0), Kind: Accumulator, Names: "$median $percentile"},
	{Since: At(7, 0, 0), Kind: Variable, Names: "$$USER_ROLES"},
	{Since: At(7, 0, 0), Kind: Argument, Names: "aggregate.resumeAfter delete.deletes.sampleId expectPrefix isClusterQueryWithoutShardKeyCmd serialization_context " +
		"setFeatureCompatibilityVersion.confirm update.updates.allowShardKeyUpdatesWithoutFullShardKeyInQuery update.updates.sampleId $changeStream.showCommitTimestamp $out.timeseries"},
	{Since: At(7, 0, 13), Until: At(7, 1, 0), Kind: Argument, Names: emptyStamps},
	{Since: At(7, 0, 0), Kind: Parameter, Names: "internalQueryFrameworkControl"},
	{Since: At(7, 0, 23), Until: At(7, 1, 0), Kind: Parameter, Names: rateLimiter},
	{Since: At(7, 0, 23), Until: At(7, 1, 0), Kind: Reply, Names: "serverStatus.queues.ingressSessionEstablishment"},
	{Since: At(7, 1, 0), Kind: Argument, Names: "distinct.hint requestGossipRoutingCache"},
	{Until: At(7, 1, 0), Kind: Command, Names: "getFreeMonitoringStatus setFreeMonitoring"},

	{Since: At(8, 0, 0), Kind: Command, Names: "abortMoveCollection abortUnshardCollection autoCompact bulkWrite moveCollection removeQuerySettings setQuerySettings unshardCollection"},
	{Since: At(8, 0, 0), Kind: Command, State: NotBuilt,
		Names: "transitionFromDedicatedConfigServer transitionToDedicatedConfigServer"},
	{Since: At(8, 0, 0), Kind: Stage, Names: "$querySettings"},
	{Since: At(8, 0, 0), Kind: Argument, Names: emptyStamps},
	{Since: At(8, 0, 0), Kind: Expression, Names: "$toUUID"},
	{Since: At(8, 0, 0), Kind: QueryType, Names: "range"},
	{Since: At(8, 0, 0), Kind: Argument, Names: "aggregate.includeQueryStatsMetrics count.includeQueryStatsMetrics distinct.includeQueryStatsMetrics update.updates.sort " +
		"configureCollectionBalancing.enableBalancing $convert.format"},
	{Since: At(8, 0, 10), Kind: Stage, Names: "$listClusterCatalog"},
	{Since: At(8, 0, 0), Kind: Parameter, Names: "defaultMaxTimeMS internalQueryPlannerIgnoreIndexWithCollationForRegex"},
	{Since: At(8, 0, 12), Kind: Parameter, Names: rateLimiter},
	{Since: At(8, 0, 12), Kind: Reply, Names: "serverStatus.queues.ingressSessionEstablishment"},
	{Since: At(8, 0, 20), Kind: Parameter, Names: "internalQueryStatsSampleRate"},
	{Since: At(8, 1, 0), Kind: Accumulator, Names: "$concatArrays $setUnion"},
	{Since: At(8, 1, 0), Kind: Expression, Names: "$sigmoid"},
	{Since: At(8, 1, 0), Kind: Value, Names: "create.validationAction=errorAndLog"},
	{Since: At(8, 1, 0), Kind: Value, Names: "$meta=score $meta=scoreDetails"},
	{Since: At(8, 1, 0), Kind: Stage, Names: "$rankFusion"},
	{Since: At(8, 1, 0), Kind: Argument, Names: "aggregate.isHybridSearch aggregate.startAt bulkWrite.includeQueryStatsMetrics delete.includeQueryStatsMetrics " +
		"insert.includeQueryStatsMetrics update.includeQueryStatsMetrics update.updates.includeQueryStatsMetricsForOpIndex"},
	{Since: At(8, 1, 0), Kind: Argument, Names: "$convert.byteOrder"},
	{Since: At(8, 1, 0), Kind: Reply, Names: "$changeStream.nsType"},
	{Until: At(8, 1, 0), Kind: Command, Names: "driverOIDTest"},
	{Since: At(8, 1, 0), Kind: Argument, Names: "getParameter.setAt"},
	{Since: At(8, 1, 0), Kind: Parameter, Names: "changeStreams pauseMigrationsDuringMultiUpdates"},
	{Since: At(8, 2, 0), Kind: Parameter, Names: "fleDisableSubstringPreviewParameterLimits"},
	{Since: At(8, 2, 0), Kind: Stage, Names: "$score $scoreFusion"},
	{Since: At(8, 2, 0), Kind: Argument, Names: "aggregate.translatedForViewlessTimeseries rawData $changeStream.ignoreRemovedShards $changeStream.supportedEvents $changeStream.version"},
	{Since: At(8, 2, 0), Kind: Expression, Names: "$currentDate"},
	{Since: At(8, 2, 0), Kind: Window, Names: "$minMaxScaler"},
	{Since: At(8, 2, 0), Until: At(9, 0, 0), Kind: QueryType, Names: "prefixPreview substringPreview suffixPreview"},

	{Since: At(8, 3, 0), Kind: Command, State: NotBuilt,
		Names: "commitShardRemoval commitTransitionToDedicatedConfigServer getTransitionToDedicatedConfigServerStatus " +
			"shardDrainingStatus startShardDraining startTransitionToDedicatedConfigServer stopShardDraining stopTransitionToDedicatedConfigServer"},
	{Since: At(8, 3, 0), Kind: Expression,
		Names: "$createObjectId $deserializeEJSON $hash $hexHash $serializeEJSON $subtype $toArray $toObject"},
	{Since: At(8, 3, 0), Kind: Window, Names: "$mergeObjects"},
	{Since: At(8, 3, 0), Kind: Argument, Names: "$convert.base $filter.arrayIndexAs $map.arrayIndexAs $reduce.arrayIndexAs"},
	{Since: At(8, 3, 0), Kind: Variable, Names: "$$IDX"},

	{Since: At(9, 0, 0), Kind: Argument, State: NotBuilt,
		Names: "aggregate.querySettings distinct.querySettings find.querySettings usersInfo.authenticatedMechanism"},
	{Since: At(9, 0, 0), Kind: Value, State: NotBuilt, Names: "create.validationLevel=constraint"},
	{Since: At(9, 0, 0), Kind: Parameter, Names: "externalClientBaseBackoffMS"},
	{Since: At(9, 0, 0), Kind: Parameter, State: NotBuilt,
		Names: "maxConcurrentMultiDocumentTransactions sessionCatalogPartitions useInternalAuthzForX509"},
	{Since: At(9, 0, 0), Kind: QueryType, Names: "prefix substring suffix"},
	{Until: At(9, 0, 0), Kind: Reply, Names: "listCollections.system.buckets"},
}
