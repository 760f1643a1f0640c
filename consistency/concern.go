package consistency

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ReadConcern says how current and how durable the data must be that a read returns. The zero
// ReadConcern leaves it to the server.
type ReadConcern struct {
	Level ReadLevel
}

// ReadLevel is the level of a read concern. The empty ReadLevel leaves it to the server.
type ReadLevel string

// The levels of a read concern.
const (
	ReadLocal     ReadLevel = "local"     // the newest data of the member, which may be rolled back
	ReadAvailable ReadLevel = "available" // as local; on a sharded cluster, orphaned documents may come back
	ReadMajority  ReadLevel = "majority"  // data that a majority of the members has acknowledged
	// all majority writes that ended before the read began; on the primary only
	ReadLinearizable ReadLevel = "linearizable"
	ReadSnapshot     ReadLevel = "snapshot" // majority data of one point in time
)

// WriteConcern says when a write counts as done. The zero WriteConcern
// leaves it to the server.
type WriteConcern struct {
	// W is how many members must have the write, or the name of a set of them, such as "majority".
	// Nil leaves it to the server; 0 asks for no reply.
	W any // int or string
	// Journal asks that the write be in the journal.
	Journal *bool
	// Timeout bounds how long the server waits for W, to the millisecond. Zero: no bound.
	//
	// Deprecated: set a Timeout, which bounds the whole operation and replaces this one.
	Timeout time.Duration
}

// Majority returns a write concern that asks for acknowledgment by a majority of the voting members
// that bear data.
func Majority() *WriteConcern { return &WriteConcern{W: "majority"} }

// Unacknowledged returns the write concern that waits for no reply: the client does not learn
// whether the write succeeded, it is not retried, and it cannot run in a session.
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
