package srverr

// The error codes that have a name. The numbers and names are part of the wire protocol (the
// manual's page "Error Codes").
const (
	InternalError                                               int32 = 1
	BadValue                                                    int32 = 2
	NoSuchKey                                                   int32 = 4
	GraphContainsCycle                                          int32 = 5
	HostUnreachable                                             int32 = 6
	HostNotFound                                                int32 = 7
	UnknownError                                                int32 = 8
	FailedToParse                                               int32 = 9
	CannotMutateObject                                          int32 = 10
	UserNotFound                                                int32 = 11
	UnsupportedFormat                                           int32 = 12
	Unauthorized                                                int32 = 13
	TypeMismatch                                                int32 = 14
	Overflow                                                    int32 = 15
	InvalidLength                                               int32 = 16
	ProtocolError                                               int32 = 17
	AuthenticationFailed                                        int32 = 18
	CannotReuseObject                                           int32 = 19
	IllegalOperation                                            int32 = 20
	EmptyArrayOperation                                         int32 = 21
	InvalidBSON                                                 int32 = 22
	AlreadyInitialized                                          int32 = 23
	LockTimeout                                                 int32 = 24
	RemoteValidationError                                       int32 = 25
	NamespaceNotFound                                           int32 = 26
	IndexNotFound                                               int32 = 27
	PathNotViable                                               int32 = 28
	NonExistentPath                                             int32 = 29
	InvalidPath                                                 int32 = 30
	RoleNotFound                                                int32 = 31
	RolesNotRelated                                             int32 = 32
	PrivilegeNotFound                                           int32 = 33
	CannotBackfillArray                                         int32 = 34
	UserModificationFailed                                      int32 = 35
	RemoteChangeDetected                                        int32 = 36
	FileRenameFailed                                            int32 = 37
	FileNotOpen                                                 int32 = 38
	FileStreamFailed                                            int32 = 39
	ConflictingUpdateOperators                                  int32 = 40
	FileAlreadyOpen                                             int32 = 41
	LogWriteFailed                                              int32 = 42
	CursorNotFound                                              int32 = 43
	UserDataInconsistent                                        int32 = 45
	LockBusy                                                    int32 = 46
	NoMatchingDocument                                          int32 = 47
	NamespaceExists                                             int32 = 48
	InvalidRoleModification                                     int32 = 49
	MaxTimeMSExpired                                            int32 = 50
	ManualInterventionRequired                                  int32 = 51
	DollarPrefixedFieldName                                     int32 = 52
	InvalidIdField                                              int32 = 53
	NotSingleValueField                                         int32 = 54
	InvalidDBRef                                                int32 = 55
	EmptyFieldName                                              int32 = 56
	DottedFieldName                                             int32 = 57
	RoleModificationFailed                                      int32 = 58
	CommandNotFound                                             int32 = 59
	ShardKeyNotFound                                            int32 = 61
	OplogOperationUnsupported                                   int32 = 62
	StaleShardVersion                                           int32 = 63
	WriteConcernFailed                                          int32 = 64
	MultipleErrorsOccurred                                      int32 = 65
	ImmutableField                                              int32 = 66
	CannotCreateIndex                                           int32 = 67
	IndexAlreadyExists                                          int32 = 68
	AuthSchemaIncompatible                                      int32 = 69
	ShardNotFound                                               int32 = 70
	ReplicaSetNotFound                                          int32 = 71
	InvalidOptions                                              int32 = 72
	InvalidNamespace                                            int32 = 73
	NodeNotFound                                                int32 = 74
	WriteConcernLegacyOK                                        int32 = 75
	NoReplicationEnabled                                        int32 = 76
	OperationIncomplete                                         int32 = 77
	CommandResultSchemaViolation                                int32 = 78
	UnknownReplWriteConcern                                     int32 = 79
	RoleDataInconsistent                                        int32 = 80
	NoMatchParseContext                                         int32 = 81
	NoProgressMade                                              int32 = 82
	RemoteResultsUnavailable                                    int32 = 83
	IndexOptionsConflict                                        int32 = 85
	IndexKeySpecsConflict                                       int32 = 86
	CannotSplit                                                 int32 = 87
	NetworkTimeout                                              int32 = 89
	CallbackCanceled                                            int32 = 90
	ShutdownInProgress                                          int32 = 91
	SecondaryAheadOfPrimary                                     int32 = 92
	InvalidReplicaSetConfig                                     int32 = 93
	NotYetInitialized                                           int32 = 94
	NotSecondary                                                int32 = 95
	OperationFailed                                             int32 = 96
	NoProjectionFound                                           int32 = 97
	DBPathInUse                                                 int32 = 98
	UnsatisfiableWriteConcern                                   int32 = 100
	OutdatedClient                                              int32 = 101
	IncompatibleAuditMetadata                                   int32 = 102
	NewReplicaSetConfigurationIncompatible                      int32 = 103
	NodeNotElectable                                            int32 = 104
	IncompatibleShardingMetadata                                int32 = 105
	DistributedClockSkewed                                      int32 = 106
	LockFailed                                                  int32 = 107
	InconsistentReplicaSetNames                                 int32 = 108
	ConfigurationInProgress                                     int32 = 109
	CannotInitializeNodeWithData                                int32 = 110
	NotExactValueField                                          int32 = 111
	WriteConflict                                               int32 = 112
	InitialSyncFailure                                          int32 = 113
	InitialSyncOplogSourceMissing                               int32 = 114
	CommandNotSupported                                         int32 = 115
	DocTooLargeForCapped                                        int32 = 116
	ConflictingOperationInProgress                              int32 = 117
	NamespaceNotSharded                                         int32 = 118
	InvalidSyncSource                                           int32 = 119
	OplogStartMissing                                           int32 = 120
	DocumentValidationFailure                                   int32 = 121
	NotAReplicaSet                                              int32 = 123
	IncompatibleElectionProtocol                                int32 = 124
	CommandFailed                                               int32 = 125
	RPCProtocolNegotiationFailed                                int32 = 126
	UnrecoverableRollbackError                                  int32 = 127
	LockNotFound                                                int32 = 128
	LockStateChangeFailed                                       int32 = 129
	SymbolNotFound                                              int32 = 130
	FailedToSatisfyReadPreference                               int32 = 133
	ReadConcernMajorityNotAvailableYet                          int32 = 134
	StaleTerm                                                   int32 = 135
	CappedPositionLost                                          int32 = 136
	IncompatibleShardingConfigVersion                           int32 = 137
	RemoteOplogStale                                            int32 = 138
	JSInterpreterFailure                                        int32 = 139
	InvalidSSLConfiguration                                     int32 = 140
	SSLHandshakeFailed                                          int32 = 141
	JSUncatchableError                                          int32 = 142
	CursorInUse                                                 int32 = 143
	IncompatibleCatalogManager                                  int32 = 144
	PooledConnectionsDropped                                    int32 = 145
	ExceededMemoryLimit                                         int32 = 146
	ZLibError                                                   int32 = 147
	ReadConcernMajorityNotEnabled                               int32 = 148
	NoConfigPrimary                                             int32 = 149
	StaleEpoch                                                  int32 = 150
	OperationCannotBeBatched                                    int32 = 151
	OplogOutOfOrder                                             int32 = 152
	ChunkTooBig                                                 int32 = 153
	InconsistentShardIdentity                                   int32 = 154
	CannotApplyOplogWhilePrimary                                int32 = 155
	CanRepairToDowngrade                                        int32 = 157
	MustUpgrade                                                 int32 = 158
	DurationOverflow                                            int32 = 159
	MaxStalenessOutOfRange                                      int32 = 160
	IncompatibleCollationVersion                                int32 = 161
	CollectionIsEmpty                                           int32 = 162
	ZoneStillInUse                                              int32 = 163
	InitialSyncActive                                           int32 = 164
	ViewDepthLimitExceeded                                      int32 = 165
	CommandNotSupportedOnView                                   int32 = 166
	OptionNotSupportedOnView                                    int32 = 167
	InvalidPipelineOperator                                     int32 = 168
	CommandOnShardedViewNotSupportedOnMongod                    int32 = 169
	TooManyMatchingDocuments                                    int32 = 170
	CannotIndexParallelArrays                                   int32 = 171
	TransportSessionClosed                                      int32 = 172
	TransportSessionNotFound                                    int32 = 173
	TransportSessionUnknown                                     int32 = 174
	QueryPlanKilled                                             int32 = 175
	FileOpenFailed                                              int32 = 176
	ZoneNotFound                                                int32 = 177
	RangeOverlapConflict                                        int32 = 178
	WindowsPdhError                                             int32 = 179
	BadPerfCounterPath                                          int32 = 180
	AmbiguousIndexKeyPattern                                    int32 = 181
	InvalidViewDefinition                                       int32 = 182
	ClientMetadataMissingField                                  int32 = 183
	ClientMetadataAppNameTooLarge                               int32 = 184
	ClientMetadataDocumentTooLarge                              int32 = 185
	ClientMetadataCannotBeMutated                               int32 = 186
	LinearizableReadConcernError                                int32 = 187
	IncompatibleServerVersion                                   int32 = 188
	PrimarySteppedDown                                          int32 = 189
	MasterSlaveConnectionFailure                                int32 = 190
	FailPointEnabled                                            int32 = 192
	NoShardingEnabled                                           int32 = 193
	BalancerInterrupted                                         int32 = 194
	ViewPipelineMaxSizeExceeded                                 int32 = 195
	InvalidIndexSpecificationOption                             int32 = 197
	ReplicaSetMonitorRemoved                                    int32 = 199
	ChunkRangeCleanupPending                                    int32 = 200
	CannotBuildIndexKeys                                        int32 = 201
	NetworkInterfaceExceededTimeLimit                           int32 = 202
	ShardingStateNotInitialized                                 int32 = 203
	TimeProofMismatch                                           int32 = 204
	ClusterTimeFailsRateLimiter                                 int32 = 205
	NoSuchSession                                               int32 = 206
	InvalidUUID                                                 int32 = 207
	TooManyLocks                                                int32 = 208
	StaleClusterTime                                            int32 = 209
	CannotVerifyAndSignLogicalTime                              int32 = 210
	KeyNotFound                                                 int32 = 211
	IncompatibleRollbackAlgorithm                               int32 = 212
	DuplicateSession                                            int32 = 213
	AuthenticationRestrictionUnmet                              int32 = 214
	DatabaseDropPending                                         int32 = 215
	ElectionInProgress                                          int32 = 216
	IncompleteTransactionHistory                                int32 = 217
	UpdateOperationFailed                                       int32 = 218
	FTDCPathNotSet                                              int32 = 219
	FTDCPathAlreadySet                                          int32 = 220
	IndexModified                                               int32 = 221
	CloseChangeStream                                           int32 = 222
	IllegalOpMsgFlag                                            int32 = 223
	QueryFeatureNotAllowed                                      int32 = 224
	TransactionTooOld                                           int32 = 225
	AtomicityFailure                                            int32 = 226
	CannotImplicitlyCreateCollection                            int32 = 227
	SessionTransferIncomplete                                   int32 = 228
	MustDowngrade                                               int32 = 229
	DNSHostNotFound                                             int32 = 230
	DNSProtocolError                                            int32 = 231
	MaxSubPipelineDepthExceeded                                 int32 = 232
	TooManyDocumentSequences                                    int32 = 233
	RetryChangeStream                                           int32 = 234
	InternalErrorNotSupported                                   int32 = 235
	ForTestingErrorExtraInfo                                    int32 = 236
	CursorKilled                                                int32 = 237
	NotImplemented                                              int32 = 238
	SnapshotTooOld                                              int32 = 239
	DNSRecordTypeMismatch                                       int32 = 240
	ConversionFailure                                           int32 = 241
	CannotCreateCollection                                      int32 = 242
	IncompatibleWithUpgradedServer                              int32 = 243
	BrokenPromise                                               int32 = 245
	SnapshotUnavailable                                         int32 = 246
	ProducerConsumerQueueBatchTooLarge                          int32 = 247
	ProducerConsumerQueueEndClosed                              int32 = 248
	StaleDbVersion                                              int32 = 249
	StaleChunkHistory                                           int32 = 250
	NoSuchTransaction                                           int32 = 251
	ReentrancyNotAllowed                                        int32 = 252
	FreeMonHttpInFlight                                         int32 = 253
	FreeMonHttpTemporaryFailure                                 int32 = 254
	FreeMonHttpPermanentFailure                                 int32 = 255
	TransactionCommitted                                        int32 = 256
	TransactionTooLarge                                         int32 = 257
	UnknownFeatureCompatibilityVersion                          int32 = 258
	KeyedExecutorRetry                                          int32 = 259
	InvalidResumeToken                                          int32 = 260
	TooManyLogicalSessions                                      int32 = 261
	ExceededTimeLimit                                           int32 = 262
	OperationNotSupportedInTransaction                          int32 = 263
	TooManyFilesOpen                                            int32 = 264
	OrphanedRangeCleanUpFailed                                  int32 = 265
	FailPointSetFailed                                          int32 = 266
	PreparedTransactionInProgress                               int32 = 267
	CannotBackup                                                int32 = 268
	DataModifiedByRepair                                        int32 = 269
	RepairedReplicaSetNode                                      int32 = 270
	JSInterpreterFailureWithStack                               int32 = 271
	MigrationConflict                                           int32 = 272
	ProducerConsumerQueueProducerQueueDepthExceeded             int32 = 273
	ProducerConsumerQueueConsumed                               int32 = 274
	ExchangePassthrough                                         int32 = 275
	IndexBuildAborted                                           int32 = 276
	AlarmAlreadyFulfilled                                       int32 = 277
	UnsatisfiableCommitQuorum                                   int32 = 278
	ClientDisconnect                                            int32 = 279
	ChangeStreamFatalError                                      int32 = 280
	TransactionCoordinatorSteppingDown                          int32 = 281
	TransactionCoordinatorReachedAbortDecision                  int32 = 282
	WouldChangeOwningShard                                      int32 = 283
	ForTestingErrorExtraInfoWithExtraInfoInNamespace            int32 = 284
	IndexBuildAlreadyInProgress                                 int32 = 285
	ChangeStreamHistoryLost                                     int32 = 286
	TransactionCoordinatorDeadlineTaskCanceled                  int32 = 287
	ChecksumMismatch                                            int32 = 288
	WaitForMajorityServiceEarlierOpTimeAvailable                int32 = 289
	TransactionExceededLifetimeLimitSeconds                     int32 = 290
	NoQueryExecutionPlans                                       int32 = 291
	QueryExceededMemoryLimitNoDiskUseAllowed                    int32 = 292
	InvalidSeedList                                             int32 = 293
	InvalidTopologyType                                         int32 = 294
	InvalidHeartBeatFrequency                                   int32 = 295
	TopologySetNameRequired                                     int32 = 296
	HierarchicalAcquisitionLevelViolation                       int32 = 297
	InvalidServerType                                           int32 = 298
	OCSPCertificateStatusRevoked                                int32 = 299
	RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist int32 = 300
	DataCorruptionDetected                                      int32 = 301
	OCSPCertificateStatusUnknown                                int32 = 302
	SplitHorizonChange                                          int32 = 303
	ShardInvalidatedForTargeting                                int32 = 304
	ReadThroughCacheLookupCanceled                              int32 = 306
	RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist       int32 = 307
	CurrentConfigNotCommittedYet                                int32 = 308
	ExhaustCommandFinished                                      int32 = 309
	PeriodicJobIsStopped                                        int32 = 310
	TransactionCoordinatorCanceled                              int32 = 311
	OperationIsKilledAndDelisted                                int32 = 312
	ResumableRangeDeleterDisabled                               int32 = 313
	ObjectIsBusy                                                int32 = 314
	TooStaleToSyncFromSource                                    int32 = 315
	QueryTrialRunCompleted                                      int32 = 316
	ConnectionPoolExpired                                       int32 = 317
	ForTestingOptionalErrorExtraInfo                            int32 = 318
	MovePrimaryInProgress                                       int32 = 319
	TenantMigrationConflict                                     int32 = 320
	TenantMigrationCommitted                                    int32 = 321
	APIVersionError                                             int32 = 322
	APIStrictError                                              int32 = 323
	APIDeprecationError                                         int32 = 324
	TenantMigrationAborted                                      int32 = 325
	OplogQueryMinTsMissing                                      int32 = 326
	NoSuchTenantMigration                                       int32 = 327
	TenantMigrationAccessBlockerShuttingDown                    int32 = 328
	TenantMigrationInProgress                                   int32 = 329
	SkipCommandExecution                                        int32 = 330
	FailedToRunWithReplyBuilder                                 int32 = 331
	CannotDowngrade                                             int32 = 332
	ServiceExecutorInShutdown                                   int32 = 333
	MechanismUnavailable                                        int32 = 334
	TenantMigrationForgotten                                    int32 = 335
	TimeseriesBucketCleared                                     int32 = 336
	AuthenticationAbandoned                                     int32 = 337
	ReshardCollectionInProgress                                 int32 = 338
	NoSuchReshardCollection                                     int32 = 339
	ReshardCollectionCommitted                                  int32 = 340
	ReshardCollectionAborted                                    int32 = 341
	ReshardingCriticalSectionTimeout                            int32 = 342
	ShardCannotRefreshDueToLocksHeld                            int32 = 343
	AuditingNotEnabled                                          int32 = 344
	RuntimeAuditConfigurationNotEnabled                         int32 = 345
	ChangeStreamInvalidated                                     int32 = 346
	APIMismatchError                                            int32 = 347
	ChunkMetadataInconsistency                                  int32 = 348
	ReshardCollectionInterruptedDueToFCVChange                  int32 = 350
	UnsupportedOpQueryCommand                                   int32 = 352
	NonRetryableTenantMigrationConflict                         int32 = 353
	LoadBalancerSupportMismatch                                 int32 = 354
	InterruptedDueToStorageChange                               int32 = 355
	TxnRetryCounterTooOld                                       int32 = 356
	InvalidBSONType                                             int32 = 357
	InternalTransactionNotSupported                             int32 = 358
	CannotConvertIndexToUnique                                  int32 = 359
	CollectionUUIDMismatch                                      int32 = 361
	TemporarilyUnavailable                                      int32 = 365
	DuplicateKeyId                                              int32 = 366
	EncounteredFLEPayloadWhileRedacting                         int32 = 367
	TransactionTooLargeForCache                                 int32 = 368
	LibmongocryptError                                          int32 = 369
	UserWritesBlocked                                           int32 = 371
	ReauthenticationRequired                                    int32 = 391
	QueryRejectedBySettings                                     int32 = 411
	IngressRequestRateLimitExceeded                             int32 = 462
	AtlasError                                                  int32 = 8000
	SocketException                                             int32 = 9001
	CannotGrowDocumentInCappedNamespace                         int32 = 10003
	LegacyNotPrimary                                            int32 = 10058
	NotWritablePrimary                                          int32 = 10107
	BSONObjectTooLarge                                          int32 = 10334
	DuplicateKey                                                int32 = 11000
	InterruptedAtShutdown                                       int32 = 11600
	Interrupted                                                 int32 = 11601
	InterruptedDueToReplStateChange                             int32 = 11602
	BackgroundOperationInProgressForDatabase                    int32 = 12586
	BackgroundOperationInProgressForNamespace                   int32 = 12587
	MergeStageNoMatchingDocument                                int32 = 13113
	DatabaseDifferCase                                          int32 = 13297
	StaleConfig                                                 int32 = 13388
	NotPrimaryNoSecondaryOk                                     int32 = 13435
	NotPrimaryOrSecondary                                       int32 = 13436
	OutOfDiskSpace                                              int32 = 14031
	KeyTooLong                                                  int32 = 17280
	SearchNotEnabled                                            int32 = 31082
	ClientMarkedKilled                                          int32 = 46841
	NotARetryableWriteCommand                                   int32 = 50768
)

