package allium

import (
	"allium/internal/command"
	"allium/internal/topology"
)

// ReadConcern says how settled the data must be that a read returns (specification: Read and Write Concern).
// Its one field, Level, is "local", "majority", "linearizable", "available", "snapshot", or "" to leave it to the
// server.
type ReadConcern = command.ReadConcern

// WriteConcern says when a write counts as done (specification: Read and Write Concern). Its fields are
//
//	W        any            // how many members must have the write, or "majority"; nil leaves it to the server, 0 asks for no answer
//	Journal  *bool          // the write must be in the journal
//	Timeout  time.Duration  // how long the server waits for W; zero: without bound
type WriteConcern = command.WriteConcern

// Majority returns the write concern that a majority of the data-bearing members have the write.
func Majority() *WriteConcern { return command.Majority() }

// Unacknowledged returns the write concern that asks for no answer: the driver does not learn whether the write
// succeeded, it is not retried, and it cannot be part of a session.
func Unacknowledged() *WriteConcern { return command.Unacknowledged() }

// Collation says how strings are compared (specification: Collation). Its fields are Locale (which must be set),
// CaseLevel, CaseFirst, Strength, NumericOrdering, Alternate, MaxVariable, Normalization and Backwards, as in the server's
// manual; what is zero is left to the server.
type Collation = command.Collation

// ReadPreference says which members of a replica set a read may go to (specification: Server Selection). Its fields
// are Mode, TagSets, MaxStaleness and the deprecated Hedge. The zero value is the primary.
type ReadPreference = topology.ReadPreference

// ReadMode is the mode of a ReadPreference.
type ReadMode = topology.ReadMode

// The read preference modes.
const (
	Primary            = topology.Primary            // only the primary
	PrimaryPreferred   = topology.PrimaryPreferred   // the primary, or a secondary while there is none
	Secondary          = topology.Secondary          // only secondaries
	SecondaryPreferred = topology.SecondaryPreferred // a secondary, or the primary if there is none
	Nearest            = topology.Nearest            // any member, by latency
)
