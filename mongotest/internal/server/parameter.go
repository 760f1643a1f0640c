package server

import (
	"fmt"
	"math"
	"strings"
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// Parameters are the server parameters that can be read and set, with their defaults.
var Parameters = map[string]bson.RawValue{
	"transactionLifetimeLimitSeconds":                          bsondoc.Int32Value(60),
	"maxTransactionLockRequestTimeoutMillis":                   bsondoc.Int32Value(5),
	"localLogicalSessionTimeoutMinutes":                        bsondoc.Int32Value(30),
	"cursorTimeoutMillis":                                      bsondoc.Int64Value(600000),
	"allowDiskUseByDefault":                                    bsondoc.BoolValue(true),
	"KeysRotationIntervalSec":                                  bsondoc.Int32Value(7776000),
	"ShardingTaskExecutorPoolReplicaSetMatching":               bsondoc.StringValue("automatic"),
	serviceDescriptor:                                          bsondoc.StringValue(""),
	"ttlMonitorEnabled":                                        bsondoc.BoolValue(true),
	"ttlMonitorSleepSecs":                                      bsondoc.Int32Value(60),
	"enableTestCommands":                                       bsondoc.BoolValue(true),
	"logicalSessionRefreshMillis":                              bsondoc.Int32Value(300000),
	"maxBSONDepth":                                             bsondoc.Int32Value(200),
	"internalQueryMaxBlockingSortMemoryUsageBytes":             bsondoc.Int32Value(104857600),
	"internalQueryFacetBufferSizeBytes":                        bsondoc.Int32Value(104857600),
	"internalQueryFacetMaxOutputDocSizeBytes":                  bsondoc.Int32Value(104857600),
	"internalLookupStageIntermediateDocumentMaxSizeBytes":      bsondoc.Int32Value(104857600),
	"internalDocumentSourceGroupMaxMemoryBytes":                bsondoc.Int32Value(104857600),
	"internalQueryProhibitBlockingMergeOnMongoS":               bsondoc.BoolValue(false),
	"internalQueryMaxAddToSetBytes":                            bsondoc.Int32Value(104857600),
	"internalDocumentSourceSetWindowFieldsMaxMemoryBytes":      bsondoc.Int32Value(104857600),
	"internalQueryFrameworkControl":                            bsondoc.StringValue("trySbeRestricted"),
	"internalQueryPlannerIgnoreIndexWithCollationForRegex":     bsondoc.BoolValue(true),
	"internalQueryPlanEvaluationWorks":                         bsondoc.Int32Value(10000),
	"internalQueryPlanEvaluationCollFraction":                  bsondoc.DoubleValue(0.3),
	"internalQueryPlanEvaluationMaxResults":                    bsondoc.Int32Value(101),
	"notablescan":                                              bsondoc.BoolValue(false),
	"logLevel":                                                 bsondoc.Int32Value(0),
	"quiet":                                                    bsondoc.BoolValue(false),
	"journalCommitInterval":                                    bsondoc.Int32Value(0),
	"syncdelay":                                                bsondoc.DoubleValue(60),
	"minSnapshotHistoryWindowInSeconds":                        bsondoc.Int32Value(300),
	"requireApiVersion":                                        bsondoc.BoolValue(false),
	"acceptApiVersion2":                                        bsondoc.BoolValue(true),
	"shutdownTimeoutMillisForSignaledShutdown":                 bsondoc.Int32Value(100),
	"watchdogPeriodSeconds":                                    bsondoc.Int32Value(-1),
	"waitForSecondaryBeforeNoopWriteMS":                        bsondoc.Int32Value(10),
	"periodicNoopIntervalSecs":                                 bsondoc.Int32Value(10),
	"writePeriodicNoops":                                       bsondoc.BoolValue(true),
	"maxAcceptableLogicalClockDriftSecs":                       bsondoc.Int64Value(31536000),
	"allowRolesFromX509Certificates":                           bsondoc.BoolValue(true),
	"scramIterationCount":                                      bsondoc.Int32Value(10000),
	"scramSHA256IterationCount":                                bsondoc.Int32Value(15000),
	"clusterAuthMode":                                          bsondoc.StringValue("undefined"),
	"sslMode":                                                  bsondoc.StringValue("disabled"),
	"tlsMode":                                                  bsondoc.StringValue("disabled"),
	"featureFlagRevokeDirectShardOperations":                   bsondoc.BoolValue(false),
	"orphanCleanupDelaySecs":                                   bsondoc.Int32Value(900),
	"coordinateCommitReturnImmediatelyAfterPersistingDecision": bsondoc.BoolValue(false),
	baseBackoff:                                                bsondoc.Int32Value(0),
	rateLimiterOn:                                              bsondoc.BoolValue(false),
	rateLimiterRate:                                            bsondoc.Int32Value(math.MaxInt32),
	rateLimiterBurst:                                           bsondoc.DoubleValue(math.MaxFloat64),
	rateLimiterQueue:                                           bsondoc.Int32Value(0),
	sampleExpiration:                                           bsondoc.Int32Value(7 * 24 * 3600),
	CharacteristicSize:                                         bsondoc.Int64Value(10_000_000),
	CommonValues:                                               bsondoc.Int32Value(5),
	KeyRanges:                                                  bsondoc.Int32Value(100),
	MonotonicThreshold:                                         bsondoc.DoubleValue(0.7),
	queryStatsRate:                                             bsondoc.Int32Value(0),
	queryStatsSample:                                           bsondoc.DoubleValue(0),
	queryStatsSize:                                             bsondoc.StringValue("1%"),
}

// serviceDescriptor is what a service writes down that runs the server.
const serviceDescriptor = "automationServiceDescriptor"

// CheckText checks a value of a parameter that is a string.
func CheckText(name string, v bson.RawValue) error {
	s, ok := v.StringValue()
	switch {
	case !ok:
		return srverr.New(srverr.TypeMismatch, "The value of %s must be a string", name)
	case name == serviceDescriptor && len(s) > 64:
		return srverr.New(srverr.Overflow, "The value of %s must have at most 64 bytes", name)
	}
	return nil
}

// baseBackoff is what an overloaded server asks clients to begin their backoff with, in
// milliseconds; zero: nothing.
const baseBackoff = "externalClientBaseBackoffMS"

// Parameter returns a server parameter's value. It reports false for one that there is not in the
// node's version.
func (n *Node) Parameter(name string) (bson.RawValue, bool) {
	if !n.cfg.Version.Has(release.Parameter, name) {
		return bson.RawValue{}, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if name == LogVerbosity {
		return n.logVerbosity(), true
	}
	if v, ok := n.params[name]; ok {
		return v, true
	}
	v, ok := Parameters[name]
	return v, ok
}

// SetParameter sets a server parameter as the server's command line does. It also sets those that
// setParameter cannot change.
func (n *Node) SetParameter(name string, value any) error {
	old, ok := n.Parameter(name)
	if !ok {
		return fmt.Errorf("there is no server parameter %q", name)
	}
	v, err := bson.MarshalValue(value)
	if err != nil {
		return fmt.Errorf("server parameter %q: %w", name, err)
	}
	if name == LogVerbosity {
		return n.SetLogVerbosity(v)
	}
	if v.Type != old.Type && !(v.IsNumber() && old.IsNumber()) {
		return fmt.Errorf("server parameter %q cannot be %v", name, v)
	}
	if !checkParameter(name, v) {
		return fmt.Errorf("server parameter %q cannot be %v", name, v)
	}
	n.StoreParameter(name, v)
	return nil
}

// CheckParameter reports whether a parameter can have this value.
func (n *Node) CheckParameter(name string, v bson.RawValue) bool { return checkParameter(name, v) }

func (n *Node) IntParameter(name string) int64 {
	v, _ := n.Parameter(name)
	i, _ := args.NumberOf(v)
	return i
}

func (n *Node) StoreParameter(name string, v bson.RawValue) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.params == nil {
		n.params = map[string]bson.RawValue{}
	}
	v.Value = append([]byte(nil), v.Value...)
	if name == rateLimiterOn && v.AsBool() {
		n.establishment.restart()
	}
	n.params[name] = v
	n.queryStats.configure(name, v)
}

// ClusterParameters are the parameters of a whole deployment, with their defaults.
var ClusterParameters = map[string]bson.Raw{
	"changeStreamOptions": bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("preAndPostImages", bsondoc.Build(func(d *bsondoc.Builder) { d.Str("expireAfterSeconds", "off") }))
	}),
	// What these two decide cannot be seen here: no stream ends by its age, and no chunk moves in
	// the middle of an update.
	"changeStreams":                     bsondoc.Of("expireAfterSeconds", int64(3600)),
	"pauseMigrationsDuringMultiUpdates": bsondoc.Of("enabled", false),
	"defaultMaxTimeMS":                  bsondoc.Of("readOperations", int64(0)),
	// What a client encrypts, its own library limits.
	"fleDisableSubstringPreviewParameterLimits": bsondoc.Of("shouldOverride", false),
}

