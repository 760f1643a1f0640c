package campaign

import (
	"time"

	"allium/bson"
)

// outcome is what a caller learnt of its write.
type outcome int

const (
	absent  outcome = iota // it was not applied, or has been undone
	unknown                // it may have been applied
	weak                   // acknowledged by the primary alone: it may be rolled back
	acked                  // acknowledged by a majority
)

func (o outcome) String() string {
	return [...]string{"aborted", "of unknown outcome", "acknowledged with w: 1", "acknowledged"}[o]
}

// entry is a token in a list.
type entry struct {
	list  int
	token int32
}

// seen is a list as a read returned it.
type seen struct {
	list   int
	tokens []int32
}

// record is an operation on lists, or a transaction of several.
type record struct {
	name    string
	outcome outcome
	atomic  bool // all of it or nothing
	writes  []entry
	reads   []seen
}

// increment is an operation on the shared counter.
type increment struct {
	name       string
	start, end time.Time
	outcome    outcome
	value      int64 // that it returned, if it was acknowledged
}

// inserted is a document of the collection that followers watch.
type inserted struct {
	outcome outcome
	actor   int
	seq     int
}

// file is an upload.
type file struct {
	outcome outcome
	sum     [32]byte
}

// followed is what a follower has received.
type followed struct {
	name   string
	events []string         // the ids of the inserted documents
	times  []bson.Timestamp // their cluster times
	ended  bool             // the last document was seen
	failed error            // the last error
}

// history is what the actors have done and seen. Guarded by world.mu.
type history struct {
	records    []*record
	increments []*increment
	inserted   map[string]*inserted
	files      map[bson.ObjectID]*file
	followers  []*followed
	own        map[int]*ownCounter
	changes    []*change
	heaps      []*heap
	token      int32
	held       map[string]time.Time // messages of the queue, and how long nobody else gets them

	consumption consumption
	migration   migration
}

// ownCounter is a counter that only one actor writes.
type ownCounter struct {
	acked, tried int64
}

func (h *history) init() {
	h.inserted = map[string]*inserted{"first": {outcome: acked, actor: -1}}
	h.files = map[bson.ObjectID]*file{}
	h.own = map[int]*ownCounter{}
	h.held = map[string]time.Time{}
	h.consumption = newConsumption()
	h.migration.active = map[string]bool{}
}
