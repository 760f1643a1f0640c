package exec

import (
	"errors"

	"allium/internal/session"
	"allium/mongoerr"
)

// Resumes reports whether a change stream must resume after its getMore ended in err (specification: Change Streams, "Resumable
// Error"). wireVersion is that of the connection that the getMore went over.
func Resumes(err error, wireVersion int32) bool {
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

const (
	codeCursorNotFound = 43
	wireResumableLabel = 9 // servers since 4.4 label what can be resumed
)

// isResumableCode reports whether Change Streams lists the code for servers that do not label errors.
func isResumableCode(code int32) bool {
	switch code {
	case 63, // StaleShardVersion
		133,   // FailedToSatisfyReadPreference
		150,   // StaleEpoch
		234,   // RetryChangeStream
		13388: // StaleConfig
		return true
	}
	return isRetryableCode(code) // the rest of the list
}
