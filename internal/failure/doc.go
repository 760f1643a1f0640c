// Package failure makes the errors of package mongoerr: it reads them out of replies and labels
// them. What users need of errors is in mongoerr.
package failure

import "errors"

// ErrNilContext is returned by every operation whose context is nil.
var ErrNilContext = errors.New("context is nil")
