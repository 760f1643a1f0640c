package server

import (
	"encoding/binary"
	"fmt"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
)

// parameters are the server parameters that can be read and set, with their defaults.
var parameters = map[string]bson.RawValue{
	"transactionLifetimeLimitSeconds":              int32Value(60),
	"maxTransactionLockRequestTimeoutMillis":       int32Value(5),
	"localLogicalSessionTimeoutMinutes":            int32Value(30),
	"cursorTimeoutMillis":                          bsondoc.Int64Value(600000),
	"ttlMonitorEnabled":                            bsondoc.BoolValue(true),
	"ttlMonitorSleepSecs":                          int32Value(60),
	"enableTestCommands":                           bsondoc.BoolValue(true),
	"logicalSessionRefreshMillis":                  int32Value(300000),
	"maxBSONDepth":                                 int32Value(200),
	"internalQueryMaxBlockingSortMemoryUsageBytes": int32Value(104857600),
	"notablescan":                                  bsondoc.BoolValue(false),
	"logLevel":                                     int32Value(0),
	"quiet":                                        bsondoc.BoolValue(false),
	"journalCommitInterval":                        int32Value(0),
	"syncdelay":                                    bsondoc.DoubleValue(60),
	"minSnapshotHistoryWindowInSeconds":            int32Value(300),
	"requireApiVersion":                            bsondoc.BoolValue(false),
	"acceptApiVersion2":                            bsondoc.BoolValue(true),
	"shutdownTimeoutMillisForSignaledShutdown":     int32Value(100),
	"watchdogPeriodSeconds":                        int32Value(-1),
	"waitForSecondaryBeforeNoopWriteMS":            int32Value(10),
	"periodicNoopIntervalSecs":                     int32Value(10),
	"writePeriodicNoops":                           bsondoc.BoolValue(true),
	"maxAcceptableLogicalClockDriftSecs":           bsondoc.Int64Value(31536000),
	"allowRolesFromX509Certificates":               bsondoc.BoolValue(true),
	"scramIterationCount":                          int32Value(10000),
	"scramSHA256IterationCount":                    int32Value(15000),
	"clusterAuthMode":                              bsondoc.StringValue("undefined"),
	"sslMode":                                      bsondoc.StringValue("disabled"),
	"tlsMode":                                      bsondoc.StringValue("disabled"),
	"featureFlagRevokeDirectShardOperations":       bsondoc.BoolValue(false),
	"coordinateCommitReturnImmediatelyAfterPersistingDecision": bsondoc.BoolValue(false),
}

// parameter returns a server parameter's value.
func (n *Node) parameter(name string) (bson.RawValue, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if v, ok := n.params[name]; ok {
		return v, true
	}
	v, ok := parameters[name]
	return v, ok
}

// SetParameter sets a server parameter as the server's command line does, the fixed ones included.
func (n *Node) SetParameter(name string, value any) error {
	old, ok := n.parameter(name)
	if !ok {
		return fmt.Errorf("there is no server parameter %q", name)
	}
	v, err := bson.MarshalValue(value)
	if err != nil {
		return fmt.Errorf("server parameter %q: %w", name, err)
	}
	if v.Type != old.Type && !(v.IsNumber() && old.IsNumber()) {
		return fmt.Errorf("server parameter %q cannot be %v", name, v)
	}
	n.setParameter(name, v)
	return nil
}

func (n *Node) intParameter(name string) int64 {
	v, _ := n.parameter(name)
	i, _ := arg.Number(v)
	return i
}

func (n *Node) setParameter(name string, v bson.RawValue) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.params == nil {
		n.params = map[string]bson.RawValue{}
	}
	v.Value = append([]byte(nil), v.Value...)
	n.params[name] = v
}

func int32Value(n int32) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt32, Value: binary.LittleEndian.AppendUint32(nil, uint32(n))}
}
