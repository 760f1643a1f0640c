package allium

import (
	"errors"

	"allium/mongoerr"
)

// timedOut reports whether an operation ended because its time was up, or because its context was
// cancelled.
func timedOut(err error) bool {
	_, ok := errors.AsType[*mongoerr.TimeoutError](err)
	return ok
}