// names holds the codeName of each code, as servers from 5.0 on spell them.
var names = map[int32]string{
	InternalError:                            "InternalError",
	BadValue:                                 "BadValue",
	NoSuchKey:                                "NoSuchKey",
	GraphContainsCycle:                       "GraphContainsCycle",
	HostUnreachable:                          "HostUnreachable",
	HostNotFound:                             "HostNotFound",
	UnknownError:                             "UnknownError",
	FailedToParse:                            "FailedToParse",
	CannotMutateObject:                       "CannotMutateObject",
	UserNotFound:                             "UserNotFound",
	UnsupportedFormat:                        "UnsupportedFormat",
	Unauthorized:                             "Unauthorized",
	TypeMismatch:                             "TypeMismatch",
	Overflow:                                 "Overflow",
	InvalidLength:                            "InvalidLength",
	ProtocolError:                            "ProtocolError",
	AuthenticationFailed:                     "AuthenticationFailed",
	CannotReuseObject:                        "CannotReuseObject",
	IllegalOperation:                         "IllegalOperation",
	EmptyArrayOperation:                      "EmptyArrayOperation",
	InvalidBSON:                              "InvalidBSON",
	AlreadyInitialized:                       "AlreadyInitialized",
	LockTimeout:                              "LockTimeout",
	RemoteValidationError:                    "RemoteValidationError",
	NamespaceNotFound:                        "NamespaceNotFound",
	IndexNotFound:                            "IndexNotFound",
	PathNotViable:                            "PathNotViable",
	NonExistentPath:                          "NonExistentPath",
	InvalidPath:                              "InvalidPath",
	RoleNotFound:                             "RoleNotFound",
	RolesNotRelated:                          "RolesNotRelated",
	PrivilegeNotFound:                        "PrivilegeNotFound",
	CannotBackfillArray:                      "CannotBackfillArray",
	UserModificationFailed:                   "UserModificationFailed",
	RemoteChangeDetected:                     "RemoteChangeDetected",
	FileRenameFailed:                         "FileRenameFailed",
	FileNotOpen:                              "FileNotOpen",
	FileStreamFailed:                         "FileStreamFailed",
	ConflictingUpdateOperators:               "ConflictingUpdateOperators",
	FileAlreadyOpen:                          "FileAlreadyOpen",
	LogWriteFailed:                           "LogWriteFailed",
	CursorNotFound:                           "CursorNotFound",
	UserDataInconsistent:                     "UserDataInconsistent",
	LockBusy:                                 "LockBusy",
	NoMatchingDocument:                       "NoMatchingDocument",
	NamespaceExists:                          "NamespaceExists",
	InvalidRoleModification:                  "InvalidRoleModification",
	MaxTimeMSExpired:                         "MaxTimeMSExpired",
	ManualInterventionRequired:               "ManualInterventionRequired",
	DollarPrefixedFieldName:                  "DollarPrefixedFieldName",
	InvalidIdField:                           "InvalidIdField",
	NotSingleValueField:                      "NotSingleValueField",
	InvalidDBRef:                             "InvalidDBRef",
	EmptyFieldName:                           "EmptyFieldName",
	DottedFieldName:                          "DottedFieldName",
	RoleModificationFailed:                   "RoleModificationFailed",
	CommandNotFound:                          "CommandNotFound",
	ShardKeyNotFound:                         "ShardKeyNotFound",
	OplogOperationUnsupported:                "OplogOperationUnsupported",
	StaleShardVersion:                        "StaleShardVersion",
	WriteConcernFailed:                       "WriteConcernFailed",
	MultipleErrorsOccurred:                   "MultipleErrorsOccurred",
	ImmutableField:                           "ImmutableField",
	CannotCreateIndex:                        "CannotCreateIndex",
	IndexAlreadyExists:                       "IndexAlreadyExists",
	AuthSchemaIncompatible:                   "AuthSchemaIncompatible",
	ShardNotFound:                            "ShardNotFound",
	ReplicaSetNotFound:                       "ReplicaSetNotFound",
	InvalidOptions:                           "InvalidOptions",
	InvalidNamespace:                         "InvalidNamespace",
	NodeNotFound:                             "NodeNotFound",
	WriteConcernLegacyOK:                     "WriteConcernLegacyOK",
	NoReplicationEnabled:                     "NoReplicationEnabled",
	OperationIncomplete:                      "OperationIncomplete",
	CommandResultSchemaViolation:             "CommandResultSchemaViolation",
	UnknownReplWriteConcern:                  "UnknownReplWriteConcern",
	RoleDataInconsistent:                     "RoleDataInconsistent",
	NoMatchParseContext:                      "NoMatchParseContext",
	NoProgressMade:                           "NoProgressMade",
	RemoteResultsUnavailable:                 "RemoteResultsUnavailable",
	IndexOptionsConflict:                     "IndexOptionsConflict",
	IndexKeySpecsConflict:                    "IndexKeySpecsConflict",
	CannotSplit:                              "CannotSplit",
	NetworkTimeout:                           "NetworkTimeout",
	CallbackCanceled:                         "CallbackCanceled",
	ShutdownInProgress:                       "ShutdownInProgress",
	SecondaryAheadOfPrimary:                  "SecondaryAheadOfPrimary",
	InvalidReplicaSetConfig:                  "InvalidReplicaSetConfig",
	NotYetInitialized:                        "NotYetInitialized",
	NotSecondary:                             "NotSecondary",
	OperationFailed:                          "OperationFailed",
	NoProjectionFound:                        "NoProjectionFound",
	DBPathInUse:                              "DBPathInUse",
	UnsatisfiableWriteConcern:                "UnsatisfiableWriteConcern",
	OutdatedClient:                           "OutdatedClient",
	IncompatibleAuditMetadata:                "IncompatibleAuditMetadata",
	NewReplicaSetConfigurationIncompatible:   "NewReplicaSetConfigurationIncompatible",
	NodeNotElectable:                         "NodeNotElectable",
	IncompatibleShardingMetadata:             "IncompatibleShardingMetadata",
	DistributedClockSkewed:                   "DistributedClockSkewed",
	LockFailed:                               "LockFailed",
	InconsistentReplicaSetNames:              "InconsistentReplicaSetNames",
	ConfigurationInProgress:                  "ConfigurationInProgress",
	CannotInitializeNodeWithData:             "CannotInitializeNodeWithData",
	NotExactValueField:                       "NotExactValueField",
	WriteConflict:                            "WriteConflict",
	InitialSyncFailure:                       "InitialSyncFailure",
	InitialSyncOplogSourceMissing:            "InitialSyncOplogSourceMissing",
	CommandNotSupported:                      "CommandNotSupported",
	DocTooLargeForCapped:                     "DocTooLargeForCapped",
	ConflictingOperationInProgress:           "ConflictingOperationInProgress",
	NamespaceNotSharded:                      "NamespaceNotSharded",
	InvalidSyncSource:                        "InvalidSyncSource",
	OplogStartMissing:                        "OplogStartMissing",
	DocumentValidationFailure:                "DocumentValidationFailure",
	NotAReplicaSet:                           "NotAReplicaSet",
	IncompatibleElectionProtocol:             "IncompatibleElectionProtocol",
	CommandFailed:                            "CommandFailed",
	RPCProtocolNegotiationFailed:             "RPCProtocolNegotiationFailed",
	UnrecoverableRollbackError:               "UnrecoverableRollbackError",
	LockNotFound:                             "LockNotFound",
	LockStateChangeFailed:                    "LockStateChangeFailed",
	SymbolNotFound:                           "SymbolNotFound",
	FailedToSatisfyReadPreference:            "FailedToSatisfyReadPreference",
	ReadConcernMajorityNotAvailableYet:       "ReadConcernMajorityNotAvailableYet",
	StaleTerm:                                "StaleTerm",
	CappedPositionLost:                       "CappedPositionLost",
	IncompatibleShardingConfigVersion:        "IncompatibleShardingConfigVersion",
	RemoteOplogStale:                         "RemoteOplogStale",
	JSInterpreterFailure:                     "JSInterpreterFailure",
	InvalidSSLConfiguration:                  "InvalidSSLConfiguration",
	SSLHandshakeFailed:                       "SSLHandshakeFailed",
	JSUncatchableError:                       "JSUncatchableError",
	CursorInUse:                              "CursorInUse",
	IncompatibleCatalogManager:               "IncompatibleCatalogManager",
	PooledConnectionsDropped:                 "PooledConnectionsDropped",
	ExceededMemoryLimit:                      "ExceededMemoryLimit",
	ZLibError:                                "ZLibError",
	ReadConcernMajorityNotEnabled:            "ReadConcernMajorityNotEnabled",
	NoConfigPrimary:                          "NoConfigPrimary",
	StaleEpoch:                               "StaleEpoch",
	OperationCannotBeBatched:                 "OperationCannotBeBatched",
	OplogOutOfOrder:                          "OplogOutOfOrder",
	ChunkTooBig:                              "ChunkTooBig",
	InconsistentShardIdentity:                "InconsistentShardIdentity",
	CannotApplyOplogWhilePrimary:             "CannotApplyOplogWhilePrimary",
	CanRepairToDowngrade:                     "CanRepairToDowngrade",
	MustUpgrade:                              "MustUpgrade",
	DurationOverflow:                         "DurationOverflow",
	MaxStalenessOutOfRange:                   "MaxStalenessOutOfRange",
	IncompatibleCollationVersion:             "IncompatibleCollationVersion",
	CollectionIsEmpty:                        "CollectionIsEmpty",
	ZoneStillInUse:                           "ZoneStillInUse",
	InitialSyncActive:                        "InitialSyncActive",
	ViewDepthLimitExceeded:                   "ViewDepthLimitExceeded",
	CommandNotSupportedOnView:                "CommandNotSupportedOnView",
	OptionNotSupportedOnView:                 "OptionNotSupportedOnView",
	InvalidPipelineOperator:                  "InvalidPipelineOperator",
	CommandOnShardedViewNotSupportedOnMongod: "CommandOnShardedViewNotSupportedOnMongod",
	TooManyMatchingDocuments:                 "TooManyMatchingDocuments",
	CannotIndexParallelArrays:                "CannotIndexParallelArrays",
	TransportSessionClosed:                   "TransportSessionClosed",
	TransportSessionNotFound:                 "TransportSessionNotFound",
	TransportSessionUnknown:                  "TransportSessionUnknown",
	QueryPlanKilled:                          "QueryPlanKilled",
	FileOpenFailed:                           "FileOpenFailed",
	ZoneNotFound:                             "ZoneNotFound",
	RangeOverlapConflict:                     "RangeOverlapConflict",
	WindowsPdhError:                          "WindowsPdhError",
	BadPerfCounterPath:                       "BadPerfCounterPath",
	AmbiguousIndexKeyPattern:                 "AmbiguousIndexKeyPattern",
	InvalidViewDefinition:                    "InvalidViewDefinition",
	ClientMetadataMissingField:               "ClientMetadataMissingField",
	ClientMetadataAppNameTooLarge:            "ClientMetadataAppNameTooLarge",
	ClientMetadataDocumentTooLarge:           "ClientMetadataDocumentTooLarge",
	ClientMetadataCannotBeMutated:            "ClientMetadataCannotBeMutated",
	LinearizableReadConcernError:             "LinearizableReadConcernError",
	IncompatibleServerVersion:                "IncompatibleServerVersion",
	PrimarySteppedDown:                       "PrimarySteppedDown",
	MasterSlaveConnectionFailure:             "MasterSlaveConnectionFailure",
	FailPointEnabled:                         "FailPointEnabled",
	NoShardingEnabled:                        "NoShardingEnabled",
	BalancerInterrupted:                      "BalancerInterrupted",
	ViewPipelineMaxSizeExceeded:              "ViewPipelineMaxSizeExceeded",
	InvalidIndexSpecificationOption:          "InvalidIndexSpecificationOption",
	ReplicaSetMonitorRemoved:                 "ReplicaSetMonitorRemoved",
	ChunkRangeCleanupPending:                 "ChunkRangeCleanupPending",
	CannotBuildIndexKeys:                     "CannotBuildIndexKeys",
	NetworkInterfaceExceededTimeLimit:        "NetworkInterfaceExceededTimeLimit",
	ShardingStateNotInitialized:              "ShardingStateNotInitialized",
	TimeProofMismatch:                        "TimeProofMismatch",
	ClusterTimeFailsRateLimiter:              "ClusterTimeFailsRateLimiter",
	NoSuchSession:                            "NoSuchSession",
	InvalidUUID:                              "InvalidUUID",
	TooManyLocks:                             "TooManyLocks",
	StaleClusterTime:                         "StaleClusterTime",
	CannotVerifyAndSignLogicalTime:           "CannotVerifyAndSignLogicalTime",
	KeyNotFound:                              "KeyNotFound",
	IncompatibleRollbackAlgorithm:            "IncompatibleRollbackAlgorithm",
	DuplicateSession:                         "DuplicateSession",
	AuthenticationRestrictionUnmet:           "AuthenticationRestrictionUnmet",
	DatabaseDropPending:                      "DatabaseDropPending",
	ElectionInProgress:                       "ElectionInProgress",
	IncompleteTransactionHistory:             "IncompleteTransactionHistory",
	UpdateOperationFailed:                    "UpdateOperationFailed",
	FTDCPathNotSet:                           "FTDCPathNotSet",
	FTDCPathAlreadySet:                       "FTDCPathAlreadySet",
	IndexModified:                            "IndexModified",
	CloseChangeStream:                        "CloseChangeStream",
	IllegalOpMsgFlag:                         "IllegalOpMsgFlag",
	QueryFeatureNotAllowed:                   "QueryFeatureNotAllowed",
	TransactionTooOld:                        "TransactionTooOld",
	AtomicityFailure:                         "AtomicityFailure",
	CannotImplicitlyCreateCollection:         "CannotImplicitlyCreateCollection",
	SessionTransferIncomplete:                "SessionTransferIncomplete",
	MustDowngrade:                            "MustDowngrade",
	DNSHostNotFound:                          "DNSHostNotFound",
	DNSProtocolError:                         "DNSProtocolError",
	MaxSubPipelineDepthExceeded:              "MaxSubPipelineDepthExceeded",
	TooManyDocumentSequences:                 "TooManyDocumentSequences",
	RetryChangeStream:                        "RetryChangeStream",
	InternalErrorNotSupported:                "InternalErrorNotSupported",
	ForTestingErrorExtraInfo:                 "ForTestingErrorExtraInfo",
	CursorKilled:                             "CursorKilled",
	NotImplemented:                           "NotImplemented",
	SnapshotTooOld:                           "SnapshotTooOld",
	DNSRecordTypeMismatch:                    "DNSRecordTypeMismatch",
	ConversionFailure:                        "ConversionFailure",
	CannotCreateCollection:                   "CannotCreateCollection",
	IncompatibleWithUpgradedServer:           "IncompatibleWithUpgradedServer",
	BrokenPromise:                            "BrokenPromise",
	SnapshotUnavailable:                      "SnapshotUnavailable",
	ProducerConsumerQueueBatchTooLarge:       "ProducerConsumerQueueBatchTooLarge",
	ProducerConsumerQueueEndClosed:           "ProducerConsumerQueueEndClosed",
	StaleDbVersion:                           "StaleDbVersion",
	StaleChunkHistory:                        "StaleChunkHistory",
	NoSuchTransaction:                        "NoSuchTransaction",
	ReentrancyNotAllowed:                     "ReentrancyNotAllowed",
	FreeMonHttpInFlight:                      "FreeMonHttpInFlight",
	FreeMonHttpTemporaryFailure:              "FreeMonHttpTemporaryFailure",
	FreeMonHttpPermanentFailure:              "FreeMonHttpPermanentFailure",
	TransactionCommitted:                     "TransactionCommitted",
	TransactionTooLarge:                      "TransactionTooLarge",
	UnknownFeatureCompatibilityVersion:       "UnknownFeatureCompatibilityVersion",
	KeyedExecutorRetry:                       "KeyedExecutorRetry",
	InvalidResumeToken:                       "InvalidResumeToken",
	TooManyLogicalSessions:                   "TooManyLogicalSessions",
	ExceededTimeLimit:                        "ExceededTimeLimit",
	OperationNotSupportedInTransaction:       "OperationNotSupportedInTransaction",
	TooManyFilesOpen:                         "TooManyFilesOpen",
	OrphanedRangeCleanUpFailed:               "OrphanedRangeCleanUpFailed",
	FailPointSetFailed:                       "FailPointSetFailed",
	PreparedTransactionInProgress:            "PreparedTransactionInProgress",
	CannotBackup:                             "CannotBackup",
	DataModifiedByRepair:                     "DataModifiedByRepair",
	RepairedReplicaSetNode:                   "RepairedReplicaSetNode",
	JSInterpreterFailureWithStack:            "JSInterpreterFailureWithStack",
	MigrationConflict:                        "MigrationConflict",
	ProducerConsumerQueueProducerQueueDepthExceeded:             "ProducerConsumerQueueProducerQueueDepthExceeded",
	ProducerConsumerQueueConsumed:                               "ProducerConsumerQueueConsumed",
	ExchangePassthrough:                                         "ExchangePassthrough",
	IndexBuildAborted:                                           "IndexBuildAborted",
	AlarmAlreadyFulfilled:                                       "AlarmAlreadyFulfilled",
	UnsatisfiableCommitQuorum:                                   "UnsatisfiableCommitQuorum",
	ClientDisconnect:                                            "ClientDisconnect",
	ChangeStreamFatalError:                                      "ChangeStreamFatalError",
	TransactionCoordinatorSteppingDown:                          "TransactionCoordinatorSteppingDown",
	TransactionCoordinatorReachedAbortDecision:                  "TransactionCoordinatorReachedAbortDecision",
	WouldChangeOwningShard:                                      "WouldChangeOwningShard",
	ForTestingErrorExtraInfoWithExtraInfoInNamespace:            "ForTestingErrorExtraInfoWithExtraInfoInNamespace",
	IndexBuildAlreadyInProgress:                                 "IndexBuildAlreadyInProgress",
	ChangeStreamHistoryLost:                                     "ChangeStreamHistoryLost",
	TransactionCoordinatorDeadlineTaskCanceled:                  "TransactionCoordinatorDeadlineTaskCanceled",
	ChecksumMismatch:                                            "ChecksumMismatch",
	WaitForMajorityServiceEarlierOpTimeAvailable:                "WaitForMajorityServiceEarlierOpTimeAvailable",
	TransactionExceededLifetimeLimitSeconds:                     "TransactionExceededLifetimeLimitSeconds",
	NoQueryExecutionPlans:                                       "NoQueryExecutionPlans",
	UserWritesBlocked:                                           "UserWritesBlocked",
	QueryRejectedBySettings:                                     "QueryRejectedBySettings",
	QueryExceededMemoryLimitNoDiskUseAllowed:                    "QueryExceededMemoryLimitNoDiskUseAllowed",
	InvalidSeedList:                                             "InvalidSeedList",
	InvalidTopologyType:                                         "InvalidTopologyType",
	InvalidHeartBeatFrequency:                                   "InvalidHeartBeatFrequency",
	TopologySetNameRequired:                                     "TopologySetNameRequired",
	HierarchicalAcquisitionLevelViolation:                       "HierarchicalAcquisitionLevelViolation",
	InvalidServerType:                                           "InvalidServerType",
	OCSPCertificateStatusRevoked:                                "OCSPCertificateStatusRevoked",
	RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist: "RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist",
	DataCorruptionDetected:                                      "DataCorruptionDetected",
	OCSPCertificateStatusUnknown:                                "OCSPCertificateStatusUnknown",
	SplitHorizonChange:                                          "SplitHorizonChange",
	ShardInvalidatedForTargeting:                                "ShardInvalidatedForTargeting",
	ReadThroughCacheLookupCanceled:                              "ReadThroughCacheLookupCanceled",
	RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist:       "RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist",
	CurrentConfigNotCommittedYet:                                "CurrentConfigNotCommittedYet",
	ExhaustCommandFinished:                                      "ExhaustCommandFinished",
	PeriodicJobIsStopped:                                        "PeriodicJobIsStopped",
	TransactionCoordinatorCanceled:                              "TransactionCoordinatorCanceled",
	OperationIsKilledAndDelisted:                                "OperationIsKilledAndDelisted",
	ResumableRangeDeleterDisabled:                               "ResumableRangeDeleterDisabled",
	ObjectIsBusy:                                                "ObjectIsBusy",
	TooStaleToSyncFromSource:                                    "TooStaleToSyncFromSource",
	QueryTrialRunCompleted:                                      "QueryTrialRunCompleted",
	ConnectionPoolExpired:                                       "ConnectionPoolExpired",
	ForTestingOptionalErrorExtraInfo:                            "ForTestingOptionalErrorExtraInfo",
	MovePrimaryInProgress:                                       "MovePrimaryInProgress",
	TenantMigrationConflict:                                     "TenantMigrationConflict",
	TenantMigrationCommitted:                                    "TenantMigrationCommitted",
	APIVersionError:                                             "APIVersionError",
	APIStrictError:                                              "APIStrictError",
	APIDeprecationError:                                         "APIDeprecationError",
	TenantMigrationAborted:                                      "TenantMigrationAborted",
	OplogQueryMinTsMissing:                                      "OplogQueryMinTsMissing",
	NoSuchTenantMigration:                                       "NoSuchTenantMigration",
	TenantMigrationAccessBlockerShuttingDown:                    "TenantMigrationAccessBlockerShuttingDown",
	TenantMigrationInProgress:                                   "TenantMigrationInProgress",
	SkipCommandExecution:                                        "SkipCommandExecution",
	FailedToRunWithReplyBuilder:                                 "FailedToRunWithReplyBuilder",
	CannotDowngrade:                                             "CannotDowngrade",
	ServiceExecutorInShutdown:                                   "ServiceExecutorInShutdown",
	MechanismUnavailable:                                        "MechanismUnavailable",
	TenantMigrationForgotten:                                    "TenantMigrationForgotten",
	TimeseriesBucketCleared:                                     "TimeseriesBucketCleared",
	AuthenticationAbandoned:                                     "AuthenticationAbandoned",
	ReshardCollectionInProgress:                                 "ReshardCollectionInProgress",
	NoSuchReshardCollection:                                     "NoSuchReshardCollection",
	ReshardCollectionCommitted:                                  "ReshardCollectionCommitted",
	ReshardCollectionAborted:                                    "ReshardCollectionAborted",
	ReshardingCriticalSectionTimeout:                            "ReshardingCriticalSectionTimeout",
	ShardCannotRefreshDueToLocksHeld:                            "ShardCannotRefreshDueToLocksHeld",
	AuditingNotEnabled:                                          "AuditingNotEnabled",
	RuntimeAuditConfigurationNotEnabled:                         "RuntimeAuditConfigurationNotEnabled",
	ChangeStreamInvalidated:                                     "ChangeStreamInvalidated",
	APIMismatchError:                                            "APIMismatchError",
	ChunkMetadataInconsistency:                                  "ChunkMetadataInconsistency",
	ReshardCollectionInterruptedDueToFCVChange:                  "ReshardCollectionInterruptedDueToFCVChange",
	UnsupportedOpQueryCommand:                                   "UnsupportedOpQueryCommand",
	NonRetryableTenantMigrationConflict:                         "NonRetryableTenantMigrationConflict",
	LoadBalancerSupportMismatch:                                 "LoadBalancerSupportMismatch",
	InterruptedDueToStorageChange:                               "InterruptedDueToStorageChange",
	TxnRetryCounterTooOld:                                       "TxnRetryCounterTooOld",
	InvalidBSONType:                                             "InvalidBSONType",
	InternalTransactionNotSupported:                             "InternalTransactionNotSupported",
	CannotConvertIndexToUnique:                                  "CannotConvertIndexToUnique",
	CollectionUUIDMismatch:                                      "CollectionUUIDMismatch",
	TemporarilyUnavailable:                                      "TemporarilyUnavailable",
	DuplicateKeyId:                                              "DuplicateKeyId",
	EncounteredFLEPayloadWhileRedacting:                         "EncounteredFLEPayloadWhileRedacting",
	TransactionTooLargeForCache:                                 "TransactionTooLargeForCache",
	LibmongocryptError:                                          "LibmongocryptError",
	ReauthenticationRequired:                                    "ReauthenticationRequired",
	IngressRequestRateLimitExceeded:                             "IngressRequestRateLimitExceeded",
	AtlasError:                                                  "AtlasError",
	SocketException:                                             "SocketException",
	CannotGrowDocumentInCappedNamespace:                         "CannotGrowDocumentInCappedNamespace",
	LegacyNotPrimary:                                            "LegacyNotPrimary",
	NotWritablePrimary:                                          "NotWritablePrimary",
	BSONObjectTooLarge:                                          "BSONObjectTooLarge",
	DuplicateKey:                                                "DuplicateKey",
	InterruptedAtShutdown:                                       "InterruptedAtShutdown",
	Interrupted:                                                 "Interrupted",
	InterruptedDueToReplStateChange:                             "InterruptedDueToReplStateChange",
	BackgroundOperationInProgressForDatabase:                    "BackgroundOperationInProgressForDatabase",
	BackgroundOperationInProgressForNamespace:                   "BackgroundOperationInProgressForNamespace",
	MergeStageNoMatchingDocument:                                "MergeStageNoMatchingDocument",
	DatabaseDifferCase:                                          "DatabaseDifferCase",
	StaleConfig:                                                 "StaleConfig",
	NotPrimaryNoSecondaryOk:                                     "NotPrimaryNoSecondaryOk",
	NotPrimaryOrSecondary:                                       "NotPrimaryOrSecondary",
	OutOfDiskSpace:                                              "OutOfDiskSpace",
	KeyTooLong:                                                  "KeyTooLong",
	SearchNotEnabled:                                            "SearchNotEnabled",
	ClientMarkedKilled:                                          "ClientMarkedKilled",
	NotARetryableWriteCommand:                                   "NotARetryableWriteCommand",
}
