package allium

import (
	"errors"

	"allium/mongoerr"
)

// The server's codes that the driver itself looks at.
const (
	codeNamespaceNotFound = 26
	codeMaxTimeMSExpired  = 50
	codeNoSuchTransaction = 251
)

// timedOut reports whether an operation ended because its time was up, or because its context was
// cancelled.
func timedOut(err error) bool {
	_, ok := errors.AsType[*mongoerr.TimeoutError](err)
	return ok
}