// ClusterParameter returns the value of a parameter of the whole deployment, nil if there is none
// of this name.
func (d *Data) ClusterParameter(name string) bson.Raw {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.parameters[name]; ok {
		return v
	}
	return ClusterParameters[name]
}

// SetClusterParameter keeps a copy of the value, with the time at which it was set.
func (d *Data) SetClusterParameter(name string, doc bson.Raw) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parameters == nil {
		d.parameters = map[string]bson.Raw{}
	}
	at, value := bson.BeginDocument(nil)
	value = bson.AppendTimestamp(value, "clusterParameterTime", d.Clock.Tick())
	value = append(value, doc.Elements()...)
	d.parameters[strings.Clone(name)] = bson.EndDocument(value, at) // the name lies in the connection's buffer
}

// Always is the DefaultMaxTime of a command that it limits whatever its arguments are.
func Always(*Request) bool { return true }

// defaultMaxTime returns how many milliseconds the parameter defaultMaxTimeMS gives the request,
// which has no limit of its own.
func (r *Request) defaultMaxTime() int64 {
	if r.Cmd.DefaultMaxTime == nil || !r.Cmd.DefaultMaxTime(r) ||
		!r.Version().Has(release.Parameter, "defaultMaxTimeMS") {
		return 0
	}
	ms, _ := r.Node.data.ClusterParameter("defaultMaxTimeMS").Lookup("readOperations").AsInt64()
	return ms
}

// ImageExpired reports whether the server has dropped the pre-image of a change that was made at
// this time.
func (d *Data) ImageExpired(changed time.Time) bool {
	after, ok := d.ClusterParameter("changeStreamOptions").Lookup("preAndPostImages", "expireAfterSeconds").AsInt64()
	return ok && d.Clock.Now().Sub(changed) > time.Duration(min(after, 1<<31))*time.Second
}
