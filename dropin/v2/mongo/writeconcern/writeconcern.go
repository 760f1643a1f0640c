// Package writeconcern has the write concerns: whose acknowledgment a write waits for.
package writeconcern

// WCMajority is the W of a majority of the members.
const WCMajority = "majority"

// A WriteConcern says what a write waits for. What is nil is left to the server's default.
type WriteConcern struct {
	// W is how many members must have the write (an int), or "majority", or the name of a rule of
	// the replica set's settings.
	W any

	// Journal tells whether it must be in their journals.
	Journal *bool
}

// Majority waits for a majority of the members.
func Majority() *WriteConcern { return &WriteConcern{W: WCMajority} }

// Custom waits for what the replica set's settings say under this name.
func Custom(tag string) *WriteConcern { return &WriteConcern{W: tag} }

// Journaled waits for the journal.
func Journaled() *WriteConcern {
	journal := true
	return &WriteConcern{Journal: &journal}
}

// W1 waits for one member.
func W1() *WriteConcern { return &WriteConcern{W: 1} }

// Unacknowledged waits for nothing.
func Unacknowledged() *WriteConcern { return &WriteConcern{W: 0} }

// Acknowledged reports whether a write with this concern is answered. Without W, or with a W that
// is no int, it is; so it is if the journal is waited for.
func (wc *WriteConcern) Acknowledged() bool {
	return wc == nil || wc.W != 0 || wc.Journal != nil && *wc.Journal
}

// IsValid reports whether a server may be sent this concern: W is nil, a string or an int that is
// not negative, and not 0 with the journal waited for.
func (wc *WriteConcern) IsValid() bool {
	if wc == nil {
		return true
	}
	switch w := wc.W.(type) {
	case nil, string:
		return true
	case int:
		return w > 0 || w == 0 && (wc.Journal == nil || !*wc.Journal)
	}
	return false
}
