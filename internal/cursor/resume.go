package cursor

import (
	"errors"

	"allium/internal/session"
	"allium/mongoerr"
)

// resumes reports whether a change stream must resume after its getMore ended in err
// (specification: Change Streams, "Resumable Error"). wireVersion is that of the connection that
// the getMore went over.
func resumes(err error, wireVersion int32) bool {
	var server *mongoerr.ServerError
	if !errors.As(err, &server) {
		// The network, or time. What follows is not an error of the getMore: it was not even tried.
		return !errors.Is(err, mongoerr.ErrClientClosed) && !errors.Is(err, session.ErrEnded) && !errors.Is(err, session.ErrConcurrent)
	}
	switch {
	case server.Code == codeCursorNotFound:
		return true
	case wireVersion >= wireResumableLabel:
		return server.HasLabel(mongoerr.LabelResumableChangeStream)
	}
	return isResumableCode(server.Code)
}

// wireResumableLabel is the version of servers from 4.4 on, which label what can be resumed.
const wireResumableLabel = 9

// isResumableCode reports whether Change Streams lists the code for servers that do not label
// errors.
func isResumableCode(code int32) bool {
	switch code {
	case 6, // HostUnreachable
		7,     // HostNotFound
		63,    // StaleShardVersion
		89,    // NetworkTimeout
		91,    // ShutdownInProgress
		133,   // FailedToSatisfyReadPreference
		150,   // StaleEpoch
		189,   // PrimarySteppedDown
		234,   // RetryChangeStream
		262,   // ExceededTimeLimit
		9001,  // SocketException
		10107, // NotWritablePrimary
		11600, // InterruptedAtShutdown
		11602, // InterruptedDueToReplStateChange
		13388, // StaleConfig
		13435, // NotPrimaryNoSecondaryOk
		13436: // NotPrimaryOrSecondary
		return true
	}
	return false
}
