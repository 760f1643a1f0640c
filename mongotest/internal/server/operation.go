package server

import "sync/atomic"

// operation is a running command as currentOp and killOp know it.
type operation struct {
	id     int32
	done   chan struct{} // closed when the operation is killed
	reason atomic.Pointer[error]
}

// kill ends the operation with this error; only the first one counts.
func (o *operation) kill(err error) {
	if o.reason.CompareAndSwap(nil, &err) {
		close(o.done)
	}
}

func (o *operation) err() error {
	if p := o.reason.Load(); p != nil {
		return *p
	}
	return nil
}
