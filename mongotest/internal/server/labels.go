package server

import "allium/mongotest/internal/srverr"

// Categories of error codes, as the server has them.
var (
	notPrimaryCodes = codeSet(srverr.NotWritablePrimary, srverr.NotPrimaryNoSecondaryOk, srverr.NotPrimaryOrSecondary,
		srverr.InterruptedDueToReplStateChange, srverr.PrimarySteppedDown)
	networkCodes   = codeSet(srverr.HostUnreachable, srverr.HostNotFound, srverr.NetworkTimeout, srverr.SocketException)
	retriableCodes = codeSet(srverr.InterruptedAtShutdown, srverr.InterruptedDueToReplStateChange,
		srverr.NotWritablePrimary,
		srverr.NotPrimaryNoSecondaryOk, srverr.NotPrimaryOrSecondary, srverr.PrimarySteppedDown,
		srverr.ShutdownInProgress,
		srverr.HostNotFound, srverr.HostUnreachable, srverr.NetworkTimeout, srverr.SocketException,
		srverr.ExceededTimeLimit)
	snapshotCodes = codeSet(srverr.SnapshotTooOld, srverr.SnapshotUnavailable, srverr.StaleChunkHistory,
		srverr.MigrationConflict)
	retargetCodes  = codeSet(srverr.StaleConfig, srverr.StaleShardVersion, srverr.StaleEpoch)
	transientCodes = codeSet(srverr.WriteConflict, srverr.LockTimeout, srverr.PreparedTransactionInProgress,
		srverr.ShardInvalidatedForTargeting, srverr.StaleDbVersion)
	endOfStreamCode = codeSet(srverr.ChangeStreamFatalError, srverr.ChangeStreamHistoryLost)
)

func codeSet(codes ...int32) map[int32]bool {
	m := map[int32]bool{}
	for _, c := range codes {
		m[c] = true
	}
	return m
}

// labels returns the errorLabels of the reply. code is 0 for a command that succeeded (but may have
// a write concern error).
func (r *Request) labels(code int32, own []string) []string {
	if code == 0 && r.wcCode == 0 {
		return own
	}
	labels := own[:len(own):len(own)]
	ends := r.Cmd != nil && r.Cmd.Txn == TxnEnds
	inTxn := r.InTxn() && r.HasTxnNumber && r.Session != nil
	switch {
	case inTxn && code != 0 && r.transient(code, ends):
		labels = append(labels, "TransientTransactionError")
	case (r.IsRetryable() || inTxn && ends) && r.Node.retriable(code, r.wcCode):
		labels = append(labels, "RetryableWriteError")
	}
	switch {
	case code == 0 || r.Cmd == nil:
	case endOfStreamCode[code]:
		if r.Version().AtLeast(4, 4) {
			labels = append(labels, "NonResumableChangeStreamError")
		}
	case r.ChangeStream && r.wcCode == 0 && r.Version().AtLeast(4, 4) &&
		(retriableCodes[code] || networkCodes[code] || retargetCodes[code] || code == srverr.RetryChangeStream ||
			code == srverr.FailedToSatisfyReadPreference):
		labels = append(labels, "ResumableChangeStreamError")
	}
	return labels
}

func (r *Request) transient(code int32, ends bool) bool {
	if transientCodes[code] || snapshotCodes[code] || retargetCodes[code] {
		return true
	}
	if ends {
		return code == srverr.NoSuchTransaction && r.wcCode == 0
	}
	return retriableCodes[code] || code == srverr.NoSuchTransaction
}

// retriable reports whether a reply with these codes gets the RetryableWriteError label, which
// servers add since 4.4.
func (n *Node) retriable(code, wcCode int32) bool {
	if !n.cfg.Version.AtLeast(4, 4) || n.role == Mongos {
		return false // a mongos leaves that to the shards
	}
	return retriableCodes[code] || retriableCodes[wcCode]
}

// Stops reports whether an error ends the whole command rather than one statement of it.
func (r *Request) Stops(err *srverr.Error) bool {
	switch err.Code {
	case srverr.NotWritablePrimary, srverr.InterruptedAtShutdown, srverr.InterruptedDueToReplStateChange,
		srverr.PrimarySteppedDown,
		srverr.NotPrimaryOrSecondary, srverr.NotPrimaryNoSecondaryOk:
		return true
	}
	return r.hangUp || r.InTxn() && r.transient(err.Code, false)
}
