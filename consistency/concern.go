package consistency

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ReadConcern says how settled the data must be that a read returns (specification: Read and Write Concern). The
// zero ReadConcern leaves it to the server.
type ReadConcern struct {
	// Level is "local", "majority", "linearizable", "available", "snapshot" or "".
	Level string
}

// WriteConcern says when a write counts as done (specification: Read and Write Concern). The zero WriteConcern
// leaves it to the server.
type WriteConcern struct {
	// W is how many members must have the write, or the name of a set of them, such as "majority". Nil leaves it to the
	// server; 0 asks for no answer at all.
	W any // int or string
	// Journal asks that the write be in the journal.
	Journal *bool
	// Timeout bounds how long the server waits for W, to the millisecond. Zero: no bound.
	//
	// Deprecated: set a Timeout, which bounds the whole operation and replaces this one.
	Timeout time.Duration
}

// Majority is the write concern that a majority of the data-bearing members have the write.
func Majority() *WriteConcern { return &WriteConcern{W: "majority"} }

// Unacknowledged is the write concern that asks for no answer.
func Unacknowledged() *WriteConcern { return &WriteConcern{W: 0} }

// IsZero reports whether everything is left to the server.
func (w *WriteConcern) IsZero() bool {
	return w == nil || w.W == nil && w.Journal == nil && w.Timeout == 0
}

// Acknowledged reports whether the server answers a write.
func (w *WriteConcern) Acknowledged() bool {
	return w == nil || w.W != 0 && w.W != int32(0) && w.W != int64(0) || w.Journal != nil && *w.Journal
}

// Validate checks the fields against each other.
func (w *WriteConcern) Validate() error {
	if w == nil {
		return nil
	}
	switch v := w.W.(type) {
	case nil, string:
	case int:
		if v < 0 || v > math.MaxInt32 {
			return fmt.Errorf("write concern: W is %d, want 0 or more, and 32 bits", v)
		}
		if v == 0 && w.Journal != nil && *w.Journal {
			return errors.New("write concern: W 0 and Journal true exclude each other")
		}
	default:
		return fmt.Errorf("write concern: W is a %T, want an int or a string", w.W)
	}
	if w.Timeout < 0 {
		return fmt.Errorf("write concern: Timeout is %v, want 0 or more", w.Timeout)
	}
	return nil
}
