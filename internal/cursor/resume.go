package cursor

import (
	"errors"

	"allium/internal/errcode"
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
		return !errors.Is(err, mongoerr.ErrClientClosed) && !errors.Is(err, session.ErrEnded) &&
			!errors.Is(err, session.ErrConcurrent)
	}
	switch {
	case server.Code == errcode.CursorNotFound:
		return true
	case wireVersion >= wireResumableLabel:
		return server.HasLabel(mongoerr.LabelResumableChangeStream)
	}
	return errcode.Is(server.Code, errcode.Resumable)
}

// wireResumableLabel is the version of servers from 4.4 on, which label what can be resumed.
const wireResumableLabel = 9
